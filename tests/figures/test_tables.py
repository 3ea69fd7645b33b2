"""Published tables of learning on graphs: numbers beside ours, claims about them, runs of different lengths."""

from __future__ import annotations

import csv
import json
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("matplotlib")

from byzadmm import figures
from byzadmm.figures import tables
from byzadmm.figures.claims import check_claims
from byzadmm.figures.settings import TABLES

SMALL = """
dataset = "digits"
graph = "complete"
n_workers = 6
iterations = 20
eval_every = 5
batch_size = 4
seeds = 1
"""
MAPS = (
    SMALL
    + """
[heat_map]
n_byzantine = [1, 2]
[[attack]]
name = "none"
[[attack]]
name = "duplicate"
[algorithms.gossip]
step = { power = 1.0 }
[algorithms.bridge]
kind = "trim-neighbors"
step = { power = 1.0 }
[algorithms.byrdie]
kind = "byrdie:blocks=2"
iterations = 8
step = { power = 1.0 }
[algorithms.drsa]
lam = 0.01
step = { power = 1.0 }
[published.drsa]
finals = [0.9, 0.8]
[published.gossip]
finals = [0.9, nan]
"""
)


def published(name: str) -> dict[str, dict[str, float]]:
    """Algorithm -> attack -> published final accuracy."""
    settings = figures.load_settings(name)
    columns = settings.plot_titles()[: len(settings.attacks)]
    return {row: dict(zip(columns, finals, strict=True)) for row, finals in settings.published_finals.items()}


def test_every_claim_holds_in_the_published_tables() -> None:
    assert {name for panels in TABLES.values() for name in panels} == {*tables.CLAIMS, "peng-lam"}
    counts = {}
    for name, (_, _, needed, rule) in tables.CLAIMS.items():
        finals = published(name)
        assert set(needed) <= finals.keys()
        parts = rule(finals)
        assert all(part.holds for part in parts), name
        assert all(len(part.statement) <= 38 for part in parts), name
        counts[name] = len(parts)
    assert counts == {
        "peng-iid": 3, "peng-labels": 1, "ios-iid": 6, "ios-labels": 8, "ios-apart": 4, "ios-octopus": 5,
    }  # fmt: skip


@pytest.mark.parametrize(
    ("name", "changes", "wrong"),
    [
        ("peng-iid", {("drsa", "none"): 0.88}, ["TV norm within 0.01 of gossip: none"]),
        ("peng-iid", {("byrdie", "sign-flip"): 0.86}, ["TV norm best of four: sign-flip"]),
        ("peng-labels", {("gossip", "duplicate"): 0.744}, ["TV norm best of four: duplicate"]),
        ("ios-iid", {("krum", "isolation"): 0.9}, ["robust within 0.015: isolation"]),
        ("ios-iid", {("clipping", "local-sign-flip"): 0.6}, ["clipping below 0.5: local-sign-flip"]),
        ("ios-iid", {("median", "local-sign-flip"): 0.9}, ["median 0.03 below ios: sign-flip"]),
        ("ios-labels", {("krum", "local-sign-flip"): 0.8}, ["others below 0.75: local-sign-flip"]),
        ("ios-labels", {("ios", "isolation"): 0.86}, ["ios above 0.87: isolation"]),
        (
            "ios-labels",
            {("ios", "local-alie"): 0.92},
            ["gossip, clipping best: local-alie", "ios loses 0.02 to 0.1: local-alie"],
        ),
        ("ios-octopus", {("faba", "none"): 0.91}, ["ios better than faba: none"]),
    ],
)
def test_a_claim_fails_where_a_number_is_another(
    name: str, changes: dict[tuple[str, str], float], wrong: list[str]
) -> None:
    finals = published(name)
    for (row, column), value in changes.items():
        finals[row][column] = value
    assert [part.statement for part in tables.CLAIMS[name][3](finals) if not part.holds] == wrong


@pytest.mark.slow
def test_a_table_end_to_end(tmp_path: Path) -> None:
    path = tmp_path / "peng-labels.toml"
    path.write_text(MAPS)
    report = figures.reproduce([path], out=tmp_path / "out", progress=False)
    assert not report.failed
    panel = report.panels["peng-labels"]
    assert isinstance(panel, figures.HeatMap)
    ends = {cell.algorithm: result.iterations.tolist() for cell, result in panel.study.results.items()}
    assert ends["gossip"] == [0, 5, 10, 15, 20]
    assert ends["byrdie"] == [0, 2, 4, 6, 8]
    byrdie = next(curve for curve in panel.curves if curve.name == "byrdie")
    run = next(run for cell, run in panel.study.results.items() if cell.algorithm == "byrdie")
    assert panel.final(0, 0, byrdie) == pytest.approx(run.final_accuracy())
    # Ours, a slash, what was published.
    drsa, gossip = (next(c for c in panel.curves if c.name == name) for name in ("drsa", "gossip"))
    assert panel.cell(1, 1, drsa).endswith("/80.0")
    assert "/" not in panel.cell(1, 1, gossip)
    table = report.table()
    assert "peng-labels: final accuracy in %, q = 2, iid; ours/published" in table
    assert max(map(len, table.splitlines())) <= 80
    rows = list(csv.DictReader((tmp_path / "out" / "peng-labels.csv").read_text().splitlines()))
    assert {(row["algorithm"], row["attack"]): row["published"] for row in rows} == {
        ("gossip", "none"): "0.9", ("gossip", "duplicate"): "", ("bridge", "none"): "", ("bridge", "duplicate"): "",
        ("byrdie", "none"): "", ("byrdie", "duplicate"): "", ("drsa", "none"): "0.9", ("drsa", "duplicate"): "0.8",
    }  # fmt: skip
    assert json.loads((tmp_path / "out" / "peng-labels.json").read_text())["lengths"] == {"byrdie": 8}
    # A claim for every map; not on published numbers, as rows are missing there.
    assert [(claim.number, claim.figure) for claim in report.claims] == [
        (12, "peng-labels, q = 1"), (12, "peng-labels, q = 2"),
    ]  # fmt: skip
    finals = {name: panel.final(0, 1, next(c for c in panel.curves if c.name == name)) for name in ends}
    best = max(finals, key=lambda name: finals[name] or 0.0)
    assert report.claims[0].holds("printed") is (best == "drsa")
    assert report.claims[0].holds("published") is None
    assert "12 peng-labels, q = 1: TV norm best where each node has one label" in table
    quick = figures.load_settings(path).quick()
    assert [quick.extent(curve) for curve in quick.curves] == [{}, {}, {"iterations": 1, "eval_every": 1}, {}]


@pytest.mark.slow
def test_the_sweep_of_the_penalty(tmp_path: Path) -> None:
    path = tmp_path / "peng-lam.toml"
    sweep = {"1e-09": 0.868, "0.01": 0.894, "0.3": 0.814}
    text = SMALL + "sweep = [1e-09, 0.01, 0.3]\n[algorithms.drsa]\nlam = 0.01\nstep = { power = 1.0 }\n"
    for lam, final in sweep.items():
        text += f'[published."drsa:lam={lam}"]\nfinal = {final}\nat = [20]\naccuracy = [{final}]\n'
    path.write_text(text)
    report = figures.reproduce([path], out=tmp_path / "out", progress=False)
    [claim] = report.claims
    assert claim.number == 13
    assert claim.holds("published") is True
    panel = report.panels["peng-lam"]
    spread = [panel.ends(0, f"drsa:lam={lam}", "consensus_variance")[0] for lam in sweep]
    assert spread[0] > spread[1] > 0
    assert claim.parts["printed"][2].holds == (spread[0] >= 1000 * spread[1])
    assert "final accuracy, no attack" in report.table()
    assert check_claims({}) == []


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("finals = [0.9, 0.8]", "finals = [0.9]", "published.drsa.finals: expected 2 numbers, one per attack, got 1"),
        ("finals = [0.9, 0.8]", "finals = [0.9, 8]", r"published.drsa.finals\[1\]: expected a finite number in"),
        ("finals = [0.9, 0.8]", "final = 0.8", "published.drsa.final: unknown key|published.drsa"),
        ("[published.drsa]", "[published.rsa]", "published: expected one of"),
        ("iterations = 8", "iterations = 0", "algorithms.byrdie.iterations: expected an integer >= 1"),
        ("[heat_map]\nn_byzantine = [1, 2]", "", "published.drsa.final: missing"),
    ],
)
def test_what_is_wrong_with_a_table(old: str, new: str, message: str, tmp_path: Path) -> None:
    path = tmp_path / "mine.toml"
    assert old in MAPS
    path.write_text(MAPS.replace(old, new))
    with pytest.raises(ValueError, match=message):
        figures.load_settings(path)


def test_a_length_of_its_own_needs_a_map(tmp_path: Path) -> None:
    path = tmp_path / "mine.toml"
    path.write_text(SMALL + '[algorithms.gossip]\nstep = { power = 1.0 }\niterations = 5\nlabel = "G"\n')
    with pytest.raises(ValueError, match="iterations: of an algorithm, only in a heat map"):
        figures.load_settings(path)


def test_tables_by_name(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    asked: list[Any] = []

    def note(name: Any) -> Any:
        asked.append(name)
        raise KeyError(name)

    monkeypatch.setattr("byzadmm.figures.run.load_settings", note)
    for name, first in (("peng", "peng-iid"), ("ios", "ios-iid")):
        with pytest.raises(KeyError):
            figures.reproduce([name], out=tmp_path)
        assert asked[-1] == first
