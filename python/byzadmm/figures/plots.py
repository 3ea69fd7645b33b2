"""Pictures of panels in the paper's layout, PNG and SVG; curves differ in color, line style and marker.

A thin line of the same color is the published curve.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure

from byzadmm.catalogue import Style, styles
from byzadmm.figures.settings import READINGS, Curve
from byzadmm.study.places import LABELS
from byzadmm.study.plots import literal, save

if TYPE_CHECKING:
    from byzadmm.figures.panel import Panel

__all__ = ["draw", "draw_overview"]

_EXAMPLE_POINTS = 101
_PUBLISHED = {"linewidth": 0.9, "linestyle": "-", "alpha": 0.9}


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
    if panel.settings.heat_map:
        figure = panel.study.heatmap()
    else:
        single = len(panel.plots) == 1 and panel.quantity == "accuracy"
        figure = _draw_readings(panel) if single and panel.settings.readings() else _draw_plots(panel)
    return _save(figure, folder / panel.name)


def draw_overview(panels: Sequence[Panel], path: Path) -> list[Path]:
    """Draw the printed reading of every panel that has published curves, small plots in two rows.

    Parameters
    ----------
    panels : list of Panel
    path : Path
        Without an ending.

    Returns
    -------
    list of Path
        The PNG and the SVG.
    """
    across = -(-len(panels) // 2)
    figure = Figure(figsize=(2.9 * across, 6.6), layout="constrained")
    FigureCanvasAgg(figure)
    axes = figure.subplots(2, across, squeeze=False)
    # Columns are figures 1 to 5, the rows their panels a and b.
    places = [ax for column in axes.T for ax in column]
    handles: dict[str, Any] = {}
    for panel, ax in zip(panels, places, strict=False):
        curves = panel.settings.read("printed")
        looks = _looks(panel)
        for name, curve in curves.items():
            line = _draw_curve(panel, 0, ax, curve, looks[curve.name], marked=False)
            if not panel.settings.sweep:
                handles.setdefault(curve.plain_label, line)
            _draw_published(panel, ax, name, looks[curve.name])
        ax.set_title(literal(f"{panel.name}: {panel.settings.title}"), fontsize=8, wrap=True)
        ax.tick_params(labelsize=7)
        _frame(panel, ax, panel.places)
        ax.set_ylim(0, np.ceil(10 * _enlarged(panel)[1]) / 10)
        if panel.settings.sweep:
            ax.legend(fontsize=6, loc="lower right")
    for ax in places[len(panels) :]:
        ax.set_axis_off()
    for ax in axes[-1]:
        ax.set_xlabel("iterations", fontsize=8)
    for row in axes:
        row[0].set_ylabel("top-1 accuracy", fontsize=8)
    figure.legend(
        handles.values(), handles.keys(), loc="outside lower center", ncols=len(handles), fontsize=9, handlelength=3
    )
    figure.suptitle(f"{_key(panels)}; printed parameters", fontsize=10)
    return _save(figure, path)


def _save(figure: Figure, path: Path) -> list[Path]:
    paths = [path.with_name(f"{path.name}.{kind}") for kind in ("png", "svg")]
    for target in paths:
        save(figure, target)
    return paths


def _draw_readings(panel: Panel) -> Figure:
    """A column for each reading: all of the curves, the good ones enlarged, and a legend with final accuracies."""
    readings = panel.settings.readings()
    rows = -(-max(len(panel.settings.read(reading)) for reading in readings) // 2)
    figure = Figure(figsize=(4.6 * len(readings), 7.0 + 0.2 * rows), layout="constrained")
    FigureCanvasAgg(figure)
    looks, limits = _looks(panel), _enlarged(panel)
    columns = figure.subplots(2, len(readings), sharex=True, sharey="row", height_ratios=(1, 1.2)).T
    for column, reading in zip(columns, readings, strict=True):
        for ax in column:
            for place, (name, curve) in enumerate(panel.settings.read(reading).items()):
                published = panel.published_final(name)
                final = f"{curve.plain_label}: {panel.final_of(0, curve.name)['mean']:.3f}"
                label = final + ("" if published is None else f" ({published:.3f})")
                _draw_curve(panel, 0, ax, curve, looks[curve.name], place=place, label=label)
                _draw_published(panel, ax, name, looks[curve.name])
            _frame(panel, ax, panel.places)
        above, below = column
        above.set_title(READINGS[reading], fontsize=10)
        below.set_yticks(np.linspace(0, 1, 51 if limits[1] - limits[0] < 0.25 else 11))
        below.set_ylim(*limits)
        below.set_xlabel(LABELS[panel.axis])
        below.legend(loc="upper center", bbox_to_anchor=(0.5, -0.16), ncols=2, fontsize=8, frameon=False)
    for ax, word in zip(columns[0], ("", ", enlarged"), strict=True):
        ax.set_ylabel(f"top-1 accuracy{word}")
    figure.suptitle(f"{literal(panel.study.title)}\n{_key([panel])}; numbers: final accuracy, (published)", fontsize=11)
    return figure


def _key(panels: Sequence[Panel]) -> str:
    """What thick and thin lines are."""
    seeds = max(panel.seeds for panel in panels)
    ours = f"thick: ours, mean and range over {seeds} seeds" if seeds > 1 else "thick: ours"
    return ours + ("; thin: published" if any(panel.published for panel in panels) else "")


def _enlarged(panel: Panel) -> tuple[float, float]:
    """The range of accuracies in which the algorithms end that do not fail."""
    finals = [panel.final_of(0, curve.name) for curve in panel.curves]
    ends = [end["mean"] for end in finals] + [known.final for known in panel.published.values()]
    good = [end for end in ends if end >= 2 / 3 * max(ends)]
    highest = max([end["high"] for end in finals] + good)
    return max(0.0, min(good) - 0.04), min(1.0, highest + 0.01)


def _draw_plots(panel: Panel) -> Figure:
    """Attacks side by side, partitions below each other."""
    across, down = len(panel.settings.attacks), len(panel.settings.partitions)
    figure = Figure(figsize=(1.9 + 5.2 * across, 0.4 + 3.5 * down), layout="constrained")
    FigureCanvasAgg(figure)
    for number, ax in enumerate(figure.subplots(down, across, squeeze=False).flat):
        _draw_plot(panel, number, ax)
        if across * down > 1:
            ax.set_title(literal(panel.plots[number]), fontsize=10)
    figure.suptitle(literal(panel.study.title), fontsize=11)
    return figure


def _draw_plot(panel: Panel, number: int, ax: Any) -> None:
    example = bool(panel.settings.quadratic)
    # The example settles early: the plot shows its first iterations, and its end as dotted lines.
    shown = min(len(panel.places), _EXAMPLE_POINTS) if example else len(panel.places)
    looks = _looks(panel)
    for place, curve in enumerate(panel.curves):
        # The legend has final accuracies, as curves may coincide.
        final = panel.final_of(number, curve.name)["mean"]
        label = curve.plain_label if example else f"{curve.label}: {final:.3f}"
        hollow = curve.printed and any(curve.algorithm_name == c.algorithm_name for c in panel.curves if c is not curve)
        style = looks[curve.name]
        _draw_curve(panel, number, ax, curve, style, place=place, label=label, hollow=hollow, shown=shown)
        if curve.printed or not panel.settings.read("printed"):
            _draw_published(panel, ax, curve.algorithm_name, style)
        if example:
            _mark_limit(ax, float(panel.values[number, curve.name][0, -1]), style, above=place == 0)
    _frame(panel, ax, panel.places[:shown])
    ax.set_xlabel(LABELS[panel.axis])
    other = literal(panel.quantity.replace("_", " "))
    ax.set_ylabel("master's $x_0$" if example else "top-1 accuracy" if panel.quantity == "accuracy" else other)
    # Beside the axes: curves may be anywhere in them.
    where: dict[str, Any] = {"loc": "lower right"} if example else {"loc": "upper left", "bbox_to_anchor": (1.01, 1.0)}
    title = None if example else f"algorithm: final {other}"
    ax.legend(title=title, title_fontsize=8, fontsize=8, framealpha=0.9, handlelength=3.5, **where)


def _looks(panel: Panel) -> Mapping[str, Style]:
    """Curves of one algorithm, as printed and tuned, share a style; a sweep and chains of rules have one per curve."""
    sweep = bool(panel.settings.sweep)
    keys = {curve.name: curve.algorithm_name if sweep else curve.style for curve in panel.curves}
    found = styles(list(dict.fromkeys(keys.values())))
    return {name: found[key] for name, key in keys.items()}


def _draw_curve(
    panel: Panel,
    number: int,
    ax: Any,
    curve: Curve,
    style: Style,
    *,
    place: int = 0,
    label: str = "",
    hollow: bool = False,
    shown: int | None = None,
    marked: bool = True,
) -> Any:
    """The mean of a curve with the band of its seeds; the line."""
    x, values = panel.places[:shown], panel.values[number, curve.name][:, :shown]
    spacing = 12 if panel.settings.quadratic else max(1, len(x) // 6)
    if len(values) > 1:
        ax.fill_between(x, values.min(axis=0), values.max(axis=0), color=style.color, alpha=0.15, linewidth=0)
    [line] = ax.plot(
        x,
        values.mean(axis=0),
        color=style.color,
        linestyle="--" if hollow else style.line,
        marker=style.marker if marked else None,
        markevery=(round(place * spacing / len(panel.curves)), spacing),
        markersize=5,
        markerfacecolor="white" if hollow else style.color,
        linewidth=1.8,
        label=literal(label or curve.plain_label),
        zorder=3 if curve.kind == "admm" else 2,
    )
    return line


def _draw_published(panel: Panel, ax: Any, name: str, style: Style) -> None:
    known = panel.published.get(name)
    if known is not None:
        ax.plot(known.iterations, known.accuracy, color=style.color, zorder=4, **_PUBLISHED)


def _mark_limit(ax: Any, limit: float, style: Style, *, above: bool) -> None:
    ax.axhline(limit, color=style.color, linestyle=":", linewidth=0.9)
    ax.annotate(
        f"{limit:.3f}",
        (1.0, limit),
        xycoords=("axes fraction", "data"),
        xytext=(3, 7 if above else -7),
        textcoords="offset points",
        color=style.color,
        fontsize=8,
        va="center",
    )


def _frame(panel: Panel, ax: Any, x: Any) -> None:
    """Limits, ticks and grid."""
    ax.set_xlim(x[0], x[-1])
    ax.set_xticks(np.linspace(x[0], x[-1], 5))
    if panel.quantity == "accuracy":
        ax.set_ylim(0, 1)
        ax.set_yticks(np.linspace(0, 1, 6))
    ax.grid(alpha=0.25, linewidth=0.6)
