"""Twins of ``nearest_neighbor_mixing``, ``bucketing``, ``resampling``, ``clip`` and ``arc``: rows to rows."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from ._arrays import Array, as_rows, narrow
from .coordinatewise import mean_of
from .selection import pairwise_distances

__all__ = ["arc", "bucketing", "clip", "nearest_neighbor_mixing", "resampling"]


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
    mixed = [mean_of(rows[np.argsort(D[i], kind="stable")[: n - f]], np.ones(n - f)) for i in range(n)]
    return narrow(np.stack(mixed), rows.dtype)


def bucketing(
    X: npt.ArrayLike,
    *,
    s: int,
    rng: int | np.random.Generator | None = None,
    permutation: npt.ArrayLike | None = None,
) -> Array:
    """Means of groups of ``s`` rows, in a random order or a given one.

    Parameters
    ----------
    X : (n, d)
    s : int
    rng : int or numpy.random.Generator
    permutation : (n,), optional

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
    drawn = permutation is None
    order = np.random.default_rng(rng).permutation(len(rows)) if drawn else np.asarray(permutation)
    groups = [rows[order[lo : lo + s]] for lo in range(0, len(rows), s)]
    return narrow(np.stack([mean_of(group, np.ones(len(group))) for group in groups]), rows.dtype)


def resampling(X: npt.ArrayLike, *, s: int, rng: int | np.random.Generator) -> Array:
    """``n`` means of ``s`` rows, with each row in ``s`` places of them.

    Parameters
    ----------
    X : (n, d)
    s : int
    rng : int or numpy.random.Generator

    Returns
    -------
    array (n, d)

    Examples
    --------
    >>> sorted(resampling([[1.0], [2.0], [3.0]], s=1, rng=0)[:, 0].tolist())
    [1.0, 2.0, 3.0]

    References
    ----------
    He, Karimireddy, Jaggi: Byzantine-robust learning on heterogeneous datasets via resampling (2020).
    """
    rows = as_rows(X)
    places = np.random.default_rng(rng).permutation(np.repeat(np.arange(len(rows)), s)).reshape(len(rows), s)
    return narrow(np.stack([mean_of(rows[group], np.ones(s)) for group in places]), rows.dtype)


def clip(X: npt.ArrayLike, *, max_norm: float) -> Array:
    """Rows scaled down to a length of at most ``max_norm``.

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
    return _shortened(rows, _norms(rows), np.longdouble(max_norm))


def arc(X: npt.ArrayLike, *, f: int) -> Array:
    """The ``k`` longest rows scaled down to the length of the next one.

    ``k = floor(2 f (n - f) / n)``.

    Parameters
    ----------
    X : (n, d)
    f : int

    Returns
    -------
    array (n, d)

    Examples
    --------
    >>> arc([[3.0, 4.0], [0.3, 0.4], [30.0, 40.0]], f=1).tolist()
    [[3.0, 4.0], [0.3, 0.4], [3.0, 4.0]]

    References
    ----------
    Allouah, Guerraoui, Gupta, Jellouli, Rizk, Stephan: Adaptive gradient clipping for robust federated learning (2025).
    """
    rows = as_rows(X)
    n, norms = len(rows), _norms(rows)
    return _shortened(rows, norms, np.sort(norms)[n - 1 - 2 * f * (n - f) // n])


def _norms(rows: Array) -> Array:
    """Lengths, in extended precision where the machine has it."""
    return np.asarray(np.sqrt((rows.astype(np.longdouble) ** 2).sum(axis=1)))


def _shortened(rows: Array, norms: Array, limit: np.longdouble) -> Array:
    factors = np.ones(len(rows), np.longdouble)
    factors[norms > limit] = limit / norms[norms > limit]
    return narrow(rows.astype(np.longdouble) * factors[:, None], rows.dtype)
