"""The repetition code: groups of workers that all compute the same, and a vote."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from byzadmm import _core
from byzadmm._internal.arrays import Array
from byzadmm._internal.validation import check_int
from byzadmm.redundancy.base import Code, DecodingError, register

__all__ = ["Repetition"]


@register
@dataclass(frozen=True)
class Repetition(Code):
    """Groups of ``r`` workers that all send the sum of the group's r gradients; the majority of each group counts.

    Workers and batches ``r g, ..., r g + r - 1`` are group g. Regular workers of a group send the same bits, so the
    master compares rows bit by bit (Boyer and Moore's vote, in one pass over the rows), and takes the mean of what at
    least ``(r+1)/2`` rows of each group agree on: forged rows do not change a bit of it.

    Tolerates ``(r-1)/2`` Byzantine workers in every group: as few as ``(r+1)/2`` in all, if they are in the same one.

    Parameters
    ----------
    r : int, odd
        Workers per group; it must divide the number of workers. 1 is no redundancy.

    Examples
    --------
    >>> from byzadmm import redundancy
    >>> code = redundancy.Repetition(r=3)
    >>> [code.batches(worker, 6) for worker in (0, 5)]
    [[0, 1, 2], [3, 4, 5]]

    References
    ----------
    Chen, Wang, Charles, Papailiopoulos, "DRACO: Byzantine-resilient distributed training via redundant gradients",
    ICML 2018.
    """

    r: int = 3

    def __post_init__(self) -> None:
        if check_int(self.r, "r", low=1) % 2 == 0:
            raise ValueError(f"r: expected an odd number, so that a group has a majority, got {self.r}")

    def check(self, m: int) -> None:
        if m % self.r:
            raise ValueError(f"r: expected a divisor of the number of workers, m={m}, got {self.r}")

    def tolerated(self, m: int) -> int:
        return (self.r - 1) // 2

    def batches(self, worker: int, m: int) -> list[int]:
        first = worker - worker % self.r
        return list(range(first, first + self.r))

    def message(self, worker: int, m: int, gradients: list[Array], out: Array, threads: int) -> None:
        _core.weighted_sum(gradients, out, np.ones(self.r), 1.0, threads)

    def decode(
        self,
        rows: Array,
        workers: NDArray[np.int64],
        m: int,
        *,
        rng: np.random.Generator,
        precision: np.dtype[Any],
        threads: int,
    ) -> Array:
        first = np.searchsorted(workers, np.arange(0, m + 1, self.r))
        votes = (self.r + 1) // 2
        few = np.flatnonzero(np.diff(first) < votes)
        chosen = _core.majority_rows(rows, first, votes, threads) if not len(few) else np.empty(0, np.int64)
        for group in (*few.tolist(), *np.flatnonzero(chosen < 0).tolist()):
            low, high = self.r * group, self.r * group + self.r - 1
            found = f"{first[group + 1] - first[group]} messages, none of them {votes} times"
            raise DecodingError(f"Repetition: group {group}, workers {low} to {high}: no majority; {found}")
        out: Array = np.empty(rows.shape[1], rows.dtype)
        _core.weighted_sum([rows[row] for row in chosen], out, np.ones(len(chosen)), float(m), threads)
        return out
