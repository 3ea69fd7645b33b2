"""Twins of ``meamed``, ``phocas`` and ``centered_clip``: rules around a center."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from ._arrays import Array, as_rows, narrow
from .coordinatewise import mean_of, median, trimmed_mean

__all__ = ["centered_clip", "meamed", "phocas"]


def meamed(X: npt.ArrayLike, *, f: int, even: str = "mid") -> Array:
    """Mean of the ``n - f`` values closest to the median in every column.

    Parameters
    ----------
    X : (n, d)
    f : int
    even : {"mid", "low", "high"}
        Which median to measure from, for an even number of rows.

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
    return mean_around(rows, median(rows, even=even), len(rows) - f)


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
    return mean_around(rows, trimmed_mean(rows, f=f), len(rows) - f)


def centered_clip(X: npt.ArrayLike, *, tau: float, center: npt.ArrayLike | None = None, n_iter: int = 1) -> Array:
    """Center moved by the mean of the differences to the rows, each clipped to length ``tau``.

    ``v <- v + (1/n) sum_i (X_i - v) min(1, tau / ||X_i - v||)``, by default from the median.

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


def mean_around(rows: Array, center: Array, k: int) -> Array:
    """Mean of the ``k`` values closest to ``center`` in every column; the first among equals."""
    apart = np.abs(rows.astype(np.longdouble) - center)
    nearest = np.argsort(apart, axis=0, kind="stable")[:k]
    return narrow(mean_of(np.take_along_axis(rows, nearest, axis=0), np.ones(k)), rows.dtype)
