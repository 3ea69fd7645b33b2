"""Many runs side by side, and runs that are interrupted."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy.typing as npt
import pytest

from byzadmm import ADMM, Result, attacks, simulate, simulate_many
from support.runs import ALGORITHMS, Q, equal_runs, small_data, small_parts, small_run

Array = npt.NDArray[Any]


def configs(count: int = 5) -> list[dict[str, Any]]:
    data, parts = small_data(), small_parts()
    names = list(ALGORITHMS)
    settings = {"dataset": data, "parts": parts, "attack": attacks.Gaussian(), "n_byzantine": Q, "eval_every": 10}
    return [{**settings, "algorithm": ALGORITHMS[names[i]], "iterations": 20 + 5 * i, "seed": i} for i in range(count)]


@pytest.mark.parametrize("jobs", [None, 1, 4])
def test_many_runs_are_the_same_runs_in_order(jobs: int | None) -> None:
    todo = configs()
    seen: list[tuple[int, int]] = []
    ended: dict[int, Any] = {}
    results = simulate_many(todo, jobs, progress=lambda *now: seen.append(now), on_result=ended.__setitem__)
    for config, run in zip(todo, results, strict=True):
        assert isinstance(run, Result)
        assert equal_runs(run, simulate(**config))
    assert ended == dict(enumerate(results))
    total = sum(config["iterations"] for config in todo)
    assert {now[1] for now in seen} == {total}
    assert [now[0] for now in seen] == sorted(now[0] for now in seen)
    assert seen[-1][0] == total


def test_the_former_name_of_jobs_works_with_a_warning() -> None:
    [config] = configs(1)
    with pytest.warns(DeprecationWarning, match=r"simulate_many\(workers=\) is deprecated: use jobs="):
        [run] = simulate_many([config], workers=1)
    assert isinstance(run, Result)
    assert equal_runs(run, simulate(**config))


def test_the_other_runs_survive_one_that_fails() -> None:
    good = configs(2)

    def fails(messages: Array, *, k: int, **_: Any) -> Array:
        raise ZeroDivisionError(f"at {k}")

    bad = [
        good[0] | {"attack": fails},
        good[0] | {"iterations": "many"},
        good[0] | {"iterations": -1},
        {"algorithm": ADMM()},
        good[0] | {"colour": "red"},
    ]
    results = simulate_many([good[0], *bad, good[1]])
    assert isinstance(results[0], Result)
    assert isinstance(results[-1], Result)
    expected = [
        (ZeroDivisionError, "at 2"),
        (TypeError, "iterations: expected an integer, got str"),
        (ValueError, "iterations: expected an integer in [0, 4611686018427387904], got -1"),
        (TypeError, "loss: 'softmax' needs a dataset and parts"),
        (TypeError, "simulate() got an unexpected keyword argument 'colour'"),
    ]
    assert [(type(error), str(error)) for error in results[1:-1]] == expected
    assert simulate_many([]) == []
    with pytest.raises(ValueError, match="jobs: expected an integer >= 1, got 0"):
        simulate_many(good, 0)


def test_an_interrupt_stops_all_runs_and_keeps_what_was_finished() -> None:
    finished: list[int] = []

    def keep(number: int, run: Result | Exception) -> None:
        assert isinstance(run, Result)
        finished.append(number)
        if len(finished) == 2:
            raise KeyboardInterrupt

    started: list[int] = []

    def note(messages: Array, *, byzantine: Sequence[int], algorithm: Any, k: int, **_: Any) -> Array:
        if k == 1:
            started.append(k)
        return messages[byzantine]

    long = [config | {"attack": note, "algorithm": ALGORITHMS["mean"], "iterations": 200} for config in configs(7)] * 4
    with pytest.raises(KeyboardInterrupt):
        simulate_many(long, 1, on_result=keep)
    assert finished == [0, 1]
    assert len(started) < len(long)


def test_an_interrupt_inside_a_run_reaches_the_caller() -> None:
    def interrupt(messages: Array, **_: Any) -> Array:
        raise KeyboardInterrupt

    todo = configs(3)
    todo[1]["attack"] = interrupt
    with pytest.raises(KeyboardInterrupt):
        simulate_many(todo, 2)


def test_a_single_run_can_be_interrupted_and_resumed(tmp_path: Path) -> None:
    def stop(done: int, total: int) -> None:
        if done == 15:
            raise KeyboardInterrupt

    path = tmp_path / "run.npz"
    with pytest.raises(KeyboardInterrupt):
        small_run(checkpoint=path, progress=stop)
    assert equal_runs(small_run(checkpoint=path), small_run())
