"""Searches: validation samples, trials, journals, settings files."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from byzadmm import catalogue, datasets, figures
from byzadmm.figures import tuning
from byzadmm.figures.settings import settings_path
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
    assert len(seen) == 4 * 7 - 5
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


def test_ranges_that_the_file_does_not_give_are_the_catalogues(digits: Path) -> None:
    digits.write_text(DIGITS.replace("slope = [0.5, 5.0]\n", "").replace("beta = [0.1, 1.0]\n", ""))
    tuned = figures.tune(digits, algorithms=["admm-tuned"], budget=1, progress=False)
    usual = catalogue.PRESETS["digits"].ranges()
    searched = json.loads(tuned.journal.read_text())["search"]["ranges"]
    assert searched == {"step": [0.01, 10.0], "lam": [0.01, 1.0]} | {key: list(usual[key]) for key in ("beta", "slope")}
    assert usual["slope"][0] <= tuned.best["admm-tuned"]["slope"] <= usual["slope"][1]


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
        patch.setattr(tuning, "tried", lambda *arguments: None)
        with pytest.raises(TypeError, match="algorithm: expected ADMM, RSA, SGD or"):
            figures.tune(digits, progress=False)
    digits.write_text(DIGITS.replace("[algorithms.rsa]", "[algorithms . rsa]"))
    with pytest.raises(ValueError, match=r"algorithms.rsa: expected one table written as \[algorithms.rsa\]"):
        figures.tune(digits, budget=1, algorithms=["rsa"], progress=False)
