"""``byzadmm reproduce`` and ``byzadmm tune``: options, exit codes, JSON."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from support.panels import DIGITS


@pytest.mark.parametrize("words", [[], ["all"]])
def test_reproduce_all(call, figures, words):
    ended = call("reproduce", *words)
    assert (ended.code, ended.out, ended.err) == (0, "claim 1 holds\n", "saved figures/fig1a.png\n")
    options = {"seeds": 3, "quick": False, "out": "figures", "data_dir": None, "progress": True}
    options |= {"checkpoint": None, "report": None}
    assert figures.calls == [((["all"],), options)]


def test_reproduce_options(call, figures):
    words = ["my.toml", "--seeds", 1, "--quick", "--out", "there", "--data-dir", "data", "--quiet"]
    words += ["--checkpoint", "kept", "--report", "pages"]
    assert call("reproduce", *words).err == ""
    options = {"seeds": 1, "quick": True, "out": "there", "data_dir": "data", "progress": False}
    options |= {"checkpoint": "kept", "report": "pages"}
    assert figures.calls == [((["my.toml"],), options)]


def test_reproduce_failed_and_interrupted(call, figures):
    figures.report.failed["fig1a"] = "no data"
    assert call("reproduce", "fig1a").code == 1
    figures.report.interrupted = True
    ended = call("reproduce", "fig1a", "--quiet")
    assert (ended.code, ended.out) == (130, "claim 1 holds\n")
    assert ended.err == "byzadmm: interrupted; what was finished is in figures\n"
    ended = call("reproduce", "fig1a", "--quiet", "--checkpoint", "kept")
    assert ended.err == "byzadmm: interrupted; what was finished is in figures; the same command goes on\n"


def test_reproduce_refuses(refused, figures):
    assert refused("reproduce", "--seeds", 0) == "seeds: expected an integer >= 1, got 0"
    assert refused("reproduce", "--page", "no/page.md").startswith("page: cannot write 'no/page.md'")


def test_tune(call, figures):
    words = ["--algorithms", "rsa", "median", "--budget", 4, "--seed", 2, "--out", "a.toml", "--data-dir", "d"]
    ended = call("tune", "fig1a", "--quiet", *words)
    assert (ended.code, ended.out, ended.err) == (0, "admm 0.9\n", "")
    options = {"algorithms": ["rsa", "median"], "budget": 4, "seed": 2, "data_dir": "d", "out": "a.toml"}
    assert figures.calls == [(("fig1a",), options | {"blind": False, "check": False, "progress": False})]
    call("tune", "fig1a", "--blind")
    assert figures.calls[1][1]["blind"] is True


def test_tune_check_that_differs(call, figures):
    figures.found.differences.append("rsa: lam")
    ended = call("tune", "fig1a", "--check")
    assert (ended.code, ended.err) == (1, "byzadmm: differs: rsa: lam\n")
    assert figures.calls[0][1]["check"] is True


def test_tune_interrupted(call, figures):
    def stop(*names, **options):
        raise KeyboardInterrupt

    figures.tune = stop
    ended = call("tune", "fig1a")
    assert (ended.code, ended.err) == (130, "byzadmm: interrupted; the same command resumes from the journal\n")


def test_reproduce_and_tune_as_json(call, tmp_path):
    ended = call("reproduce", "example", "--quick", "--out", tmp_path, "--page", tmp_path / "page.md", "--json")
    found = json.loads(ended.out)
    assert "`byzadmm reproduce example --quick`" in (tmp_path / "page.md").read_text(encoding="utf-8")
    assert str(tmp_path / "page.md") in found["files"]
    assert (found["seeds"], found["quick"], found["interrupted"], found["failed"]) == (1, True, False, {})
    assert [claim["claim"] for claim in found["claims"]] == [10]
    assert {Path(name).name for name in found["files"]} >= {"example.png", "example.csv", "claims.json"}
    found = json.loads(call("tune", "fig1a", "--check", "--json").out)
    assert found["differences"] == []
    assert 0.5 < found["best"]["rsa-tuned"]["accuracy"] < 1


@pytest.mark.parametrize(
    "record",
    [
        "[" * 100_000,
        "[]",
        '{"search": {}, "trials": {}}',
        '{"search": {"budget": 1, "seed": 0, "iterations": 1}, "trials": {"rsa": []}}',
        '{"search": {"budget": 1, "seed": 0, "iterations": 1}, "trials": {"rsa": {"one": {}}}}',
        '{"search": {"budget": 1, "seed": 0, "iterations": 1}, "trials": {"rsa": {"1": {"step": 1}}}}',
        '{"search": {"budget": 1, "seed": 0, "iterations": 1}, "trials": {"rsa": {"1": {"accuracy": "high"}}}}',
        '{"search": {"budget": 1, "seed": 0, "iterations": 1}, "trials": {"rsa": {"1": {"accuracy": 1}}}}',
    ],
    ids=range(8),
)
def test_tune_refuses_a_broken_journal(refused, record):
    Path("mine.toml").write_text(DIGITS, encoding="utf-8")
    Path("mine.tuning.json").write_text(record, encoding="utf-8")
    assert refused("tune", "mine.toml", "--check").startswith("mine.tuning.json: ")
