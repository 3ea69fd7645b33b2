"""The kernels that other projects call: gradients of softmax regression, the steps of ADMM and RSA, random numbers.

Every function takes NumPy arrays or anything like them (lists, tensors through DLPack), computes in float32 or float64
as its arguments are, writes to ``out`` if given, and uses ``threads`` threads (0: choose). float16 and bfloat16 are
computed in float32 and come back in the type they came in (``out`` is float32). The same bits come out for every thread
count. ``docs/algorithm.md`` has the equations.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from byzadmm import _core
from byzadmm._internal.arrays import Array, as_float, as_index, as_samples, common_float, prepare_out, wrapper_of
from byzadmm._internal.validation import check_int, check_real, check_threads

__all__ = [
    "admm_dual_step",
    "admm_master_step",
    "admm_worker_step",
    "philox_integers",
    "philox_normal",
    "rsa_master_step",
    "rsa_worker_step",
    "softmax_accuracy",
    "softmax_gradient",
    "softmax_loss",
    "softmax_predict",
]

_UINT64_MAX = 2**64 - 1


def _result(array: Array, out: Any, like: Any, *others: Any) -> Any:
    return out if out is not None else wrapper_of(like, *others)(array)


def _require_shape(array: Array, name: str, shape: tuple[int, ...]) -> None:
    if array.shape != shape:
        raise ValueError(f"{name}: expected shape {shape}, got {array.shape}")


def _require_workers(array: Array, name: str) -> tuple[int, int]:
    if array.ndim != 2:
        raise ValueError(f"{name}: expected shape (m, d), one row per worker, got {array.shape}")
    if array.size == 0:
        raise ValueError(f"{name}: expected at least one row and one column, got shape {array.shape}")
    return array.shape


def _positive(value: Any, name: str, like: Array) -> float:
    return check_real(value, name, low=0.0, strict=True, dtype=like.dtype)


def _not_negative(value: Any, name: str, like: Array) -> float:
    return check_real(value, name, low=0.0, dtype=like.dtype)


def _check_bias(bias: Any) -> bool:
    if not isinstance(bias, (bool, np.bool_)):
        raise TypeError(f"bias: expected True or False, got {type(bias).__name__}")
    return bool(bias)


# --- softmax regression ----------------------------------------------------------------------------------------------


def _softmax_arguments(W: Any, X: Any, y: Any, idx: Any, bias: bool) -> tuple[Array, Array, Array, Array | None, bool]:
    models = as_float(W, "W")
    single = models.ndim == 2
    models = models[None] if single else models
    samples = as_samples(X)
    if models.ndim != 3:
        raise ValueError(f"W: expected shape (m, K, D+1) or (K, D+1), got {models.shape}")
    if samples.ndim != 2:
        raise ValueError(f"X: expected shape (N, D), got {samples.shape}")
    rows = None
    if idx is not None:
        rows = as_index(idx, "idx")
        rows = rows[None] if single and rows.ndim == 1 else rows
        if rows.ndim != 2 or len(rows) != len(models):
            raise ValueError(f"idx: expected shape ({len(models)}, B), got {rows.shape}")
    labels = as_index(y, "y")
    _require_shape(labels, "y", (len(samples),))
    _check_bias(bias)
    return models, samples, labels, rows, single


def softmax_gradient(
    W: Any, X: Any, y: Any, idx: Any = None, *, scale: float = 1.0, bias: bool = True, out: Any = None, threads: int = 0
) -> Any:
    """Mini-batch gradients of softmax regression for all workers in one call.

    ``g_i = (1/B) sum_b (softmax(W_i x_b) - e_{y_b}) x_b^T`` with ``x_b = (scale * X[idx[i, b]], 1)``.

    Parameters
    ----------
    W : (m, K, D+1) array
        A model per worker, the bias in the last column; (m, K, D) with ``bias=False``. (K, D+1) is one worker.
    X : (N, D) array of uint8, float32 or float64
        Samples shared by all workers.
    y : (N,) integers in [0, K)
        Labels.
    idx : (m, B) integers in [0, N), optional
        The samples of each worker's batch; without it every worker takes all N.
    scale : float
        Multiplies every feature (1/255 for pixels).

    Returns
    -------
    array of the shape and dtype of ``W``

    Examples
    --------
    >>> import numpy as np
    >>> from byzadmm import kernels
    >>> g = kernels.softmax_gradient(np.zeros((1, 2, 2)), [[3.0]], [0])
    >>> g[0].tolist()
    [[-1.5, -0.5], [1.5, 0.5]]

    References
    ----------
    The stochastic gradient of ``eqxi-update``.
    """
    models, samples, labels, rows, single = _softmax_arguments(W, X, y, idx, bias)
    inputs = [models, samples, labels] + ([] if rows is None else [rows])
    shape = models.shape[1:] if single else models.shape
    result = prepare_out(out, shape, models.dtype, inputs, [W, X, y] + ([] if idx is None else [idx]))
    target = result[None] if single else result
    _core.softmax_gradient(
        models,
        samples,
        labels,
        rows,
        target,
        check_real(scale, "scale", dtype=models.dtype),
        bool(bias),
        check_threads(threads),
    )
    return _result(result, out, W)


def softmax_loss(
    W: Any, X: Any, y: Any, idx: Any = None, *, scale: float = 1.0, bias: bool = True, threads: int = 0
) -> Any:
    """Mean cross-entropy of each worker's model on its batch.

    ``(1/B) sum_b -log softmax(W_i x_b)_{y_b}``; arguments as in :func:`softmax_gradient`.

    Returns
    -------
    (m,) float64 array, or a float for one model (K, D+1)

    Examples
    --------
    >>> import numpy as np
    >>> from byzadmm import kernels
    >>> round(kernels.softmax_loss(np.zeros((2, 2)), [[3.0]], [0]), 6)  # log 2
    0.693147
    """
    models, samples, labels, rows, single = _softmax_arguments(W, X, y, idx, bias)
    factor, count = check_real(scale, "scale", dtype=models.dtype), check_threads(threads)
    loss = _core.softmax_loss(models, samples, labels, rows, factor, bool(bias), count)
    return float(loss[0]) if single else loss


def softmax_predict(w: Any, X: Any, *, scale: float = 1.0, bias: bool = True, out: Any = None, threads: int = 0) -> Any:
    """The most likely class of every row; the lowest of equals.

    ``argmax_k (W x)_k``

    Parameters
    ----------
    w : (K, D+1) array
        One model; (K, D) with ``bias=False``.
    X : (N, D) array of uint8, float32 or float64

    Returns
    -------
    (N,) int64 array

    Examples
    --------
    >>> from byzadmm import kernels
    >>> kernels.softmax_predict([[1.0, 0.0], [-1.0, 0.0]], [[2.0], [-2.0]]).tolist()
    [0, 1]
    """
    samples = as_samples(X)
    if samples.ndim != 2:
        raise ValueError(f"X: expected shape (N, D), got {samples.shape}")
    models = as_float(w, "w")
    if models.ndim != 2:
        raise ValueError(f"w: expected shape (K, D+1), got {models.shape}")
    result = prepare_out(out, (len(samples),), np.dtype(np.int64), [models, samples], [w, X])
    _core.softmax_predict(
        models[None],
        samples,
        result,
        check_real(scale, "scale", dtype=models.dtype),
        _check_bias(bias),
        check_threads(threads),
    )
    return _result(result, out, w)


def softmax_accuracy(w: Any, X: Any, y: Any, *, scale: float = 1.0, bias: bool = True, threads: int = 0) -> float:
    """The share of rows whose most likely class is their label.

    Arguments as in :func:`softmax_predict`; ``y`` is (N,) integers in [0, K).

    Examples
    --------
    >>> from byzadmm import kernels
    >>> kernels.softmax_accuracy([[1.0, 0.0], [-1.0, 0.0]], [[2.0], [-2.0]], [0, 0])
    0.5
    """
    samples = as_samples(X)
    labels = as_index(y, "y")
    _require_shape(labels, "y", samples.shape[:1])
    models = as_float(w, "w")
    predicted = softmax_predict(models, samples, scale=scale, bias=bias, threads=threads)
    wrong = np.flatnonzero((labels < 0) | (labels >= len(models)))
    if wrong.size:
        raise ValueError(f"y: expected labels in [0, {len(models)}), got {labels[wrong[0]]} at row {wrong[0]}")
    return float(np.mean(predicted == labels))


# --- ADMM and RSA ----------------------------------------------------------------------------------------------------


def admm_worker_step(
    x: Any, g: Any, eta: Any, eta_prev: Any, *, alpha: float, out: Any = None, threads: int = 0
) -> Any:
    """The workers' primal step of stochastic ADMM.

    ``x_i - alpha (g_i + 2 eta_i - eta_prev_i)``

    Parameters
    ----------
    x, g, eta, eta_prev : (m, d) arrays, or any one shape
        Models, stochastic gradients, duals of this and of the last iteration.
    alpha : float >= 0
        Step size of the workers.
    out : array, optional
        May be any of the four inputs.

    Examples
    --------
    >>> from byzadmm import kernels
    >>> kernels.admm_worker_step([[1.0]], [[2.0]], [[0.5]], [[0.25]], alpha=0.1).tolist()
    [[0.725]]

    References
    ----------
    ``eqxi-update`` (Proposition ``lem:simp``).
    """
    arrays = models, gradients, duals, previous = common_float(x=x, g=g, eta=eta, eta_prev=eta_prev)
    for array, name in zip(arrays[1:], ("g", "eta", "eta_prev"), strict=True):
        _require_shape(array, name, models.shape)
    if models.size == 0:
        raise ValueError(f"x: expected at least one number, got shape {models.shape}")
    result = prepare_out(out, models.shape, models.dtype, arrays, [x, g, eta, eta_prev], may_be=arrays)
    alpha = _not_negative(alpha, "alpha", models)
    _core.admm_worker_step(models, gradients, duals, previous, result, alpha, check_threads(threads))
    return _result(result, out, x, g, eta, eta_prev)


def admm_dual_step(eta: Any, x: Any, x0: Any, *, beta: float, lam: float, out: Any = None, threads: int = 0) -> Any:
    """The dual step of stochastic ADMM, projected so that it says little about anyone.

    ``clip(eta_i + beta/2 (x_i - x0), -lam, lam)``; NaN stays NaN.

    Parameters
    ----------
    eta, x : (m, d) arrays
        Duals and models (for a Byzantine worker: the ``u_j`` it claims).
    x0 : (d,) array
        The master's model.
    beta, lam : float > 0
        Penalty parameter and bound of the dual.
    out : (m, d) array, optional
        May be ``eta`` or ``x``.

    Examples
    --------
    >>> from byzadmm import kernels
    >>> kernels.admm_dual_step([[0.0, 0.0]], [[1.0, 9.0]], [0.0, 0.0], beta=1.0, lam=2.0).tolist()
    [[0.5, 2.0]]

    References
    ----------
    ``eq11`` and ``eq11c``.
    """
    duals, models, master = common_float(eta=eta, x=x, x0=x0)
    m, d = _require_workers(models, "x")
    _require_shape(duals, "eta", (m, d))
    _require_shape(master, "x0", (d,))
    result = prepare_out(out, (m, d), models.dtype, [duals, models, master], [eta, x, x0], may_be=[duals, models])
    beta, lam = _positive(beta, "beta", models), _positive(lam, "lam", models)
    _core.admm_dual_step(duals, models, master, result, beta, lam, check_threads(threads))
    return _result(result, out, x, eta, x0)


def admm_master_step(
    x0: Any, eta: Any, eta_prev: Any, *, alpha: float, rho: float, out: Any = None, threads: int = 0
) -> Any:
    """The master's step of stochastic ADMM with ``f0(x) = rho/2 ||x||^2``.

    ``x0 - alpha (rho x0 - sum_i (2 eta_i - eta_prev_i))``, the sum in float64 over the workers in order.

    Parameters
    ----------
    x0 : (d,) array
    eta, eta_prev : (m, d) arrays
        Duals received in this and in the last iteration.
    alpha, rho : float >= 0
    out : (d,) array, optional
        May be ``x0``.

    Examples
    --------
    >>> from byzadmm import kernels
    >>> kernels.admm_master_step([1.0], [[0.5], [0.25]], [[0.0], [0.0]], alpha=0.1, rho=1.0).tolist()
    [1.05]

    References
    ----------
    ``eqx0-update-1``.
    """
    master, duals, previous = common_float(x0=x0, eta=eta, eta_prev=eta_prev)
    m, d = _require_workers(duals, "eta")
    _require_shape(previous, "eta_prev", (m, d))
    _require_shape(master, "x0", (d,))
    result = prepare_out(out, (d,), duals.dtype, [master, duals, previous], [x0, eta, eta_prev], may_be=[master])
    alpha, rho = _not_negative(alpha, "alpha", duals), _not_negative(rho, "rho", duals)
    _core.admm_master_step(master, duals, previous, result, alpha, rho, check_threads(threads))
    return _result(result, out, x0, eta, eta_prev)


def rsa_worker_step(x: Any, g: Any, x0: Any, *, alpha: float, lam: float, out: Any = None, threads: int = 0) -> Any:
    """The workers' step of RSA.

    ``x_i - alpha (g_i + lam sgn(x_i - x0))`` with ``sgn(0) = 0``.

    Parameters
    ----------
    x, g : (m, d) arrays
    x0 : (d,) array
    alpha : float >= 0
    lam : float > 0
    out : (m, d) array, optional
        May be ``x`` or ``g``.

    Examples
    --------
    >>> from byzadmm import kernels
    >>> kernels.rsa_worker_step([[1.0, 0.0]], [[0.0, 0.0]], [0.0, 0.0], alpha=0.5, lam=1.0).tolist()
    [[0.5, 0.0]]

    References
    ----------
    ``eq:rsa-update``.
    """
    models, gradients, master = common_float(x=x, g=g, x0=x0)
    m, d = _require_workers(models, "x")
    _require_shape(gradients, "g", (m, d))
    _require_shape(master, "x0", (d,))
    result = prepare_out(out, (m, d), models.dtype, [models, gradients, master], [x, g, x0], may_be=[models, gradients])
    alpha, lam = _not_negative(alpha, "alpha", models), _positive(lam, "lam", models)
    _core.rsa_worker_step(models, gradients, master, result, alpha, lam, check_threads(threads))
    return _result(result, out, x, g, x0)


def rsa_master_step(
    x0: Any, messages: Any, *, alpha: float, lam: float, rho: float, out: Any = None, threads: int = 0
) -> Any:
    """The master's step of RSA with ``f0(x) = rho/2 ||x||^2``.

    ``x0 - alpha (rho x0 - lam sum_i sgn(message_i - x0))``

    Parameters
    ----------
    x0 : (d,) array
    messages : (m, d) array
        The models received.
    alpha, rho : float >= 0
    lam : float > 0
    out : (d,) array, optional
        May be ``x0``.

    Examples
    --------
    >>> from byzadmm import kernels
    >>> kernels.rsa_master_step([0.0], [[3.0], [5.0], [-1.0]], alpha=0.5, lam=1.0, rho=0.0).tolist()
    [0.5]

    References
    ----------
    ``eq:rsa-update``.
    """
    master, received = common_float(x0=x0, messages=messages)
    _, d = _require_workers(received, "messages")
    _require_shape(master, "x0", (d,))
    result = prepare_out(out, (d,), received.dtype, [master, received], [x0, messages], may_be=[master])
    alpha, rho = _not_negative(alpha, "alpha", received), _not_negative(rho, "rho", received)
    lam = _positive(lam, "lam", received)
    _core.rsa_master_step(master, received, result, alpha, lam, rho, check_threads(threads))
    return _result(result, out, x0, messages)


# --- random numbers --------------------------------------------------------------------------------------------------


def _stream(stream: int | Sequence[int]) -> tuple[int, int, int]:
    words = [stream] if not isinstance(stream, (tuple, list)) else list(stream)
    if not 1 <= len(words) <= 3:
        raise ValueError(f"stream: expected an integer or up to three, got {len(words)}")
    first, second, third, *_ = [*(check_int(word, "stream", low=0, high=_UINT64_MAX) for word in words), 0, 0]
    return first, second, third


def _shape(shape: int | Sequence[int]) -> tuple[int, ...]:
    sizes = shape if isinstance(shape, (tuple, list)) else (shape,)
    return tuple(check_int(size, "shape", low=0) for size in sizes)


def _draw(out: Any, shape: Any, dtype: np.dtype[Any], fill: Callable[[Array], None]) -> Any:
    result = prepare_out(out, _shape(shape), dtype, [])
    fill(result)
    return result if out is None else out


def philox_normal(
    shape: int | Sequence[int],
    *,
    seed: int,
    stream: int | Sequence[int] = 0,
    dtype: Any = "float64",
    out: Any = None,
    threads: int = 0,
) -> Any:
    """Standard normal numbers of one stream of Philox4x64-10.

    Element ``e`` comes from word ``e`` (float64) or half a word (float32) of the stream, through the normal quantile.

    Parameters
    ----------
    shape : int or tuple
    seed : int in [0, 2**64)
    stream : int or up to three
        Names the stream: purpose, worker, iteration.
    dtype : "float32" or "float64"
    out : array of that shape and dtype, optional
    threads : int
        Accepted like everywhere; a stream is short and drawn by one thread.

    Examples
    --------
    >>> from byzadmm import kernels
    >>> a = kernels.philox_normal(3, seed=1, stream=(0, 5, 9))
    >>> bool((a == kernels.philox_normal(5, seed=1, stream=(0, 5, 9))[:3]).all())
    True

    References
    ----------
    Salmon, Moraes, Dror, Shaw, "Parallel random numbers: as easy as 1, 2, 3", SC 2011.
    """
    kind = np.dtype(dtype)
    if kind not in (np.float32, np.float64):
        raise TypeError(f"dtype: expected float32 or float64, got {kind}")
    key, words, _ = check_int(seed, "seed", low=0, high=_UINT64_MAX), _stream(stream), check_threads(threads)
    return _draw(out, shape, kind, lambda result: _core.philox_normal(result, 1.0, key, words))


def philox_integers(
    shape: int | Sequence[int],
    *,
    high: int,
    seed: int,
    stream: int | Sequence[int] = 0,
    out: Any = None,
    threads: int = 0,
) -> Any:
    """Uniform integers in ``[0, high)`` of one stream of Philox4x64-10.

    ``floor(word_e * high / 2**64)``; arguments as in :func:`philox_normal`, ``1 <= high <= 2**63``.

    Examples
    --------
    >>> from byzadmm import kernels
    >>> kernels.philox_integers(4, high=10, seed=0).tolist()
    [0, 8, 8, 4]
    """
    key, words, _ = check_int(seed, "seed", low=0, high=_UINT64_MAX), _stream(stream), check_threads(threads)
    top = check_int(high, "high", low=1, high=2**63)
    return _draw(out, shape, np.dtype(np.int64), lambda result: _core.philox_integers(result, top, key, words))
