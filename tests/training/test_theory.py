"""Theory: formulas by hand, messages, and measured runs against the bounds."""

from __future__ import annotations

import dataclasses
import doctest
import re
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from byzadmm import theory
from support.quadratics import ATTACKS, Measured, measure_quadratic, quadratic_problem

pytestmark = pytest.mark.slow

FIXED: dict[str, Any] = {"delta": [0.3, 0.3], "lam": 0.2}
A_EX, B_EX = [[0.5], [0.5]], [[1.0], [1.0]]


def example(**changes: Any) -> theory.Problem:
    """Return the example of the paper: r = 2, q = 1, d = 1."""
    given_: dict[str, Any] = {"mu": [0.5, 0.5], "L": [0.5, 0.5], "delta": [0.0, 0.0], "mu_0": 1.0, "L_0": 1.0}
    given_ |= {"lam": 0.5, "beta": 1.0, "c": 0.125, "n_byzantine": 1}
    return theory.Problem(**(given_ | changes))


def noisy(n_byzantine: int = 0, *, scale: float = 1.0, lam_factor: float = 1.05, **changes: Any) -> Any:
    """Return (problem, a, b, rho) of heterogeneous noisy quadratics."""
    a, b, rho = quadratic_problem()
    b = scale * b
    lam_0 = theory.lambda_0(theory.quadratic_solution(a, b, rho=rho)[1])
    given_: dict[str, Any] = {"mu": a.min(1), "L": a.max(1), "delta": [0.5] * 4, "mu_0": rho, "L_0": rho, "dim": 3}
    given_ |= {"lam": lam_factor * lam_0, "beta": 0.5, "c": 0.3, "n_byzantine": n_byzantine}
    return theory.Problem(**(given_ | changes)), a, b, rho


def slope(run: Measured, first: int) -> float:
    tail = run.k >= first
    return float(np.polyfit(np.log(run.k[tail]), np.log(run.v[tail]), 1)[0])


def test_docstring_examples() -> None:
    result = doctest.testmod(theory)
    assert result.attempted >= 12
    assert result.failed == 0


def test_lambda_0_of_the_example_is_a_quarter() -> None:
    x_star, gradients = theory.quadratic_solution(A_EX, B_EX, rho=1.0)
    assert x_star == pytest.approx([0.5])
    assert theory.lambda_0(gradients) == 0.25


def test_lambda_0_takes_the_largest_element_of_any_worker() -> None:
    assert theory.lambda_0([[1, -7, 2], [3, 3, 3]]) == 7.0


def test_quadratic_solution_is_stationary() -> None:
    a, b, rho = quadratic_problem(seed=5)
    x_star, gradients = theory.quadratic_solution(a, b, rho=rho)
    np.testing.assert_allclose(gradients.sum(0) + rho * x_star, 0, atol=1e-14)
    np.testing.assert_allclose(gradients, a * (x_star - b))


def test_constants_by_hand() -> None:
    # r = 2, q = 1, m = 3, d = 1, lam = 1/2: kappa_0 = 1/2, kappa_i = 1/4, A = 1/2.
    con = theory.constants(example(delta=[1.0, 2.0]), v_start=3.0)
    assert con.problem.cap == 0.5
    assert con.c_0 == 0.25
    assert con.c_1 == pytest.approx(9 * 0.25 / 0.5)
    c_2 = (2 * 11**2 + 128 + 16 * 2 * (1 + 8)) * 0.25 + 4 * 5
    assert con.c_2 == pytest.approx(c_2)
    assert con.c_2_capped == pytest.approx(c_2 + 8 * 2 * 0.25 * 0.25)
    assert con.k_0 == 9  # 1/(8/8 + 1) equals A, which is not below it
    slow = 9 / 8 + 3
    assert con.floor == pytest.approx(1 / slow)
    first = (slow / (9 / 8 + 1)) ** 2 * c_2 / 0.125
    second = slow * ((1 - 0.25 / slow) ** 10 * 3 + 0.25 * con.c_2_capped * slow / 0.25)
    np.testing.assert_allclose(con.C, max(first, second))
    assert con.radius == pytest.approx(con.c_1 / 0.25)
    assert dataclasses.is_dataclass(con)
    with pytest.raises(dataclasses.FrozenInstanceError):
        con.C = 0.0  # type: ignore[misc]


def test_c_0_can_come_from_the_duals() -> None:
    assert theory.constants(example(beta=0.01), v_start=1.0).c_0 == pytest.approx(0.125 + 2 * 0.01)


def test_C_can_come_from_the_start() -> None:
    con = theory.constants(example(), v_start=1e9)
    slow = 9 / 8 + 3
    np.testing.assert_allclose(con.C, slow * ((1 - 0.25 / slow) ** 10 * 1e9 + con.c_2_capped * slow))


@pytest.mark.parametrize("beta", [0.5, 1.9, 2.0, 2.5])
@pytest.mark.parametrize("c", [0.01, 0.1, 0.2])
def test_k_0_is_the_first_uncapped_index(beta: float, c: float) -> None:
    problem = example(beta=beta, c=c)
    con = theory.constants(problem, v_start=1.0)
    ks = np.arange(con.k_0 + 1)
    np.testing.assert_array_equal(1 / (c * ks + beta) < problem.A, ks == con.k_0)


def test_asymptotic_radius_grows_with_lam_and_q_squared() -> None:
    one = theory.constants(example(), v_start=1.0).radius
    assert theory.constants(example(lam=1.0), v_start=1.0).radius == pytest.approx(4 * one)
    assert theory.constants(example(n_byzantine=3), v_start=1.0).radius == pytest.approx(9 * one)
    assert theory.constants(example(n_byzantine=0), v_start=1.0).radius == 0.0
    con = theory.constants(example(), v_start=1.0)
    assert theory.bound(10**12, con) == pytest.approx(one, rel=1e-6)


def test_step_sizes() -> None:
    k = np.array([0, 3, 100])
    alpha_0, alpha_i = theory.step_sizes(k, example(cap=0.2))
    np.testing.assert_allclose(alpha_0, np.minimum(1 / (k / 8 + 3), 0.2))
    np.testing.assert_allclose(alpha_i, np.minimum(1 / (k / 8 + 1), 0.2))
    root = example(schedule="sqrt", c=2.0)
    assert root.cap == pytest.approx(min(1 / 4, 0.5 / (2 * 0.25 + 2 * 1 * 2)))
    alpha_0, alpha_i = theory.step_sizes(k, root)
    np.testing.assert_allclose(alpha_0, np.minimum(1 / (2 * np.sqrt(k) + 3), root.A))
    np.testing.assert_allclose(alpha_i, np.minimum(1 / (2 * np.sqrt(k) + 1), root.A))
    assert theory.step_sizes(5, root)[0].shape == ()


def test_bound_branches_by_hand() -> None:
    con = theory.constants(example(), v_start=50.0)
    early = (1 - con.c_0 * con.floor) ** 4 * 50 + 0.25 * con.c_2_capped / (con.c_0 * con.floor) + con.radius
    late = con.C / (10 / 8 + 3) + con.radius
    np.testing.assert_allclose(theory.bound([4, 11], con), [early, late])
    assert theory.bound(4, con).shape == ()
    assert theory.bound(np.zeros((0,), dtype=int), con, form="recursion").shape == (0,)


def test_recursion_by_hand() -> None:
    # k = 0: alpha_0 = 1/3, alpha_i = alpha_i^{-1} = 1/2, so the dual part shrinks by 1/(1/3) - 1/(1/2) = 1 > c_0.
    con = theory.constants(example(), v_start=50.0)
    first = (1 - con.c_0 / 3) * 50 + con.c_1 / 3 + con.c_2 / 4
    np.testing.assert_allclose(theory.bound([0, 1], con, form="recursion"), [50.0, first])
    # With both capped the dual part stays, and c_0 A of its largest value is added.
    flat = theory.constants(example(cap=0.1), v_start=50.0)
    first = (1 - flat.c_0 / 10) * 50 + flat.c_1 / 10 + flat.c_2_capped / 100
    assert theory.bound(1, flat, form="recursion") == pytest.approx(first)


@settings(max_examples=60, deadline=None, derandomize=True)
@given(
    mu=st.floats(0.1, 2),
    ratio=st.floats(1, 5),
    mu_0=st.floats(0.1, 2),
    beta=st.floats(0.01, 5),
    part=st.floats(0.05, 0.95),
    shrink=st.floats(0.1, 1),
    q=st.integers(0, 3),
    v=st.floats(0, 1e4),
    start=st.integers(0, 1),
)
def test_recursion_never_exceeds_the_closed_form(
    mu: float, ratio: float, mu_0: float, beta: float, part: float, shrink: float, q: int, v: float, start: int
) -> None:
    L = mu * ratio
    kappa = min(mu * L / (mu + L), mu_0 / 2)
    cap = shrink / max(mu + L, 2 * mu_0)
    problem = theory.Problem(
        **FIXED, mu=[mu] * 2, L=[L] * 2, mu_0=mu_0, L_0=mu_0, beta=beta, c=part * kappa, cap=cap, n_byzantine=q
    )
    con = theory.constants(problem, v_start=v, start=start)
    k = np.arange(start, start + 400)
    assert (theory.bound(k, con, form="recursion") <= theory.bound(k, con) * (1 + 1e-12)).all()


def test_lyapunov_of_both_schedules() -> None:
    x0, x, eta = np.array([1.0]), np.array([[2.0], [3.0]]), np.array([[0.1], [-0.2]])
    # k = 17: step sizes of k = 16 are 1/5 and 1/3.
    value = theory.lyapunov(17, example(), x0=x0, x=x, eta_prev=eta, x_star=[0.5], eta_star=[[0.25], [0.25]])
    assert value == pytest.approx(0.25 + 2.25 + 6.25 + 2 / 3 * (0.15**2 + 0.45**2))
    root = example(schedule="sqrt", c=4.0, cap=0.05)
    value = theory.lyapunov(17, root, x0=x0, x=x, eta_prev=eta, x_star=[0.5])
    alpha_0, alpha_i = 1 / 20, 1 / 20  # 1/(4*4 + 3) and 1/(4*4 + 1) are capped
    assert value == pytest.approx(0.25 + alpha_0 / alpha_i * 8.5 + 2 * alpha_0 * 0.05)
    value = theory.lyapunov(101, root, x0=x0, x=x, eta_prev=eta, x_star=[0.5])
    assert value == pytest.approx(0.25 + 41 / 43 * 8.5 + 2 / 43 * 0.05)


def test_lyapunov_takes_many_states_and_leaves_them_alone() -> None:
    rng = np.random.default_rng(0)
    x0, x, eta = rng.normal(size=(5, 4, 1)), rng.normal(size=(5, 4, 2, 1)), rng.normal(size=(5, 4, 2, 1))
    kept = x0.copy(), x.copy(), eta.copy()
    rest: dict[str, Any] = {"x_star": [0.5], "eta_star": [[0.25], [0.25]]}
    many = theory.lyapunov(3, example(), x0=x0, x=x, eta_prev=eta, **rest)
    one = theory.lyapunov(3, example(), x0=x0[2, 1], x=x[2, 1], eta_prev=eta[2, 1], **rest)
    assert many.shape == (5, 4)
    assert many[2, 1] == pytest.approx(float(one))
    for now, before in zip((x0, x, eta), kept, strict=True):
        np.testing.assert_array_equal(now, before)


@pytest.mark.parametrize(("q", "attack"), [(0, "constant"), *((q, name) for q in (1, 2) for name in ATTACKS)])
def test_measured_v_is_under_the_bound(q: int, attack: str) -> None:
    problem, a, b, rho = noisy(q)
    run = measure_quadratic(problem, a, b, rho=rho, attack=attack, iterations=2000)
    con = theory.constants(problem, v_start=float(run.v[0]))
    closed = theory.bound(run.k, con)
    recursion = theory.bound(run.k, con, form="recursion")
    assert run.k[-1] == 2000
    assert (run.v <= recursion).all()
    assert (recursion <= closed * (1 + 1e-12)).all()
    if q == 0:
        assert slope(run, 500) == pytest.approx(-1, abs=0.1)
        assert np.polyfit(np.log(run.k[500:]), np.log(closed[500:]), 1)[0] == pytest.approx(-1, abs=0.05)
    if attack == "constant" and q:
        # A constant push leaves a neighbourhood of the size (lam q)^2, not zero.
        assert abs(slope(run, 500)) < 0.1
        assert 0.1 < run.v[-1] / (problem.lam * q) ** 2 < con.radius / (problem.lam * q) ** 2


def test_indices_from_one_shift_the_bound() -> None:
    problem, a, b, rho = noisy(1)
    run = measure_quadratic(problem, a, b, rho=rho, iterations=300, seeds=50, start=1)
    con = theory.constants(problem, v_start=float(run.v[0]), start=1)
    assert run.k[0] == 1
    for form in ("closed", "recursion"):
        assert (run.v <= theory.bound(run.k, con, form=form)).all()


def small_noise(delta: float) -> theory.Problem:
    worker: dict[str, Any] = {"mu": [0.9] * 4, "L": [1.1] * 4, "delta": [delta] * 4}
    return theory.Problem(**worker, mu_0=1, L_0=1, lam=1e-3, beta=0.05, c=0.3, dim=3)


def test_bound_is_not_vacuous_where_noise_decides() -> None:
    rng = np.random.default_rng(3)
    a, b = rng.uniform(0.9, 1.1, (4, 3)), 5e-4 * rng.standard_normal((4, 3))
    assert theory.lambda_0(theory.quadratic_solution(a, b, rho=1.0)[1]) <= 1e-3
    run = measure_quadratic(small_noise(1.0), a, b, rho=1.0, iterations=2000)
    right = theory.constants(small_noise(1.0), v_start=float(run.v[0]))
    ratio = theory.bound(run.k, right, form="recursion") / run.v
    assert (ratio >= 1).all()
    assert ratio.max() < 60
    # A tenth of the true noise level in the formula, and the run breaks the bound: it does depend on delta^2.
    wrong = theory.constants(small_noise(0.1), v_start=float(run.v[0]))
    assert (theory.bound(run.k[1:], wrong) < run.v[1:]).all()


def test_penalty_below_lambda_0_breaks_the_bound() -> None:
    problem, a, b, rho = noisy(scale=20, lam_factor=0.01)
    run = measure_quadratic(problem, a, b, rho=rho, iterations=2000, seeds=20)
    con = theory.constants(problem, v_start=float(run.v[0]))
    assert run.v[-1] > 50 * theory.bound(2000, con)


def test_duals_outside_the_range_break_the_bound() -> None:
    problem, a, b, rho = noisy(2)
    run = measure_quadratic(problem, a, b, rho=rho, iterations=1000, seeds=20, attack_scale=50.0)
    con = theory.constants(problem, v_start=float(run.v[0]))
    assert run.v[-1] > 10 * theory.bound(1000, con)


def printed_early(con: theory.Constants, v_start: float, k: np.ndarray[Any, Any]) -> Any:
    """Return the bound of the paper for k <= k_0, as printed."""
    p = con.problem
    return v_start * (1 - p.c * p.A) ** (k + 1) + (con.c_1 + p.A * con.c_2) / con.c_0


def test_printed_early_bound_fails_for_a_slow_master() -> None:
    # m beta is far above 1/A, so the master moves much slower than A suggests. The workers start at the solution.
    r = 40
    a, b = np.ones((r, 1)), np.zeros((r, 1))
    problem = theory.Problem(mu=[1] * r, L=[1] * r, delta=[0] * r, mu_0=1, L_0=1, lam=0.01, beta=1, c=0.25)
    run = measure_quadratic(problem, a, b, rho=1.0, iterations=40, seeds=1, x0_init=1e4)
    v_start = float(run.v[0])
    con = theory.constants(problem, v_start=v_start, start_gap=run.gap)
    early = run.k[: con.k_0 + 1]
    assert con.k_0 == 5
    assert (run.v[early] > printed_early(con, v_start, early)).all()
    for form in ("closed", "recursion"):
        assert (run.v <= theory.bound(run.k, con, form=form)).all()


def test_printed_early_recursion_fails_where_duals_do_not_shrink() -> None:
    # Both step sizes are capped and beta is small: V is nearly all duals, and those barely move.
    a, b = np.ones((2, 1)), np.array([[1.0], [-1.0]])
    _, gradients = theory.quadratic_solution(a, b, rho=1.0)
    problem = theory.Problem(mu=[1, 1], L=[1, 1], delta=[0, 0], mu_0=1, L_0=1, lam=1, beta=1e-3, c=0.25, lam_0=1)
    run = measure_quadratic(problem, a, b, rho=1.0, iterations=200, seeds=1, eta_init=gradients)
    con = theory.constants(problem, v_start=float(run.v[0]))
    assert run.v[1] > run.v[0] * (1 - con.c_0 * problem.A) + problem.A**2 * con.c_2
    for form in ("closed", "recursion"):
        assert (run.v <= theory.bound(run.k, con, form=form)).all()


@pytest.mark.parametrize("seed", range(12))
def test_every_step_obeys_the_recursion(seed: int) -> None:
    # Without noise eq:iter is a statement about each step. A start far away makes the contraction the deciding part.
    rng = np.random.default_rng(seed)
    a, b, rho = quadratic_problem(seed=seed)
    lam = theory.lambda_0(theory.quadratic_solution(a, b, rho=rho)[1])
    kappa = (a.min() * a.max()) / (a.min() + a.max())
    problem = theory.Problem(
        mu=a.min(1),
        L=a.max(1),
        delta=[0] * 4,
        mu_0=rho,
        L_0=rho,
        lam=lam,
        beta=float(10 ** rng.uniform(-2, 1)),
        c=float(rng.uniform(0.1, 0.9)) * min(kappa, rho / 2),
        n_byzantine=seed % 3,
        dim=3,
    )
    far = float(10 ** rng.uniform(0, 5))
    attack = list(ATTACKS)[seed % 3]
    run = measure_quadratic(problem, a, b, rho=rho, attack=attack, iterations=200, seeds=1, x0_init=far, x_init=far)
    con = theory.constants(problem, v_start=float(run.v[0]))
    alpha_0, alpha_i = theory.step_sizes(run.k[:-1], problem)
    late = run.k[:-1] > con.k_0
    step = (1 - con.c_0 * alpha_0) * run.v[:-1] + con.c_1 * alpha_0
    step += np.where(late, con.c_2 * alpha_i**2, con.c_2_capped * problem.A**2)
    assert (run.v[1:] <= step).all()


def test_start_gap_covers_the_first_step() -> None:
    con = theory.constants(example(), v_start=1.0, start_gap=2.0)
    assert con.v_start == pytest.approx(1 + 4 * 0.5 / 3 * 2 / (1 - 0.25 / 3))


@pytest.mark.parametrize("attack", ATTACKS)
def test_the_example_with_the_steps_of_the_theorem(attack: str) -> None:
    problem = example(lam_0=0.25)
    run = measure_quadratic(problem, np.array(A_EX), np.array(B_EX), rho=1.0, attack=attack, seeds=1, x_init=1.0)
    con = theory.constants(problem, v_start=float(run.v[0]), start_gap=run.gap)
    assert run.gap == 2.0
    assert (run.v <= theory.bound(run.k, con, form="recursion")).all()


def test_ergodic_bound_by_hand() -> None:
    problem = example(schedule="sqrt", c=1.0, delta=[1.0, 2.0])
    alpha = [theory.step_sizes(k, problem) for k in (1, 2, 3)]
    c_m, c_w = 2 * 11**2 * 0.25, 128 * 0.25 + 4 * 5
    top = 7 + sum(c_m * a0**2 + c_w * a0 * ai for a0, ai in alpha)
    sharp = 18 * 0.25 / 2 + top / (2 * sum(a0 for a0, _ in alpha))
    assert theory.ergodic_bound(3, problem, v_start=7.0) == pytest.approx(sharp)
    slope_ = max(1 + 3, 1 / problem.A)
    closed = 18 * 0.25 / 2 + slope_ * (7 + (c_m + c_w) * (1 + np.log(3))) / (4 * (2 - 1))
    assert theory.ergodic_bound(3, problem, v_start=7.0, form="closed") == pytest.approx(closed)


@pytest.mark.parametrize("cap", [None, 1e-3])
@pytest.mark.parametrize("c", [0.05, 1.0, 20.0])
def test_ergodic_sum_is_under_the_closed_form(c: float, cap: float | None) -> None:
    problem = example(schedule="sqrt", c=c, cap=cap)
    k = np.arange(1, 20001)
    sharp, closed = (theory.ergodic_bound(k, problem, v_start=3.0, form=form) for form in ("sum", "closed"))
    assert (sharp <= closed).all()


@pytest.mark.parametrize(("q", "attack"), [(0, "constant"), *((2, name) for name in ATTACKS)])
def test_measured_excess_is_under_the_ergodic_bound(q: int, attack: str) -> None:
    problem, a, b, rho = noisy(q, schedule="sqrt", c=1.0)
    run = measure_quadratic(problem, a, b, rho=rho, attack=attack, iterations=2000)
    assert (run.excess[1:] <= theory.ergodic_bound(run.k[1:], problem, v_start=float(run.v[1]))).all()


def test_ergodic_bound_breaks_when_duals_leave_the_range() -> None:
    problem, a, b, rho = noisy(2, schedule="sqrt", c=1.0)
    run = measure_quadratic(problem, a, b, rho=rho, iterations=2000, seeds=20, attack_scale=50.0)
    assert run.excess[-1] > theory.ergodic_bound(2000, problem, v_start=float(run.v[1]))


@pytest.mark.parametrize(
    ("changes", "kind", "message"),
    [
        ({"mu": 0.5}, TypeError, "mu: expected a sequence of real numbers, one per regular worker, got 0.5"),
        ({"mu": "ab"}, TypeError, "mu: expected a sequence of real numbers, one per regular worker, got 'ab'"),
        ({"delta": np.ones((2, 1))}, TypeError, "delta: expected a sequence of real numbers"),
        ({"mu": []}, ValueError, "mu: expected at least one regular worker, got none"),
        ({"mu": [0.5, 0.0]}, ValueError, "mu[1]: expected a finite number > 0, got 0.0"),
        ({"mu": [0.5, "x"]}, TypeError, "mu[1]: expected a real number, got str"),
        ({"delta": [-1.0, 0]}, ValueError, "delta[0]: expected a finite number >= 0, got -1.0"),
        ({"L": [0.5]}, ValueError, "L: expected shape (2,), got (1,)"),
        ({"delta": [0, 0, 0]}, ValueError, "delta: expected shape (2,), got (3,)"),
        ({"L": [0.5, 0.4]}, ValueError, "L[1]: expected at least the strong convexity constant 0.5, got 0.4"),
        ({"L_0": 0.4}, ValueError, "L_0: expected at least the strong convexity constant 1.0, got 0.4"),
        ({"mu_0": 0}, ValueError, "mu_0: expected a finite number > 0, got 0.0"),
        ({"lam": float("nan")}, ValueError, "lam: expected a finite number > 0, got nan"),
        ({"beta": "1"}, TypeError, "beta: expected a real number, got str"),
        ({"lam_0": -1}, ValueError, "lam_0: expected a finite number >= 0, got -1.0"),
        ({"lam_0": 0.6}, ValueError, "lam: expected at least lambda_0 = 0.6, got 0.5"),
        ({"c": 0.25}, ValueError, "c: expected less than min mu L/(mu + L) = 0.25, got 0.25"),
        ({"cap": 0.6}, ValueError, "cap: expected at most 0.5, got 0.6"),
        ({"cap": 0}, ValueError, "cap: expected a finite number > 0, got 0.0"),
        ({"cap": 0.26, "schedule": "sqrt"}, ValueError, "cap: expected at most 0.25, got 0.26"),
        ({"n_byzantine": -1}, ValueError, "n_byzantine: expected an integer >= 0, got -1"),
        ({"dim": 1.5}, TypeError, "dim: expected an integer, got float"),
        ({"schedule": "log"}, ValueError, "schedule: expected one of linear, sqrt; got 'log'"),
    ],
)
def test_problem_messages(changes: dict[str, Any], kind: type[Exception], message: str) -> None:
    with pytest.raises(kind, match=re.escape(message)):
        example(**changes)


STATE: dict[str, Any] = {"x0": [0.0], "x": [[1.0], [1.0]], "eta_prev": [[0.0], [0.0]], "x_star": [0.5]}
STATE |= {"eta_star": [[0.2], [0.2]]}


@pytest.mark.parametrize(
    ("changes", "kind", "message"),
    [
        ({"x0": 0.0}, ValueError, "x0: expected shape (..., 1), got ()"),
        ({"x0": [0.0, 1.0]}, ValueError, "x0: expected shape (..., 1), got (2,)"),
        ({"x": [[1.0]]}, ValueError, "x: expected shape (2, 1), got (1, 1)"),
        ({"eta_prev": [1.0, 1.0]}, ValueError, "eta_prev: expected shape (2, 1), got (2,)"),
        ({"eta_prev": [[1.0], [np.nan]]}, ValueError, "eta_prev: expected finite numbers, got NaN or infinity"),
        ({"x_star": [[0.5]]}, ValueError, "x_star: expected shape (1,), got (1, 1)"),
        ({"x_star": ["a"]}, TypeError, "x_star: expected real numbers, got <U1"),
        ({"eta_star": None}, TypeError, "eta_star: expected an array of shape (2, 1) for the linear schedule"),
        ({"eta_star": [[1.0], [1.0, 2.0]]}, ValueError, "eta_star: expected an array, got rows of different lengths"),
    ],
)
def test_lyapunov_messages(changes: dict[str, Any], kind: type[Exception], message: str) -> None:
    with pytest.raises(kind, match=re.escape(message)):
        theory.lyapunov(1, example(), **(STATE | changes))


def test_other_messages() -> None:
    problem, root = example(), example(schedule="sqrt", c=1.0)
    con = theory.constants(problem, v_start=1.0)
    wrong: Any = "x"
    cases: list[tuple[Any, type[Exception], str]] = [
        (lambda: theory.lambda_0([1.0, 2.0]), ValueError, "gradients: expected shape (r, d), got (2,)"),
        (lambda: theory.lambda_0([]), ValueError, "gradients: expected shape (r, d), got (0,)"),
        (lambda: theory.lambda_0(np.zeros((0, 3))), ValueError, "gradients: expected shape (r, d), got (0, 3)"),
        (
            lambda: theory.quadratic_solution([[0.0]], [[1.0]], rho=1),
            ValueError,
            "a: expected positive numbers, got 0.0",
        ),
        (
            lambda: theory.quadratic_solution([[1.0]], [[1.0, 2.0]], rho=1),
            ValueError,
            "b: expected shape (1, 1), got (1, 2)",
        ),
        (
            lambda: theory.quadratic_solution([[1.0]], [[1.0]], rho=0),
            ValueError,
            "rho: expected a finite number > 0, got 0.0",
        ),
        (lambda: theory.step_sizes(0.5, problem), TypeError, "k: expected integers, got float64"),
        (lambda: theory.step_sizes([3, -1], problem), ValueError, "k: expected integers >= 0, got -1"),
        (lambda: theory.step_sizes(0, wrong), TypeError, "problem: expected Problem, got str"),
        (lambda: theory.lyapunov(-1, problem, **STATE), ValueError, "k: expected an integer >= 0, got -1"),
        (lambda: theory.lyapunov(0, wrong, **STATE), TypeError, "problem: expected Problem, got str"),
        (lambda: theory.constants(wrong, v_start=1), TypeError, "problem: expected Problem, got str"),
        (lambda: theory.constants(root, v_start=1), ValueError, "problem: expected the linear schedule, got 'sqrt'"),
        (lambda: theory.constants(problem, v_start=-1), ValueError, "v_start: expected a finite number >= 0, got -1.0"),
        (
            lambda: theory.constants(problem, v_start=1, start=2),
            ValueError,
            "start: expected an integer in [0, 1], got 2",
        ),
        (
            lambda: theory.constants(problem, v_start=1, start_gap=-1),
            ValueError,
            "start_gap: expected a finite number >= 0",
        ),
        (lambda: theory.bound(1, wrong), TypeError, "constants: expected Constants, got str"),
        (lambda: theory.bound(1, con, form="open"), ValueError, "form: expected one of closed, recursion; got 'open'"),
        (lambda: theory.bound(0, dataclasses.replace(con, start=1)), ValueError, "k: expected integers >= 1, got 0"),
        (lambda: theory.ergodic_bound(1, wrong, v_start=1), TypeError, "problem: expected Problem, got str"),
        (
            lambda: theory.ergodic_bound(1, problem, v_start=1),
            ValueError,
            "problem: expected the sqrt schedule, got 'linear'",
        ),
        (lambda: theory.ergodic_bound(0, root, v_start=1), ValueError, "k: expected integers >= 1, got 0"),
        (
            lambda: theory.ergodic_bound(1, root, v_start=1, form="x"),
            ValueError,
            "form: expected one of sum, closed; got 'x'",
        ),
    ]
    for call, kind, message in cases:
        with pytest.raises(kind, match=re.escape(message)):
            call()
    alone = example(mu=[0.5], L=[0.5], delta=[0], n_byzantine=0)
    with pytest.raises(ValueError, match="problem: expected at least 2 workers, got 1"):
        theory.constants(alone, v_start=1.0)
