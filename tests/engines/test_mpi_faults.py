"""Ranks that fail: the master goes on whatever they do, and does what a replay without MPI does.

Nothing here depends on speed: where a rank misses a deadline because the machine is busy, the replay misses it too.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from byzadmm import Result
from byzadmm.engines import Experiment
from byzadmm.training.master import Master, play
from byzadmm.training.workers import Workers
from support.arrays import same_bits
from support.mpi_faults import LAM, RUNS, settings
from support.mpirun import SCRIPTS, mpirun, needs_mpi, read

pytestmark = [needs_mpi, pytest.mark.slow]

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
ELIMINATED = list(FAULTS)[8:]  # after the other faults workers are missing


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
        news = [worker for worker in came["eliminated"] if master.eliminated[worker] < 0]
        master.eliminated[news] = k
        return messages, np.array(came["present"])

    for k in range(1, 13):
        play(k, master, ask)
    return master


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


def test_ranks_that_never_come_back_cannot_hold_the_end(tmp_path: Path) -> None:
    faults = ("none", "stop_forever", "stuck", "none", "kill")
    run = mpirun(len(faults) + 1, SCRIPTS / "mpi_faults.py", tmp_path, 3, STRIKES, *faults)
    assert (tmp_path / "record.json").exists(), run.stderr
    assert run.returncode == 0, run.stderr
    report = read(tmp_path / "run0.json")
    assert [rank["state"] for rank in report["ranks"]][1:3] == ["slow", "oversized"]
    assert report["ranks"][4]["state"] == "died"


def test_when_nobody_is_left_the_master_says_so(tmp_path: Path) -> None:
    run = mpirun(3, SCRIPTS / "mpi_faults.py", tmp_path, 20, STRIKES, "garbage", "kill")
    assert "mpi: no worker is left in round 4 (rank 1 garbage, rank 2 died)" in run.stderr
    assert run.returncode == 1
    assert not (tmp_path / "run0.npz").exists()
