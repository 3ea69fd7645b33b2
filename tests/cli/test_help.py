"""Help, version, unknown commands, and ``byzadmm mpi`` without MPI."""

from __future__ import annotations

import re

import pytest

import byzadmm
from byzadmm.cli import main
from support.commands import fits


@pytest.mark.parametrize("error", [ImportError("no module"), RuntimeError("cannot load MPI library")])
def test_mpi_says_what_to_install(refused, monkeypatch, error):
    def missing(name):
        raise error

    monkeypatch.setattr("byzadmm.engines.mpi._start.importlib.import_module", missing)
    said = refused("mpi", "run", "--dataset", "mnist")
    assert said == f"mpi: needs mpi4py and an MPI library; pip install 'byzadmm[mpi]' ({error})"


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["--deadline", "0"], "deadline: expected a finite number > 0.0, got 0.0"),
        (["--patience", "nan"], "patience: expected a finite number > 0.0, got nan"),
    ],
)
def test_mpi_refuses(refused, words, message):
    assert refused("mpi", "run", *words) == message


def test_mpi_alone_shows_its_help(call):
    ended = call("mpi")
    assert ended.code == 0
    assert "mpirun --with-ft ulfm --oversubscribe -np 5 byzadmm mpi run" in ended.out


@pytest.mark.parametrize("command", ["run", "reproduce", "tune", "settings", "data", "list", "info", "mpi"])
def test_help_has_examples_and_fits(capsys, command):
    with pytest.raises(SystemExit) as ended:
        main([command, "--help"])
    assert ended.value.code == 0
    text = capsys.readouterr().out
    start = "mpirun --with-ft ulfm --oversubscribe -np 5 byzadmm" if command == "mpi" else "byzadmm"
    assert f"examples:\n  {start} {command}" in text
    assert fits(text)


def test_no_command_shows_the_help(call):
    ended = call()
    assert ended.code == 0
    assert fits(ended.out)
    commands = ("run", "reproduce", "tune", "settings", "data", "list", "info", "mpi")
    assert all(re.search(rf"^ +{command}\b", ended.out, re.MULTILINE) for command in commands)


def test_version(capsys):
    with pytest.raises(SystemExit):
        main(["--version"])
    assert capsys.readouterr().out == f"byzadmm {byzadmm.__version__}\n"


def test_unknown_command(refused):
    assert "invalid choice: 'fly'" in refused("fly")
