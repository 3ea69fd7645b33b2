"""A script for mpirun: runs that are compared, on the master, with the same runs in one process.

``python mpi_runs.py same|stopped|long|wide|sampled FOLDER`` and ``python mpi_runs.py resume FOLDER DIE_AFTER``; what
differs is written into FOLDER, so that an empty list says that all is well.
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
from byzadmm import ADMM, SGD, attacks, engines, redundancy, steps
from byzadmm.aggregators import Krum
from byzadmm.engines.mpi import Job
from support.arrays import same_bits
from support.runs import ALGORITHMS, ATTACKS, Q, data_for, plain_attack, quadratic, small_data, small_parts

CURVES = ("iterations", "accuracy", "loss", "consensus_gap", "distance")
STEP = steps.inv_sqrt(4, 1)


def differences(ours: Any, whole: Any) -> list[str]:
    """Names of what is not the same to the bit."""
    names = [name for name in ("x0", *CURVES) if not same_bits(getattr(ours, name), getattr(whole, name))]
    if (ours.x is None) != (whole.x is None) or (whole.x is not None and not same_bits(ours.x, whole.x)):
        names.append("x")
    if ours.eliminated != whole.eliminated:
        names.append("eliminated")
    return names


def cases() -> dict[str, dict[str, Any]]:
    """Every algorithm under every attack, in one type or the other; custom parts; other types on the wire."""
    shared: dict[str, Any] = {"n_byzantine": Q, "iterations": 5, "eval_every": 2, "batch_size": 5, "seed": 9}
    every: dict[str, Any] = {**ATTACKS, "label_flip": attacks.LabelFlip()}
    made: dict[str, dict[str, Any]] = {}
    types = itertools.cycle(("float32", "float64"))
    for name, algorithm in ALGORITHMS.items():
        for (attack, built), dtype in zip(every.items(), types, strict=False):
            made[f"{name} {attack} {dtype}"] = shared | {"algorithm": algorithm, "attack": built, "dtype": dtype}
    history = SGD(rule="bucketing+centered_clip", step=STEP, momentum=0.9, variance_reduction="saga")
    made["history"] = shared | {"algorithm": history, "attack": attacks.MinMax()}
    made["chain"] = shared | {"algorithm": SGD(rule="nnm+krum", f=1, step=STEP), "attack": attacks.SignFlip()}
    for loss in ("logistic", "least-squares"):
        about = {"algorithm": ALGORITHMS["admm"], "attack": attacks.SignFlip(), "loss": loss}
        made[f"admm {loss}"] = shared | about
    plain = plain_attack(attacks.ALIE(), 9)
    made["krum, a user's attack"] = shared | {"algorithm": SGD(rule=Krum(f=1), step=STEP), "attack": plain}
    for name in ("admm", "rsa", "median"):
        for wire, dtype in (("float32", "float64"), ("float64", "float32")):
            about = {"algorithm": ALGORITHMS[name], "attack": attacks.ALIE(), "wire": wire, "dtype": dtype}
            made[f"{name}, {dtype} run, {wire} wire"] = shared | about
    for attack in ("sign_flip", "alie", "label_flip", "non_finite"):
        coded = SGD(coding=redundancy.Cyclic(f=2), step=STEP, momentum=0.5)
        made[f"cyclic {attack}"] = shared | {"algorithm": coded, "attack": every[attack], "n_byzantine": 2}
    made["cyclic, float32 wire"] = made["cyclic alie"] | {"wire": "float32", "dtype": "float64"}
    coded = SGD(coding=redundancy.Repetition(r=7), step=STEP)
    made["repetition"] = shared | {"algorithm": coded, "attack": attacks.ALIE()}
    made["lsvrg"] = made["history"] | {"algorithm": SGD(rule="median", step=STEP, variance_reduction="lsvrg")}
    sampled = {"participation": 0.4, "iterations": 9}
    for name in ("admm", "rsa", "median", "ideal"):
        for attack in ("gaussian", "alie", "non_finite", "duplicate"):
            about = {"algorithm": ALGORITHMS[name], "attack": every[attack]}
            made[f"{name} {attack}, sampled"] = shared | sampled | about
    for name in ("history", "lsvrg"):
        made[f"{name}, sampled"] = made[name] | sampled
    made["mimic"] = shared | {"algorithm": ALGORITHMS["admm"], "attack": attacks.Mimic(warmup=3)}
    made["mimic, sampled"] = made["mimic"] | sampled
    walk = {"algorithm": SGD(rule="median", step=STEP, momentum=0.9), "attack": plain, "local_steps": 3}
    made["local steps"] = shared | walk
    made["local steps, sampled"] = shared | sampled | walk
    about = {"algorithm": ALGORITHMS["admm"], "attack": attacks.ALIE(), "wire": "float32", "dtype": "float64"}
    made["sampled, float32 wire"] = shared | sampled | about
    return made


def stopped(job: Job, folder: Path) -> None:
    """A run that is stopped by the master after four iterations, and one more, of the same job."""
    settings: dict[str, Any] = {"algorithm": ALGORITHMS["admm"], "attack": attacks.ALIE(), "n_byzantine": Q}
    settings |= {"iterations": 10, "eval_every": 2}
    seen: list[int] = []

    def stop(k: int, metrics: dict[str, float]) -> bool:
        seen.append(k)
        return k == 4

    early = job.simulate(small_data(), small_parts(), on_evaluation=stop, **settings)
    after = job.simulate(small_data(), small_parts(), **settings)
    record: dict[str, Any] = {"seen": seen}
    if early is not None and after is not None:
        record["stopped"] = early.config["stopped"]
        record["different"] = differences(after, byzadmm.simulate(small_data(), small_parts(), **settings))
        shorter = settings | {"iterations": 4}
        record["different"] += differences(early, byzadmm.simulate(small_data(), small_parts(), **shorter))
    (folder / f"stopped{job.rank}.json").write_text(json.dumps(record))


def same(job: Job, folder: Path) -> None:
    found, events, count = {}, [], 0
    for name, case in cases().items():
        data = data_for(case.get("loss", "softmax"))
        ours = job.simulate(data, small_parts(), **case)
        if ours is None:
            continue
        whole = (engines if "wire" in case else byzadmm).simulate(data, small_parts(), **case)
        if different := differences(ours, whole):
            found[name] = different
        assert job.report is not None
        events += [str(event) for event in job.report.events if event.what not in ("non_finite", "out_of_range")]
        count += 1
    if job.is_master:
        (folder / "same.json").write_text(json.dumps({"count": count, "different": found, "events": events}))


def compare(job: Job, folder: Path, name: str, settings: dict[str, Any]) -> None:
    ours = job.simulate(None, None, **settings)
    if ours is not None and job.report is not None:
        whole = byzadmm.simulate(None, None, **settings)
        record = {"different": differences(ours, whole), "report": job.report.record()}
        (folder / f"{name}.json").write_text(json.dumps(record))


def long(job: Job, folder: Path) -> None:
    """300 rounds at the size of softmax regression on MNIST."""
    admm = ADMM(lam=0.3, beta=0.8, master_step=steps.inv_sqrt(20, 1), worker_step=STEP)
    settings = {"loss": quadratic(20, 7850), "algorithm": admm, "attack": attacks.SignFlip(), "n_byzantine": 8}
    compare(job, folder, "long", settings | {"iterations": 300, "eval_every": 150})


def wide(job: Job, folder: Path) -> None:
    """A million numbers per message."""
    settings = {"loss": quadratic(3, 1_000_000), "algorithm": SGD(rule="median", step=STEP), "iterations": 4}
    compare(job, folder, "wide", settings | {"eval_every": 2})


def sampled(job: Job, folder: Path) -> None:
    """Two of six workers per round; the attack of the last one sees its own message alone, or all of them."""
    settings: dict[str, Any] = {"loss": quadratic(6, 100), "algorithm": SGD(rule="median", step=STEP), "iterations": 30}
    settings |= {"participation": 1 / 3, "n_byzantine": 1}
    compare(job, folder, "own", settings | {"attack": attacks.SignFlip()})
    compare(job, folder, "all", settings | {"attack": attacks.ALIE()})


def resume(job: Job, folder: Path, die_after: str, share: str = "1") -> None:
    """With DIE_AFTER > 0 the master is killed after so many rounds; the same again goes on from the checkpoint."""
    settings: dict[str, Any] = {"algorithm": ALGORITHMS["admm"], "attack": attacks.ALIE(), "n_byzantine": Q}
    settings |= {"iterations": 12, "eval_every": 3, "batch_size": 5, "participation": float(share)}

    def die(done: int, report: Any) -> None:
        if done == int(die_after):
            os.kill(os.getpid(), signal.SIGKILL)

    ours = job.simulate(small_data(), small_parts(), checkpoint=folder / "run.npz", watch=die, **settings)
    if ours is not None and job.report is not None:
        whole = byzadmm.simulate(small_data(), small_parts(), **settings)
        record = {"different": differences(ours, whole), "events": [str(event) for event in job.report.events]}
        record["rounds"], record["finite"] = job.report.rounds, bool(np.all(np.isfinite(ours.x0)))
        (folder / "resume.json").write_text(json.dumps(record))


if __name__ == "__main__":
    with Job(deadline=120.0) as job:
        parts = {"same": same, "stopped": stopped, "long": long, "wide": wide, "sampled": sampled, "resume": resume}
        parts[sys.argv[1]](job, Path(sys.argv[2]), *sys.argv[3:])
    job.leave(0)
