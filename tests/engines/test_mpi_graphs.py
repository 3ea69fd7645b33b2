"""Runs on a graph over MPI: the same bits as in one process, and the bits of a replay where ranks fail.

Nothing here depends on speed: where a rank misses a deadline because the machine is busy, the replay misses it too.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from byzadmm import Result
from byzadmm.decentralized.experiment import GraphExperiment, rounds
from byzadmm.decentralized.network import Network
from support.arrays import same_bits
from support.mpi_graph_faults import ROUNDS, settings
from support.mpi_graphs import cases
from support.mpirun import SCRIPTS, mpirun, needs_mpi, read

pytestmark = [needs_mpi, pytest.mark.slow]


@pytest.mark.parametrize(("ranks", "every"), [(4, 1), (3, 4)])
def test_every_run_has_the_bits_of_one_process(ranks: int, every: int, tmp_path: Path) -> None:
    run = mpirun(ranks, SCRIPTS / "mpi_graphs.py", "same", tmp_path, every, tolerant=every == 1)
    assert run.returncode == 0, run.stderr
    record = read(tmp_path / "same.json")
    assert record["different"] == {}
    assert record["events"] == []
    assert record["count"] == len(list(cases())[::every]) > 10


def test_runs_of_one_job_one_after_another(tmp_path: Path) -> None:
    run = mpirun(4, SCRIPTS / "mpi_graphs.py", "several", tmp_path)
    assert run.returncode == 0, run.stderr
    record = read(tmp_path / "several.json")
    assert record["different"] == []
    assert record["seen"] == [0, 3, 6]
    assert record["stopped"] == 6
    assert record["refused"] == (
        "algorithm: RSGP does not run over MPI: its nodes use what their neighbors publish besides their messages"
    )
    assert record["events"] == []
    # Every node's model goes to each rank with neighbors of it once a round.
    assert record["bytes"] == record["expected"]


def test_a_killed_rank_0_goes_on_to_the_same_bits(tmp_path: Path) -> None:
    script = SCRIPTS / "mpi_graphs.py"
    killed = mpirun(4, script, "resume", tmp_path, 8)
    assert killed.returncode != 0
    assert not (tmp_path / "resume.json").exists()
    resumed = mpirun(4, script, "resume", tmp_path, 0)
    assert resumed.returncode == 0, resumed.stderr
    record = read(tmp_path / "resume.json")
    assert record["different"] == []
    assert record["events"] == []
    assert record["rounds"] < 12
    assert len(list(tmp_path.glob("run.npz.*"))) == 6, "two generations for each rank"
    # Without its saved state a rank goes on from the models that rank 0 has.
    for lost in tmp_path.glob("run.npz.*.w3-4.npz"):
        lost.write_bytes(b"broken")
    longer = mpirun(4, script, "resume", tmp_path, 0, 15)
    assert longer.returncode == 0, longer.stderr
    record = read(tmp_path / "resume.json")
    assert record["events"] == ["round 12: nodes 3, 4 (rank 2): restarted: no saved state"]
    assert "x" in record["different"]
    assert record["finite"]


class Losing(Network):
    """All nodes, some of which do not hear some of their neighbors."""

    lost: list[Any]

    def _heard(self, *given: Any) -> Any:
        table, good, found = super()._heard(*given)
        lost = [list(pair) in self.lost for pair in zip(self.links.receivers.tolist(), self.links.senders, strict=True)]
        return table, good, np.where(lost, -1, found)


def replay(folder: Path, ranks: int) -> Any:
    """The run once more without MPI: models of all nodes, and in which rounds each rank took part."""
    run = GraphExperiment(None, None, **settings(ranks))
    nodes = Losing(run)
    state, advance = rounds(run, nodes)
    notes = [
        dict(json.loads(line) for line in (folder / f"rank{rank}.jsonl").read_text().splitlines())
        for rank in range(1, ranks + 1)
    ]
    for k in range(1, ROUNDS + 1):
        before = {name: array.copy() for name, array in state.items()}
        nodes.lost = [pair for heard in notes for pair in heard.get(k, [])]
        advance(state, k, 1)
        for node in range(run.m):
            if k not in notes[node // 2]:
                state["x"][node], state["pull"][node] = before["x"][node], before["pull"][node]
                links = slice(*nodes.links.offsets[node : node + 2])
                state["e"][links] = before["e"][links]
    return state["x"], [list(heard) for heard in notes]


def fail(folder: Path, *faults: str, deadline: float = 5.0, strikes: int = 4) -> tuple[Any, Any, list[list[int]]]:
    """A run in which ranks fail: report, models, and the rounds in which each rank took part."""
    run = mpirun(len(faults) + 1, SCRIPTS / "mpi_graph_faults.py", folder, deadline, strikes, *faults)
    assert (folder / "run.json").exists(), run.stderr
    assert run.returncode == 0, run.stderr
    models, took_part = replay(folder, len(faults))
    result, report = Result.load(folder / "run.npz"), read(folder / "run.json")
    assert result.x is not None
    for rank, numbers in enumerate(took_part):
        if numbers[-1:] == [ROUNDS]:  # rank 0 has its last models
            assert same_bits(result.x[2 * rank : 2 * rank + 2], models[2 * rank : 2 * rank + 2]), rank
    assert np.isfinite(result.x).all()
    return report, result, took_part


def states(report: Any) -> list[str]:
    return [rank["state"] for rank in report["ranks"]]


def test_a_killed_rank_is_a_crashed_neighbor_and_a_slow_one_comes_back(tmp_path: Path) -> None:
    report, result, took_part = fail(tmp_path, "none", "slow", "kill", "none")
    assert states(report)[2] == "died"
    assert took_part[2] == [1, 2, 3]
    assert 4 in took_part[1]
    assert [took_part[rank][-1] for rank in (0, 1, 3)] == [ROUNDS] * 3, "the slow one is with the others again"
    named = [(event["rank"], event["what"], event["round"]) for event in report["events"]]
    assert {(3, "died", 3), (3, "died", 4)} & set(named)
    assert (2, "slow", 4) in named
    assert 2 in [rank for rank, what, _ in named if what == "back"]
    ranks = report["ranks"]
    assert ranks[2]["rounds"] <= 3
    assert ranks[1]["late"] > 0
    assert ranks[0]["on_time"] <= ranks[0]["asked"]
    assert report["rounds"] == ROUNDS
    assert len(result.iterations) == 4
    there = [0, 1, 2, 3, 6, 7]  # the curves are without the nodes that died
    assert result.x0 == pytest.approx(result.x[there].mean(axis=0), rel=1e-6)


def test_what_is_no_valid_message_is_not_heard(tmp_path: Path) -> None:
    faults = ("account", "nan", "wrong_length", "garbage", "raise")
    report, _, took_part = fail(tmp_path, *faults, deadline=60.0)
    expected = ["ready", "ready", "wrong_length", "garbage", "raised"]
    assert states(report) == expected
    ranks = report["ranks"]
    # Rank 3 tells of it, and rank 4 unless its garbage was there before; what rank 1 tells rank 0 is nonsense.
    assert [rank["not_finite"] for rank in ranks] in ([0, 2, 0, 0, 0], [0, 1, 0, 0, 0])
    named = {(event["rank"], event["what"]) for event in report["events"]}
    assert named == {(2, "non_finite"), (3, "wrong_length"), (4, "garbage"), (5, "raised")}
    # Those that are not heard any more go on by themselves.
    assert [len(numbers) for numbers in took_part] == [ROUNDS] * 4 + [3]
