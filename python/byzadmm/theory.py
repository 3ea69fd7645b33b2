"""Theory: what the convergence theorems promise for a problem whose constants are known, as numbers.

The formulas are those of the proofs. Where a statement of the paper and its proof disagree, or a step of the proof does
not hold, the function says what was repaired; ``docs/theory.md`` lists every repair.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from byzadmm._internal.validation import check_choice, check_int, check_real

__all__ = [
    "Constants",
    "Problem",
    "bound",
    "constants",
    "ergodic_bound",
    "lambda_0",
    "lyapunov",
    "quadratic_solution",
    "sign_flip_solution",
    "sign_flip_speed",
    "step_sizes",
]

Array = NDArray[np.float64]


@dataclass(frozen=True, kw_only=True)
class Problem:
    """Everything the theorems need to know about a problem and a run, checked when built.

    ``schedule="linear"`` is Theorem thm:conv, with ``alpha_0 = min{1/(c k + m beta), A}`` and
    ``alpha_i = min{1/(c k + beta), A}``; ``schedule="sqrt"`` is the ergodic theorem, which has ``sqrt(k)`` for ``k``.

    Parameters
    ----------
    mu, L : sequence of float, shape (r,)
        Strong convexity and gradient Lipschitz constants of the regular workers' expected losses, ``0 < mu <= L``.
    delta : sequence of float, shape (r,)
        ``E ||F'(x, xi_i) - E F'(x, xi_i)||^2 <= delta_i^2``.
    mu_0, L_0 : float
        The same two constants for the master's ``f_0``; both are ``rho`` for ``rho/2 ||x||^2``.
    lam, beta : float
        Penalty and ADMM parameter.
    c : float
        Slope of the step sizes; below ``min mu L/(mu + L)`` over master and workers when the schedule is linear.
    n_byzantine : int
        ``q``; the number of workers is ``m = r + q``.
    dim : int
        ``d``.
    cap : float, optional
        ``A``; by default the largest that the theorem allows.
    lam_0 : float
        If given, ``lam >= lam_0`` is required (Lemma Coro:1); see :func:`lambda_0`.
    schedule : {"linear", "sqrt"}
        Which theorem.

    Examples
    --------
    >>> p = Problem(mu=[0.5, 0.5], L=[0.5, 0.5], delta=[0, 0], mu_0=1, L_0=1, lam=0.5, beta=1, c=0.125, n_byzantine=1)
    >>> p.n_workers, p.cap
    (3, 0.5)

    References
    ----------
    Lin, Li, Ling: Stochastic ADMM for Byzantine-Robust Distributed Learning, Theorem thm:conv and appendix app:sqk.
    """

    mu: Sequence[float]
    L: Sequence[float]
    delta: Sequence[float]
    mu_0: float
    L_0: float
    lam: float
    beta: float
    c: float
    n_byzantine: int = 0
    dim: int = 1
    cap: float | None = None
    lam_0: float = 0.0
    schedule: str = "linear"

    def __post_init__(self) -> None:
        def put(name: str, value: object) -> None:
            object.__setattr__(self, name, value)

        put("mu", _reals(self.mu, "mu", strict=True))
        put("L", _reals(self.L, "L", strict=True))
        put("delta", _reals(self.delta, "delta"))
        for name in ("L", "delta"):
            if len(getattr(self, name)) != self.n_regular:
                raise ValueError(f"{name}: expected shape ({self.n_regular},), got ({len(getattr(self, name))},)")
        for name in ("mu_0", "L_0", "lam", "beta", "c"):
            put(name, check_real(getattr(self, name), name, low=0, strict=True))
        put("lam_0", check_real(self.lam_0, "lam_0", low=0))
        put("n_byzantine", check_int(self.n_byzantine, "n_byzantine", low=0))
        put("dim", check_int(self.dim, "dim", low=1))
        check_choice(self.schedule, "schedule", ("linear", "sqrt"))
        names = ("L_0", *(f"L[{i}]" for i in range(self.n_regular)))
        for name, low, high in zip(names, (self.mu_0, *self.mu), (self.L_0, *self.L), strict=True):
            if high < low:
                raise ValueError(f"{name}: expected at least the strong convexity constant {low}, got {high}")
        if self.lam < self.lam_0:
            raise ValueError(f"lam: expected at least lambda_0 = {self.lam_0}, got {self.lam}")
        if self.schedule == "linear" and self.c >= min(self._kappas):
            raise ValueError(f"c: expected less than min mu L/(mu + L) = {min(self._kappas)}, got {self.c}")
        limit = self._cap_limit()
        cap = limit if self.cap is None else check_real(self.cap, "cap", low=0, strict=True)
        if cap > limit:
            raise ValueError(f"cap: expected at most {limit}, got {cap}")
        put("cap", cap)

    @property
    def n_regular(self) -> int:
        """``r``."""
        return len(self.mu)

    @property
    def n_workers(self) -> int:
        """``m = r + q``."""
        return self.n_regular + self.n_byzantine

    @property
    def A(self) -> float:
        """``cap`` once it is filled in."""
        assert self.cap is not None
        return self.cap

    @property
    def _kappas(self) -> tuple[float, ...]:
        # 1/(1/mu + 1/L) is mu L/(mu + L) without the product that could overflow.
        pairs = zip((self.mu_0, *self.mu), (self.L_0, *self.L), strict=True)
        return tuple(1 / (1 / mu + 1 / L) for mu, L in pairs)

    def _cap_limit(self) -> float:
        if self.schedule == "linear":
            return min(1 / (mu + L) for mu, L in zip((self.mu_0, *self.mu), (self.L_0, *self.L), strict=True))
        drift = (self.n_workers - 1) * self.beta * self.c
        workers = [mu / (2 * L**2 + drift) for mu, L in zip(self.mu, self.L, strict=True)]
        return min(self.mu_0 / (4 * self.L_0**2), *workers)


@dataclass(frozen=True)
class Constants:
    """The constants of Theorem thm:conv for one problem and one start; made by :func:`constants`.

    ``c_2_capped`` replaces ``c_2`` while the worker step is capped, ``floor`` is ``alpha_0^{k_0}``, the smallest master
    step of that phase, and ``radius = c_1/c_0`` is what remains for large ``k``.
    """

    problem: Problem
    v_start: float
    start: int
    c_0: float
    c_1: float
    c_2: float
    c_2_capped: float
    k_0: int
    floor: float
    C: float
    radius: float


def lambda_0(gradients: ArrayLike) -> float:
    r"""Smallest penalty for which the penalized problem has the minimizer of the original one.

    ``lambda_0 = max_i || E F'(x*, xi_i) ||_inf``

    Parameters
    ----------
    gradients : array_like, shape (r, d)
        ``E F'(x*, xi_i)`` of each regular worker at the minimizer ``x*``; see :func:`quadratic_solution`.

    Returns
    -------
    float
        ``lambda_0``.

    Examples
    --------
    >>> _, gradients = quadratic_solution([[0.5], [0.5]], [[1.0], [1.0]], rho=1.0)
    >>> lambda_0(gradients)
    0.25

    References
    ----------
    Lemma Coro:1.
    """
    return float(np.abs(_array(gradients, "gradients", ("r", "d"))).max())


def quadratic_solution(a: ArrayLike, b: ArrayLike, *, rho: float) -> tuple[Array, Array]:
    r"""Minimizer of a sum of diagonal quadratics, and each worker's gradient there.

    ``x*_j = sum_i a_ij b_ij/(rho + sum_i a_ij)`` for ``F_i(x) = 1/2 sum_j a_ij (x_j - b_ij)^2`` and
    ``f_0(x) = rho/2 ||x||^2``

    Parameters
    ----------
    a, b : array_like, shape (r, d)
        Curvatures (positive) and centers of the regular workers.
    rho : float
        Curvature of ``f_0``.

    Returns
    -------
    x_star : ndarray, shape (d,)
        The minimizer.
    gradients : ndarray, shape (r, d)
        ``a_i (x* - b_i)``; the optimal duals are its negative (eq:opt).

    Examples
    --------
    >>> x_star, gradients = quadratic_solution([[0.5], [0.5]], [[1.0], [1.0]], rho=1.0)
    >>> x_star.tolist(), gradients.tolist()
    ([0.5], [[-0.25], [-0.25]])

    References
    ----------
    Problem eq2, conditions eq:opt.
    """
    curvature = _array(a, "a", ("r", "d"))
    center = _array(b, "b", curvature.shape)
    if curvature.min() <= 0:
        raise ValueError(f"a: expected positive numbers, got {curvature.min()}")
    rho = check_real(rho, "rho", low=0, strict=True)
    x_star: Array = (curvature * center).sum(axis=0) / (rho + curvature.sum(axis=0))
    return x_star, curvature * (x_star - center)


def sign_flip_solution(a: ArrayLike, b: ArrayLike, *, lam: float, n_byzantine: int, rho: float = 0.0) -> Array:
    r"""Limit of the master's model under sign-flipping, for ADMM and RSA on diagonal quadratics without noise.

    ``sum_R clip(a_i (b_i - x), -lam, lam) = q lam sign(x) + rho x`` in every coordinate: the minimizer of
    ``sum_R min_y { F_i(y) + lam ||y - x||_1 } + q lam ||x||_1 + rho/2 ||x||^2``.

    The clipped terms are the duals of the regular workers, and every Byzantine dual is ``-lam sign(x)``, whatever the
    strength of the attack. Where no regular dual is clipped, the workers agree with the master (consensus) and::

        x = sign(c) max(|c| - (q/r) lam, 0)/(abar + rho/r),  abar = mean_R a_i,  c = mean_R a_i b_i

    For ``lam -> 0`` the clipped terms are signs, and ``x`` is the ``(r-q)/(2r)`` quantile of the ``b_i``, counted from
    the side of zero. Where a whole interval satisfies the equation, which needs ``rho = 0``, the result is its end
    nearest to zero. The Byzantine workers' own models are assumed to agree with ``x`` or to have its sign.

    Parameters
    ----------
    a, b : array_like, shape (r, d)
        Curvatures (positive) and centers of the regular workers, ``F_i(x) = 1/2 sum_j a_ij (x_j - b_ij)^2``.
    lam : float
        Penalty.
    n_byzantine : int
        ``q``.
    rho : float
        Curvature of ``f_0``.

    Returns
    -------
    ndarray, shape (d,)
        The limit of ``x0``.

    Examples
    --------
    Three regular workers and two Byzantine ones shift the model by ``2/3 lam``, at most to zero:

    >>> a, b = [[1.0, 1.0]] * 3, [[1.0, -0.1]] * 3
    >>> sign_flip_solution(a, b, lam=0.3, n_byzantine=2).round(3).tolist()
    [0.8, 0.0]

    References
    ----------
    Updates eqxi-update, eq11, eqx0-update-1 and eq:rsa-update at rest, with ``u_j = eps x_j``, ``eps < 0``.
    """
    curvature = _array(a, "a", ("r", "d"))
    center = _array(b, "b", curvature.shape)
    if curvature.min() <= 0:
        raise ValueError(f"a: expected positive numbers, got {curvature.min()}")
    lam = check_real(lam, "lam", low=0, strict=True)
    q = check_int(n_byzantine, "n_byzantine", low=0)
    # In units of lam. At an interval of solutions the curve touches q, up to rounding.
    slope, rest = curvature / lam, check_real(rho, "rho", low=0) / lam
    side = np.sign(np.clip(slope * center, -1, 1).sum(axis=0))
    center = side * center  # now the solution is >= 0, on a piecewise linear, non-increasing curve
    ends = np.concatenate([center - 1 / slope, center + 1 / slope])
    knots = np.concatenate([np.zeros((1, center.shape[1])), np.sort(np.maximum(ends, 0), axis=0)])
    pull = np.clip(slope[:, None] * (center[:, None] - knots), -1, 1).sum(axis=0) - rest * knots
    after = (pull <= q + 1e-9).argmax(axis=0)  # there is one: the pull at the last knot is not positive
    before, column = np.maximum(after - 1, 0), np.arange(center.shape[1])
    high, low = pull[before, column], pull[after, column]
    part = np.minimum(np.divide(high - q, high - low, out=np.zeros_like(high), where=high > low), 1)
    size = knots[before, column] + part * (knots[after, column] - knots[before, column])
    return np.asarray(side * size + 0.0)  # no negative zeros


def sign_flip_speed(n_regular: int, n_byzantine: int, *, scale: float = -3.0) -> float:
    r"""Factor by which sign-flipping slows SGD with the median or the geometric median, to first order.

    ``(r - q)/(r + q/s)``, ``s = -scale``: the rule's mean result for ``r`` gradients ``g + noise`` and ``q`` gradients
    ``-s (g + noise)`` is this factor times ``g``.

    It holds where ``g`` is small beside the noise, for independent noise symmetric about zero (of the geometric median:
    alike in all directions) and many workers. Then the results of both rules are at the point ``d`` where the
    displacements of the regular points, ``g - d``, and of the Byzantine ones, ``-s g - d``, balance, the latter with
    the weight ``1/s``, because their cloud is ``s`` times as wide: ``r (g - d) + q (-s g - d)/s = 0``. Without noise
    the majority decides, and the factor is 1. In both cases ``g = 0`` gives zero: no bias.

    Parameters
    ----------
    n_regular, n_byzantine : int
        ``r`` and ``q``.
    scale : float < 0
        As in ``attacks.SignFlip``.

    Returns
    -------
    float
        The factor.

    Examples
    --------
    >>> round(sign_flip_speed(12, 8), 4), round(sign_flip_speed(12, 8, scale=-1), 4)
    (0.2727, 0.2)
    """
    r, q = check_int(n_regular, "n_regular", low=1), check_int(n_byzantine, "n_byzantine", low=0)
    scale = check_real(scale, "scale")
    if scale >= 0:
        raise ValueError(f"scale: expected a number < 0, got {scale}")
    return (r - q) / (r - q / scale)


def step_sizes(k: ArrayLike, problem: Problem) -> tuple[Array, Array]:
    r"""Step sizes of master and workers that the theorems are about.

    ``alpha_0^k = min{1/(c t + m beta), A}``, ``alpha_i^k = min{1/(c t + beta), A}``, ``t = k`` or ``sqrt(k)``

    Parameters
    ----------
    k : array_like of int, shape (...)
        Iterations, from 0.
    problem : Problem
        Gives ``c``, ``beta``, ``m``, ``A`` and the schedule.

    Returns
    -------
    alpha_0, alpha_i : ndarray, shape (...)
        Step size of the master, and of every worker.

    Examples
    --------
    >>> p = Problem(mu=[0.5, 0.5], L=[0.5, 0.5], delta=[0, 0], mu_0=1, L_0=1, lam=0.5, beta=1, c=0.125, n_byzantine=1)
    >>> alpha_0, alpha_i = step_sizes([0, 8, 16], p)
    >>> alpha_0.round(4).tolist(), alpha_i.round(4).tolist()
    ([0.3333, 0.25, 0.2], [0.5, 0.5, 0.3333])

    References
    ----------
    Theorem thm:conv; appendix app:sqk for the square root.
    """
    _kind(problem, "problem", Problem)
    t = _indices(k, "k", 0).astype(np.float64)
    if problem.schedule == "sqrt":
        t = np.sqrt(t)
    return _steps(t, problem)


def lyapunov(
    k: int,
    problem: Problem,
    *,
    x0: ArrayLike,
    x: ArrayLike,
    eta_prev: ArrayLike,
    x_star: ArrayLike,
    eta_star: ArrayLike | None = None,
) -> Array:
    r"""Distance to the solution that the theorems bound, of one state or of many.

    With step sizes and duals of ``k-1``::

        V = ||x0 - x*||^2 + sum_i ( ||x_i - x*||^2 + 2 alpha_i/beta ||eta_i - eta_i*||^2 )               linear
        V = ||x0 - x*||^2 + sum_i ( alpha_0/alpha_i ||x_i - x*||^2 + 2 alpha_0/beta ||eta_i||^2 )        sqrt

    The theorems speak of its expectation: take the mean over seeds.

    ``alpha^{-1}``, which ``V^0`` asks for, would be ``1/(beta - c)`` and need not be positive; it is ``alpha^0`` here.

    Parameters
    ----------
    k : int
        Index of the state.
    problem : Problem
        The run's problem.
    x0 : array_like, shape (..., d)
        Master.
    x, eta_prev : array_like, shape (..., r, d)
        Regular workers' ``x_i^k`` and ``eta_i^{k-1}``.
    x_star : array_like, shape (d,)
        Solution.
    eta_star : array_like, shape (r, d), optional
        Optimal duals ``-E F'(x*, xi_i)``; the linear schedule needs them, the other does not use them.

    Returns
    -------
    ndarray, shape (...)
        One value per state.

    Examples
    --------
    >>> p = Problem(mu=[0.5, 0.5], L=[0.5, 0.5], delta=[0, 0], mu_0=1, L_0=1, lam=0.5, beta=1, c=0.125, n_byzantine=1)
    >>> eta_star = [[0.25], [0.25]]
    >>> float(lyapunov(0, p, x0=[0], x=[[1], [1]], eta_prev=[[0], [0]], x_star=[0.5], eta_star=eta_star))
    0.875

    References
    ----------
    Restated Theorem thm:conv; step 3 of appendix app:sqk.
    """
    _kind(problem, "problem", Problem)
    k = check_int(k, "k", low=0)
    r, d = problem.n_regular, problem.dim
    master = _array(x0, "x0", (..., d))
    lead = master.shape[:-1]
    workers = _array(x, "x", (*lead, r, d))
    duals = _array(eta_prev, "eta_prev", (*lead, r, d))
    target = _array(x_star, "x_star", (d,))
    alpha_0, alpha_i = step_sizes(max(k - 1, 0), problem)
    if problem.schedule == "linear":
        if eta_star is None:
            raise TypeError(f"eta_star: expected an array of shape ({r}, {d}) for the linear schedule, got None")
        duals = duals - _array(eta_star, "eta_star", (r, d))
        weight_x, weight_eta = 1.0, 2 * alpha_i / problem.beta
    else:
        weight_x, weight_eta = float(alpha_0 / alpha_i), 2 * alpha_0 / problem.beta
    value: Array = ((master - target) ** 2).sum(axis=-1)
    value = value + weight_x * ((workers - target) ** 2).sum(axis=(-2, -1))
    return np.asarray(value + weight_eta * (duals**2).sum(axis=(-2, -1)))


def constants(problem: Problem, *, v_start: float, start: int = 0, start_gap: float = 0.0) -> Constants:
    r"""Constants of the O(1/k) theorem.

    With ``kappa = mu L/(mu + L)``, ``a = alpha_0^{k_0}`` and ``s = start``::

        c_0 = min{ c + (m-1) beta, kappa_0, kappa_i }
        c_1 = 9 d lam^2 q^2 / kappa_0
        c_2 = [2 (4r+3q)^2 + 64 r + 16 (m-1) beta (r/(2 beta) + sum_i 1/kappa_i)] lam^2 d + 4 sum_i delta_i^2
        c_2_capped = c_2 + 8 r d lam^2 c_0 / beta
        k_0 = min{ k >= 0 : 1/(c k + beta) < A }
        C = max{ ((c k_0 + m beta)/(c k_0 + beta))^2 c_2/(c_0 - c),
                 (c k_0 + m beta) ((1 - c_0 a)^(k_0+1-s) V^s + A^2 c_2_capped/(c_0 a)) }

    ``c_2_capped`` and ``a`` are not in the paper: while both step sizes are capped the dual part of ``V`` does not
    shrink, and a master whose step is below ``A`` does not shrink by ``1 - c_0 A``.

    Parameters
    ----------
    problem : Problem
        With the linear schedule and at least two workers: for one, ``c_0 = c`` and the rate is lost.
    v_start : float
        ``V`` of the initial state, from :func:`lyapunov`.
    start : {0, 1}
        Index of the initial state: 1 for a run whose first step size is that of ``k = 1``.
    start_gap : float
        ``sum_i ||x_i - x0||_1`` of the initial state, whose duals are ``eta_i^s = eta_i^{s-1}``. Lemma lem:eta is about
        duals that come out of a projection, and the initial ones pass for such only if workers and master start
        together. Otherwise the first step may add ``4 lam alpha_0^s start_gap``; ``v_start`` is raised to cover it.

    Returns
    -------
    Constants
        Frozen record.

    Examples
    --------
    >>> p = Problem(mu=[0.5, 0.5], L=[0.5, 0.5], delta=[0, 0], mu_0=1, L_0=1, lam=0.5, beta=1, c=0.125, n_byzantine=1)
    >>> con = constants(p, v_start=0.875, start_gap=2.0)
    >>> con.c_0, con.c_1, con.c_2, con.k_0
    (0.25, 4.5, 164.5, 9)

    References
    ----------
    Restated Theorem thm:conv, eq:iter and eq:Vk-bound-app.
    """
    _kind(problem, "problem", Problem)
    if problem.schedule != "linear":
        raise ValueError(f"problem: expected the linear schedule, got {problem.schedule!r}")
    r, q, m, d = problem.n_regular, problem.n_byzantine, problem.n_workers, problem.dim
    if m < 2:
        raise ValueError(f"problem: expected at least 2 workers, got {m}")
    v_start = check_real(v_start, "v_start", low=0)
    start = check_int(start, "start", low=0, high=1)
    start_gap = check_real(start_gap, "start_gap", low=0)
    c, beta, A, kappas = problem.c, problem.beta, problem.A, problem._kappas
    spread = problem.lam**2 * d

    c_0 = min(c + (m - 1) * beta, *kappas)
    c_1 = 9 * spread * q**2 / kappas[0]
    coupling = 16 * (m - 1) * (r / 2 + beta * sum(1 / kappa for kappa in kappas[1:]))
    c_2 = (2 * (4 * r + 3 * q) ** 2 + 64 * r + coupling) * spread + 4 * sum(x**2 for x in problem.delta)
    c_2_capped = c_2 + 8 * r * spread * c_0 / beta

    k_0 = max(0, math.floor((1 / A - beta) / c))
    if 1 / (c * k_0 + beta) >= A:  # not always so: the quotient above may round to either side
        k_0 += 1

    alpha_start = float(step_sizes(start, problem)[0])
    v_start += 4 * problem.lam * alpha_start * start_gap / (1 - c_0 * alpha_start)
    slow = c * k_0 + m * beta
    capped = (1 - c_0 / slow) ** (k_0 + 1 - start) * v_start + A**2 * c_2_capped * slow / c_0
    C = max((slow / (c * k_0 + beta)) ** 2 * c_2 / (c_0 - c), slow * capped)
    return Constants(
        problem=problem,
        v_start=v_start,
        start=start,
        c_0=c_0,
        c_1=c_1,
        c_2=c_2,
        c_2_capped=c_2_capped,
        k_0=k_0,
        floor=1 / slow,
        C=C,
        radius=c_1 / c_0,
    )


def bound(k: ArrayLike, constants: Constants, *, form: str = "closed") -> Array:
    r"""Upper bound on ``E V^k`` under the O(1/k) step sizes, whatever the Byzantine workers send.

    With ``s = start`` and ``a = alpha_0^{k_0}``::

        V^k <= (1 - c_0 a)^(k-s) V^s + A^2 c_2_capped/(c_0 a) + c_1/c_0     k <= k_0
        V^k <= C/(c (k-1) + m beta) + c_1/c_0                               k >  k_0

    ``form="recursion"`` iterates the inequality behind both instead, which is never above the closed form::

        V^{k+1} <= (1 - c_0 alpha_0^k) V^k + c_1 alpha_0^k + c_2 (alpha_i^k)^2 + e^k
        e^k = (8 r d lam^2/beta) alpha_0^k alpha_i^{k-1} max{0, c_0 - 1/alpha_0^k + 1/alpha_i^{k-1}}

    where ``e^k`` is zero for ``k > k_0``. The paper's first line is ``V^0 (1 - c A)^(k+1) + (c_1 + A c_2)/c_0``; its
    proof has ``c_0`` for ``c``, reaches the exponent ``k``, and passes over the two cases of :func:`constants`.

    Parameters
    ----------
    k : array_like of int, shape (...)
        Indices, from ``constants.start``.
    constants : Constants
        From :func:`constants`.
    form : {"closed", "recursion"}
        Which of the two; the recursion takes a time proportional to the largest ``k``.

    Returns
    -------
    ndarray, shape (...)
        The bound at each ``k``.

    Examples
    --------
    >>> p = Problem(mu=[1, 1], L=[1, 1], delta=[1, 1], mu_0=1, L_0=1, lam=0.1, beta=0.5, c=0.25)
    >>> bound([0, 100, 10000], constants(p, v_start=2.0)).round(3).tolist()
    [17.4, 2.562, 0.026]

    References
    ----------
    eq:Vk-bound-app, eq:iter.
    """
    con = _kind(constants, "constants", Constants)
    index = _indices(k, "k", con.start)
    check_choice(form, "form", ("closed", "recursion"))
    problem = con.problem
    if form == "recursion":
        return np.asarray(_recursion(con, int(index.max(initial=con.start)))[index - con.start])
    n = index.astype(np.float64)
    # Clipped so that the branch not taken stays harmless: c (k-1) + m beta may be negative at k = 0.
    early = (1 - con.c_0 * con.floor) ** (n - con.start) * con.v_start
    early = early + problem.A**2 * con.c_2_capped / (con.c_0 * con.floor)
    late = con.C / (problem.c * (np.maximum(n, con.k_0 + 1) - 1) + problem.n_workers * problem.beta)
    return np.asarray(np.where(index <= con.k_0, early, late) + con.radius)


def ergodic_bound(k: ArrayLike, problem: Problem, *, v_start: float, form: str = "sum") -> Array:
    r"""Upper bound on the expected excess objective of the averaged iterates under O(1/sqrt(k)) step sizes.

    For ``xbar^k = sum_l alpha_0^l x^l / sum_l alpha_0^l``, ``l = 1..k``, the excess
    ``sum_i E F(xbar_i, xi_i) + f_0(xbar_0) - min`` is at most::

        c_1/2 + (V^1 + sum_l [c_m (alpha_0^l)^2 + c_w alpha_0^l alpha_i^l]) / (2 sum_l alpha_0^l)      "sum"
        c_1/2 + max{c + m beta, 1/A} (V^1 + (c_m + c_w) (1 + log k)/c^2) / (4 (sqrt(k+1) - 1))         "closed"

    ``c_1 = 18 d lam^2 q^2/mu_0``, ``c_m = 2 (4r+3q)^2 d lam^2``, ``c_w = 64 r d lam^2 + 4 sum_i delta_i^2``

    The paper's last line loses the constant term, has ``c + m beta`` under the fraction instead of above it, puts
    ``log(k+1)``, which is too small, for the harmonic sum, and leaves out the cap. Its radius ``m c_1`` holds, but
    ``c_1/2`` does too.

    Parameters
    ----------
    k : array_like of int, shape (...)
        Number of averaged iterates, from 1.
    problem : Problem
        With the square-root schedule.
    v_start : float
        ``V^1`` from :func:`lyapunov`.
    form : {"sum", "closed"}
        The sharp bound, or the one that shows the rate ``log k/sqrt(k)``.

    Returns
    -------
    ndarray, shape (...)
        The bound at each ``k``.

    Examples
    --------
    >>> p = Problem(mu=[1, 1], L=[1, 1], delta=[1, 1], mu_0=1, L_0=1, lam=0.1, beta=0.5, c=1.0, schedule="sqrt")
    >>> ergodic_bound([1, 100, 10000], p, v_start=2.0).round(3).tolist()
    [5.32, 0.95, 0.192]

    References
    ----------
    Appendix app:sqk, sqk-step4.
    """
    _kind(problem, "problem", Problem)
    if problem.schedule != "sqrt":
        raise ValueError(f"problem: expected the sqrt schedule, got {problem.schedule!r}")
    index = _indices(k, "k", 1)
    v_start = check_real(v_start, "v_start", low=0)
    check_choice(form, "form", ("sum", "closed"))
    r, q, m = problem.n_regular, problem.n_byzantine, problem.n_workers
    spread = problem.lam**2 * problem.dim
    c_1 = 18 * spread * q**2 / problem.mu_0
    c_m = 2 * (4 * r + 3 * q) ** 2 * spread
    c_w = 64 * r * spread + 4 * sum(x**2 for x in problem.delta)
    if form == "closed":
        n = index.astype(np.float64)
        slope = max(problem.c + m * problem.beta, 1 / problem.A)
        top = v_start + (c_m + c_w) / problem.c**2 * (1 + np.log(n))
        return np.asarray(c_1 / 2 + slope * top / (4 * (np.sqrt(n + 1) - 1)))
    alpha_0, alpha_i = step_sizes(np.arange(1, int(index.max(initial=1)) + 1), problem)
    noise = np.cumsum(c_m * alpha_0**2 + c_w * alpha_0 * alpha_i)
    value: Array = c_1 / 2 + (v_start + noise) / (2 * np.cumsum(alpha_0))
    return np.asarray(value[index - 1])


def _steps(t: Array, problem: Problem) -> tuple[Array, Array]:
    base = problem.c * t
    alpha_0 = np.minimum(1 / (base + problem.n_workers * problem.beta), problem.A)
    return np.asarray(alpha_0), np.asarray(np.minimum(1 / (base + problem.beta), problem.A))


def _recursion(con: Constants, last: int) -> Array:
    problem = con.problem
    ks = np.arange(con.start, last)
    alpha_0, alpha_i = step_sizes(ks, problem)
    before = step_sizes(np.maximum(ks - 1, 0), problem)[1]
    dual = 8 * problem.n_regular * problem.dim * problem.lam**2 / problem.beta
    # Exactly zero once nothing is capped; rounding of the reciprocals would leave specks there.
    excess = np.where(ks <= con.k_0, np.maximum(0, con.c_0 - 1 / alpha_0 + 1 / before), 0)
    shrink = 1 - con.c_0 * alpha_0
    add = con.c_1 * alpha_0 + con.c_2 * alpha_i**2 + dual * alpha_0 * before * excess
    value = np.empty(last - con.start + 1)
    value[0] = con.v_start
    for j in range(ks.size):
        value[j + 1] = shrink[j] * value[j] + add[j]
    return value


def _kind(value: Any, name: str, kind: type) -> Any:
    if not isinstance(value, kind):
        raise TypeError(f"{name}: expected {kind.__name__}, got {type(value).__name__}")
    return value


def _reals(value: Any, name: str, *, strict: bool = False) -> tuple[float, ...]:
    if not isinstance(value, (Sequence, np.ndarray)) or isinstance(value, str) or len(np.shape(value)) != 1:
        raise TypeError(f"{name}: expected a sequence of real numbers, one per regular worker, got {value!r}")
    if len(value) == 0:
        raise ValueError(f"{name}: expected at least one regular worker, got none")
    return tuple(check_real(x, f"{name}[{i}]", low=0, strict=strict) for i, x in enumerate(value))


def _indices(value: ArrayLike, name: str, low: int) -> NDArray[np.int64]:
    index = np.asarray(value)
    if index.dtype.kind not in "iu":
        raise TypeError(f"{name}: expected integers, got {index.dtype}")
    if index.size and index.min() < low:
        raise ValueError(f"{name}: expected integers >= {low}, got {index.min()}")
    return index.astype(np.int64)


def _array(value: ArrayLike, name: str, shape: tuple[Any, ...]) -> Array:
    """Return a finite float64 array of that shape; a letter fits any positive extent, a leading ``...`` any axes."""
    try:
        array = np.asarray(value)
    except ValueError as error:  # ragged
        raise ValueError(f"{name}: expected an array, got rows of different lengths") from error
    if array.dtype.kind not in "fiu":
        raise TypeError(f"{name}: expected real numbers, got {array.dtype}")
    tail = shape[1:] if shape[0] is Ellipsis else shape
    got = array.shape[array.ndim - len(tail) :] if shape[0] is Ellipsis and array.ndim >= len(tail) else array.shape
    if len(got) != len(tail) or any(g == 0 if isinstance(e, str) else e != g for e, g in zip(tail, got, strict=True)):
        wanted = ", ".join("..." if e is Ellipsis else str(e) for e in shape)
        raise ValueError(f"{name}: expected shape ({wanted}{',' if len(shape) == 1 else ''}), got {array.shape}")
    if not np.isfinite(array).all():
        raise ValueError(f"{name}: expected finite numbers, got NaN or infinity")
    return array.astype(np.float64)
