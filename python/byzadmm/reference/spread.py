"""Twins of ``mda``, ``smea`` and ``caf``: rows with the least spread, by enumeration and in the space of the rows."""

from __future__ import annotations

from itertools import combinations
from typing import Any

import numpy as np
import numpy.typing as npt

from ._arrays import Array, as_rows, narrow
from .coordinatewise import mean_of
from .selection import pairwise_distances

__all__ = ["caf", "mda", "smea"]


def mda(X: npt.ArrayLike, *, f: int) -> Array:
    """Mean of the ``n - f`` rows whose largest pairwise distance is least.

    All sets of ``n - f`` rows are tried, in lexicographic order; the first of the best is taken.

    Parameters
    ----------
    X : (n, d)
    f : int

    Returns
    -------
    array (d,)

    Examples
    --------
    >>> mda([[0.0], [1.0], [3.0], [4.0], [5.0]], f=2).tolist()
    [4.0]

    References
    ----------
    El Mhamdi, Guerraoui, Guirguis, Hoang, Rouault: Genuinely distributed Byzantine machine learning (2020).
    """
    rows = as_rows(X)
    D = pairwise_distances(rows)
    sets = combinations(range(len(rows)), len(rows) - f)
    best = min(sets, key=lambda rows: D[np.ix_(rows, rows)].max())
    return _mean(rows[list(best)])


def smea(X: npt.ArrayLike, *, f: int) -> Array:
    """Mean of the ``n - f`` rows whose covariance has the least largest eigenvalue.

    All sets of ``n - f`` rows are tried, in lexicographic order; the first of those equal to ten digits is taken.

    Parameters
    ----------
    X : (n, d)
    f : int

    Returns
    -------
    array (d,)

    Examples
    --------
    >>> smea([[0.0], [1.0], [3.0], [4.0], [5.0]], f=2).tolist()
    [4.0]

    References
    ----------
    Allouah, Guerraoui, Gupta, Pinot, Stephan: On the privacy-robustness-utility trilemma in distributed learning
    (2023).
    """
    rows = as_rows(X)
    D2 = pairwise_distances(rows) ** 2
    sets = list(combinations(range(len(rows)), len(rows) - f))
    values = np.array([_top_of_scatter(D2[np.ix_(chosen, chosen)]) for chosen in sets])
    return _mean(rows[list(sets[int(np.argmax(values <= values.min() * (1 + 1e-10)))])])


def caf(X: npt.ArrayLike, *, f: int) -> Array:
    """Weighted mean after outliers along the top eigenvector of the covariance have lost weight, round by round.

    ``c_i <- c_i (1 - tau_i / max tau)`` with ``tau_i = <v, x_i - mu>^2``, while ``sum c_i > n - 2f``; the weighted mean
    ``mu`` of the round with the least largest eigenvalue.

    Parameters
    ----------
    X : (n, d)
    f : int

    Returns
    -------
    array (d,)

    Examples
    --------
    >>> caf([[1.0], [1.0], [1.0], [9.0]], f=1).tolist()
    [1.0]

    References
    ----------
    Allouah, Guerraoui, Stephan: Towards trustworthy federated learning with untrusted participants (2025).
    """
    rows = as_rows(X)
    n = len(rows)
    wide = rows.astype(np.longdouble)
    c = np.ones(n)
    best, weights = np.longdouble(np.inf), c
    while True:
        live = np.flatnonzero(c > 0)
        apart = wide[live] - c[live] @ wide[live] / c.sum()
        unit = np.abs(apart).max()
        if unit == 0:
            weights = c.copy()
            break
        apart = (apart / unit).astype(np.float64)
        _, lengths, directions = np.linalg.svd(np.sqrt(c[live])[:, None] * apart, full_matrices=False)
        sigma = (lengths[0] * unit) ** 2 / c.sum()
        if sigma < best:
            best, weights = sigma, c.copy()
        tau = (apart @ directions[0]) ** 2
        c[live] *= 1 - tau / tau.max()
        c[c < 2.0 ** (-20 if rows.dtype == np.float32 else -40)] = 0
        if not c.sum() > n - 2 * f:
            break
    kept = weights > 0
    return narrow(mean_of(rows[kept], weights[kept]), rows.dtype)


def _mean(rows: Array) -> Array:
    return narrow(mean_of(rows, np.ones(len(rows))), rows.dtype)


def _top_of_scatter(D2: Array) -> Any:
    """Largest eigenvalue of the scatter matrix of rows with these squared distances."""
    unit = D2.max()
    if unit == 0:
        return unit
    scaled = D2 / unit
    centered = scaled - scaled.mean(axis=0) - scaled.mean(axis=1)[:, None] + scaled.mean()
    return unit * np.linalg.eigvalsh((-0.5 * centered).astype(np.float64))[-1]
