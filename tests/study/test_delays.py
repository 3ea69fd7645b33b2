"""Comparisons with delays: names, ends and evaluations, every cell against asynchronous.simulate, views by time."""

from __future__ import annotations

import math
import re
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest

import byzadmm
from byzadmm import ADMM, Result, asynchronous, attacks, catalogue, datasets, delays, partition, results, steps
from byzadmm.study import Cell, Study
from byzadmm.study.extent import make_extent, progress_of
from byzadmm.study.places import places_of
from byzadmm.study.plan import make_plan
from support.runs import equal_runs

ASYNC = ("asgd", "kardam", "basgd", "zeno-plus-plus", "async-rsa", "async-admm")
SMALL: dict[str, Any] = {"n_workers": 10, "n_byzantine": 3, "batch_size": 8, "seeds": 1}


def uneven(worker: int, job: int, rng: np.random.Generator) -> float:
    return 0.5 + worker + float(rng.random())


def test_delays_from_text(tmp_path: Path) -> None:
    delays.Replay([[1.0, 2.0]]).save(tmp_path / "trace.npz")
    (tmp_path / "mine.py").write_text(
        "def slow(worker, job, rng): return 3.0\n"
        "class Late:\n    def __init__(self, by=1.0): self.by = by\n    def __call__(self, *_): return self.by\n"
    )
    slow = delays.Stragglers(delays.Exponential(2), share=0.2, factor=10)
    cases: dict[str, Any] = {
        "2": delays.Constant(2.0),
        "constant:2": delays.Constant(2),
        "exponential": delays.Exponential(),
        "log-normal:median=1,sigma=0.1": delays.LogNormal(1, 0.1),
        "Stragglers:0.2,1e+1": delays.Stragglers(share=0.2, factor=10.0),
        "stragglers:0.2,10+exponential:2": slow,
        "stragglers:workers=3": delays.Stragglers(workers=(3,)),
        "stragglers:workers=0/4 + 2": delays.Stragglers(delays.Constant(2.0), workers=(0, 4)),
        "outage:worker=3,start=10,end=20": delays.Outage(worker=3, start=10, end=20),
        "outage:end=inf+stragglers:0.2,10+exponential:2": delays.Outage(slow),
        "trace.npz": delays.Replay([[1.0, 2.0]]),
    }
    for text, wanted in cases.items():
        assert catalogue.make_delays(text, tmp_path) == wanted, text
    assert catalogue.make_delays("mine.py:slow", tmp_path)(0, 0, None) == 3.0
    assert catalogue.make_delays("outage:1+mine.py:Late:by=2", tmp_path).base(0, 0, None) == 2.0
    assert catalogue.delays().keys() == delays.REGISTRY.keys()
    names = "constant, exponential, log-normal, outage, pareto, stragglers, uniform"
    (tmp_path / "bad.npz").write_bytes(b"PK")
    wrong = {
        "fast": f"delays: expected a number, FILE.npz, FILE.py:NAME or one of {names}; got 'fast'",
        "-1": "delays: expected a finite number > 0.0, got -1.0",
        "exponential:a=1": "delays: exponential takes mean; got 'a=1'",
        "exponential+2": "delays: exponential has no base, got 'exponential+2'",
        "stragglers+fast": f"delays: expected a number, FILE.npz, FILE.py:NAME or one of {names}; got 'fast'",
        "none.npz": "delays: none.npz: no such file",
        "mine.py": "delays: mine.py: expected FILE.py:NAME; it has slow, Late",
        "mine.py:fast": "delays: mine.py: no 'fast' in it; it has slow, Late",
    }
    for text, message in wrong.items():
        with pytest.raises(ValueError, match=f"^{re.escape(message)}$"):
            catalogue.make_delays(text, tmp_path)
    with pytest.raises(ValueError, match=r"^delays: .*bad\.npz: "):
        catalogue.make_delays("bad.npz", tmp_path)


def test_algorithms_by_name_with_their_settings() -> None:
    preset = catalogue.PRESETS["digits"]
    options = {"lam": 0.5, "beta": 2.0, "step": steps.power(3.0), "momentum": 0.5, "f": 2}
    made = {name: catalogue.make_algorithm(name, preset, 3) for name in ASYNC}
    given = {name: catalogue.make_algorithm(name, preset, 3, options) for name in ASYNC}
    for name in ASYNC:
        assert made[name].schedule == "events", name
        assert catalogue.label_of(made[name].describe()) == (name, catalogue.LABELS[name])
        for key, value in options.items():
            if hasattr(given[name], key) and not (name == "async-rsa" and key == "step"):
                assert getattr(given[name], key) == value, f"{name}: {key}"
    assert given["async-rsa"].worker_step == steps.power(3.0)  # type: ignore[attr-defined]
    assert (made["kardam"].f, made["basgd"].f) == (3, 3)  # type: ignore[attr-defined]
    own: dict[str, tuple[str, Any]] = {
        "async-admm:barrier=10": ("barrier", 10),
        "async-admm:max-delay=4": ("max_delay", 4),
        "async-rsa:memory=false": ("memory", False),
        "basgd:rule=nnm+krum,buffers=10": ("buffers", 10),
        "basgd:rule=trimmed-mean,f=1": ("f", 1),
        "kardam:f=3": ("f", 3),
        "kardam:dampening=none": ("dampening", None),
        "zeno-plus-plus:renew=3": ("renew", 3),
        "asgd:dampening=inverse": ("dampening", "inverse"),
    }
    for text, (key, value) in own.items():
        assert getattr(catalogue.make_algorithm(text, preset, 8), key) == value, text
    with pytest.raises(ValueError, match="algorithm: async-admm takes barrier, max_delay; got 'wait=2'"):
        catalogue.make_algorithm("async-admm:wait=2", preset, 8)
    styles = catalogue.styles([*ASYNC, *catalogue.PAPER, "ideal", "trimmed-mean"])
    assert len({style.color for style in styles.values()}) == len(styles)


@pytest.mark.slow
def test_names_alone_learn_and_the_robust_ones_withstand() -> None:
    names = [*ASYNC, "basgd:rule=median,buffers=10", "kardam:f=3"]
    study = byzadmm.compare(
        "digits", algorithms=["ideal", *names], attacks=[None, "sign-flip"], delays="exponential", until=150, seeds=1
    )
    least = {"kardam:f=3": (0.9, 0.0), "asgd": (0.93, 0.0), "zeno-plus-plus": (0.92, 0.88), "basgd": (0.9, 0.85)}
    for name in ("ideal", *names):
        if name in ("kardam", "basgd:rule=median,buffers=10"):  # 8 of 20 are too many
            assert {study.missing[cell].status for cell in study.cells(algorithm=name)} == {"illegal"}, name
            continue
        for attack, low in zip(("none", "sign-flip"), least.get(name, (0.9, 0.75)), strict=True):
            assert study.finals(algorithm=name, attack=attack)[0] > low, (name, attack)


def test_every_cell_is_the_run_that_asynchronous_simulate_gives() -> None:
    data = datasets.load("digits")
    text = "stragglers:0.2,10+exponential"
    made = {"ideal": byzadmm.SGD.for_dataset(data, ideal=True), "admm": ADMM.for_dataset(data)}
    made |= {"async-admm:barrier=4": asynchronous.AsyncADMM.for_dataset(data, barrier=4)}
    study = byzadmm.compare(
        data, algorithms=list(made), attacks=[None, "sign-flip"], delays=text, until=30, jobs=2, **SMALL
    )
    parts = partition.iid(data.train_y, 10, seed=0)
    for name, algorithm in made.items():
        for attack in (None, attacks.SignFlip()):
            run = asynchronous.simulate(
                data,
                parts,
                algorithm=algorithm,
                delays=catalogue.make_delays(text),
                until=30,
                eval_time=1.5,
                attack=None if algorithm.ideal else attack,
                n_byzantine=3,
                batch_size=8,
            )
            found = study.results[Cell(name, "sign-flip" if attack else "none", 3, "iid", 0)]
            assert equal_runs(found, run), (name, attack)
            assert found.time is not None
            assert found.time.tolist() == [1.5 * t for t in range(21)]
    assert study.settings["delays"] == text
    assert study.settings["until"] == 30
    assert not {"iterations", "eval_every"} & study.settings.keys()
    row = study.rows()[-1]
    assert (row["time"], row["arrivals"] > row["iterations"] > 0) == (30.0, True)


def test_ends_and_evaluations() -> None:
    cases: list[tuple[dict[str, Any], dict[str, Any]]] = [
        ({}, {"updates": 1000, "until": None, "arrivals": None, "eval_every": 50}),
        ({"iterations": 7}, {"updates": 7, "until": None, "arrivals": None, "eval_every": 50}),
        ({"until": 100}, {"updates": None, "until": 100.0, "arrivals": None, "eval_time": 5.0}),
        ({"until": 9, "eval_every": 3}, {"updates": None, "until": 9.0, "arrivals": None, "eval_every": 3}),
        ({"arrivals": 30}, {"updates": None, "until": None, "arrivals": 30, "eval_every": 50}),
        (
            {"arrivals": 30, "iterations": 7, "until": 9, "eval_time": 4},
            {"updates": 7, "until": 9.0, "arrivals": 30, "eval_time": 4.0},
        ),
    ]
    for given, wanted in cases:
        assert make_extent(4, delays=2.0, **given) == {"delays": 2.0} | wanted, given
    assert make_extent(4) == {"iterations": 1000, "eval_every": 50}
    counted = [progress_of(make_extent(4, delays=2.0, **given)) for given, _ in cases]
    assert [unit.split()[0] for _, unit in counted] == ["updates", "updates", "%", "%", "arrivals", "updates"]
    assert [total for total, _ in counted] == [1000, 7, 100, 100, 30, 7]
    for name in ("until", "arrivals", "eval_time"):
        with pytest.raises(ValueError, match=f"^{name}: needs delays, which say how long workers take; got 5 without"):
            byzadmm.compare("digits", **{name: 5})
    with pytest.raises(ValueError, match=r"^delays: async-admm is asynchronous and needs them, such as 'stragglers"):
        byzadmm.compare("digits", algorithms=["admm", "async-admm"])
    with pytest.raises(ValueError, match=r"^times: expected a row for each of 20 workers, got 1"):
        make_plan("digits", algorithms="asgd", delays=delays.Replay([[1.0]]))
    with pytest.raises(TypeError, match=r"^delays: expected a delay such as Constant"):
        make_plan("digits", algorithms="asgd", delays=delays.Constant)
    with pytest.raises(TypeError, match="unexpected keyword argument 'updates'"):
        byzadmm.compare("digits", delays=1.0, updates=5)


def test_a_bar_for_all_runs_counts_what_they_have_in_common() -> None:
    for end, total in (({"until": 4}, 100), ({"arrivals": 30}, 30), ({"iterations": 6}, 6)):
        seen: list[tuple[int, int]] = []
        byzadmm.compare(
            "digits",
            algorithms=["admm", "async-admm"],
            attacks=None,
            delays=1.0,
            progress=lambda now, of, seen=seen: seen.append((now, of)),
            **SMALL,
            **end,  # type: ignore[arg-type]
        )
        assert seen[-1] == (2 * total, 2 * total), end
        assert all(now <= of == 2 * total for now, of in seen), end


def test_a_folder_tells_delays_apart(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    begun: list[Any] = []
    real = asynchronous.simulate
    monkeypatch.setattr(asynchronous, "simulate", lambda *a, **k: begun.append(k["delays"]) or real(*a, **k))

    def study(given: Any, **more: Any) -> Study:
        return byzadmm.compare(
            "digits", algorithms=["async-rsa"], attacks=None, delays=given, checkpoint=tmp_path, **SMALL, **more
        )

    first = study(uneven, until=5)
    again = study(uneven, until=5)
    assert len(begun) == 1
    assert equal_runs(next(iter(first.results.values())), next(iter(again.results.values())))
    study("exponential:2", until=5)
    study("exponential:3", until=5)
    study(uneven, until=6)
    assert len(begun) == 4
    kept = Study.load(tmp_path)
    assert [result.time[-1] for result in kept.results.values() if result.time is not None] == [6.0]


@pytest.mark.slow
def test_settings_by_search_with_delays() -> None:
    study = byzadmm.compare(
        "digits",
        algorithms=["admm", "asgd", "async-admm:barrier=5", "zeno-plus-plus"],
        attacks="sign-flip",
        delays="stragglers:0.2,3",
        until=20,
        tune=2,
        **SMALL,
    )
    assert {name: len(found) for name, found in study.tuned.items()} == {
        "admm": 4,
        "asgd": 2,
        "async-admm:barrier=5": 4,
    }
    config = study.results[study.cells(algorithm="async-admm:barrier=5")[0]].config["algorithm"]
    assert (config["barrier"], config["lam"]) == (5, study.tuned["async-admm:barrier=5"]["lam"])


def result(time: list[float], accuracy: list[float], **config: Any) -> Result:
    """A run with these evaluations, two updates and three messages in each unit of time."""
    t = np.array(time)
    curve: npt.NDArray[np.float64] = np.array(accuracy)
    about = {"algorithm": {"name": "ASGD"}, "byzantine": [], "n_workers": 4, "dim": 10, "dtype": "float32"} | config
    events = {"time": t, "arrivals": np.floor(3 * t).astype(np.int64)}
    k = np.floor(2 * t).astype(np.int64)
    return Result(about, k, curve, 1 - curve, 0 * curve, np.full(len(t), math.nan), np.zeros(10), events=events)


def test_final_values_go_by_the_clock_where_evaluations_do() -> None:
    time, accuracy = [0.0, 2.5, 5.0, 7.5, 10.0], [0.1, 0.2, 0.4, 0.8, 0.9]
    by_time = result(time, accuracy, eval_time=2.5)
    by_time.iterations[:] = [0, 2, 9, 10, 10]  # not strictly ascending: nothing happened for a while
    assert by_time.final_accuracy() == 0.9
    by_updates = result(time, accuracy, eval_time=None)
    by_updates.iterations[:] = [0, 2, 9, 10, 10]
    assert by_updates.final_accuracy() == pytest.approx((0.4 + 0.8 + 0.9) / 3)
    # Multiples of a time are rounded; k = 0.8 K counts whatever they are.
    for every in (0.1, 0.35, 1 / 3, 7 / 20):
        grid = [every * t for t in range(21)]
        last = results.final_accuracy(grid, [0.0] * 16 + [1.0] * 5)
        assert last == 1.0, every
    study = Study("s", {"algorithm": ["a"], "attack": [""], "n_byzantine": [0], "partition": [""], "seed": [0]})
    study.results[Cell("a", "", 0, "", 0)] = by_time
    assert study.finals()[0] == 0.9


def test_pictures_by_time_join_seeds_as_steps() -> None:
    axes = {"algorithm": ["a"], "attack": ["none"], "n_byzantine": [0], "partition": ["iid"], "seed": [0, 1]}
    study = Study("s", axes)
    study.results = {
        Cell("a", "none", 0, "iid", 0): result([0.0, 2.0, 4.0], [0.0, 0.4, 0.8]),
        Cell("a", "none", 0, "iid", 1): result([0.0, 3.0, 3.5], [0.2, 0.6, 1.0]),
    }

    def drawn(x: str | None) -> tuple[list[float], list[float], str]:
        ax = study.plot(x=x).axes[0]
        [line] = ax.get_lines()
        return line.get_xdata().tolist(), line.get_ydata().tolist(), ax.get_xlabel()

    wanted = [0.0, 2.0, 3.0, 3.5], pytest.approx([0.1, 0.3, 0.5, 0.7]), "simulated time"
    assert drawn(None) == wanted
    assert drawn("time") == wanted
    assert drawn("arrivals") == ([0, 6, 9, 10], pytest.approx([0.1, 0.3, 0.5, 0.7]), "messages that arrived")
    assert drawn("iterations")[0] == [0, 4, 6, 7]
    assert drawn("bytes")[0] == [2 * 40 * count for count in (0, 6, 9, 10)]
    one = next(iter(study.results.values()))
    line = one.plot().get_lines()[0]
    assert (line.get_xdata().tolist(), line.axes.get_xlabel()) == ([0, 2, 4], "simulated time")
    assert one.plot(x="arrivals").get_lines()[0].get_xdata().tolist() == [0, 6, 12]
    assert one.plot(x="iterations").get_xlabel() == "iterations"
    one.seconds = 24.0
    assert places_of(one, "seconds").tolist() == [0, 12, 24]
    # Runs in rounds without delays have no clock.
    plain = result([0.0, 1.0], [0.0, 1.0])
    plain.events = None
    assert plain.plot().get_xlabel() == "iterations"
    with pytest.raises(ValueError, match="x: expected runs with delays for 'time'"):
        plain.plot(x="time")


def test_the_page_is_drawn_by_time() -> None:
    study = byzadmm.compare("digits", algorithms="async-rsa", attacks=None, delays="exponential", until=4, **SMALL)
    record = study.record()
    assert record["x"] == "time"
    assert record["runs"][0]["time"] == pytest.approx(np.linspace(0, 4, 21))
    assert record["settings"]["delays"] == "exponential"
    study = byzadmm.compare("digits", algorithms="rsa", attacks=None, iterations=5, **SMALL)
    assert (study.record()["x"], "time" in study.rows()[0]) == ("iterations", False)
