"""What happened on the way: answers, times and bytes per rank, events, timeline; as text, JSON and a picture."""

from __future__ import annotations

import json
import os
import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from byzadmm._internal.arrays import Array
from byzadmm._internal.atomic_files import replacing, save_picture
from byzadmm.engines.training import Event

__all__ = ["RankReport", "RunReport"]

_TIMES = ("seconds", "seconds_asking", "seconds_waiting", "seconds_checking", "seconds_updating")
_ROUNDS_KEPT = 1000  # at least half as many; every second one goes when there are more
# What an event says about a rank for good, as against something that passes.
_PASSING = ("slow", "back", "restarted")
_BROKEN = ("died", "raised")  # gone, but not for misbehaviour


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
        Seconds it worked per round, as it says itself.
    bytes_up, bytes_down : int
    state : str
        "ready", "slow" or why it is gone.
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

    def answered(self, response: float, work: float) -> None:
        """An answer on time; ``work`` is what its sender claims, so it is cut to what is possible."""
        work = min(work, response) if work > 0 else 0.0  # NaN too is zero
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
        """For JSON."""
        names = ("rank", "workers", "asked", "on_time", "late", "mean", "longest", "work", "bytes_up", "bytes_down")
        return {name: getattr(self, name) for name in (*names, "state")}


@dataclass
class RunReport:
    """One run: its ranks, its events, where the master's time went, and some rounds in detail.

    ``seconds_asking`` and ``seconds_waiting`` are spent on the way to the workers and back; ``seconds_checking``, on
    the validation of what came, and ``seconds_updating``, on the master's own part of the rounds, are processor time.
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
    _every: int = 1
    _seen: int = 0

    @property
    def bytes(self) -> int:
        """Both ways, headers included."""
        return sum(rank.bytes_up + rank.bytes_down for rank in self.ranks)

    def keep_round(self, k: int, begun: float) -> None:
        """Put a round on the timeline; a long run keeps every second, fourth, ... round."""
        if self._seen % self._every == 0:
            self.timeline.append((k, begun - self.begun, [rank.last for rank in self.ranks]))
            if len(self.timeline) > _ROUNDS_KEPT:
                del self.timeline[1::2]
                self._every *= 2
        self._seen += 1
        for rank in self.ranks:
            rank.last = None

    def finish(self, states: dict[int, str]) -> None:
        """How the ranks stand at the end."""
        for rank in self.ranks:
            rank.state = states[rank.rank]

    @classmethod
    def together(cls, reports: Sequence[RunReport]) -> RunReport:
        """Several runs on the same ranks as one; events and times added, ranks as the last run left them."""
        last = reports[-1]
        whole = cls([], [event for report in reports for event in report.events], last.wire, last.n_workers, last.dim)
        for name in ("rounds", *_TIMES):
            setattr(whole, name, sum(getattr(report, name) for report in reports))
        for position, now in enumerate(last.ranks):
            parts = [report.ranks[position] for report in reports]
            rank = RankReport(now.rank, now.workers, longest=max(part.longest for part in parts), state=now.state)
            for name in ("asked", "on_time", "late", "bytes_up", "bytes_down", "_response", "_work"):
                setattr(rank, name, sum(getattr(part, name) for part in parts))
            whole.ranks.append(rank)
        return whole

    def line(self) -> str:
        """For a run that is going on: rounds per second, workers that are there or eliminated, bytes."""
        rate = self.rounds / max(time.perf_counter() - self.begun, 1e-9)
        lasting = [event for event in self.events if event.what not in _PASSING]
        gone = {worker for event in lasting for worker in event.workers}
        eliminated = {worker for event in lasting if event.what not in _BROKEN for worker in event.workers}
        there = f"{self.n_workers - len(gone)} of {self.n_workers} workers, {len(eliminated)} eliminated"
        return f"{rate:.0f} rounds/s, {there}, {self.bytes / 1e6:.1f} MB"

    def rows(self) -> list[list[str]]:
        """The summary, a row per rank, for the columns of ``COLUMNS``."""
        return [
            [
                str(rank.rank),
                _span(rank.workers),
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
        """For JSON."""
        return {name: getattr(self, name) for name in ("wire", "n_workers", "dim", "rounds", "bytes", *_TIMES)} | {
            "ranks": [rank.record() for rank in self.ranks],
            "events": [event.record() for event in self.events],
            "timeline": self.timeline,
        }

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write it as JSON."""
        with replacing(path) as file:
            file.write(json.dumps(self.record()).encode() + b"\n")

    def shares(self, number: int, bins: int = 500) -> tuple[Array, Array, Array]:
        """Edges of ``bins`` intervals of time; the share of each in which rank ``number`` was waited for, and worked.

        A kept round that stands for several is spread over the time until the next one that was kept.
        """
        rounds = np.array([k for k, _, _ in self.timeline])
        starts = np.array([start for _, start, _ in self.timeline])
        spent = np.array([row[number] or (0.0, 0.0) for _, _, row in self.timeline])
        longest = max((last[0] for last in self.timeline[-1][2] if last is not None), default=0.0)
        ends = np.append(starts[1:], starts[-1] + max(longest, 1e-9))
        stands_for = np.append(np.diff(rounds), 1)[:, None]
        total = np.minimum(stands_for * spent, (ends - starts)[:, None])
        stretch = np.where(stands_for > 1, (ends - starts)[:, None], total)
        edges = np.linspace(starts[0], ends[-1], bins + 1)
        waited, worked = (
            np.diff(np.interp(edges, _zip(starts, starts + stretch[:, i]), _zip(*_running(total[:, i]))))
            for i in (0, 1)
        )
        width = edges[1] - edges[0]
        return edges, waited / width, worked / width

    def draw(self, path: str | os.PathLike[str], title: str = "") -> None:
        """A picture of the answers: one line per rank, time to the right, a mark where something happened.

        The height of a line is the share of the time, from one pixel or so to the next, that the rank worked and that
        the master waited for it: the colors cover areas in the ratio of the table's numbers.
        """
        from matplotlib.figure import Figure

        ranks = [rank for rank in self.ranks if rank.workers]
        figure = Figure(figsize=(8.0, 1.6 + 0.32 * len(ranks)), layout="constrained")
        axes = figure.subplots()
        position = {rank.rank: number for number, rank in enumerate(ranks)}
        for number, rank in enumerate(self.ranks):
            if rank.rank in position and self.timeline:
                edges, waited, worked = self.shares(number)
                floor = position[rank.rank] + 0.4  # the axis points down
                for share, color in ((waited, _WAIT), (worked, _WORK)):
                    axes.stairs(floor - 0.8 * share, edges, baseline=floor, fill=True, color=color, linewidth=0)
        started = {k: start for k, start, _ in self.timeline}
        marks: dict[str, tuple[list[float], list[int]]] = {}
        for event in self.events:
            if event.rank in position and started:
                nearest = min(started, key=lambda k, wanted=event.round: abs(k - wanted))  # type: ignore[misc]
                xs, ys = marks.setdefault(event.what.replace("_", " "), ([], []))
                xs.append(started[nearest])
                ys.append(position[event.rank])
        for number, (what, (xs, ys)) in enumerate(sorted(marks.items())):
            axes.plot(xs, ys, _MARKERS[number % len(_MARKERS)], color="#D55E00", markeredgecolor="black", label=what)
        axes.set_yticks(range(len(ranks)), [f"rank {rank.rank}: {_span(rank.workers)}" for rank in ranks])
        axes.set(xlabel="seconds; the height is a share of the time", ylim=(len(ranks) - 0.4, -0.6))
        axes.set_title(title or f"{self.rounds} rounds, {self.line()}")
        axes.plot([], [], color=_WORK, linewidth=6, label="work")
        axes.plot([], [], color=_WAIT, linewidth=6, label="on the way, waiting")
        figure.legend(loc="outside lower center", ncols=6, frameon=False)
        axes.title.set_parse_math(False)
        save_picture(figure, path, dpi=150)


#: Headings of :meth:`RunReport.rows`; ``>`` aligns to the right.
COLUMNS = ("rank", "workers", ">on time", ">late", ">mean ms", ">max ms", ">work ms", ">MB", "state")
_MARKERS = "XoDs^v*P"
_WORK, _WAIT = "#0072B2", "#56B4E9"


def _zip(first: Array, second: Array) -> Array:
    """Their elements in turn."""
    return np.stack([first, second], axis=1).ravel()


def _running(amounts: Array) -> tuple[Array, Array]:
    """The sum before and after each of them."""
    after = np.cumsum(amounts)
    return after - amounts, after


def _span(workers: Sequence[int]) -> str:
    if not workers:
        return "-"
    return str(workers[0]) if len(workers) == 1 else f"{workers[0]}-{workers[-1]}"
