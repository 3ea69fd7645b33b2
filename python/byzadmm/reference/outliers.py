"""Twins of ``cge``, ``nearest_neighbor_average`` and ``dnc``: means of the rows that do not stand out."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from ._arrays import Array, as_rows, narrow
from .coordinatewise import mean_of

__all__ = ["cge", "dnc", "nearest_neighbor_average"]


def cge(X: npt.ArrayLike, *, f: int) -> Array:
    """Mean of the ``n - f`` rows of least length.

    Parameters
    ----------
    X : (n, d)
    f : int

    Returns
    -------
    array (d,)

    Examples
    --------
    >>> cge([[3.0], [-1.0], [4.0], [50.0]], f=1).tolist()
    [2.0]

    References
    ----------
    Gupta, Liu, Vaidya: Byzantine fault-tolerant distributed machine learning with norm-based comparative gradient
    elimination (2021).
    """
    rows = as_rows(X)
    return _mean_of_nearest(rows, np.zeros(rows.shape[1]), len(rows) - f)


def nearest_neighbor_average(X: npt.ArrayLike, *, f: int, pivot: int = 0) -> Array:
    """Mean of the ``n - f`` rows nearest to row ``pivot``, itself included.

    Parameters
    ----------
    X : (n, d)
    f : int
    pivot : int

    Returns
    -------
    array (d,)

    Examples
    --------
    >>> nearest_neighbor_average([[1.0], [2.0], [3.0], [50.0]], f=1, pivot=2).tolist()
    [2.0]

    References
    ----------
    Farhadkhani, Guerraoui, Gupta, Hoang, Pinot, Stephan: Robust collaborative learning with linear gradient overhead
    (2023).
    """
    rows = as_rows(X)
    return _mean_of_nearest(rows, rows[pivot], len(rows) - f)


def _mean_of_nearest(rows: Array, center: Array, count: int) -> Array:
    """Mean of the ``count`` rows nearest to a point; lengths in extended precision where the machine has it."""
    apart = rows.astype(np.longdouble) - center.astype(np.longdouble)
    chosen = np.argsort((apart**2).sum(axis=1), kind="stable")[:count]
    return narrow(mean_of(rows[chosen], np.ones(count)), rows.dtype)


def dnc(
    X: npt.ArrayLike,
    *,
    f: int,
    rng: int | np.random.Generator,
    iterations: int = 1,
    coordinates: int = 10000,
    factor: float = 1.0,
) -> Array:
    """Mean of the rows with small projections on the top right singular vector of the centered rows.

    By the singular value decomposition of the rows less their mean, in each round for some of the columns.

    Parameters
    ----------
    X : (n, d)
    f : int
    rng : int or numpy.random.Generator
    iterations : int
    coordinates : int
    factor : float

    Returns
    -------
    array (d,)

    Examples
    --------
    >>> dnc([[1.0, 0.0], [2.0, 1.0], [3.0, -1.0], [50.0, 50.0]], f=1, rng=0).tolist()
    [2.0, 0.0]

    References
    ----------
    Shejwalkar, Houmansadr: Manipulating the Byzantine (2021).
    """
    rows = as_rows(X)
    n, d = rows.shape
    draws = np.random.default_rng(rng)
    size = n - int(np.floor(factor * f))
    good = np.zeros(n, int)
    for _ in range(iterations if coordinates < d else 1):
        columns = np.sort(draws.choice(d, coordinates, replace=False)) if coordinates < d else np.arange(d)
        some = rows[:, columns].astype(np.float64)
        some = some / max(float(np.abs(some).max()), float(np.finfo(np.float64).tiny))
        some = some - some.mean(axis=0)
        v = np.linalg.svd(some, full_matrices=False)[2][0]
        scores = (some * v).sum(axis=1) ** 2  # a row at a time, so that equal rows have equal scores
        good[np.argsort(scores, kind="stable")[:size]] += 1
    chosen = good == good.max()
    return narrow(mean_of(rows[chosen], np.ones(int(chosen.sum()))), rows.dtype)
