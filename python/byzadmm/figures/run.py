"""Runs of panels: every run of the chosen panels in one go, each panel written as soon as it is complete."""

from __future__ import annotations

import json
import os
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from byzadmm import __version__, catalogue, simulate_many
from byzadmm._internal.arrays import Array
from byzadmm._internal.atomic_files import prepare, prepare_folder
from byzadmm._internal.validation import check_int
from byzadmm.datasets import Dataset
from byzadmm.figures._files import write_text
from byzadmm.figures.claims import Claim, check_claims, claims_table
from byzadmm.figures.panel import HeatMap, Panel
from byzadmm.figures.parser import load_settings
from byzadmm.figures.settings import FIGURES, Settings, make_parts
from byzadmm.results import Result

__all__ = ["Report", "reproduce", "runs_of"]

QUICK = "quick look: fewer iterations and one seed, not the paper's experiment"


class Place(NamedTuple):
    """Where a run belongs: panel, plot of the panel, curve of the plot, seed."""

    panel: str
    plot: int
    curve: str
    seed: int


Loaded = dict[tuple[str, Any], Dataset | str]


@dataclass
class Report:
    """The outcome of a reproduction.

    Attributes
    ----------
    panels : dict
        Name -> Panel, those that were finished.
    claims : list of Claim
    paths : list of Path
        Every file that was written.
    failed : dict
        Name -> why the panel is not there, or was not written.
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
        """Call ``write(folder)`` and add the files that it returns to ``paths``, or its error to ``failed``."""
        try:
            self.paths += write(folder)
        except OSError as error:
            self.failed[name] = f"could not be written: {error}"

    def table(self) -> str:
        """The claims, and the final accuracies of your own panels and of those without claims, in 80 columns."""
        text = f"({QUICK})\n" if self.quick else ""
        judged = {claim.figure for claim in self.claims}
        tables = [
            panel.table() for name, panel in self.panels.items() if name not in judged or not panel.settings.packaged
        ]
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
        Runs per algorithm, each with a partition of its own. A settings file may limit them.
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
    chosen = [names] if isinstance(names, (str, Path)) else names
    every = dict.fromkeys(name for item in chosen for name in (FIGURES if item == "all" else (item,)))
    panels = {}
    for name in every:
        settings = load_settings(name)
        if settings.name in panels:
            raise ValueError(f"names: two panels are called {settings.name!r}")
        panels[settings.name] = settings.quick() if quick else settings
    count = 1 if quick else check_int(seeds, "seeds", low=1)
    folder = Path(out)
    prepare_folder(folder, "out")
    prepare(folder / "claims.json", "out")
    report = Report(count, quick)
    begun = time.perf_counter()
    runs: dict[Place, dict[str, Any]] = {}
    loaded: Loaded = {}
    for settings in panels.values():
        try:
            runs |= _runs(settings, range(min(count, settings.seeds or count)), data_dir, loaded)
        except (OSError, ValueError) as error:
            report.failed[settings.name] = str(error)
    places = list(runs)
    done: dict[str, dict[Place, Result]] = {name: {} for name in panels}

    def panel_of(name: str) -> Panel:
        return _panel(panels[name], {place: done[name][place] for place in places if place in done[name]}, quick)

    def keep(number: int, result: Result | Exception) -> None:
        name = places[number].panel
        if isinstance(result, Exception):
            report.failed.setdefault(name, str(catalogue.located(result)))
            return
        done[name][places[number]] = result
        if len(done[name]) == sum(place.panel == name for place in places):
            report.panels[name] = panel_of(name)
            report.write(name, report.panels[name].write, folder)
            del done[name]

    try:
        simulate_many(list(runs.values()), progress=progress, on_result=keep)
    except KeyboardInterrupt:
        report.interrupted = True
        for name, settings in panels.items():
            if name not in report.panels:
                report.failed.setdefault(name, "interrupted")
                if settings.heat_map and done[name]:  # the cells that are finished
                    report.write(name, panel_of(name).write, folder)
    report.panels = {name: report.panels[name] for name in panels if name in report.panels}
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
        Of partition and run; without effect on the example, in which nothing is random.
    data_dir : path, optional
        Where the data is.

    Returns
    -------
    dict
        Name of the curve (and of the attack and the partition, if the panel has several) -> arguments.

    Examples
    --------
    >>> from byzadmm import figures
    >>> list(figures.runs_of(figures.load_settings("example")))[:2]
    ['admm, small-value attack', 'rsa, small-value attack']
    """
    cases, titles = settings.cases(), settings.plot_titles(catalogue.attack_title)

    def name(place: Place) -> str:
        case = cases[place.plot]
        parts = [place.curve, *([titles[place.plot]] if len(cases) > 1 else [])]
        return ", ".join([*parts, *([f"q = {case.n_byzantine}, {case.partition}"] if settings.heat_map else [])])

    return {name(place): run for place, run in _runs(settings, [seed], data_dir, {}).items()}


def _runs(settings: Settings, seeds: Sequence[int], data_dir: Any, loaded: Loaded) -> dict[Place, dict[str, Any]]:
    """Every run of a panel, as arguments of ``simulate``."""
    if settings.quadratic:
        data: dict[tuple[str, int], dict[str, Any]] = {(settings.partition, 0): {}}  # nothing in it is random
    else:
        dataset = _load(settings, data_dir, loaded)
        data = {
            (kind, seed): {"dataset": dataset, "parts": make_parts(settings, dataset, seed, kind)}
            for kind in dict.fromkeys(case.partition for case in settings.cases())
            for seed in seeds
        }
    common = settings.arguments()
    return {
        Place(settings.name, plot, curve.name, seed): {
            **common,
            **parts,
            "algorithm": algorithm,
            "attack": case.attack,
            "n_byzantine": case.n_byzantine,
            "seed": seed,
        }
        for plot, case in enumerate(settings.cases())
        for curve in settings.all_curves()
        if (algorithm := settings.algorithm(curve, case)) is not None
        for (kind, seed), parts in data.items()
        if kind == case.partition
    }


def _load(settings: Settings, data_dir: Any, loaded: Loaded) -> Dataset:
    """The data of a panel. Each data set is looked for once, also if it is not found."""
    key = (settings.dataset, settings.scale)
    if key not in loaded:
        try:
            loaded[key] = catalogue.load_dataset(settings.dataset, data_dir=data_dir, scale=settings.scale)
        except (OSError, ValueError) as error:
            loaded[key] = str(error)
    found = loaded[key]
    if isinstance(found, str):
        raise ValueError(found)
    return found


def _panel(settings: Settings, results: dict[Place, Result], quick: bool) -> Panel:
    values: dict[tuple[int, str], list[Array]] = {}
    for place, result in results.items():
        curve = result.trajectory["x0"][:, 0] if settings.quadratic and result.trajectory else result.accuracy
        values.setdefault((place.plot, place.curve), []).append(curve)
    return (HeatMap if settings.heat_map else Panel)(
        settings=settings,
        plots=settings.plot_titles(),
        curves=list(settings.all_curves()),
        iterations=next(iter(results.values())).iterations,
        values={key: np.array(curves) for key, curves in values.items()},
        seeds=max(len(curves) for curves in values.values()),
        seconds=sum(result.seconds for result in results.values()),
        quick=quick,
    )
