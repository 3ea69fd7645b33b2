"""Twin of ``regression.hpp``: losses, gradients and Hessians of logistic and linear regression, all workers at once."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from ._arrays import Array, as_float

__all__ = [
    "least_squares_gradient",
    "least_squares_hessian_product",
    "least_squares_loss",
    "linear_predict",
    "logistic_gradient",
    "logistic_hessian_product",
    "logistic_loss",
]


def logistic_gradient(
    W: npt.ArrayLike,
    X: npt.ArrayLike,
    y: npt.ArrayLike,
    idx: npt.ArrayLike | None = None,
    *,
    scale: float = 1.0,
    bias: bool = True,
) -> Array:
    """Gradient of the mean logistic loss of each worker's mini-batch.

    ``g_i = (1/B) sum_b (sigmoid(W_i.a_b) - y_b) a_b`` with ``a_b = (scale * X[idx[i, b]], 1)``.

    Parameters
    ----------
    W : (m, D+1) or (D+1,)
        Models, the bias last; ``D`` columns when ``bias`` is False. One dimension means one worker.
    X : (N, D)
        Features of any real type.
    y : (N,)
        Labels 0 or 1.
    idx : (m, B), optional
        Rows of ``X`` in each worker's batch; by default every worker uses all rows.
    scale : float
        Multiplies every feature, but not the bias feature, which is 1.
    bias : bool
        Whether the models have a bias.

    Returns
    -------
    array
        The shape and dtype of ``W``.

    Examples
    --------
    >>> logistic_gradient([0.0, 0.0], [[3.0]], [1])
    array([-1.5, -0.5])
    """
    models = as_float(W)
    A, targets = _batch(models, X, y, idx)
    t = _margins(models, A, targets, scale, bias)
    e = np.exp(-np.abs(t))
    return _gradient(models, A, (1 - 2 * targets) * np.where(t < 0, 1, e) / (1 + e), scale, bias)


def logistic_loss(
    W: npt.ArrayLike,
    X: npt.ArrayLike,
    y: npt.ArrayLike,
    idx: npt.ArrayLike | None = None,
    *,
    scale: float = 1.0,
    bias: bool = True,
) -> Array:
    """Mean logistic loss of each worker's mini-batch.

    ``F_i = (1/B) sum_b log(1 + exp(-s_b W_i.a_b))`` with ``s_b = 2 y_b - 1``.

    Parameters
    ----------
    W, X, y, idx, scale, bias
        As in :func:`logistic_gradient`.

    Returns
    -------
    array (m,)
        Of the dtype of ``W``; zero-dimensional when ``W`` has one dimension.

    Examples
    --------
    >>> round(float(logistic_loss([0.0, 0.0], [[3.0]], [1])), 6)
    0.693147
    """
    models = as_float(W)
    A, targets = _batch(models, X, y, idx)
    loss = np.logaddexp(0, -_margins(models, A, targets, scale, bias)).mean(axis=-1)
    return np.asarray(loss, models.dtype).reshape(models.shape[:-1])


def logistic_hessian_product(
    W: npt.ArrayLike,
    V: npt.ArrayLike,
    X: npt.ArrayLike,
    idx: npt.ArrayLike | None = None,
    *,
    scale: float = 1.0,
    bias: bool = True,
) -> Array:
    """Hessian of the mean logistic loss of each worker's mini-batch, times a vector.

    ``h_i = (1/B) sum_b p_b (1 - p_b) (V_i.a_b) a_b`` with ``p_b = sigmoid(W_i.a_b)``.

    Parameters
    ----------
    W, X, idx, scale, bias
        As in :func:`logistic_gradient`.
    V : array of the shape of ``W``
        The vectors.

    Returns
    -------
    array
        The shape and dtype of ``W``.

    Examples
    --------
    >>> logistic_hessian_product([0.0, 0.0], [1.0, 1.0], [[3.0]])
    array([3., 1.])
    """
    models = as_float(W)
    A, _ = _batch(models, X, np.zeros(len(np.asarray(X))), idx)
    e = np.exp(-np.abs(_outputs(models, A, scale, bias)))
    u = _outputs(np.asarray(V, models.dtype), A, scale, bias)
    return _gradient(models, A, e / (1 + e) ** 2 * u, scale, bias)


def least_squares_gradient(
    W: npt.ArrayLike,
    X: npt.ArrayLike,
    y: npt.ArrayLike,
    idx: npt.ArrayLike | None = None,
    *,
    scale: float = 1.0,
    bias: bool = True,
) -> Array:
    """Gradient of half the mean squared residual of each worker's mini-batch.

    ``g_i = (1/B) sum_b (W_i.a_b - y_b) a_b`` with ``a_b = (scale * X[idx[i, b]], 1)``.

    Parameters
    ----------
    W, X, idx, scale, bias
        As in :func:`logistic_gradient`.
    y : (N,)
        Real targets.

    Returns
    -------
    array
        The shape and dtype of ``W``.

    Examples
    --------
    >>> least_squares_gradient([1.0, 0.0], [[3.0]], [2.5])
    array([1.5, 0.5])
    """
    models = as_float(W)
    A, targets = _batch(models, X, y, idx)
    return _gradient(models, A, _outputs(models, A, scale, bias) - targets, scale, bias)


def least_squares_loss(
    W: npt.ArrayLike,
    X: npt.ArrayLike,
    y: npt.ArrayLike,
    idx: npt.ArrayLike | None = None,
    *,
    scale: float = 1.0,
    bias: bool = True,
) -> Array:
    """Half the mean squared residual of each worker's mini-batch.

    ``F_i = (1/2B) sum_b (W_i.a_b - y_b)^2``.

    Parameters
    ----------
    W, X, y, idx, scale, bias
        As in :func:`least_squares_gradient`.

    Returns
    -------
    array (m,)
        Of the dtype of ``W``; zero-dimensional when ``W`` has one dimension.

    Examples
    --------
    >>> float(least_squares_loss([1.0, 0.0], [[3.0]], [2.5]))
    0.125
    """
    models = as_float(W)
    A, targets = _batch(models, X, y, idx)
    loss = np.square(_outputs(models, A, scale, bias) - targets).mean(axis=-1) / 2
    return np.asarray(loss, models.dtype).reshape(models.shape[:-1])


def least_squares_hessian_product(
    W: npt.ArrayLike,
    V: npt.ArrayLike,
    X: npt.ArrayLike,
    idx: npt.ArrayLike | None = None,
    *,
    scale: float = 1.0,
    bias: bool = True,
) -> Array:
    """Hessian of half the mean squared residual of each worker's mini-batch, times a vector.

    ``h_i = (1/B) sum_b (V_i.a_b) a_b``, the same for every ``W``.

    Parameters
    ----------
    W, V, X, idx, scale, bias
        As in :func:`logistic_hessian_product`.

    Returns
    -------
    array
        The shape and dtype of ``W``.

    Examples
    --------
    >>> least_squares_hessian_product([0.0, 0.0], [1.0, 1.0], [[3.0]])
    array([12.,  4.])
    """
    models = as_float(W)
    A, _ = _batch(models, X, np.zeros(len(np.asarray(X))), idx)
    return _gradient(models, A, _outputs(np.asarray(V, models.dtype), A, scale, bias), scale, bias)


def linear_predict(w: npt.ArrayLike, X: npt.ArrayLike, *, scale: float = 1.0, bias: bool = True) -> Array:
    """Output of a linear model for every row.

    ``w.a`` with ``a = (scale * X[b], 1)``.

    Parameters
    ----------
    w : (D+1,)
        One model, laid out as in :func:`logistic_gradient`.
    X : (N, D)
        Features of any real type.
    scale, bias
        As in :func:`logistic_gradient`.

    Returns
    -------
    array (N,)
        Of the dtype of ``w``.

    Examples
    --------
    >>> linear_predict([2.0, 0.5], [[1.0], [-1.0]])
    array([ 2.5, -1.5])
    """
    model = as_float(w)
    return _outputs(model, np.asarray(X).astype(model.dtype, copy=False), scale, bias)


def _batch(models: Array, X: npt.ArrayLike, y: npt.ArrayLike, idx: npt.ArrayLike | None) -> tuple[Array, Array]:
    """Gather first and convert after: the batch is far smaller than the data."""
    features, targets = np.asarray(X), np.asarray(y)
    if idx is not None:
        rows = np.asarray(idx) if models.ndim > 1 else np.asarray(idx).reshape(-1)
        features, targets = features[rows], targets[rows]
    return features.astype(models.dtype, copy=False), targets.astype(models.dtype, copy=False)


def _outputs(models: Array, A: Array, scale: float, bias: bool) -> Array:
    """``W_i.a_b`` (..., B). The scale multiplies the few outputs instead of the many features."""
    z: Array = (A @ models[..., : A.shape[-1], None])[..., 0]
    z *= scale
    if bias:
        z += models[..., -1:]
    return z


def _margins(models: Array, A: Array, labels: Array, scale: float, bias: bool) -> Array:
    """``s_b W_i.a_b`` with ``s_b = 2 y_b - 1``."""
    z = _outputs(models, A, scale, bias)
    z *= 2 * labels - 1
    return z


def _gradient(models: Array, A: Array, residuals: Array, scale: float, bias: bool) -> Array:
    """``(1/B) sum_b r_b a_b``"""
    residuals = residuals / residuals.shape[-1]
    g = np.empty(models.shape, models.dtype)
    g[..., : A.shape[-1]] = (residuals[..., None, :] @ A)[..., 0, :]
    g[..., : A.shape[-1]] *= scale
    if bias:
        g[..., -1] = residuals.sum(axis=-1)
    return g
