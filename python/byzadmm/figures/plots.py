"""Pictures of panels in the paper's layout, PNG and SVG; curves differ in color, line style and marker."""

from __future__ import annotations

import textwrap
from pathlib import Path
from typing import TYPE_CHECKING, Any

import matplotlib
import numpy as np
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure
from matplotlib.patches import Rectangle

from byzadmm._internal.atomic_files import save_picture
from byzadmm.catalogue import styles

if TYPE_CHECKING:
    from byzadmm.figures.panel import HeatMap, Panel
    from byzadmm.figures.settings import Curve

__all__ = ["draw"]

_EXAMPLE_POINTS = 101
_INCHES = 0.0085  # width of a letter per point of its size


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
    """Text of a user for matplotlib, with dollar signs as characters, not as the limits of mathematics."""
    return text.replace("$", r"\$")


def _title(panel: Panel) -> str:
    title = _literal(f"{panel.name}: {panel.settings.title}")
    return title + "\n(quick look, not the paper's experiment)" if panel.quick else title


def _draw_plots(panel: Panel) -> Figure:
    """Attacks side by side, partitions below each other."""
    across, down = len(panel.settings.attacks), len(panel.settings.partitions)
    figure = Figure(figsize=(1.9 + 5.2 * across, 0.4 + 3.5 * down), layout="constrained")
    FigureCanvasAgg(figure)
    for number, ax in enumerate(figure.subplots(down, across, squeeze=False).flat):
        _draw_plot(panel, number, ax)
        if across * down > 1:
            ax.set_title(_literal(panel.plots[number]), fontsize=10)
    figure.suptitle(_title(panel), fontsize=11)
    return figure


def _draw_maps(panel: HeatMap) -> Figure:
    """One map per number of Byzantine workers (across) and partition (down), in the shape of a slide."""
    across = len({q for q, _ in panel.maps()})
    down = len(panel.maps()) // across
    n_rows, n_columns = len(panel.rows_shown()), len(panel.attacks_shown())
    titles = [_map_title(panel, number) for number in range(len(panel.maps()))]
    longest = max(len(line) for title in titles for line in title.splitlines())
    # A map has room for its columns and for its title.
    width = 3.0 + across * (0.3 + max(0.58 * n_columns, _INCHES * 13 * longest))
    height = 2.1 + down * (0.6 + 0.235 * n_rows)
    figure = Figure(figsize=(width, height), layout="constrained")
    FigureCanvasAgg(figure)
    axes = figure.subplots(down, across, squeeze=False, sharex=True, sharey=True)
    for number, ax in enumerate(axes.flat):
        image = _draw_map(panel, number, ax, first=number < across)
        ax.set_title(titles[number], fontsize=13)
    bar = figure.colorbar(image, ax=axes, shrink=min(1.0, max(0.6, 3.0 / height)), pad=0.01, aspect=30)
    bar.set_ticks([0, 25, 50, 75, 100])
    bar.set_label("final test accuracy in %", fontsize=12)
    figure.suptitle(_in_lines(_title(panel), width, 15), fontsize=15)
    remarks = []
    if any(curve.kind == "ideal" for curve in panel.curves):
        honest = ", who are honest under “none”" if None in panel.settings.attacks else ""
        remarks.append(f"Ideal SGD: without the Byzantine workers{honest}")
    if not all(panel.legal(number, curve) for number in range(len(panel.maps())) for curve in panel.rows_shown()):
        remarks.append("hatched: the rule does not tolerate so many")
    figure.supxlabel(_in_lines("; ".join(remarks), width, 12), fontsize=12)
    return figure


def _in_lines(text: str, width: float, size: float) -> str:
    """Words of that size broken into lines that fit into so many inches."""
    room = int(width / (_INCHES * size))
    return "\n".join(line for part in text.split("\n") for line in textwrap.wrap(part, room) or [""])


def _map_title(panel: HeatMap, number: int) -> str:
    q, partition = panel.maps()[number]
    ideal = panel.ideal(number)
    words = {"iid": "i.i.d.", "by-label": "data by label"}.get(partition, panel.settings.words(partition))
    title = f"{q} of {panel.settings.n_workers} Byzantine, {words}"
    return title if ideal is None else f"{title}\n(Ideal SGD: {100 * ideal:.0f})"


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
                # Dark letters on the bright half of the colors.
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
    others = [i for i, curve in enumerate(rows) if curve.algorithm.message != "gradient"]
    if others and others[0]:  # a line between SGD with rules and the other algorithms
        ax.axhline(others[0] - 0.5, color="white", linewidth=3)
    ax.set_yticks(range(len(rows)), [_literal(curve.label) for curve in rows], fontsize=12)
    ax.set_xticks(range(len(columns)), columns, fontsize=12, rotation=25, ha="left", rotation_mode="anchor")
    ax.tick_params(length=0, top=first, labeltop=first, bottom=False, labelbottom=False)
    ax.spines[:].set_visible(False)
    return image


def _has_style(curve: Curve) -> bool:
    """Whether the catalogue may have a style for the curve: not for SGD with a rule of the file."""
    return curve.kind != "sgd" or getattr(curve.algorithm, "rule", None) == "mean"


def _draw_plot(panel: Panel, number: int, ax: Any) -> None:
    example = bool(panel.settings.quadratic)
    spacing = 12 if example else max(1, len(panel.iterations) // 6)
    # The example settles early: the plot shows its first iterations, and its end as dotted lines.
    shown = min(len(panel.iterations), _EXAMPLE_POINTS) if example else len(panel.iterations)
    x = panel.iterations[:shown]
    # Runs of one algorithm, as printed and tuned, share a style; a sweep and chains of rules have one per curve.
    shared = {} if panel.settings.sweep else {c.name: c.kind for c in panel.curves if _has_style(c)}
    styles_of = styles([shared.get(curve.name, curve.name) for curve in panel.curves])
    for place, curve in enumerate(panel.curves):
        values = panel.values[number, curve.name][:, :shown]
        style = styles_of[shared.get(curve.name, curve.name)]
        hollow = curve.printed and curve.kind == "admm" and not example
        mean = values.mean(axis=0)
        # The legend has final accuracies, as curves may coincide.
        final = panel.final_of(number, curve.name)["mean"]
        label = _literal(curve.label.removesuffix(" (printed)") if example else f"{curve.label}: {final:.3f}")
        if len(values) > 1:
            ax.fill_between(x, values.min(axis=0), values.max(axis=0), color=style.color, alpha=0.15, linewidth=0)
        ax.plot(
            x,
            mean,
            color=style.color,
            linestyle="--" if hollow else style.line,
            marker=style.marker,
            markevery=(round(place * spacing / len(panel.curves)), spacing),
            markersize=5,
            markerfacecolor="white" if hollow else style.color,
            linewidth=1.6,
            label=label,
            zorder=3 if curve.kind == "admm" else 2,
        )
        if example:
            limit = float(panel.values[number, curve.name][0, -1])
            ax.axhline(limit, color=style.color, linestyle=":", linewidth=0.9)
            ax.annotate(
                f"{limit:.3f}",
                (1.0, limit),
                xycoords=("axes fraction", "data"),
                xytext=(3, 7 * (1 if place == 0 else -1)),
                textcoords="offset points",
                color=style.color,
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
