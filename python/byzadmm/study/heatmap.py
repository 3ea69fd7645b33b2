"""The final values of a study as a map: two axes against each other, a panel for each value of the others."""

from __future__ import annotations

import os
from itertools import product
from typing import TYPE_CHECKING, Any

import numpy as np
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure
from matplotlib.patches import Rectangle

from byzadmm._internal.arrays import Array
from byzadmm._internal.validation import check_choice
from byzadmm.study.plan import AXES
from byzadmm.study.plots import INCHES, in_lines, literal, save

if TYPE_CHECKING:
    from byzadmm.study.study import Study

__all__ = ["draw_heatmap"]

_CELL = (0.62, 0.3)  # inches
_LETTERS = 11  # points
_WIDTH = 16.0  # inches of panels side by side, if there are several
_LABEL = 3.0  # inches, the longest line of a label


def draw_heatmap(
    study: Study,
    path: str | os.PathLike[str] | None = None,
    *,
    rows: str = "algorithm",
    columns: str = "attack",
    metric: str | None = None,
) -> Figure:
    """The picture of :meth:`byzadmm.Study.heatmap`."""
    name = study.metric(metric)
    check_choice(rows, "rows", AXES)
    check_choice(columns, "columns", AXES)
    if rows == columns:
        raise ValueError(f"columns: expected another axis than rows, got {columns!r} for both")
    others = [axis for axis in AXES if axis not in (rows, columns, "seed")]
    panels = [dict(zip(others, values, strict=True)) for values in product(*(study.axes[axis] for axis in others))]
    maps = [_values(study, name, rows, columns, fixed) for fixed in panels]
    titles = [_title(study, fixed) for fixed in panels]
    row_labels, column_labels = (
        [in_lines(study.label(axis, value), _LABEL, _LETTERS) for value in study.axes[axis]] for axis in (rows, columns)
    )
    percent = name == "accuracy"
    texts = [_texts(study, name, rows, columns, fixed, values) for fixed, values in zip(panels, maps, strict=True)]
    letters = max((len(text) for each in texts for line in each for text in line if text != "illegal"), default=1)
    # A panel has room for its columns and for its title, a column for its numbers.
    across_lines, across_letters = _size(column_labels)
    down_lines, down_letters = _size(row_labels)
    cell = max(_CELL[0], INCHES * _LETTERS * (letters + 1.5), 0.36 * across_lines)
    longest = max(len(line) for title in titles for line in title.split("\n"))
    # Labels of columns rise by 30 degrees to the right, the last one beyond its panel.
    beyond = max(0.0, 0.87 * INCHES * _LETTERS * across_letters - 0.9)
    wide = max(cell * len(column_labels) + beyond, INCHES * 12 * longest)
    across = len(study.axes[others[-1]]) if others else 1
    most = max(1, min(int(_WIDTH / (wide + 0.25)), min(across, 4) if len(panels) > 4 else len(panels)))
    across = next(n for n in range(most, 0, -1) if len(panels) % n == 0)
    down = len(panels) // across
    side = INCHES * _LETTERS * down_letters
    top = 0.25 + 0.55 * INCHES * _LETTERS * across_letters + 0.16 * (across_lines - 1)
    width = 1.4 + side + across * (wide + 0.25)
    tall = max(_CELL[1], 0.18 * down_lines + 0.06) * len(row_labels)
    height = 0.8 + top + down * (tall + 0.3 + 0.22 * max(t.count("\n") + 1 for t in titles))
    figure = Figure(figsize=(width, height), layout="constrained")
    FigureCanvasAgg(figure)
    axes = figure.subplots(down, across, squeeze=False, sharex=True, sharey=True)
    limits = _limits(maps, percent)
    for number, ax in enumerate(axes.flat):
        image = _draw(ax, maps[number], texts[number], limits)
        ax.set_title(literal(titles[number]), fontsize=12)
        first = number < across
        ax.set_yticks(range(len(row_labels)), [literal(label) for label in row_labels], fontsize=_LETTERS)
        ax.set_xticks(
            range(len(column_labels)),
            [literal(label) for label in column_labels],
            fontsize=_LETTERS,
            rotation=30,
            ha="left",
            rotation_mode="anchor",
        )
        ax.tick_params(length=0, top=first, labeltop=first, bottom=False, labelbottom=False)
    bar = figure.colorbar(image, ax=axes, shrink=min(1.0, max(0.6, 3.0 / height)), pad=0.01, aspect=30)
    bar.set_label(f"final {literal(name.replace('_', ' '))}{' in %' if percent else ''}", fontsize=_LETTERS)
    figure.suptitle(literal(in_lines(study.title, width, 13)), fontsize=13)
    remarks = []
    if any(text == "illegal" for each in texts for line in each for text in line):
        remarks.append("hatched: so many Byzantine workers are not tolerated")
    seeds = len(study.axes["seed"])
    if "seed" not in (rows, columns) and seeds > 1:
        remarks.append(f"means over {seeds} seeds")
    figure.supxlabel(in_lines("; ".join(remarks), width, _LETTERS), fontsize=_LETTERS)
    return save(figure, path)


def _values(study: Study, metric: str, rows: str, columns: str, fixed: dict[str, Any]) -> Array:
    """Means of the final values, accuracies in percent, NaN where no run has any."""
    out = np.full((len(study.axes[rows]), len(study.axes[columns])), np.nan)
    for i, row in enumerate(study.axes[rows]):
        for j, column in enumerate(study.axes[columns]):
            found = study.finals(metric, **{rows: row, columns: column}, **fixed)
            if len(found):
                out[i, j] = found.mean() * (100 if metric == "accuracy" else 1)
    return out


def _texts(study: Study, metric: str, rows: str, columns: str, fixed: dict[str, Any], values: Array) -> list[list[str]]:
    """What stands in the cells: numbers, or why there is none."""

    def text(i: int, j: int) -> str:
        if np.isfinite(values[i, j]):
            return f"{values[i, j]:.0f}" if metric == "accuracy" else f"{values[i, j]:.3g}"
        place = {rows: study.axes[rows][i], columns: study.axes[columns][j]}
        missing = [study.missing[cell].status for cell in study.cells(**place, **fixed) if cell in study.missing]
        return missing[0] if missing else "nan"

    return [[text(i, j) for j in range(values.shape[1])] for i in range(values.shape[0])]


def _limits(maps: list[Array], percent: bool) -> tuple[float, float]:
    if percent:
        return 0.0, 100.0
    found = np.concatenate([values[np.isfinite(values)] for values in maps])
    if not len(found):
        return 0.0, 1.0
    # A run that has diverged would leave one color to all others.
    low, high = float(found.min()), float(np.quantile(found, 0.9))
    return (low, high) if high > low else (low - 0.5, high + 0.5)


def _draw(ax: Any, values: Array, texts: list[list[str]], limits: tuple[float, float]) -> Any:
    image = ax.imshow(values, cmap="viridis", vmin=limits[0], vmax=limits[1], aspect="auto")
    middle = limits[0] + 0.6 * (limits[1] - limits[0])
    for i, line in enumerate(texts):
        for j, text in enumerate(line):
            known = np.isfinite(values[i, j])
            if not known:
                hatch = "////" if text == "illegal" else None
                ax.add_patch(
                    Rectangle((j - 0.5, i - 0.5), 1, 1, facecolor="0.93", edgecolor="0.6", hatch=hatch, linewidth=0)
                )
            if text != "illegal":
                color = "white" if known and values[i, j] < middle else "black"  # dark letters on bright colors
                ax.text(j, i, text, ha="center", va="center", fontsize=_LETTERS if known else 8, color=color)
    ax.spines[:].set_visible(False)
    return image


def _size(labels: list[str]) -> tuple[int, int]:
    """The most lines of a label, and the most letters of a line."""
    lines = [label.split("\n") for label in labels]
    return max(map(len, lines)), max(len(line) for each in lines for line in each)


def _title(study: Study, fixed: dict[str, Any]) -> str:
    varied = [study.label(axis, value) for axis, value in fixed.items() if len(study.axes[axis]) > 1]
    varied = varied or [study.label(axis, value) for axis, value in fixed.items() if axis == "n_byzantine"]
    return "\n".join([", ".join(varied[:2]), *varied[2:]])
