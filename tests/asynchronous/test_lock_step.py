"""Everybody takes the same time: the bits of ``byzadmm.simulate``. And the clock of algorithms that work in rounds."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from byzadmm import ADMM, RSA, SGD, Result, asynchronous, attacks, delays, simulate, steps
from byzadmm.algorithms import Algorithm
from byzadmm.asynchronous import BASGD, AsyncADMM, AsyncRSA
from support.arrays import same_bits
from support.runs import ALGORITHMS, ATTACKS, Array, M, Q, quadratic, small_data, small_parts

STEP = steps.inv_sqrt(2, 1)
ADMM_, RSA_ = ALGORITHMS["admm"], ALGORITHMS["rsa"]
ROUNDS = 9


def leans(messages: Array, *, byzantine: Any, rng: Any, x0: Array, k: int, **_: Any) -> Array:
    """A user's attack that looks at everything an attack is given."""
    noise = rng.standard_normal((len(byzantine), messages.shape[1]))
    made: Array = messages.mean(axis=0) - x0 / k + 0.1 * noise - messages[list(byzantine)]
    return made.astype(messages.dtype)


class Own:
    """A user's loss, which draws nothing by itself."""

    n_workers, dim = M, 3

    def gradient(self, x: Array, *, worker: int, k: int) -> Array:
        return x * (1 + worker / M) - np.sin([k, worker, k + worker])

    def value(self, x: Array) -> float:
        return float(x @ x)


def pairs() -> dict[str, tuple[Algorithm, Algorithm]]:
    """An algorithm in rounds, and the asynchronous one that has its bits."""
    assert isinstance(ADMM_, ADMM)
    assert isinstance(RSA_, RSA)
    found: dict[str, tuple[Algorithm, Algorithm]] = {
        "admm": (ADMM_, AsyncADMM.of(ADMM_, barrier=M)),
        "admm, all in time": (ADMM_, AsyncADMM.of(ADMM_, barrier=2, max_delay=0)),
        "rsa": (RSA_, AsyncRSA.of(RSA_, barrier=M)),
        "rsa forgets": (RSA_, AsyncRSA.of(RSA_, barrier=M, memory=False)),
    }
    rules: list[tuple[Any, dict[str, Any]]] = [("mean", {}), ("median", {"momentum": 0.9}), ("geometric_median", {})]
    rules += [("trimmed_mean", {"f": Q}), ("nnm+krum", {"f": 2, "momentum": 0.5}), ("centered_clip", {"momentum": 0.9})]
    rules += [("bucketing+median", {"f": 1}), ("dnc", {"f": 2}), (np.sort, {})]
    rules[-1] = (lambda rows: np.sort(rows, axis=0)[3], {})
    for rule, more in rules:
        found[f"{rule} {more}"] = SGD(rule, STEP, **more), BASGD(rule, M, STEP, **more)
    return found


def same(a: Result, b: Result, case: str) -> None:
    """The same state and curves. Models of eliminated workers, who are asked no more, stay behind."""
    assert a.eliminated == b.eliminated, case
    assert same_bits(a.x0, b.x0), case
    assert a.iterations.tolist() == b.iterations.tolist(), case
    for name in ("accuracy", "loss", "distance"):
        assert same_bits(getattr(a, name), getattr(b, name)), (case, name)
    assert (a.x is None) == (b.x is None), case
    if a.x is not None:
        assert b.x is not None
        there = [i for i in range(M) if i not in a.eliminated]
        assert same_bits(a.x[there], b.x[there]), case
        if not set(a.eliminated) - set(a.config["byzantine"]):
            assert same_bits(a.consensus_gap, b.consensus_gap), case


def both(algorithms: tuple[Algorithm, Algorithm], case: str, **settings: Any) -> None:
    settings = {"n_byzantine": Q, "eval_every": 4, "batch_size": 4, "seed": 3} | settings
    data: dict[str, Any] = {"dataset": small_data(), "parts": small_parts()}
    if "loss" in settings:
        data = dict.fromkeys(data)
    whole = simulate(**data, algorithm=algorithms[0], iterations=ROUNDS, **settings)
    events = asynchronous.simulate(**data, algorithm=algorithms[1], updates=ROUNDS, delays=1.5, **settings)
    same(whole, events, case)
    assert events.time is not None
    lag = int(algorithms[0].master_first)  # the first of ADMM's models is there at once
    assert events.time[-1] == 1.5 * (ROUNDS - lag), case
    assert events.staleness is not None
    assert events.staleness.tolist() == [events.staleness.sum()], case
    rounds = asynchronous.simulate(**data, algorithm=algorithms[0], updates=ROUNDS, delays=1.5, **settings)
    same(whole, rounds, case)
    for name in ("time", "arrivals", "staleness", "accepted", "rejected"):
        assert same_bits(getattr(rounds, name), getattr(events, name)), (case, name)


@pytest.mark.slow
def test_equal_delays_give_the_bits_of_rounds() -> None:
    attackers: list[dict[str, Any]] = [{}, {"byzantine": list(range(Q))}, {"byzantine": [0, 3, 6]}]
    for name, algorithms in pairs().items():
        for turn, (kind, attack) in enumerate({**ATTACKS, "own": leans, "mimic": attacks.Mimic(warmup=5)}.items()):
            where = attackers[turn % 3]
            both(algorithms, f"{name}, {kind}, {where}", attack=attack, **where)


def test_equal_delays_give_the_bits_of_rounds_with_any_setting() -> None:
    start = np.linspace(-1, 1, 18)
    for name, algorithms in pairs().items():
        cases: dict[str, dict[str, Any]] = {
            "quadratic": {"loss": quadratic(noise=0.3), "dtype": "float64"},
            "own": {"loss": Own(), "attack": leans},
            "start": {"x0_init": start, "first_k": 11, "dtype": "float64", "optimum": start},
            "from 0": {"first_k": 0, "rho": 0.0},
            "labels": {"attack": attacks.LabelFlip()},
        }
        if algorithms[0].local_step(1) is not None:
            cases["local steps"] = {"local_steps": 3, "first_k": 4}
        else:
            cases["models"] = {"x_init": np.outer(np.arange(M), start)}
        for kind, settings in cases.items():
            both(algorithms, f"{name}, {kind}", **({"attack": attacks.SignFlip()} | settings))


def test_equal_delays_of_a_user_s_algorithm_are_rounds() -> None:
    """A sum of all gradients, in rounds and by events."""

    class Rounds(Algorithm):
        def answer(self, group: Any, state: Any, x0: Array, k: int) -> Array:
            return group.gradients(x0, k) / k

        def update(self, run: Any, state: Any, heard: Any, k: int) -> None:
            state["x0"] -= 0.1 * heard.rows.sum(axis=0)

    class Events(asynchronous.AsyncAlgorithm):
        waits = True
        answer = Rounds.answer

        def master_state(self, run: Any) -> Any:
            return {"rows": np.zeros((run.m, run.d), run.dtype), "here": np.zeros(run.m, np.bool_)}

        def receive(self, run: Any, state: Any, arrival: Any) -> bool:
            state["rows"][arrival.worker], state["here"][arrival.worker] = arrival.message, True
            return True

        def ready(self, run: Any, state: Any, t: int, accepted: bool) -> bool:
            return bool(state["here"].any()) and int(state["here"].sum()) == state["left"]

        def move(self, run: Any, state: Any, t: int) -> None:
            state["x0"] -= 0.1 * state["rows"][state["here"]].sum(axis=0)
            state["here"][:] = False

    for kind in ("none", "gaussian", "alie", "non_finite"):
        both((Rounds(), Events()), kind, attack=ATTACKS[kind])


@pytest.mark.slow
def test_algorithms_in_rounds_have_the_clock_of_a_barrier_for_all() -> None:
    """Any delays, ends and evaluations: the same curves over the same times, interrupted or not."""
    assert isinstance(ADMM_, ADMM)
    later = delays.Outage(delays.Exponential(), worker=2, start=3.0, end=9.0)
    for name, delay in {"exponential": delays.Exponential(), "stragglers": delays.Stragglers(), "later": later}.items():
        for kind in ("sign_flip", "gaussian", "non_finite"):
            settings: dict[str, Any] = {"attack": ATTACKS[kind], "n_byzantine": Q, "delays": delay, "batch_size": 4}
            for end in ({"updates": 12}, {"until": 17.0}, {"arrivals": 60}):
                for evaluated in ({"eval_every": 5}, {"eval_time": 2.5}):
                    settings |= {"dataset": small_data(), "parts": small_parts()} | end | evaluated
                    events = asynchronous.simulate(algorithm=AsyncADMM.of(ADMM_, barrier=M), **settings)
                    rounds = asynchronous.simulate(algorithm=ADMM_, **settings)
                    case = f"{name}, {kind}, {end}, {evaluated}"
                    if "arrivals" in end:  # rounds are over when all have answered
                        last = -1 - ("eval_time" in evaluated)
                        assert rounds.iterations[:last].tolist() == events.iterations[:last].tolist(), case
                        continue
                    same(rounds, events, case)
                    assert same_bits(rounds.time, events.time), case
                    if "updates" in end:
                        assert same_bits(rounds.accepted, events.accepted), case
                        assert same_bits(rounds.rejected, events.rejected), case


def test_a_synchronous_algorithm_has_the_bits_of_simulate_whatever_the_delays() -> None:
    own: dict[str, Any] = {"dataset": small_data(), "parts": small_parts(), "n_byzantine": Q, "batch_size": 4}
    for name, algorithm in ALGORITHMS.items():
        for share in (1.0,) if name == "trimmed_mean" else (1.0, 0.6):
            settings = own | {"algorithm": algorithm, "attack": attacks.Gaussian(), "participation": share}
            whole = simulate(iterations=11, eval_every=3, **settings)
            clocked = asynchronous.simulate(updates=11, eval_every=3, delays=delays.Pareto(), **settings)
            same(whole, clocked, f"{name}, {share}")
            assert same_bits(whole.consensus_gap, clocked.consensus_gap), (name, share)
            assert clocked.time is not None
            assert np.all(np.diff(clocked.time) > 0), (name, share)
            if algorithm.ideal and share == 1:  # the master does not wait for those that take no part
                assert clocked.accepted is not None
                assert clocked.accepted.tolist() == [11] * (M - Q) + [0] * Q
