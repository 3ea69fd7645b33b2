"""Files that cannot be written: found before training, and never at the cost of a result."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest

from byzadmm import Result, Study
from support.commands import QUICK, rows_of


@pytest.fixture
def untrained(monkeypatch):
    """Training is a failure of the test."""

    def train(*rest, **options):
        raise AssertionError("trained")

    monkeypatch.setattr("byzadmm.cli.run.carry_out", train)


@pytest.mark.parametrize("option", ["--out", "--plot", "--report"])
@pytest.mark.parametrize(
    ("target", "why"),
    [("no/a", "No such file or directory"), ("folder", "Is a directory"), ("/proc/a", ""), ("x" * 260, "File name")],
)
@pytest.mark.usefixtures("untrained")
def test_a_file_that_cannot_be_written_is_found_before_training(refused, option, target, why):
    ending = {"--out": ".npz", "--plot": ".png", "--report": ".html"}[option]
    name = target + ending
    Path(f"folder{ending}").mkdir()
    said = refused("run", "--algorithm", "admm", option, name)
    assert said.startswith(f"{option[2:]}: cannot write '{name}': {why}")
    assert os.listdir() == [f"folder{ending}"]


def test_the_default_picture_may_be_impossible_to_write(call):
    Path("byzadmm-run.png").mkdir()
    ended = call("run", *QUICK, "--algorithm", "admm")
    assert ended.code == 0
    assert "admm" in rows_of(ended.out)
    assert ended.err == "no picture: cannot write 'byzadmm-run.png': Is a directory\n"


def test_trying_leaves_old_files_as_they_are(refused):
    Path("run.npz").write_bytes(b"old")
    Path("run.png").write_bytes(b"old")
    refused("run", "--algorithm", "admm", "--out", "run.npz", "--plot", "run.png", "--dtype", "float16")
    refused("run", "--algorithm", "admm", "--out", "run.npz", "--plot", "run.png", "--lam", "1e60")
    assert {path.name: path.read_bytes() for path in Path().iterdir()} == {"run.npz": b"old", "run.png": b"old"}


@pytest.mark.parametrize("words", [[], ["--json"]], ids=["table", "json"])
def test_a_disk_that_fills_up_keeps_table_and_result(call, monkeypatch, tmp_path, words):
    save = Result.save

    def full(run, path):
        if Path(path).parent == Path():
            raise OSError(28, "No space left on device")
        save(run, path)

    def torn(study, path):
        raise RuntimeError("no fonts")

    monkeypatch.setattr(Result, "save", full)
    monkeypatch.setattr(Study, "plot", torn)
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    ended = call("run", *QUICK, "--algorithm", "admm", "--out", "run.npz", "--plot", "run.png", *words)
    assert ended.code == 1
    if words:
        assert json.loads(ended.out)["saved"] == []
    else:
        assert "admm" in rows_of(ended.out)
    [kept] = tmp_path.glob("byzadmm-*/run.npz")
    assert ended.err == (
        f"byzadmm: error: out: cannot write 'run.npz'; saved {kept} instead: [Errno 28] No space left on device\n"
        "byzadmm: error: plot: cannot write 'run.png': no fonts\n"
    )
    assert Result.load(kept).config["algorithm"]["name"] == "ADMM"


def test_reproduce_checks_files_before_and_keeps_the_table_after(call, refused, monkeypatch):
    Path("out/claims.json").mkdir(parents=True)
    said = refused("reproduce", "example", "--quick", "--out", "out", "--quiet")
    assert said == "out: cannot write 'out/claims.json': Is a directory"
    Path("file").touch()
    said = refused("reproduce", "example", "--quick", "--out", "file")
    assert said == "out: cannot make folder 'file': File exists"
    Path("there/example.csv").mkdir(parents=True)
    ended = call("reproduce", "example", "--quick", "--out", "there", "--quiet")
    assert ended.code == 1
    assert "10 example" in ended.out
    assert "example: not finished: could not be written: [Errno 21] Is a directory" in ended.out


def test_tune_checks_files_before(refused):
    Path("a.tuning.json").mkdir()
    said = refused("tune", "fig1a", "--out", "a.toml", "--quiet")
    assert "a.tuning.json" in said
    assert refused("tune", "fig1a", "--out", "no/a.toml") == "out: cannot write 'no/a.toml': No such file or directory"
