"""Published curves: the points of the settings files, or the whole curves where the data folder has them."""

from __future__ import annotations

import json
import os
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from byzadmm.datasets._files import search_path
from byzadmm.figures.settings import READINGS, Published, Settings
from byzadmm.results import final_accuracy

if TYPE_CHECKING:
    from byzadmm.figures.panel import Panel

__all__ = ["CURVES", "Difference", "differences", "differences_table", "published_curves"]

#: The file of whole curves, below a data folder: figure -> algorithm -> "iterations" and "accuracy".
CURVES = os.path.join("published", "curves.json")


def published_curves(settings: Settings, data_dir: Any = None) -> dict[str, Published]:
    """What to compare a panel with, by :attr:`Curve.algorithm_name`, up to the end of its runs.

    Parameters
    ----------
    settings : Settings
        Its ``[published.NAME]`` tables say which curves there are.
    data_dir : path, optional
        Where the data is: a file ``published/curves.json`` there has the whole curves of the paper's panels.

    Examples
    --------
    >>> from byzadmm import figures
    >>> from byzadmm.figures.published import published_curves
    >>> round(published_curves(figures.load_settings("fig1a"))["admm"].final, 4)
    0.9151
    """
    whole = _whole(settings.figure, data_dir) if settings.published and settings.packaged else {}
    found = {}
    length = settings.iterations or 0
    for name, known in settings.published.items():
        points = whole.get(name, (known.iterations, known.accuracy))
        if points[0][0] <= length:  # else the run is too short to be compared
            shorter = name in whole or points[0][-1] > length
            found[name] = _cut(*points, length, known.why) if shorter else known
    return found


def _whole(figure: str, data_dir: Any) -> dict[str, tuple[Any, Any]]:
    """Iterations and accuracies in the first data folder that has the file; none if it is another kind of file."""
    for folder in search_path(data_dir):
        try:
            with open(folder / CURVES, encoding="utf-8") as file:
                found = json.load(file)[figure]
            curves = {f"admm:{name}" if name.startswith("lam=") else name: found[name] for name in found}
            points = {name: (curve["iterations"], np.array(curve["accuracy"], float)) for name, curve in curves.items()}
            return {name: (k, accuracy) for name, (k, accuracy) in points.items() if len(k) == len(accuracy) > 0}
        except (OSError, ValueError, KeyError, TypeError):
            continue
    return {}


def _cut(iterations: Sequence[int], accuracy: Sequence[float], end: int, why: str) -> Published:
    """The curve up to ``end``, linear between its points, with the final accuracy that it has there."""
    last = min(end, iterations[-1])
    k = np.array([*(i for i in iterations if i < last), last])
    cut = np.interp(k, iterations, accuracy)
    return Published(float(final_accuracy(k, cut)), tuple(k.tolist()), tuple(cut.tolist()), why)


@dataclass(frozen=True)
class Difference:
    """One of our curves beside the published one.

    Attributes
    ----------
    figure, algorithm, label : str
    ours, published : float
        Final accuracies, ours averaged over the seeds.
    spread : float
        Standard deviation of ours over the seeds; 0 with one.
    along : float
        Mean absolute difference of the curves, over the published points after the start.
    points : int
        How many those are.
    why : str
        The best explanation, where there is one.
    """

    figure: str
    algorithm: str
    label: str
    ours: float
    published: float
    spread: float
    along: float
    points: int
    why: str = ""

    @property
    def final(self) -> float:
        """Ours minus published, at the end."""
        return self.ours - self.published


def differences(panel: Panel) -> list[Difference]:
    """Ours minus published for every published curve of a panel, in its first reading: the printed parameters."""
    found = []
    ours_of = next(filter(None, map(panel.settings.read, READINGS)), {})
    for name, known in panel.published.items():
        if name not in ours_of:
            continue
        curve = ours_of[name]
        values = panel.values[0, curve.name]
        finals = np.asarray(final_accuracy(panel.iterations, values))
        k = np.array(known.iterations)
        ours = np.interp(k, panel.iterations, values.mean(axis=0))
        along = np.abs(ours - known.accuracy)[k > 0]
        spread = float(finals.std(ddof=1)) if len(finals) > 1 else 0.0
        about = (panel.name, name, curve.plain_label, float(finals.mean()), known.final, spread)
        found.append(Difference(*about, float(along.mean()), len(along), known.why))
    return found


def differences_table(found: list[Difference], *, markdown: bool = False) -> str:
    """Ours beside the published numbers as text of at most 80 columns, or in Markdown."""
    head = ("figure", "algorithm", "ours", "published", "difference", "along the axis")
    rows = [
        (row.figure, row.label, f"{row.ours:.4f}" + (f" ± {row.spread:.4f}" if row.spread else ""),
         f"{row.published:.4f}", f"{row.final:+.4f}", f"{row.along:.4f}")
        for row in found
    ]  # fmt: skip
    if markdown:
        lines = ["| " + " | ".join(head) + " |", "|---|---|---:|---:|---:|---:|"]
        return "\n".join(lines + ["| " + " | ".join(row) + " |" for row in rows])
    widths = [max(len(row[i]) for row in [head, *rows]) for i in range(len(head))]

    def line(row: tuple[str, ...]) -> str:
        cells = zip(row, widths, ("<", "<", ">", ">", ">", ">"), strict=True)
        return "  ".join(f"{text:{side}{width}}" for text, width, side in cells)

    return "\n".join(line(row) for row in [head, *rows])
