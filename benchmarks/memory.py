"""What a call needs in memory beyond its arguments, at its peak, in units of an array: rows of the comparison.

Each row runs in a process of its own, so that nothing left over from another one counts. Linux only: the kernel keeps
the peak, and lets it be reset.
"""

from __future__ import annotations

import multiprocessing
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from rows_kernels import normal
from rows_training import M, Q, admm, mnist

from byzadmm import aggregate, attacks, partition, simulate

__all__ = ["MemoryRow", "available", "measure", "rows"]

WORKERS = 2000


@dataclass(frozen=True)
class MemoryRow:
    """``prepare()`` returns the call and the bytes of one unit; the peak may be ``at_most`` units."""

    what: str
    unit: str
    prepare: Callable[[], tuple[Callable[[], Any], int]]
    at_most: float

    @property
    def target(self) -> str:
        return f"<= {self.at_most:g}"


def available() -> bool:
    return Path("/proc/self/clear_refs").exists()


def measure(row: MemoryRow) -> float:
    """Units at the peak, in a fresh process."""
    with multiprocessing.get_context("spawn").Pool(1) as pool:
        return float(pool.apply(_peak, (row.prepare,)))


def _peak(prepare: Callable[[], tuple[Callable[[], Any], int]]) -> float:
    call, unit = prepare()
    Path("/proc/self/clear_refs").write_text("5")  # the peak is what is resident now
    before = _resident("VmRSS")
    kept = call()
    peak = (_resident("VmHWM") - before) / unit
    del kept
    return peak


def _resident(field: str) -> int:
    status = Path("/proc/self/status").read_text()
    return 1024 * next(int(line.split()[1]) for line in status.splitlines() if line.startswith(field))


def _training() -> tuple[Callable[[], Any], int]:
    data = mnist()
    parts = partition.iid(data.train_y, WORKERS, seed=0)
    unit = WORKERS * data.n_classes * (data.train_x.shape[1] + 1) * np.dtype(np.float32).itemsize
    settings: dict[str, Any] = {"algorithm": admm(), "attack": attacks.SignFlip(), "n_byzantine": Q * WORKERS // M}
    return lambda: simulate(data, parts, iterations=2, eval_every=1, **settings), unit


def _mixing() -> tuple[Callable[[], Any], int]:
    X = normal(64, 65_536)
    return lambda: aggregate.nearest_neighbor_mixing(X, f=16), X.nbytes


def rows() -> list[MemoryRow]:
    return [
        MemoryRow("ADMM, 2000 workers, MNIST", "arrays of (m, d)", _training, 8),
        MemoryRow("nearest_neighbor_mixing (64, 65536)", "inputs", _mixing, 1.2),
    ]
