"""Over MPI: the same bits as in one process, and a master that goes on whatever its workers do.

Every mpirun is a session of its own with a hard limit. Nothing here depends on speed: where a rank misses a
deadline because the machine is busy, the replay misses it too.
"""

from __future__ import annotations

import importlib.util
import json
import os
import re
import select
import shlex
import signal
import subprocess
import sys
import sysconfig
import time
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from byzadmm import Result
from byzadmm._internal.progress import Bar
from byzadmm.cli import main
from byzadmm.engines import Event, Experiment
from byzadmm.engines._launch import find_mpirun
from byzadmm.engines.mpi import share
from byzadmm.engines.report import COLUMNS, RankReport, RunReport
from byzadmm.training.master import Master, play
from byzadmm.training.workers import Workers
from support.arrays import same_bits
from support.mpi_faults import LAM, RUNS, settings
from support.mpi_runs import cases

TESTS = Path(__file__).parents[1]
SCRIPTS = TESTS / "support"
LIMIT = 300.0
MPIRUN = find_mpirun() or ""

needs_mpi = pytest.mark.skipif(
    importlib.util.find_spec("mpi4py") is None or not MPIRUN,
    reason="needs mpi4py and mpirun: pip install 'byzadmm[mpi]'",
)


def environment() -> dict[str, str]:
    paths = [str(TESTS), *filter(None, [os.environ.get("PYTHONPATH")])]
    root = {"OMPI_ALLOW_RUN_AS_ROOT": "1", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1"}
    return os.environ | root | {"PYTHONPATH": os.pathsep.join(paths), "OMP_NUM_THREADS": "1"}


def launch(words: list[str], **settings: Any) -> subprocess.CompletedProcess[str]:
    """Run it in a session of its own; all of that is killed at the limit."""
    process = subprocess.Popen(
        words,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
        **{"env": environment()} | settings,
    )
    try:
        out, err = process.communicate(timeout=LIMIT)
    except subprocess.TimeoutExpired:
        end_session(process.pid)
        out, err = process.communicate()
        pytest.fail(f"{' '.join(words)}: not over after {LIMIT} s\n{out}\n{err}")
    return subprocess.CompletedProcess(words, process.returncode, out, err)


def mpirun(ranks: int, *command: Any, tolerant: bool = True) -> subprocess.CompletedProcess[str]:
    """Run ``python command`` on so many ranks."""
    words = [MPIRUN, *(["--with-ft", "ulfm"] if tolerant else []), "--oversubscribe", "--bind-to", "none"]
    return launch([*words, "-np", str(ranks), sys.executable, "-W", "error", *map(str, command)])


def end_session(session: int) -> None:
    """Ranks have process groups of their own; the session is what they share with mpirun."""
    for folder in Path("/proc").glob("[1-9]*"):
        try:
            if int((folder / "stat").read_text().rpartition(")")[2].split()[3]) == session:
                os.kill(int(folder.name), signal.SIGKILL)
        except OSError:  # it ended by itself
            continue


def read(path: Path) -> Any:
    return json.loads(path.read_text("utf-8"))


# --- without mpirun --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("m", "size"), [(1, 2), (7, 2), (7, 4), (3, 6), (20, 7), (1000, 64)])
def test_every_worker_is_on_one_rank(m: int, size: int) -> None:
    shares = [share(m, rank, size) for rank in range(size)]
    assert list(shares[0]) == []
    assert [worker for mine in shares for worker in mine] == list(range(m))
    sizes = [len(mine) for mine in shares[1:]]
    assert max(sizes) - min(sizes) <= 1


def some_report() -> RunReport:
    report = RunReport([RankReport(1, (0, 1)), RankReport(2, (2,)), RankReport(3)], [], "float32", 3, 10)
    for k in range(1, 6):
        for rank in report.ranks[:2]:
            rank.asked += 1
            if (rank.rank, k) != (2, 4):
                rank.answered(0.01 * k, 99.0)  # it claims more work than there was time for
        report.ranks[0].bytes_up += 500_000
        report.rounds += 1
        report.keep_round(k, report.begun + k)
    report.events += [Event(4, 2, (2,), "slow"), Event(5, 2, (2,), "wrong_length")]
    report.finish({1: "ready", 2: "wrong_length", 3: "ready"})
    return report


def test_the_report_counts(tmp_path: Path) -> None:
    report = some_report()
    assert report.rows() == [
        ["1", "0-1", "5/5", "-", "30.00", "50.0", "30.00", "2.5", "ready"],
        ["2", "2", "4/5", "-", "27.50", "50.0", "27.50", "0.0", "wrong length"],
        ["3", "-", "0/0", "-", "0.00", "0.0", "0.00", "0.0", "ready"],
    ]
    assert len(report.rows()[0]) == len(COLUMNS)
    assert "2 of 3 workers, 1 eliminated, 2.5 MB" in report.line()
    whole = RunReport.together([report, report])
    assert whole.rows()[0] == ["1", "0-1", "10/10", "-", "30.00", "50.0", "30.00", "5.0", "ready"]
    assert (whole.rounds, len(whole.events)) == (10, 4)
    report.save(tmp_path / "report.json")
    record = read(tmp_path / "report.json")
    assert record["ranks"][1]["on_time"] == 4
    assert record["events"][0] == {"round": 4, "rank": 2, "workers": [2], "what": "slow", "text": ""}
    assert record["timeline"][3] == [4, pytest.approx(4.0), [[0.04, 0.04], None, None]]


def test_a_long_run_keeps_some_rounds_only() -> None:
    report = RunReport([RankReport(1, (0,))], [], "float32", 1, 1)
    for k in range(5000):
        report.keep_round(k, report.begun)
    kept = [k for k, _, _ in report.timeline]
    assert 500 <= len(kept) <= 1000
    assert set(np.diff(kept)) == {8}
    assert kept[0] == 0


def test_the_timeline_is_drawn(tmp_path: Path) -> None:
    pytest.importorskip("matplotlib")
    some_report().draw(tmp_path / "timeline.png")
    assert (tmp_path / "timeline.png").read_bytes()[1:4] == b"PNG"
    RunReport([RankReport(1, (0,))], [Event(0, 1, (0,), "died")], "float32", 1, 1).draw(tmp_path / "empty.svg")
    assert (tmp_path / "empty.svg").exists()


@pytest.mark.parametrize("rounds", [30, 3000])
def test_the_timeline_agrees_with_the_table(rounds: int, tmp_path: Path) -> None:
    pytest.importorskip("matplotlib")
    from matplotlib.image import imread

    report = RunReport([RankReport(1, (0, 1))], [], "float32", 2, 10)
    for k in range(rounds):
        report.ranks[0].answered(0.0023, 0.00046)
        report.keep_round(k, report.begun + 0.0025 * k)
    report.draw(tmp_path / "timeline.png", "x")
    bar = imread(tmp_path / "timeline.png")[:-60, :, :3]  # without the legend
    work, wait = (np.all(np.abs(bar - np.array(rgb) / 255) < 0.03, -1).sum() for rgb in [(0, 114, 178), (86, 180, 233)])
    assert work / (work + wait) == pytest.approx(report.ranks[0].work / report.ranks[0].mean, rel=0.1)
    _, waited, worked = report.shares(0)
    assert np.sum(waited) / len(waited) == pytest.approx(0.0023 / 0.0025, rel=0.01)
    assert np.sum(worked) / np.sum(waited) == pytest.approx(0.2, rel=0.01)


def test_a_line_where_there_is_no_terminal(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Bar, "TERMINAL", "/no/such/terminal")
    monkeypatch.setattr(Bar, "LIVE_INTERVAL", 0.0)
    bar = Bar("admm", live=True)
    bar.update(1, 2, lambda: "all well")
    bar.clear()
    bar.close()
    assert capsys.readouterr().err == "admm: 1 of 2, all well\n"


# --- the same bits ---------------------------------------------------------------------------------------------------


@needs_mpi
@pytest.mark.parametrize("ranks", [2, 3, 5])
def test_every_run_has_the_bits_of_one_process(ranks: int, tmp_path: Path) -> None:
    run = mpirun(ranks, SCRIPTS / "mpi_runs.py", "same", tmp_path, tolerant=ranks != 3)
    assert run.returncode == 0, run.stderr
    record = read(tmp_path / "same.json")
    assert record["different"] == {}
    assert record["events"] == []
    assert record["count"] == len(cases()) > 200


@needs_mpi
def test_a_thousand_rounds_at_7850(tmp_path: Path) -> None:
    run = mpirun(5, SCRIPTS / "mpi_runs.py", "long", tmp_path)
    assert run.returncode == 0, run.stderr
    record = read(tmp_path / "long.json")
    assert record["different"] == []
    report = record["report"]
    assert (report["rounds"], report["events"]) == (1000, [])
    # d numbers down to each rank and d up from each worker, as the paper counts; plus headers and two reports of models
    numbers = 4 * 7850 * (1000 * (4 + 20) + 2 * 20)
    assert numbers <= report["bytes"] < 1.01 * numbers


@needs_mpi
def test_a_million_numbers_in_a_message(tmp_path: Path) -> None:
    run = mpirun(3, SCRIPTS / "mpi_runs.py", "wide", tmp_path)
    assert run.returncode == 0, run.stderr
    assert read(tmp_path / "wide.json")["different"] == []


# --- the command line ------------------------------------------------------------------------------------------------

QUICK = ("--iterations", 40, "--eval-every", 20, "--batch-size", 4, "--n-workers", 7, "-q", 2)


@needs_mpi
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


@needs_mpi
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


@needs_mpi
def test_without_mpirun_the_command_says_how_to_start() -> None:
    run = subprocess.run([sys.executable, "-m", "byzadmm", "mpi", "run"], capture_output=True, text=True, check=False)
    assert run.returncode == 2
    start = f"start with {MPIRUN} --with-ft ulfm --oversubscribe -np 5 byzadmm mpi run --algorithm admm\n"
    expected = "byzadmm: error: mpi: expected a master and at least one worker, got one process; "
    assert run.stderr == expected + start


@needs_mpi
def test_mpirun_is_found_beside_the_interpreter(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", "")
    assert find_mpirun() == str(Path(sysconfig.get_path("scripts"), "mpirun"))


def printed_commands(text: str) -> set[str]:
    """Lines that start a job on this machine: no hosts are named, and Slurm is not everywhere."""
    found = re.findall(r"^ *((?:\S*/)?mpirun .*)$", text, re.MULTILINE)
    return {line for line in found if "--host" not in line}


@needs_mpi
def test_printed_commands_work_as_printed(root: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    pages = {name: (root / name).read_text("utf-8") for name in ("README.md", "docs/mpi.md", "docs/cli.md")}
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


@needs_mpi
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


# --- ranks that never get as far as the first round ------------------------------------------------------------------


def complaints(run: subprocess.CompletedProcess[str]) -> list[str]:
    return [line for line in run.stderr.splitlines() if line.startswith("byzadmm: error: ")]


@needs_mpi
@pytest.mark.parametrize(
    ("other", "why"),
    [(["false"], "rank 2 has ended"), (["sleep", "1000"], "rank 2 (sleep) has not called MPI_Init")],
)
def test_a_rank_that_is_not_in_mpi_does_not_hold_the_others(other: list[str], why: str) -> None:
    words = [MPIRUN, "--with-ft", "ulfm", "--oversubscribe", "-np", "2", sys.executable, "-m", "byzadmm", "mpi", "run"]
    run = launch([*words, "--patience", "6", ":", "-np", "1", *other])
    assert run.returncode == 2
    [line] = complaints(run)
    assert "waited 6 s (patience) in MPI_Init for every rank to start: " in line
    assert why in line


@needs_mpi
@pytest.mark.parametrize(
    ("stage", "ranks", "expected"),
    [
        ("before", [2], "rank RANK waited 4 s (patience) in MPI_Init for every rank to start"),
        ("after", [0], "rank RANK waited 8 s for the master's first message"),
        ("load", [0], "rank 0 was loading its data for 4 s (patience)"),
    ],
)
def test_a_start_that_takes_too_long_ends_the_job(stage: str, ranks: list[int], expected: str) -> None:
    run = mpirun(4, SCRIPTS / "mpi_start.py", 4, stage, *ranks, tolerant=stage != "before")
    assert run.returncode == 2, run.stderr
    [line] = complaints(run)
    assert re.match(f"byzadmm: error: mpi: {re.escape(expected)}".replace("RANK", r"\d"), line)


@needs_mpi
def test_a_job_in_which_no_rank_is_ready_ends_and_one_in_which_some_are_goes_on() -> None:
    nobody = mpirun(4, SCRIPTS / "mpi_start.py", 4, "load", 1, 2, 3)
    assert nobody.returncode == 1
    assert "ConnectionError: mpi: no rank has loaded its data after 4 s (patience): 1, 2, 3" in nobody.stderr
    some = mpirun(4, SCRIPTS / "mpi_start.py", 10, "load", 1, 3)
    assert some.returncode == 0, some.stderr
    assert some.stdout.split() == ["slow", "ready", "slow"]


# --- a master that dies ----------------------------------------------------------------------------------------------


@needs_mpi
def test_a_killed_master_goes_on_to_the_same_bits(tmp_path: Path) -> None:
    script = SCRIPTS / "mpi_runs.py"
    killed = mpirun(4, script, "resume", tmp_path, 8)
    assert killed.returncode != 0
    assert not (tmp_path / "resume.json").exists()
    resumed = mpirun(4, script, "resume", tmp_path, 0)
    assert resumed.returncode == 0, resumed.stderr
    assert read(tmp_path / "resume.json") == {"different": [], "events": [], "rounds": 6, "finite": True}
    # one generation that goes with the master's file, and the one before: nothing piles up
    shards = sorted(path.name for path in tmp_path.glob("run.npz.*"))
    assert shards == [f"run.npz.{done}.w{span}.npz" for done in (12, 9) for span in ("0-2", "3-4", "5-6")]


@needs_mpi
def test_a_worker_whose_state_is_lost_begins_at_x0(tmp_path: Path) -> None:
    script = SCRIPTS / "mpi_runs.py"
    assert mpirun(4, script, "resume", tmp_path, 8).returncode != 0
    (tmp_path / "run.npz.6.w3-4.npz").unlink()
    (tmp_path / "run.npz.6.w5-6.npz").write_bytes(b"broken")
    resumed = mpirun(4, script, "resume", tmp_path, 0)
    assert resumed.returncode == 0, resumed.stderr
    record = read(tmp_path / "resume.json")
    assert record["events"] == [
        "round 6: workers 3, 4 (rank 2): restarted: no saved state",
        "round 6: workers 5, 6 (rank 3): restarted: no saved state",
    ]
    assert record["finite"]
    assert "x0" in record["different"]


# --- the fault matrix ------------------------------------------------------------------------------------------------

STRIKES = 4
#: fault -> how its rank ends the first run; several where it depends on who is faster
FAULTS = {
    "none": {"ready"},
    "also none": {"ready"},
    "slow": {"ready"},
    "raise": {"raised"},
    "sys_exit": {"raised"},
    "exit": {"died", "slow"},
    "kill": {"died"},
    "stop": {"ready"},
    "nan": {"ready"},
    "out_of_range": {"ready"},
    "wrong_length": {"wrong_length"},
    "wrong_dtype": {"wrong_dtype"},
    "wrong_worker": {"wrong_worker"},
    "old_round": {"old_round"},
    "garbage": {"garbage"},
    "oversized": {"oversized"},
    "flood": {"oversized"},
    "twice": {"unasked", "old_round"},
}
ELIMINATED = list(FAULTS)[8:]  # what a slow, broken or dead process does is no misbehaviour


def replay(record: list[dict[str, Any]], number: int, m: int) -> Master:
    """The run once more without MPI: the same workers asked, the same answers missing, the same eliminated."""
    experiment = Experiment(None, None, **settings(m, RUNS[number], 12))
    workers = [Workers(experiment, [worker]) for worker in range(m)]
    master = Master(experiment)
    rounds = [entry for entry in record if entry.get("run") == number]

    def ask(k: int, x0: Any) -> Any:
        messages = np.zeros((m, experiment.d), experiment.dtype)
        now = [entry for entry in rounds if entry["round"] == k]
        for worker in (worker for entry in now for worker in entry.get("asked", ())):
            if not ((number, k) == (0, STRIKES) and list(FAULTS)[worker] in ("raise", "sys_exit")):
                messages[worker] = workers[worker].answer(k, x0)[0]
        if (number, k) == (0, STRIKES):
            messages[list(FAULTS).index("nan"), 3] = np.nan
            messages[list(FAULTS).index("out_of_range"), 0] = 1.5 * LAM
        [came] = [entry for entry in now if "present" in entry]
        lost = [worker for worker in came["eliminated"] if master.eliminated[worker] < 0]
        master.eliminated[lost] = k
        return messages, np.array(came["present"])

    for k in range(1, 13):
        play(k, master, ask)
    return master


@needs_mpi
def test_the_fault_matrix(tmp_path: Path) -> None:
    deadline, m = 12.0, len(FAULTS)
    run = mpirun(m + 1, SCRIPTS / "mpi_faults.py", tmp_path, deadline, STRIKES, *FAULTS)
    assert (tmp_path / "run2.npz").exists(), run.stderr
    assert run.returncode == 0, run.stderr
    record = read(tmp_path / "record.json")
    *rounds, last = record
    reports = [read(tmp_path / f"run{number}.json") for number in range(3)]
    states = {fault: rank["state"] for fault, rank in zip(FAULTS, reports[0]["ranks"], strict=True)}
    assert {fault: state for fault, state in states.items() if state not in FAULTS[fault]} == {}
    for number in range(3):
        result = Result.load(tmp_path / f"run{number}.npz")
        master = replay(rounds, number, m)
        assert same_bits(result.x0, master.x0), number
        assert result.eliminated == {i: int(k) for i, k in enumerate(master.eliminated) if k >= 0}
        assert np.all(np.isfinite(result.x0))
        if number == 0:  # in later runs a worker whose numbers were impossible may show that it can do better
            assert sorted(result.eliminated) == [list(FAULTS).index(fault) for fault in ELIMINATED]
    named = {(event["rank"], event["what"]) for event in reports[0]["events"]}
    rank = {fault: number for number, fault in enumerate(FAULTS, start=1)}
    assert {(rank["slow"], "slow"), (rank["slow"], "back"), (rank["stop"], "slow"), (rank["stop"], "back")} <= named
    assert {(rank["nan"], "non_finite"), (rank["out_of_range"], "out_of_range")} <= named
    texts = [event["text"] for event in reports[0]["events"] if event["what"] == "raised"]
    assert sorted(texts) == ["SystemExit: 3", "ValueError: no such?thing"]
    # the slow and the stopped were asked again, the eliminated were not
    asked = {fault: number["asked"] for fault, number in zip(FAULTS, reports[0]["ranks"], strict=True)}
    assert STRIKES < asked["slow"] < 12
    assert STRIKES < asked["stop"] < 12
    assert all(asked[fault] <= STRIKES + 1 for fault in ELIMINATED[2:])
    # no round took much longer than the deadline, and the master never took in what was too large
    assert max(entry.get("seconds", 0.0) for entry in rounds) < deadline + 60
    assert last["peak"] < 150_000  # kB; one of the messages alone had 100 MB, the flood 60 MB


@needs_mpi
def test_ranks_that_never_come_back_cannot_hold_the_end(tmp_path: Path) -> None:
    faults = ("none", "stop_forever", "stuck", "none", "kill")
    run = mpirun(len(faults) + 1, SCRIPTS / "mpi_faults.py", tmp_path, 3, STRIKES, *faults)
    assert (tmp_path / "record.json").exists(), run.stderr
    assert run.returncode == 0, run.stderr
    report = read(tmp_path / "run0.json")
    assert [rank["state"] for rank in report["ranks"]][1:3] == ["slow", "oversized"]
    assert report["ranks"][4]["state"] == "died"


@needs_mpi
def test_when_nobody_is_left_the_master_says_so(tmp_path: Path) -> None:
    run = mpirun(3, SCRIPTS / "mpi_faults.py", tmp_path, 20, STRIKES, "garbage", "kill")
    assert "mpi: no worker is left in round 4 (rank 1 garbage, rank 2 died)" in run.stderr
    assert run.returncode == 1
    assert not (tmp_path / "run0.npz").exists()


@needs_mpi
def test_one_process_is_not_enough(tmp_path: Path) -> None:
    run = mpirun(1, SCRIPTS / "mpi_runs.py", "same", tmp_path)
    assert run.returncode != 0
    assert "mpi: expected a master and at least one worker, got one process; start with " in run.stderr
