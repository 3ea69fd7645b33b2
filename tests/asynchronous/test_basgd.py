"""BASGD: what is in its buffers, what one attacker can do, and what happens if somebody is silent."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from byzadmm import _core, asynchronous, delays, steps
from byzadmm.asynchronous import ASGD, BASGD, Arrival
from support.asynchronous import differences, run
from support.runs import Array, M, quadratic

STEP = steps.constant(0.1)
SILENT = "ignore:the run ended early. no update in 1000 messages of every worker"


class Watched(BASGD):
    """Notes the buffers at every update, the model before and after, and how many messages had arrived."""

    def receive(self, run: Any, state: Any, arrival: Arrival) -> bool:
        taken = super().receive(run, state, arrival)
        ARRIVED[0] = arrival.number + 1
        return taken

    def move(self, run: Any, state: Any, t: int) -> None:
        counts, rows, before = state["counts"].copy(), state["buffers"].copy(), state["x0"].copy()
        places = state["buffer_of"].copy()
        super().move(run, state, t)
        MOVES.append((counts, rows, before - state["x0"], ARRIVED[0], places))


ARRIVED = [0]
MOVES: list[tuple[Array, Array, Array, int, Array]] = []


def watched(algorithm: BASGD, **settings: Any) -> Any:
    MOVES.clear()
    made = Watched(**{name: getattr(algorithm, name) for name in algorithm.__dataclass_fields__})
    return run(made, rho=0.0, dtype="float64", **settings)


def shouts(size: float) -> Any:
    def attack(messages: Array, *, byzantine: Any, rng: Any, **_: Any) -> Array:
        return np.asarray(size * (1 + rng.random((len(byzantine), messages.shape[1]))))

    return attack


def test_all_messages_since_the_last_step_are_in_the_buffers() -> None:
    watched(BASGD(buffers=4, step=STEP), delays=delays.Stragglers(delays.Exponential()), updates=80)
    before = 0
    for counts, *_, arrived, _places in MOVES:
        assert counts.sum() == arrived - before
        assert counts.min() >= 1
        before = arrived
    assert max(counts.max() for counts, *_ in MOVES) > 5


@pytest.mark.slow
def test_steps_stay_within_what_regular_buffers_hold() -> None:
    """One attacker of three buffers, at any speed: no element of a step lies outside those of the other two."""
    for speed in (0.01, 1.0, 20.0):
        for size in (1e-3, 1e3, 1e300):
            for worker in (0, 4):
                pace = delays.PerWorker([delays.Exponential(speed if i == worker else 1.0) for i in range(M)])
                watched(BASGD("median", 3, STEP, f=1), delays=pace, attack=shouts(size), byzantine=[worker], updates=12)
                assert len(MOVES) == 12
                for _, rows, moved, _, places in MOVES:
                    regular = np.delete(rows, places[worker], axis=0)
                    low, high = regular.min(axis=0), regular.max(axis=0)
                    slack = 1e-12 * np.abs(regular).max()
                    case = speed, size, worker
                    assert np.all((moved / 0.1 >= low - slack) & (moved / 0.1 <= high + slack)), case


def test_one_buffer_and_the_mean_are_asynchronous_sgd() -> None:
    for name, delay in {"exponential": delays.Exponential(), "instants": 1.0}.items():
        plain = run(ASGD(STEP, momentum=0.5), delays=delay, updates=40)
        buffered = run(BASGD("mean", 1, STEP, momentum=0.5), delays=delay, updates=40)
        assert not differences(plain, buffered), name


def test_the_mean_of_a_buffer_is_that_of_its_messages(dtype: str) -> None:
    rng = np.random.default_rng(0)
    largest = np.finfo(dtype).max
    for rows in (rng.standard_normal((50, 6)), np.full((50, 6), largest), largest * rng.choice([-1.0, 1.0], (50, 6))):
        mean = np.full(6, np.nan, dtype)  # what an emptied buffer holds does not matter
        for n, row in enumerate(rows.astype(dtype), start=1):
            _core.add_to_mean(mean, row, n)
        exact = np.mean(rows / np.abs(rows).max(), axis=0) * np.abs(rows).max()
        np.testing.assert_allclose(mean, exact, atol=np.finfo(dtype).eps * 50 * float(np.abs(rows).max()))
        assert np.isfinite(mean).all()


@pytest.mark.slow
@pytest.mark.filterwarnings(SILENT)
def test_a_crashed_worker_holds_up_the_run_unless_others_take_its_place() -> None:
    crash = delays.Outage(delays.Exponential(), worker=2, start=5.0)
    for buffers in (3, 5):  # with three of them two workers share it
        held = [run(BASGD(buffers=buffers, step=STEP, patience=patience), delays=crash, updates=100)
                for patience in (None, 15)]  # fmt: skip
        assert held[1].iterations[-1] == 100, buffers
        assert "ended" not in held[1].config, buffers
        stands = held[0].iterations[-1] < 100
        assert stands == (buffers == 5), buffers
        if stands:
            assert held[0].config["ended"] == "no update in 1000 messages of every worker"
            with pytest.warns(RuntimeWarning, match="the run ended early: no update in 1000 messages of every worker"):
                run(BASGD(buffers=buffers, step=STEP), delays=crash, updates=100)
    # With one buffer per worker there is nobody to take its place.
    assert run(BASGD(step=STEP, patience=15), delays=crash, updates=100).iterations[-1] < 100


@pytest.mark.slow
def test_a_fast_attacker_does_not_keep_others_from_a_silent_buffer() -> None:
    """It is alone in its buffer, which is always the fullest."""
    both = [delays.Exponential() for _ in range(M)]
    both[4] = delays.Exponential(0.01)
    both[2] = delays.Outage(delays.Exponential(), worker=2, start=5.0)
    for patience in (10, 100):
        found = run(BASGD(buffers=5, step=STEP, f=2, patience=patience), delays=delays.PerWorker(both), updates=30,
                    attack=shouts(1e6), byzantine=[4], until=300.0)  # fmt: skip
        assert found.iterations[-1] == 30, patience
        assert np.abs(found.x0).max() < 10, patience


@pytest.mark.slow
def test_an_attacker_spoils_one_buffer_however_workers_are_assigned() -> None:
    class Flat:
        """Gradients that stay small wherever the model is."""

        n_workers, dim = M, 3

        def gradient(self, x: Array, *, worker: int, k: int) -> Array:
            return np.ones(3)

    for patience in (1, 3, 9):
        for byzantine in ([0], [0, 3], [2, 6]):
            pace = [delays.Exponential(0.02 if i in byzantine else 1.0) for i in range(M)]
            watched(BASGD("median", 3, STEP, patience=patience), delays=delays.PerWorker(pace), updates=15,
                    loss=Flat(), attack=shouts(1e9), byzantine=byzantine)  # fmt: skip
            assert len(MOVES) == 15
            for counts, rows, _, _, places in MOVES:
                spoiled = np.flatnonzero(np.abs(rows[counts > 0]).max(axis=1) > 1e3)
                assert len(spoiled) <= len(byzantine), (patience, byzantine)
                assert np.all(np.bincount(places, minlength=3) >= 1), (patience, byzantine)


def test_a_buffer_all_of_whose_workers_are_eliminated_is_closed() -> None:
    def breaks(messages: Array, *, byzantine: Any, k: int, **_: Any) -> Array:
        return np.full((len(byzantine), messages.shape[1]), np.inf if k > 7 else 0.0)

    watched(BASGD("median", 3, STEP, f=1), delays=delays.Exponential(), updates=30, attack=breaks, byzantine=[1, 4])
    assert [(counts > 0).tolist() for counts, *_ in MOVES[:5]] == [[True] * 3] * 5
    assert [(counts > 0).tolist() for counts, *_ in MOVES[-15:]] == [[True, False, True]] * 15


def test_settings() -> None:
    assert [BASGD(step=STEP, f=f).count(10) for f in (0, 1, 2, 3, 4)] == [10, 4, 7, 10, 10]
    assert BASGD(step=STEP, buffers=2, f=3).count(10) == 2
    wrong: list[tuple[dict[str, Any], type[Exception], str]] = [
        ({"buffers": M + 1}, ValueError, f"buffers: expected at most one per worker, {M}, got {M + 1}"),
        ({"buffers": 0}, ValueError, "buffers: expected"),
        ({"patience": 0}, ValueError, "patience: expected"),
        ({"patience": 1.5}, TypeError, "patience: expected"),
        ({"rule": "trimmed_mean", "f": 2, "buffers": 4}, ValueError, "f: expected 2 f < 4 buffers, f <= 1, got 2"),
        ({"rule": "no such"}, ValueError, "rule"),
        ({"step": None}, TypeError, r"step: BASGD needs one; BASGD\.for_dataset\(data\)"),
    ]
    for changes, error, message in wrong:
        with pytest.raises(error, match=message):
            asynchronous.simulate(None, None, loss=quadratic(), delays=1.0, updates=1,
                                  algorithm=BASGD(**({"step": STEP} | changes)))  # fmt: skip
