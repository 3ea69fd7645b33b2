"""The curves of a study: a panel per attack, mean and range over the seeds, one legend for all panels."""

from __future__ import annotations

import math
import os
import textwrap
from itertools import product
from typing import TYPE_CHECKING, Any

import matplotlib
import numpy as np
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure

from byzadmm._internal.arrays import Array
from byzadmm._internal.atomic_files import save_picture
from byzadmm.study.places import LABELS, as_steps, choose_x, one_grid, places_of
from byzadmm.study.study import HIGHER, SPREADS

if TYPE_CHECKING:
    from byzadmm.study.study import Study

__all__ = ["INCHES", "draw_curves", "draw_weights", "in_lines", "literal", "save"]

#: Width of a letter in inches, per point of its size.
INCHES = 0.0085
_LEGEND = 3.0  # inches, the longest line of a legend

_WIDE = 100  # quotient of positive values from which on the axis of a spread is logarithmic

_METRIC_LABELS = {
    "accuracy": "test accuracy",
    "loss": "training loss",
    "test_loss": "test loss",
    "worst_accuracy": "test accuracy of the worst node",
}


def draw_curves(
    study: Study, path: str | os.PathLike[str] | None = None, *, metric: str | None = None, x: str | None = None
) -> Figure:
    """The picture of :meth:`byzadmm.Study.plot`."""
    name = study.metric(metric)
    axis = choose_x(x, study.results.values())
    attacks = study.axes["attack"]
    others = list(product(study.axes["n_byzantine"], study.axes["partition"]))
    # Beside the panels there is room for the legend, in as many columns as that takes.
    labels = [in_lines(study.label("algorithm", one), _LEGEND, 9) for one in study.axes["algorithm"]]
    wide, tall = (3.4, 2.7) if len(attacks) > 1 else (5.0, 3.4)
    room = wide * len(attacks)
    title = in_lines(study.title, room, 11)
    height = 0.7 + 0.2 * (title.count("\n") + 1) + tall * len(others)
    columns = math.ceil(0.19 * sum(label.count("\n") + 1 for label in labels) / (height - 0.3))
    letters = max(len(line) for label in labels for line in label.split("\n"))
    width = room + max(1.9, 0.5 + columns * (0.75 + INCHES * 9 * letters))
    figure = Figure(figsize=(width, height), layout="constrained")
    FigureCanvasAgg(figure)
    panels = figure.subplots(len(others), len(attacks), squeeze=False, sharex=True, sharey=True)
    low, high = _limits(study, name)
    if name in SPREADS:
        wide = high > _WIDE * low > 0
        panels[0, 0].set_yscale("log" if wide else "linear", **({"nonpositive": "mask"} if wide else {}))
        low, high = (low / 1.5 if wide else 0.0), 1.5 * high
    panels[0, 0].set_ylim(low, high)
    for (q, partition), row in zip(others, panels, strict=True):
        for attack, ax in zip(attacks, row, strict=True):
            _panel(study, ax, name, axis, {"attack": attack, "n_byzantine": q, "partition": partition})
            above = _title(study, attack, q, partition)
            if panels.size > 1 or above not in study.title:
                ax.set_title(literal(in_lines(above, wide - 0.4, 10)), fontsize=10)
    for ax in panels[-1]:
        ax.set_xlabel(LABELS[axis])
    for row in panels:
        row[0].set_ylabel(literal(_METRIC_LABELS.get(name, name.replace("_", " "))))
    found = [ax.get_legend_handles_labels() for ax in panels.flat]
    handles = {label: handle for pair in found for handle, label in zip(*pair, strict=True)}
    figure.legend(
        handles.values(), handles.keys(), loc="outside right upper", fontsize=9, handlelength=3.2, ncols=columns
    )
    figure.suptitle(literal(title), x=room / 2 / width, fontsize=11)  # above the panels: the legend is beside them
    return save(figure, path)


def draw_weights(
    iterations: Array, weights: dict[str, Array], title: str, path: str | os.PathLike[str] | None, ax: Any = None
) -> Any:
    """The picture of :meth:`byzadmm.Result.plot_weights`: the axes."""
    if ax is None:
        figure = Figure(figsize=(5.0, 3.2), layout="constrained")
        FigureCanvasAgg(figure)
        ax = figure.subplots()
    groups = {"regular": ("regular workers", "#0072b2", "-"), "byzantine": ("Byzantine workers", "#d55e00", "--")}
    for name, (label, color, line) in groups.items():
        if not np.all(np.isnan(weights[name])):
            ax.plot(iterations, weights[name], line, color=color, label=label, linewidth=1.8)
    ax.set_xlim(0, max(1, int(iterations[-1])))
    ax.set_ylim(-0.03, max(1.05, ax.get_ylim()[1]))
    ax.set_xlabel("iterations")
    ax.set_ylabel("mean weight of messages")
    ax.set_title(literal(in_lines(title, 4.6, 10)), fontsize=10)
    ax.grid(alpha=0.25, linewidth=0.6)
    ax.legend(fontsize=9)
    save(ax.figure, path)
    return ax


def save(figure: Figure, path: str | os.PathLike[str] | None) -> Figure:
    """The figure, written to ``path`` if there is one: the same numbers give the same file."""
    if path is not None:
        is_svg = os.fspath(path).lower().endswith(".svg")
        with matplotlib.rc_context({"svg.hashsalt": "byzadmm"}):
            save_picture(figure, path, dpi=150, **({"metadata": {"Date": None}} if is_svg else {}))
    return figure


def in_lines(text: str, width: float, size: float) -> str:
    """Text of that size in points broken into lines that fit into so many inches."""
    room = max(10, int(width / (INCHES * size)))
    return "\n".join(line for part in text.split("\n") for line in textwrap.wrap(part, room) or [""])


def literal(text: str) -> str:
    """Text of a user for matplotlib, with dollar signs as characters, not as the limits of mathematics."""
    return text.replace("$", r"\$")


def _title(study: Study, attack: str, q: int, partition: str) -> str:
    """What tells this panel from the others, in as many lines as that takes."""
    words = [study.label("attack", attack)]
    more = [study.label("n_byzantine", q)] if len(study.axes["n_byzantine"]) > 1 else []
    more += [study.label("partition", partition)] if len(study.axes["partition"]) > 1 else []
    return "\n".join([*words, ", ".join(more)] if more else words)


def _panel(study: Study, ax: Any, metric: str, x: str, fixed: dict[str, Any]) -> None:
    looks = study.styles()
    for place, name in enumerate(study.axes["algorithm"]):
        cells = [cell for cell in study.cells(algorithm=name, **fixed) if cell in study.results]
        curves = [curve for cell in cells if (curve := study.results[cell].metrics.get(metric)) is not None]
        if not cells or len(curves) < len(cells):
            continue
        places, values = _joined([places_of(study.results[cell], x) for cell in cells], curves, x == "seconds")
        shown = len(places)
        look, ideal = looks[name], name in study.ideal
        with np.errstate(invalid="ignore", over="ignore"):  # a run may diverge
            mean, low, high = values.mean(axis=0), values.min(axis=0), values.max(axis=0)
        if len(values) > 1:
            ax.fill_between(places, low, high, color=look.color, alpha=0.15, linewidth=0)
        ax.plot(
            places,
            mean,
            color=look.color,
            linestyle=look.line,
            marker=look.marker,
            markevery=(place % max(1, shown // 6), max(1, shown // 6)),
            markersize=4.5,
            linewidth=1.6,
            label=literal(in_lines(study.label("algorithm", name), _LEGEND, 9)),
            zorder=3 if ideal else 2,  # dotted: what it coincides with stays visible
        )
    ax.margins(x=0.01)
    ax.grid(alpha=0.25, linewidth=0.6)


def _joined(places: list[Array], curves: list[Array], measured: bool) -> tuple[Array, Array]:
    """The curves of all seeds (seeds, t) and where they are, (t,), as far as all of them go.

    Evaluations at the same places, or at ``measured`` ones, which differ by chance, are joined one by one. Others, such
    as those after so many updates by the time that these took, are joined as steps.
    """
    shown = min(map(len, places))
    if measured or all(np.array_equal(each[:shown], places[0][:shown]) for each in places):
        return np.mean([each[:shown] for each in places], axis=0), np.array([curve[:shown] for curve in curves])
    grid = one_grid(places)
    return grid, np.array([as_steps(each, curve, grid) for each, curve in zip(places, curves, strict=True)])


def _extremes(study: Study, metric: str) -> tuple[float, float]:
    """The least and the largest positive value: models that start at one place are apart by 0 there."""
    curves = [result.metrics[metric] for result in study.results.values() if metric in result.metrics]
    values = np.concatenate(curves) if curves else np.zeros(0)
    values = values[np.isfinite(values) & (values > 0)]
    return (float(values.min()), float(values.max())) if values.size else (0.0, 1.0)


def _limits(study: Study, metric: str) -> tuple[float, float]:
    """The vertical axis of all panels: what the curves show after their first twentieth, but for runs that diverged.

    A run that is worse at its end than at its start would leave nothing of the others to see; it leaves the picture.
    """
    if metric in ("accuracy", "worst_accuracy"):
        return 0.0, 1.0
    if metric in SPREADS:
        return _extremes(study, metric)
    sign = 1 if metric in HIGHER else -1
    shown = []
    for result in study.results.values():
        curve = result.metrics.get(metric)
        if curve is not None and len(curve) > 1 and sign * curve[-1] >= sign * curve[0]:
            shown.append(curve[20 * result.iterations >= result.iterations[-1]])
    values = np.concatenate(shown) if shown else np.zeros(1)
    values = values[np.isfinite(values)]
    low, high = (float(values.min()), float(values.max())) if len(values) else (0.0, 1.0)
    room = 0.08 * (high - low) or 0.5
    return low - room, high + room
