"""Points with a majority near them, and the sums over rounds that filters with a memory compare."""

from __future__ import annotations

import math
import warnings
from collections.abc import Callable

import numpy as np

from byzadmm import _core
from byzadmm._internal.arrays import Array

__all__ = ["advance", "expel", "find", "radius"]

#: Distances from one of the points to all of them.
Distances = Callable[[int], Array]


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
    """The good point whose ball with more than half of all points is the smallest, and the radius of that ball."""
    best = -1, math.inf
    for i in np.flatnonzero(good).tolist():
        near = np.sort(distances(i)[good])
        reach = float(near[len(good) // 2]) if len(near) > len(good) // 2 else math.inf
        if reach < best[1]:
            best = i, reach
    return best


def advance(sums: Array, rows: Array, workers: Array, good: Array, factor: float, center: int) -> Array:
    """``sums[workers] += factor rows``; the distances of all sums to that of ``center``.

    A good worker whose message is missing counts with that of ``center``, so that its sum stays comparable.
    """
    missing = np.setdiff1d(np.flatnonzero(good), workers)
    place = np.flatnonzero(workers == center)
    if len(missing) and len(place):
        rows = np.concatenate([rows, np.repeat(rows[place], len(missing), axis=0)])
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
