"""What a row of the comparison is, and how two contenders are timed against each other."""

from __future__ import annotations

import gc
import time
from collections.abc import Callable
from dataclasses import dataclass

__all__ = ["Measured", "Row", "best_of", "measure"]

Call = Callable[[], object]


@dataclass(frozen=True)
class Row:
    """One line of the table: ``ours`` against ``theirs``.

    ``at_least``: how many times faster ours must be; ``at_most``: how many times longer it may take. One of them or
    none, which makes the row a plain report. ``work`` is what ours does in units of what theirs does (1: the same);
    ``threads`` is how many ours uses, 0 if it runs in other processes.
    """

    area: str
    what: str
    against: str
    build: Callable[[], tuple[Call, Call]]
    at_least: float | None = None
    at_most: float | None = None
    work: float = 1.0
    threads: int = 1

    @property
    def name(self) -> str:
        return f"{self.area}: {self.what} / {self.against}"

    @property
    def target(self) -> str:
        if self.at_least is not None:
            return f">= {self.at_least:g}"
        return "" if self.at_most is None else f"<= {self.at_most:g}"


@dataclass(frozen=True)
class Measured:
    """Best seconds per call of both, and their ratio: time for rows with ``at_most``, speed for all others."""

    row: Row
    ours: float
    theirs: float

    @property
    def ratio(self) -> float:
        return self.ours / self.theirs if self.row.at_most is not None else self.row.work * self.theirs / self.ours

    @property
    def verdict(self) -> str:
        if self.row.at_least is not None:
            return "reached" if self.ratio >= self.row.at_least else "MISSED"
        if self.row.at_most is not None:
            return "reached" if self.ratio <= self.row.at_most else "MISSED"
        return "slower" if self.ratio < 1 else ""


def measure(row: Row, *, seconds: float, rounds: int, clock: Callable[[], float] = time.perf_counter) -> Measured:
    """Time both in turn, so that noise hits both, for ``seconds`` and at least ``rounds`` turns; the best counts."""
    calls = row.build()
    # A turn lasts long enough that the clock and the first, cold call do not matter.
    counts = [max(1, min(1000, int(0.003 / _timed(call, 2, clock)))) for call in calls]
    best = [float("inf"), float("inf")]
    collecting = gc.isenabled()
    gc.disable()
    try:
        start, turn = time.perf_counter(), 0
        while turn < rounds or time.perf_counter() - start < seconds:
            for i, call in enumerate(calls):
                best[i] = min(best[i], _timed(call, counts[i], clock))
            turn += 1
    finally:
        if collecting:
            gc.enable()
    return Measured(row, best[0], best[1])


def best_of(call: Call, seconds: float, clock: Callable[[], float]) -> float:
    """Best seconds per call of turns that take ``seconds`` together."""
    count = max(1, min(1000, int(0.003 / _timed(call, 2, clock))))
    start, best = clock(), float("inf")
    while clock() - start < seconds:
        best = min(best, _timed(call, count, clock))
    return best


def _timed(call: Call, count: int, clock: Callable[[], float]) -> float:
    start = clock()
    for _ in range(count):
        call()
    return (clock() - start) / count
