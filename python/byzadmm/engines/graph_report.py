"""The report of a run on a graph over MPI: what the ranks heard from each other."""

from __future__ import annotations

import time
from dataclasses import dataclass
from typing import Any, ClassVar

from byzadmm.engines.protocol import Event
from byzadmm.engines.report import PASSING, RankReport, RunReport

__all__ = ["GraphReport", "NodeEvent", "NodeRankReport"]


class NodeEvent(Event):
    """An event of a run on a graph."""

    noun: ClassVar[str] = "node"


@dataclass
class NodeRankReport(RankReport):
    """One rank in one run on a graph, by what the other ranks and its own have told.

    Attributes
    ----------
    asked, on_time, late : int
        Messages that the ranks of its neighbors waited for, heard within the deadline, and after it.
    not_finite : int
        Models in them that were not finite.
    mean, longest : float
        Seconds that a message was waited for, over those on time.
    work : float
        Seconds it worked per round, by its own account.
    rounds : int
        Rounds that it took part in.
    bytes_up, bytes_down : int
        Sent to the other ranks, and heard from them.
    """

    not_finite: int = 0
    rounds: int = 0

    summed: ClassVar[tuple[str, ...]] = (*RankReport.summed, "not_finite", "rounds")

    @property
    def waited(self) -> float:
        """Seconds that messages on time were waited for."""
        return self._response

    @waited.setter
    def waited(self, seconds: float) -> None:
        self._response = seconds

    @property
    def worked(self) -> float:
        """Seconds that it worked, by its own account."""
        return self._work

    @worked.setter
    def worked(self, seconds: float) -> None:
        self._work = seconds

    @property
    def work(self) -> float:
        return self._work / max(self.rounds, 1)

    def record(self) -> dict[str, Any]:
        return super().record() | {"not_finite": self.not_finite, "rounds": self.rounds}


@dataclass
class GraphReport(RunReport):
    """One run on a graph: what the ranks heard from each other, and the events; rank 0 takes no part in the rounds."""

    columns: ClassVar[tuple[str, ...]] = (
        "rank", "nodes", ">on time", ">late", ">NaN", ">mean ms", ">max ms", ">work ms", ">MB", "state",
    )  # fmt: skip

    @property
    def bytes(self) -> int:
        """Between ranks, headers included; each message once."""
        return sum(rank.bytes_up for rank in self.ranks)

    def rows(self) -> list[list[str]]:
        bad = [str(getattr(rank, "not_finite", 0) or "-") for rank in self.ranks]
        return [[*row[:4], one, *row[4:]] for row, one in zip(super().rows(), bad, strict=True)]

    def missing(self) -> int:
        """Messages that were expected and did not come in time."""
        return sum(rank.asked - rank.on_time for rank in self.ranks)

    def line(self) -> str:
        """The progress of a run: rounds per second, nodes that take part, messages that did not come, bytes."""
        rate = self.rounds / max(time.perf_counter() - self.begun, 1e-9)
        gone = {node for event in self.events if event.what not in (*PASSING, "non_finite") for node in event.workers}
        there = f"{self.n_workers - len(gone)} of {self.n_workers} nodes"
        return f"{rate:.0f} rounds/s, {there}, {self.missing()} missing, {self.bytes / 1e6:.1f} MB"
