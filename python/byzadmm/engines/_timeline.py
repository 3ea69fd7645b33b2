"""The picture of a run over MPI."""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from byzadmm._internal.arrays import Array
from byzadmm._internal.atomic_files import save_picture

if TYPE_CHECKING:
    from byzadmm.engines.report import RunReport

__all__ = ["draw", "shares", "span"]

_MARKERS = "XoDs^v*P"
_WORK, _WAIT = "#0072B2", "#56B4E9"


def shares(report: RunReport, number: int, bins: int = 500) -> tuple[Array, Array, Array]:
    """Edges of ``bins`` intervals of time; the share of each in which rank ``number`` was waited for, and worked.

    A round that is kept for several is spread over the time until the next one that is kept.
    """
    rounds = np.array([k for k, _, _ in report.timeline])
    starts = np.array([start for _, start, _ in report.timeline])
    spent = np.array([row[number] or (0.0, 0.0) for _, _, row in report.timeline])
    longest = max((last[0] for last in report.timeline[-1][2] if last is not None), default=0.0)
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


def draw(report: RunReport, path: str | os.PathLike[str], title: str = "") -> None:
    """Draw the answers of a run: one line per rank, time to the right, a mark for every event.

    The height of a line is the share of a short time (about a pixel wide) in which the rank worked, and in which the
    master waited for it: the areas of the two colors are in the ratio of the numbers in the table.
    """
    from matplotlib.figure import Figure

    ranks = [rank for rank in report.ranks if rank.workers]
    figure = Figure(figsize=(8.0, 1.6 + 0.32 * len(ranks)), layout="constrained")
    axes = figure.subplots()
    position = {rank.rank: number for number, rank in enumerate(ranks)}
    for number, rank in enumerate(report.ranks):
        if rank.rank in position and report.timeline:
            edges, waited, worked = shares(report, number)
            floor = position[rank.rank] + 0.4  # the axis points down
            for share, color in ((waited, _WAIT), (worked, _WORK)):
                axes.stairs(floor - 0.8 * share, edges, baseline=floor, fill=True, color=color, linewidth=0)
    started = {k: start for k, start, _ in report.timeline}
    marks: dict[str, tuple[list[float], list[int]]] = {}
    for event in report.events:
        if event.rank in position and started:
            nearest = min(started, key=lambda k, wanted=event.round: abs(k - wanted))  # type: ignore[misc]
            xs, ys = marks.setdefault(event.what.replace("_", " "), ([], []))
            xs.append(started[nearest])
            ys.append(position[event.rank])
    for number, (what, (xs, ys)) in enumerate(sorted(marks.items())):
        axes.plot(xs, ys, _MARKERS[number % len(_MARKERS)], color="#D55E00", markeredgecolor="black", label=what)
    axes.set_yticks(range(len(ranks)), [f"rank {rank.rank}: {span(rank.workers)}" for rank in ranks])
    axes.set(xlabel="seconds; the height is a share of the time", ylim=(len(ranks) - 0.4, -0.6))
    axes.set_title(title or f"{report.rounds} rounds, {report.line()}")
    axes.plot([], [], color=_WORK, linewidth=6, label="work")
    axes.plot([], [], color=_WAIT, linewidth=6, label="on the way, waiting")
    figure.legend(loc="outside lower center", ncols=6, frameon=False)
    axes.title.set_parse_math(False)
    save_picture(figure, path, dpi=150)


def span(workers: Sequence[int]) -> str:
    """The numbers of consecutive workers as text."""
    if not workers:
        return "-"
    return str(workers[0]) if len(workers) == 1 else f"{workers[0]}-{workers[-1]}"


def _zip(first: Array, second: Array) -> Array:
    """Their elements alternating."""
    return np.stack([first, second], axis=1).ravel()


def _running(amounts: Array) -> tuple[Array, Array]:
    """The cumulative sum before and after each of them."""
    after = np.cumsum(amounts)
    return after - amounts, after
