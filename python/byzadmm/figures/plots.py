"""Pictures of panels in the paper's layout, PNG and SVG; curves differ in color, line style and marker."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure

from byzadmm.catalogue import styles
from byzadmm.study.plots import literal, save

if TYPE_CHECKING:
    from byzadmm.figures.panel import Panel

__all__ = ["draw"]

_EXAMPLE_POINTS = 101


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
    figure = panel.study.heatmap() if panel.settings.heat_map else _draw_plots(panel)
    paths = [folder / f"{panel.name}.{kind}" for kind in ("png", "svg")]
    for path in paths:
        save(figure, path)
    return paths


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
    spacing = 12 if example else max(1, len(panel.iterations) // 6)
    # The example settles early: the plot shows its first iterations, and its end as dotted lines.
    shown = min(len(panel.iterations), _EXAMPLE_POINTS) if example else len(panel.iterations)
    x = panel.iterations[:shown]
    # Runs of one algorithm, as printed and tuned, share a style; a sweep and chains of rules have one per curve.
    shared = {} if panel.settings.sweep else {curve.name: curve.style for curve in panel.curves}
    styles_of = styles([shared.get(curve.name, curve.name) for curve in panel.curves])
    for place, curve in enumerate(panel.curves):
        values = panel.values[number, curve.name][:, :shown]
        style = styles_of[shared.get(curve.name, curve.name)]
        hollow = curve.printed and curve.kind == "admm" and not example
        mean = values.mean(axis=0)
        # The legend has final accuracies, as curves may coincide.
        final = panel.final_of(number, curve.name)["mean"]
        label = literal(curve.label.removesuffix(" (printed)") if example else f"{curve.label}: {final:.3f}")
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
    accuracy = panel.quantity == "accuracy"
    other = literal(panel.quantity.replace("_", " "))
    ax.set_ylabel("master's $x_0$" if example else "top-1 accuracy" if accuracy else other)
    ax.set_xlim(x[0], x[-1])
    if accuracy:
        ax.set_ylim(0, 1)
        ax.set_yticks(np.linspace(0, 1, 6))
    ax.grid(alpha=0.25, linewidth=0.6)
    # Beside the axes: curves may be anywhere in them.
    where: dict[str, Any] = {"loc": "lower right"} if example else {"loc": "upper left", "bbox_to_anchor": (1.01, 1.0)}
    ax.legend(
        title=None if example else f"algorithm: final {other}",
        title_fontsize=8,
        fontsize=8,
        framealpha=0.9,
        handlelength=3.5,
        **where,
    )
