"""Twin of ``rsa.hpp``: the two updates of RSA, the stochastic subgradient method on the TV-norm problem."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from ._arrays import Array, as_float, narrow

__all__ = ["rsa_master_step", "rsa_worker_step"]


def rsa_worker_step(x: npt.ArrayLike, g: npt.ArrayLike, x0: npt.ArrayLike, *, alpha: float, lam: float) -> Array:
    """Step of every worker.

    ``x_i - alpha ( g_i + lam sgn(x_i - x0) )`` with ``sgn(0) = 0``; NaN stays NaN.

    Parameters
    ----------
    x, g : (m, d)
        Worker copies and stochastic gradients.
    x0 : (d,)
        Master copy.
    alpha, lam : float
        Step size; weight of the TV norm.

    Returns
    -------
    array (m, d)
        New worker copies, of the dtype of ``x``.

    Examples
    --------
    >>> rsa_worker_step([[1.0, 2.0]], [[0.0, 1.0]], [0.0, 2.0], alpha=0.5, lam=0.5)
    array([[0.75, 1.5 ]])

    References
    ----------
    Lin, Li, Ling: ``eq:rsa-update``, first line.
    """
    x_ = as_float(x)
    wide, g_, x0_ = (np.asarray(a, np.float64) for a in (x_, g, x0))
    with np.errstate(invalid="ignore", over="ignore"):
        new = wide - alpha * (g_ + lam * np.sign(wide - x0_))
    return narrow(new, x_.dtype)


def rsa_master_step(x0: npt.ArrayLike, messages: npt.ArrayLike, *, alpha: float, lam: float, rho: float) -> Array:
    """Step of the master from the copies it received.

    ``x0 - alpha ( rho x0 - lam sum_i sgn(u_i - x0) )``, with ``f0(x) = rho/2 ||x||^2`` and ``sgn(0) = 0``.

    Parameters
    ----------
    x0 : (d,)
        Master copy.
    messages : (m, d)
        What the workers sent, ``x_i`` from a regular one.
    alpha, lam, rho : float
        Step size; weight of the TV norm; regularization.

    Returns
    -------
    array (d,)
        New master copy, of the dtype of ``x0``.

    Examples
    --------
    >>> rsa_master_step([1.0], [[3.0], [1.0], [2.0]], alpha=0.5, lam=0.5, rho=1.0)
    array([1.])

    References
    ----------
    Lin, Li, Ling: ``eq:rsa-update``, second line.
    """
    x0_ = as_float(x0)
    wide, sent = np.asarray(x0_, np.float64), np.asarray(messages, np.float64)
    with np.errstate(invalid="ignore", over="ignore"):
        new = wide - alpha * (rho * wide - lam * np.sign(sent - wide).sum(axis=0))
    return narrow(new, x0_.dtype)
