"""The picture of ``byzadmm run``: the curves of several algorithms in one plot."""

from __future__ import annotations

import math
from collections.abc import Sequence
from pathlib import Path

from matplotlib.figure import Figure

from byzadmm._internal.atomic_files import save_picture
from byzadmm.catalogue import LABELS, styles
from byzadmm.results import Result

__all__ = ["draw_runs"]


def draw_runs(path: str | Path, results: Sequence[tuple[str, Result]], title: str) -> None:
    """Draw accuracy against iterations, or the loss where there is no accuracy: one curve per algorithm.

    Parameters
    ----------
    path : path
        PNG, SVG or PDF by its ending.
    results : list of (str, Result)
        Name of the algorithm, as on the command line, and its result.
    title : str
    """
    figure = Figure(figsize=(6.4, 4.2), layout="constrained")
    axes = figure.subplots()
    metric, label = "accuracy", "test accuracy"
    if all(math.isnan(result.accuracy[-1]) for _, result in results):  # a problem without a test set
        metric, label = "loss", "loss"
    looks = styles([name for name, _ in results])
    for name, result in results:
        axes.plot(
            result.iterations,
            getattr(result, metric),
            color=looks[name].color,
            linestyle=looks[name].line,
            linewidth=1.5 if name == "ideal" else 2,
            label=LABELS.get(name, name),
            zorder=3 if name == "ideal" else 2,  # dotted: what it coincides with stays visible
        )
    axes.set(xlabel="iterations", ylabel=label, title=title)
    if metric == "accuracy":
        axes.set_ylim(0, 1)
    axes.margins(x=0)
    axes.grid(alpha=0.3)
    legend = axes.legend(loc="center right", framealpha=0.9)
    for text in (axes.title, *legend.get_texts()):  # a user's words as they are
        text.set_parse_math(False)
    save_picture(figure, path, dpi=150)
