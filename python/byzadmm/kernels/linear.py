"""Logistic and linear regression: gradients, losses and Hessians of all workers, and the outputs of a model."""

from __future__ import annotations

from typing import Any

from byzadmm import _core
from byzadmm._internal.arrays import as_float, as_index, prepare_out
from byzadmm._internal.validation import check_real, check_threads
from byzadmm.kernels import _models
from byzadmm.kernels._checks import require_shape, returned

__all__ = [
    "least_squares_gradient",
    "least_squares_hessian_product",
    "least_squares_loss",
    "linear_predict",
    "logistic_gradient",
    "logistic_hessian_product",
    "logistic_loss",
]

_LOGISTIC = _models.Model(
    _core.logistic_gradient, _core.logistic_loss, _core.logistic_hessian_product, as_index, classes=False
)
_SQUARES = _models.Model(
    _core.least_squares_gradient,
    _core.least_squares_loss,
    _core.least_squares_hessian_product,
    _models.as_real,
    classes=False,
)


def logistic_gradient(
    W: Any, X: Any, y: Any, idx: Any = None, *, scale: float = 1.0, bias: bool = True, out: Any = None, threads: int = 0
) -> Any:
    """Mini-batch gradients of logistic regression for all workers in one call.

    ``g_i = (1/B) sum_b (sigmoid(W_i.x_b) - y_b) x_b`` with ``x_b = (scale * X[idx[i, b]], 1)``. Finite wherever
    ``W_i.x_b`` is, and with its limit where that is infinite; NaN stays NaN.

    Parameters
    ----------
    W : (m, D+1) array
        A model per worker, the bias last; (m, D) with ``bias=False``. (D+1,) is one worker.
    X : (N, D) array of uint8, float32 or float64
        Samples shared by all workers.
    y : (N,) integers 0 or 1
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
    >>> kernels.logistic_gradient(np.zeros((1, 2)), [[3.0]], [1]).tolist()
    [[-1.5, -0.5]]
    """
    return _models.gradient(_LOGISTIC, W, X, y, idx, scale=scale, bias=bias, out=out, threads=threads)


def logistic_loss(
    W: Any, X: Any, y: Any, idx: Any = None, *, scale: float = 1.0, bias: bool = True, threads: int = 0
) -> Any:
    """Mean logistic loss of each worker's model on its batch.

    ``(1/B) sum_b log(1 + exp(-s_b W_i.x_b))`` with ``s_b = 2 y_b - 1``; arguments as in :func:`logistic_gradient`.

    Returns
    -------
    (m,) float64 array, or a float for one model (D+1,)

    Examples
    --------
    >>> from byzadmm import kernels
    >>> round(kernels.logistic_loss([0.0, 0.0], [[3.0]], [1]), 6)  # log 2
    0.693147
    """
    return _models.loss(_LOGISTIC, W, X, y, idx, scale=scale, bias=bias, threads=threads)


def logistic_hessian_product(
    W: Any, V: Any, X: Any, idx: Any = None, *, scale: float = 1.0, bias: bool = True, out: Any = None, threads: int = 0
) -> Any:
    """Hessian of logistic regression times a vector, for all workers in one call.

    ``h_i = (1/B) sum_b p_b (1 - p_b) (V_i.x_b) x_b`` with ``p_b = sigmoid(W_i.x_b)`` and
    ``x_b = (scale * X[idx[i, b]], 1)``. It does not depend on the labels.

    Parameters
    ----------
    W, X, idx, scale
        As in :func:`logistic_gradient`.
    V : array of the shape of W
        A vector per worker.

    Returns
    -------
    array of the shape and dtype of ``W``

    Examples
    --------
    >>> from byzadmm import kernels
    >>> kernels.logistic_hessian_product([0.0, 0.0], [1.0, 1.0], [[3.0]]).tolist()
    [3.0, 1.0]
    """
    return _models.hessian_product(_LOGISTIC, W, V, X, idx, scale=scale, bias=bias, out=out, threads=threads)


def least_squares_gradient(
    W: Any, X: Any, y: Any, idx: Any = None, *, scale: float = 1.0, bias: bool = True, out: Any = None, threads: int = 0
) -> Any:
    """Mini-batch gradients of linear regression for all workers in one call.

    ``g_i = (1/B) sum_b (W_i.x_b - y_b) x_b`` with ``x_b = (scale * X[idx[i, b]], 1)``. Infinite or NaN where a residual
    is beyond the range of the dtype.

    Parameters
    ----------
    W, X, idx, scale
        As in :func:`logistic_gradient`.
    y : (N,) real
        Targets.

    Returns
    -------
    array of the shape and dtype of ``W``

    Examples
    --------
    >>> from byzadmm import kernels
    >>> kernels.least_squares_gradient([1.0, 0.0], [[3.0]], [2.5]).tolist()
    [1.5, 0.5]
    """
    return _models.gradient(_SQUARES, W, X, y, idx, scale=scale, bias=bias, out=out, threads=threads)


def least_squares_loss(
    W: Any, X: Any, y: Any, idx: Any = None, *, scale: float = 1.0, bias: bool = True, threads: int = 0
) -> Any:
    """Half the mean squared residual of each worker's model on its batch.

    ``(1/2B) sum_b (W_i.x_b - y_b)^2``; arguments as in :func:`least_squares_gradient`.

    Returns
    -------
    (m,) float64 array, or a float for one model (D+1,)

    Examples
    --------
    >>> from byzadmm import kernels
    >>> kernels.least_squares_loss([1.0, 0.0], [[3.0]], [2.5])
    0.125
    """
    return _models.loss(_SQUARES, W, X, y, idx, scale=scale, bias=bias, threads=threads)


def least_squares_hessian_product(
    W: Any, V: Any, X: Any, idx: Any = None, *, scale: float = 1.0, bias: bool = True, out: Any = None, threads: int = 0
) -> Any:
    """Hessian of linear regression times a vector, for all workers in one call.

    ``h_i = (1/B) sum_b (V_i.x_b) x_b`` with ``x_b = (scale * X[idx[i, b]], 1)``, the same for every ``W``.

    Parameters
    ----------
    W, V, X, idx, scale
        As in :func:`logistic_hessian_product`.

    Returns
    -------
    array of the shape and dtype of ``W``

    Examples
    --------
    >>> from byzadmm import kernels
    >>> kernels.least_squares_hessian_product([0.0, 0.0], [1.0, 1.0], [[3.0]]).tolist()
    [12.0, 4.0]
    """
    return _models.hessian_product(_SQUARES, W, V, X, idx, scale=scale, bias=bias, out=out, threads=threads)


def linear_predict(w: Any, X: Any, *, scale: float = 1.0, bias: bool = True, out: Any = None, threads: int = 0) -> Any:
    """The output of a linear model for every row: the prediction of linear regression, the log odds of logistic.

    ``w.x`` with ``x = (scale * X[b], 1)``

    Parameters
    ----------
    w : (D+1,) array
        One model; (D,) with ``bias=False``.
    X : (N, D) array of uint8, float32 or float64

    Returns
    -------
    (N,) array of the dtype of ``w``

    Examples
    --------
    >>> from byzadmm import kernels
    >>> kernels.linear_predict([2.0, 0.5], [[1.0], [-1.0]]).tolist()
    [2.5, -1.5]
    """
    samples = _models.check_samples(X)
    model = as_float(w, "w")
    require_shape(model, "w", (samples.shape[1] + _models.check_bias(bias),))
    result = prepare_out(out, (len(samples),), model.dtype, [model, samples], [w, X])
    factor = check_real(scale, "scale", dtype=model.dtype)
    _core.linear_predict(model[None, None], samples, result, factor, bool(bias), check_threads(threads))
    return returned(result, out, w)
