"""What a round over MPI costs on this machine, beside bare ping-pongs of the same bytes; many workers in one process.

    python benchmarks/scale.py                  rounds over MPI: the first table of docs/scale.md
    python benchmarks/scale.py --simulate       10,000 virtual workers in one process, against the model

It starts ``mpirun`` itself. Exit code 1 if the master's own work is above its target (see TARGET).
"""

from __future__ import annotations

import argparse
import json
import os
import resource
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np


class Size(NamedTuple):
    """Worker ranks, virtual workers, numbers per message, rounds, and by which way the bytes go."""

    ranks: int
    workers: int
    d: int
    rounds: int
    way: str = "memory"


SIZES = [
    Size(1, 20, 7850, 500),
    Size(4, 20, 7850, 500),
    Size(20, 20, 7850, 200),
    Size(20, 20, 7850, 200, "tcp"),
    Size(4, 20, 100, 500),
    Size(4, 20, 100_000, 50),
    Size(4, 4, 1_000_000, 20),
]
#: The master's own work as a share of the ping-pong, at this many workers (a rank each) and d.
TARGET, TARGET_WORKERS, TARGET_DIM = 0.20, 20, 7850
TURNS = 4
# Shared memory, or TCP over loopback in the place of a network.
WAYS = {"memory": "self,sm", "tcp": "self,tcp"}
COLUMNS = "ranks workers d way rounds/s round compute own rest ping-pong own/pp at-once own/ao MB".split()  # noqa: SIM905


def problem(m: int, d: int) -> Any:
    from byzadmm import losses

    rng = np.random.default_rng(0)
    return losses.Quadratic(rng.uniform(0.5, 1.5, (m, d)).astype(np.float32), rng.standard_normal((m, d), np.float32))


def ping_pong(job: Any, size: Size, at_once: bool) -> float:
    """Seconds per round: d float32 down to every rank, d up for every worker; ranks in turn, or all at once."""
    from byzadmm.engines.mpi import share

    comm, kind = job._comm, job._mpi.FLOAT
    down = np.zeros(size.d, np.float32)
    up = [np.zeros((len(share(size.workers, rank, job.size)), size.d), np.float32) for rank in range(job.size)]
    others = range(1, job.size)
    comm.Barrier()
    begun = time.perf_counter()
    for _ in range(size.rounds):
        if not job.is_master:
            comm.Recv([down, kind], 0)
            comm.Send([up[job.rank], kind], 0)
        elif at_once:
            sends = [comm.Isend([down, kind], rank) for rank in others]
            for rank in others:
                comm.Recv([up[rank], kind], rank)
            job._mpi.Request.Waitall(sends)
        else:
            for rank in others:
                comm.Send([down, kind], rank)
                comm.Recv([up[rank], kind], rank)
    return (time.perf_counter() - begun) / size.rounds


def inside(size: Size, path: str) -> None:
    """On every rank: ping-pongs and training in turn. The master writes the best time of each part."""
    from byzadmm import ADMM, steps
    from byzadmm.engines.mpi import Job

    turns: list[dict[str, float]] = []
    with Job(deadline=600.0) as job:
        admm = ADMM(master_step=steps.constant(0.01))
        loss = problem(size.workers, size.d)
        for _ in range(TURNS):
            now = {"ping-pong": ping_pong(job, size, False), "at-once": ping_pong(job, size, True)}
            job.simulate(None, None, loss=loss, algorithm=admm, iterations=size.rounds, eval_every=size.rounds)
            if job.report is None:
                continue
            report = job.report
            own = report.seconds_checking + report.seconds_updating
            spent = {"own": own, "round": own + report.seconds_asking + report.seconds_waiting}
            now |= {name: seconds / size.rounds for name, seconds in spent.items()}
            now |= {"compute": max(rank.work for rank in report.ranks), "bytes": report.bytes / size.rounds}
            turns.append(now)
        if job.is_master:
            Path(path).write_text(json.dumps({name: min(turn[name] for turn in turns) for name in turns[0]}))
    job.leave(0)


def launch(size: Size) -> dict[str, float]:
    environment = os.environ | {"OMPI_ALLOW_RUN_AS_ROOT": "1", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1"}
    with tempfile.TemporaryDirectory() as folder:
        path = f"{folder}/best.json"
        words = ["mpirun", "--with-ft", "ulfm", "--oversubscribe", "--bind-to", "none", "--mca", "btl", WAYS[size.way]]
        words += ["-np", str(size.ranks + 1), sys.executable, __file__, "--inside", json.dumps(size), path]
        subprocess.run(words, env=environment, check=True, timeout=1800, stdout=subprocess.DEVNULL)
        measured: dict[str, float] = json.loads(Path(path).read_text())
        return measured


def row(size: Size, got: dict[str, float]) -> list[str]:
    rest = max(got["round"] - got["own"] - got["compute"], 0.0)
    ms = {name: f"{1e3 * got[name]:.3f}" for name in ("round", "compute", "own", "ping-pong", "at-once")}
    cells: dict[str, Any] = {"ranks": size.ranks, "workers": size.workers, "d": size.d, "way": size.way}
    cells |= ms | {
        "rounds/s": f"{1 / got['round']:.0f}",
        "rest": f"{1e3 * rest:.3f}",
        "MB": f"{got['bytes'] / 1e6:.2f}",
    }
    cells |= {"own/pp": f"{got['own'] / got['ping-pong']:.2f}", "own/ao": f"{got['own'] / got['at-once']:.2f}"}
    return [str(cells[name]) for name in COLUMNS]


def table(sizes: list[Size]) -> int:
    import byzadmm

    print(
        f"byzadmm {byzadmm.__version__}, {os.cpu_count()} cores, ADMM on quadratics, float32; best of {TURNS} turns; ms"
    )
    print("own: the master's checks, sum and update, processor time; compute: the slowest rank; rest: wire and wait")
    print("ping-pong: the same bytes and nothing else, one rank after another; at-once: all ranks at the same time\n")
    print(" ".join(f"{name:>8}" for name in COLUMNS))
    missed = False
    for size in sizes:
        got = launch(size)
        print(" ".join(f"{cell:>8}" for cell in row(size, got)), flush=True)
        wanted = (size.ranks, size.workers, size.d) == (TARGET_WORKERS, TARGET_WORKERS, TARGET_DIM)
        missed |= wanted and got["own"] > TARGET * got["ping-pong"]
    said = "MISSED" if missed else "reached"
    print(f"\nown/pp at most {TARGET:.2f} for {TARGET_WORKERS} ranks and d = {TARGET_DIM}: {said}")
    return int(missed)


def model_memory(m: int, q: int, d: int) -> float:
    """Bytes of the state in one process, float32: x, eta and eta_prev of every worker, three rows more per liar."""
    return 4.0 * d * 3 * (m + q)


def many_workers(m: int, rounds: int) -> int:
    """One process, m workers on synthetic data; memory and time against the model of docs/scale.md."""
    from byzadmm import ADMM, attacks, datasets, partition, simulate, steps

    data = datasets.load("synthetic", n_train=4 * m, n_features=100)
    parts = partition.iid(data.train_y, m, seed=0)
    d = data.n_classes * (data.train_x.shape[1] + 1)
    admm = ADMM(lam=0.01, beta=0.5, master_step=steps.inv_sqrt(0.5 * m, 0.3), worker_step=steps.inv_sqrt(0.5, 0.3))
    settings: dict[str, Any] = {"algorithm": admm, "attack": attacks.SignFlip(), "threads": 1}
    simulate(data, parts[:20], iterations=2, n_byzantine=4, **settings)  # everything is loaded once
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024
    few, q = 200, m // 5
    small = simulate(data, parts[:few], iterations=rounds, eval_every=rounds, n_byzantine=few // 5, **settings)
    run = simulate(data, parts, iterations=rounds, eval_every=rounds, n_byzantine=q, **settings)
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024 - before
    expected = small.seconds / few * m
    print(f"{m} workers, {q} of them liars, d = {d}, batch 32, {rounds} rounds, one thread")
    print(f"time per round {1e3 * run.seconds / rounds:.1f} ms; from {few} workers: {1e3 * expected / rounds:.1f} ms")
    model = model_memory(m, q, d)
    print(f"memory {peak / 1e6:.0f} MB above the {before / 1e6:.0f} MB before; model: {model / 1e6:.0f} MB")
    return 0


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--quick", action="store_true", help="the first two sizes only")
    parser.add_argument("--simulate", action="store_true", help="many virtual workers in one process")
    parser.add_argument("--workers", type=int, default=10_000, metavar="M", help="for --simulate (10000)")
    parser.add_argument("--inside", nargs=2, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.inside:
        inside(Size(*json.loads(options.inside[0])), options.inside[1])
        return 0
    return many_workers(options.workers, 50) if options.simulate else table(SIZES[:2] if options.quick else SIZES)


if __name__ == "__main__":
    sys.exit(main())
