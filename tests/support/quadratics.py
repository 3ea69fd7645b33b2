"""Quadratics as witnesses of the theory: a NumPy run of the stochastic ADMM, many seeds at once; sign-flipping."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from byzadmm import ADMM, RSA, Result, attacks, losses, simulate, steps, theory
from byzadmm.algorithms import Algorithm

__all__ = [
    "ATTACKS",
    "RSA_ITERATIONS",
    "Measured",
    "flipped",
    "measure_quadratic",
    "penalized",
    "quadratic_problem",
    "shared_quadratic",
]

Array = NDArray[np.float64]
Attack = Callable[[int, float, tuple[int, ...], np.random.Generator], Array]

ATTACKS: dict[str, Attack] = {
    "constant": lambda k, lam, shape, rng: np.full(shape, lam),
    "oscillating": lambda k, lam, shape, rng: np.full(shape, lam * (-1.0) ** k),
    "random": lambda k, lam, shape, rng: rng.uniform(-lam, lam, shape),
}


@dataclass(frozen=True)
class Measured:
    """Means over the seeds: ``v[j]`` belongs to ``k[j]``, ``excess[j]`` to the average of iterates 1 to ``k[j]``."""

    k: NDArray[np.int64]
    v: Array
    excess: Array
    gap: float


def quadratic_problem(n_regular: int = 4, dim: int = 3, seed: int = 0) -> tuple[Array, Array, float]:
    """Return curvatures in [0.8, 1.6], centres of spread 0.5, and ``rho``."""
    rng = np.random.default_rng(seed)
    a = rng.uniform(0.8, 1.6, (n_regular, dim))
    return a, 0.5 * rng.standard_normal((n_regular, dim)), 1.0


def measure_quadratic(
    problem: theory.Problem,
    a: Array,
    b: Array,
    *,
    rho: float,
    attack: str = "constant",
    iterations: int = 2500,
    seeds: int = 200,
    seed: int = 1,
    start: int = 0,
    x0_init: float = 0.0,
    x_init: float = 0.0,
    eta_init: Array | float = 0.0,
    attack_scale: float = 1.0,
) -> Measured:
    """Run eqxi-update, eqx0-update-1 and eq11 from constant initial vectors and record the mean ``V``.

    The gradient noise is Gaussian with ``E ||noise||^2 = delta_i^2``. ``attack_scale`` above 1 sends duals outside
    ``[-lam, lam]``, which the theorem excludes.
    """
    rng = np.random.default_rng(seed)
    r, d, q = problem.n_regular, problem.dim, problem.n_byzantine
    x_star, gradients = theory.quadratic_solution(a, b, rho=rho)
    x0, x = np.full((seeds, d), x0_init), np.full((seeds, r, d), x_init)
    eta = eta_prev = np.zeros((seeds, r, d)) + eta_init
    bad = bad_prev = np.zeros((seeds, q, d))
    sigma = np.asarray(problem.delta)[:, None] / np.sqrt(d)
    total, sum_0, sum_i = np.zeros(()), np.zeros_like(x0), np.zeros_like(x)
    ks, vs, excess = [], [], []

    def objective(master: Array, workers: Array) -> Array:
        return np.asarray(rho / 2 * (master**2).sum(-1) + (a / 2 * (workers - b) ** 2).sum((-2, -1)))

    least = float(objective(x_star, np.broadcast_to(x_star, (r, d))))
    for k in range(start, start + iterations + 1):
        v = theory.lyapunov(k, problem, x0=x0, x=x, eta_prev=eta_prev, x_star=x_star, eta_star=-gradients)
        alpha_0, alpha_i = theory.step_sizes(k, problem)
        if k >= 1:
            total, sum_0, sum_i = total + alpha_0, sum_0 + alpha_0 * x0, sum_i + alpha_0 * x
        ks.append(k)
        vs.append(v.mean())
        excess.append((objective(sum_0 / total, sum_i / total) - least).mean() if k >= 1 else np.nan)
        pull = (2 * eta - eta_prev).sum(1) + (2 * bad - bad_prev).sum(1)
        noisy = a * (x - b) + sigma * rng.standard_normal(x.shape)
        x0 = x0 - alpha_0 * (rho * x0 - pull)
        x = x - alpha_i * (noisy + 2 * eta - eta_prev)
        eta, eta_prev = np.clip(eta + problem.beta / 2 * (x - x0[:, None]), -problem.lam, problem.lam), eta
        bad, bad_prev = attack_scale * ATTACKS[attack](k, problem.lam, bad.shape, rng), bad
    return Measured(np.array(ks), np.array(vs), np.array(excess), r * d * abs(x_init - x0_init))


#: Iterations after which the master of RSA, whose signs never rest, moves by 2e-3 lam at most in one step.
RSA_ITERATIONS = 20000


def penalized(lam: float, m: int = 20) -> dict[str, tuple[Algorithm, int, float]]:
    """ADMM and RSA for curvatures about 1 without noise: algorithm, iterations, and how near it comes to its limit.

    ADMM converges. RSA ends within a few of its last steps, each at most ``alpha_0 (m lam + rho |x|)``.
    """
    admm = ADMM(lam=lam, beta=1.0, master_step=steps.inv_linear(0.02, m), worker_step=steps.inv_linear(0.02, 2))
    rsa = RSA(lam=lam, master_step=steps.inv_linear(0.5, m), worker_step=steps.inv_linear(0.5, 2))
    return {"ADMM": (admm, 4000, 1e-9), "RSA": (rsa, RSA_ITERATIONS, 2 * m * lam * rsa.master_step(RSA_ITERATIONS))}


def shared_quadratic(b: float, *, dim: int, noise: float, m: int = 20) -> losses.Quadratic:
    """``1/2 (x - b)^2`` for every worker and coordinate: what differs is the noise alone."""
    return losses.Quadratic(np.ones((m, dim)), np.full((m, dim), b), noise)


def flipped(algorithm: Algorithm, loss: losses.Quadratic, *, q: int, scale: float, **changes: Any) -> Result:
    """Train under the sign-flipping attack of the last ``q`` workers; ``rho = 0`` by default."""
    given: dict[str, Any] = {"rho": 0.0, "dtype": "float64", "threads": 1, "record": "trajectory"}
    given |= changes
    given = {"eval_every": given["iterations"]} | given
    return simulate(None, None, algorithm=algorithm, attack=attacks.SignFlip(scale), n_byzantine=q, loss=loss, **given)
