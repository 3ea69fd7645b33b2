"""The outcome of a comparison: the result of every run, as rows, tables, pictures, a page, and files."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from dataclasses import dataclass, field
from hashlib import blake2b
from itertools import product
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from byzadmm import catalogue
from byzadmm._internal.atomic_files import prepare_folder, replacing
from byzadmm._internal.description import describe
from byzadmm._internal.frames import data_frame
from byzadmm._internal.validation import check_choice
from byzadmm.results import Result
from byzadmm.study.plan import AXES, Cell

__all__ = ["Missing", "Study"]

# Entries of study.json that are attributes.
_KEPT = ("title", "axes", "settings", "labels", "kinds", "when", "seconds", "tuned")

_PLURALS = dict(zip(AXES, ("algorithms", "attacks", "numbers of attackers", "partitions", "seeds"), strict=True))

#: Curves of which more is better; of all others less is.
HIGHER = ("accuracy", "worst_accuracy", "r2", "f1", "auc", "precision", "recall")

#: Curves about the models of workers or nodes, not about how well they do.
SPREADS = ("consensus_gap", "consensus_variance", "consensus_error", "distance")


class Missing(NamedTuple):
    """Why a cell has no result.

    ``status`` is "illegal" (the algorithm does not tolerate so many Byzantine workers), "failed" (an error ended the
    run) or "missing" (the study was interrupted); ``reason`` is the error's text.
    """

    status: str
    reason: str

    @property
    def words(self) -> str:
        """The reason, without the kind of an error whose text says it all."""
        return self.reason.removeprefix("ValueError: ").removeprefix("TypeError: ")


@dataclass
class Study:
    """The runs of a comparison, of :func:`byzadmm.compare`.

    Attributes
    ----------
    title : str
    axes : dict
        "algorithm", "attack", "n_byzantine", "partition", "seed" -> values in order.
    settings : dict
        What all runs have in common.
    results : dict
        Cell -> Result (without the workers' models).
    missing : dict
        Cell -> Missing.
    labels : dict
        Axis -> name -> what it is called in pictures.
    kinds : dict
        Algorithm -> its name in the catalogue, which has its color and line.
    ideal : tuple of str
        Algorithms that exclude the Byzantine workers.
    when : str
        Date and time at which the comparison began.
    seconds : float
        Time that the comparison took.
    tuned : dict
        Algorithm -> what a search found for it.
    files : dict
        Cell -> name of its file in a folder that :func:`byzadmm.compare` keeps.

    Examples
    --------
    >>> import byzadmm
    >>> study = byzadmm.compare("digits", algorithms=["ideal", "sgd", "admm"], attacks="sign-flip", seeds=2,
    ...                         iterations=500)
    >>> [row["algorithm"] for row in study.rows() if row["final_accuracy"] > 0.85 and row["seed"] == 0]
    ['ideal', 'admm']
    """

    title: str
    axes: dict[str, list[Any]]
    settings: dict[str, Any] = field(default_factory=dict)
    results: dict[Cell, Result] = field(default_factory=dict)
    missing: dict[Cell, Missing] = field(default_factory=dict)
    labels: dict[str, dict[str, str]] = field(default_factory=dict)
    kinds: dict[str, str] = field(default_factory=dict)
    ideal: tuple[str, ...] = ()
    when: str = ""
    seconds: float = 0.0
    tuned: dict[str, dict[str, float]] = field(default_factory=dict)
    files: dict[Cell, str] = field(default_factory=dict)

    def cells(self, **fixed: Any) -> list[Cell]:
        """The cells in order, those with these values of some axes, as in ``cells(attack="sign-flip", seed=0)``."""
        for axis, value in fixed.items():
            if value not in self.axes[check_choice(axis, "axis", AXES)]:
                known = ", ".join(map(str, self.axes[axis]))
                raise ValueError(f"{axis}: expected one of {known}; got {value!r}")
        places = product(*([fixed[axis]] if axis in fixed else self.axes[axis] for axis in AXES))
        return [cell for cell in map(Cell._make, places) if cell in self.results or cell in self.missing]

    def label(self, axis: str, name: Any) -> str:
        """What a value of an axis is called in tables and pictures."""
        if axis == "n_byzantine":
            return f"{name} of {self.settings.get('n_workers', '?')} Byzantine"
        return self.labels.get(axis, {}).get(name, f"seed {name}" if axis == "seed" else str(name))

    def metrics(self) -> list[str]:
        """The curves that some run has, accuracy first."""
        found: dict[str, None] = {}
        for result in self.results.values():
            for name in result.metrics:
                if name not in found and _has(result, name):
                    found[name] = None
        return list(found)

    def metric(self, given: str | None = None) -> str:
        """``given``, checked; by default accuracy, loss on the test set, loss, or the first of a custom loss's own."""
        if given is not None and any(_has(result, given) for result in self.results.values()):
            return given
        found = self.metrics() or ["accuracy"]
        if given is not None:
            return check_choice(given, "metric", found)
        own = [name for name in found if name not in SPREADS]
        return next((name for name in ("accuracy", "test_loss", "loss", *own) if name in found), found[0])

    def final(self, cell: Cell, metric: str | None = None) -> float:
        """Mean of a curve over the last fifth of the run, NaN where there is no result."""
        result = self.results.get(cell)
        if result is None:
            return float("nan")
        if metric not in result.metrics:  # the usual one, or one that other runs have
            metric = self.metric(metric)
        curve = result.metrics.get(metric)
        return float("nan") if curve is None else result.final(curve)

    def finals(self, metric: str | None = None, **fixed: Any) -> np.ndarray[Any, np.dtype[np.float64]]:
        """:meth:`final` of the cells with these values of some axes, in their order; those without a result are out."""
        name = self.metric() if metric is None else metric
        return np.array([self.final(cell, name) for cell in self.cells(**fixed) if cell in self.results])

    def rows(self) -> list[dict[str, Any]]:
        """One row per run, the full cross product: its place, its final accuracy, and the end of every curve.

        ``status`` is "done", or one of :class:`Missing` with its ``reason``. ``final_accuracy`` is the mean over the
        last fifth of the run; "accuracy", "loss" and so on are the values at its end. In a study with delays "time" and
        "arrivals" are simulated time and messages received at its end; in one on a graph "graph" says which.
        """
        names = self.metrics()
        clocked = any(result.time is not None for result in self.results.values())
        rows = []
        for cell in self.cells():
            result, why = self.results.get(cell), self.missing.get(cell, Missing("done", ""))
            row: dict[str, Any] = {**cell._asdict(), "status": why.status, "reason": why.reason}
            row["final_accuracy"] = float("nan") if result is None else result.final_accuracy()
            for name in names:
                curve = None if result is None else result.metrics.get(name)
                row.setdefault(name, float("nan") if curve is None else float(curve[-1]))  # no axis by a curve's name
            if "graph" in self.settings:
                row["graph"] = self.settings["graph"]
            row["iterations"] = 0 if result is None else int(result.iterations[-1])
            if clocked:
                row["time"] = float("nan") if result is None or result.time is None else float(result.time[-1])
                row["arrivals"] = 0 if result is None or result.arrivals is None else int(result.arrivals[-1])
            row["eliminated"] = 0 if result is None else len(result.eliminated)
            row["seconds"] = float("nan") if result is None else result.seconds
            rows.append(row)
        return rows

    def frame(self, *, curves: bool = False) -> Any:
        """:meth:`rows` as a pandas frame; with ``curves``, one row per run and evaluation. Needs pandas."""
        if not curves:
            return data_frame(self.rows())
        done = [(cell, self.results[cell]) for cell in self.cells() if cell in self.results]
        return data_frame([cell._asdict() | row | cell._asdict() for cell, result in done for row in result.table()])

    def table(self, *, reference: str | None = None, metric: str | None = None) -> str:
        """The means over the seeds as text of at most 80 columns, algorithms by attacks.

        With several seeds, a second table has the differences to a reference, paired over the seeds, with their 95%
        confidence intervals.

        Parameters
        ----------
        reference : str, optional
            An algorithm by name; by default the ideal one if there is one, else the first.
        metric : str, optional
            By default accuracy.
        """
        from byzadmm.study.table import text_table

        return text_table(self, reference, metric)

    def plot(
        self, path: str | os.PathLike[str] | None = None, *, metric: str | None = None, x: str | None = None
    ) -> Any:
        """Draw the curves, mean and range over the seeds, one panel per attack; rows of panels for the other axes.

        Parameters
        ----------
        path : path, optional
            PNG, SVG or PDF by its ending.
        metric : str, optional
            By default accuracy.
        x : "iterations", "bytes", "seconds", "time" or "arrivals"
            "bytes": sent and received by all workers that take part; "seconds": spent in iterations, by this machine;
            "time" and "arrivals", of runs with delays: simulated time, which is then the default, and messages that
            arrived.

        Returns
        -------
        matplotlib.figure.Figure
        """
        from byzadmm.study.plots import draw_curves

        return draw_curves(self, path, metric=metric, x=x)

    def heatmap(
        self,
        path: str | os.PathLike[str] | None = None,
        *,
        rows: str = "algorithm",
        columns: str = "attack",
        metric: str | None = None,
    ) -> Any:
        """Draw the final values, two axes against each other, means over the seeds; a panel for each of the others.

        Parameters
        ----------
        path : path, optional
            PNG, SVG or PDF by its ending.
        rows, columns : str
            Axes.
        metric : str, optional
            By default accuracy.

        Returns
        -------
        matplotlib.figure.Figure
        """
        from byzadmm.study.heatmap import draw_heatmap

        return draw_heatmap(self, path, rows=rows, columns=columns, metric=metric)

    def report(self, path: str | os.PathLike[str]) -> None:
        """Write one self-contained HTML page: settings, table, curves to switch on and off, heat map, eliminations."""
        from byzadmm.study.report import write_report

        write_report(path, self.record())

    def record(self) -> dict[str, Any]:
        """Everything as plain values: what the page of :meth:`report` shows."""
        from byzadmm.study.record import record_of

        return record_of(self)

    def styles(self) -> dict[str, catalogue.Style]:
        """Color, line and marker of every algorithm: those of the catalogue for the first of a kind."""
        names = self.axes["algorithm"]
        kinds = [self.kinds.get(name, name) for name in names]
        # A label may be another algorithm's name in the catalogue; no such name ends with a space.
        keys = [kind if kinds.index(kind) == place else f"{names[place]} " for place, kind in enumerate(kinds)]
        looks = catalogue.styles(keys)
        return {name: looks[key] for name, key in zip(names, keys, strict=True)}

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the study to a folder: ``study.json``, and a file of :meth:`Result.save` per run in ``results``."""
        folder = Path(path)
        prepare_folder(folder / "results", "path")
        entries = []
        for cell, result in self.results.items():
            # By its contents: a study that was in the folder is whole until study.json is another one.
            name = self.files.get(cell) or f"{blake2b(repr(describe(result)).encode(), digest_size=16).hexdigest()}.npz"
            if not (folder / "results" / name).exists():
                result.save(folder / "results" / name)
            entries.append([*cell, name])
        about = {
            "byzadmm": "study",
            **{name: getattr(self, name) for name in _KEPT},
            "ideal": list(self.ideal),
            "results": entries,
            "missing": [[*cell, *why] for cell, why in self.missing.items()],
        }
        with replacing(folder / "study.json") as file:
            file.write((json.dumps(about, indent=1, default=describe) + "\n").encode())

    @classmethod
    def load(cls, path: str | os.PathLike[str]) -> Study:
        """Read what :meth:`save` wrote."""
        folder = Path(path)
        try:
            about = json.loads((folder / "study.json").read_text(encoding="utf-8"))
            if about["byzadmm"] != "study":
                raise ValueError("another kind of file")
            made = cls(
                **{name: about[name] for name in _KEPT},
                ideal=tuple(about["ideal"]),
                missing={Cell(*entry[:5]): Missing(*entry[5:]) for entry in about["missing"]},
            )
            wanted = {Cell(*entry[:5]): folder / "results" / Path(entry[5]).name for entry in about["results"]}
            for cell in (*wanted, *made.missing):
                for axis, value in cell._asdict().items():
                    if value not in made.axes[axis]:
                        raise ValueError(f"{axis} {value!r} of a run is not among its axes")
        except (AttributeError, KeyError, TypeError, ValueError, RecursionError) as error:
            raise ValueError(f"{folder / 'study.json'}: not a study of byzadmm ({error})") from error
        loaded: dict[Path, Result] = {}
        for cell, file in wanted.items():
            if file not in loaded:
                loaded[file] = Result.load(file)
            made.results[cell] = loaded[file]
        return made

    def __repr__(self) -> str:
        sizes: Mapping[str, int] = {axis: len(values) for axis, values in self.axes.items()}
        shape = " x ".join(f"{count} {_PLURALS[axis]}" for axis, count in sizes.items() if count > 1)
        done = f"{len(self.results)} of {len(self.results) + len(self.missing)} runs"
        return f"<Study {self.title}: {shape or 'one run'}, {done}>"


def _has(result: Result, metric: str) -> bool:
    return metric in result.metrics and not np.all(np.isnan(result.metrics[metric]))
