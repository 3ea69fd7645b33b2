"""A function that is called at every evaluation: what it sees, and how it stops a run."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from byzadmm import Result, attacks, engines, results, simulate, simulate_many
from support.arrays import same_bits
from support.runs import ALGORITHMS, M, Q, equal_runs, quadratic, small_data, small_parts, small_run

Seen = list[tuple[int, dict[str, float]]]


class Collects:
    """Keeps what it sees, and returns ``answer`` from iteration ``at`` on."""

    def __init__(self, at: float = np.inf, answer: Any = True) -> None:
        self.seen: Seen = []
        self.at, self.answer = at, answer

    def __call__(self, k: int, metrics: dict[str, float]) -> Any:
        self.seen.append((k, dict(metrics)))
        metrics.clear()  # it is the function's own
        return self.answer if k >= self.at else None


def softmax(name: str = "admm", **changes: Any) -> dict[str, Any]:
    settings: dict[str, Any] = {"algorithm": ALGORITHMS[name], "attack": attacks.Gaussian(), "n_byzantine": Q}
    return {"dataset": small_data(), "parts": small_parts(), "iterations": 12, "eval_every": 5} | settings | changes


def test_it_sees_every_value_of_the_curves_and_changes_nothing() -> None:
    cases = [softmax(name) for name in ("admm", "rsa", "median")]
    cases += [softmax(dataset=None, parts=None, loss=quadratic(), optimum=np.zeros(13)), softmax(iterations=0)]
    for case in cases:
        watcher = Collects()
        run = simulate(**case, on_evaluation=watcher)
        assert equal_runs(run, simulate(**case)), case
        assert "stopped" not in run.config, case
        rows = [{"iterations": k} | metrics for k, metrics in watcher.seen]
        assert rows == run.table(), case
        assert all(type(k) is int for k, _ in watcher.seen), case
        assert all(type(value) is float for _, metrics in watcher.seen for value in metrics.values()), case


def test_values_of_a_run_that_diverges_arrive_too() -> None:
    class Loss:
        n_workers, dim = M, 2

        def gradient(self, x: Any, *, worker: int, k: int) -> Any:
            return np.ones(2)

        def evaluate(self, x: Any) -> dict[str, float]:
            return {"loss": np.nan, "norm": np.inf}

    watcher = Collects()
    small_run(loss=Loss(), on_evaluation=watcher, iterations=0)
    [(k, metrics)] = watcher.seen
    assert k == 0
    assert np.isnan(metrics["loss"])
    assert metrics["norm"] == np.inf


@pytest.mark.parametrize("at", [0, 5, 10])
def test_true_stops_the_run(at: int) -> None:
    for answer in (True, np.True_):
        watcher = Collects(at, answer)
        run = simulate(**softmax(), on_evaluation=watcher)
        whole = simulate(**softmax(iterations=at))
        assert equal_runs(run, whole), answer
        assert run.iterations.tolist() == [k for k, _ in watcher.seen] == whole.iterations.tolist(), answer
        assert run.config == whole.config | {"iterations": 12, "stopped": at}, answer
        assert run.final_accuracy() == results.final_accuracy(whole.iterations, whole.accuracy), answer


def test_nothing_else_stops_it() -> None:
    for answer in (1, 1.0, "stop", np.ones(1, np.bool_), np.float64(1), [True], False, np.False_, None):
        run = simulate(**softmax(), on_evaluation=Collects(0, answer))
        assert run.iterations[-1] == 12, repr(answer)
    last = simulate(**softmax(), on_evaluation=Collects(12))  # the run is over anyway
    assert "stopped" not in last.config


def test_a_stopped_run_is_saved_and_loaded(tmp_path: Path) -> None:
    run = simulate(**softmax(), on_evaluation=Collects(5))
    run.save(tmp_path / "run.npz")
    again = Result.load(tmp_path / "run.npz")
    assert again.config["stopped"] == 5
    assert again.config["iterations"] == 12


def test_a_resumed_run_calls_it_for_new_evaluations_only(tmp_path: Path) -> None:
    path, first, second, third = tmp_path / "run.npz", Collects(5), Collects(10), Collects()
    for watcher in (first, second, third):
        run = simulate(**softmax(), checkpoint=path, on_evaluation=watcher)
    assert [[k for k, _ in watcher.seen] for watcher in (first, second, third)] == [[0, 5], [10], [12]]
    whole = simulate(**softmax())
    assert equal_runs(run, whole)
    assert run.table() == whole.table()
    assert run.config == whole.config
    over = Collects()
    simulate(**softmax(), checkpoint=path, on_evaluation=over)
    assert over.seen == []


def test_its_exception_ends_the_run_after_the_checkpoint(tmp_path: Path) -> None:
    def fails(k: int, metrics: dict[str, float]) -> None:
        if k == 5:
            raise ZeroDivisionError("no disk")

    path, closed = tmp_path / "run.npz", Collects()
    with pytest.raises(ZeroDivisionError, match="no disk"):
        simulate(**softmax(), checkpoint=path, on_evaluation=fails)
    assert equal_runs(simulate(**softmax(), checkpoint=path, on_evaluation=closed), simulate(**softmax()))
    assert [k for k, _ in closed.seen] == [10, 12]


def test_what_cannot_be_called_is_refused_before_the_run() -> None:
    with pytest.raises(TypeError, match="on_evaluation: expected None or a callable, got int"):
        simulate(**softmax(), on_evaluation=3)


def test_many_runs_have_one_each() -> None:
    watchers = [Collects(), Collects(5), Collects()]
    ticks: list[tuple[int, int]] = []
    todo = [softmax(seed=seed, on_evaluation=watcher) for seed, watcher in enumerate(watchers)]
    made = simulate_many(todo, 2, progress=lambda *now: ticks.append(now))
    assert [[k for k, _ in watcher.seen] for watcher in watchers] == [[0, 5, 10, 12], [0, 5], [0, 5, 10, 12]]
    assert [isinstance(run, Result) and run.config.get("stopped") for run in made] == [None, 5, None]
    assert ticks[-1] == (36, 36)  # a run that was stopped is over


def test_the_engines_call_it() -> None:
    watcher = Collects(10)
    run = engines.simulate(**softmax(), on_evaluation=watcher)
    assert [k for k, _ in watcher.seen] == [0, 5, 10]
    assert run.config["stopped"] == 10
    assert same_bits(run.x0, simulate(**softmax(iterations=10)).x0)
