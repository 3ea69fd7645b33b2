"""Settings files, claims, figures and tuning: on synthetic curves, the example, and the digits."""

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

from byzadmm import ADMM, RSA, SGD, aggregators, attacks, catalogue, datasets, figures, losses, simulate, steps
from byzadmm.figures import claims, run, tuning
from byzadmm.figures._files import write_text
from byzadmm.figures.settings import FIGURES, make_parts, settings_path

DIGITS = """\
title = "Digits"
dataset = "digits"
n_workers = 10
n_byzantine = 3
iterations = 40
eval_every = 10

[attack]
name = "sign-flip"
scale = -3.0

[algorithms.admm]
printed = true
lam = 0.05
beta = 0.5
master_step = { inv_sqrt = [5, 1] }
worker_step = { inv_sqrt = [0.5, 1] }

[algorithms.admm-tuned]
lam = 0.1
beta = 0.5
master_step = { inv_sqrt = [5, 1] }
worker_step = { inv_sqrt = [0.5, 1] }

[algorithms.rsa]
lam = 0.05
step = { power = [0.1, 0.5] }

[algorithms.ideal]
step = { power = 1.0 }

[algorithms.sgd]
step = { constant = 0.5 }

[algorithms.geometric-median]
step = { power = 1.0 }

[algorithms.median]
step = { power = 1.0 }

[algorithms.cut]
kind = "trimmed-mean"
label = "Cut"
f = 3
step = { power = 1.0 }

[tuning]
budget = 4
seed = 1
iterations = 30
step = [0.01, 10.0]
lam = [0.01, 1.0]
beta = [0.1, 1.0]
slope = [0.5, 5.0]
"""
NO_ATTACK = ('name = "sign-flip"\nscale = -3.0', 'name = "none"')


@pytest.fixture
def digits(tmp_path: Path) -> Path:
    path = tmp_path / "mine.toml"
    path.write_text(DIGITS)
    return path


# --- settings --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", FIGURES)
def test_every_panel_loads(name: str) -> None:
    settings = figures.load_settings(name)
    assert settings.name == name
    if settings.heat_map:
        return
    assert settings.iterations // settings.eval_every >= 40
    if settings.quadratic:
        assert [curve.name for curve in settings.curves] == ["admm", "rsa"]
    elif settings.sweep:
        assert [curve.algorithm.lam for curve in settings.all_curves()] == list(settings.sweep)
    else:
        names = {curve.name for curve in settings.curves}
        assert names == {"admm", "admm-tuned", "rsa", "ideal", "sgd", "geometric-median", "median"}
        assert [curve.name for curve in settings.curves if curve.printed] == ["admm"]


@pytest.mark.parametrize(
    ("name", "q", "lam", "beta", "master", "worker"),
    [
        ("fig1a", 8, 0.5, 0.5, (10, 10), (0.5, 10)),
        ("fig1b", 8, 0.5, 0.1, (2, 50), (0.1, 50)),
        ("fig2a", 8, 0.05, 0.1, (2, 5), (0.1, 5)),
        ("fig2b", 8, 0.5, 0.3, (6, 100), (0.3, 100)),
        ("fig4a", 0, 0.5, 0.5, (10, 10), (0.5, 10)),
        ("fig4b", 0, 0.5, 0.3, (6, 10), (0.3, 10)),
        ("fig3a", 4, 0.8, 0.2, (4, 10), (0.2, 10)),
        ("fig3b", 8, 0.5, 3, (60, 500), (3, 500)),
    ],
)
def test_the_printed_numbers_are_the_papers(
    name: str, q: int, lam: float, beta: float, master: Any, worker: Any
) -> None:
    settings = figures.load_settings(name)
    expected = ADMM(lam=lam, beta=beta, master_step=steps.inv_sqrt(*master), worker_step=steps.inv_sqrt(*worker))
    assert settings.curves[0].algorithm == expected
    assert (settings.n_workers, settings.n_byzantine, settings.batch_size, settings.rho) == (20, q, 32, 0.01)


def test_available_lists_every_panel_with_its_title() -> None:
    listed = figures.available()
    assert [name for name, _ in listed] == list(FIGURES)
    assert all(title for _, title in listed)


@pytest.mark.parametrize("name", [name for name in FIGURES if name not in ("example", "rules")])
def test_the_files_hold_what_the_search_found(name: str) -> None:
    tuned = figures.tune(name, check=True)
    assert tuned.differences == []
    assert tuned.best


def test_a_copy_of_a_panel_is_the_same_panel(tmp_path: Path) -> None:
    copy = tmp_path / "fig2a.toml"
    copy.write_text(settings_path("fig2a").read_text())
    assert figures.load_settings(copy).curves == figures.load_settings("fig2a").curves


@pytest.mark.parametrize("value", ['"by-label"', '"dirichlet"', '"iid"'])
def test_partitions(digits: Path, value: str) -> None:
    digits.write_text(f"partition = {value}\nalpha = 5.0\n" + DIGITS)
    data = datasets.load("digits")
    parts = make_parts(figures.load_settings(digits), data, 0)
    assert len(parts) == 10
    classes = {len(np.unique(data.train_y[part])) for part in parts}
    assert (classes == {1}) == (value == '"by-label"')


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ('title = "Digits"', 'titel = "Digits"', "titel: unknown key"),
        ('title = "Digits"', "title = 3", "title: expected a string, got int"),
        ('dataset = "digits"', "", "dataset: missing"),
        ('dataset = "digits"', 'dataset = "numbers"', "dataset: expected one of digits, "),
        ('dataset = "digits"', 'dataset = "digits"\nscale = "big"', "scale: expected one of raw, unit, standard"),
        ('dataset = "digits"', 'dataset = "digits"\nscale = 0', "scale: expected a finite number > 0.0, got 0.0"),
        ('dataset = "digits"', 'dataset = "quadratic"', "quadratic: missing"),
        (
            'dataset = "digits"\n',
            'dataset = "quadratic"\nquadratic = { a = [1.0], b = [1.0, 2.0], x = [0.0] }\n',
            "quadratic: expected a, b and x of one length",
        ),
        ("iterations = 40", 'iterations = "40"', "iterations: expected an integer, got str"),
        ("iterations = 40", "iterations = 0", "iterations: expected an integer >= 1, got 0"),
        ("n_byzantine = 3", "n_byzantine = 11", "n_byzantine: expected at most n_workers=10, got 11"),
        ("n_byzantine = 3", "n_byzantine = 3\nsweep = []", "sweep: expected a list of numbers"),
        ('name = "sign-flip"', 'name = "rumour"', "attack.name: expected one of none, gaussian"),
        ("scale = -3.0", "size = -3.0", "attack.size: unknown key"),
        ('name = "sign-flip"', 'name = "none"', "attack.scale: unknown key"),
        ("printed = true", "printed = 1", "algorithms.admm.printed: expected true or false, got int"),
        ("lam = 0.05\nstep", "lam = 0\nstep", "algorithms.rsa.lam: expected a finite number > 0.0, got 0.0"),
        ("lam = 0.05\nbeta = 0.5", "lam = 0.05", "algorithms.admm.beta: missing"),
        ('kind = "trimmed-mean"\n', "", "algorithms.cut.kind: missing"),
        ("step = { power = [0.1, 0.5] }\n", "", "algorithms.rsa: RSA: expected either step"),
        ("{ constant = 0.5 }", "0.5", "algorithms.sgd.step: expected one of inv_sqrt, power"),
        ("{ constant = 0.5 }", "{ sqrt = 0.5 }", "algorithms.sgd.step: expected one of inv_sqrt, power"),
        ("{ constant = 0.5 }", "{ constant = [0.5, 1] }", "algorithms.sgd.step: constant got 2 numbers"),
        ("{ constant = 0.5 }", "{ inv_sqrt = [0.5] }", "algorithms.sgd.step: inv_sqrt got 1 numbers"),
        ("{ constant = 0.5 }", '{ constant = "a" }', "algorithms.sgd.step: expected a real number, got str"),
        ("step = [0.01, 10.0]", "step = [10.0, 0.01]", "tuning.step: expected two numbers 0 < low < high"),
        ("budget = 4\n", "", "tuning.budget: missing"),
        ("[tuning]", "[tunning]", "tunning: unknown key"),
        ('title = "Digits"', "title = ", "not a TOML file"),
    ],
)
def test_a_wrong_file_is_one_line_naming_file_and_key(digits: Path, old: str, new: str, message: str) -> None:
    assert old in DIGITS
    digits.write_text(DIGITS.replace(old, new, 1))
    with pytest.raises(ValueError, match=r"mine.toml: ") as caught:
        figures.load_settings(digits)
    assert message in str(caught.value)
    assert str(caught.value).startswith(f"{digits}: ")


def test_rules_are_written_as_on_the_command_line(digits: Path) -> None:
    added = """
[algorithms.mixed]
kind = "sgd"
rule = "nnm+krum"
f = 3
momentum = 0.9
variance_reduction = "saga"
step = { power = 1.0 }

[algorithms.clipped]
kind = "sgd"
label = "Clipped"
rule = "clip:max-norm=2+median"
step = { power = 1.0 }
"""
    digits.write_text(DIGITS.replace("[algorithms.ideal]\n", "[algorithms.ideal]\nmomentum = 0.5\n") + added)
    curves = {curve.name: curve for curve in figures.load_settings(digits).curves}
    mixed, clipped, ideal = (curves[name].algorithm for name in ("mixed", "clipped", "ideal"))
    step = steps.power(1.0)
    assert mixed == SGD(rule="nnm+krum", f=3, momentum=0.9, variance_reduction="saga", step=step)
    assert clipped == SGD(rule=(aggregators.Clipping(max_norm=2), aggregators.Median()), step=step)
    assert ideal == SGD(ideal=True, momentum=0.5, step=step)
    assert (curves["mixed"].label, curves["clipped"].label) == ("nnm+krum", "Clipped")
    report = figures.reproduce([str(digits)], seeds=1, quick=True, out=digits.parent / "out", progress=False)
    assert not report.failed
    assert {"nnm+krum", "Clipped"} <= {curve.label for curve in report.panels["mine"].curves}
    picture = (digits.parent / "out" / "mine.svg").read_text()
    assert "nnm+krum" in picture


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("[algorithms.sgd]", '[algorithms.sgd]\nrule = "krumm"', "rule: expected one of mean, "),
        ("[algorithms.sgd]", "[algorithms.sgd]\nrule = 3", "algorithms.sgd.rule: expected a string, got int"),
        ("[algorithms.sgd]", '[algorithms.sgd]\nrule = "nnm"', "rule: nearest_neighbor_mixing gives rows"),
        ("[algorithms.sgd]", "[algorithms.sgd]\nmomentum = 1.0", "algorithms.sgd: momentum: expected a number in"),
        ("[algorithms.sgd]", '[algorithms.sgd]\nvariance_reduction = "x"', "variance_reduction: expected one of saga"),
        ("[algorithms.median]", '[algorithms.median]\nrule = "krum"', "algorithms.median.rule: unknown key"),
        ("[algorithms.rsa]", "[algorithms.rsa]\nmomentum = 0.5", "algorithms.rsa.momentum: unknown key"),
    ],
)
def test_rules_that_are_refused(digits: Path, old: str, new: str, message: str) -> None:
    digits.write_text(DIGITS.replace(old, new, 1))
    with pytest.raises(ValueError, match=r"mine.toml: ") as caught:
        figures.load_settings(digits)
    assert message in str(caught.value)


def test_tables_must_be_tables(digits: Path) -> None:
    head = DIGITS[: DIGITS.index("[attack]")]
    for text, message in [
        (head + "attack = 3\n[algorithms.sgd]\nstep = { constant = 1 }", "attack: expected a table, got int"),
        (head + "algorithms = 3", r"algorithms: expected at least one table \[algorithms.NAME\]"),
        (head + "sweep = [0.1]\n[algorithms.sgd]\nstep = { constant = 1 }", "sweep: needs an algorithm of kind admm"),
    ]:
        digits.write_text(text)
        with pytest.raises(ValueError, match=message):
            figures.load_settings(digits)


def test_a_missing_file() -> None:
    with pytest.raises(ValueError, match=r"^fig9: no such settings file; panels are fig1a"):
        figures.load_settings("fig9")
    with pytest.raises(ValueError, match=r"^nothing.toml: no such settings file$"):
        figures.load_settings("nothing.toml")


def test_a_file_is_written_whole_or_not_at_all(tmp_path: Path) -> None:
    (tmp_path / "folder").mkdir()
    with pytest.raises(OSError, match="folder"):
        write_text(tmp_path / "folder", "text")
    assert [path.name for path in tmp_path.iterdir()] == ["folder"]
    assert write_text(tmp_path / "new" / "file", "text").read_text() == "text"


# --- claims ----------------------------------------------------------------------------------------------------------

TIMES = np.arange(0, 1001, 100)


def rising(final: float, at: int = 100) -> np.ndarray[Any, Any]:
    """Three seeds of a curve that grows linearly until iteration ``at`` and then stays."""
    return np.tile(final * np.minimum(1.0, TIMES / at), (3, 1))


GOOD: dict[str, dict[str, Any]] = {
    "fig1a": {"sgd": 0.1, "admm": 0.91, "rsa": 0.91, "geometric-median": 0.915, "median": 0.89, "ideal": 0.92},
    "fig1b": {
        "sgd": 0.3,
        "admm": (0.71, 200),
        "rsa": (0.70, 400),
        "geometric-median": (0.71, 400),
        "median": (0.70, 400),
        "ideal": 0.715,
    },
    "fig2a": {"sgd": 0.1, "admm": 0.91, "rsa": 0.91, "geometric-median": 0.91, "median": 0.87, "ideal": 0.92},
    "fig2b": {"sgd": 0.1, "admm": 0.71, "rsa": 0.71, "geometric-median": 0.69, "median": 0.68, "ideal": 0.715},
    "fig4a": {"sgd": 0.92, "admm": 0.915, "rsa": 0.915, "geometric-median": 0.918, "median": 0.90, "ideal": 0.92},
    "fig4b": {"sgd": 0.71, "admm": 0.72, "rsa": 0.71, "geometric-median": 0.70, "median": 0.69, "ideal": 0.715},
    "fig3a": {"sgd": 0.5, "admm": 0.74, "rsa": 0.63, "geometric-median": 0.41, "median": 0.30, "ideal": 0.75},
    "fig3b": {"sgd": 0.5, "admm": 0.56, "rsa": (0.55, 500), "geometric-median": 0.1, "median": 0.14, "ideal": 0.57},
}


def curves(name: str, **changes: Any) -> dict[str, np.ndarray[Any, Any]]:
    table = GOOD[name] | {key.replace("_", "-"): value for key, value in changes.items()}
    return {key: rising(*value) if isinstance(value, tuple) else rising(value) for key, value in table.items()}


@pytest.mark.parametrize("name", GOOD)
def test_claims_hold_on_curves_that_show_them(name: str) -> None:
    values = curves(name)
    claim = claims.check_curves(name, TIMES, values | {"admm-tuned": rising(0.05)})
    assert claim.printed is True
    assert claim.tuned is False
    assert claim.record()["printed"] == "holds"
    assert claim.record()["tuned"] == "not reproduced"
    del values["admm"]
    assert claims.check_curves(name, TIMES, values | {"admm-tuned": curves(name)["admm"]}).printed is None


@pytest.mark.parametrize(
    ("name", "changes", "wrong"),
    [
        ("fig1a", {"sgd": 0.5}, "sgd fails"),
        ("fig1a", {"rsa": 0.899}, "rsa close to ideal"),
        ("fig1a", {"median": 0.909}, "median a little worse"),
        ("fig1a", {"median": 0.5}, "median a little worse"),
        ("fig1b", {"sgd": 0.70}, "sgd worst"),
        ("fig1b", {"rsa": (0.70, 100)}, "admm faster than rsa"),
        ("fig2a", {"geometric_median": 0.871, "median": 0.87}, "geometric-median better than median"),
        ("fig2b", {"median": 0.71}, "admm better than median"),
        ("fig4a", {"admm": 0.909}, "admm very similar to ideal"),
        ("fig4b", {"ideal": 0.721}, "admm best"),
        ("fig3a", {"rsa": 0.74}, "admm better than rsa"),
        ("fig3a", {"median": 0.4}, "median fails"),
        ("fig3b", {"rsa": 0.5}, "rsa works"),
        ("fig3b", {"admm": (0.56, 600)}, "admm faster than rsa"),
    ],
)
def test_a_claim_that_does_not_hold_says_which_part(name: str, changes: dict[str, Any], wrong: str) -> None:
    claim = claims.check_curves(name, TIMES, curves(name, **changes))
    assert claim.printed is False
    assert (wrong, False) in claim.parts["printed"]
    assert wrong in " ".join(claims.claims_table([claim]).split())


def test_time_to_a_level_is_linear_between_evaluations() -> None:
    words = claims.Curves(TIMES, {"ideal": rising(1.0), "slow": rising(1.0, 1000), "never": rising(0.5)})
    assert words.time("slow") == pytest.approx(950)
    assert words.time("never") == np.inf
    at_once = claims.Curves(TIMES, {"ideal": np.ones((1, len(TIMES)))})
    assert at_once.time("ideal") == 0


def test_the_sweep() -> None:
    lams = (0.1, 0.001, 1.0)
    assert claims.check_sweep("fig5a", [0.9, 0.8, 0.85], lams).tuned is True
    assert claims.check_sweep("fig5a", [0.9, 0.89, 0.85], lams).tuned is False
    assert claims.check_sweep("fig5a", [0.9, 0.8, 0.89], lams).tuned is False


def test_the_example_claim() -> None:
    flat = {(0, "admm"): 0.375, (0, "rsa"): 0.25, (1, "admm"): 0.5, (1, "rsa"): 0.5}
    values = {key: np.array([0.0, limit, limit]) for key, limit in flat.items()}
    values[0, "rsa"] = np.array([0.0, 0.5, 0.25])
    assert claims.check_example(values).printed is True
    assert claims.check_example(values | {(1, "rsa"): np.array([0.0, 0.502])}).printed is False
    assert claims.check_example(values | {(0, "rsa"): np.array([0.25, 0.25])}).printed is False


def test_the_table_fits_80_columns() -> None:
    found = [claims.check_curves(name, TIMES, curves(name, admm=0.2)) for name in GOOD]
    found.append(claims.check_sweep("fig5a", [0.9, 0.8, 0.85], (0.1, 0.001, 1.0)))
    table = claims.claims_table(found)
    assert max(map(len, table.splitlines())) <= 80
    assert table.count("not reproduced") == len(GOOD)
    assert "never" in claims.claims_table(found, markdown=True)


# --- the example -----------------------------------------------------------------------------------------------------


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


# --- runs ------------------------------------------------------------------------------------------------------------


@pytest.mark.slow
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
    assert json.loads((out / "claims.json").read_text())["claims"][0]["printed"] == "holds"
    assert "| 10 | example |" in (out / "claims.md").read_text()
    assert "holds" in report.table()

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
    assert "Everything holds." in page
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
    few.write_text(DIGITS.replace("[algorithms.rsa]", '[algorithms.other]\nkind = "rsa"').replace(*NO_ATTACK))
    five.write_text("sweep = [0.01, 0.1]\n" + DIGITS.replace("printed = true\n", ""))
    report = figures.reproduce([one, few, five], seeds=1, out=tmp_path, progress=False)
    assert report.panels["fig2a"].plots == ["no attack"]
    assert [(claim.number, claim.figure) for claim in report.claims] == [(1, "fig1a"), (7, "fig5a")]
    page = figures.write_report(report, tmp_path / "page.md").read_text()
    assert "### What does not hold" in page


def test_ctrl_c_keeps_finished_panels(digits: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    other = tmp_path / "other.toml"
    other.write_text(DIGITS)
    real = run.simulate_many

    def interrupted(configs: list[Any], *, progress: Any, on_result: Any) -> None:
        real(configs[: len(configs) // 2], on_result=on_result)
        raise KeyboardInterrupt

    monkeypatch.setattr(run, "simulate_many", interrupted)
    report = figures.reproduce([digits, other], seeds=1, out=tmp_path / "out", progress=False)
    assert report.interrupted
    assert list(report.panels) == ["mine"]
    assert report.failed == {"other": "interrupted"}
    assert (tmp_path / "out" / "mine.png").exists()
    assert not (tmp_path / "out" / "other.png").exists()
    assert "other: not finished: interrupted" in report.table()
    assert "- other: interrupted" in figures.write_report(report, tmp_path / "page.md").read_text()


def test_a_panel_without_data_or_with_a_failing_run_loses_no_other(
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


def test_a_rule_that_does_not_bear_its_f_is_found_before_anything_runs(digits: Path, tmp_path: Path) -> None:
    digits.write_text(DIGITS.replace("f = 3", "f = 9"))
    message = r"mine.toml: algorithms.cut: trimmed_mean: f=9 is too large for n=10 workers; at most 4"
    with pytest.raises(ValueError, match=message):
        figures.reproduce(["example", digits], seeds=1, out=tmp_path / "out", progress=False)
    assert not (tmp_path / "out").exists()


def test_dollar_signs_are_words(digits: Path, tmp_path: Path) -> None:
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


# --- heat maps -------------------------------------------------------------------------------------------------------

MAPS = """\
title = "Digits"
dataset = "digits"
n_workers = 10
iterations = 30
eval_every = 5
seeds = 2

[heat_map]
n_byzantine = [1, 3]
partition = ["iid", "by-label"]

[[attack]]
name = "none"

[[attack]]
name = "gaussian"

[[attack]]
name = "worst-case"
family = "inner-product"
grid = 3
refine = 0

[algorithms.ideal]
step = { power = 3.0 }

[algorithms.mean]
kind = "sgd"
rule = "mean"
step = { power = 3.0 }

[algorithms.bulyan]
kind = "sgd"
rule = "bulyan"
label = "Bulyan"
step = { power = 3.0 }

[algorithms.mixed]
kind = "sgd"
rule = "nnm+multi-krum:neighbors=2"
step = { power = 3.0 }

[algorithms.rsa]
lam = 0.014
step = { power = 3.0 }
"""


@pytest.fixture
def maps(tmp_path: Path) -> Path:
    path = tmp_path / "maps.toml"
    path.write_text(MAPS)
    return path


def test_the_figure_of_rules_has_every_rule_and_attack() -> None:
    settings = figures.load_settings("rules")
    assert settings.heat_map == ((4, "iid"), (8, "iid"), (4, "by-label"), (8, "by-label"))
    used = {
        link.rule for c in settings.curves if isinstance(c.algorithm, SGD) for link in c.algorithm.chain().links
    }  # fmt: skip
    assert used >= set(aggregators.RULES) | {"nearest_neighbor_mixing"}
    assert {type(curve.algorithm) for curve in settings.curves} == {ADMM, RSA, SGD}
    shown = {type(attack).__name__ for attack in settings.attacks if attack is not None}
    assert shown == {
        "Gaussian", "SignFlip", "SameValue", "Zero", "LabelFlip", "ALIE", "InnerProduct", "MinMax", "WorstCase",
    }  # fmt: skip
    assert settings.attacks[0] is None
    steps_of_rules = {curve.algorithm.step for curve in settings.curves if isinstance(curve.algorithm, SGD)}
    assert len(steps_of_rules) == 1
    illegal = [
        (curve.name, case.n_byzantine)
        for curve in settings.curves
        for case in settings.cases()
        if case.attack is None and settings.algorithm(curve, case) is None
    ]
    assert set(illegal) == {("bulyan", 8)}


def test_maps_have_room_for_their_titles(tmp_path: Path) -> None:
    """Three numbers of attackers beside each other, few columns, and a partition with a parameter."""
    from byzadmm.figures import plots

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
partition = ["iid", "dirichlet"]
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
    panel = report.panels["wide"]
    figure = plots._draw_maps(panel)
    figure.canvas.draw()
    maps = [ax for ax in figure.axes if ax.get_title()]
    assert [ax.get_title().splitlines()[0] for ax in maps] == [
        f"{q} of 20 Byzantine, {kind}" for kind in ("i.i.d.", "Dirichlet(0.25)") for q in (1, 2, 8)
    ]
    boxes = [ax.title.get_window_extent() for ax in maps]
    for i, box in enumerate(boxes):
        assert not any(box.overlaps(other) for other in boxes[i + 1 :])
    width, height = figure.get_size_inches() * figure.dpi
    for text in (figure._suptitle, figure._supxlabel):  # type: ignore[attr-defined]
        boxes.append(text.get_window_extent())
    assert all(box.x0 >= 0 and box.x1 <= width and box.y0 >= 0 and box.y1 <= height for box in boxes)
    assert "q = 8, Dirichlet(0.25); Ideal SGD" in report.table()


def test_curves_look_as_they_do_in_run(digits: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from matplotlib.figure import Figure

    from byzadmm import _comparison

    drawn: list[Figure] = []
    monkeypatch.setattr(Figure, "savefig", lambda self, *_, **__: drawn.append(self))
    report = figures.reproduce([digits], quick=True, out=tmp_path, progress=False)
    [panel] = report.panels.values()
    ran = simulate(None, None, loss=losses.Quadratic([1.0], [[2.0]]), algorithm=SGD(), iterations=1)
    names = [name for name in catalogue.STYLES if name in {curve.kind for curve in panel.curves}]
    _comparison.draw(tmp_path / "run.png", [(name, ran) for name in reversed(names)], "run")
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


@pytest.mark.slow
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

    # A cell is the end of a plain run with f = the number of liars.
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
    assert panel.final(3, 1, mixed) == pytest.approx(np.mean([run.accuracy[-1] for run in runs]))

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
    assert "f = 3 is too large" in drawn
    assert "does not tolerate" in " ".join(re.findall(r"<!-- (.*?) -->", drawn))

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
    real = run.simulate_many

    def interrupted(configs: list[Any], *, progress: Any, on_result: Any) -> None:
        real(configs[:5], on_result=on_result)
        raise KeyboardInterrupt

    monkeypatch.setattr(run, "simulate_many", interrupted)
    report = figures.reproduce([maps], seeds=1, out=tmp_path / "out", progress=False)
    assert report.failed == {"maps": "interrupted"}
    assert report.panels == {}
    with open(tmp_path / "out" / "maps.csv", newline="") as file:
        rows = list(csv.DictReader(file))
    assert sum(row["mean"] != "" for row in rows) == 5
    assert (tmp_path / "out" / "maps.png").exists()
    assert "<!-- ? -->" in (tmp_path / "out" / "maps.svg").read_text()


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
        ("n_byzantine = [1, 3]", "n_byzantine = [11]", "n_byzantine: expected at most n_workers=10, got 11"),
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


# --- tuning ----------------------------------------------------------------------------------------------------------


def test_validation_samples_come_from_the_training_set() -> None:
    data = datasets.load("digits")
    split = tuning.validation_split(data, 3)
    rows = np.concatenate([split.train_x, split.test_x])
    np.testing.assert_array_equal(np.unique(rows, axis=0), np.unique(data.train_x, axis=0))
    assert len(rows) == len(data.train_x)
    assert len(split.test_x) == len(data.train_x) // 6
    assert not np.array_equal(split.test_x, tuning.validation_split(data, 4).test_x)


def test_tune_finds_writes_resumes_and_checks(digits: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    whole = figures.tune(digits, out=tmp_path / "whole.toml", progress=False)
    assert whole.differences == []
    assert set(whole.best) == {"admm-tuned", "rsa", "ideal", "sgd", "geometric-median", "median", "cut"} - {"cut"} | {
        "cut"
    }
    record = json.loads(whole.journal.read_text())
    assert {len(trials) for trials in record["trials"].values()} == {4}
    for name, best in whole.best.items():
        assert best["accuracy"] == max(trial["accuracy"] for trial in record["trials"][name].values())
    assert whole.best["ideal"]["accuracy"] > 0.6
    assert "validation" in whole.table()
    assert digits.read_text() == DIGITS
    found = figures.load_settings(whole.settings)
    assert found.curves[0] == figures.load_settings(digits).curves[0]
    assert found.curves[1].validation == whole.best["admm-tuned"]["accuracy"]

    # Stopped half-way and called again: the same file, and no trial twice.
    real, seen = tuning.simulate_many, []

    def stopped(configs: list[Any], *, progress: Any, on_result: Any) -> None:
        real(configs[:5], workers=1, on_result=on_result)
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(tuning, "simulate_many", stopped)
        with pytest.raises(KeyboardInterrupt):
            figures.tune(digits, out=tmp_path / "again.toml", progress=False)

    def counted(configs: list[Any], **options: Any) -> Any:
        seen.extend(configs)
        return real(configs, **options)

    monkeypatch.setattr(tuning, "simulate_many", counted)
    again = figures.tune(digits, out=tmp_path / "again.toml", progress=False)
    assert len(seen) == 4 * 7 - 5
    assert again.best == whole.best
    assert again.settings.read_text() == whole.settings.read_text()
    assert again.journal.read_text() == whole.journal.read_text()
    seen.clear()
    figures.tune(digits, out=tmp_path / "again.toml", progress=False)
    assert seen == []

    # The file is what the journal says, until somebody changes one of them.
    assert figures.tune(whole.settings, check=True).differences == []
    text = whole.settings.read_text()
    whole.settings.write_text(text.replace(f"validation = {whole.best['rsa']['accuracy']}", "validation = 0.5", 1))
    assert any("validation is 0.5" in line for line in figures.tune(whole.settings, check=True).differences)
    changed = text.replace("budget = 4", "budget = 5").replace("f = 3", "f = 2")
    whole.settings.write_text(changed)
    differences = figures.tune(whole.settings, check=True).differences
    assert differences[0].startswith("tuning.budget: 5 in whole.toml, 4")
    whole.settings.write_text(text.replace("[algorithms.rsa]\nlam = ", "[algorithms.rsa]\nlam = 1"))
    differences = figures.tune(whole.settings, check=True).differences
    assert differences == ["rsa: the parameters are not those of the best trial"]
    del record["trials"]["ideal"], record["trials"]["rsa"]["0"]
    whole.settings.write_text(text)
    whole.journal.write_text(json.dumps(record))
    differences = figures.tune(whole.settings, check=True).differences
    assert "ideal: not in the journal" in differences
    assert "rsa: 3 trials, not 4" in differences


def test_tune_some_algorithms_in_place(digits: Path) -> None:
    tuned = figures.tune(digits, algorithms=["rsa"], budget=2, seed=7, progress=False)
    assert tuned.settings == digits
    assert list(tuned.best) == ["rsa"]
    settings = figures.load_settings(digits)
    assert settings.search is not None
    assert (settings.search.budget, settings.search.seed) == (2, 7)
    assert settings.curves[1] == _original(digits).curves[1]
    with pytest.raises(ValueError, match=r"mine.tuning.json: belongs to another search"):
        figures.tune(digits, algorithms=["rsa"], budget=3, progress=False)


def _original(digits: Path) -> figures.Settings:
    copy = digits.with_name("original.toml")
    copy.write_text(DIGITS)
    return figures.load_settings(copy)


def test_a_panel_of_the_package_is_tuned_into_a_copy(
    digits: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    before = settings_path("fig1a").read_text()
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(datasets, "load", lambda name, load=datasets.load, **options: load("digits"))
    tuned = figures.tune("fig1a", algorithms=["ideal"], budget=1, progress=False)
    assert tuned.settings == Path("fig1a.toml")
    assert (tmp_path / "fig1a.toml").exists()
    assert settings_path("fig1a").read_text() == before


def test_tuning_errors(digits: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(ValueError, match=r"algorithms: expected some of admm-tuned, rsa, .* got 'admm'"):
        figures.tune(digits, algorithms=["admm"])
    with pytest.raises(ValueError, match="budget: expected an integer >= 1, got 0"):
        figures.tune(digits, budget=0)
    with pytest.raises(ValueError, match=r"mine.tuning.json: not a journal of a search"):
        figures.tune(digits, check=True)
    with pytest.raises(ValueError, match=r"example.toml: tuning: missing"):
        figures.tune("example")
    with monkeypatch.context() as patch:
        patch.setattr(tuning, "_algorithm", lambda *arguments: None)
        with pytest.raises(TypeError, match="algorithm: expected ADMM, RSA, SGD or"):
            figures.tune(digits, progress=False)
    digits.write_text(DIGITS.replace("slope = [0.5, 5.0]\n", ""))
    with pytest.raises(ValueError, match=r"tuning.slope: missing, admm-tuned needs it"):
        figures.tune(digits)
    digits.write_text(DIGITS.replace("[algorithms.rsa]", "[algorithms . rsa]"))
    with pytest.raises(ValueError, match=r"algorithms.rsa: expected one table written as \[algorithms.rsa\]"):
        figures.tune(digits, budget=1, algorithms=["rsa"], progress=False)
