"""The report of a run over MPI: answers, times and bytes per rank, events, timeline; as text and JSON."""

from __future__ import annotations

import json
import os
import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, ClassVar

import numpy as np

from byzadmm._internal.arrays import Array
from byzadmm._internal.atomic_files import replacing
from byzadmm.delays import Replay
from byzadmm.engines._timeline import draw, span
from byzadmm.engines.protocol import Event

__all__ = ["RankReport", "RunReport"]

_TIMES = ("seconds", "seconds_asking", "seconds_waiting", "seconds_checking", "seconds_updating")
_ROUNDS_KEPT = 1000  # at most; beyond that every second one is removed
# Events after which a rank still takes part.
PASSING = ("slow", "back", "restarted")
_BROKEN = ("died", "raised")  # events after which its workers are missing, not eliminated


@dataclass
class RankReport:
    """One rank in one run.

    Attributes
    ----------
    rank : int
    workers : tuple of int
    asked, on_time, late : int
        Rounds it was asked in, answered within the deadline, and after it; late answers are discarded.
    mean, longest : float
        Seconds from question to answer, over the rounds answered on time.
    work : float
        Seconds it worked per round, by its own account.
    bytes_up, bytes_down : int
    state : str
        "ready", "slow", or why it is not asked any more.
    """

    rank: int
    workers: tuple[int, ...] = ()
    asked: int = 0
    on_time: int = 0
    late: int = 0
    longest: float = 0.0
    bytes_up: int = 0
    bytes_down: int = 0
    state: str = "ready"
    last: tuple[float, float] | None = None  # this round's: seconds to the answer, seconds of work
    _response: float = 0.0
    _work: float = 0.0

    #: What several runs add up.
    summed: ClassVar[tuple[str, ...]] = ("asked", "on_time", "late", "bytes_up", "bytes_down", "_response", "_work")

    def answered(self, response: float, work: float) -> None:
        """Count an answer on time; ``work`` is what its sender claims, at most ``response`` of it is believed."""
        work = min(work, response) if work > 0 else 0.0  # NaN counts as zero
        self.on_time += 1
        self.longest = max(self.longest, response)
        self._response += response
        self._work += work
        self.last = response, work

    @property
    def mean(self) -> float:
        return self._response / max(self.on_time, 1)

    @property
    def work(self) -> float:
        return self._work / max(self.on_time, 1)

    def record(self) -> dict[str, Any]:
        """As values that JSON has."""
        names = ("rank", "workers", "asked", "on_time", "late", "mean", "longest", "work", "bytes_up", "bytes_down")
        return {name: getattr(self, name) for name in (*names, "state")}


@dataclass
class RunReport:
    """One run: its ranks, its events, where the master's time went, and some rounds in detail.

    ``seconds_asking`` and ``seconds_waiting`` are the time of sending and receiving. ``seconds_checking``, for the
    validation of what arrived, and ``seconds_updating``, for the master's own part of the rounds, are processor time.
    The rest of ``seconds`` is evaluation, checkpoints and the start.
    """

    ranks: list[RankReport]
    events: list[Event]
    wire: str
    n_workers: int
    dim: int
    rounds: int = 0
    seconds: float = 0.0
    seconds_asking: float = 0.0
    seconds_waiting: float = 0.0
    seconds_checking: float = 0.0
    seconds_updating: float = 0.0
    begun: float = field(default_factory=time.perf_counter)
    #: (round, seconds since the start, [(seconds to the answer, seconds of work) or None for each rank])
    timeline: list[tuple[int, float, list[tuple[float, float] | None]]] = field(default_factory=list)
    #: Of every round, the seconds to the answer of each worker, infinite where none came in time; None: not kept.
    trace: list[Array] | None = None
    _every: int = 1
    _seen: int = 0

    @property
    def bytes(self) -> int:
        """Both ways, headers included."""
        return sum(rank.bytes_up + rank.bytes_down for rank in self.ranks)

    #: Headings of :meth:`rows`; ``>`` aligns to the right.
    columns: ClassVar[tuple[str, ...]] = (
        "rank", "workers", ">on time", ">late", ">mean ms", ">max ms", ">work ms", ">MB", "state",
    )  # fmt: skip

    def keep_round(self, k: int, begun: float) -> None:
        """Put a round on the timeline; a long run keeps every second, fourth, ... round."""
        if self._seen % self._every == 0:
            self.timeline.append((k, begun - self.begun, [rank.last for rank in self.ranks]))
            if len(self.timeline) > _ROUNDS_KEPT:
                del self.timeline[1::2]
                self._every *= 2
        self._seen += 1
        if self.trace is not None:
            taken = np.full(self.n_workers, np.inf)
            for rank in self.ranks:
                if rank.last is not None:
                    taken[list(rank.workers)] = max(rank.last[0], 1e-9)
            self.trace.append(taken)
        for rank in self.ranks:
            rank.last = None

    def finish(self, states: dict[int, str]) -> None:
        """Set the ranks' final states."""
        for rank in self.ranks:
            rank.state = states[rank.rank]

    @classmethod
    def together(cls, reports: Sequence[RunReport]) -> RunReport:
        """Several runs on the same ranks as one; events and times added, ranks as the last run left them."""
        last = reports[-1]
        events = [event for report in reports for event in report.events]
        whole = type(last)([], events, last.wire, last.n_workers, last.dim)
        for name in ("rounds", *_TIMES):
            setattr(whole, name, sum(getattr(report, name) for report in reports))
        for position, now in enumerate(last.ranks):
            parts = [report.ranks[position] for report in reports]
            rank = type(now)(now.rank, now.workers, longest=max(part.longest for part in parts), state=now.state)
            for name in now.summed:
                setattr(rank, name, sum(getattr(part, name) for part in parts))
            whole.ranks.append(rank)
        return whole

    def line(self) -> str:
        """The progress of a run: rounds per second, workers that take part, workers eliminated, bytes."""
        rate = self.rounds / max(time.perf_counter() - self.begun, 1e-9)
        lasting = [event for event in self.events if event.what not in PASSING]
        absent = {worker for event in lasting for worker in event.workers}
        eliminated = {worker for event in lasting if event.what not in _BROKEN for worker in event.workers}
        counts = f"{self.n_workers - len(absent)} of {self.n_workers} workers, {len(eliminated)} eliminated"
        return f"{rate:.0f} rounds/s, {counts}, {self.bytes / 1e6:.1f} MB"

    def rows(self) -> list[list[str]]:
        """The summary, a row per rank, for the columns of ``columns``."""
        return [
            [
                str(rank.rank),
                span(rank.workers),
                f"{rank.on_time}/{rank.asked}",
                str(rank.late or "-"),
                f"{1e3 * rank.mean:.2f}",
                f"{1e3 * rank.longest:.1f}",
                f"{1e3 * rank.work:.2f}",
                f"{(rank.bytes_up + rank.bytes_down) / 1e6:.1f}",
                rank.state.replace("_", " "),
            ]
            for rank in self.ranks
        ]

    def record(self) -> dict[str, Any]:
        """As values that JSON has."""
        return {name: getattr(self, name) for name in ("wire", "n_workers", "dim", "rounds", "bytes", *_TIMES)} | {
            "ranks": [rank.record() for rank in self.ranks],
            "events": [event.record() for event in self.events],
            "timeline": self.timeline,
        }

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write :meth:`record` as JSON."""
        with replacing(path) as file:
            file.write(json.dumps(self.record()).encode() + b"\n")

    def save_trace(self, path: str | os.PathLike[str]) -> None:
        """Write how long every answer took, a row per worker and a column per round, for ``delays.Replay.load``."""
        if not self.trace:
            raise ValueError("trace: expected a run with trace=True, and at least one round")
        Replay(np.array(self.trace).T).save(path)

    def draw(self, path: str | os.PathLike[str], title: str = "") -> None:
        """Draw the timeline (:func:`byzadmm.engines._timeline.draw`)."""
        draw(self, path, title)
