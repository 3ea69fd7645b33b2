"""Zeno++: the cosine test of every message, and what all workers together cannot do."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from byzadmm import asynchronous, attacks, delays, steps
from byzadmm.asynchronous import ASGD, Arrival, ZenoPlusPlus
from byzadmm.asynchronous.experiment import AsyncExperiment
from support.arrays import same_bits
from support.asynchronous import run, softmax
from support.runs import Array, M


class Told:
    """A loss whose clean samples have a gradient that the test sets."""

    n_workers = 3

    def __init__(self, v: Array) -> None:
        self.v, self.dim, self.asked = v, len(v), 0

    def gradient(self, x: Array, *, worker: int, k: int) -> Array:
        return self.v

    def batch_gradient(self, x: Array, rows: Array) -> Array:
        self.asked += 1
        return self.v


def judged(algorithm: ZenoPlusPlus, v: Array, g: Array, dtype: str = "float64") -> Array | None:
    """The direction of the step that follows from message ``g``, None if it is rejected."""
    setup = AsyncExperiment(None, None, algorithm=algorithm, loss=Told(v), validation=[0], delays=1.0, dtype=dtype)
    state = algorithm.master_state(setup) | {"x0": setup.x0_init.copy()}
    point = np.zeros(len(v), dtype)
    taken = algorithm.receive(setup, state, Arrival(0, np.asarray(g, dtype), point, 0, 0))
    return state["direction"] if taken else None


def cosine(v: Array, g: Array) -> float:
    v, g = v / np.abs(v).max(), g / np.abs(g).max()
    return float(v @ g / np.sqrt((v @ v) * (g @ g)))


def test_a_message_is_accepted_if_its_cosine_is_large_enough() -> None:
    rng = np.random.default_rng(0)
    decisions, circulating = [], []
    for turn in range(600):
        size = 10.0 ** rng.choice([-300, -6, -1, 0, 1, 6, 300])
        about = 10.0 ** rng.choice([-6, 0, 2])
        v = about * rng.standard_normal(5)
        g = rng.standard_normal(5) + rng.choice([0, 3]) * v / about
        a, rho = rng.choice([0.01, 0.1, 1.0]), rng.choice([0.0, 0.001, 0.05])
        eps = rng.choice([0.0, 0.3, -0.1]) * about**2
        algorithm = ZenoPlusPlus(steps.constant(a), rho=rho, eps=eps)
        made = judged(algorithm, v, size * g)
        margin = cosine(v, g) - (rho / a - eps / float(v @ v))
        case = (turn, size, about, a, rho, eps, margin)
        if abs(margin) > 1e-9:
            assert (made is not None) == (margin >= 0), case
        if made is not None:  # of the length of v, in the direction of g
            np.testing.assert_allclose(made, g * np.sqrt(v @ v) / np.sqrt(g @ g), rtol=1e-13, err_msg=str(case))
        decisions.append(made is not None)
        # What the authors' code computes: the length from before the scaling.
        with np.errstate(over="ignore", invalid="ignore"):
            scaled = g * np.sqrt((v @ v) / (g @ g))
            circulating.append(bool(a * float(v @ scaled) - rho * np.sum((size * g) ** 2) + a * eps >= 0))
    assert 100 < sum(decisions) < 500
    assert sum(mine != theirs for mine, theirs in zip(decisions, circulating, strict=True)) > 50


def test_the_size_of_a_message_changes_neither_decision_nor_step(dtype: str) -> None:
    rng = np.random.default_rng(1)
    sizes = {"float32": (2.0**-90, 2.0**-20, 2.0**20, 2.0**120), "float64": (2.0**-1000, 2.0**-20, 2.0**20, 2.0**1000)}
    algorithm = ZenoPlusPlus(steps.constant(0.1), rho=0.03)
    taken = 0
    for turn in range(60):
        v, g = rng.standard_normal((2, 6)).astype(dtype)
        made = judged(algorithm, v.astype(np.float64), g, dtype)
        taken += made is not None
        for size in sizes[dtype]:
            other = judged(algorithm, v.astype(np.float64), g * np.asarray(size, dtype), dtype)
            assert (made is None) == (other is None), (turn, size)
            assert made is None or same_bits(made, other), (turn, size)
    assert 10 < taken < 50


def test_the_master_s_own_gradient_and_its_opposite() -> None:
    rng = np.random.default_rng(2)
    for a, rho in ((0.1, 0.1), (0.1, 0.100001), (0.1, 0.0999), (0.5, 0.001), (0.001, 0.002)):
        algorithm = ZenoPlusPlus(steps.constant(a), rho=rho)
        for about in (1e-200, 1e-6, 1.0, 1e6, 1e200):
            v = about * rng.standard_normal(7)
            made = judged(algorithm, v, v)
            assert (made is not None) == (a >= rho), (a, rho, about)
            assert made is None or np.allclose(made, v, rtol=1e-14, atol=0), (a, rho, about)
            assert judged(algorithm, v, -v) is None, (a, rho, about)
            assert judged(algorithm, v, np.zeros(7)) is None, (a, rho, about)


def test_nothing_of_one_s_own_to_compare_with_moves_nothing() -> None:
    algorithm = ZenoPlusPlus(steps.constant(0.1))
    for v in (np.zeros(3), np.array([np.nan, 1.0, 1.0]), np.array([np.inf, 0.0, 0.0])):
        made = judged(algorithm, v, np.array([1e300, -1.0, 2.0]))
        assert made is None or not made.any(), v


def test_workers_that_all_send_the_opposite_move_nothing() -> None:
    algorithm = ZenoPlusPlus(steps.constant(0.1), samples=64)
    found = run(algorithm, attack=attacks.SignFlip(), n_byzantine=M, arrivals=60, batch_size=64)
    assert same_bits(found.x0, np.zeros_like(found.x0))
    assert found.rejected is not None
    assert found.rejected.sum() == 60
    assert found.iterations[-1] == 0
    assert found.rejection_rates()["byzantine"] == 1.0


@pytest.mark.filterwarnings("ignore:the run ended early. no update in 1000 messages of every worker")
def test_a_run_in_which_nothing_is_accepted_ends() -> None:
    loss: Any = Told(np.ones(2))
    found = asynchronous.simulate(None, None, loss=loss, algorithm=ZenoPlusPlus(steps.constant(0.1), rho=1.0),
                                  validation=[0], delays=1.0, updates=5)  # fmt: skip
    assert found.config["ended"] == "no update in 1000 messages of every worker"
    assert found.iterations[-1] == 0
    assert found.rejected is not None
    assert found.rejected.min() >= 999


def test_the_master_draws_a_batch_for_every_few_messages() -> None:
    for renew in (1, 3, 10):
        loss: Any = Told(np.ones(2))
        algorithm = ZenoPlusPlus(steps.constant(0.1), renew=renew)
        asynchronous.simulate(None, None, loss=loss, algorithm=algorithm, validation=[0], delays=1.0, arrivals=30)
        assert loss.asked == 30 // renew, renew


def test_learning_with_more_attackers_than_others() -> None:
    algorithm = ZenoPlusPlus(steps.constant(0.1), samples=40)
    settings: dict[str, Any] = {"attack": attacks.SignFlip(), "n_byzantine": 5, "batch_size": 16}
    settings["delays"] = delays.Exponential()
    found = asynchronous.simulate(**softmax(algorithm), algorithm=algorithm, arrivals=900, **settings)
    rates = found.rejection_rates()
    assert rates["byzantine"] > 0.6 > 0.4 > rates["regular"]
    plain = asynchronous.simulate(**softmax(algorithm), algorithm=ASGD(steps.constant(0.1)), arrivals=900, **settings)
    assert found.accuracy[-1] > 0.6 > 0.4 > plain.accuracy[-1]


def test_clean_samples_are_asked_for() -> None:
    algorithm = ZenoPlusPlus(steps.constant(0.1))
    settings = softmax(algorithm) | {"algorithm": algorithm, "delays": 1.0, "updates": 1}
    with pytest.raises(ValueError, match="validation: ZenoPlusPlus with these settings needs rows of the training set"):
        asynchronous.simulate(**(settings | {"validation": None}))
    wrong: list[tuple[dict[str, Any], type[Exception], str]] = [
        ({"rho": -1.0}, ValueError, "rho: expected"),
        ({"renew": 0}, ValueError, "renew: expected"),
        ({"samples": 0}, ValueError, "samples: expected"),
        ({"eps": np.nan}, ValueError, "eps: expected"),
        ({"momentum": 1.0}, ValueError, r"momentum: expected a number in \[0, 1\)"),
        ({"step": 0.1}, TypeError, "step"),
    ]
    for changes, error, message in wrong:
        with pytest.raises(error, match=message):
            ZenoPlusPlus(**({"step": steps.constant(0.1)} | changes))
