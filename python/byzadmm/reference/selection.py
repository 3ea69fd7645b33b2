"""Twins of ``krum``, ``multi_krum``, ``medoid`` and ``bulyan``: rows selected by the distances between them."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from ._arrays import Array, as_rows, narrow
from .centered import mean_around
from .coordinatewise import mean_of, median, relative_weights

__all__ = ["bulyan", "krum", "krum_scores", "medoid", "multi_krum", "pairwise_distances"]


def pairwise_distances(X: npt.ArrayLike) -> Array:
    """Distances between all rows.

    ``D_ik = ||X_i - X_k||``, by differences in extended precision where the machine has it.

    Parameters
    ----------
    X : (n, d)

    Returns
    -------
    array (n, n)
        Of numpy.longdouble.

    Examples
    --------
    >>> pairwise_distances([[0.0, 0.0], [3.0, 4.0]]).astype(float).tolist()
    [[0.0, 5.0], [5.0, 0.0]]
    """
    rows = as_rows(X).astype(np.longdouble)
    D = np.zeros((len(rows), len(rows)), np.longdouble)
    for i, row in enumerate(rows):
        D[i] = np.sqrt(((rows - row) ** 2).sum(axis=1))
    return D


def krum_scores(X: npt.ArrayLike, *, neighbors: int, weights: npt.ArrayLike | None = None) -> Array:
    """Krum's score of every row.

    ``score_i = sum of ||X_i - X_k||^2 over the nearest others k``; row k counts as ``w_k`` rows, with mean weight 1.

    Parameters
    ----------
    X : (n, d)
    neighbors : int
        Number of nearest rows in a score, in rows of average weight.
    weights : (n,), optional

    Returns
    -------
    array (n,)

    Examples
    --------
    >>> krum_scores([[0.0], [1.0], [3.0]], neighbors=1).astype(float).tolist()
    [1.0, 1.0, 4.0]

    References
    ----------
    Blanchard, El Mhamdi, Guerraoui, Stainer: Machine learning with adversaries (2017).
    """
    return _scores(pairwise_distances(X) ** 2, neighbors, weights)


def krum(
    X: npt.ArrayLike, *, f: int, neighbors: int | None = None, weights: npt.ArrayLike | None = None
) -> Array:
    """Row with the smallest Krum score.

    ``X_i`` with ``i`` the first minimizer of :func:`krum_scores` with ``n - f - 2`` neighbors.

    Parameters
    ----------
    X : (n, d)
    f : int
    neighbors : int, optional
    weights : (n,), optional

    Returns
    -------
    array (d,)

    Examples
    --------
    >>> krum([[1.0], [1.25], [0.75], [1.5], [50.0]], f=1).tolist()
    [1.0]

    References
    ----------
    Blanchard, El Mhamdi, Guerraoui, Stainer: Machine learning with adversaries (2017).
    """
    return multi_krum(X, f=f, m=1, neighbors=neighbors, weights=weights)


def multi_krum(
    X: npt.ArrayLike,
    *,
    f: int,
    m: int | None = None,
    neighbors: int | None = None,
    weights: npt.ArrayLike | None = None,
) -> Array:
    """Weighted mean of the ``m`` rows with the smallest Krum scores.

    ``(1/m) sum_{i best} X_i``, ``m = n - f`` by default.

    Parameters
    ----------
    X : (n, d)
    f : int
    m, neighbors : int, optional
    weights : (n,), optional

    Returns
    -------
    array (d,)

    Examples
    --------
    >>> multi_krum([[1.0], [1.5], [0.5], [50.0], [1.0]], f=1).tolist()
    [1.0]

    References
    ----------
    Blanchard, El Mhamdi, Guerraoui, Stainer: Machine learning with adversaries (2017).
    """
    rows = as_rows(X)
    n = len(rows)
    scores = krum_scores(rows, neighbors=n - f - 2 if neighbors is None else neighbors, weights=weights)
    best = np.argsort(scores, kind="stable")[: n - f if m is None else m]
    return narrow(mean_of(rows[best], relative_weights(weights, n)[best]), rows.dtype)


def medoid(X: npt.ArrayLike, *, weights: npt.ArrayLike | None = None) -> Array:
    """Row with the smallest weighted sum of distances to the others.

    ``X_i`` with the smallest ``sum_k w_k ||X_i - X_k||``. Two rows are compared by the sum of the differences, in which
    the common terms of far rows cancel::

        ||X_i - X_k|| - ||X_j - X_k|| = <X_i - X_j, (X_i - X_k) + (X_j - X_k)> / (||X_i - X_k|| + ||X_j - X_k||)

    Parameters
    ----------
    X : (n, d)
    weights : (n,), optional

    Returns
    -------
    array (d,)

    Examples
    --------
    >>> medoid([[0.0], [1.0], [50.0]]).tolist()
    [1.0]
    """
    rows = as_rows(X)
    w = relative_weights(weights, len(rows))
    D, wide = pairwise_distances(rows), rows.astype(np.longdouble)
    best, *others = np.flatnonzero(w > 0)
    for i in others:
        if D[i, best] == 0:
            continue
        product = (wide[i] - wide + (wide[best] - wide)) @ (wide[i] - wide[best])
        if w @ (product / (D[i] + D[best])) < 0:
            best = i
    return np.array(rows[best])


def bulyan(X: npt.ArrayLike, *, f: int) -> Array:
    """Mean around the median, in every column, of rows that Krum selects one by one.

    ``n - 2f`` rows are selected; of these, the ``n - 4f`` values closest to the median are averaged in every column.

    Parameters
    ----------
    X : (n, d)
    f : int

    Returns
    -------
    array (d,)

    Examples
    --------
    >>> bulyan([[1.0], [2.0], [3.0], [2.0], [2.0], [2.0], [1e9]], f=1).tolist()
    [2.0]

    References
    ----------
    El Mhamdi, Guerraoui, Rouault: The hidden vulnerability of distributed learning in Byzantium (2018).
    """
    rows = as_rows(X)
    n = len(rows)
    squared = pairwise_distances(rows) ** 2
    left = list(range(n))
    chosen: list[int] = []
    while len(chosen) < n - 2 * f:
        scores = _scores(squared[np.ix_(left, left)], max(1, len(left) - f - 2), None)
        chosen.append(left.pop(int(np.argmin(scores))))
    kept = rows[sorted(chosen)]
    return mean_around(kept, median(kept), n - 4 * f)


def _scores(squared: Array, neighbors: int, weights: npt.ArrayLike | None) -> Array:
    """Krum's scores from the squared distances."""
    n = len(squared)
    others = squared.copy()
    np.fill_diagonal(others, np.inf)
    if weights is None:
        return np.asarray(np.sort(others, axis=1)[:, : min(neighbors, n - 1)].sum(axis=1))
    w = relative_weights(weights, n)
    w = w / w.mean()
    order = np.argsort(others, axis=1, kind="stable")[:, : n - 1]
    upto = np.cumsum(w[order], axis=1)
    left = neighbors - (upto - w[order])
    left[left <= 4 * n * np.finfo(np.float64).eps * neighbors] = 0  # rounding, no share of a row
    share = np.minimum(left, w[order])
    near = np.where(share > 0, np.take_along_axis(others, order, axis=1), 0)
    return np.where(w > 0, (share * near).sum(axis=1), np.inf)
