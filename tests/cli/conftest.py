"""Fixtures of the command line's tests."""

from __future__ import annotations

import importlib.util
import sys
from pathlib import Path
from types import SimpleNamespace

import pytest

from byzadmm.cli import main
from support.commands import TWO_ALGORITHMS


@pytest.fixture(autouse=True)
def _plain_surroundings(monkeypatch, tmp_path):
    monkeypatch.setenv("COLUMNS", "80")
    monkeypatch.setenv("BYZADMM_CACHE", str(tmp_path / "cache"))
    monkeypatch.delenv("BYZADMM_DATA", raising=False)
    monkeypatch.chdir(tmp_path)


@pytest.fixture
def call(capsys):
    """Run a command; its exit code and what it printed."""

    def run(*words):
        code = main([str(word) for word in words])
        printed = capsys.readouterr()
        return SimpleNamespace(code=code, out=printed.out, err=printed.err)

    return run


@pytest.fixture
def refused(call):
    """Run a command that must fail with exactly one line; the line."""

    def run(*words):
        ended = call(*words)
        assert ended.code == 2
        assert ended.out == ""
        assert ended.err.startswith("byzadmm: error: ")
        assert ended.err.count("\n") == 1
        return ended.err.removeprefix("byzadmm: error: ").rstrip()

    return run


@pytest.fixture
def without_matplotlib(monkeypatch):
    real = importlib.util.find_spec
    monkeypatch.setattr(importlib.util, "find_spec", lambda name, *rest: None if name == "matplotlib" else real(name))


@pytest.fixture
def settings_file(tmp_path):
    path = tmp_path / "two.toml"
    path.write_text(TWO_ALGORITHMS, encoding="utf-8")
    return path


@pytest.fixture
def figures(monkeypatch):
    """A stand-in for ``byzadmm.figures`` that notes how it was called."""
    calls = []
    report = SimpleNamespace(table=lambda: "claim 1 holds", failed={}, interrupted=False)
    report.paths = [Path("figures/fig1a.png")]
    found = SimpleNamespace(table=lambda: "admm 0.9", differences=[])

    def note(answer):
        def function(*names, **options):
            calls.append((names, options))
            return answer

        return function

    made = SimpleNamespace(
        available=lambda: [("fig1a", "MNIST, Gaussian"), ("example", "The example")],
        reproduce=note(report),
        tune=note(found),
        calls=calls,
        report=report,
        found=found,
    )
    monkeypatch.setitem(sys.modules, "byzadmm.figures", made)
    return made
