"""How asynchronous runs end, when they are evaluated, and what they say about it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from byzadmm import ADMM, RSA, SGD, Result, asynchronous, attacks, delays, steps
from byzadmm.asynchronous import ASGD, BASGD, AsyncADMM, Kardam
from support.asynchronous import ASYNCHRONOUS, SignVote, differences, run
from support.runs import ALGORITHMS, Array, M, quadratic

STEP = steps.constant(0.05)
ONE = {"algorithm": ASGD(STEP)}


def places(found: Result) -> list[tuple[int, float, int]]:
    assert found.time is not None
    assert found.arrivals is not None
    return list(zip(found.iterations.tolist(), found.time.tolist(), found.arrivals.tolist(), strict=True))


def test_ends_alone_and_together() -> None:
    """Seven workers, a second for each job: t updates and arrivals after t / 7 seconds, in sevens."""
    cases: list[tuple[dict[str, Any], tuple[int, float, int], str | None]] = [
        ({"updates": 10}, (10, 2.0, 10), None),
        ({"arrivals": 16}, (16, 3.0, 16), "16 messages have arrived"),
        ({"until": 3.5}, (21, 3.5, 21), "the time 3.5 is over"),
        ({"until": 3.0}, (21, 3.0, 21), "the time 3 is over"),
        ({"until": 0.5}, (0, 0.5, 0), "the time 0.5 is over"),
        ({"updates": 10, "arrivals": 16}, (10, 2.0, 10), None),
        ({"updates": 20, "arrivals": 16}, (16, 3.0, 16), "16 messages have arrived"),
        ({"updates": 20, "arrivals": 16, "until": 2.9}, (14, 2.9, 14), "the time 2.9 is over"),
        ({"updates": 7, "arrivals": 7, "until": 1.0}, (7, 1.0, 7), None),
        ({"updates": 0}, (0, 0.0, 0), None),
        ({"arrivals": 0}, (0, 0.0, 0), "0 messages have arrived"),
        ({}, (1000, 143.0, 1000), None),
    ]
    for ends, last, why in cases:
        for evaluated in ({"eval_every": 1000}, {"eval_every": 4}, {"eval_time": 0.8}, {"eval_time": 1.0}):
            found = run(ASGD(STEP), delays=1.0, **ends, **evaluated)
            assert places(found)[0] == (0, 0.0, 0), (ends, evaluated)
            if "eval_every" in evaluated and last[0] % evaluated["eval_every"] == 0:
                assert places(found)[-1][::2] == last[::2], (ends, evaluated)  # evaluated when the model came to be
            else:
                assert places(found)[-1] == last, (ends, evaluated)
            assert found.config.get("ended") == why, (ends, evaluated)
            assert len(set(places(found))) == len(places(found)), (ends, evaluated)
            assert found.accepted is not None
            assert found.accepted.sum() == last[2], (ends, evaluated)


def test_evaluations_by_time() -> None:
    found = run(ASGD(STEP), delays=1.0, until=2.5, eval_time=0.5)
    assert places(found) == [(0, 0.0, 0), (0, 0.5, 0), (7, 1.0, 7), (7, 1.5, 7), (14, 2.0, 14), (14, 2.5, 14)]
    found = run(ASGD(STEP), delays=1.0, arrivals=10, eval_time=1.5)
    assert places(found) == [(0, 0.0, 0), (7, 1.5, 7), (10, 2.0, 10)]
    found = run(ASGD(STEP), delays=1.0, updates=9, eval_time=50.0)
    assert places(found) == [(0, 0.0, 0), (9, 2.0, 9)]
    # Multiples that are no numbers of their own, and many of them.
    for every in (0.1, 0.7, 1 / 3, 1.9145154450911486, 2.739139176060388):
        for algorithm in (ASGD(STEP), ALGORITHMS["rsa"]):
            found = run(algorithm, delays=delays.Uniform(0.9, 1.1), until=40 * every, eval_time=every)
            assert found.time is not None
            np.testing.assert_allclose(found.time, every * np.arange(41), rtol=1e-15, atol=0)


@pytest.mark.slow
def test_a_pause_for_an_evaluation_by_time_belongs_to_a_longer_run_if_the_instant_is_over(tmp_path: Path) -> None:
    for name, algorithm in (ASYNCHRONOUS | {"rounds": ALGORITHMS["admm"], "rounds too": ALGORITHMS["median"]}).items():
        if algorithm.validates:
            continue
        whole = run(algorithm, delays=1.0, arrivals=21, eval_time=1.0)
        for arrivals in (3, 7, 10):
            kept = tmp_path / f"{name} {arrivals}.npz"
            run(algorithm, delays=1.0, arrivals=arrivals, eval_time=1.0, checkpoint=kept)
            resumed = run(algorithm, delays=1.0, arrivals=21, eval_time=1.0, checkpoint=kept)
            assert not differences(whole, resumed), (name, arrivals, places(resumed))
    kept = tmp_path / "updates.npz"
    for updates in (1, 4, 15):
        resumed = run(ALGORITHMS["admm"], delays=1.0, updates=updates, eval_time=1.0, checkpoint=kept)
    assert not differences(resumed, run(ALGORITHMS["admm"], delays=1.0, updates=15, eval_time=1.0))


def test_a_finished_run_by_time_is_the_same_when_asked_for_again(tmp_path: Path) -> None:
    settings: dict[str, Any] = {"delays": 2.0, "updates": 9, "eval_time": 1.7}
    for name, algorithm in {"events": ASGD(STEP), "rounds": ALGORITHMS["rsa"]}.items():
        whole = run(algorithm, **settings)
        assert whole.time is not None
        assert whole.time[-1] % 1.7, name  # its end is no multiple
        for _ in range(3):
            again = run(algorithm, **settings, checkpoint=tmp_path / f"{name}.npz")
            assert not differences(whole, again), name
        longer = run(algorithm, **(settings | {"updates": 20}), checkpoint=tmp_path / f"{name}.npz")
        assert not differences(run(algorithm, **(settings | {"updates": 20})), longer), name


def test_progress() -> None:
    def seen(**settings: Any) -> list[tuple[int, int]]:
        told: list[tuple[int, int]] = []
        run(ASGD(STEP), delays=1.0, progress=lambda *now: told.append(now), **settings)
        return told

    assert seen(updates=10, eval_every=4) == [(0, 10), (4, 10), (8, 10), (10, 10)]
    assert seen(arrivals=10, eval_every=4) == [(0, 10), (4, 10), (8, 10), (10, 10)]
    assert seen(until=2.0, eval_time=1.0) == [(0, 100), (50, 100), (100, 100)]
    assert seen(updates=10, until=1.0, eval_every=7) == [(0, 10), (7, 10)]


def test_an_evaluation_is_told_the_time_and_the_arrivals() -> None:
    seen: list[tuple[int, dict[str, float]]] = []
    found = run(ASGD(STEP), delays=1.0, updates=21, eval_every=7,
                on_evaluation=lambda k, metrics: seen.append((k, dict(metrics))))  # fmt: skip
    assert [(k, now["time"], now["arrivals"]) for k, now in seen] == places(found)
    assert [now["loss"] for _, now in seen] == found.loss.tolist()
    assert [{"iterations": k} | now for k, now in seen] == found.table()
    stopped = run(ASGD(STEP), delays=1.0, updates=21, eval_every=3, on_evaluation=lambda k, now: now["time"] >= 2)
    assert places(stopped)[-1] == (9, 2.0, 9)
    assert stopped.config["stopped"] == 9


def test_a_metric_named_like_the_clock_is_refused() -> None:
    class Loss:
        n_workers, dim = 2, 1

        def __init__(self, name: str) -> None:
            self.name = name

        def gradient(self, x: Array, *, worker: int, k: int) -> Array:
            return x

        def evaluate(self, x: Array) -> dict[str, float]:
            return {self.name: 1.0}

    for name in ("time", "arrivals"):
        with pytest.raises(ValueError, match=f"loss.evaluate: '{name}' is the clock of the run, not a metric"):
            run(ASGD(STEP), loss=Loss(name), updates=1)


def ended(match: str, algorithm: Any, **settings: Any) -> Result:
    with pytest.warns(RuntimeWarning, match=f"^the run ended early: {match}"):
        return run(algorithm, **settings)


def test_runs_in_which_nobody_answers_any_more() -> None:
    never = delays.Replay(np.tile([1.0, 1.0, np.inf], (M, 1)))
    found = ended("no message is on its way$", ASGD(STEP), delays=never)
    assert places(found)[-1] == (14, 2.0, 14)
    assert found.config["ended"] == "no message is on its way"
    two = delays.PerWorker([lambda *_: np.inf] * 3 + [1.0] * (M - 3))
    admm = AsyncADMM(0.3, 0.5, STEP, STEP, barrier=5)
    found = ended("no message is on its way, and those of 4 workers do not suffice for an update$", admm, delays=two)
    assert places(found)[-1] == (1, 1.0, 4)
    for algorithm in (ASGD(STEP), admm, BASGD(step=STEP), Kardam(STEP), SignVote()):
        found = ended("every worker is eliminated", algorithm, attack=attacks.NonFinite(), n_byzantine=M)
        assert sorted(found.eliminated) == list(range(M)), algorithm
        assert found.accepted is not None
        assert found.accepted.sum() == 0, algorithm
    crash = delays.Outage(worker=3, start=4.5)
    for algorithm, round_ in ((ALGORITHMS["median"], 5), (ALGORITHMS["admm"], 5)):
        why = f"a worker never answers in round {round_}, and the master waits for it"
        found = ended(why, algorithm, delays=crash)
        assert found.config["ended"] == why
        assert found.time is not None
        assert found.time[-1] == 4.0


@pytest.mark.slow
def test_a_run_that_stands_still_ends_unless_it_ends_otherwise(tmp_path: Path) -> None:
    """One worker of a buffer of its own is silent; one that is only slow is waited for."""
    silent = delays.PerWorker([lambda *_: np.inf, 1.0, 0.3, 1.0, 1.0, 1.0, 1.0])
    for changes in ({"arrivals": 9000}, {"until": 1100.0}):
        found = run(BASGD(step=STEP), delays=silent, updates=4, **changes)
        assert found.iterations[-1] == 0, changes
    slow = delays.PerWorker([600.0, 1.0, 0.5, 1.0, 1.0, 1.0, delays.Constant(1100.0)])
    found = run(BASGD(step=STEP), delays=slow, updates=1)
    assert places(found)[-1][:2] == (1, 1100.0)
    kept = tmp_path / "run.npz"
    found = ended("no update in 1000 messages of every worker$", BASGD(step=STEP), delays=silent, checkpoint=kept)
    again = ended("no update in 1000 messages of every worker$", BASGD(step=STEP), delays=silent, checkpoint=kept)
    assert not differences(found, again)
    assert found.accepted is not None
    assert 1000 <= found.accepted[1:].min() <= 1200


def test_what_cannot_be_run() -> None:
    admm = AsyncADMM(0.3, 0.5, STEP, STEP)
    wrong: list[tuple[Any, dict[str, Any], type[Exception], str]] = [
        (admm, {"participation": 0.5}, ValueError, "participation: expected 1 for AsyncADMM, which has no rounds, got"),
        (admm, {"updates": -1}, ValueError, "updates: expected"),
        (admm, {"arrivals": 1.5}, TypeError, "arrivals: expected"),
        (admm, {"until": 0.0}, ValueError, "until: expected"),
        (admm, {"until": np.inf}, ValueError, "until: expected"),
        (admm, {"eval_time": -1.0}, ValueError, "eval_time: expected"),
        (admm, {"eval_every": 0}, ValueError, "eval_every: expected"),
        (admm, {"delays": "fast"}, TypeError, "delays: expected a delay of byzadmm.delays, a function or a number"),
        (admm, {"delays": lambda worker, job, rng: -1}, ValueError, "delays: expected a positive number of seconds"),
        (admm, {"local_steps": 2}, ValueError, "local_steps: expected 1 for AsyncADMM"),
        (ASGD(STEP), {"x_init": np.zeros((M, 13))}, ValueError, "x_init: ASGD's workers have no models of their own"),
        (ASGD(STEP), {"iterations": 5}, TypeError, "iterations"),
        ("admm", {}, TypeError, "algorithm: expected ADMM, RSA, SGD or another"),
    ]
    for algorithm, settings, error, message in wrong:
        with pytest.raises(error, match=message):
            asynchronous.simulate(None, None, **({"loss": quadratic(), "delays": 1.0} | settings), algorithm=algorithm)


def test_a_checkpoint_of_other_settings_is_refused(tmp_path: Path) -> None:
    kept = tmp_path / "run.npz"
    run(ASGD(STEP), updates=6, eval_every=3, checkpoint=kept)
    others: list[dict[str, Any]] = [{"delays": delays.Exponential(2.0)}, {"eval_time": 1.0}, {"seed": 4}]
    for changes in others:
        with pytest.raises(ValueError, match="belongs to another run"):
            run(ASGD(STEP), **({"updates": 6, "eval_every": 3, "checkpoint": kept} | changes))
    with pytest.raises(ValueError, match="is at iteration 6, beyond iterations=5"):
        run(ASGD(STEP), updates=5, eval_every=3, checkpoint=kept)


def test_rejection_rates_of_runs_in_rounds_do_not_exist() -> None:
    from byzadmm import simulate

    found = simulate(None, None, loss=quadratic(), algorithm=ALGORITHMS["median"], iterations=1)
    with pytest.raises(ValueError, match="rejection_rates: expected an asynchronous run, got one in rounds"):
        found.rejection_rates()
    assert (found.time, found.arrivals, found.staleness, found.accepted, found.rejected) == (None,) * 5
    for algorithm in (ADMM(0.3, 0.5, STEP, STEP), RSA(0.3, STEP), SGD(step=STEP)):
        clocked = run(algorithm, updates=9, attack=attacks.NonFinite(), byzantine=[1, 2])
        rates = clocked.rejection_rates()
        assert rates == {"regular": 0.0, "byzantine": 1.0}, algorithm
