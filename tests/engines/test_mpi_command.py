"""The command ``byzadmm mpi`` under mpirun."""

from __future__ import annotations

import json
import os
import re
import select
import shlex
import subprocess
import sys
import sysconfig
import time
from pathlib import Path

import numpy as np
import pytest

from byzadmm import ADMM, Result, asynchronous, attacks, datasets, delays, partition
from byzadmm.cli import main
from byzadmm.cli.mpi import _request
from byzadmm.cli.parser import make_parser
from byzadmm.engines.mpi._launch import find_mpirun
from support.arrays import same_bits
from support.mpirun import LIMIT, MPIRUN, end_session, environment, launch, mpirun, needs_mpi, read

pytestmark = [needs_mpi, pytest.mark.slow]

QUICK = ("--iterations", 40, "--eval-every", 20, "--batch-size", 4, "--n-workers", 7, "-q", 2)


def test_the_command_gives_the_result_of_run(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    words = ("run", "--algorithm", "admm", "--attack", "alie", *QUICK, "--no-plot")
    more = ("--out", "ours.npz", "--timeline", "time.png", "--checkpoint", "states", "--live")
    run = mpirun(4, "-m", "byzadmm", "mpi", *words, *more)
    assert run.returncode == 0, run.stderr
    assert main([*map(str, words), "--out", "whole.npz"]) == 0
    ours, whole = Result.load("ours.npz"), Result.load("whole.npz")
    assert same_bits(ours.x0, whole.x0)
    assert same_bits(ours.accuracy, whole.accuracy)
    assert ours.config == whole.config | {"wire": "float32"}
    table = capsys.readouterr().out
    assert [line.split()[:3] for line in table.splitlines()[3:5]] == [
        line.split()[:3] for line in run.stdout.splitlines()[3:5]
    ]
    assert "3 worker ranks, 80 rounds" in run.stdout
    assert read(tmp_path / "ours.mpi.json")["rounds"] == 40
    assert (tmp_path / "time.png").exists()
    assert sorted(path.name for path in (tmp_path / "states").iterdir() if path.name.count(".") == 1) == [
        "admm.npz",
        "ideal.npz",
    ]
    # the same command again finds everything done, and longer runs go on from there
    again = mpirun(4, "-m", "byzadmm", "mpi", *words, "--iterations", 60, "--checkpoint", "states", "--json")
    assert again.returncode == 0, again.stderr
    record = json.loads(again.stdout)
    assert record["mpi"]["admm"]["rounds"] == 20
    assert main([*map(str, words), "--iterations", "60", "--json", "--quiet"]) == 0
    assert json.loads(capsys.readouterr().out)["runs"][1]["curves"] == record["runs"][1]["curves"]


def test_the_command_says_what_is_wrong_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    run = mpirun(4, "-m", "byzadmm", "mpi", "run", "--attack", "nonsense", tolerant=False)
    assert run.returncode == 2
    assert run.stderr.count("byzadmm: error: attack: expected one of") == 1
    unwritable = mpirun(3, "-m", "byzadmm", "mpi", "run", *QUICK, "--timeline", "no/a.png", "--no-plot")
    assert (unwritable.returncode, unwritable.stdout) == (2, "")
    assert "byzadmm: error: timeline: cannot write 'no/a.png': No such file or directory" in unwritable.stderr
    (tmp_path / "file").touch()
    unwritable = mpirun(3, "-m", "byzadmm", "mpi", "run", *QUICK, "--checkpoint", "file", "--no-plot")
    assert (unwritable.returncode, unwritable.stdout) == (2, "")
    assert "byzadmm: error: checkpoint: cannot make folder 'file': File exists" in unwritable.stderr
    failing = mpirun(3, "-m", "byzadmm", "mpi", "run", "--rule", "krum", "median", "-f", 3, *QUICK, "--no-plot")
    assert failing.returncode == 2
    assert "krum: f=3 is too large for n=7 workers" in failing.stderr
    assert "median" in failing.stdout
    wrong = mpirun(3, "-m", "byzadmm", "mpi", "run", *QUICK, "--wire", "float16", "--no-plot")
    assert wrong.returncode == 2
    assert "byzadmm: error: wire: expected one of float32, float64; got 'float16'" in wrong.stderr


def test_a_trace_is_replayed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    words = ("mpi", "run", "--algorithm", "admm", *QUICK, "--no-plot")
    run = mpirun(3, "-m", "byzadmm", *words, "--trace", "trace.npz", "--out", "run.npz", "--quiet")
    assert run.returncode == 0, run.stderr
    trace = delays.Replay.load("trace.npz")
    assert trace.times.shape == (7, 40)
    assert np.all(np.isfinite(trace.times))
    assert np.all(trace.times[:4] == trace.times[0]), "the workers of a rank share its time"
    assert np.any(trace.times[4:] != trace.times[0])
    data = datasets.load("digits")
    parts = partition.iid(data.train_y, 7, seed=0)
    given = {"delays": trace, "updates": 40, "eval_every": 20, "batch_size": 4, "n_byzantine": 2}
    given |= {"attack": attacks.SignFlip()}
    # In rounds it is the same run again, with a clock; without rounds it is another.
    again = asynchronous.simulate(data, parts, algorithm=ADMM.for_dataset(data), **given)
    assert same_bits(again.x0, Result.load("run.npz").x0)
    assert again.time[-1] == pytest.approx(np.sum(np.max(trace.times[:, :39], axis=0)))
    waits, free = (
        asynchronous.simulate(data, parts, algorithm=asynchronous.AsyncADMM.for_dataset(data, barrier=barrier), **given)
        for barrier in (7, 4)
    )
    assert same_bits(waits.x0, again.x0)
    assert waits.time[-1] == again.time[-1]
    assert not same_bits(free.x0, again.x0)
    assert 4 * 39 <= free.arrivals[-1] < 7 * 39


RING = """
dataset = "digits"
n_workers = 7
n_byzantine = 1
graph = "ring:k=2"
attack = "dissensus"
iterations = 40
eval_every = 20
batch_size = 4
[algorithms.dadmm]
lam = 0.005
beta = 0.25
slope = 0.3
[algorithms.ios]
step = { power = [10.0, 0.5] }
"""


def test_a_file_with_a_graph(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("ring.toml").write_text(RING)
    words = ("run", "ring.toml", "--json")
    run = mpirun(4, "-m", "byzadmm", "mpi", *words, "--checkpoint", "states")
    assert run.returncode == 0, run.stderr
    assert main(list(words)) == 0
    ours, whole = json.loads(run.stdout), json.loads(capsys.readouterr().out)
    assert [one["curves"] for one in ours["runs"]] == [one["curves"] for one in whole["runs"]]
    assert [one["state"] for one in ours["mpi"]["dadmm"]["ranks"]] == ["ready"] * 3
    assert {path.name for path in Path("states").glob("*.npz")} >= {"dadmm.npz", "ios.npz"}
    table = mpirun(4, "-m", "byzadmm", "mpi", "run", "ring.toml", "--no-plot", "--quiet")
    lines = [line.rstrip() for line in table.stdout.splitlines()]
    at = lines.index("3 worker ranks, 80 rounds")
    assert " ".join(lines[at + 1].split()) == "rank nodes on time late NaN mean ms max ms work ms MB state"
    assert [line.split()[:3] for line in lines[at + 3 :]] == [
        ["1", "0-2", "160/160"],
        ["2", "3-4", "160/160"],
        ["3", "5-6", "160/160"],
    ]
    assert all(len(line) <= 80 for line in lines)
    for option, given in (("--wire", "float32"), ("--timeline", "time.png"), ("--trace", "trace.npz")):
        with pytest.raises(ValueError, match=f"{option[2:]}: not on a graph, where no master asks; got '{given}'"):
            _request(make_parser().parse_args(["mpi", "run", "ring.toml", option, given]))


def test_what_does_not_run_over_mpi_is_said(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    cases = {
        ("--algorithm", "async-admm:barrier=2"): "algorithm: async-admm is asynchronous, and does not run over MPI yet",
        ("--delays", "exponential"): "delays: are simulated in one process, not over MPI yet",
        ("--trace", "trace.txt"): "trace: expected a name ending in .npz; got 'trace.txt'",
    }
    for words, message in cases.items():
        run = mpirun(3, "-m", "byzadmm", "mpi", "run", *QUICK, *words, "--no-plot")
        assert (run.returncode, run.stdout) == (2, ""), words
        assert run.stderr.count(f"byzadmm: error: {message}") == 1, run.stderr


def test_without_mpirun_the_command_says_how_to_start() -> None:
    run = subprocess.run([sys.executable, "-m", "byzadmm", "mpi", "run"], capture_output=True, text=True, check=False)
    assert run.returncode == 2
    start = f"start with {MPIRUN} --with-ft ulfm --oversubscribe -np 5 byzadmm mpi run --algorithm admm\n"
    expected = "byzadmm: error: mpi: expected a master and at least one worker, got one process; "
    assert run.stderr == expected + start


def test_mpirun_is_found_beside_the_interpreter(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", "")
    assert find_mpirun() == str(Path(sysconfig.get_path("scripts"), "mpirun"))


def printed_commands(text: str) -> set[str]:
    """Lines that start a job on this machine: no hosts are named, and Slurm is not everywhere."""
    found = re.findall(r"^ *(?:\$ )?((?:\S*/)?mpirun .*)$", text, re.MULTILINE)
    return {line for line in found if "--host" not in line}


def test_printed_commands_work_as_printed(root: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    pages = {name: (root / name).read_text("utf-8") for name in ("docs/mpi.md", "docs/cli.md", "docs/decentralized.md")}
    for words in (["mpi", "--help"], ["mpi", "run", "--help"]):
        with pytest.raises(SystemExit):
            main(words)
        pages[" ".join(words)] = capsys.readouterr().out
    commands = {name: printed_commands(text) for name, text in pages.items()}
    assert all(commands.values()), commands
    (tmp_path / ".venv").symlink_to(sys.prefix)
    activated = environment() | {"PATH": os.pathsep.join([sysconfig.get_path("scripts"), os.environ["PATH"]])}
    for line in sorted(set.union(*commands.values())):
        assert "--oversubscribe" in line, f"fails on few cores: {line}"
        run = launch(shlex.split(line), cwd=tmp_path, env=activated)
        assert run.returncode == 0, f"{line}\n{run.stderr}"
        assert "4 worker ranks" in run.stdout


# mpirun in a session whose controlling terminal is its standard input.
IN_A_TERMINAL = (
    "import fcntl, os, sys, termios; fcntl.ioctl(0, termios.TIOCSCTTY, 0); os.execv(sys.argv[1], sys.argv[1:])"
)


def test_live_is_seen_on_the_terminal_while_it_runs() -> None:
    ours, theirs = os.openpty()
    words = [MPIRUN, "--with-ft", "ulfm", "--oversubscribe", "-np", "3", sys.executable, "-m", "byzadmm", "mpi", "run"]
    words += ["--algorithm", "admm", "--iterations", "100000000", "--no-plot", "--live"]
    process = subprocess.Popen(
        [sys.executable, "-c", IN_A_TERMINAL, *words],
        stdin=theirs,
        stdout=theirs,
        stderr=theirs,
        env=environment(),
        start_new_session=True,
    )
    os.close(theirs)
    seen, end = b"", time.monotonic() + LIMIT
    try:
        while seen.count(b" rounds/s, 20 of 20 workers, 0 eliminated, ") < 3 and time.monotonic() < end:
            if select.select([ours], [], [], 1.0)[0]:
                seen += os.read(ours, 4096)
    finally:
        end_session(process.pid)
        process.wait()
        os.close(ours)
    lines = [line for line in seen.split(b"\r")[1:] if b"rounds/s" in line]
    assert lines, seen
    assert all(line.startswith(b"ideal: ") and line.endswith(b"\033[K") for line in lines[:-1]), seen
    assert b"\n" not in b"".join(lines)
