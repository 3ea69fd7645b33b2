"""Softmax regression: gradients, losses and Hessians of all workers, predictions, accuracy."""

from __future__ import annotations

from typing import Any

import numpy as np

from byzadmm import _core
from byzadmm._internal.arrays import as_float, as_index, as_samples, prepare_out
from byzadmm._internal.validation import check_real, check_threads
from byzadmm.kernels import _models
from byzadmm.kernels._checks import require_shape, returned

__all__ = ["softmax_accuracy", "softmax_gradient", "softmax_hessian_product", "softmax_loss", "softmax_predict"]


_MODEL = _models.Model(
    _core.softmax_gradient, _core.softmax_loss, _core.softmax_hessian_product, as_index, classes=True
)


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
    return _models.gradient(_MODEL, W, X, y, idx, scale=scale, bias=bias, out=out, threads=threads)


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
    return _models.loss(_MODEL, W, X, y, idx, scale=scale, bias=bias, threads=threads)


def softmax_hessian_product(
    W: Any, V: Any, X: Any, idx: Any = None, *, scale: float = 1.0, bias: bool = True, out: Any = None, threads: int = 0
) -> Any:
    """Hessian of softmax regression times a vector, for all workers in one call.

    ``H_i = (1/B) sum_b p_b * (u_b - <p_b, u_b>) x_b^T``, the first product element by element, with
    ``p_b = softmax(W_i x_b)``, ``u_b = V_i x_b`` and ``x_b = (scale * X[idx[i, b]], 1)``. It does not depend on the
    labels. The Hessian is singular: the same vector added to every row of ``V`` changes nothing.

    Parameters
    ----------
    W, X, idx, scale
        As in :func:`softmax_gradient`.
    V : array of the shape of W
        A vector per worker.

    Returns
    -------
    array of the shape and dtype of ``W``

    Examples
    --------
    >>> import numpy as np
    >>> from byzadmm import kernels
    >>> kernels.softmax_hessian_product(np.zeros((2, 2)), [[1.0, 1.0], [0.0, 0.0]], [[3.0]]).tolist()
    [[3.0, 1.0], [-3.0, -1.0]]
    """
    return _models.hessian_product(_MODEL, W, V, X, idx, scale=scale, bias=bias, out=out, threads=threads)


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
    samples = _models.check_samples(X)
    models = as_float(w, "w")
    if models.ndim != 2:
        raise ValueError(f"w: expected shape (K, D+1), got {models.shape}")
    result = prepare_out(out, (len(samples),), np.dtype(np.int64), [models, samples], [w, X])
    _core.softmax_predict(
        models[None],
        samples,
        result,
        check_real(scale, "scale", dtype=models.dtype),
        _models.check_bias(bias),
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
