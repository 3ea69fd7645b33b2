"""Jobs in which some ranks never get as far as the first round."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

from support.mpirun import MPIRUN, SCRIPTS, launch, mpirun, needs_mpi

pytestmark = [needs_mpi, pytest.mark.slow]

def complaints(run: subprocess.CompletedProcess[str]) -> list[str]:
    return [line for line in run.stderr.splitlines() if line.startswith("byzadmm: error: ")]


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


def test_a_job_in_which_no_rank_is_ready_ends_and_one_in_which_some_are_goes_on() -> None:
    nobody = mpirun(4, SCRIPTS / "mpi_start.py", 4, "load", 1, 2, 3)
    assert nobody.returncode == 1
    assert "ConnectionError: mpi: no rank has loaded its data after 4 s (patience): 1, 2, 3" in nobody.stderr
    some = mpirun(4, SCRIPTS / "mpi_start.py", 10, "load", 1, 3)
    assert some.returncode == 0, some.stderr
    assert some.stdout.split() == ["slow", "ready", "slow"]


def test_one_process_is_not_enough(tmp_path: Path) -> None:
    run = mpirun(1, SCRIPTS / "mpi_runs.py", "same", tmp_path)
    assert run.returncode != 0
    assert "mpi: expected a master and at least one worker, got one process; start with " in run.stderr
