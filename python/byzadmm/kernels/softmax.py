"""Softmax regression: mini-batch gradients and losses of all workers, predictions, accuracy."""

from __future__ import annotations

from typing import Any

import numpy as np

from byzadmm import _core
from byzadmm._internal.arrays import Array, as_float, as_index, as_samples, prepare_out
from byzadmm._internal.validation import check_real, check_threads
from byzadmm.kernels._checks import require_shape, returned

__all__ = ["softmax_accuracy", "softmax_gradient", "softmax_loss", "softmax_predict"]


def _check_bias(bias: Any) -> bool:
    if not isinstance(bias, (bool, np.bool_)):
        raise TypeError(f"bias: expected True or False, got {type(bias).__name__}")
    return bool(bias)


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
    require_shape(labels, "y", (len(samples),))
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
        The samples of each worker's batch; by default every worker takes all N.
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
    return returned(result, out, W)


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
    return returned(result, out, w)


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
    require_shape(labels, "y", samples.shape[:1])
    models = as_float(w, "w")
    predicted = softmax_predict(models, samples, scale=scale, bias=bias, threads=threads)
    wrong = np.flatnonzero((labels < 0) | (labels >= len(models)))
    if wrong.size:
        raise ValueError(f"y: expected labels in [0, {len(models)}), got {labels[wrong[0]]} at row {wrong[0]}")
    return float(np.mean(predicted == labels))
