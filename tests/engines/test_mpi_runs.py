"""Over MPI: the same bits as in one process, also after the master was killed."""

from __future__ import annotations

from pathlib import Path

import pytest

from byzadmm.engines.messages import HEADER_BYTES
from byzadmm.training.sampling import Sampling
from support.mpi_runs import cases
from support.mpirun import SCRIPTS, mpirun, needs_mpi, read

pytestmark = [needs_mpi, pytest.mark.slow]

@pytest.mark.parametrize("ranks", [2, 3, 5])
def test_every_run_has_the_bits_of_one_process(ranks: int, tmp_path: Path) -> None:
    run = mpirun(ranks, SCRIPTS / "mpi_runs.py", "same", tmp_path, tolerant=ranks != 3)
    assert run.returncode == 0, run.stderr
    record = read(tmp_path / "same.json")
    assert record["different"] == {}
    assert record["events"] == []
    assert record["count"] == len(cases()) > 100


def test_the_master_stops_a_run(tmp_path: Path) -> None:
    run = mpirun(3, SCRIPTS / "mpi_runs.py", "stopped", tmp_path)
    assert run.returncode == 0, run.stderr
    assert read(tmp_path / "stopped0.json") == {"seen": [0, 2, 4], "stopped": 4, "different": []}
    assert read(tmp_path / "stopped1.json") == read(tmp_path / "stopped2.json") == {"seen": []}


def test_many_rounds_at_7850(tmp_path: Path) -> None:
    run = mpirun(5, SCRIPTS / "mpi_runs.py", "long", tmp_path)
    assert run.returncode == 0, run.stderr
    record = read(tmp_path / "long.json")
    assert record["different"] == []
    report = record["report"]
    assert (report["rounds"], report["events"]) == (300, [])
    # d numbers down to each rank and d up from each worker, as the paper counts; plus headers and the models twice
    numbers = 4 * 7850 * (300 * (4 + 20) + 2 * 20)
    assert numbers <= report["bytes"] < 1.01 * numbers


def test_a_million_numbers_in_a_message(tmp_path: Path) -> None:
    run = mpirun(3, SCRIPTS / "mpi_runs.py", "wide", tmp_path)
    assert run.returncode == 0, run.stderr
    assert read(tmp_path / "wide.json")["different"] == []


def test_only_ranks_with_a_worker_of_the_round_are_asked(tmp_path: Path) -> None:
    run = mpirun(4, SCRIPTS / "mpi_runs.py", "sampled", tmp_path)
    assert run.returncode == 0, run.stderr
    sampling = Sampling(6, 1 / 3, 0)
    drawn = [sampling.workers(k) // 2 for k in range(1, 31)]  # the ranks of those drawn, from 0
    for name in ("own", "all"):
        record = read(tmp_path / f"{name}.json")
        assert record["different"] == [], name
        assert record["report"]["events"] == [], name
        for number, rank in enumerate(record["report"]["ranks"]):
            rows = [int(sum(ranks == number)) for ranks in drawn]
            follows = name == "all" and number == 2  # it holds copies of all workers
            asked = 30 if follows else sum(count > 0 for count in rows)
            assert (rank["asked"], rank["on_time"], rank["late"]) == (asked, asked, 0), (name, number)
            start = HEADER_BYTES + 2 * 8
            assert rank["bytes_up"] == start + asked * HEADER_BYTES + sum(rows) * 100 * 4, (name, number)


@pytest.mark.parametrize("share", [1, 0.5])
def test_a_killed_master_goes_on_to_the_same_bits(share: float, tmp_path: Path) -> None:
    script = SCRIPTS / "mpi_runs.py"
    killed = mpirun(4, script, "resume", tmp_path, 8, share)
    assert killed.returncode != 0
    assert not (tmp_path / "resume.json").exists()
    resumed = mpirun(4, script, "resume", tmp_path, 0, share)
    assert resumed.returncode == 0, resumed.stderr
    assert read(tmp_path / "resume.json") == {"different": [], "events": [], "rounds": 6, "finite": True}
    # one generation that goes with the master's file, and the one before: nothing piles up
    shards = sorted(path.name for path in tmp_path.glob("run.npz.*"))
    assert shards == [f"run.npz.{done}.w{span}.npz" for done in (12, 9) for span in ("0-2", "3-4", "5-6")]


def test_a_worker_without_saved_state_starts_at_x0(tmp_path: Path) -> None:
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
