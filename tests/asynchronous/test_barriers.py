"""AsyncADMM and AsyncRSA: what attackers can do to one update, and to the limit; barriers and the age of models."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from byzadmm import ADMM, RSA, asynchronous, attacks, delays, losses, steps
from byzadmm.asynchronous import Arrival, AsyncADMM, AsyncRSA
from byzadmm.asynchronous.experiment import AsyncExperiment
from support.asynchronous import DELAYS, differences, run
from support.runs import Array, M, quadratic

D, Q = 6, 3
BYZANTINE = [0, 3, 6]
LAM, STEP = 0.3, steps.constant(0.2)


def told(algorithm: Any) -> tuple[Any, dict[str, Any]]:
    """A master that the test tells what arrives."""
    setup = AsyncExperiment(None, None, algorithm=algorithm, loss=quadratic(M, D), delays=1.0, dtype="float64")
    state: dict[str, Any] = {"x0": np.zeros(D), "eliminated": np.full(M, -1), "left": np.array(M)}
    return setup, state | {"versions": np.zeros(M, np.int64)} | algorithm.master_state(setup)


def test_attackers_move_an_update_within_their_bound() -> None:
    """The same master with and without their messages, element by element, at every update of a long run."""
    settings: list[Any] = [AsyncADMM(LAM, 0.5, STEP, STEP, barrier=barrier) for barrier in (1, 3, M)]
    for memory in (True, False):
        settings += [AsyncRSA(LAM, STEP, barrier=barrier, memory=memory) for barrier in (1, 3, M)]
    for algorithm in settings:
        rng = np.random.default_rng(0)
        setup, state = told(algorithm)
        largest, t = 0.0, 0
        dual = isinstance(algorithm, AsyncADMM)
        waiting: set[int] = set()
        while t < 150:
            worker = int(rng.integers(M))
            if worker in waiting:
                continue
            message = rng.uniform(-LAM, LAM, D) if dual else rng.standard_normal(D)
            if worker in BYZANTINE:
                message = rng.choice([-LAM, LAM], D) * (1.0 if dual else 10 ** rng.uniform(-300, 300))
            algorithm.receive(setup, state, Arrival(worker, message, state["x0"].copy(), 0, 0))
            waiting.add(worker)
            if not algorithm.ready(setup, state, t, True):
                continue
            share = len(waiting) / M
            without = {name: array.copy() for name, array in state.items()}
            if dual:
                for name in ("heard", "heard_prev"):
                    without[name][BYZANTINE] = 0
                without["total"] = without["heard"].sum(axis=0)
                fresh = without["fresh"][:, None]
                without["change"] = (fresh * (without["heard"] - without["heard_prev"])).sum(axis=0)
            else:
                without["heard"][BYZANTINE] = without["x0"]  # a vote of 0
            algorithm.move(setup, without, t)
            algorithm.move(setup, state, t)
            moved = float(np.abs(state["x0"] - without["x0"]).max())
            bound = (3 if dual else 1) * LAM * Q * 0.2 * share
            if not dual and not algorithm.memory:
                bound = LAM * 0.2 * len(waiting & set(BYZANTINE))
            assert moved <= bound * (1 + 1e-12) + 1e-15, (algorithm, t, moved, bound)
            largest = max(largest, moved / bound if bound else 0)
            waiting.clear()
            t += 1
        assert largest > 0.5, algorithm  # of the bound, which is for attackers that are all heard


class Constant:
    """The same forged dual, or model, at all times."""

    def __init__(self, sends: str, value: float) -> None:
        self.sends, self.value = sends, value

    def __call__(self, messages: Array, *, byzantine: Any, **_: Any) -> Array:
        return np.full((len(byzantine), messages.shape[1]), self.value)


#: Example ``ex`` of the paper: two regular workers and an attacker in one dimension.
EXAMPLE = losses.Quadratic([0.5, 0.5, 0.5], [[1.0], [1.0], [1.0]])


def limit(algorithm: Any, pace: float, value: float) -> float:
    """Where the model settles if the attacker takes ``pace`` for what takes the others 1, by a mean over the end."""
    speeds = delays.PerWorker([delays.Uniform(0.5 * one, 1.5 * one) for one in (1.0, 1.0, pace)])
    attack = Constant("dual" if isinstance(algorithm, AsyncADMM) else "message", value)
    found = asynchronous.simulate(None, None, loss=EXAMPLE, algorithm=algorithm, delays=speeds, byzantine=[2],
                                  attack=attack, rho=1.0, until=120.0, eval_time=1.0, dtype="float64",
                                  record="trajectory")  # fmt: skip
    assert found.trajectory is not None
    return float(found.trajectory["x0"][-60:].mean())


@pytest.mark.slow
def test_a_fast_attacker_has_one_vote_where_the_master_remembers() -> None:
    """Its vote of -lam leads to 1/4 (``x0 = -lam + (1 - x0)``); with a weight by its rate it leads far below 0."""
    admm = AsyncADMM(0.5, 1.0, steps.constant(0.05), steps.constant(0.2))
    rsa = AsyncRSA(0.5, master_step=steps.constant(0.02), worker_step=steps.constant(0.02))
    for algorithm, value in ((admm, -0.5), (rsa, -9.0)):
        for barrier in (1, 2):
            made = algorithm.changed(barrier=barrier)
            normal, fast = limit(made, 1.0, value), limit(made, 0.01, value)
            allowed = 0.005 if algorithm is admm else 0.11  # signs of stale differences go on jumping
            assert normal == pytest.approx(0.25, abs=allowed), made
            assert fast == pytest.approx(0.25, abs=allowed), made
    forgets = rsa.changed(memory=False)
    assert limit(forgets, 1.0, -9.0) == pytest.approx(0.25, abs=0.11)
    assert limit(forgets, 0.01, -9.0) < -1.0


def test_a_dual_out_of_range_eliminates_its_sender() -> None:
    for value, eliminated in ((LAM, False), (np.nextafter(LAM, 1), True), (-1e300, True), (np.nan, True)):
        found = run(AsyncADMM(LAM, 0.5, STEP, STEP, barrier=2), attack=Constant("dual", value), byzantine=[1, 5],
                    updates=30, dtype="float64")  # fmt: skip
        assert sorted(found.eliminated) == ([1, 5] if eliminated else []), value
        assert np.isfinite(found.x0).all(), value
    found = run(AsyncRSA(LAM, STEP), attack=Constant("message", 1e300), byzantine=[1], updates=30, dtype="float64")
    assert not found.eliminated


def test_no_message_is_older_than_the_bound() -> None:
    for oldest in (0, 1, 5):
        for name, delay in (DELAYS | {"slow": delays.Stragglers(delays.Exponential(), factor=30.0)}).items():
            for barrier in (1, 3):
                for algorithm in (AsyncADMM(LAM, 0.5, STEP, STEP, barrier=barrier, max_delay=oldest),
                                  AsyncRSA(LAM, STEP, barrier=barrier, max_delay=oldest)):  # fmt: skip
                    found = run(algorithm, delays=delay, updates=30, attack=attacks.NonFinite(), byzantine=[2])
                    assert found.staleness is not None
                    assert len(found.staleness) - 1 <= oldest, (algorithm, name)
    # Without a bound a slow worker's are.
    slow = delays.Stragglers(delays.Exponential(), factor=30.0)
    found = run(AsyncADMM(LAM, 0.5, STEP, STEP), delays=slow, updates=400)
    assert found.staleness is not None
    assert len(found.staleness) > 50


def test_waiting_for_all_is_a_round_whatever_the_delays() -> None:
    for name, delay in DELAYS.items():
        for made in (AsyncADMM(LAM, 0.5, STEP, STEP), AsyncRSA(LAM, STEP)):
            bounded, whole = (run(made.changed(**more), delays=delay, updates=20, attack=attacks.SignFlip(),
                                  n_byzantine=2) for more in ({"max_delay": 0}, {"barrier": M}))  # fmt: skip
            assert not differences(bounded, whole), (name, made)


def test_a_barrier_counts_those_that_are_left() -> None:
    """Five of seven are eliminated: the master goes on with two, and stops waiting for five."""
    for made in (AsyncADMM(LAM, 0.5, STEP, STEP, barrier=5), AsyncRSA(LAM, STEP, barrier=5)):
        found = run(made, attack=attacks.NonFinite(), n_byzantine=5, updates=25)
        assert found.iterations[-1] == 25
        assert sorted(found.eliminated) == [2, 3, 4, 5, 6]


def test_settings() -> None:
    admm, rsa = ADMM(LAM, 0.5, STEP, STEP), RSA(LAM, STEP)
    assert AsyncADMM.of(admm, barrier=3) == AsyncADMM(LAM, 0.5, STEP, STEP, barrier=3)
    assert AsyncRSA.of(rsa, barrier=3, memory=False) == AsyncRSA(LAM, STEP, barrier=3, memory=False)
    changed = AsyncRSA(LAM, STEP, barrier=2, max_delay=3).changed(worker_step=steps.constant(1.0))
    assert (changed.barrier, changed.max_delay, changed.master_step) == (2, 3, STEP)
    assert changed.worker_step == steps.constant(1.0)
    wrong: list[tuple[Any, dict[str, Any], type[Exception], str]] = [
        (AsyncADMM.of(admm), {"barrier": 8}, ValueError, "barrier: expected at most the number of workers, 7, got 8"),
        (AsyncRSA.of(rsa), {"barrier": 8}, ValueError, "barrier: expected at most the number of workers, 7, got 8"),
        (AsyncADMM.of(admm), {"barrier": 0}, ValueError, "barrier: expected"),
        (AsyncRSA.of(rsa), {"barrier": 1.5}, TypeError, "barrier: expected"),
        (AsyncADMM.of(admm), {"max_delay": -1}, ValueError, "max_delay: expected"),
        (AsyncRSA.of(rsa), {"memory": 1}, TypeError, "memory: expected True or False, got int"),
        (AsyncADMM.of(admm), {"lam": 0.0}, ValueError, "lam: expected"),
        (AsyncRSA.of(rsa), {"lam": -1.0}, ValueError, "lam: expected"),
    ]
    for made, changes, error, message in wrong:
        with pytest.raises(error, match=message):
            run(made.changed(**changes), updates=1)
