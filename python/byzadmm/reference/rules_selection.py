"""Twin of ``krum.hpp``, ``medoid.hpp``, ``closest.hpp``, ``clipping.hpp``, ``mixing.hpp`` and ``weighted.hpp``."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from ._arrays import Array, as_rows, narrow
from .rules import _mean, _weights, median, trimmed_mean

__all__ = [
    "bucketing",
    "bulyan",
    "centered_clip",
    "clip",
    "krum",
    "krum_scores",
    "meamed",
    "medoid",
    "multi_krum",
    "nearest_neighbor_mixing",
    "pairwise_distances",
    "phocas",
    "weighted_median",
    "weighted_trimmed_mean",
]


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
        How many rows of average weight count.
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
    """Row with the least Krum score.

    ``X_i`` with ``i`` the first minimiser of :func:`krum_scores` with ``n - f - 2`` neighbours.

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
    """Weighted mean of the ``m`` rows with the least Krum scores.

    ``(1/m) sum_{i best} X_i``, ``m = n - f`` when left out.

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
    return narrow(_mean(rows[best], _weights(weights, n)[best]), rows.dtype)


def medoid(X: npt.ArrayLike, *, weights: npt.ArrayLike | None = None) -> Array:
    """Row with the least weighted sum of distances to the others.

    ``X_i`` with the least ``sum_k w_k ||X_i - X_k||``. Two rows are compared by the sum of the differences, in which
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
    w = _weights(weights, len(rows))
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
    """Rows chosen one by one by Krum, then the mean of the middle of every column.

    ``n - 2f`` choices; ``n - 4f`` values closest to the median.

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
    return _closest(kept, median(kept), n - 4 * f)


def meamed(X: npt.ArrayLike, *, f: int) -> Array:
    """Mean of the ``n - f`` values closest to the median in every column.

    Parameters
    ----------
    X : (n, d)
    f : int

    Returns
    -------
    array (d,)

    Examples
    --------
    >>> meamed([[1.0], [2.0], [3.0], [90.0]], f=1).tolist()
    [2.0]

    References
    ----------
    Xie, Koyejo, Gupta: Generalized Byzantine-tolerant SGD (2018).
    """
    rows = as_rows(X)
    return _closest(rows, median(rows), len(rows) - f)


def phocas(X: npt.ArrayLike, *, f: int) -> Array:
    """Mean of the ``n - f`` values closest to the trimmed mean in every column.

    Parameters
    ----------
    X : (n, d)
    f : int

    Returns
    -------
    array (d,)

    Examples
    --------
    >>> phocas([[1.0], [2.0], [3.0], [90.0]], f=1).tolist()
    [2.0]

    References
    ----------
    Xie, Koyejo, Gupta: Phocas: dimensional Byzantine-resilient stochastic gradient descent (2018).
    """
    rows = as_rows(X)
    return _closest(rows, trimmed_mean(rows, f=f), len(rows) - f)


def centered_clip(X: npt.ArrayLike, *, tau: float, center: npt.ArrayLike | None = None, n_iter: int = 1) -> Array:
    """Center moved by the mean of clipped differences.

    ``v <- v + (1/n) sum_i (X_i - v) min(1, tau / ||X_i - v||)``, from the median when ``center`` is left out.

    Parameters
    ----------
    X : (n, d)
    tau : float
    center : (d,), optional
    n_iter : int

    Returns
    -------
    array (d,)

    Examples
    --------
    >>> centered_clip([[0.0], [1.0], [2.0], [1e9]], tau=2.0, center=[1.0]).tolist()
    [1.5]

    References
    ----------
    Karimireddy, He, Jaggi: Learning from history for Byzantine robust optimization (2021).
    """
    rows = as_rows(X)
    wide = rows.astype(np.longdouble)
    v = np.asarray(median(rows) if center is None else center, np.longdouble)
    for _ in range(n_iter):
        apart = wide - v
        norms = np.sqrt((apart**2).sum(axis=1))
        factors = np.ones(len(rows), np.longdouble)
        factors[norms > tau] = tau / norms[norms > tau]
        v = v + (factors[:, None] * apart).mean(axis=0)
    return narrow(v, rows.dtype)


def nearest_neighbor_mixing(X: npt.ArrayLike, *, f: int) -> Array:
    """Every row replaced by the mean of the ``n - f`` rows nearest to it, itself included.

    Parameters
    ----------
    X : (n, d)
    f : int

    Returns
    -------
    array (n, d)

    Examples
    --------
    >>> nearest_neighbor_mixing([[0.0], [2.0], [50.0]], f=1).tolist()
    [[1.0], [1.0], [26.0]]

    References
    ----------
    Allouah, Farhadkhani, Guerraoui, Gupta, Pinot, Stephan: Fixing by mixing (2023).
    """
    rows = as_rows(X)
    n = len(rows)
    D = pairwise_distances(rows)
    np.fill_diagonal(D, -1)
    mixed = [_mean(rows[np.argsort(D[i], kind="stable")[: n - f]], np.ones(n - f)) for i in range(n)]
    return narrow(np.stack(mixed), rows.dtype)


def bucketing(X: npt.ArrayLike, *, s: int, rng: int | np.random.Generator) -> Array:
    """Means of random groups of ``s`` rows.

    Parameters
    ----------
    X : (n, d)
    s : int
    rng : int or numpy.random.Generator

    Returns
    -------
    array (ceil(n / s), d)

    Examples
    --------
    >>> bucketing([[1.0], [1.0], [1.0]], s=2, rng=0).tolist()
    [[1.0], [1.0]]

    References
    ----------
    Karimireddy, He, Jaggi: Byzantine-robust learning on heterogeneous datasets via bucketing (2022).
    """
    rows = as_rows(X)
    order = np.random.default_rng(rng).permutation(len(rows))
    groups = [rows[order[lo : lo + s]] for lo in range(0, len(rows), s)]
    return narrow(np.stack([_mean(group, np.ones(len(group))) for group in groups]), rows.dtype)


def clip(X: npt.ArrayLike, *, max_norm: float) -> Array:
    """Rows shortened to a length of at most ``max_norm``.

    Parameters
    ----------
    X : (n, d)
    max_norm : float

    Returns
    -------
    array (n, d)

    Examples
    --------
    >>> clip([[5.0], [0.5]], max_norm=1).tolist()
    [[1.0], [0.5]]
    """
    rows = as_rows(X)
    wide = rows.astype(np.longdouble)
    norms = np.sqrt((wide**2).sum(axis=1))
    factors = np.ones(len(rows), np.longdouble)
    factors[norms > max_norm] = max_norm / norms[norms > max_norm]
    return narrow(wide * factors[:, None], rows.dtype)


def weighted_median(X: npt.ArrayLike, *, weights: npt.ArrayLike, even: str = "mid") -> Array:
    """Value with half of the weight on either side, in every column.

    Parameters
    ----------
    X : (n, d)
    weights : (n,)
    even : {"mid", "low", "high"}
        What to give when the half falls between two values.

    Returns
    -------
    array (d,)

    Examples
    --------
    >>> weighted_median([[1.0], [2.0], [9.0]], weights=[1, 1, 3]).tolist()
    [9.0]
    """
    rows = as_rows(X)
    w = _weights(weights, len(rows))
    rows, w = rows[w > 0], w[w > 0]
    result = np.empty(rows.shape[1], rows.dtype)
    for j, column in enumerate(rows.T):
        order = np.argsort(column, kind="stable")
        upto = np.cumsum(w[order])
        half = upto[-1] / 2
        i = int(np.argmax(upto >= half * (1 - 1e-12)))
        tied = i + 1 < len(order) and upto[i] <= half * (1 + 1e-12)
        pair = column[order[[i, i + 1 if tied else i]]]
        result[j] = median(pair[:, None], even=even)[0]
    return result


def weighted_trimmed_mean(X: npt.ArrayLike, *, f: int, weights: npt.ArrayLike) -> Array:
    """Weighted mean of every column without the share ``f/n`` of the weight at either end.

    Parameters
    ----------
    X : (n, d)
    f : int
    weights : (n,)

    Returns
    -------
    array (d,)

    Examples
    --------
    >>> weighted_trimmed_mean([[0.0], [1.0], [99.0]], f=1, weights=[2, 2, 2]).tolist()
    [1.0]
    """
    rows = as_rows(X)
    n = len(rows)
    w = _weights(weights, n)
    cut = w.sum() * f / n
    result = np.empty(rows.shape[1])
    for j, column in enumerate(rows.T.astype(np.float64)):
        order = np.argsort(column, kind="stable")
        upto = np.cumsum(w[order])
        share = np.minimum(upto, upto[-1] - cut) - np.maximum(upto - w[order], cut)
        kept = share > 1e-12 * upto[-1]
        result[j] = _mean(column[order][kept][:, None], share[kept])[0]
    return narrow(result, rows.dtype)


def _closest(rows: Array, center: Array, k: int) -> Array:
    """Mean of the ``k`` values closest to ``center`` in every column; the first among equals."""
    apart = np.abs(rows.astype(np.longdouble) - center)
    nearest = np.argsort(apart, axis=0, kind="stable")[:k]
    return narrow(_mean(np.take_along_axis(rows, nearest, axis=0), np.ones(k)), rows.dtype)


def _scores(squared: Array, neighbors: int, weights: npt.ArrayLike | None) -> Array:
    """Krum's scores from the squared distances."""
    n = len(squared)
    others = squared.copy()
    np.fill_diagonal(others, np.inf)
    if weights is None:
        return np.asarray(np.sort(others, axis=1)[:, : min(neighbors, n - 1)].sum(axis=1))
    w = _weights(weights, n)
    w = w / w.mean()
    order = np.argsort(others, axis=1, kind="stable")[:, : n - 1]
    upto = np.cumsum(w[order], axis=1)
    left = neighbors - (upto - w[order])
    left[left <= 4 * n * np.finfo(np.float64).eps * neighbors] = 0  # rounding, no share of a row
    share = np.minimum(left, w[order])
    near = np.where(share > 0, np.take_along_axis(others, order, axis=1), 0)
    return np.where(w > 0, (share * near).sum(axis=1), np.inf)
