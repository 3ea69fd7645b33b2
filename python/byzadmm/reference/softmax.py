"""Twin of ``softmax.hpp``: mini-batch loss, gradient and Hessian of softmax regression, all workers at once."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from ._arrays import Array, as_float

__all__ = ["softmax_accuracy", "softmax_gradient", "softmax_hessian_product", "softmax_loss", "softmax_predict"]


def softmax_gradient(
    W: npt.ArrayLike,
    X: npt.ArrayLike,
    y: npt.ArrayLike,
    idx: npt.ArrayLike | None = None,
    *,
    scale: float = 1.0,
    bias: bool = True,
) -> Array:
    """Gradient of the mean cross-entropy of each worker's mini-batch.

    ``G_i = (1/B) sum_b (softmax(W_i a_b) - e_{y_b}) a_b^T`` with ``a_b = (scale * X[idx[i, b]], 1)``.

    Parameters
    ----------
    W : (m, K, D+1) or (K, D+1)
        Models, the bias as last column; ``D`` columns when ``bias`` is False. Two dimensions mean one worker.
    X : (N, D)
        Features of any real type.
    y : (N,)
        Labels in ``[0, K)``.
    idx : (m, B), optional
        Rows of ``X`` in each worker's batch; by default every worker uses all rows.
    scale : float
        Multiplies every feature, but not the bias feature, which is 1.
    bias : bool
        Whether the models have a bias column.

    Returns
    -------
    array
        The shape and dtype of ``W``.

    Examples
    --------
    >>> softmax_gradient([[0.0, 0.0], [0.0, 0.0]], [[2.0]], [1])
    array([[ 1. ,  0.5],
           [-1. , -0.5]])

    References
    ----------
    Lin, Li, Ling: the stochastic gradient ``F'(x_i, xi_i)`` of ``eq4``.
    """
    models = as_float(W)
    A, labels = _batch(models, X, y, idx)
    P = _shifted_logits(models, A, scale, bias)
    np.exp(P, out=P)
    P /= P.sum(axis=-1, keepdims=True)
    P -= labels[..., None] == np.arange(models.shape[-2])
    return _outer_products(models, A, P, scale, bias)


def softmax_loss(
    W: npt.ArrayLike,
    X: npt.ArrayLike,
    y: npt.ArrayLike,
    idx: npt.ArrayLike | None = None,
    *,
    scale: float = 1.0,
    bias: bool = True,
) -> Array:
    """Mean cross-entropy of each worker's mini-batch.

    ``F_i = (1/B) sum_b ( log sum_c exp(l_bc) - l_{b, y_b} )`` with logits ``l_b = W_i a_b``.

    Parameters
    ----------
    W, X, y, idx, scale, bias
        As in :func:`softmax_gradient`.

    Returns
    -------
    array (m,)
        Of the dtype of ``W``; zero-dimensional when ``W`` has two dimensions.

    Examples
    --------
    >>> round(float(softmax_loss([[0.0, 0.0], [0.0, 0.0]], [[2.0]], [1])), 6)
    0.693147

    References
    ----------
    Lin, Li, Ling: ``F(x_i, xi_i)`` of ``eq4``.
    """
    models = as_float(W)
    A, labels = _batch(models, X, y, idx)
    L = _shifted_logits(models, A, scale, bias)
    own = np.take_along_axis(L, np.broadcast_to(labels, L.shape[:-1])[..., None], axis=-1)[..., 0]
    loss = (np.log(np.exp(L).sum(axis=-1)) - own).mean(axis=-1)
    return np.asarray(loss, models.dtype).reshape(models.shape[:-2])


def softmax_hessian_product(
    W: npt.ArrayLike,
    V: npt.ArrayLike,
    X: npt.ArrayLike,
    idx: npt.ArrayLike | None = None,
    *,
    scale: float = 1.0,
    bias: bool = True,
) -> Array:
    """Hessian of the mean cross-entropy of each worker's mini-batch, times a vector.

    ``H_i = (1/B) sum_b p_b * (u_b - <p_b, u_b>) a_b^T``, the first product element by element, with
    ``p_b = softmax(W_i a_b)`` and ``u_b = V_i a_b``.

    Parameters
    ----------
    W, X, idx, scale, bias
        As in :func:`softmax_gradient`.
    V : array of the shape of ``W``
        The vectors.

    Returns
    -------
    array
        The shape and dtype of ``W``.

    Examples
    --------
    >>> softmax_hessian_product([[0.0, 0.0], [0.0, 0.0]], [[1.0, 1.0], [0.0, 0.0]], [[3.0]])
    array([[ 3.,  1.],
           [-3., -1.]])
    """
    models = as_float(W)
    A, _ = _batch(models, X, np.zeros(len(np.asarray(X))), idx)
    P = _shifted_logits(models, A, scale, bias)
    np.exp(P, out=P)
    P /= P.sum(axis=-1, keepdims=True)
    u = _logits(np.asarray(V, models.dtype), A, scale, bias)
    return _outer_products(models, A, P * (u - (P * u).sum(axis=-1, keepdims=True)), scale, bias)


def softmax_predict(w: npt.ArrayLike, X: npt.ArrayLike, *, scale: float = 1.0, bias: bool = True) -> Array:
    """Most likely class of every row.

    ``argmax_c (w a)_c`` with ``a = (scale * X[b], 1)``; ties go to the lowest class.

    Parameters
    ----------
    w : (K, D+1)
        One model, laid out as in :func:`softmax_gradient`.
    X : (N, D)
        Features of any real type.
    scale, bias
        As in :func:`softmax_gradient`.

    Returns
    -------
    array (N,)
        Classes as int64.

    Examples
    --------
    >>> softmax_predict([[1.0, 0.0], [-1.0, 0.0]], [[3.0], [-3.0], [0.0]])
    array([0, 1, 0])

    References
    ----------
    Lin, Li, Ling: section 5, top-1 accuracy of the master's model.
    """
    model = as_float(w)
    logits = _logits(model, np.asarray(X).astype(model.dtype, copy=False), scale, bias)
    return np.asarray(logits.argmax(axis=-1), np.int64)


def softmax_accuracy(
    w: npt.ArrayLike, X: npt.ArrayLike, y: npt.ArrayLike, *, scale: float = 1.0, bias: bool = True
) -> float:
    """Share of the rows whose most likely class is their label.

    ``(1/N) #{ b : argmax_c (w a_b)_c = y_b }``.

    Parameters
    ----------
    w, X, scale, bias
        As in :func:`softmax_predict`.
    y : (N,)
        Labels in ``[0, K)``.

    Returns
    -------
    float
        In ``[0, 1]``.

    Examples
    --------
    >>> softmax_accuracy([[1.0, 0.0], [-1.0, 0.0]], [[3.0], [-3.0], [0.0], [1.0]], [0, 1, 0, 1])
    0.75

    References
    ----------
    Lin, Li, Ling: section 5, top-1 accuracy of the master's model.
    """
    return float(np.mean(softmax_predict(w, X, scale=scale, bias=bias) == np.asarray(y)))


def _batch(models: Array, X: npt.ArrayLike, y: npt.ArrayLike, idx: npt.ArrayLike | None) -> tuple[Array, Array]:
    """Gather first and convert after: the batch is far smaller than the data."""
    features, labels = np.asarray(X), np.asarray(y).astype(np.int64, copy=False)
    if idx is not None:
        rows = np.atleast_2d(np.asarray(idx))
        features, labels = features[rows], labels[rows]
    return features.astype(models.dtype, copy=False), labels


def _logits(models: Array, A: Array, scale: float, bias: bool) -> Array:
    """The scale multiplies the few logits instead of the many features."""
    logits: Array = A @ np.swapaxes(models[..., : A.shape[-1]], -1, -2)
    logits *= scale
    if bias:
        logits += models[..., None, :, -1]
    return logits


def _shifted_logits(models: Array, A: Array, scale: float, bias: bool) -> Array:
    """Logits less their maximum, so that no exponential overflows."""
    logits = _logits(models, A, scale, bias)
    logits -= logits.max(axis=-1, keepdims=True)
    return logits


def _outer_products(models: Array, A: Array, residuals: Array, scale: float, bias: bool) -> Array:
    """``(1/B) sum_b r_b a_b^T``, in the shape of the models."""
    residuals = residuals / residuals.dtype.type(residuals.shape[-2])
    G = np.empty((*residuals.shape[:-2], *models.shape[-2:]), models.dtype)
    G[..., : A.shape[-1]] = np.swapaxes(residuals, -1, -2) @ A
    G[..., : A.shape[-1]] *= scale
    if bias:
        G[..., -1] = residuals.sum(axis=-2)
    return G.reshape(models.shape)
