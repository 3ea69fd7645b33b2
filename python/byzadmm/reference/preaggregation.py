"""Twins of ``nearest_neighbor_mixing``, ``bucketing`` and ``clip``: rows to rows."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from ._arrays import Array, as_rows, narrow
from .coordinatewise import mean_of
from .selection import pairwise_distances

__all__ = ["bucketing", "clip", "nearest_neighbor_mixing"]


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
    return narrow(np.stack([mean_of(group, np.ones(len(group))) for group in groups]), rows.dtype)


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
    wide = rows.astype(np.longdouble)
    norms = np.sqrt((wide**2).sum(axis=1))
    factors = np.ones(len(rows), np.longdouble)
    factors[norms > max_norm] = max_norm / norms[norms > max_norm]
    return narrow(wide * factors[:, None], rows.dtype)
