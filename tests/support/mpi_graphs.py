"""A script for mpirun: runs on a graph that are compared, on rank 0, with the same runs in one process.

``python mpi_graphs.py same FOLDER EVERY``, ``several FOLDER`` and ``resume FOLDER DIE_AFTER ITERATIONS``; what differs
is written into FOLDER.
"""

from __future__ import annotations

import itertools
import json
import os
import signal
import sys
from pathlib import Path
from typing import Any

import numpy as np

import byzadmm
from byzadmm import attacks, decentralized, graphs, steps
from byzadmm.decentralized import DADMM, DSGD
from byzadmm.engines.messages import HEADER_BYTES
from byzadmm.engines.mpi import Job
from support.arrays import same_bits
from support.graphs import DECENTRALIZED, GRAPH
from support.runs import ALGORITHMS, M, Q, data_for, small_data, small_parts

ATTACKS: dict[str, Any] = {
    "none": None,
    "sign_flip": attacks.SignFlip(),
    "large": attacks.LargeValue(),
    "dissensus": attacks.Dissensus(),
    "mimic": attacks.Mimic(warmup=3),
    "non_finite": attacks.NonFinite(),
    "dual": attacks.DualOscillation(),
}
SHARED: dict[str, Any] = {"iterations": 7, "eval_every": 3, "batch_size": 4, "seed": 3, "graph": GRAPH}


def near(messages: Any, *, byzantine: Any, rng: Any, **_: Any) -> Any:
    """An attack of a user that looks at the neighbors of the attackers."""
    return np.nanmean(messages, axis=0) + rng.normal(0, 1, (len(byzantine), messages.shape[1]))


near.view = "neighbors"  # type: ignore[attr-defined]


def cases() -> dict[str, dict[str, Any]]:
    """Every algorithm that runs over MPI, under attacks that see more and less; other graphs and settings."""
    made: dict[str, dict[str, Any]] = {}
    others = itertools.cycle(attack for attack in ATTACKS if attack != "dissensus")
    for name, algorithm in DECENTRALIZED.items():
        if algorithm.together:
            continue
        for attack in ATTACKS if name == "dadmm" else ("dissensus", next(others), next(others)):
            under = {"algorithm": algorithm, "attack": ATTACKS[attack], "n_byzantine": Q - 1}
            made[f"{name} {attack}"] = SHARED | under
    dadmm, ios = DECENTRALIZED["dadmm"], DECENTRALIZED["ios"]
    spread = SHARED | {"algorithm": dadmm, "byzantine": [0, 6], "dtype": "float64"}
    for attack in ("sign_flip", "dissensus"):
        flaky = {"graph": graphs.Flaky(GRAPH, 0.6), "attack": ATTACKS[attack]}
        made[f"flaky {attack}"] = spread | flaky
        made[f"spread {attack}"] = spread | {"attack": ATTACKS[attack], "threads": 2}
    made["custom"] = spread | {"attack": near, "algorithm": DADMM(0.05, 0.3, [steps.power(1.0)] * M)}
    made["ring"] = SHARED | {"graph": graphs.ring(M), "algorithm": dadmm, "record": "trajectory", "first_k": 0}
    made["ring"] |= {"rho": [0.1 * i for i in range(M)], "x_init": 1.0}
    star = SHARED | {"graph": graphs.star(M), "algorithm": dadmm}
    made["star"] = star | {"attack": attacks.Gaussian(), "byzantine": [3]}
    made["ideal"] = SHARED | {"algorithm": DSGD(step=steps.power(1.0), ideal=True), "byzantine": [1, 2]}
    made["labels"] = SHARED | {"algorithm": ios, "attack": attacks.LabelFlip(), "n_byzantine": 2}
    made["logistic"] = SHARED | {"algorithm": dadmm, "loss": "logistic"}
    return made


def differences(ours: Any, whole: Any) -> list[str]:
    """Names of what is not the same to the bit."""
    names = [name for name in ("x", "x0", "iterations") if not same_bits(getattr(ours, name), getattr(whole, name))]
    names += [name for name in whole.metrics if not same_bits(ours.metrics[name], whole.metrics[name])]
    return names + ([] if ours.config == whole.config else ["config"])


def same(job: Job, folder: Path, every: str) -> None:
    found, events, count = {}, [], 0
    for name, case in list(cases().items())[:: int(every)]:
        data = data_for(case.get("loss", "softmax"))
        ours = job.simulate_decentralized(data, small_parts(), **case)
        if ours is None:
            continue
        if different := differences(ours, decentralized.simulate(data, small_parts(), **case)):
            found[name] = different
        assert job.report is not None
        events += [f"{name}: {event}" for event in job.report.events if event.what != "non_finite"]
        count += 1
    if job.is_master:
        (folder / "same.json").write_text(json.dumps({"count": count, "different": found, "events": events}))


def several(job: Job, folder: Path) -> None:
    """A run that rank 0 stops, one that no rank can begin, one with a master, and one that is counted."""
    seen: list[int] = []

    def stop(k: int, metrics: dict[str, float]) -> bool:
        seen.append(k)
        return k == 6

    case = cases()["dadmm sign_flip"] | {"iterations": 30}
    record: dict[str, Any] = {"seen": seen}
    early = job.simulate_decentralized(small_data(), small_parts(), on_evaluation=stop, **case)
    try:
        refused = cases()["dadmm none"] | {"algorithm": DECENTRALIZED["rsgp"]}
        job.simulate_decentralized(small_data(), small_parts(), **refused)
    except ValueError as error:
        record["refused"] = str(error)
    star = {"algorithm": ALGORITHMS["admm"], "attack": attacks.ALIE(), "n_byzantine": 2, "iterations": 6}
    mastered = job.simulate(small_data(), small_parts(), **star)
    honest = case | {"attack": None}
    last = job.simulate_decentralized(small_data(), small_parts(), **honest)
    if early is None or mastered is None or last is None or job.report is None:
        return
    shorter = decentralized.simulate(small_data(), small_parts(), **case | {"iterations": 6})
    record["stopped"] = early.config["stopped"]
    record["different"] = ["early"] * (not same_bits(early.x, shorter.x))
    record["different"] += differences(last, decentralized.simulate(small_data(), small_parts(), **honest))
    master = byzadmm.simulate(small_data(), small_parts(), **star)
    record["different"] += ["master"] * (not same_bits(mastered.x0, master.x0))
    record["events"] = [str(event) for event in job.report.events]
    record["bytes"] = job.report.bytes
    ways = list(itertools.permutations(range(3), 2))
    sent = [len({j for i, j in links() if (rank_of(j), rank_of(i)) == way}) for way in ways]
    record["expected"] = 30 * sum(HEADER_BYTES + 4 * 18 * rows for rows in sent)
    (folder / "several.json").write_text(json.dumps(record))


def links() -> list[tuple[int, int]]:
    """Receiver and sender of every link."""
    return [(i, j) for a, b in GRAPH.edges.tolist() for i, j in ((a, b), (b, a))]


def rank_of(node: int) -> int:
    """Three ranks hold nodes 0 to 2, 3 and 4, 5 and 6."""
    return int(np.searchsorted([3, 5], node, "right"))


def resume(job: Job, folder: Path, die_after: str, iterations: str = "12") -> None:
    """With DIE_AFTER > 0 rank 0 is killed at an evaluation; the same again goes on from the checkpoint."""
    case = cases()["dadmm mimic"] | {"iterations": int(iterations), "byzantine": [0, 6], "n_byzantine": 0}

    def die(k: int, metrics: dict[str, float]) -> None:
        if 0 < int(die_after) <= k:
            os.kill(os.getpid(), signal.SIGKILL)

    ours = job.simulate_decentralized(
        small_data(), small_parts(), checkpoint=folder / "run.npz", on_evaluation=die, **case
    )
    if ours is not None and job.report is not None:
        different = differences(ours, decentralized.simulate(small_data(), small_parts(), **case))
        record = {"different": different, "events": [str(event) for event in job.report.events]}
        record |= {"rounds": job.report.rounds, "finite": bool(np.isfinite(ours.x0).all())}
        (folder / "resume.json").write_text(json.dumps(record))


if __name__ == "__main__":
    with Job(deadline=60.0) as job:
        parts: dict[str, Any] = {"same": same, "several": several, "resume": resume}
        parts[sys.argv[1]](job, Path(sys.argv[2]), *sys.argv[3:])
    job.leave(0)
