"""Panels drawn in the paper's layout: PNG and SVG, told apart by colour, line style and marker alike."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import matplotlib
import numpy as np
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure
from matplotlib.patches import Rectangle

from byzadmm._atomic import save_picture
from byzadmm.algorithms import SGD

if TYPE_CHECKING:
    from byzadmm.figures.run import HeatMap, Panel

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
    figure = _draw_maps(panel) if panel.settings.heat_map else _draw_plots(panel)  # type: ignore[arg-type]
    paths = [folder / f"{panel.name}.{kind}" for kind in ("png", "svg")]
    # A fixed salt and no date: the same numbers give the same file.
    with matplotlib.rc_context({"svg.hashsalt": "byzadmm"}):
        save_picture(figure, paths[0], dpi=150)
        save_picture(figure, paths[1], metadata={"Date": None})
    return paths


def _literal(text: str) -> str:
    """A user's words as they are: no mathematics between dollar signs."""
    return text.replace("$", r"\$")


def _title(panel: Panel) -> str:
    title = _literal(f"{panel.name}: {panel.settings.title}")
    return title + "\n(quick look, not the paper's experiment)" if panel.quick else title


def _draw_plots(panel: Panel) -> Figure:
    count = len(panel.plots)
    figure = Figure(figsize=(1.9 + 5.2 * count, 3.9), layout="constrained")
    FigureCanvasAgg(figure)
    axes = figure.subplots(1, count, squeeze=False)[0]
    for number, ax in enumerate(axes):
        _draw_plot(panel, number, ax)
        if count > 1:
            ax.set_title(panel.plots[number], fontsize=10)
    figure.suptitle(_title(panel), fontsize=11)
    return figure


def _draw_maps(panel: HeatMap) -> Figure:
    """One map per number of liars (across) and partition (down), in the shape of a slide."""
    across = len({q for q, _ in panel.maps()})
    down = len(panel.maps()) // across
    n_rows, n_columns = len(panel.rows_shown()), len(panel.attacks_shown())
    size = (3.0 + across * (0.3 + 0.58 * n_columns), 1.9 + down * (0.4 + 0.235 * n_rows))
    figure = Figure(figsize=size, layout="constrained")
    FigureCanvasAgg(figure)
    axes = figure.subplots(down, across, squeeze=False, sharex=True, sharey=True)
    for number, ax in enumerate(axes.flat):
        image = _draw_map(panel, number, ax, first=number < across)
    bar = figure.colorbar(image, ax=axes, shrink=0.6, pad=0.01, aspect=30)
    bar.set_ticks([0, 25, 50, 75, 100])
    bar.set_label("final test accuracy in %", fontsize=12)
    figure.suptitle(_title(panel), fontsize=15)
    remarks = []
    if any(curve.kind == "ideal" for curve in panel.curves):
        remarks.append("Ideal SGD: without the Byzantine workers, who are honest under “none”")
    if not all(panel.legal(number, curve) for number in range(len(panel.maps())) for curve in panel.rows_shown()):
        remarks.append("hatched: the rule does not bear so many")
    figure.supxlabel("; ".join(remarks), fontsize=12)
    return figure


def _draw_map(panel: HeatMap, number: int, ax: Any, *, first: bool) -> Any:
    rows, columns = panel.rows_shown(), panel.attacks_shown()
    found = [[panel.final(number, place, curve) for place in range(len(columns))] for curve in rows]
    values = 100 * np.array([[np.nan if value is None else value for value in row] for row in found])
    image = ax.imshow(values, cmap="viridis", vmin=0, vmax=100, aspect="auto")
    for i, curve in enumerate(rows):
        if not panel.legal(number, curve):
            ax.add_patch(
                Rectangle(
                    (-0.5, i - 0.5), len(columns), 1, facecolor="0.93", edgecolor="0.6", hatch="////", linewidth=0
                )
            )
        for j in range(len(columns)):
            legal = panel.legal(number, curve)
            if legal or j == 0:
                # Dark letters on the bright half of the colours.
                ax.text(
                    j if legal else (len(columns) - 1) / 2,
                    i,
                    panel.cell(number, j, curve) if legal else f"f = {panel.maps()[number][0]} is too large",
                    ha="center",
                    va="center",
                    fontsize=12,
                    color="white" if legal and values[i, j] < 60 else "black",
                    bbox=None if legal else {"facecolor": "0.93", "edgecolor": "none", "pad": 1.5},
                )
    others = [i for i, curve in enumerate(rows) if not isinstance(curve.algorithm, SGD)]
    if others and others[0]:  # the rules of SGD end here
        ax.axhline(others[0] - 0.5, color="white", linewidth=3)
    ax.set_yticks(range(len(rows)), [_literal(curve.label) for curve in rows], fontsize=12)
    ax.set_xticks(range(len(columns)), columns, fontsize=12, rotation=25, ha="left", rotation_mode="anchor")
    ax.tick_params(length=0, top=first, labeltop=first, bottom=False, labelbottom=False)
    ax.spines[:].set_visible(False)
    q, partition = panel.maps()[number]
    ideal = panel.ideal(number)
    words = {"iid": "i.i.d. data", "by-label": "data by label"}.get(partition, f"{partition} data")
    title = f"{q} of {panel.settings.n_workers} Byzantine, {words}"
    ax.set_title(title if ideal is None else f"{title} (Ideal SGD: {100 * ideal:.0f})", fontsize=13)
    return image


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
        label = _literal(curve.label.removesuffix(" (printed)") if example else f"{curve.label}: {final:.3f}")
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
