"""Runs of panels: curves, files, tables, pictures, interrupts; the example of the paper."""

from __future__ import annotations

import csv
import json
import re
import xml.etree.ElementTree
from pathlib import Path
from typing import Any

import numpy as np
import pytest

pytest.importorskip("matplotlib")

from byzadmm import ADMM, RSA, SGD, attacks, catalogue, datasets, figures, losses, simulate, steps
from byzadmm.figures.settings import make_parts
from byzadmm.study import run
from support.panels import DIGITS

pytestmark = pytest.mark.slow


@pytest.mark.parametrize(
    ("attack", "admm", "rsa"), [(attacks.SmallValue(0.5), 0.375, 0.25), (attacks.LargeValue(1.0), 0.5, 0.5)]
)
def test_limits_of_the_example(attack: attacks.Attack, admm: float, rsa: float) -> None:
    both = {"master_step": steps.inv_linear(1 / 8, 3), "worker_step": steps.inv_linear(1 / 8, 1)}
    for algorithm, limit in [(ADMM(lam=0.5, beta=1.0, **both), admm), (RSA(lam=0.5, **both), rsa)]:
        result = simulate(
            None,
            None,
            loss=losses.Quadratic([0.5] * 3, [[1.0]] * 3),
            algorithm=algorithm,
            attack=attack,
            n_byzantine=1,
            rho=1.0,
            first_k=0,
            x_init=np.ones((3, 1)),
            iterations=20_000,
            eval_every=20_000,
            dtype="float64",
        )
        assert abs(result.x0[0] - limit) < 5e-4
        assert result.x is not None
        assert np.abs(result.x[:2, 0] - limit).max() < 2e-3


def test_reproduce_end_to_end(digits: Path, tmp_path: Path) -> None:
    out = tmp_path / "out"
    ticks: list[int] = []
    report = figures.reproduce(
        [digits, "example"], seeds=2, quick=False, out=out, progress=lambda d, t: ticks.append(d)
    )
    assert list(report.panels) == ["mine", "example"]
    assert not report.failed
    assert ticks
    assert [(c.number, c.printed) for c in report.claims] == [(10, True)]
    for name in ("mine", "example"):
        assert (out / f"{name}.png").read_bytes().startswith(b"\x89PNG")
        assert xml.etree.ElementTree.parse(out / f"{name}.svg").getroot().tag.endswith("svg")
        assert {out / f"{name}.{kind}" for kind in ("png", "svg", "csv", "json")} <= set(report.paths)
    with open(out / "mine.csv", newline="") as file:
        rows = list(csv.DictReader(file))
    record = json.loads((out / "mine.json").read_text())
    assert len(rows) == 8 * 5
    last = next(row for row in rows if row["algorithm"] == "ideal" and row["iteration"] == "40")
    both = [curve[-1] for curve in record["plots"][0]["curves"]["ideal"]]
    assert len(both) == 2
    assert both[0] != both[1]
    assert float(last["mean"]) == pytest.approx(np.mean(both))
    assert (float(last["low"]), float(last["high"])) == (min(both), max(both))
    assert np.mean(both) > 0.7
    [claim] = json.loads((out / "claims.json").read_text())["claims"]
    assert [part["verdict"] for part in claim["parts"]] == ["reproduced"] * 5
    assert claim["parts"][0]["printed"] == {"holds": True, "strict": True, "numbers": "0.3750"}
    assert "| **10, example: The limits" in (out / "claims.md").read_text()
    assert "parts: 5 reproduced" in report.table()

    # A panel's numbers are those of a plain run.
    settings, data = figures.load_settings(digits), datasets.load("digits")
    plain = simulate(
        data,
        make_parts(settings, data, 1),
        algorithm=settings.curves[0].algorithm,
        attack=attacks.SignFlip(-3.0),
        n_byzantine=3,
        iterations=40,
        eval_every=10,
        seed=1,
    )
    np.testing.assert_array_equal(report.panels["mine"].values[0, "admm"][1], plain.accuracy)

    page = figures.write_report(report, tmp_path / "page.md").read_text()
    assert "2 seed(s)" in page
    assert "| admm ends at 0.375 (small value) | - | yes, 0.3750 |" in page
    assert "### mine: Digits" in page
    assert "lam = 0.05, step = Power(c=0.1, p=0.5)" in page


def test_quick_is_labelled(digits: Path, tmp_path: Path) -> None:
    report = figures.reproduce(digits, seeds=3, quick=True, out=tmp_path, progress=False)
    panel = report.panels["mine"]
    assert panel.seeds == 1
    assert panel.iterations[-1] == 8
    assert "not the paper's" in report.table()
    assert (
        "not the paper's" in (tmp_path / "mine.svg").read_text()
        or json.loads((tmp_path / "mine.json").read_text())["quick"]
    )
    assert "not the paper's" in figures.write_report(report, tmp_path / "page.md").read_text()


def test_a_sweep_draws_one_curve_per_value(digits: Path, tmp_path: Path) -> None:
    digits.write_text(
        "sweep = [0.01, 0.1, 1.0]\n"
        + DIGITS.replace(
            "[algorithms.admm]\nprinted = true\n",
            '[algorithms.x]\nkind = "rsa"\nlam = 1.0\nstep = { power = 1.0 }\n\n[algorithms.y]\nkind = "admm"\n',
        )
    )
    panel = figures.reproduce([digits], seeds=1, out=tmp_path, progress=False).panels["mine"]
    assert [name for _, name in panel.values] == [
        f"{curve}:lam={lam}" for curve in ("y", "admm-tuned") for lam in ("0.01", "0.1", "1")
    ]


def test_claims_of_the_papers_panels_are_checked(tmp_path: Path) -> None:
    one, five = tmp_path / "fig1a.toml", tmp_path / "fig5a.toml"
    one.write_text(DIGITS)
    few = tmp_path / "fig2a.toml"
    few.write_text(DIGITS.replace("[algorithms.rsa]", '[algorithms.other]\nkind = "rsa"'))
    few.write_text(few.read_text().replace('name = "sign-flip"\nscale = -3.0', 'name = "none"'))
    five.write_text("sweep = [0.01, 0.1]\n" + DIGITS.replace("printed = true\n", ""))
    report = figures.reproduce([one, few, five], seeds=1, out=tmp_path, progress=False)
    assert report.panels["fig2a"].plots == ["no attack"]
    assert [(claim.number, claim.figure) for claim in report.claims] == [(1, "fig1a"), (7, "fig5a")]
    page = figures.write_report(report, tmp_path / "page.md").read_text()
    assert "| **1, fig1a: SGD fails;" in page
    assert "| median a little worse | - |" in page


def test_ctrl_c_keeps_finished_panels(digits: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    other = tmp_path / "other.toml"
    other.write_text(DIGITS)
    real, turns = run.run_many, iter([None, 3])

    def interrupted(tasks: list[Any], jobs: Any, *, on_result: Any, **_: Any) -> None:
        count = next(turns)
        real(tasks[:count], jobs, on_result=on_result)
        if count is not None:
            raise KeyboardInterrupt

    monkeypatch.setattr(run, "run_many", interrupted)
    report = figures.reproduce([digits, other], seeds=1, out=tmp_path / "out", progress=False)
    assert report.interrupted
    assert list(report.panels) == ["mine"]
    assert report.failed == {"other": "interrupted"}
    assert (tmp_path / "out" / "mine.png").exists()
    assert not (tmp_path / "out" / "other.png").exists()
    assert "other: not finished: interrupted" in report.table()
    assert "- other: not finished: interrupted" in figures.write_report(report, tmp_path / "page.md").read_text()


def test_a_panel_without_data_or_with_a_failing_run_does_not_affect_others(
    digits: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def absent(name: str, **options: Any) -> Any:
        if name == "mnist":
            raise FileNotFoundError("mnist is not here")
        return load(name, **options)

    load = datasets.load
    monkeypatch.setattr(datasets, "load", absent)
    wrong = tmp_path / "wrong.toml"
    wrong.write_text(DIGITS.replace('name = "sign-flip"\nscale = -3.0', 'name = "duplicate"\nworker = 99'))
    report = figures.reproduce(["fig1a", "fig2a", wrong, digits], seeds=1, out=tmp_path, progress=False)
    assert list(report.panels) == ["mine"]
    assert report.failed["fig1a"] == report.failed["fig2a"] == "mnist is not here"
    assert "worker=99 is not one of 10 workers" in report.failed["wrong"]


def test_a_rule_that_does_not_tolerate_its_f_is_found_before_anything_runs(digits: Path, tmp_path: Path) -> None:
    digits.write_text(DIGITS.replace("f = 3", "f = 9"))
    message = r"mine.toml: algorithms.cut: trimmed_mean: f=9 is too large for n=10 workers; at most 4"
    with pytest.raises(ValueError, match=message):
        figures.reproduce(["example", digits], seeds=1, out=tmp_path / "out", progress=False)
    assert not (tmp_path / "out").exists()


def test_dollar_signs_are_characters(digits: Path, tmp_path: Path) -> None:
    digits.write_text(DIGITS.replace('title = "Digits"', 'title = "costs $x_{$ or more"'))
    report = figures.reproduce([digits], seeds=1, out=tmp_path, progress=False)
    assert report.failed == {}
    assert (tmp_path / "mine.png").stat().st_size > 10_000


def test_names(digits: Path, tmp_path: Path) -> None:
    (tmp_path / "sub").mkdir()
    same = tmp_path / "sub" / "mine.toml"
    same.write_text(DIGITS)
    with pytest.raises(ValueError, match="names: two panels are called 'mine'"):
        figures.reproduce([digits, same], out=tmp_path, progress=False)
    with pytest.raises(ValueError, match="seeds: expected an integer >= 1, got 0"):
        figures.reproduce([digits], seeds=0, out=tmp_path, progress=False)


def test_curves_look_as_they_do_in_run(digits: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from matplotlib.figure import Figure

    from byzadmm.figures.curves import draw_runs

    drawn: list[Figure] = []
    monkeypatch.setattr(Figure, "savefig", lambda self, *_, **__: drawn.append(self))
    report = figures.reproduce([digits], quick=True, out=tmp_path, progress=False)
    [panel] = report.panels.values()
    ran = simulate(None, None, loss=losses.Quadratic([1.0], [[2.0]]), algorithm=SGD(), iterations=1)
    names = [name for name in catalogue.STYLES if name in {curve.kind for curve in panel.curves}]
    draw_runs(tmp_path / "run.png", [(name, ran) for name in reversed(names)], "run")
    inside, beside = (
        {line.get_label().partition(":")[0].removesuffix(" (printed)"): line.get_color() for line in ax.get_lines()}
        for ax in (drawn[0].axes[0], drawn[-1].axes[0])
    )
    both = inside.keys() & beside.keys()
    assert {"ADMM", "RSA", "Ideal SGD"} <= both
    assert {label: inside[label] for label in both} == {label: beside[label] for label in both}


def test_a_file_of_your_own_prints_its_accuracies(digits: Path, tmp_path: Path) -> None:
    for seeds in (1, 2):
        report = figures.reproduce([digits], seeds=seeds, out=tmp_path, progress=False)
        [panel] = report.panels.values()
        text = report.table()
        assert "no claims" not in text
        assert max(map(len, text.splitlines())) <= 80
        assert ("  mean     low    high" in text) == (seeds > 1)
        for row in panel.finals():
            curve = next(curve for curve in panel.curves if curve.name == row["algorithm"])
            assert row["low"] <= row["mean"] <= row["high"]
            assert re.search(rf"^{re.escape(curve.label)} +{row['mean']:.3f}", text, re.MULTILINE)


def test_readings_under_several_attacks_and_of_a_sweep(digits: Path, tmp_path: Path) -> None:
    """A picture with a column per reading has one attack; the labels of a sweep name the reading."""
    admm = DIGITS[DIGITS.index("lam = 0.05") : DIGITS.index("[algorithms.admm-tuned]")]
    readings = "".join(f"[algorithms.{name}-blind]\nstep = {{ power = 1.0 }}\n" for name in ("ideal", "median"))
    attack = '[attack]\nname = "sign-flip"\nscale = -3.0\n'
    digits.write_text('attack = ["sign-flip", "gaussian"]\n' + DIGITS.replace(attack, "") + readings)
    report = figures.reproduce([digits], seeds=1, out=tmp_path, progress=False)
    assert report.panels["mine"].settings.readings() == ("blind", "tuned")
    picture = (tmp_path / "mine.svg").read_text()
    assert "Gaussian attack" in picture
    assert "mine: final accuracy, Gaussian attack" in figures.write_report(report, tmp_path / "page.md").read_text()
    digits.write_text("sweep = [0.1, 1.0]\n" + DIGITS + "[algorithms.admm-blind]\n" + admm)
    labels = [curve.label for curve in figures.load_settings(digits).all_curves()]
    assert labels[::2] == ["ADMM, λ = 0.1 (printed)", "ADMM, λ = 0.1 (tuned)", "ADMM, λ = 0.1 (blind)"]
