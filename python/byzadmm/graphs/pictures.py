"""Pictures of graphs."""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import Any

import numpy as np
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.collections import LineCollection
from matplotlib.figure import Figure
from matplotlib.patches import FancyArrowPatch

from byzadmm.graphs import makers
from byzadmm.graphs.graph import Graph, Reals
from byzadmm.study.plots import save

__all__ = ["draw", "places"]

# Those of draw_weights: of Okabe and Ito, which color-blind readers tell apart.
_REGULAR, _BYZANTINE = "#0072b2", "#d55e00"
_SMALL = 60  # nodes that have their numbers written on them
_FORMED = 500  # nodes of a graph whose form is looked for


def draw(
    graph: Graph, path: str | os.PathLike[str] | None, *, byzantine: Sequence[int] = (), ax: Any = None, line: str = "-"
) -> Any:
    """The picture of :meth:`byzadmm.graphs.Graph.plot`: the axes."""
    where, bent = places(graph)
    room = 0.7 if bent.any() else 0.25
    low, high = where.min(axis=0) - room, where.max(axis=0) + room
    if ax is None:
        shape = (high - low) / (high - low).max()
        figure = Figure(figsize=(0.2 + 4.6 * shape[0], 0.5 + 4.6 * shape[1]), layout="constrained")
        FigureCanvasAgg(figure)
        ax = figure.subplots()
    forged = np.isin(graph.edges, list(byzantine)).any(axis=1)
    alpha = float(np.clip(60 / max(1, len(graph.edges)), 0.35, 0.9))
    for color, these in (("#555555", ~forged), (_BYZANTINE, forged)):
        look: dict[str, Any] = {"color": color, "linestyle": line, "linewidth": 0.8, "alpha": alpha, "zorder": 1}
        straight = where[graph.edges[these & ~bent]]
        ax.add_collection(LineCollection(list(straight), **look))
        for one, other in where[graph.edges[these & bent]]:
            ax.add_patch(_arc(one, other, look))
    size = float(np.clip(6000 / graph.m, 30, 320))
    groups = {"regular nodes": (_REGULAR, "o", 1.0), "Byzantine nodes": (_BYZANTINE, "D", 0.8)}
    inside = np.isin(np.arange(graph.m), list(byzantine))
    for (label, (color, marker, scale)), these in zip(groups.items(), (~inside, inside), strict=True):
        if these.any():
            face: dict[str, Any] = {"marker": marker, "edgecolors": "white", "linewidths": 0.8, "zorder": 2}
            ax.scatter(*where[these].T, s=scale * size, c=color, label=label, **face)
    if graph.m <= _SMALL:
        for i, (x, y) in enumerate(where):
            ax.text(x, y, str(i), color="white", fontsize=0.5 * size**0.5, ha="center", va="center_baseline", zorder=3)
    if inside.any():
        small = (60 / size) ** 0.5
        ax.legend(loc="upper center", bbox_to_anchor=(0.5, 0.0), ncols=2, fontsize=9, frameon=False, markerscale=small)
    ax.set_aspect("equal")
    ax.set(xlim=(low[0], high[0]), ylim=(low[1], high[1]))
    ax.set_axis_off()
    save(ax.figure, path)
    return ax


def places(graph: Graph) -> tuple[Reals, Any]:
    """Where the nodes are drawn (m, 2), and which edges (E,) are bent: on a circle, unless the graph has a form."""
    m, k = graph.m, graph.m // 2
    straight = np.zeros(len(graph.edges), np.bool_)
    if m > _FORMED:
        return _circle(m), straight
    if m >= 4 and graph == makers.star(m):
        return np.concatenate([np.zeros((1, 2)), _circle(m - 1)]), straight
    if m >= 6 and m % 2 == 0:
        if graph == makers.octopus(k):
            return np.concatenate([_circle(k), 1.6 * _circle(k)]), straight
        beside = [1.5, 0.0]
        if graph == makers.dumbbell(k):
            left = _circle(k, first=-2 * np.pi / k) - beside  # node k - 1 is the rightmost
            return np.concatenate([left, (left * [-1, 1])[::-1]]), straight
        c = int(graph.degrees[0]) - k + 1
        if 1 <= c < k and graph == makers.two_worlds(k, c):
            left = _circle(k, first=1.5 * np.pi / k) - beside  # a quarter of a step: no link passes through a node
            return np.concatenate([left, left * [-1, 1]]), straight
    for columns in range(3, m // 3 + 1):
        if m % columns == 0 and graph == makers.torus(m // columns, columns):
            grid = np.stack([np.arange(m) % columns, -(np.arange(m) // columns)], axis=1).astype(np.float64)
            return grid, np.abs(np.diff(grid[graph.edges], axis=1)).max(axis=(1, 2)) > 1
    return _circle(m), straight


def _circle(count: int, first: float = np.pi / 2) -> Reals:
    """Places (count, 2) on the unit circle, clockwise."""
    angle = first - 2 * np.pi * np.arange(count) / count
    return np.stack([np.cos(angle), np.sin(angle)], axis=1)


def _arc(one: Any, other: Any, look: dict[str, Any]) -> FancyArrowPatch:
    """A link across a whole row or column, bent between this one and the next, so that all arcs are alike."""
    bend = 0.7 / float(np.abs(other - one).max())
    return FancyArrowPatch(
        one, other, arrowstyle="-", connectionstyle=f"arc3,rad={-bend}", shrinkA=0, shrinkB=0, **look
    )
