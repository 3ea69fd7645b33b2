"""Settings files: those of the package, and what is wrong with others."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from byzadmm import ADMM, SGD, aggregators, datasets, figures, steps
from byzadmm.figures._files import write_text
from byzadmm.figures.settings import FIGURES, PAPER, TABLES, VARIANTS, make_parts, settings_path
from support.panels import DIGITS


@pytest.mark.parametrize("name", FIGURES)
def test_every_panel_loads(name: str) -> None:
    settings = figures.load_settings(name)
    assert settings.name == name
    assert set(settings.published_finals) <= {curve.name for curve in settings.curves if curve.printed}
    if settings.heat_map or settings.quadratic or settings.graph:
        return
    assert settings.cause
    every = {"admm", "rsa", "ideal", "geometric-median", "median"} | ({"sgd"} if settings.n_byzantine else set())
    for reading in ("printed", "blind", "tuned"):
        curves = settings.read(reading)
        if settings.sweep:
            assert [curve.algorithm.lam for curve in curves.values()] in ([], list(settings.sweep))
        else:
            assert set(curves) in (set(), every, every - {"sgd"}, {"ideal"})
            assert not curves or curves["ideal"].algorithm.ideal
    if name in PAPER:
        assert settings.readings()[0] == "printed"
        assert set(settings.published) <= set(settings.read("printed"))
        assert all(settings.iterations % settings.eval_every == 0 == at % settings.eval_every
                   for curve in settings.published.values() for at in curve.iterations)  # fmt: skip


def test_readings(digits: Path) -> None:
    one = figures.load_settings(digits)
    assert one.readings() == ()
    assert one.read("printed")["admm"].printed
    assert one.read("tuned")["admm"].name == "admm-tuned"
    assert one.read("printed").keys() == one.read("tuned").keys()
    assert one.read("blind") == {}
    more = '''
[algorithms.ideal-blind]
step = { power = 2.0 }

[algorithms.median-blind]
step = { power = 3.0 }
'''
    digits.write_text(DIGITS + more)
    two = figures.load_settings(digits)
    assert two.readings() == ("blind", "tuned")
    assert set(two.read("blind")) == {"ideal", "median"}
    assert two.read("blind")["median"].label == "Median (blind)"
    assert two.read("blind")["median"].plain_label == "Median"
    assert two.read("tuned")["median"].name == "median"
    assert two.read("printed").keys() == {"admm", "ideal"}, "Ideal SGD is not attacked"
    digits.write_text(DIGITS.replace("[algorithms.ideal]", "[algorithms.ideal-blind]") + more.replace("ideal", "rsa", 1)
                      .replace("step = { power = 2.0 }", "lam = 1.0\nstep = { power = 2.0 }"))  # fmt: skip
    assert figures.load_settings(digits).read("tuned")["ideal"].name == "ideal-blind"
    digits.write_text(DIGITS + more.replace("median-blind", "median-tuned") + more.split("\n\n")[1])
    with pytest.raises(ValueError, match=r"algorithms\.median-tuned: is tuned under attack, as is algorithms\.median"):
        figures.load_settings(digits)


@pytest.mark.parametrize(
    ("name", "q", "lam", "beta", "master", "worker"),
    [
        ("fig1a", 8, 0.5, 0.5, (10, 10), (0.5, 10)),
        ("fig1b", 8, 0.5, 0.1, (2, 50), (0.1, 50)),
        ("fig2a", 8, 0.05, 0.1, (2, 5), (0.1, 5)),
        ("fig2b", 8, 0.5, 0.3, (6, 100), (0.3, 100)),
        ("fig4a", 0, 0.5, 0.5, (10, 10), (0.5, 10)),
        ("fig4b", 0, 0.5, 0.3, (6, 10), (0.3, 10)),
        # F/m: lam, beta and rho times m, steps divided by m.
        ("fig3a", 4, 20 * 0.8, 20 * 0.2, (20 * 4, 20 * 10), (20 * 0.2, 20 * 10)),
        ("fig3b", 8, 20 * 0.5, 20 * 3, (20 * 60, 20 * 500), (20 * 3, 20 * 500)),
    ],
)
def test_the_printed_numbers_are_the_papers(
    name: str, q: int, lam: float, beta: float, master: Any, worker: Any
) -> None:
    settings = figures.load_settings(name)
    expected = ADMM(lam=lam, beta=beta, master_step=steps.inv_sqrt(*master), worker_step=steps.inv_sqrt(*worker))
    assert settings.curves[0].algorithm == expected
    assert (settings.n_workers, settings.n_byzantine, settings.batch_size) == (20, q, 32)
    assert settings.rho == (20 * 0.01 if name.startswith("fig3") else 0.01)


def test_available_lists_every_panel_with_its_title() -> None:
    listed = figures.available()
    assert [name for name, _ in listed] == [*FIGURES, *TABLES]
    assert all(title for _, title in listed)


@pytest.mark.parametrize("name", [name for name in FIGURES if figures.load_settings(name).search])
def test_the_files_hold_what_the_search_found(name: str) -> None:
    tuned = figures.tune(name, check=True)
    assert tuned.differences == []
    assert tuned.best


@pytest.mark.parametrize("name", VARIANTS)
def test_variants_have_the_settings_of_their_figure(name: str) -> None:
    """Those that were not searched themselves; standardized columns have their own."""
    variant = figures.load_settings(name)
    if variant.search is None:
        known = {curve.name: curve for curve in figures.load_settings(variant.figure).curves}
        assert all(curve == known[curve.name] for curve in variant.curves)
    else:
        assert variant.scale == "standard"


@pytest.mark.parametrize(("name", "same"), [("fig1a", "fig4a"), ("fig2a", "fig4a"), ("fig1b", "fig4b"),
                                            ("fig2b", "fig4b"), ("fig3b", "fig3a")])  # fmt: skip
def test_without_attack_the_figures_on_the_same_data_are_tuned_alike(name: str, same: str) -> None:
    found, known = (figures.load_settings(figure).read("blind") for figure in (name, same))
    assert all(found[algorithm].algorithm == curve.algorithm for algorithm, curve in known.items())


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


@pytest.mark.slow
def test_several_partitions(digits: Path) -> None:
    """A plot for every partition and attack; a run with one of them alone gives the same curves."""
    listed = 'partition = ["iid", "dirichlet:0.3", "dirichlet", "by-label:1"]\nalpha = 5\n'
    attacks = 'attack = ["sign-flip", "gaussian:10", "gaussian:20"]\n'
    text = DIGITS.replace('[attack]\nname = "sign-flip"\nscale = -3.0\n', "")
    digits.write_text(listed + attacks + text)
    settings = figures.load_settings(digits)
    assert settings.partitions == ("iid", "dirichlet:0.3", "dirichlet:5.0", "by-label:1")
    assert (settings.partition, settings.alpha) == ("iid", 5.0)
    report = figures.reproduce([digits], quick=True, out=digits.parent / "out", progress=False)
    panel = report.panels["mine"]
    assert panel.plots == [
        f"{attack}, {kind}"
        for kind in ("iid", "Dirichlet(0.3)", "Dirichlet(5)", "by-label(1)")
        for attack in ("sign-flipping attack", "Gaussian attack (std=10)", "Gaussian attack (std=20)")
    ]
    assert {row["partition"] for row in panel.rows()} == set(settings.partitions)
    assert len(figures.runs_of(settings)) == 12 * len(settings.curves)
    for number, kind in enumerate(settings.partitions):
        digits.write_text(f'partition = "{kind}"\nattack = "sign-flip"\n' + text)
        alone = figures.reproduce([digits], quick=True, out=digits.parent / "out", progress=False).panels["mine"]
        for curve in settings.curves:
            np.testing.assert_array_equal(alone.values[0, curve.name], panel.values[3 * number, curve.name], kind)


def test_a_file_of_your_own_with_the_name_of_a_figure_shows_its_accuracies(digits: Path) -> None:
    path = digits.rename(digits.with_name("fig2a.toml"))
    report = figures.reproduce([path], quick=True, out=path.parent / "out", progress=False)
    assert report.claims
    assert "fig2a: final accuracy, sign-flipping attack\n" in report.table()


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
        ('title = "Digits"', 'partition = "dirichlet:0"', "partition: alpha: expected a finite number > 0.0, got 0.0"),
        ('title = "Digits"', 'partition = ["iid", "even"]', "partition: expected one of iid, by-label, dirichlet"),
        ('title = "Digits"', "partition = []", "partition: expected a list, got []"),
        ('title = "Digits"', "partition = [3]", "partition: expected a string, got int"),
        ('title = "Digits"', 'loss = "hinge"', "loss: expected one of softmax"),
        ("iterations = 40", 'iterations = "40"', "iterations: expected an integer, got str"),
        ("iterations = 40", "iterations = 0", "iterations: expected an integer >= 1, got 0"),
        ("n_byzantine = 3", "n_byzantine = 11", "n_byzantine: expected an integer in [0, 10], got 11"),
        ("n_byzantine = 3", "n_byzantine = 3\nsweep = []", "sweep: expected a list of numbers"),
        ('name = "sign-flip"', 'name = "noise"', "attack.name: expected one of none, alie"),
        ("scale = -3.0", "size = -3.0", "attack.size: unknown key"),
        ('name = "sign-flip"', 'name = "none"', "attack.scale: unknown key"),
        ("printed = true", "printed = 1", "algorithms.admm.printed: expected true or false, got int"),
        ("lam = 0.05\nstep", "lam = 0\nstep", "algorithms.rsa.lam: expected a finite number > 0.0, got 0.0"),
        ("lam = 0.05\nbeta = 0.5", "lam = 0.05", "algorithms.admm.beta: missing"),
        ('kind = "trimmed-mean"\n', "", "algorithms.cut.kind: missing"),
        ("step = { power = [0.1, 0.5] }\n", "", "algorithms.rsa: RSA: expected either step"),
        ("{ constant = 0.5 }", "0.5", "algorithms.sgd.step: expected one of constant, inv_linear"),
        ("{ constant = 0.5 }", "{ sqrt = 0.5 }", "algorithms.sgd.step: expected one of constant, inv_linear"),
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
        (head + "attack = 3\n[algorithms.sgd]\nstep = { constant = 1 }", "attack: expected a string or a table"),
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
