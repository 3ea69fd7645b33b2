"""Twins of the losses: stochastic gradients of all workers at once."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from ._arrays import Array
from .linear import least_squares_gradient, logistic_gradient
from .philox import philox_integers, philox_normal
from .softmax import softmax_gradient

__all__ = [
    "least_squares_gradients",
    "logistic_gradients",
    "lsvrg_gradients",
    "quadratic_gradients",
    "saga_gradients",
    "softmax_gradients",
]


# First word of every stream, as in attacks.hpp.
_BATCH, _NOISE = 0, 3
_SNAPSHOT = 9  # Purpose::snapshot

#: (models (m, d) or (d,), k) -> stochastic gradients (m, d)
Gradients = Callable[[Array, int], Array]


def softmax_gradients(
    X: Array,
    y: Array,
    parts: Sequence[Array],
    *,
    n_classes: int,
    batch_size: int = 32,
    scale: float = 1.0,
    seed: int = 0,
    poisoned: Sequence[int] = (),
    draw: Callable[[int], Array] | None = None,
) -> Gradients:
    """Mini-batch gradients of softmax regression, one batch per worker drawn with replacement.

    ``g_i = F'(x_i, xi_i^k)`` with ``xi_i^k = part_i[ philox_integers(high=|part_i|, stream=(0, i, k)) ]``.

    Parameters
    ----------
    X, y : (N, D) and (N,)
        Training samples and labels.
    parts : list of m index arrays
        The samples of each worker.
    n_classes, batch_size, scale, seed
        As in ``simulate``.
    poisoned : list of int
        Workers that see label ``K - 1 - y``.
    draw : callable, optional
        ``k -> (m, batch_size)`` row numbers in place of the streams above: other draws, at a batched generator's speed.

    Returns
    -------
    callable
        ``(models, k) -> (m, d)``.

    Examples
    --------
    >>> g = softmax_gradients(np.array([[2.0]]), np.array([1]), [np.array([0])], n_classes=2, batch_size=1)
    >>> g(np.zeros((1, 4)), 1)
    array([[ 1. ,  0.5, -1. , -0.5]])

    References
    ----------
    Lin, Li, Ling: ``F'(x_i, xi_i)`` in ``eqxi-update``.
    """

    def gradient(models: Array, labels: Array, idx: Array) -> Array:
        W = models.reshape(len(models), n_classes, -1)
        return softmax_gradient(W, X, labels, idx, scale=scale).reshape(models.shape)

    return _drawn(gradient, y, n_classes - 1 - y, parts, batch_size, seed, poisoned, draw)


def logistic_gradients(
    X: Array,
    y: Array,
    parts: Sequence[Array],
    *,
    batch_size: int = 32,
    scale: float = 1.0,
    seed: int = 0,
    poisoned: Sequence[int] = (),
    draw: Callable[[int], Array] | None = None,
) -> Gradients:
    """Mini-batch gradients of logistic regression, one batch per worker drawn with replacement.

    ``g_i = F'(x_i, xi_i^k)`` with the draws of :func:`softmax_gradients`.

    Parameters
    ----------
    X, y, parts, batch_size, scale, seed, draw
        As in :func:`softmax_gradients`, labels 0 or 1.
    poisoned : list of int
        Workers that see label ``1 - y``.

    Returns
    -------
    callable
        ``(models, k) -> (m, d)``.

    Examples
    --------
    >>> g = logistic_gradients(np.array([[3.0]]), np.array([1]), [np.array([0])], batch_size=1)
    >>> g(np.zeros((1, 2)), 1)
    array([[-1.5, -0.5]])
    """

    def gradient(models: Array, labels: Array, idx: Array) -> Array:
        return logistic_gradient(models, X, labels, idx, scale=scale)

    return _drawn(gradient, y, 1 - y, parts, batch_size, seed, poisoned, draw)


def least_squares_gradients(
    X: Array,
    y: Array,
    parts: Sequence[Array],
    *,
    batch_size: int = 32,
    scale: float = 1.0,
    seed: int = 0,
    draw: Callable[[int], Array] | None = None,
) -> Gradients:
    """Mini-batch gradients of linear regression, one batch per worker drawn with replacement.

    ``g_i = F'(x_i, xi_i^k)`` with the draws of :func:`softmax_gradients`.

    Parameters
    ----------
    X, y, parts, batch_size, scale, seed, draw
        As in :func:`softmax_gradients`, real targets.

    Returns
    -------
    callable
        ``(models, k) -> (m, d)``.

    Examples
    --------
    >>> g = least_squares_gradients(np.array([[3.0]]), np.array([2.5]), [np.array([0])], batch_size=1)
    >>> g(np.array([[1.0, 0.0]]), 1)
    array([[1.5, 0.5]])
    """

    def gradient(models: Array, targets: Array, idx: Array) -> Array:
        return least_squares_gradient(models, X, targets, idx, scale=scale)

    return _drawn(gradient, y, y, parts, batch_size, seed, (), draw)


def _drawn(
    gradient: Callable[[Array, Array, Array], Array],
    y: Array,
    flipped: Array,
    parts: Sequence[Array],
    batch_size: int,
    seed: int,
    poisoned: Sequence[int],
    draw: Callable[[int], Array] | None,
) -> Gradients:
    """``gradient(models (n, d), targets (N,), rows (n, B))`` of every worker on its batch."""
    m = len(parts)
    forgers = np.array(sorted(poisoned), np.int64)
    honest = np.setdiff1d(np.arange(m), forgers)

    def streams(k: int) -> Array:
        rows = [
            part[philox_integers(batch_size, high=len(part), seed=seed, stream=(_BATCH, worker, k))]
            for worker, part in enumerate(parts)
        ]
        return np.stack(rows)

    def gradients(models: Array, k: int) -> Array:
        W = np.broadcast_to(models, (m, models.shape[-1]))
        idx = streams(k) if draw is None else draw(k)
        if not len(forgers):
            return gradient(W, y, idx)
        g = np.empty_like(W)
        for group, targets in ((honest, y), (forgers, flipped)):
            g[group] = gradient(W[group], targets, idx[group])
        return g

    return gradients


def saga_gradients(
    X: Array,
    y: Array,
    parts: Sequence[Array],
    *,
    n_classes: int,
    batch_size: int = 32,
    scale: float = 1.0,
    seed: int = 0,
    poisoned: Sequence[int] = (),
) -> Gradients:
    """Gradients of softmax regression with their variance reduced by a table of old ones, whole gradients per sample.

    ``v_i = mean_b ( F'(x, xi_b) - T_i[xi_b] ) + mean_j T_i[j]``, then ``T_i[xi_b] <- F'(x, xi_b)``. A sample drawn
    twice counts twice in the first mean, against the same old entry. The table begins with the gradients at the first
    ``x``.

    Parameters
    ----------
    X, y, parts, n_classes, batch_size, scale, seed, poisoned
        As in :func:`softmax_gradients`, and the same draws.

    Returns
    -------
    callable
        ``(model (d,), k) -> (m, d)``; it keeps a table, so calls must be made in the order of ``k``.

    Examples
    --------
    >>> g = saga_gradients(np.array([[2.0]]), np.array([1]), [np.array([0])], n_classes=2, batch_size=1)
    >>> g(np.zeros(4), 1)
    array([[ 1. ,  0.5, -1. , -0.5]])

    References
    ----------
    Wu, Ling, Chen, Giannakis, "Federated variance-reduced stochastic gradient descent with robustness to Byzantine
    attacks", 2020, Algorithm 1.
    """
    tables: list[Array] = []

    def each(model: Array, worker: int, samples: Array) -> Array:
        """One gradient per sample, (len(samples), d)."""
        labels = n_classes - 1 - y if worker in poisoned else y
        W = np.broadcast_to(model.reshape(n_classes, -1), (len(samples), n_classes, model.size // n_classes))
        return softmax_gradient(W, X, labels, samples[:, None], scale=scale).reshape(len(samples), -1)

    def gradients(models: Array, k: int) -> Array:
        if not tables:
            tables.extend(each(models, worker, part) for worker, part in enumerate(parts))
        out = []
        for worker, (part, table) in enumerate(zip(parts, tables, strict=True)):
            drawn = philox_integers(batch_size, high=len(part), seed=seed, stream=(_BATCH, worker, k))
            new = each(models, worker, part[drawn])
            out.append((new - table[drawn]).mean(axis=0) + table.mean(axis=0))
            table[drawn] = new
        return np.stack(out)

    return gradients


def lsvrg_gradients(
    X: Array,
    y: Array,
    parts: Sequence[Array],
    *,
    n_classes: int,
    batch_size: int = 32,
    scale: float = 1.0,
    seed: int = 0,
    poisoned: Sequence[int] = (),
) -> Gradients:
    """Gradients of softmax regression with their variance reduced by the full gradient at a snapshot of the model.

    ``v_i = F'(x, xi) - F'(w_i, xi) + full_i(w_i)``, then ``w_i <- x`` with probability ``batch_size / len(part)``. The
    first snapshot is the first ``x``.

    Parameters
    ----------
    X, y, parts, n_classes, batch_size, scale, seed, poisoned
        As in :func:`softmax_gradients`, and the same draws; snapshots by the stream (9, worker, k).

    Returns
    -------
    callable
        ``(model (d,), k) -> (m, d)``; it keeps snapshots, so calls must be made in the order of ``k``.

    Examples
    --------
    >>> g = lsvrg_gradients(np.array([[2.0]]), np.array([1]), [np.array([0])], n_classes=2, batch_size=1)
    >>> g(np.zeros(4), 1)
    array([[ 1. ,  0.5, -1. , -0.5]])

    References
    ----------
    Kovalev, Horvath, Richtarik, "Don't jump through hoops and remove those loops", ALT 2020.
    """
    snapshots: dict[int, Array] = {}

    def mean(model: Array, worker: int, samples: Array) -> Array:
        labels = n_classes - 1 - y if worker in poisoned else y
        g = softmax_gradient(model.reshape(1, n_classes, -1), X, labels, samples[None], scale=scale)
        return g.reshape(-1)

    def gradients(models: Array, k: int) -> Array:
        out = []
        for worker, part in enumerate(parts):
            w = snapshots.setdefault(worker, models.copy())
            drawn = part[philox_integers(batch_size, high=len(part), seed=seed, stream=(_BATCH, worker, k))]
            out.append(mean(models, worker, drawn) - mean(w, worker, drawn) + mean(w, worker, part))
            if philox_integers(1, high=len(part), seed=seed, stream=(_SNAPSHOT, worker, k))[0] < batch_size:
                snapshots[worker] = models.copy()
        return np.stack(out)

    return gradients


def quadratic_gradients(a: Array, b: Array, *, noise: float = 0.0, seed: int = 0) -> Gradients:
    """Gradients of separable quadratics.

    ``g_i = a_i (x - b_i) + noise * z`` with ``z = philox_normal(stream=(3, i, k))``.

    Parameters
    ----------
    a, b : (m, d)
        Curvatures and centers.
    noise : float
        Deviation of the noise in every element.
    seed : int
        Of the noise.

    Returns
    -------
    callable
        ``(models, k) -> (m, d)``.

    Examples
    --------
    >>> quadratic_gradients(np.array([[0.5]]), np.array([[1.0]]))(np.zeros((1, 1)), 1)
    array([[-0.5]])

    References
    ----------
    Lin, Li, Ling: Example ``ex`` has ``F_i = (x-1)^2 / 4``.
    """

    def gradients(models: Array, k: int) -> Array:
        g: Array = a * (models - b)
        if noise:
            for worker, row in enumerate(g):
                row += noise * philox_normal(len(row), seed=seed, stream=(_NOISE, worker, k), dtype=g.dtype)
        return g

    return gradients
