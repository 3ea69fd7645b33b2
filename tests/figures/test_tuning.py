"""Searches: validation samples, trials, journals, settings files."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from byzadmm import datasets, figures
from byzadmm.figures import tuning
from byzadmm.figures.settings import settings_path
from byzadmm.study.boxes import Scales
from support.panels import DIGITS


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
    assert set(whole.best) == {"admm-tuned", "rsa", "ideal", "sgd", "geometric-median", "median", "cut"}
    record = json.loads(whole.journal.read_text())
    lengths = {name: len(trials) for name, trials in record["trials"].items()}
    assert lengths == dict.fromkeys(whole.best, 4) | {"admm-tuned": 12, "rsa": 8}, "budget: per setting searched"
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
        real(configs[:5], jobs=1, on_result=on_result)
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
    assert len(seen) == sum(lengths.values()) - 5
    assert again.best == whole.best
    assert again.settings.read_text() == whole.settings.read_text()
    assert again.journal.read_text() == whole.journal.read_text()
    seen.clear()
    figures.tune(digits, out=tmp_path / "again.toml", progress=False)
    assert seen == []

    # The file is what the journal says, until one of them is changed.
    assert figures.tune(whole.settings, check=True).differences == []
    text = whole.settings.read_text()
    whole.settings.write_text(text.replace(f"validation = {whole.best['rsa']['accuracy']}", "validation = 0.5", 1))
    assert any("validation is 0.5" in line for line in figures.tune(whole.settings, check=True).differences)
    changed = text.replace("budget = 4", "budget = 5").replace("f = 3", "f = 2")
    whole.settings.write_text(changed)
    differences = figures.tune(whole.settings, check=True).differences
    assert differences[0].startswith("tuning.budget: 5 in whole.toml, 4 in whole.tuning.json")
    whole.settings.write_text(text.replace("[algorithms.rsa]\nlam = ", "[algorithms.rsa]\nlam = 1"))
    differences = figures.tune(whole.settings, check=True).differences
    assert differences == ["rsa: the parameters are not those of the best trial"]
    del record["trials"]["ideal"], record["trials"]["rsa"]["0"]
    whole.settings.write_text(text)
    whole.journal.write_text(json.dumps(record))
    differences = figures.tune(whole.settings, check=True).differences
    assert "ideal: not in whole.tuning.json" in differences
    assert "rsa: 7 trials, not 8" in differences


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


def test_ranges_that_the_file_does_not_give_are_derived_from_the_data(digits: Path) -> None:
    digits.write_text(DIGITS.replace("slope = [0.5, 5.0]\n", "").replace("beta = [0.1, 1.0]\n", ""))
    tuned = figures.tune(digits, algorithms=["admm-tuned"], budget=1, progress=False)
    head = json.loads(tuned.journal.read_text())["search"]
    usual = Scales(head["gradient"], head["weight"]).ranges()
    assert head["weight"] == pytest.approx(0.25, rel=0.01), "digits: 1/sqrt(16)"
    expected = {"step": [0.01, 10.0], "lam": [0.01, 1.0]}
    assert head["ranges"] == expected | {key: list(usual[key]) for key in ("slope/lam", "beta/slope")}
    best = tuned.best["admm-tuned"]
    assert 0.9 * usual["slope/lam"][0] <= best["slope"] / best["lam"] <= 1.1 * usual["slope/lam"][1]


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
    tuned = figures.tune("fig1a", algorithms=["ideal-blind"], blind=True, budget=1, progress=False)
    assert tuned.settings == Path("fig1a.toml")
    assert (tmp_path / "fig1a.toml").exists()
    assert settings_path("fig1a").read_text() == before


def test_tuning_errors(digits: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(ValueError, match=r"algorithms: expected some of admm-tuned, rsa, .* got 'admm'"):
        figures.tune(digits, algorithms=["admm"])
    with pytest.raises(ValueError, match="budget: expected an integer >= 1, got 0"):
        figures.tune(digits, budget=0)
    assert figures.tune(digits, check=True).differences == ["mine.tuning.json: missing"]
    with pytest.raises(ValueError, match=r"example.toml: tuning: missing"):
        figures.tune("example")
    text = settings_path("example").read_text() + "\n[tuning]\nbudget = 1\n"
    digits.with_name("toy.toml").write_text(text)
    with pytest.raises(ValueError, match=r"toy.toml: tuning: needs a data set, of which samples are set aside"):
        figures.tune(digits.with_name("toy.toml"))
    with monkeypatch.context() as patch:
        patch.setattr(tuning, "tried", lambda *arguments: None)
        with pytest.raises(TypeError, match="algorithm: expected ADMM, RSA, SGD or"):
            figures.tune(digits, progress=False)
    digits.write_text(DIGITS.replace("[algorithms.rsa]", "[algorithms . rsa]"))
    with pytest.raises(ValueError, match=r"algorithms.rsa: expected one table written as \[algorithms.rsa\]"):
        figures.tune(digits, budget=1, algorithms=["rsa"], progress=False)


BLIND = DIGITS.replace("[tuning]", """\
[algorithms.rsa-blind]
lam = 0.05
step = { power = [0.1, 0.5] }

[algorithms.median-blind]
step = { power = 1.0 }

[tuning]""")


def test_a_blind_search_has_no_attack_and_its_own_journal(digits: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(ValueError, match=r"mine.toml: algorithms: expected tables .*: \[algorithms.NAME-blind\]; got"):
        figures.tune(digits, blind=True)
    digits.write_text(BLIND)
    real, seen = tuning.simulate_many, []

    def counted(configs: list[Any], **options: Any) -> Any:
        seen.extend(configs)
        return real(configs, **options)

    monkeypatch.setattr(tuning, "simulate_many", counted)
    blind = figures.tune(digits, blind=True, budget=2, progress=False)
    assert blind.journal == digits.with_name("mine.blind.tuning.json")
    assert list(blind.best) == ["rsa-blind", "median-blind"]
    assert blind.differences == []
    assert {(config["attack"], config["n_byzantine"]) for config in seen} == {(None, 0)}
    under = figures.tune(digits, algorithms=["rsa", "median"], budget=2, progress=False)
    assert under.journal == digits.with_name("mine.tuning.json")
    found = {curve.name: curve for curve in figures.load_settings(digits).curves}
    for name, best in {**blind.best, **under.best}.items():
        assert found[name].validation == best["accuracy"], f"{name}: the second search keeps what the first wrote"
    assert blind.best["rsa-blind"]["accuracy"] > under.best["rsa"]["accuracy"]

    # A check is of both searches, or of the blind one.
    names = ["rsa", "median", "rsa-blind", "median-blind"]
    both = figures.tune(digits, check=True, algorithms=names)
    assert (both.differences, both.best) == ([], {**under.best, **blind.best})
    assert figures.tune(digits, check=True, blind=True).journal == blind.journal
    digits.write_text(digits.read_text().replace(f"validation = {blind.best['rsa-blind']['accuracy']}", "", 1))
    assert figures.tune(digits, check=True, algorithms=names).differences == [
        f"rsa-blind: validation is None, best is {blind.best['rsa-blind']['accuracy']}"
    ]
    digits.write_text(BLIND.replace("n_workers = 10", "n_workers = 12"))
    assert "n_workers: 12 in mine.toml, 10 in mine.blind.tuning.json" in (
        figures.tune(digits, check=True, blind=True).differences
    )

    # A panel that differs in attack and number of Byzantine workers takes the journal as its own, finished.
    other = digits.with_name("other.toml")
    other.write_text(BLIND.replace("n_byzantine = 3", "n_byzantine = 2").replace("sign-flip", "gaussian-noise"))
    other.write_text(other.read_text().replace('name = "gaussian-noise"\nscale = -3.0', 'name = "gaussian"'))
    other.with_name("other.blind.tuning.json").write_text(blind.journal.read_text())
    seen.clear()
    again = figures.tune(other, blind=True, budget=2, progress=False)
    assert (seen, again.best) == ([], blind.best)


def test_a_file_to_write_keeps_the_tables_of_the_other_search(digits: Path, tmp_path: Path) -> None:
    digits.write_text(BLIND)
    out = tmp_path / "out.toml"
    first = figures.tune(digits, algorithms=["median"], budget=1, out=out, progress=False)
    second = figures.tune(digits, algorithms=["median-blind"], budget=1, blind=True, out=out, progress=False)
    found = {curve.name: curve.validation for curve in figures.load_settings(out).curves}
    assert found["median"] == first.best["median"]["accuracy"]
    assert found["median-blind"] == second.best["median-blind"]["accuracy"]
    out.write_text("title = 'another'")
    third = figures.tune(digits, algorithms=["median"], budget=1, out=out, progress=False)
    assert {curve.name: curve.validation for curve in figures.load_settings(out).curves} == {
        name: third.best["median"]["accuracy"] if name == "median" else None for name in found
    }


def test_a_trial_is_as_long_as_the_panels_runs_and_evaluated_where_the_score_needs_it(
    digits: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    digits.write_text(DIGITS.replace("iterations = 30\n", ""))
    seen: list[Any] = []
    real = tuning.simulate_many
    monkeypatch.setattr(
        tuning, "simulate_many", lambda configs, **options: (seen.extend(configs), real(configs, **options))
    )
    tuned = figures.tune(digits, algorithms=["ideal"], budget=1, progress=False)
    assert [(config["iterations"], config["eval_every"]) for config in seen] == [(40, 2)]
    assert json.loads(tuned.journal.read_text())["search"]["iterations"] == 40


def test_a_trial_that_diverges_neither_breaks_a_search_nor_wins_it(digits: Path) -> None:
    digits.write_text(DIGITS.replace("step = [0.01, 10.0]", "step = [0.1, 1e6]"))
    tuned = figures.tune(digits, algorithms=["ideal"], budget=8, progress=False)
    trials = json.loads(tuned.journal.read_text())["trials"]["ideal"].values()
    assert min(trial["accuracy"] for trial in trials) == 0.0, "some overflow"
    assert tuned.best["ideal"]["accuracy"] > 0.5
