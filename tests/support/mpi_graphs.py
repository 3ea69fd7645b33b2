"""A script for mpirun: runs on a graph that are compared, on rank 0, with the same runs in one process."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

from byzadmm import attacks, decentralized, graphs
from byzadmm.engines.mpi import Job
from support.arrays import same_bits
from support.graphs import DECENTRALIZED, GRAPH
from support.runs import Q, small_data, small_parts

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


def cases() -> dict[str, dict[str, Any]]:
    """Every algorithm that runs over MPI, under attacks that see more and less."""
    made: dict[str, dict[str, Any]] = {}
    for name, algorithm in DECENTRALIZED.items():
        if algorithm.together:
            continue
        for attack, kind in ATTACKS.items():
            made[f"{name} {attack}"] = SHARED | {"algorithm": algorithm, "attack": kind, "n_byzantine": Q - 1}
    return made


def differences(ours: Any, whole: Any) -> list[str]:
    """Names of what is not the same to the bit."""
    names = [name for name in ("x", "x0", "iterations") if not same_bits(getattr(ours, name), getattr(whole, name))]
    names += [name for name in whole.metrics if not same_bits(ours.metrics[name], whole.metrics[name])]
    return names + ([] if ours.config == whole.config else ["config"])


def same(job: Job, folder: Path) -> None:
    found, events, count = {}, [], 0
    for name, case in cases().items():
        ours = job.simulate_decentralized(small_data(), small_parts(), **case)
        if ours is None:
            continue
        if different := differences(ours, decentralized.simulate(small_data(), small_parts(), **case)):
            found[name] = different
        assert job.report is not None
        events += [f"{name}: {event}" for event in job.report.events if event.what != "non_finite"]
        count += 1
    if job.is_master:
        (folder / "same.json").write_text(json.dumps({"count": count, "different": found, "events": events}))


if __name__ == "__main__":
    with Job(deadline=60.0) as job:
        parts = {"same": same}
        parts[sys.argv[1]](job, Path(sys.argv[2]), *sys.argv[3:])
    job.leave(0)
