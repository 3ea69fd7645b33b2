"""Panels in, curves out: every run of every chosen panel in one go, each panel written as soon as it is complete."""

from __future__ import annotations

import csv
import io
import json
import os
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np

from byzadmm import __version__, datasets, simulate_many
from byzadmm._internal.arrays import Array
from byzadmm._internal.atomic_files import prepare, prepare_folder
from byzadmm._internal.validation import check_int
from byzadmm.attacks import Attack
from byzadmm.datasets import Dataset
from byzadmm.figures._files import write_text
from byzadmm.figures.claims import Claim, check_claims, claims_table
from byzadmm.figures.settings import ATTACKS, FIGURES, Curve, Settings, load_settings, make_parts
from byzadmm.results import Result, final_accuracy

__all__ = ["HeatMap", "Panel", "Report", "reproduce", "runs_of"]

_LABEL_WIDTH = 50  # of a table's first column
QUICK = "quick look: fewer iterations and one seed, not the paper's experiment"


@dataclass
class Panel:
    """The curves of one panel.

    Attributes
    ----------
    settings : Settings
    plots : list of str
        One title per plot: the attacks of the panel.
    iterations : (t,) int64
    values : dict
        (plot, curve) -> (seeds, t): accuracy, or ``x0`` of the example.
    seconds : float
        Time spent in iterations, over all runs.
    """

    settings: Settings
    plots: list[str]
    curves: list[Curve]
    iterations: Array
    values: dict[tuple[int, str], Array]
    seeds: int
    seconds: float
    quick: bool = False

    @property
    def name(self) -> str:
        return self.settings.name

    @property
    def quantity(self) -> str:
        """What the curves show."""
        return "x0" if self.settings.quadratic else "accuracy"

    def about_plots(self) -> list[dict[str, Any]]:
        """What tells one plot from the others."""
        return [{"attack": title} for title in self.plots]

    def rows(self) -> list[dict[str, Any]]:
        """One row per plot, curve and evaluation: mean, lowest and highest over the seeds."""
        return [
            {
                "figure": self.name,
                "attack": self.plots[plot],
                "algorithm": name,
                "iteration": int(iteration),
                "mean": float(np.mean(column)),
                "low": float(np.min(column)),
                "high": float(np.max(column)),
            }
            for (plot, name), values in self.values.items()
            for iteration, column in zip(self.iterations, values.T, strict=True)
        ]

    def final_of(self, plot: int, name: str) -> dict[str, float]:
        """Final accuracy of a curve, or its last ``x0``: mean, lowest and highest over the seeds."""
        values = self.values[plot, name]
        ends = values[:, -1] if self.settings.quadratic else final_accuracy(self.iterations, values)
        return {"mean": float(ends.mean()), "low": float(ends.min()), "high": float(ends.max())}

    def finals(self) -> list[dict[str, Any]]:
        """One row per plot and curve."""
        return [
            {"figure": self.name, "attack": self.plots[plot], "algorithm": name} | self.final_of(plot, name)
            for plot, name in self.values
        ]

    def table(self) -> str:
        """The finals as text, a table per plot."""
        width = max(len(curve.label[:_LABEL_WIDTH]) for curve in self.curves)
        shown = ("mean", "low", "high") if self.seeds > 1 else ("mean",)
        parts = []
        for plot, title in enumerate(self.plots):
            lines = [f"{self.name}: final {self.quantity}, {title}"]
            lines += [" " * width + "".join(f"{column:>8}" for column in shown)] if self.seeds > 1 else []
            for curve in self.curves:
                found = self.final_of(plot, curve.name)
                lines.append(f"{curve.label[:_LABEL_WIDTH]:<{width}}" + "".join(f"{found[key]:8.3f}" for key in shown))
            parts.append("\n".join(lines))
        return "\n\n".join(parts)

    def write(self, folder: Path) -> list[Path]:
        """PNG, SVG, CSV and JSON; without matplotlib the numbers only."""
        text = io.StringIO()
        rows = self.rows()
        writer = csv.DictWriter(text, list(rows[0]), lineterminator="\n")
        writer.writeheader()
        writer.writerows(rows)
        record = {
            "figure": self.name,
            "title": self.settings.title,
            "version": __version__,
            "quick": self.quick,
            "seeds": self.seeds,
            "seconds": self.seconds,
            "quantity": self.quantity,
            "iterations": self.iterations.tolist(),
            "algorithms": {curve.name: curve.algorithm.describe() for curve in self.curves},
            "plots": [
                about | {"curves": {n: values.tolist() for (p, n), values in self.values.items() if p == number}}
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
        """The rows of a map; Ideal SGD is not one of them, but what they are measured by."""
        return [curve for curve in self.curves if curve.kind != "ideal"]

    def attacks_shown(self) -> list[str]:
        """The columns of a map."""
        return self.plots[: len(self.settings.attacks)]

    def final(self, number: int, attack: int, curve: Curve) -> float | None:
        """Final accuracy in map ``number``; None where nothing was run."""
        values = self.values.get((number * len(self.settings.attacks) + attack, curve.name))
        return None if values is None else float(np.mean(final_accuracy(self.iterations, values)))

    def ideal(self, number: int) -> float | None:
        """Final accuracy of Ideal SGD, if the file has it."""
        found = (self.final(number, 0, curve) for curve in self.curves if curve.kind == "ideal")
        return next(found, None)

    def legal(self, number: int, curve: Curve) -> bool:
        """Whether the rule bears as many liars as that map has."""
        return self.settings.algorithm(curve, self.settings.cases()[number * len(self.settings.attacks)]) is not None

    def about_plots(self) -> list[dict[str, Any]]:
        return [
            {"n_byzantine": case.n_byzantine, "partition": case.partition, "attack": title}
            for case, title in zip(self.settings.cases(), self.plots, strict=True)
        ]

    def rows(self) -> list[dict[str, Any]]:
        """One row per cell: final accuracy, mean, lowest and highest over the seeds; empty where ``f`` is illegal."""
        rows = []
        for number, about in enumerate(self.about_plots()):
            for curve in self.curves:
                found = self.values.get((number, curve.name))
                if found is None and curve.kind == "ideal":
                    continue
                finals = np.array([np.nan]) if found is None else final_accuracy(self.iterations, found)
                cell = {"mean": finals.mean(), "low": finals.min(), "high": finals.max()}
                plain = {key: "" if found is None else float(value) for key, value in cell.items()}
                legal = self.legal(number // len(self.settings.attacks), curve)
                rows.append({"figure": self.name} | about | {"algorithm": curve.name, "legal": legal} | plain)
        return rows

    def finals(self) -> list[dict[str, Any]]:
        """The rows of what was run."""
        return [row for row in self.rows() if row["mean"] != ""]

    def table(self, *, markdown: bool = False) -> str:
        """Every map as text, in percent: columns are attacks, named above them."""
        parts = []
        for number, (q, partition) in enumerate(self.maps()):
            ideal = self.ideal(number)
            head = f"q = {q}, {self.settings.words(partition)}"
            head += "" if ideal is None else f"; Ideal SGD {100 * ideal:.0f}"
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
                lines = [f"{self.name}: final accuracy in %, {head}"]
                lines += [" " * width + "".join(f"{name[: column - 1]:>{column}}" for name in self.attacks_shown())]
                lines += [
                    f"{name:<{width}}" + "".join(f"{cell:>{column}}" for cell in row)
                    for name, row in zip(names, cells, strict=True)
                ]
            parts.append("\n".join(lines))
        return "\n\n".join(parts)

    def cell(self, number: int, attack: int, curve: Curve) -> str:
        """Percent; ``-`` where the rule does not bear so many liars, ``?`` where the run was not finished."""
        value = self.final(number, attack, curve)
        if value is not None:
            return f"{100 * value:.0f}"
        return "?" if self.legal(number, curve) else "-"


@dataclass
class Report:
    """What a reproduction gave.

    Attributes
    ----------
    panels : dict
        Name -> Panel, those that were finished.
    claims : list of Claim
    paths : list of Path
        Every file that was written.
    failed : dict
        Name -> why there is no such panel.
    """

    seeds: int
    quick: bool
    panels: dict[str, Panel] = field(default_factory=dict)
    claims: list[Claim] = field(default_factory=list)
    paths: list[Path] = field(default_factory=list)
    failed: dict[str, str] = field(default_factory=dict)
    seconds: float = 0.0
    interrupted: bool = False

    def write(self, name: str, write: Callable[[Path], list[Path]], folder: Path) -> None:
        """Note the files that ``write`` makes in a folder, or that it could not."""
        try:
            self.paths += write(folder)
        except OSError as error:
            self.failed[name] = f"could not be written: {error}"

    def table(self) -> str:
        """The claims, and the accuracies of panels about which there are none, as text of at most 80 columns."""
        text = f"({QUICK})\n" if self.quick else ""
        judged = {claim.figure for claim in self.claims}
        tables = [panel.table() for name, panel in self.panels.items() if name not in judged]
        text += "\n\n".join(([claims_table(self.claims)] if self.claims or not tables else []) + tables)
        return text + "".join(f"\n{name}: not finished: {why}" for name, why in self.failed.items())


def reproduce(
    names: Sequence[str | Path] | str = "all",
    *,
    seeds: int = 3,
    quick: bool = False,
    out: str | os.PathLike[str] = "figures",
    data_dir: str | os.PathLike[str] | None = None,
    progress: bool | Callable[[int, int], None] = True,
) -> Report:
    """Run panels of the paper (or your own), draw them, and check what the paper says about them.

    Parameters
    ----------
    names : "all", or a list of panels and settings files
    seeds : int
        Runs per algorithm; data are dealt out anew for each. A settings file may ask for fewer.
    quick : bool
        One seed and a fifth of the iterations, for a first look.
    out : path
        Folder for ``NAME.png``, ``.svg``, ``.csv``, ``.json`` of each panel, and ``claims.json``, ``claims.md``.
    data_dir : path, optional
        Where the data is.
    progress : bool or callable
        True: a progress bar; a callable gets (iterations done, total).

    Returns
    -------
    Report
        Also after Ctrl-C: with the panels that were finished, and ``interrupted`` set.

    Examples
    --------
    >>> import tempfile
    >>> from byzadmm import figures
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     report = figures.reproduce(["example"], quick=True, out=folder, progress=False)
    >>> round(float(report.panels["example"].values[0, "admm"][0, -1]), 3)
    0.375

    References
    ----------
    Section "Numerical Experiments" of the paper, Figures ``fig1`` to ``fig5`` and ``fig_ex``.
    """
    chosen = [names] if isinstance(names, (str, Path)) and names != "all" else FIGURES if names == "all" else names
    panels = [
        load_settings(name) for name in dict.fromkeys(n for c in chosen for n in (FIGURES if c == "all" else (c,)))
    ]
    count = 1 if quick else check_int(seeds, "seeds", low=1)
    if quick:
        panels = [settings.quick() for settings in panels]
    repeated = {s.name for s in panels if sum(s.name == other.name for other in panels) > 1}
    if repeated:
        raise ValueError(f"names: two panels are called {min(repeated)!r}")
    folder = Path(out)
    prepare_folder(folder, "out")
    prepare(folder / "claims.json", "out")
    report = Report(count, quick)
    begun = time.perf_counter()
    jobs: list[_Job] = []
    loaded: dict[tuple[str, Any], Dataset | str] = {}
    for settings in panels:
        try:
            jobs += _jobs(settings, count, data_dir, loaded)
        except (OSError, ValueError) as error:
            report.failed[settings.name] = str(error)
    done: dict[str, dict[int, Result]] = {}

    def keep(number: int, result: Result | Exception) -> None:
        name = jobs[number].settings.name
        if isinstance(result, Exception):
            report.failed.setdefault(name, str(result))
            return
        done.setdefault(name, {})[number] = result
        mine = [n for n, job in enumerate(jobs) if job.settings.name == name]
        if len(done[name]) == len(mine):
            panel = _panel([(jobs[n], done[name][n]) for n in mine], quick)
            report.panels[name] = panel
            report.write(name, panel.write, folder)
            del done[name]

    try:
        simulate_many([job.config for job in jobs], progress=progress, on_result=keep)
    except KeyboardInterrupt:
        report.interrupted = True
        for settings in panels:
            if settings.name not in report.panels:
                report.failed.setdefault(settings.name, "interrupted")
                if settings.heat_map and settings.name in done:  # the cells that are finished
                    finished = sorted(done[settings.name].items())
                    panel = _panel([(jobs[n], result) for n, result in finished], quick)
                    report.write(settings.name, panel.write, folder)
    report.panels = {s.name: report.panels[s.name] for s in panels if s.name in report.panels}
    report.claims = check_claims(report.panels)
    report.seconds = time.perf_counter() - begun
    record = {
        "version": __version__,
        "seeds": count,
        "quick": quick,
        "seconds": round(report.seconds, 1),
        "claims": [claim.record() for claim in report.claims],
        "failed": report.failed,
    }

    def write_claims(folder: Path) -> list[Path]:
        return [
            write_text(folder / "claims.json", json.dumps(record, indent=1) + "\n"),
            write_text(folder / "claims.md", claims_table(report.claims, markdown=True) + "\n"),
        ]

    report.write("claims", write_claims, folder)
    return report


def runs_of(settings: Settings, *, seed: int = 0, data_dir: Any = None) -> dict[str, dict[str, Any]]:
    """The runs of one panel with one seed, as arguments of ``simulate``.

    Parameters
    ----------
    settings : Settings
    seed : int
        Of partition and run; where nothing is random it changes nothing.
    data_dir : path, optional
        Where the data is.

    Returns
    -------
    dict
        Name of the curve (and of the attack, if the panel has several) -> arguments.

    Examples
    --------
    >>> from byzadmm import figures
    >>> list(figures.runs_of(figures.load_settings("example")))[:2]
    ['admm, small-value attack', 'rsa, small-value attack']
    """
    cases = settings.cases()
    jobs = _jobs(replace(settings, seeds=None), seed + 1, data_dir, {})
    last = max(job.seed for job in jobs)

    def name(job: _Job) -> str:
        case = cases[job.plot]
        parts = [job.curve.name, *([_attack_title(case.attack)] if len(settings.attacks) > 1 else [])]
        return ", ".join([*parts, *([f"q = {case.n_byzantine}, {case.partition}"] if settings.heat_map else [])])

    return {name(job): job.config for job in jobs if job.seed == last}


@dataclass(frozen=True)
class _Job:
    settings: Settings
    plot: int
    curve: Curve
    seed: int
    config: dict[str, Any]


def _jobs(settings: Settings, seeds: int, data_dir: Any, loaded: dict[tuple[str, Any], Dataset | str]) -> list[_Job]:
    common: dict[str, Any] = {
        "iterations": settings.iterations,
        "eval_every": settings.eval_every,
        "batch_size": settings.batch_size,
        "rho": settings.rho,
    }
    if settings.quadratic:
        example = settings.quadratic
        common |= {
            "loss": settings.loss(),
            "x0_init": [example["x0"]],
            "x_init": [[value] for value in example["x"]],
            "first_k": example["first_k"],
            "dtype": "float64",
            "record": "trajectory",
        }
        shares: dict[tuple[str, int], dict[str, Any]] = {(settings.partition, 0): {}}  # nothing in it is random
    else:
        dataset = _load(settings, data_dir, loaded)
        shares = {
            (kind, seed): {"dataset": dataset, "parts": make_parts(settings, dataset, seed, kind)}
            for kind in dict.fromkeys(case.partition for case in settings.cases())
            for seed in range(min(seeds, settings.seeds or seeds))
        }
    return [
        _Job(
            settings,
            plot,
            curve,
            seed,
            common
            | share
            | {"algorithm": algorithm, "attack": case.attack, "n_byzantine": case.n_byzantine, "seed": seed},
        )
        for plot, case in enumerate(settings.cases())
        for curve in settings.all_curves()
        if (algorithm := settings.algorithm(curve, case)) is not None
        for (kind, seed), share in shares.items()
        if kind == case.partition
    ]


def _load(settings: Settings, data_dir: Any, loaded: dict[tuple[str, Any], Dataset | str]) -> Dataset:
    """Each data set once, also when it is not there."""
    key = (settings.dataset, settings.scale)
    if key not in loaded:
        try:
            loaded[key] = datasets.load(settings.dataset, data_dir=data_dir, scale=settings.scale)
        except (OSError, ValueError) as error:
            loaded[key] = str(error)
    found = loaded[key]
    if isinstance(found, str):
        raise ValueError(found)
    return found


def _panel(runs: list[tuple[_Job, Result]], quick: bool) -> Panel:
    settings = runs[0][0].settings
    values: dict[tuple[int, str], list[Array]] = {}
    for job, result in runs:
        curve = result.trajectory["x0"][:, 0] if settings.quadratic and result.trajectory else result.accuracy
        values.setdefault((job.plot, job.curve.name), []).append(curve)
    kind, title = (HeatMap, _attack_name) if settings.heat_map else (Panel, _attack_title)
    return kind(
        settings=settings,
        plots=[title(case.attack) for case in settings.cases()],
        curves=list(settings.all_curves()),
        iterations=runs[0][1].iterations,
        values={key: np.array(curves) for key, curves in values.items()},
        seeds=max(len(curves) for curves in values.values()),
        seconds=sum(result.seconds for _, result in runs),
        quick=quick,
    )


def _attack_name(attack: Attack | None) -> str:
    """As in the settings file."""
    return next((name for name, kind in ATTACKS.items() if kind is type(attack)), "none")


def _attack_title(attack: Attack | None) -> str:
    if attack is None:
        return "no attack"
    words = {"SmallValue": "small-value attack", "LargeValue": "large-value attack", "SignFlip": "sign-flipping attack"}
    name = type(attack).__name__
    return words.get(name, f"{name} attack")
