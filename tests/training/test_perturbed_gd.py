"""Perturbed gradient descent: the saddle-point attack, its trials, and rest."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest

from byzadmm import SGD, PerturbedGD, aggregators, attacks, datasets, losses, partition, simulate, steps
from support.arrays import same_bits
from support.runs import M, Q, experiment, quadratic

Array = npt.NDArray[Any]

BYZANTINE = [0, 1]
STEP = steps.constant(0.2)


class Saddle:
    """``x^2/2 - y^2/2 + y^4/4``, three regular workers with slopes in y that are off by -0.1, 0 and 0.1."""

    dim, n_workers = 2, 5
    off = (0.0, 0.0, -0.1, 0.0, 0.1)

    def full_gradient(self, x: Array, *, worker: int) -> Array:
        return np.array([x[0], x[1] ** 3 - x[1] + self.off[worker]])

    def gradient(self, x: Array, *, worker: int, k: int) -> Array:
        return self.full_gradient(x, worker=worker)


def flatten(
    messages: Array, *, x0: Array, k: int, byzantine: Sequence[int], rng: np.random.Generator, algorithm: Any
) -> Array:
    """Zero in y where the slope is at most 0.1, so that the median is zero there; elsewhere a pull toward it."""
    slope = x0[1] ** 3 - x0[1]
    forged = np.full((2, 2), x0[0])
    forged[:, 1] = 0.0 if abs(slope) <= 0.1 else -np.sign(slope) * 1e3
    return forged


def settings(**changes: Any) -> PerturbedGD:
    given: dict[str, Any] = {"rule": "median", "step": STEP, "eps": 0.02, "radius": 0.4, "escape": 0.25}
    return PerturbedGD(**(given | {"rounds": 8, "length": 60} | changes))


@pytest.mark.slow
def test_the_saddle_point_attack() -> None:
    """A feigned minimum holds gradient descent for ever; perturbed descent leaves it for a true one, for every seed."""
    given: dict[str, Any] = {"loss": Saddle(), "attack": flatten, "byzantine": BYZANTINE, "rho": 0.0}
    given |= {"dtype": "float64", "iterations": 250, "eval_every": 1, "record": "trajectory"}
    for seed in range(20):
        start = (1.0, 0.05 * (seed % 2))
        if seed < 2:
            assert simulate(None, None, algorithm=SGD("median", STEP), x0_init=start, **given).x0[1] == start[1]
        run = simulate(None, None, algorithm=settings(), x0_init=start, seed=seed, **given)
        assert run.trajectory is not None
        x0 = run.trajectory["x0"]
        still = np.flatnonzero(np.all(x0[1:] == x0[:-1], axis=1))  # during trials; after an escape it is on its way
        assert 0.88 < abs(x0[still[-1]][1]) < 1.08, f"{start} seed {seed}: {x0[still[-1]]}"


def test_trials_are_uniform_in_the_ball() -> None:
    """In d dimensions the share of draws within t radius is t^d, and no direction is preferred."""
    run = experiment(loss=quadratic(dim=3), algorithm=settings(radius=2.0))
    pgd, state = settings(radius=2.0), {"x0": np.full(3, 5.0)}
    state |= pgd.master_state(run)
    points = []
    for k in range(4000):
        pgd._try(run, state, 1, k)
        points.append(state["drawn"] - 5.0)
    assert same_bits(state["drawn"], state["trial"])
    drawn = np.array(points)
    away = np.linalg.norm(drawn, axis=1) / 2.0
    assert away.max() < 1
    for t in (0.3, 0.6, 0.9):
        assert abs(np.mean(away <= t) - t**3) < 4 * np.sqrt(t**3 * (1 - t**3) / 4000), t
    deviation = 2.0 * np.sqrt(1 / 5)  # of a coordinate: radius / sqrt(d + 2)
    assert np.abs(drawn.mean(axis=0)).max() < 4 * deviation / np.sqrt(4000)
    np.testing.assert_allclose(drawn.std(axis=0), deviation, rtol=0.05)


class Watched:
    """A convex loss that remembers where it was asked."""

    dim, n_workers = 2, 3

    def __init__(self) -> None:
        self.asked: list[Array] = []

    def full_gradient(self, x: Array, *, worker: int) -> Array:
        if worker == 0:
            self.asked.append(x)
        return np.asarray(x - 1.0)

    def gradient(self, x: Array, *, worker: int, k: int) -> Array:
        return self.full_gradient(x, worker=worker)


def test_without_an_escape_it_rests() -> None:
    """One exchange finds the gradient small, three trials of four follow, and the model has not moved."""
    loss, start = Watched(), np.array([1.0, 1.0])
    pgd = settings(rule="mean", escape=1.0, rounds=3, length=4)
    run = simulate(None, None, loss=loss, algorithm=pgd, x0_init=start, rho=0.0, dtype="float64", iterations=20,
                   record="trajectory", eval_every=1)  # fmt: skip
    trajectory = run.trajectory
    assert trajectory is not None
    assert np.all(trajectory["x0"] == start)
    at_rest = [bool(np.all(x == start)) for x in loss.asked]
    assert at_rest == [True] + 12 * [False] + 7 * [True]
    for trial in range(3):  # each descends from a draw of its own
        away = [np.linalg.norm(x - start) for x in loss.asked[1 + 4 * trial : 5 + 4 * trial]]
        np.testing.assert_allclose(away, away[0] * 0.8 ** np.arange(4), rtol=1e-12)
        assert 0 < away[0] < 0.4
    assert len({loss.asked[1 + 4 * trial][0] for trial in range(3)}) == 3


def test_a_trial_that_diverges_ends_and_eliminates_nobody() -> None:
    """At a point that is not finite regular workers have no gradient to send."""
    pgd = settings(step=steps.constant(1e200), radius=1.0, escape=1e300, rounds=2, length=9)
    steep = losses.Quadratic([1e50] * 3, [[0.0]] * 3)
    run = simulate(None, None, loss=steep, algorithm=pgd, rho=0.0, iterations=20, dtype="float64")
    assert run.eliminated == {}
    assert run.x0.tolist() == [0.0]


def test_a_way_that_is_long_enough_is_an_escape() -> None:
    loss = Watched()
    pgd = settings(rule="mean", eps=3.0, radius=1e-9, escape=0.7, rounds=1, length=9)
    run = simulate(None, None, loss=loss, algorithm=pgd, rho=0.0, dtype="float64", iterations=20, record="trajectory",
                   eval_every=1)  # fmt: skip
    trajectory = run.trajectory
    assert trajectory is not None
    # From 0 the way after t steps is (1 - 0.8^t) sqrt(2): 0.69 after three, 0.83 after four.
    moved = [int(np.any(b != a)) for a, b in zip(trajectory["x0"], trajectory["x0"][1:], strict=False)]
    assert moved[:6] == [0, 0, 0, 0, 1, 0]
    np.testing.assert_allclose(trajectory["x0"][5], 1 - 0.8**4, atol=1e-8)


def test_the_regularizer_and_the_rule_are_those_of_sgd(dtype: str) -> None:
    """While it descends, it is SGD on full gradients."""
    given: dict[str, Any] = {"loss": quadratic(), "attack": attacks.SignFlip(), "n_byzantine": Q, "dtype": dtype}
    given |= {"rho": 0.3, "iterations": 9}
    for rule in ("trimmed_mean", [aggregators.NNM(f=Q), aggregators.Median()]):
        pgd = settings(rule=rule, eps=0.0, f=Q)
        one, other = (simulate(None, None, algorithm=a, **given) for a in (pgd, SGD(rule, STEP, f=Q)))
        np.testing.assert_allclose(one.x0, other.x0, atol=1e-6 if dtype == "float32" else 1e-14)


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        ({"eps": -1.0}, "eps: expected"),
        ({"radius": 0.0}, "radius: expected"),
        ({"escape": np.nan}, "escape: expected"),
        ({"rounds": 0}, "rounds: expected"),
        ({"length": 0}, "length: expected"),
        ({"rule": "mediam"}, "rule: expected one of"),
        ({"rule": aggregators.Bucketing(s=2, rng=np.random.default_rng())}, "rule: "),
    ],
)
def test_wrong_settings(wrong: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        settings(**wrong)


def test_illegal_f_and_declared_f() -> None:
    pgd = settings(rule="krum")
    assert pgd.declaring(2).f == 2
    assert settings(rule=aggregators.Krum(f=0)).declaring(2).rule == aggregators.Krum(f=2)
    with pytest.raises(ValueError, match="krum: f=7 is too large for n=7 workers; at most 2"):
        simulate(None, None, loss=quadratic(), algorithm=pgd.declaring(M), iterations=1)


def test_digits_under_attack() -> None:
    """A convex loss: descent with full gradients, trials at the end that find no way down, and rest."""
    data = datasets.load("digits")
    parts = partition.iid(data.train_y, 10, seed=0)
    pgd = PerturbedGD("trimmed_mean", steps.constant(2.0), eps=0.05, radius=0.1, escape=0.2, rounds=2, length=5, f=3)
    given = {"attack": attacks.SignFlip(), "n_byzantine": 3, "rho": 0.1, "iterations": 150}
    run = simulate(data, parts, algorithm=pgd, record="trajectory", eval_every=10, **given)
    plain = simulate(data, parts, algorithm=SGD(step=steps.constant(2.0)), **given)
    assert run.accuracy[-1] > 0.85 > plain.accuracy[-1]
    assert run.trajectory is not None
    assert np.array_equal(run.trajectory["x0"][-1], run.trajectory["x0"][-3])  # at rest
