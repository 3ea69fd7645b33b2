"""Twin of ``admm.hpp``: one function per update of the stochastic ADMM, and the three-variable form behind them."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from ._arrays import Array, as_float, narrow

__all__ = ["ThreeVariableADMM", "admm_answer", "admm_dual_step", "admm_master_step", "admm_worker_step"]


def admm_worker_step(
    x: npt.ArrayLike, g: npt.ArrayLike, eta: npt.ArrayLike, eta_prev: npt.ArrayLike, *, alpha: float
) -> Array:
    """Primal step of every worker.

    ``x_i - alpha ( g_i + 2 eta_i - eta_prev_i )``.

    Parameters
    ----------
    x, g, eta, eta_prev : (m, d)
        Worker copies, stochastic gradients, duals of this and of the previous iteration.
    alpha : float
        Worker step size.

    Returns
    -------
    array (m, d)
        New worker copies, of the dtype of ``x``.

    Examples
    --------
    >>> admm_worker_step([[1.0]], [[2.0]], [[0.5]], [[0.25]], alpha=0.5)
    array([[-0.375]])

    References
    ----------
    Lin, Li, Ling: ``eqxi-update``.
    """
    x_ = as_float(x)
    with np.errstate(invalid="ignore", over="ignore"):
        new = _wide(x_) - alpha * (_wide(g) + (2.0 * _wide(eta) - _wide(eta_prev)))
    return narrow(new, x_.dtype)


def admm_answer(
    x: npt.ArrayLike,
    g: npt.ArrayLike,
    eta: npt.ArrayLike,
    eta_prev: npt.ArrayLike,
    x0: npt.ArrayLike,
    *,
    alpha: float,
    beta: float,
    lam: float,
) -> tuple[Array, Array]:
    """Both steps of every worker: its new copy, and its new dual, which is the message.

    Examples
    --------
    >>> admm_answer([[1.0]], [[2.0]], [[0.5]], [[0.25]], [0.0], alpha=0.5, beta=2.0, lam=1.0)
    (array([[-0.375]]), array([[0.125]]))

    References
    ----------
    Lin, Li, Ling: ``eqxi-update``, ``eq11``.
    """
    new = admm_worker_step(x, g, eta, eta_prev, alpha=alpha)
    return new, admm_dual_step(eta, new, x0, beta=beta, lam=lam)


def admm_dual_step(eta: npt.ArrayLike, x: npt.ArrayLike, x0: npt.ArrayLike, *, beta: float, lam: float) -> Array:
    """Dual step of every worker; the message it sends.

    ``proj_[-lam, lam]( eta_i + (beta / 2) (x_i - x0) )``; NaN stays NaN.

    Parameters
    ----------
    eta : (m, d)
        Duals sent before.
    x : (m, d)
        New worker copies, or what a Byzantine worker puts in their place.
    x0 : (d,)
        New master copy.
    beta, lam : float
        Penalty of the augmented Lagrangian; weight of the TV norm.

    Returns
    -------
    array (m, d)
        New duals, of the dtype of ``eta``.

    Examples
    --------
    >>> admm_dual_step([[0.0, 0.0]], [[1.0, 9.0]], [0.5, 0.0], beta=1.0, lam=0.5)
    array([[0.25, 0.5 ]])

    References
    ----------
    Lin, Li, Ling: ``eq11``, and ``eq11c`` for a Byzantine worker.
    """
    eta_ = as_float(eta)
    with np.errstate(invalid="ignore", over="ignore"):
        moved = _wide(eta_) + 0.5 * beta * (_wide(x) - _wide(x0))
    return narrow(np.clip(moved, -lam, lam), eta_.dtype)


def admm_master_step(
    x0: npt.ArrayLike, eta: npt.ArrayLike, eta_prev: npt.ArrayLike, *, alpha: float, rho: float
) -> Array:
    """Primal step of the master from the duals it holds.

    ``x0 - alpha ( rho x0 - sum_i (2 eta_i - eta_prev_i) )``, with ``f0(x) = rho/2 ||x||^2``.

    Parameters
    ----------
    x0 : (d,)
        Master copy.
    eta, eta_prev : (m, d)
        Duals received in this and in the previous iteration.
    alpha, rho : float
        Master step size; regularization.

    Returns
    -------
    array (d,)
        New master copy, of the dtype of ``x0``.

    Examples
    --------
    >>> admm_master_step([1.0], [[0.5], [0.25]], [[0.0], [0.25]], alpha=0.5, rho=1.0)
    array([1.125])

    References
    ----------
    Lin, Li, Ling: ``eqx0-update-1``.
    """
    x0_ = as_float(x0)
    with np.errstate(invalid="ignore", over="ignore"):
        pull = (2.0 * _wide(eta) - _wide(eta_prev)).sum(axis=0)
        new = _wide(x0_) - alpha * (rho * _wide(x0_) - pull)
    return narrow(new, x0_.dtype)


class ThreeVariableADMM:
    """Stochastic ADMM before its simplification: primal ``x``, auxiliary ``z``, and two duals per worker.

    ``x_i  <- x_i - a_i ( g_i + beta x_i - beta z(0,i) - eta(0,i) )``,
    ``x_0  <- x_0 - a_0 ( g_0 + sum_i ( beta x_0 - beta z(i,0) - eta(i,0) ) )``,
    ``z    <- argmin`` of the augmented Lagrangian, by Lemma ``lem:cal``,
    ``eta(i,0) += beta ( z(i,0) - x_0 )``, ``eta(0,i) += beta ( z(0,i) - x_i )``.

    The start ``z(0,i) = x_i``, ``z(i,0) = x_0`` with zero duals is ``eta^{-1} = eta^0 = 0`` of the simplified form.

    Parameters
    ----------
    x : (m, d)
        Worker copies at the start.
    x0 : (d,)
        Master copy at the start.
    beta, lam : float
        Penalty of the augmented Lagrangian; weight of the TV norm.

    Attributes
    ----------
    x, x0 : arrays
        Current copies, float64.
    z_worker, z_master : (m, d)
        ``z(0,i)``, tied to ``x_i``, and ``z(i,0)``, tied to ``x_0``.
    eta_worker, eta_master : (m, d)
        ``eta(0,i)`` and ``eta(i,0)``; the latter is the single dual of the simplified form.

    Examples
    --------
    >>> admm = ThreeVariableADMM([[1.0]], [0.0], beta=1.0, lam=0.5)
    >>> admm.step([[0.5]], [0.0], alpha=0.5, alpha0=0.5)
    >>> admm.x, admm.eta_master
    (array([[0.75]]), array([[0.375]]))

    References
    ----------
    Lin, Li, Ling: ``eqxx``, ``eq8b`` through ``lem:cal``, ``eq8c``; by Proposition ``lem:simp`` the primal variables
    are those of the simplified form.
    """

    def __init__(self, x: npt.ArrayLike, x0: npt.ArrayLike, *, beta: float, lam: float) -> None:
        self.beta = beta
        self.lam = lam
        self.x = np.array(x, np.float64)
        self.x0 = np.array(x0, np.float64)
        self.z_worker = self.x.copy()
        self.z_master = np.broadcast_to(self.x0, self.x.shape).copy()
        self.eta_worker = np.zeros_like(self.x)
        self.eta_master = np.zeros_like(self.x)

    def step(self, g: npt.ArrayLike, g0: npt.ArrayLike, *, alpha: float, alpha0: float) -> None:
        """Advance one iteration with the workers' gradients ``g`` (m, d) and the gradient ``g0`` (d,) of ``f0``."""
        beta = self.beta
        pull = beta * self.x - beta * self.z_worker - self.eta_worker
        pull0 = (beta * self.x0 - beta * self.z_master - self.eta_master).sum(axis=0)
        self.x = self.x - alpha * (_wide(g) + pull)
        self.x0 = self.x0 - alpha0 * (_wide(g0) + pull0)
        # Lemma lem:cal with a_1 at the master's end of the edge and a_2 at the worker's.
        a_1 = self.x0 - self.eta_master / beta
        a_2 = self.x - self.eta_worker / beta
        shift = np.clip(0.5 * (a_2 - a_1), -self.lam / beta, self.lam / beta)
        self.z_master = a_1 + shift
        self.z_worker = a_2 - shift
        self.eta_master = self.eta_master + beta * (self.z_master - self.x0)
        self.eta_worker = self.eta_worker + beta * (self.z_worker - self.x)


def _wide(values: npt.ArrayLike) -> Array:
    return np.asarray(values, np.float64)
