"""Settings files with delays: keys, refusals, and a panel drawn by simulated time."""

from __future__ import annotations

import csv
import json
import re
from pathlib import Path

import pytest

from byzadmm import delays, figures

HEAD = """
dataset = "digits"
n_workers = 6
n_byzantine = 1
batch_size = 4
attack = ["none", "sign-flip"]
"""
CURVES = """
[algorithms.ideal]
step = { power = [10.0] }
[algorithms.async-rsa]
lam = 0.014
step = { power = [3.0] }
[algorithms.buffers]
kind = "basgd:rule=median,buffers=3"
step = { power = [10.0] }
f = 1
[algorithms.clean]
kind = "zeno-plus-plus:renew=5"
step = { constant = 0.1 }
"""


def written(folder: Path, text: str) -> Path:
    path = folder / "mine.toml"
    path.write_text(text, encoding="utf-8")
    return path


def test_the_keys(tmp_path: Path) -> None:
    delays.Replay([[1.0]] * 6).save(tmp_path / "trace.npz")
    clock = 'delays = "trace.npz"\nuntil = 20\narrivals = 50\neval_time = 2.5\n'
    settings = figures.load_settings(written(tmp_path, HEAD + clock + CURVES))
    assert settings.delays == delays.Replay([[1.0]] * 6)
    assert (settings.until, settings.arrivals, settings.eval_time) == (20, 50, 2.5)
    assert settings.iterations is settings.eval_every is None
    buffers, clean = (curve.algorithm for curve in settings.curves[2:])
    assert (buffers.rule, buffers.buffers, buffers.f) == ("median", 3, 1)  # type: ignore[attr-defined]
    assert clean.renew == 5  # type: ignore[attr-defined]
    assert [curve.label for curve in settings.curves] == ["Ideal SGD", "Async RSA", "BASGD", "Zeno++"]
    quick = settings.quick()
    assert (quick.until, quick.arrivals, quick.eval_time, quick.iterations) == (4, 10, 0.5, None)
    settings = figures.load_settings(written(tmp_path, HEAD + "delays = 2\niterations = 50\neval_every = 5\n" + CURVES))
    assert (settings.delays, settings.iterations) == (2, 50)


def test_refusals(tmp_path: Path) -> None:
    tuning = "[tuning]\nbudget = 2\n"
    cases = {
        "": "iterations: missing",
        "iterations = 50\n": "eval_every: missing",
        "iterations = 5\neval_every = 1\n": "delays: missing, and algorithms.async-rsa is asynchronous",
        "iterations = 5\neval_every = 1\nuntil = 3\n": "until: needs delays",
        "delays = 1\n": "iterations: missing",
        "delays = 1\narrivals = 5\n": "eval_every: missing",
        "delays = -1\nuntil = 5\n": "delays: expected a finite number > 0.0, got -1",
        'delays = "fast"\nuntil = 5\n': "delays: expected a number, FILE.npz, ",
        "delays = [1]\nuntil = 5\n": "delays: expected a delay of byzadmm.delays, a function or a number, got list",
        'delays = "stragglers:workers=7"\nuntil = 5\n': "workers: expected an integer in [0, 5], got 7",
        "delays = 1\nuntil = 0\n": "until: expected a finite number > 0.0, got 0",
        f"delays = 1\nuntil = 5\n{tuning}": "delays: not with tuning",
        'delays = 1\nuntil = 5\n[algorithms.slow]\nkind = "asgd:speed=1"\n': (
            "algorithms.slow.kind: asgd takes dampening, momentum; got 'speed=1'"
        ),
    }
    for text, message in cases.items():
        with pytest.raises(ValueError, match=rf"mine\.toml: {re.escape(message)}"):
            figures.load_settings(written(tmp_path, HEAD + text + CURVES))


def test_a_panel_by_simulated_time(tmp_path: Path) -> None:
    path = written(tmp_path, HEAD + 'delays = "exponential"\nuntil = 20\n' + CURVES)
    report = figures.reproduce([path], seeds=2, out=tmp_path / "out", progress=False, report=tmp_path / "out")
    assert not report.failed
    panel = report.panels["mine"]
    assert panel.axis == "time"
    assert panel.places == pytest.approx([float(t) for t in range(21)])
    assert panel.values[1, "buffers"].shape == (2, 21)
    for row in panel.finals():
        cells = [cell for cell in panel.study.cells(algorithm=row["algorithm"], attack=row["attack"])]
        assert row["mean"] == pytest.approx(sum(map(panel.study.final, cells)) / 2), row
    with (tmp_path / "out" / "mine.csv").open() as file:
        rows = list(csv.DictReader(file))
    assert [row["time"] for row in rows[:3]] == ["0.0", "1.0", "2.0"]
    record = json.loads((tmp_path / "out" / "mine.json").read_text())
    assert record["time"] == panel.places.tolist()
    assert "iterations" not in record
    assert {path.suffix for path in report.paths} >= {".png", ".svg", ".html"}


def test_runs_that_are_evaluated_at_different_times_share_a_grid(tmp_path: Path) -> None:
    path = written(tmp_path, HEAD + 'delays = "exponential"\narrivals = 60\neval_every = 2\n' + CURVES)
    report = figures.reproduce([path], seeds=2, out=tmp_path / "out", progress=False)
    assert not report.failed
    panel = report.panels["mine"]
    last = max(float(result.time[-1]) for result in panel.study.results.values() if result.time is not None)
    assert (panel.places[0], panel.places[-1]) == (0.0, last)
    assert len(panel.places) <= 201
    for (_, name), values in panel.values.items():
        ends = [result.accuracy[-1] for cell, result in panel.study.results.items() if cell.algorithm == name]
        assert set(values[:, -1]) <= set(ends), name  # a run that is over stays where it is
