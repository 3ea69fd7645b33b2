"""One panel: its settings and the study of its runs, as curves, rows, tables and files."""

from __future__ import annotations

import csv
import io
import json
import math
import textwrap
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np

from byzadmm import __version__
from byzadmm._internal.arrays import Array
from byzadmm.figures._files import write_text
from byzadmm.figures.settings import READINGS, Case, Curve, Published, Settings
from byzadmm.results import Result, final_accuracy
from byzadmm.study import Cell, Study
from byzadmm.study.places import as_steps, one_grid, places_of

__all__ = ["HeatMap", "Panel"]

_LABEL_WIDTH, _WIDTH = 50, 80  # of a table's first column, of a table
_PLACES = 201  # of curves by simulated time, at most


@dataclass
class Panel:
    """The curves of one panel.

    Attributes
    ----------
    settings : Settings
    study : Study
        Its runs.
    quick : bool
        Whether it is a first look, not the paper's experiment.
    published : dict
        Published curves to compare with, by the algorithm's name.
    plots : list of str
        One title per plot: the attacks of the panel, for every partition.
    curves : list of Curve
    axis : "iterations" or, with delays, "time"
    places : (t,) array
        Where on that axis the curves have values.
    values : dict
        (plot, curve) -> (seeds, t): accuracy, another curve of results without any, or ``x0`` of the example.
    seeds : int
    seconds : float
        Time spent in iterations, over all runs.
    """

    settings: Settings
    study: Study
    quick: bool = False
    published: Mapping[str, Published] = field(default_factory=dict)

    @property
    def name(self) -> str:
        return self.settings.name

    @cached_property
    def plots(self) -> list[str]:
        return self.settings.plot_titles()

    @cached_property
    def _cases(self) -> tuple[Case, ...]:
        return self.settings.cases()

    @cached_property
    def curves(self) -> list[Curve]:
        return list(self.settings.all_curves())

    @cached_property
    def iterations(self) -> Array:
        return next(iter(self.study.results.values())).iterations

    @cached_property
    def axis(self) -> str:
        return "iterations" if self.settings.delays is None else "time"

    @cached_property
    def places(self) -> Array:
        if self.axis == "iterations":
            return self.iterations
        grid = one_grid([places_of(result, self.axis) for result in self.study.results.values()], to_the_last=True)
        return grid if len(grid) <= _PLACES else np.linspace(grid[0], grid[-1], _PLACES)

    @cached_property
    def values(self) -> dict[tuple[int, str], Array]:
        found = {
            (plot, curve.name): [self._curve(self.study.results[cell]) for cell in cells]
            for plot in range(len(self.plots))
            for curve in self.curves
            if self.settings.algorithm(curve, self._cases[plot]) is not None
            and (cells := [cell for cell in self._cells(plot, curve) if cell in self.study.results])
        }
        return {key: np.array(curves) for key, curves in found.items()}

    @property
    def seeds(self) -> int:
        return max(len(curves) for curves in self.values.values())

    @property
    def seconds(self) -> float:
        return sum({id(result): result.seconds for result in self.study.results.values()}.values())

    def _cells(self, plot: int, curve: Curve) -> list[Cell]:
        return [self.settings.cell(self.study.axes, plot, curve, seed) for seed in self.study.axes["seed"]]

    def _curve(self, result: Result) -> Array:
        if self.settings.quadratic and result.trajectory:
            x0: Array = result.trajectory["x0"][:, 0]
            return x0
        curve: Array = result.metrics[self.quantity]
        if self.axis == "iterations":
            return curve
        return as_steps(places_of(result, self.axis), curve, self.places)

    @property
    def quantity(self) -> str:
        """What the curves show."""
        return "x0" if self.settings.quadratic else self.study.metric()

    def about_plots(self) -> list[dict[str, Any]]:
        """What distinguishes each plot from the others."""
        if len(self.settings.partitions) == 1:
            return [{"attack": title} for title in self.plots]
        return [
            {"attack": title, "partition": case.partition} for case, title in zip(self._cases, self.plots, strict=True)
        ]

    def rows(self) -> list[dict[str, Any]]:
        """One row per plot, curve and evaluation: mean, lowest and highest over the seeds."""
        about = self.about_plots()
        return [
            {
                "figure": self.name,
                **about[plot],
                "algorithm": name,
                **({"iteration": int(place)} if self.axis == "iterations" else {self.axis: float(place)}),
                "mean": float(np.mean(column)),
                "low": float(np.min(column)),
                "high": float(np.max(column)),
            }
            for (plot, name), values in self.values.items()
            for place, column in zip(self.places, values.T, strict=True)
        ]

    def ends(self, plot: int, name: str, metric: str | None = None) -> Array:
        """Final value of a curve, or its last ``x0``, for each seed; ``metric`` if not of what is drawn."""
        curve = next(curve for curve in self.curves if curve.name == name)
        if self.settings.delays is None and curve.iterations is None and metric is None:
            values = self.values[plot, name]
            ends: Array = values[:, -1] if self.settings.quadratic else final_accuracy(self.iterations, values)
            return ends
        done = [cell for cell in self._cells(plot, curve) if cell in self.study.results]  # at places of their own
        return np.array([self.study.final(cell, metric or self.quantity) for cell in done])

    def final_of(self, plot: int, name: str) -> dict[str, float]:
        """Final accuracy of a curve, or its last ``x0``: mean, lowest and highest over the seeds."""
        ends = self.ends(plot, name)
        return {"mean": float(ends.mean()), "low": float(ends.min()), "high": float(ends.max())}

    def finals(self) -> list[dict[str, Any]]:
        """One row per plot and curve."""
        about = self.about_plots()
        return [
            {"figure": self.name, **about[plot], "algorithm": name, **self.final_of(plot, name)}
            for plot, name in self.values
        ]

    def published_final(self, name: str) -> float | None:
        """Published final accuracy of an algorithm, if its curve is as long as our runs."""
        known = self.published.get(name)
        return None if known is None or known.iterations[-1] < self.iterations[-1] else known.final

    def by_reading(self) -> list[tuple[str, dict[str, str]]]:
        """Every algorithm of a panel with readings: its label, and its final accuracy published and in each of them."""
        readings = {reading: self.settings.read(reading) for reading in self.settings.readings()}
        rows = {name: curve.plain_label for curves in readings.values() for name, curve in curves.items()}
        found = []
        for name, label in rows.items():
            published = self.published_final(name)
            cells = {} if published is None else {"published": f"{published:.4f}"}
            for reading, curves in readings.items():
                if name in curves:
                    finals = self.ends(0, curves[name].name)
                    spread = f" ± {np.std(finals, ddof=1):.4f}" if len(finals) > 1 else ""
                    cells[reading] = f"{np.mean(finals):.4f}{spread}"
            found.append((label, cells))
        return found

    def table(self, *, markdown: bool = False) -> str:
        """The final accuracies: a table per plot as text, or in Markdown algorithms by readings."""
        if markdown:
            names = {"published": "published", **{name: READINGS[name] for name in self.settings.readings()}}
            lines = ["| algorithm | " + " | ".join(names.values()) + " |", "|---|" + "---:|" * len(names)]
            rows = ((label, *(cells.get(name, "-") for name in names)) for label, cells in self.by_reading())
            return "\n".join([*lines, *("| " + " | ".join(row) + " |" for row in rows)])
        width = max(len(curve.label[:_LABEL_WIDTH]) for curve in self.curves)
        shown = ("mean", "low", "high") if self.seeds > 1 else ("mean",)
        parts = []
        for plot, title in enumerate(self.plots):
            lines = textwrap.wrap(f"{self.name}: final {self.quantity.replace('_', ' ')}, {title}", _WIDTH)
            lines += [" " * width + "".join(f"{column:>8}" for column in shown)] if self.seeds > 1 else []
            for curve in self.curves:
                found = self.final_of(plot, curve.name)
                numbers = "".join(f"{_number(found[key]):>8}" for key in shown)
                lines.append(f"{curve.label[:_LABEL_WIDTH]:<{width}}{numbers}")
            parts.append("\n".join(lines))
        return "\n\n".join(parts)

    def write(self, folder: Path) -> list[Path]:
        """Write PNG, SVG, CSV and JSON, without matplotlib CSV and JSON only; the paths of the files."""
        text = io.StringIO()
        rows = self.rows()
        writer = csv.DictWriter(text, list(rows[0]), lineterminator="\n")
        writer.writeheader()
        writer.writerows(rows)
        lengths = {curve.name: curve.iterations for curve in self.curves if curve.iterations is not None}
        record = {
            "figure": self.name,
            "title": self.settings.title,
            "version": __version__,
            "quick": self.quick,
            "seeds": self.seeds,
            "seconds": self.seconds,
            "quantity": self.quantity,
            self.axis: self.places.tolist(),
            "algorithms": {curve.name: curve.algorithm.describe() for curve in self.curves},
            **({"lengths": lengths} if lengths else {}),
            "plots": [
                about | {"curves": {n: _listed(values) for (p, n), values in self.values.items() if p == number}}
                for number, about in enumerate(self.about_plots())
            ],
        }
        paths = [
            write_text(folder / f"{self.name}.csv", text.getvalue()),
            write_text(folder / f"{self.name}.json", json.dumps(record, allow_nan=False) + "\n"),
        ]
        try:
            from byzadmm.figures.plots import draw
        except ImportError:  # pragma: no cover - the plot extra is not installed
            return paths
        return paths + draw(self, folder)


@dataclass
class HeatMap(Panel):
    """A panel of maps, one per number of Byzantine workers and partition: final accuracies, algorithms by attacks."""

    def maps(self) -> list[tuple[int, str]]:
        """Number of Byzantine workers and partition of every map."""
        return list(self.settings.heat_map)

    def rows_shown(self) -> list[Curve]:
        """The rows of a map: all algorithms but Ideal SGD, with which they are compared."""
        return [curve for curve in self.curves if curve.kind != "ideal"]

    def attacks_shown(self) -> list[str]:
        """The columns of a map."""
        return self.plots[: len(self.settings.attacks)]

    def final(self, number: int, attack: int, curve: Curve) -> float | None:
        """Final accuracy in map ``number``; None where nothing was run."""
        place = number * len(self.settings.attacks) + attack
        return float(np.mean(self.ends(place, curve.name))) if (place, curve.name) in self.values else None

    def ideal(self, number: int) -> float | None:
        """Final accuracy of Ideal SGD, if the file has it."""
        found = (self.final(number, 0, curve) for curve in self.curves if curve.kind == "ideal")
        return next(found, None)

    def legal(self, number: int, curve: Curve, attack: int = 0) -> bool:
        """Whether the algorithm tolerates as many Byzantine workers as map ``number`` has, under this attack."""
        place = number * len(self.settings.attacks) + attack
        return self.settings.algorithm(curve, self._cases[place]) is not None

    def about_plots(self) -> list[dict[str, Any]]:
        return [
            {"n_byzantine": case.n_byzantine, "partition": case.partition, "attack": title}
            for case, title in zip(self._cases, self.plots, strict=True)
        ]

    def rows(self) -> list[dict[str, Any]]:
        """One row per cell: final accuracy, mean, lowest and highest over the seeds; empty where ``f`` is illegal."""
        rows = []
        for number, about in enumerate(self.about_plots()):
            for curve in self.curves:
                found = self.values.get((number, curve.name))
                if found is None and curve.kind == "ideal":
                    continue
                finals = np.array([np.nan]) if found is None else self.ends(number, curve.name)
                cell = {"mean": finals.mean(), "low": finals.min(), "high": finals.max()}
                plain = {key: "" if found is None else float(value) for key, value in cell.items()}
                place, attack = divmod(number, len(self.settings.attacks))
                legal = self.legal(place, curve, attack)
                row = {"figure": self.name} | about | {"algorithm": curve.name, "legal": legal} | plain
                if self.settings.published_finals:
                    known = self.published_cell(attack, curve)
                    row["published"] = "" if known is None else known
                rows.append(row)
        return rows

    def finals(self) -> list[dict[str, Any]]:
        """The rows of what was run."""
        return [row for row in self.rows() if row["mean"] != ""]

    def table(self, *, markdown: bool = False) -> str:
        """Every map as text, accuracies in percent: columns are attacks, named above them."""
        parts = []
        for number, (q, partition) in enumerate(self.maps()):
            ideal = self.ideal(number)
            head = f"q = {q}, {self.settings.words(partition)}"
            head += "" if ideal is None else f"; Ideal SGD {self._text(ideal)}"
            head += "; ours/published" if self.settings.published_finals else ""
            names = [curve.label for curve in self.rows_shown()]
            cells = [
                [self.cell(number, attack, curve) for attack in range(len(self.attacks_shown()))]
                for curve in self.rows_shown()
            ]
            if markdown:
                lines = [f"**{head}**", "", "| | " + " | ".join(self.attacks_shown()) + " |"]
                lines += ["|---|" + "---:|" * len(self.attacks_shown())]
                lines += [f"| {name} | " + " | ".join(row) + " |" for name, row in zip(names, cells, strict=True)]
            else:
                width = max(map(len, names))
                # Names of attacks in full where there is room, else as much of them as fits.
                column = max(6, min(max(map(len, self.attacks_shown())) + 2, (80 - width) // len(self.attacks_shown())))
                lines = [f"{self.name}: final {self.quantity.replace('_', ' ')}{self.unit}, {head}"]
                lines += [" " * width + "".join(f"{name[: column - 1]:>{column}}" for name in self.attacks_shown())]
                lines += [
                    f"{name:<{width}}" + "".join(f"{cell:>{column}}" for cell in row)
                    for name, row in zip(names, cells, strict=True)
                ]
            parts.append("\n".join(lines))
        return "\n\n".join(parts)

    def cell(self, number: int, attack: int, curve: Curve) -> str:
        """The final value; ``-`` where the rule does not tolerate so many, ``?`` for a run that is not finished."""
        value = self.final(number, attack, curve)
        if value is not None:
            known = self.published_cell(attack, curve)
            return self._text(value) + ("" if known is None else f"/{self._text(known)}")
        return "?" if self.legal(number, curve, attack) else "-"

    def published_cell(self, attack: int, curve: Curve) -> float | None:
        """Published final accuracy, if there is one; the same for every map."""
        row = self.settings.published_finals.get(curve.algorithm_name)
        return None if row is None or math.isnan(row[attack]) else row[attack]

    def _text(self, value: float) -> str:
        digits = 1 if self.settings.published_finals else 0
        return f"{100 * value:.{digits}f}" if self.unit else f"{value:.3g}"

    @property
    def unit(self) -> str:
        """Of the numbers in tables: accuracies are in percent."""
        return " in %" if self.quantity == "accuracy" else ""


def _number(value: float) -> str:
    """A number in at most seven characters."""
    return f"{value:.3f}" if abs(value) < 1000 else f"{value:.1e}"


def _listed(values: Array) -> list[list[float | None]]:
    """As lists, with None for what is not finite."""
    return [[value if math.isfinite(value) else None for value in row] for row in values.tolist()]
