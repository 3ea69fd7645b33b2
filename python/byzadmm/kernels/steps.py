"""The steps of ADMM and RSA, for workers and master."""

from __future__ import annotations

from typing import Any

from byzadmm import _core
from byzadmm._internal.arrays import common_float, prepare_out
from byzadmm._internal.validation import check_threads
from byzadmm.kernels._checks import not_negative, positive, require_shape, require_workers, returned

__all__ = ["admm_dual_step", "admm_master_step", "admm_worker_step", "rsa_master_step", "rsa_worker_step"]


def admm_worker_step(
    x: Any, g: Any, eta: Any, eta_prev: Any, *, alpha: float, out: Any = None, threads: int = 0
) -> Any:
    """The workers' primal step of stochastic ADMM.

    ``x_i - alpha (g_i + 2 eta_i - eta_prev_i)``

    Parameters
    ----------
    x, g, eta, eta_prev : (m, d) arrays, or any one shape
        Models, stochastic gradients, duals of this and of the last iteration.
    alpha : float >= 0
        Step size of the workers.
    out : array, optional
        May be any of the four inputs.

    Examples
    --------
    >>> from byzadmm import kernels
    >>> kernels.admm_worker_step([[1.0]], [[2.0]], [[0.5]], [[0.25]], alpha=0.1).tolist()
    [[0.725]]

    References
    ----------
    ``eqxi-update`` (Proposition ``lem:simp``).
    """
    arrays = models, gradients, duals, previous = common_float(x=x, g=g, eta=eta, eta_prev=eta_prev)
    for array, name in zip(arrays[1:], ("g", "eta", "eta_prev"), strict=True):
        require_shape(array, name, models.shape)
    if models.size == 0:
        raise ValueError(f"x: expected at least one number, got shape {models.shape}")
    result = prepare_out(out, models.shape, models.dtype, arrays, [x, g, eta, eta_prev], may_be=arrays)
    alpha = not_negative(alpha, "alpha", models)
    _core.admm_worker_step(models, gradients, duals, previous, result, alpha, check_threads(threads))
    return returned(result, out, x, g, eta, eta_prev)


def admm_dual_step(eta: Any, x: Any, x0: Any, *, beta: float, lam: float, out: Any = None, threads: int = 0) -> Any:
    """The dual step of stochastic ADMM, projected so that it says little about anyone.

    ``clip(eta_i + beta/2 (x_i - x0), -lam, lam)``; NaN stays NaN.

    Parameters
    ----------
    eta, x : (m, d) arrays
        Duals and models (for a Byzantine worker: the ``u_j`` it claims).
    x0 : (d,) array
        The master's model.
    beta, lam : float > 0
        Penalty parameter and bound of the dual.
    out : (m, d) array, optional
        May be ``eta`` or ``x``.

    Examples
    --------
    >>> from byzadmm import kernels
    >>> kernels.admm_dual_step([[0.0, 0.0]], [[1.0, 9.0]], [0.0, 0.0], beta=1.0, lam=2.0).tolist()
    [[0.5, 2.0]]

    References
    ----------
    ``eq11`` and ``eq11c``.
    """
    duals, models, master = common_float(eta=eta, x=x, x0=x0)
    m, d = require_workers(models, "x")
    require_shape(duals, "eta", (m, d))
    require_shape(master, "x0", (d,))
    result = prepare_out(out, (m, d), models.dtype, [duals, models, master], [eta, x, x0], may_be=[duals, models])
    beta, lam = positive(beta, "beta", models), positive(lam, "lam", models)
    _core.admm_dual_step(duals, models, master, result, beta, lam, check_threads(threads))
    return returned(result, out, x, eta, x0)


def admm_master_step(
    x0: Any, eta: Any, eta_prev: Any, *, alpha: float, rho: float, out: Any = None, threads: int = 0
) -> Any:
    """The master's step of stochastic ADMM with ``f0(x) = rho/2 ||x||^2``.

    ``x0 - alpha (rho x0 - sum_i (2 eta_i - eta_prev_i))``, the sum in float64 over the workers in order.

    Parameters
    ----------
    x0 : (d,) array
    eta, eta_prev : (m, d) arrays
        Duals received in this and in the last iteration.
    alpha, rho : float >= 0
    out : (d,) array, optional
        May be ``x0``.

    Examples
    --------
    >>> from byzadmm import kernels
    >>> kernels.admm_master_step([1.0], [[0.5], [0.25]], [[0.0], [0.0]], alpha=0.1, rho=1.0).tolist()
    [1.05]

    References
    ----------
    ``eqx0-update-1``.
    """
    master, duals, previous = common_float(x0=x0, eta=eta, eta_prev=eta_prev)
    m, d = require_workers(duals, "eta")
    require_shape(previous, "eta_prev", (m, d))
    require_shape(master, "x0", (d,))
    result = prepare_out(out, (d,), duals.dtype, [master, duals, previous], [x0, eta, eta_prev], may_be=[master])
    alpha, rho = not_negative(alpha, "alpha", duals), not_negative(rho, "rho", duals)
    _core.admm_master_step(master, duals, previous, result, alpha, rho, check_threads(threads))
    return returned(result, out, x0, eta, eta_prev)


def rsa_worker_step(x: Any, g: Any, x0: Any, *, alpha: float, lam: float, out: Any = None, threads: int = 0) -> Any:
    """The workers' step of RSA.

    ``x_i - alpha (g_i + lam sgn(x_i - x0))`` with ``sgn(0) = 0``.

    Parameters
    ----------
    x, g : (m, d) arrays
    x0 : (d,) array
    alpha : float >= 0
    lam : float > 0
    out : (m, d) array, optional
        May be ``x`` or ``g``.

    Examples
    --------
    >>> from byzadmm import kernels
    >>> kernels.rsa_worker_step([[1.0, 0.0]], [[0.0, 0.0]], [0.0, 0.0], alpha=0.5, lam=1.0).tolist()
    [[0.5, 0.0]]

    References
    ----------
    ``eq:rsa-update``.
    """
    models, gradients, master = common_float(x=x, g=g, x0=x0)
    m, d = require_workers(models, "x")
    require_shape(gradients, "g", (m, d))
    require_shape(master, "x0", (d,))
    result = prepare_out(out, (m, d), models.dtype, [models, gradients, master], [x, g, x0], may_be=[models, gradients])
    alpha, lam = not_negative(alpha, "alpha", models), positive(lam, "lam", models)
    _core.rsa_worker_step(models, gradients, master, result, alpha, lam, check_threads(threads))
    return returned(result, out, x, g, x0)


def rsa_master_step(
    x0: Any, messages: Any, *, alpha: float, lam: float, rho: float, out: Any = None, threads: int = 0
) -> Any:
    """The master's step of RSA with ``f0(x) = rho/2 ||x||^2``.

    ``x0 - alpha (rho x0 - lam sum_i sgn(message_i - x0))``

    Parameters
    ----------
    x0 : (d,) array
    messages : (m, d) array
        The models received.
    alpha, rho : float >= 0
    lam : float > 0
    out : (d,) array, optional
        May be ``x0``.

    Examples
    --------
    >>> from byzadmm import kernels
    >>> kernels.rsa_master_step([0.0], [[3.0], [5.0], [-1.0]], alpha=0.5, lam=1.0, rho=0.0).tolist()
    [0.5]

    References
    ----------
    ``eq:rsa-update``.
    """
    master, received = common_float(x0=x0, messages=messages)
    _, d = require_workers(received, "messages")
    require_shape(master, "x0", (d,))
    result = prepare_out(out, (d,), received.dtype, [master, received], [x0, messages], may_be=[master])
    alpha, rho = not_negative(alpha, "alpha", received), not_negative(rho, "rho", received)
    lam = positive(lam, "lam", received)
    _core.rsa_master_step(master, received, result, alpha, lam, rho, check_threads(threads))
    return returned(result, out, x0, messages)
