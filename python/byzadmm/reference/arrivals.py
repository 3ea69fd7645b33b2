"""Twin of ``arrivals.hpp`` and of the sums in ``admm.hpp``: what a master makes of one message as it arrives."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from ._arrays import Array, as_float, narrow

__all__ = ["add_to_mean", "admm_hear", "admm_master_step_of_sums", "zeno_direction"]


def add_to_mean(mean: npt.ArrayLike, message: npt.ArrayLike, n: int) -> Array:
    """Mean of a buffer of BASGD after the n-th message, in the dtype of ``mean``; finite for any finite numbers.

    Examples
    --------
    >>> add_to_mean([1.0, 2.0], [4.0, 2.0], 3)
    array([2., 2.])
    """
    old = as_float(mean)
    new: Array = np.array(message, old.dtype)
    if n == 1:
        return new
    with np.errstate(over="ignore"):
        made: Array = old * old.dtype.type((n - 1) / n) + new / old.dtype.type(n)
    largest = np.finfo(old.dtype).max
    np.clip(made, -largest, largest, out=made)
    return made


def zeno_direction(
    message: npt.ArrayLike, own: npt.ArrayLike, *, alpha: float, rho: float, eps: float
) -> Array | None:
    """What Zeno++ makes of a message: ``g ||v|| / ||g||``, or None if the message is rejected.

    It is accepted if ``cos(v, g) >= rho / alpha - eps / ||v||^2``; a zero message as if at right angles to ``v``, and
    nothing if ``v`` is not finite.

    Parameters
    ----------
    message : (d,)
        ``g``, finite.
    own : (d,)
        ``v``, the master's gradient.
    alpha, rho, eps : float
        Step size; weight of the length; tolerance.

    Examples
    --------
    >>> zeno_direction([4.0, 3.0], [1.0, 0.0], alpha=0.1, rho=0.01, eps=0.0)
    array([0.8, 0.6])
    >>> zeno_direction([-4.0, 3.0], [1.0, 0.0], alpha=0.1, rho=0.01, eps=0.0) is None
    True

    References
    ----------
    Xie, Koyejo, Gupta, "Zeno++: Robust Fully Asynchronous SGD", ICML 2020.
    """
    g_ = as_float(message)
    g, v = np.asarray(g_, np.float64), np.asarray(own, np.float64)
    if not np.isfinite(v).all():
        return None
    with np.errstate(over="ignore"):
        g, _ = _sized(g)
        v, exponent = _sized(v)
        if g.any():
            g = g * (np.sqrt(v @ v) / np.sqrt(g @ g))
        if not alpha * (v @ g) - rho * (v @ v) + np.ldexp(alpha * eps, -2 * exponent) >= 0:
            return None
        return narrow(np.ldexp(g, exponent), g_.dtype)


def admm_hear(
    message: npt.ArrayLike, eta: npt.ArrayLike, total: npt.ArrayLike, change: npt.ArrayLike
) -> tuple[Array, Array, Array, Array]:
    """``eta``, ``eta_prev``, ``total`` and ``change`` once the master of AsyncADMM has heard one dual.

    ``total`` is the sum of all workers' ``eta``, ``change`` that of ``eta - eta_prev`` since the last update.

    Examples
    --------
    >>> admm_hear([0.5], [0.25], [1.0], [0.0])
    (array([0.5]), array([0.25]), array([1.25]), array([0.25]))
    """
    now, before = as_float(message).copy(), as_float(eta).copy()
    step = np.asarray(now, np.float64) - before
    return now, before, np.asarray(total) + step, np.asarray(change) + step


def admm_master_step_of_sums(
    x0: npt.ArrayLike, total: npt.ArrayLike, change: npt.ArrayLike, *, alpha: float, rho: float
) -> Array:
    """Step of the master from the sums of :func:`admm_hear`: ``x0 - alpha ( rho x0 - total - change )``.

    Examples
    --------
    >>> admm_master_step_of_sums([1.0], [0.5], [0.25], alpha=0.5, rho=1.0)
    array([0.875])

    References
    ----------
    Lin, Li, Ling: ``eqx0-update-1``.
    """
    x0_ = as_float(x0)
    wide = np.asarray(x0_, np.float64)
    return narrow(wide - alpha * (rho * wide - (np.asarray(total) + np.asarray(change))), x0_.dtype)


def _sized(x: Array) -> tuple[Array, int]:
    """``x / 2^e`` with a largest element in [1/2, 1), and ``e``; zeros as they are."""
    _, exponent = np.frexp(np.max(np.abs(x)))
    return np.ldexp(x, -int(exponent)), int(exponent)
