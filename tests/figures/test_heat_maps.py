"""Heat maps: rules by attacks."""

from __future__ import annotations

import csv
import json
import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest

pytest.importorskip("matplotlib")

from byzadmm import ADMM, RSA, SGD, aggregators, attacks, datasets, figures, simulate, steps
from byzadmm.figures.settings import make_parts
from byzadmm.study import run
from support.panels import MAPS

pytestmark = pytest.mark.slow


def test_the_figure_of_rules_has_every_rule_and_attack() -> None:
    settings = figures.load_settings("rules")
    assert settings.heat_map == ((4, "iid"), (8, "iid"), (4, "by-label"), (8, "by-label"))
    used = {
        link.rule for c in settings.curves if isinstance(c.algorithm, SGD) for link in c.algorithm.chain().links
    }  # fmt: skip
    assert used >= set(aggregators.RULES) - {"smea"} | {"nearest_neighbor_mixing", "arc", "resampling"}
    assert {type(curve.algorithm) for curve in settings.curves} == {ADMM, RSA, SGD}
    shown = {type(attack).__name__ for attack in settings.attacks if attack is not None}
    assert shown == {
        "Gaussian", "SignFlip", "SameValue", "Zero", "LabelFlip", "ALIE", "InnerProduct", "MinMax", "WorstCase",
    }  # fmt: skip
    assert settings.attacks[0] is None
    steps_of_rules = {
        curve.algorithm.step
        for curve in settings.curves
        if isinstance(curve.algorithm, SGD) and curve.name != "sign-majority"
    }
    assert len(steps_of_rules) == 1
    illegal = [
        (curve.name, case.n_byzantine)
        for curve in settings.curves
        for case in settings.cases()
        if case.attack is None and settings.algorithm(curve, case) is None
    ]
    assert set(illegal) == {("bulyan", 8), ("resampling-trimmed-mean", 8)}


def test_maps_are_those_of_the_study(tmp_path: Path) -> None:
    """A partition with a parameter, a rule that does not tolerate its number, a long title."""
    path = tmp_path / "wide.toml"
    path.write_text(
        """
dataset = "digits"
alpha = 0.25
iterations = 2
eval_every = 1
title = "a title that is a good deal longer than a picture of so few columns has room for in one line"
[heat_map]
n_byzantine = [1, 2, 8]
partition = ["iid", "dirichlet", "dirichlet:5"]
[[attack]]
name = "sign-flip"
[algorithms.ideal]
step = { power = 1.0 }
[algorithms.bulyan]
kind = "sgd"
rule = "bulyan"
step = { power = 1.0 }
"""
    )
    report = figures.reproduce([path], seeds=1, out=tmp_path, progress=False)
    study = report.panels["wide"].study
    drawn = re.findall(r"<!-- (.*?) -->", (tmp_path / "wide.svg").read_text())
    for q in (1, 2, 8):
        for kind in ("i.i.d.", "Dirichlet(0.25)", "Dirichlet(5)"):
            assert f"{q} of 20 Byzantine, {kind}" in drawn
    assert "hatched: so many Byzantine workers are not tolerated" in " ".join(drawn)
    assert {cell.n_byzantine for cell, why in study.missing.items() if why.status == "illegal"} == {8}
    assert "q = 8, Dirichlet(0.25); Ideal SGD" in report.table()


def test_a_heat_map_end_to_end(maps: Path, tmp_path: Path) -> None:
    out = tmp_path / "out"
    report = figures.reproduce([maps], seeds=3, out=out, progress=False)
    assert not report.failed
    panel = report.panels["maps"]
    assert isinstance(panel, figures.HeatMap)
    assert panel.seeds == 2  # as the file says
    assert panel.maps() == [(1, "iid"), (3, "iid"), (1, "by-label"), (3, "by-label")]
    assert panel.attacks_shown() == ["none", "gaussian", "worst-case"]
    mean, bulyan, mixed, _ = panel.rows_shown()
    assert [curve.name for curve in panel.rows_shown()] == ["mean", "bulyan", "mixed", "rsa"]
    assert panel.legal(0, bulyan)
    assert not panel.legal(1, bulyan)
    assert panel.cell(1, 0, bulyan) == "-"
    assert panel.final(1, 2, bulyan) is None
    ideal, spoiled, kept = panel.ideal(1), panel.final(1, 1, mean), panel.final(1, 1, mixed)
    assert ideal is not None
    assert spoiled is not None
    assert kept is not None
    assert ideal > 0.8
    assert spoiled < 0.3
    assert kept > 0.7

    # A cell is the end of a plain run with f = the number of Byzantine workers.
    data, settings = datasets.load("digits"), panel.settings
    runs = [
        simulate(
            data,
            make_parts(settings, data, seed, "by-label"),
            algorithm=SGD(
                rule=(aggregators.NNM(f=3), aggregators.MultiKrum(f=3, neighbors=2)), step=steps.power(3.0)
            ),
            attack=attacks.Gaussian(),
            n_byzantine=3,
            iterations=30,
            eval_every=5,
            seed=seed,
        )
        for seed in range(2)
    ]
    assert panel.final(3, 1, mixed) == pytest.approx(np.mean([run.final_accuracy() for run in runs]))

    with open(out / "maps.csv", newline="") as file:
        rows = list(csv.DictReader(file))
    assert len(rows) == 4 * 3 * 4 + 4  # maps, attacks, rows; Ideal once per map
    illegal = [row for row in rows if row["legal"] == "False"]
    assert {(row["algorithm"], row["n_byzantine"], row["mean"]) for row in illegal} == {("bulyan", "3", "")}
    one = next(r for r in rows if (r["algorithm"], r["n_byzantine"], r["partition"]) == ("mixed", "3", "by-label"))
    assert float(one["low"]) <= float(one["mean"]) <= float(one["high"])
    plots = json.loads((out / "maps.json").read_text())["plots"]
    assert plots[4] == plots[4] | {"n_byzantine": 3, "partition": "iid", "attack": "gaussian"}
    assert set(plots[4]["curves"]) == {"mean", "mixed", "rsa"}
    assert (out / "maps.png").read_bytes().startswith(b"\x89PNG")
    drawn = (out / "maps.svg").read_text()
    assert "are not tolerated" in " ".join(re.findall(r"<!-- (.*?) -->", drawn))

    text = report.table()
    assert "no claims" not in text
    assert "     none    gaussian  worst-case" in text
    assert max(map(len, text.splitlines())) <= 80
    assert "q = 3, iid; Ideal SGD" in text
    page = figures.write_report(report, tmp_path / "page.md").read_text()
    assert "| Bulyan | - | - | - |" in page
    assert "q = 1 and 3 of 10, digits, scale None, iid and by-label" in page
    assert "Gaussian(std=100.0)" in page


def test_ctrl_c_keeps_finished_cells(maps: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    real = run.run_many

    def interrupted(tasks: list[Any], jobs: Any, *, on_result: Any, **_: Any) -> None:
        real(tasks[:5], jobs, on_result=on_result)
        raise KeyboardInterrupt

    monkeypatch.setattr(run, "run_many", interrupted)
    report = figures.reproduce([maps], seeds=1, out=tmp_path / "out", progress=False)
    assert report.failed == {"maps": "interrupted"}
    assert report.panels == {}
    with open(tmp_path / "out" / "maps.csv", newline="") as file:
        rows = list(csv.DictReader(file))
    assert sum(row["mean"] != "" for row in rows) == 5
    assert (tmp_path / "out" / "maps.png").exists()
    assert "<!-- missing -->" in (tmp_path / "out" / "maps.svg").read_text()


def test_a_heat_map_of_one_map_without_ideal(maps: Path, tmp_path: Path) -> None:
    text = MAPS.replace("n_byzantine = [1, 3]", "n_byzantine = [1]").replace('partition = ["iid", "by-label"]\n', "")
    maps.write_text(text.replace("[algorithms.ideal]\nstep = { power = 3.0 }\n", ""))
    panel = figures.reproduce([maps], seeds=1, quick=True, out=tmp_path, progress=False).panels["maps"]
    assert isinstance(panel, figures.HeatMap)
    assert panel.maps() == [(1, "iid")]
    assert panel.ideal(0) is None


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("n_byzantine = [1, 3]", "n_byzantine = 1", "heat_map.n_byzantine: expected a list, got 1"),
        ("n_byzantine = [1, 3]", "n_byzantine = [11]", "n_byzantine: expected an integer in [0, 10], got 11"),
        ("n_byzantine = [1, 3]", "", "heat_map.n_byzantine: missing"),
        ('["iid", "by-label"]', '["iid", "even"]', "heat_map.partition: expected one of iid, by-label, dirichlet"),
        ('["iid", "by-label"]', "[]", "heat_map.partition: expected a list, got []"),
        ('partition = ["iid"', 'attack = 3\npartition = ["iid"', "heat_map.attack: unknown key"),
        ("seeds = 2", "seeds = 0", "seeds: expected an integer >= 1, got 0"),
        ("seeds = 2", "sweep = [0.1]", "heat_map: not with a sweep or the quadratic example"),
    ],
)
def test_a_wrong_heat_map(maps: Path, old: str, new: str, message: str) -> None:
    assert old in MAPS
    maps.write_text(MAPS.replace(old, new, 1))
    with pytest.raises(ValueError, match=r"maps.toml: ") as caught:
        figures.load_settings(maps)
    assert message in str(caught.value)
