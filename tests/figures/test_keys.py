"""Keys of settings files: the table, the documents and the commented files that are made of it."""

from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path

import pytest

from byzadmm import catalogue, figures
from byzadmm.figures import keys
from byzadmm.figures._toml import REQUIRED
from byzadmm.figures.settings import FIGURES, Settings, packaged_path


def loaded(text: str, folder: Path) -> Settings:
    """The settings of a file with this text, as if it were the panel ``panel``."""
    path = folder / "mine.toml"
    path.write_text(text, encoding="utf-8")
    return replace(figures.load_settings(path), name="panel", path=Path("panel"))


def test_the_document_has_every_key(root: Path) -> None:
    page = (root / "docs" / "settings.md").read_text("utf-8")
    for section in keys.SECTIONS:
        assert keys.markdown(section) in page, f"docs/settings.md: not the table of [{section}]"
    assert len(re.findall(r"^\| `", page, re.MULTILINE)) == sum(map(len, keys.SECTIONS.values()))


def test_the_table_has_a_key_for_every_setting_of_the_catalogue() -> None:
    known = keys.SECTIONS["algorithms.NAME"].keys()
    for name, entry in catalogue.algorithms().items():
        assert set(entry.settings) <= known, name
        assert set(entry.tuned) <= keys.SECTIONS["tuning"].keys(), name


@pytest.mark.parametrize("name", [None, *FIGURES])
def test_a_commented_file_means_the_same(name: str | None, tmp_path: Path) -> None:
    text = figures.settings_text(name)
    original = packaged_path(name or "start").read_text("utf-8")
    expected = loaded(original, tmp_path)
    assert loaded(text, tmp_path) == expected
    # Every key is there, used or as a comment, with its meaning; tables as headers.
    for section, known in keys.SECTIONS.items():
        for key, about in known.items() if section != "attack" or "[attack]" in text else ():
            header = re.search(rf"^(# )?\[+{key}\b", text, re.MULTILINE)
            beside = re.search(rf"^(# )?{key} = .*  # {re.escape(about.meaning)}", text, re.MULTILINE)
            above = re.search(rf"^# {re.escape(about.meaning)}.*\n(# )?{key} = ", text, re.MULTILINE)
            assert beside or above or (header and section == ""), f"{section}: {key}"
    assert max(map(len, text.splitlines())) <= max(120, *map(len, original.splitlines()))
    # The defaults that are shown are the defaults.
    head, table, rest = re.split(r"^(\[)", text, maxsplit=1, flags=re.MULTILINE)
    shown = {key for key, about in keys.SECTIONS[""].items() if about.toml and not about.words}
    shown -= {"n_workers"} if expected.quadratic else set()  # the table [quadratic] says how many
    bared, count = re.subn(rf"^# ({'|'.join(shown)}) = ", r"\1 = ", head, flags=re.MULTILINE)
    assert count > 0
    assert loaded(bared + table + rest, tmp_path) == expected


def test_defaults_and_examples_pass_their_own_checks() -> None:
    tomllib = pytest.importorskip("tomllib", reason="TOML is in Python from 3.11 on")
    for section, known in keys.SECTIONS.items():
        for name, key in known.items():
            if key.type in ("table", "tables") and not key.example:
                continue
            text = key.toml or key.example
            if not text and key.default is REQUIRED:
                continue
            assert text, f"{section}: {name}"
            key.check(tomllib.loads(f"value = {text}")["value"], name)


def test_the_start_runs(tmp_path: Path) -> None:
    path = tmp_path / "my.toml"
    path.write_text(figures.settings_text(), encoding="utf-8")
    report = figures.reproduce([path], quick=True, out=tmp_path / "out", progress=False)
    assert not report.failed
    panel = report.panels["my"]
    assert panel.plots == [
        f"{attack} attack, {kind}" for kind in ("iid", "Dirichlet(1)") for attack in ("sign-flipping", "ALIE")
    ]
    finals = {(row["partition"], row["attack"], row["algorithm"]): row["mean"] for row in panel.finals()}
    assert finals["iid", "sign-flipping attack, iid", "nnm-krum"] > 0.9
    assert finals["iid", "sign-flipping attack, iid", "admm"] > 0.7
    table = report.table()
    assert all(f"my: final accuracy, {title}\n" in table for title in panel.plots)
    assert max(map(len, table.splitlines())) <= 80
    header = (tmp_path / "out" / "my.csv").read_text().splitlines()[0]
    assert header == "figure,attack,partition,algorithm,iteration,mean,low,high"


def test_a_name_that_is_no_figure() -> None:
    with pytest.raises(ValueError, match=r"^name: expected one of fig1a, .*; got 'fig9'$"):
        figures.settings_text("fig9")
