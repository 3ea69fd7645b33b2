"""Delays: how long they are, and that nothing but the seed, the worker and the job decides about them."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from scipy import stats

from byzadmm import delays
from byzadmm._internal.npz import write_npz
from support.runs import Array

#: Every registered delay; those with a distribution of their own, by SciPy's.
KNOWN: dict[str, tuple[Any, Any]] = {
    "constant": (delays.Constant(2.5), None),
    "uniform": (delays.Uniform(0.5, 3.0), stats.uniform(0.5, 2.5)),
    "exponential": (delays.Exponential(2.0), stats.expon(scale=2.0)),
    "log-normal": (delays.LogNormal(2.0, sigma=0.7), stats.lognorm(0.7, scale=2.0)),
    "pareto": (delays.Pareto(1.5, 0.3), stats.pareto(1.5, scale=0.3)),
    "stragglers": (delays.Stragglers(delays.Exponential(), factor=4.0), stats.expon(scale=4.0)),  # of worker 0
    "outage": (delays.Outage(delays.Exponential(), worker=0, start=2.0, end=5.0), stats.expon()),  # at time 5
}


def drawn(given: Any, jobs: int = 2000, *, worker: int = 0, seed: int = 0, time: float = 5.0, m: int = 5) -> Array:
    made = delays.Delays(given, m, seed)
    return np.array([made(worker, job, time) for job in range(jobs)])


def test_every_registered_delay_is_here() -> None:
    assert KNOWN.keys() == delays.REGISTRY.keys()
    assert {type(given) for given, _ in KNOWN.values()} == set(delays.REGISTRY.values())
    assert {kind.__name__ for kind in delays.REGISTRY.values()} < set(delays.__all__)


def test_every_delay_is_that_of_its_seed_worker_and_job() -> None:
    others: dict[str, Any] = {"number": 3, "own": lambda worker, job, rng: rng.random() + worker}
    others["per worker"] = delays.PerWorker([1.0, *[delays.Uniform()] * 4])
    for name, given in ({name: given for name, (given, _) in KNOWN.items()} | others).items():
        rng = np.random.default_rng(0)
        asked = [(int(rng.integers(5)), int(rng.integers(100))) for _ in range(200)]
        one, other = (delays.Delays(given, 5, seed=7) for _ in range(2))
        wanted = {key: one(*key, 5.0) for key in asked}
        assert all(type(seconds) is float and seconds > 0 for seconds in wanted.values()), name
        for key in reversed(asked):
            assert other(*key, 5.0) == wanted[key], name
        if name not in ("constant", "number"):
            assert drawn(given, worker=1, jobs=9).tolist() != drawn(given, worker=2, jobs=9).tolist(), name
            assert drawn(given, worker=1, jobs=9).tolist() != drawn(given, worker=1, jobs=9, seed=1).tolist(), name


def test_distributions() -> None:
    for name, (given, known) in KNOWN.items():
        values = drawn(given)
        assert np.all(np.isfinite(values)), name
        if known is None:
            assert set(values) == {2.5}, name
        else:
            assert stats.kstest(values, known.cdf).pvalue > 0.01, name
    # Those of different workers have nothing to do with each other.
    one, other = (drawn(delays.Exponential(), worker=worker) for worker in (1, 2))
    assert abs(stats.spearmanr(one, other).statistic) < 0.06


def test_delays_at_the_end_of_all_numbers() -> None:
    class Extreme:
        """A generator that draws the largest numbers, or the smallest."""

        def __init__(self, value: float) -> None:
            self.value = value

        def random(self) -> float:
            return self.value

        def standard_normal(self) -> float:
            return 8 * (2 * self.value - 1)

    for value in (0.0, 1 - 2.0**-53):
        rng = Extreme(value)
        for given in (delays.Exponential(), delays.Pareto(0.01), delays.Pareto(30.0), delays.LogNormal(sigma=50.0)):
            assert given(0, 0, rng) > 0, (given, value)
    assert delays.Pareto(0.01)(0, 0, Extreme(1 - 2.0**-53)) == math.inf


def test_stragglers() -> None:
    for m, share, slow in ((10, 0.2, 2), (7, 0.5, 4), (5, 0.5, 2), (4, 0.01, 1), (3, 1.0, 3), (7, 0.34, 2)):
        made = delays.Delays(delays.Stragglers(share=share, factor=3.0), m, seed=0)
        assert [made(i, 0, 0.0) for i in range(m)] == [3.0] * slow + [1.0] * (m - slow), (m, share)
    for workers in ([1, 3], (3, 1), np.array([1, 3])):
        made = delays.Delays(delays.Stragglers(0.5, workers=workers, factor=2.0), 4, seed=0)
        assert [made(i, 0, 0.0) for i in range(4)] == [0.5, 1.0, 0.5, 1.0]
    assert [delays.Delays(delays.Stragglers(workers=2), 4, 0)(i, 0, 0.0) for i in (1, 2)] == [1.0, 10.0]
    with pytest.raises(ValueError, match=r"workers: a share needs their number: call for_workers\(m\) first"):
        delays.Stragglers()(0, 0, None, 0.0)
    # One in another: each sees the time.
    both = delays.Stragglers(delays.Outage(1.0, worker=0, start=1.0, end=4.0), factor=2.0, workers=[0])
    assert [delays.Delays(both, 2, 0)(0, 0, time) for time in (0.0, 0.5, 3.0, 4.0)] == [2.0, 8.0, 4.0, 2.0]


def test_an_outage_stands_still_and_a_crash_ends_all() -> None:
    down = delays.Delays(delays.Outage(2.0, worker=1, start=5.0, end=9.0), 3, seed=0)
    assert [down(1, 0, time) for time in (0.0, 3.0, 4.0, 5.0, 8.5, 9.0)] == [2.0, 2.0, 6.0, 6.0, 2.5, 2.0]
    assert [down(2, 0, time) for time in (4.0, 6.0)] == [2.0, 2.0]
    crash = delays.Delays(delays.Outage(2.0, worker=1, start=5.0), 3, seed=0)
    assert [crash(1, 0, time) for time in (3.0, 3.5, 100.0)] == [2.0, math.inf, math.inf]


def test_replay(tmp_path: Path) -> None:
    times = np.random.default_rng(0).random((3, 4)) + 0.1
    times[1, 2] = np.inf
    given = delays.Replay(times)
    made = delays.Delays(given, 3, seed=0)
    assert [[made(i, job, 0.0) for job in range(8)] for i in range(3)] == np.hstack([times, times]).tolist()
    given.save(tmp_path / "times.npz")
    again = delays.Replay.load(tmp_path / "times.npz")
    assert again == given
    assert hash(again) == hash(given)
    assert given != delays.Replay(times + 1)
    times[:] = -1  # the record has its own
    assert made(0, 0, 0.0) > 0
    write_npz(tmp_path / "other.npz", {"times": times}, {"byzadmm": "else"})
    with pytest.raises(ValueError, match="not a record of delays"):
        delays.Replay.load(tmp_path / "other.npz")


def test_what_a_function_returns_is_checked_with_the_worker_and_the_job() -> None:
    values = (0, 0.0, -1, -0.5, -(10**400), math.nan)
    kinds = (None, "soon", "2.0", b"2", [1, 2], np.ones(1), 1j, True, np.True_)
    for error, cases in ((ValueError, values), (TypeError, kinds)):
        for wrong in cases:
            made = delays.Delays(lambda i, job, rng, wrong=wrong: wrong if (i, job) == (2, 3) else 1, 4, seed=0)
            assert made(2, 2, 0.0) == 1.0
            with pytest.raises(error, match="delays: expected a positive number of seconds for job 3 of worker 2, got"):
                made(2, 3, 0.0)
    numbers = ((1, 1.0), (np.float32(2), 2.0), (np.int64(3), 3.0), (math.inf, math.inf), (10**400, math.inf))
    for right, seconds in numbers:
        assert delays.Delays(lambda worker, job, rng, right=right: right, 1, seed=0)(0, 0, 0.0) == seconds


def test_what_is_no_delay() -> None:
    wrong: list[tuple[Any, type[Exception], str]] = [
        (0, ValueError, "delays: expected"),
        (-1.0, ValueError, "delays: expected"),
        (math.nan, ValueError, "delays: expected"),
        (True, TypeError, "delays: expected a delay of byzadmm.delays, a function or a number, got bool"),
        ("exponential", TypeError, "got str"),
        (None, TypeError, "got NoneType"),
        (delays.Exponential, TypeError, r"delays: expected a delay such as Exponential\(...\), got the class"),
        (delays.PerWorker([1.0] * 3), ValueError, "delays: expected one for each of 4 workers, got 3"),
        (delays.Replay(np.ones((3, 2))), ValueError, "times: expected a row for each of 4 workers, got 3"),
        (delays.Stragglers(workers=[4]), ValueError, "workers: expected"),
        (delays.Outage(worker=4), ValueError, "worker: expected"),
        (delays.Stragglers(delays.Replay(np.ones((3, 2)))), ValueError, "times: expected a row for each of 4"),
        (delays.PerWorker([1.0, 1.0, 1.0, delays.Outage(worker=7)]), ValueError, "worker: expected"),
    ]
    for given, error, message in wrong:
        with pytest.raises(error, match=message):
            delays.Delays(given, 4, seed=0)
    settings: list[tuple[Any, dict[str, Any], type[Exception], str]] = [
        (delays.Constant, {"seconds": 0.0}, ValueError, "seconds: expected"),
        (delays.Uniform, {"low": 2.0, "high": 1.0}, ValueError, "high: expected"),
        (delays.Uniform, {"low": 0.0}, ValueError, "low: expected"),
        (delays.Uniform, {"high": math.inf}, ValueError, "high: expected"),
        (delays.Exponential, {"mean": -1.0}, ValueError, "mean: expected"),
        (delays.LogNormal, {"sigma": -1.0}, ValueError, "sigma: expected"),
        (delays.LogNormal, {"median": 0.0}, ValueError, "median: expected"),
        (delays.Pareto, {"shape": 0.0}, ValueError, "shape: expected"),
        (delays.Pareto, {"scale": math.nan}, ValueError, "scale: expected"),
        (delays.Stragglers, {"share": 0.0}, ValueError, "share: expected"),
        (delays.Stragglers, {"share": 1.5}, ValueError, "share: expected"),
        (delays.Stragglers, {"factor": 0.0}, ValueError, "factor: expected"),
        (delays.Stragglers, {"base": 0.0}, ValueError, "base: expected"),
        (delays.Stragglers, {"base": "slow"}, TypeError, "base: expected"),
        (delays.Stragglers, {"workers": [-1]}, ValueError, "workers: expected"),
        (delays.Stragglers, {"workers": 1.5}, TypeError, "workers: expected an integer, got float"),
        (delays.Stragglers, {"workers": "12"}, TypeError, "workers: expected an integer, got str"),
        (delays.Outage, {"start": 3.0, "end": 2.0}, ValueError, "end: expected"),
        (delays.Outage, {"worker": 1.5}, TypeError, "worker: expected"),
        (delays.PerWorker, {"delays": [1.0, 0.0]}, ValueError, r"delays\[1\]: expected"),
        (delays.PerWorker, {"delays": 5}, TypeError, "delays: expected a list of numbers or delays, got int"),
        (delays.Replay, {"times": "12"}, TypeError, "times: expected"),
        (delays.Replay, {"times": [["1", "2"]]}, TypeError, "times: expected"),
        (delays.Replay, {"times": [[1.0], [1.0, 2.0]]}, TypeError, "times: expected"),
        (delays.Replay, {"times": [[1j]]}, TypeError, "times: expected"),
        (delays.Replay, {"times": [1.0, 2.0]}, ValueError, r"times: expected a row per worker, \(m, n\), got shape"),
        (delays.Replay, {"times": [[1.0, 0.0]]}, ValueError, "times: expected positive numbers"),
        (delays.Replay, {"times": [[1.0, math.nan]]}, ValueError, "times: expected positive numbers"),
    ]
    for kind, given, error, message in settings:
        with pytest.raises(error, match=message):
            kind(**given)
