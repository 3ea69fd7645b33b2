"""Panels drawn in the paper's layout: PNG and SVG, told apart by colour, line style and marker alike."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import matplotlib
import numpy as np
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure

if TYPE_CHECKING:
    from byzadmm.figures.run import Panel

__all__ = ["draw"]

# Okabe and Ito's colours, which colour-blind people tell apart: colour, line, marker.
_LOOKS: dict[str, tuple[str, Any, str]] = {
    "admm": ("#D55E00", "-", "o"),
    "rsa": ("#0072B2", "--", "s"),
    "ideal": ("#000000", ":", "*"),
    "sgd": ("#999999", "-.", "x"),
    "geometric-median": ("#009E73", (0, (5, 1)), "^"),
    "median": ("#CC79A7", (0, (3, 1, 1, 1)), "v"),
    "trimmed-mean": ("#56B4E9", (0, (1, 1)), "D"),
}
_SWEEP = ("#000000", "#0072B2", "#56B4E9", "#009E73", "#E69F00", "#D55E00", "#CC79A7")
_MARKERS = "os^vDPX"
_EXAMPLE_POINTS = 101
_LINES: tuple[Any, ...] = ("-", "--", "-.", ":", (0, (5, 1)), (0, (3, 1, 1, 1)), (0, (1, 1)))


def draw(panel: Panel, folder: Path) -> list[Path]:
    """Draw one panel into ``folder``.

    Parameters
    ----------
    panel : Panel
    folder : Path

    Returns
    -------
    list of Path
        The PNG and the SVG.

    Examples
    --------
    >>> import tempfile
    >>> from byzadmm import figures
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     report = figures.reproduce(["example"], quick=True, out=folder, progress=False)
    ...     [path.name for path in report.paths if path.suffix == ".svg"]
    ['example.svg']
    """
    count = len(panel.plots)
    figure = Figure(figsize=(1.9 + 5.2 * count, 3.9), layout="constrained")
    FigureCanvasAgg(figure)
    axes = figure.subplots(1, count, squeeze=False)[0]
    for number, ax in enumerate(axes):
        _draw_plot(panel, number, ax)
        if count > 1:
            ax.set_title(panel.plots[number], fontsize=10)
    title = f"{panel.name}: {panel.settings.title}"
    if panel.quick:
        title += "\n(quick look, not the paper's experiment)"
    figure.suptitle(title, fontsize=11)
    paths = [folder / f"{panel.name}.{kind}" for kind in ("png", "svg")]
    # A fixed salt and no date: the same numbers give the same file.
    with matplotlib.rc_context({"svg.hashsalt": "byzadmm"}):
        figure.savefig(paths[0], dpi=150)
        figure.savefig(paths[1], metadata={"Date": None})
    return paths


def _draw_plot(panel: Panel, number: int, ax: Any) -> None:
    example = bool(panel.settings.quadratic)
    spacing = 12 if example else max(1, len(panel.iterations) // 6)
    # The example settles early: its first iterations are the picture, its end gives the limits.
    shown = min(len(panel.iterations), _EXAMPLE_POINTS) if example else len(panel.iterations)
    x = panel.iterations[:shown]
    for place, curve in enumerate(panel.curves):
        values = panel.values[number, curve.name][:, :shown]
        # SGD with a rule of its own has no look of its own.
        if panel.settings.sweep or (curve.kind == "sgd" and curve.algorithm.rule != "mean"):  # type: ignore[union-attr]
            colour, line, marker = _SWEEP[place % 7], _LINES[place % 7], _MARKERS[place % 7]
        else:
            colour, line, marker = _LOOKS[curve.kind]
        hollow = curve.printed and curve.kind == "admm" and not example
        mean = values.mean(axis=0)
        # Curves that lie on each other are told apart by their final accuracy.
        final = float(mean[-max(1, len(mean) // 5) :].mean())
        label = curve.label.removesuffix(" (printed)") if example else f"{curve.label}: {final:.3f}"
        if len(values) > 1:
            ax.fill_between(x, values.min(axis=0), values.max(axis=0), color=colour, alpha=0.15, linewidth=0)
        ax.plot(
            x,
            mean,
            color=colour,
            linestyle="--" if hollow else line,
            marker=marker,
            markevery=(round(place * spacing / len(panel.curves)), spacing),
            markersize=5,
            markerfacecolor="white" if hollow else colour,
            linewidth=1.6,
            label=label,
            zorder=3 if curve.kind == "admm" else 2,
        )
        if example:
            limit = float(panel.values[number, curve.name][0, -1])
            ax.axhline(limit, color=colour, linestyle=":", linewidth=0.9)
            ax.annotate(
                f"{limit:.3f}",
                (1.0, limit),
                xycoords=("axes fraction", "data"),
                xytext=(3, 7 * (1 if place == 0 else -1)),
                textcoords="offset points",
                color=colour,
                fontsize=8,
                va="center",
            )
    ax.set_xlabel("iterations")
    ax.set_ylabel("master's $x_0$" if example else "top-1 accuracy")
    ax.set_xlim(x[0], x[-1])
    if not example:
        ax.set_ylim(0, 1)
        ax.set_yticks(np.linspace(0, 1, 6))
    ax.grid(alpha=0.25, linewidth=0.6)
    # Beside the axes: curves may be anywhere in them.
    where: dict[str, Any] = {"loc": "lower right"} if example else {"loc": "upper left", "bbox_to_anchor": (1.01, 1.0)}
    ax.legend(
        title=None if example else "algorithm: final accuracy",
        title_fontsize=8,
        fontsize=8,
        framealpha=0.9,
        handlelength=3.5,
        **where,
    )
