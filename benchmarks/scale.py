"""What a round over MPI costs on this machine, beside bare ping-pongs of the same bytes; many workers in one process.

    python benchmarks/scale.py                  rounds over MPI, and the model fitted to them
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
    from byzadmm.engines.mpi._launch import find_mpirun

    environment = os.environ | {"OMPI_ALLOW_RUN_AS_ROOT": "1", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1"}
    with tempfile.TemporaryDirectory() as folder:
        path = f"{folder}/best.json"
        words = [find_mpirun() or "mpirun", "--with-ft", "ulfm", "--oversubscribe", "--bind-to", "none"]
        words += ["--mca", "btl", WAYS[size.way]]
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
    measured: list[tuple[Size, dict[str, float]]] = []
    for size in sizes:
        measured.append((size, launch(size)))
        print(" ".join(f"{cell:>8}" for cell in row(*measured[-1])), flush=True)
    wanted = (TARGET_WORKERS, TARGET_WORKERS, TARGET_DIM)
    shares = [got["own"] / got["ping-pong"] for size, got in measured if size[:3] == wanted]
    if shares:
        print(f"\nown/pp for {TARGET_WORKERS} ranks and d = {TARGET_DIM}, at most {TARGET:.2f} wanted: ", end="")
        print(", ".join(f"{share:.2f} ({'reached' if share <= TARGET else 'MISSED'})" for share in shares))
    fit(measured)
    return int(any(share > TARGET for share in shares))


def fit(measured: list[tuple[Size, dict[str, float]]]) -> None:
    """Least squares, relative to each row; then what the master would need for more workers and numbers."""
    rows = [(size, got) for size, got in measured if size.way == "memory"]

    def coefficients(name: str, columns: list[list[float]], values: list[float]) -> Any:
        weights = 1 / np.array(values)
        found = np.linalg.lstsq(np.array(columns) * weights[:, None], np.ones(len(values)), rcond=None)[0]
        print(f"{name}: {1e6 * found[0]:.1f} us per rank + {1e9 * found[1]:.3f} ns per number")
        return found

    print()
    numbers = [[float(size.ranks), float(size.workers * size.d)] for size, _ in rows]
    _, per_number = coefficients("own ", numbers, [got["own"] for _, got in rows])
    coefficients("rest", numbers, [max(got["round"] - got["own"] - got["compute"], 1e-6) for _, got in rows])
    print("\nper round at the master, float32; wire: all bytes up through one link of 10 Gbit/s\n")
    print(" ".join(f"{name:>9}" for name in ("workers", "d", "memory", "up", "wire", "own")))
    for m in (1e2, 1e4, 1e6):
        for d in (1e4, 1e7, 1e9):
            cells = [f"{m:.0e}", f"{d:.0e}", _size(MASTER_ROWS * 4 * m * d), _size(4 * m * d)]
            cells += [_time(4 * m * d / 1.25e9), _time(per_number * m * d)]
            print(" ".join(f"{cell:>9}" for cell in cells))


#: Rows of d numbers that the master holds per worker in ADMM: two duals, the answers, their buffers; at evaluations the
#: workers' models, as they arrive and as they are kept.
MASTER_ROWS = 6


def _size(count: float) -> str:
    units = ("B", "kB", "MB", "GB", "TB", "PB")
    step = min(int(np.log10(max(count, 1.0))) // 3, len(units) - 1)
    return f"{count / 1000**step:.3g} {units[step]}"


def _time(seconds: float) -> str:
    for unit, length in (("d", 86400.0), ("h", 3600.0), ("min", 60.0), ("s", 1.0), ("ms", 1e-3)):
        if seconds >= length:
            return f"{seconds / length:.3g} {unit}"
    return f"{1e6 * seconds:.3g} us"


def model_memory(m: int, q: int, d: int) -> float:
    """Bytes of the state in one process, float32: x, eta, eta_prev of every worker, three more of a Byzantine one."""
    return 4.0 * d * 3 * (m + q)


def one_process(m: int, samples: int) -> dict[str, float]:
    """m workers on synthetic data in this process: seconds per round and peak memory."""
    from byzadmm import ADMM, attacks, datasets, partition, simulate, steps

    data = datasets.load("synthetic", n_train=samples, n_features=100)
    admm = ADMM(lam=0.01, beta=0.5, master_step=steps.inv_sqrt(0.5 * m, 0.3), worker_step=steps.inv_sqrt(0.5, 0.3))
    settings: dict[str, Any] = {"algorithm": admm, "attack": attacks.SignFlip(), "n_byzantine": m // 5, "threads": 1}
    parts = partition.iid(data.train_y, m, seed=0)
    loaded = int(Path("/proc/self/statm").read_text().split()[1]) * resource.getpagesize()
    run = simulate(data, parts, iterations=50, eval_every=50, **settings)
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024
    return {"seconds": run.seconds / 50, "loaded": loaded, "peak": peak, "d": len(run.x0)}


def many_workers(m: int) -> int:
    """Time and memory of m workers, predicted from fewer; each in a process of its own, on the same data."""
    few, got = 200, {}
    for count in (few, m):
        words = [sys.executable, __file__, "--one-process", str(count), str(4 * m)]
        got[count] = json.loads(subprocess.run(words, check=True, capture_output=True, text=True).stdout)
    d = int(got[m]["d"])
    predicted = got[few]["seconds"] / few * m
    memory = got[m]["loaded"] + model_memory(m, m // 5, d)
    print(f"{m} workers, {m // 5} of them Byzantine: d = {d}, batch 32, one process, one thread")
    print(f"time per round {1e3 * got[m]['seconds']:.1f} ms; predicted from {few} workers {1e3 * predicted:.1f} ms")
    print(f"peak memory {got[m]['peak'] / 1e6:.0f} MB; predicted {memory / 1e6:.0f} MB", end="")
    print(f" ({got[m]['loaded'] / 1e6:.0f} MB with the data loaded, and the state)")
    return 0


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--quick", action="store_true", help="the first two sizes only")
    parser.add_argument("--simulate", action="store_true", help="many virtual workers in one process")
    parser.add_argument("--workers", type=int, default=10_000, metavar="M", help="for --simulate (10000)")
    parser.add_argument("--inside", nargs=2, help=argparse.SUPPRESS)
    parser.add_argument("--one-process", nargs=2, type=int, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.inside:
        inside(Size(*json.loads(options.inside[0])), options.inside[1])
        return 0
    if options.one_process:
        print(json.dumps(one_process(*options.one_process)))
        return 0
    return many_workers(options.workers) if options.simulate else table(SIZES[:2] if options.quick else SIZES)


if __name__ == "__main__":
    sys.exit(main())
