"""Sign-flipping: the limits of ADMM and RSA and the speed of the medians are those that theory says."""

from __future__ import annotations

import re
from typing import Any

import numpy as np
import pytest

from byzadmm import RSA, SGD, losses, steps, theory
from support.quadratics import flipped, penalized, shared_quadratic

M, RHO = 20, 0.1
CENTERS = np.array([1.0, -0.6, 0.3, -0.1])
ONES = [[1.0], [1.0], [1.0]]


def problem(q: int) -> tuple[losses.Quadratic, Any, Any]:
    """A loss whose workers differ a little, and the curvatures and centers of the regular ones."""
    rng = np.random.default_rng(q)
    a = rng.uniform(0.95, 1.05, (M, CENTERS.size))
    b = CENTERS + rng.uniform(-0.01, 0.01, a.shape)
    return losses.Quadratic(a, b), a[: M - q], b[: M - q]


def soft_threshold(a: Any, b: Any, weight: float, rho: float) -> Any:
    """Minimizer of ``mean F + weight |x| + rho/(2r) x^2``, written out."""
    c = (a * b).mean(0)
    return np.sign(c) * np.maximum(np.abs(c) - weight, 0) / (a.mean(0) + rho / len(a))


@pytest.mark.parametrize("q", [8, 4])
@pytest.mark.parametrize("lam", [0.2, 0.6])
def test_the_limit_is_shifted_by_q_over_r_lam_whatever_the_strength(q: int, lam: float) -> None:
    loss, a, b = problem(q)
    r = M - q
    want = theory.sign_flip_solution(a, b, lam=lam, n_byzantine=q, rho=RHO)
    np.testing.assert_allclose(want, soft_threshold(a, b, q / r * lam, RHO), atol=1e-15)
    assert (np.abs(a * (b - want)) < lam).all(), "a regular dual is clipped: no consensus"
    unbiased = soft_threshold(a, b, 0, RHO)
    shift = np.minimum(q / r * lam / (a.mean(0) + RHO / r), np.abs(unbiased))
    np.testing.assert_allclose(np.abs(want - unbiased), shift, atol=1e-15)
    for name, (algorithm, iterations, tolerance) in penalized(lam).items():
        # Neither another weight nor none would pass: the tolerance is a small part of the difference.
        for other in (0, q / M * lam, lam):
            gap = np.abs(soft_threshold(a, b, other, RHO) - want).max()
            assert gap > 10 * tolerance, (name, other)
        for scale in (-1.0, -10.0):
            x0 = flipped(algorithm, loss, q=q, scale=scale, rho=RHO, iterations=iterations).x0
            np.testing.assert_allclose(x0, want, rtol=0, atol=tolerance, err_msg=f"{name}, scale {scale}")
            np.testing.assert_allclose(
                np.abs(x0 - unbiased), shift, rtol=0, atol=tolerance, err_msg=f"{name}, scale {scale}"
            )


def test_some_coordinates_end_at_zero() -> None:
    _, a, b = problem(8)
    limit = theory.sign_flip_solution(a, b, lam=0.6, n_byzantine=8, rho=RHO)
    assert (limit == 0).tolist() == [False, False, True, True]


def test_the_limit_outside_of_consensus() -> None:
    # The workers differ by more than lam (1 - q/r): some regular duals are clipped, and x0 is not the soft threshold.
    rng = np.random.default_rng(1)
    b = 1 + 0.4 * rng.standard_normal((M, 3))
    a, q, lam = np.ones_like(b), 8, 0.3
    regular = a[: M - q], b[: M - q]
    want = theory.sign_flip_solution(*regular, lam=lam, n_byzantine=q, rho=RHO)
    assert (np.abs(b[: M - q] - want) > lam).any(0).all()
    assert np.abs(want - soft_threshold(*regular, q / (M - q) * lam, RHO)).max() > 0.05
    for name, (algorithm, iterations, tolerance) in penalized(lam).items():
        x0 = flipped(algorithm, losses.Quadratic(a, b), q=q, scale=-3.0, rho=RHO, iterations=iterations).x0
        np.testing.assert_allclose(x0, want, rtol=0, atol=tolerance, err_msg=name)


def test_a_small_penalty_leads_to_the_quantile() -> None:
    # 12 regular workers, 8 Byzantine: two of the regular ones below x0, ten above, counted from zero.
    b = np.linspace(1, 2, 12)[:, None] * [1, -1]
    limit = theory.sign_flip_solution(np.ones_like(b), b, lam=1e-6, n_byzantine=8)
    np.testing.assert_allclose(limit, [b[1, 0], b[1, 1]], atol=2e-6)
    assert theory.sign_flip_solution(ONES, [[1.0], [2.0], [3.0]], lam=1e-6, n_byzantine=0) == pytest.approx(2)


def test_noise_adds_its_share_to_the_shift_of_rsa() -> None:
    # Copies of spread sigma about b - (q/r) lam; x0 is their 1/6 quantile, 0.967 sigma below.
    q, lam, step, dim, b = 8, 0.02, 0.3, 400, 3.0
    algorithm = RSA(lam=lam, master_step=steps.constant(0.1 * step / (M * lam)), worker_step=steps.constant(step))
    loss = shared_quadratic(b, dim=dim, noise=1.0)
    start = {"x0_init": np.full(dim, b), "x_init": np.full((M, dim), b)}
    run = flipped(algorithm, loss, q=q, scale=-3.0, iterations=900, eval_every=30, **start)
    assert run.trajectory is not None
    x0, x = (run.trajectory[key][run.iterations >= 450] for key in ("x0", "x"))
    assert (x[:, : M - q] < x0[:, None]).mean() == pytest.approx(1 / 6, abs=0.01)
    assert b - x0.mean() == pytest.approx(8 / 12 * lam + 0.967 * (step / (2 - step)) ** 0.5, rel=0.03)


def test_solution_is_stationary() -> None:
    rng = np.random.default_rng(0)
    for case in range(200):
        r, q, d = rng.integers(1, 14), int(rng.integers(0, 14)), 5
        a, b = rng.uniform(0.2, 3, (r, d)), rng.normal(rng.standard_normal(), 10 ** rng.uniform(-2, 1), (r, d))
        lam, rho = 10 ** rng.uniform(-2, 1), float(rng.choice([0, 0.1, 1]))
        x = theory.sign_flip_solution(a, b, lam=lam, n_byzantine=q, rho=rho)
        rest = np.clip(a * (b - x), -lam, lam).sum(0) - rho * x
        held = np.where(x == 0, np.maximum(np.abs(rest) - q * lam, 0), rest - q * lam * np.sign(x))
        assert np.abs(held).max() < 1e-8 * lam, (case, held)


@pytest.mark.parametrize("rule", ["geometric_median", "median"])
def test_medians_slow_down_and_reach_the_optimum(rule: str) -> None:
    q, dim, b, step = 8, 300, 0.2, 0.08
    algorithm = SGD(rule=rule, step=steps.constant(step))
    for scale in (-1.0, -3.0):
        # Runs to b and to -b with the same noise: half their difference is nearly free of it.
        near, far = (
            flipped(algorithm, shared_quadratic(c, dim=dim, noise=1.0), q=q, scale=scale, iterations=300, eval_every=25)
            for c in (b, -b)
        )
        assert near.trajectory is not None
        assert far.trajectory is not None
        half = (near.trajectory["x0"] - far.trajectory["x0"]).mean(1) / 2
        want = theory.sign_flip_speed(M - q, q, scale=scale)
        speed = (1 - (1 - half[1] / b) ** (1 / 25)) / step
        assert speed == pytest.approx(want, abs=0.025), scale
        # All that is left of the start after 300 steps, at that speed; a bias towards zero would stay.
        assert half[-1] == pytest.approx(b, rel=2 * (1 - step * want) ** 300), scale
        ends = near.trajectory["x0"][-1]
        assert abs(ends.mean() - b) < 4 * ends.std() / dim**0.5, scale


def test_speed_by_hand() -> None:
    assert theory.sign_flip_speed(12, 8) == pytest.approx(4 / (12 + 8 / 3))
    assert theory.sign_flip_speed(5, 0, scale=-7) == 1
    assert theory.sign_flip_speed(3, 2, scale=-1) == pytest.approx(1 / 5)


@pytest.mark.parametrize(
    ("call", "kind", "message"),
    [
        (lambda: theory.sign_flip_speed(12, 8, scale=3), ValueError, "scale: expected a number < 0, got 3.0"),
        (lambda: theory.sign_flip_speed(0, 8), ValueError, "n_regular: expected an integer >= 1, got 0"),
        (
            lambda: theory.sign_flip_solution([[0.0]], [[1.0]], lam=1, n_byzantine=1),
            ValueError,
            "a: expected positive numbers, got 0.0",
        ),
        (
            lambda: theory.sign_flip_solution(ONES, [[1.0]], lam=1, n_byzantine=1),
            ValueError,
            "b: expected shape (3, 1), got (1, 1)",
        ),
        (
            lambda: theory.sign_flip_solution(ONES, ONES, lam=0, n_byzantine=1),
            ValueError,
            "lam: expected a finite number > 0, got 0.0",
        ),
        (
            lambda: theory.sign_flip_solution(ONES, ONES, lam=1, n_byzantine=-1),
            ValueError,
            "n_byzantine: expected an integer >= 0, got -1",
        ),
    ],
)
def test_messages(call: Any, kind: type[Exception], message: str) -> None:
    with pytest.raises(kind, match=re.escape(message)):
        call()
