"""What filters with a memory share: sums of messages over rounds, and points with a majority near them."""

from __future__ import annotations

import math
import warnings
from collections.abc import Callable
from typing import Any, ClassVar

import numpy as np

from byzadmm import _core
from byzadmm._internal.arrays import Array
from byzadmm._internal.lengths import lengths
from byzadmm._internal.validation import check_real
from byzadmm.filters.base import Filter

__all__ = ["Distances", "Memory", "advance", "between", "check_limit", "expel", "find", "radius"]

#: Distances from one of the points to all of them.
Distances = Callable[[int], Array]


class Memory(Filter):
    """Base: sums over rounds, in float64, and the list of those that are eliminated."""

    eliminates: ClassVar[bool] = True

    def begin(self, m: int, d: int, dtype: np.dtype[Any]) -> dict[str, Array]:
        return {"eliminated": np.full(m, -1, np.int64), "rounds": np.zeros(1, np.int64)}

    def check(self, n: int, workers: int | None = None) -> None:
        if workers is not None and n < workers:
            name = type(self).__name__
            raise ValueError(f"filter: {name} needs the messages of all {workers} workers in every round, got {n}")

    @staticmethod
    def counted(messages: Array, workers: Array, good: Array) -> tuple[Array, Array, Array]:
        """The messages of good workers, their senders, and the weights 1 of good and 0 of other senders."""
        counts = good[workers]
        if counts.all():
            return messages, workers, np.ones(len(messages))
        return messages[counts], workers[counts], np.where(counts, 1.0, 0.0)


def find(distances: Distances, good: Array, reach: float, start: int, known: Array | None = None) -> tuple[int, Array]:
    """A good point with more than half of all points, good ones, within ``reach``, and the distances from it.

    ``start`` is tried first, with the distances ``known``, then the others in order; -1 if there is none.
    """
    for i in (start, *np.flatnonzero(good).tolist()):
        if not good[i]:
            continue
        found = distances(i) if known is None or i != start else known
        if 2 * np.count_nonzero(found[good] <= reach) > len(good):
            return i, found
    return -1, np.zeros(len(good))


def radius(distances: Distances, good: Array) -> tuple[int, float]:
    """The good point whose ball with more than half of all points is the smallest, and the radius of that ball.

    Infinity if no more than half of them are good.
    """
    indices = np.flatnonzero(good).tolist()
    best = indices[0], math.inf
    for i in indices:
        near = np.sort(distances(i)[good])
        reach = float(near[len(good) // 2]) if len(near) > len(good) // 2 else math.inf
        if reach < best[1]:
            best = i, reach
    return best


def advance(sums: Array, rows: Array, workers: Array, good: Array, factor: float, center: int) -> Array:
    """``sums[workers] += factor rows``; the distances of all sums to that of ``center``.

    A good worker whose message is missing counts with that in the middle of a majority of the others, so that its sum
    stays comparable.
    """
    missing = np.setdiff1d(np.flatnonzero(good), workers)
    if len(missing):
        middle, _ = radius(between(rows), np.ones(len(rows), np.bool_))
        rows = np.concatenate([rows, np.repeat(rows[middle][None], len(missing), axis=0)])
        workers = np.concatenate([workers, missing])
    senders = np.ascontiguousarray(workers, np.int64)
    return _core.add_to_sums(np.ascontiguousarray(rows), senders, factor, sums, center, 1)


def expel(eliminated: Array, out: Array, k: int, name: str) -> None:
    """Eliminate the workers ``out`` in round ``k``; nobody, with a warning, if fewer than half of all would remain."""
    good = eliminated < 0
    if out.any() and 2 * np.count_nonzero(good & ~out) < len(good):
        text = f"{name}: fewer than half of the workers would remain in round {k}; nobody is eliminated"
        warnings.warn(f"{text} (thresholds too small, or workers with different data)", RuntimeWarning, stacklevel=2)
    else:
        eliminated[good & out] = k


def check_limit(value: Any, name: str) -> float:
    """A number > 0 that may be infinity."""
    return math.inf if value == math.inf else check_real(value, name, low=0.0, strict=True)


def between(rows: Array, senders: Array | None = None, m: int = 0) -> Distances:
    """Distances between rows, one per worker; or between the messages of some of m, infinite for the others."""
    if senders is None:
        return lambda i: lengths(rows, rows[i])

    def distances(i: int) -> Array:
        found = np.full(m, np.inf)
        place = np.flatnonzero(senders == i)
        if len(place):
            found[senders] = lengths(rows, rows[place[0]])
        return found

    return distances
