"""Runs of panels: a study for each, written as soon as it is complete."""

from __future__ import annotations

import json
import os
import time
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

from byzadmm import __version__, catalogue
from byzadmm._internal.atomic_files import prepare, prepare_folder
from byzadmm._internal.validation import check_int
from byzadmm.datasets import Dataset
from byzadmm.figures._files import write_text
from byzadmm.figures.claims import Claim, check_claims, claims_table
from byzadmm.figures.panel import HeatMap, Panel
from byzadmm.figures.parser import load_settings
from byzadmm.figures.plan import length, plan_of, runs_of
from byzadmm.figures.published import Difference, differences, differences_table, published_curves
from byzadmm.figures.settings import PAPER, TABLES, VARIANTS, Published, Settings
from byzadmm.study import Cell, Plan, Study, carry_out
from byzadmm.training.run import Progress, reporter

__all__ = ["Report", "reproduce", "runs_of"]

QUICK = "quick look: fewer iterations and one seed, not the paper's experiment"

Loaded = dict[tuple[str, Any], Dataset | str]


@dataclass
class Report:
    """The outcome of a reproduction.

    Attributes
    ----------
    panels : dict
        Name -> Panel, those that were finished.
    claims : list of Claim
    differences : list of Difference
        Ours minus published, for every published curve of the paper's figures and of your own files.
    paths : list of Path
        Every file that was written.
    failed : dict
        Name -> why the panel is not there, or was not written.
    """

    seeds: int
    quick: bool
    panels: dict[str, Panel] = field(default_factory=dict)
    claims: list[Claim] = field(default_factory=list)
    differences: list[Difference] = field(default_factory=list)
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
        """Ours minus published, the claims, and the final accuracies of panels without them, in 80 columns."""
        text = f"({QUICK})\n" if self.quick else ""
        text += f"{differences_table(self.differences)}\n\n" if self.differences else ""
        judged = {claim.figure for claim in self.claims}
        tables = [
            panel.table()
            for name, panel in self.panels.items()
            if name not in judged or not panel.settings.packaged or panel.settings.graph is not None
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
    checkpoint: str | os.PathLike[str] | None = None,
    report: str | os.PathLike[str] | None = None,
) -> Report:
    """Run panels of the paper (or your own), draw them, and check what the paper says about them.

    Parameters
    ----------
    names : "all", or a list of panels and settings files
        "all": the paper's figures and their variants (``PAPER`` and ``VARIANTS`` of ``figures.settings``); "peng" and
        "ios": the panels of a published table (``TABLES``).
    seeds : int
        Runs per algorithm, each with a partition of its own. A settings file may limit them.
    quick : bool
        One seed and a fifth of the iterations, for a first look.
    out : path
        Folder for ``NAME.png``, ``.svg``, ``.csv``, ``.json`` of each panel, ``overview.png``, ``.svg`` of several of
        the paper, and ``claims.json``, ``claims.md``, ``differences.md``.
    data_dir : path, optional
        Where the data is.
    progress : bool or callable
        True: a progress bar; a callable gets (iterations done, total).
    checkpoint : path, optional
        A folder for the results and states of every panel, as in :func:`byzadmm.compare`: the same call after a crash
        goes on.
    report : path, optional
        Also write the page of :meth:`byzadmm.Study.report`: ``NAME.html`` of each panel in this folder, or this file,
        with a name ending in ``.html``, for a single panel.

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
    together: dict[Any, tuple[str, ...]] = {"all": (*PAPER, *VARIANTS), **TABLES}
    every = dict.fromkeys(name for item in chosen for name in together.get(item, (item,)))
    panels: dict[str, Settings] = {}
    for item in every:
        settings = load_settings(item)
        if settings.name in panels:
            raise ValueError(f"names: two panels are called {settings.name!r}")
        panels[settings.name] = settings.quick() if quick else settings
    count = 1 if quick else check_int(seeds, "seeds", low=1)
    pages = _pages(list(panels), report)
    folder = Path(out)
    prepare_folder(folder, "out")
    prepare(folder / "claims.json", "out")
    made = Report(count, quick)
    begun = time.perf_counter()
    plans: dict[str, Plan] = {}
    loaded: Loaded = {}
    for settings in panels.values():
        try:
            dataset = None if settings.quadratic else _load(settings, data_dir, loaded)
            plans[settings.name] = plan_of(settings, range(min(count, settings.seeds or count)), dataset, quick=quick)
        except (OSError, ValueError) as error:
            made.failed[settings.name] = str(error)
    tick, close = reporter(progress)
    total, before = sum(map(length, plans.values())), 0
    begun_maps: dict[str, Panel] = {}
    try:
        for name, plan in plans.items():
            kept = None if checkpoint is None else Path(checkpoint) / name
            known = published_curves(panels[name], data_dir)
            panel = _run_panel(panels[name], known, plan, made, begun_maps, kept, partial(_tick, tick, before, total))
            before += length(plan)
            if panel is not None and (name in made.panels or panels[name].heat_map):
                made.write(name, panel.write, folder)
            if panel is not None and name in pages:
                made.write(name, partial(_write_page, panel.study), pages[name])
    except KeyboardInterrupt:
        made.interrupted = True
        for name in plans:
            if name not in made.panels:
                made.failed.setdefault(name, "interrupted")
        for name, panel in begun_maps.items():
            made.write(name, panel.write, folder)
    finally:
        close()
    made.claims = check_claims(made.panels)
    compared = [panel for name, panel in made.panels.items() if name not in VARIANTS and panel.published]
    made.differences = [found for panel in compared for found in differences(panel)]
    of_paper = [panel for panel in compared if panel.name in PAPER]
    if len(of_paper) > 1:
        made.write("overview", partial(_write_overview, of_paper), folder)
    made.seconds = time.perf_counter() - begun
    record = {
        "version": __version__,
        "seeds": count,
        "quick": quick,
        "seconds": round(made.seconds, 1),
        "differences": [asdict(row) for row in made.differences],
        "claims": [claim.record() for claim in made.claims],
        "failed": made.failed,
    }

    def write_claims(folder: Path) -> list[Path]:
        return [
            write_text(folder / "claims.json", json.dumps(record, indent=1) + "\n"),
            write_text(folder / "claims.md", claims_table(made.claims, markdown=True) + "\n"),
            write_text(folder / "differences.md", differences_table(made.differences, markdown=True) + "\n"),
        ]

    made.write("claims", write_claims, folder)
    return made


def _run_panel(
    settings: Settings,
    published: dict[str, Published],
    plan: Plan,
    made: Report,
    begun_maps: dict[str, Panel],
    checkpoint: Path | None,
    tick: Progress,
) -> Panel | None:
    """Run a panel, and add it to the panels of the report, or why it is not complete to the failed ones.

    What can be drawn before all runs are finished, a map, is in ``begun_maps`` until then.
    """
    kind = HeatMap if settings.heat_map else Panel

    def note(study: Study, cell: Cell) -> None:
        if settings.heat_map:
            begun_maps[settings.name] = kind(settings, study, made.quick, published)

    try:
        study = carry_out(plan, progress=tick, checkpoint=checkpoint, on_result=note, warn=False)
    except (OSError, TypeError, ValueError) as error:  # of every run, or of the folder
        made.failed[settings.name] = str(error)
        return None
    begun_maps.pop(settings.name, None)
    panel = kind(settings, study, made.quick, published)
    failed = [why.words for why in study.missing.values() if why.status == "failed"]
    if failed:
        made.failed[settings.name] = failed[0]
    else:
        made.panels[settings.name] = panel
    return panel


def _tick(tick: Progress, before: int, total: int, done: int, _: int) -> None:
    """Progress of one panel among all."""
    tick(before + done, total)


def _pages(names: list[str], report: str | os.PathLike[str] | None) -> dict[str, Path]:
    """Where the page of each panel goes; tried before anything runs."""
    if report is None:
        return {}
    path = Path(report)
    if path.suffix.lower() == ".html":
        if len(names) > 1:
            raise ValueError(f"report: expected a folder for {len(names)} panels, got {str(path)!r}")
        prepare(path, "report")
        return dict.fromkeys(names, path)
    prepare_folder(path, "report")
    return {name: path / f"{name}.html" for name in names}


def _write_overview(panels: Sequence[Panel], folder: Path) -> list[Path]:
    try:
        from byzadmm.figures.plots import draw_overview
    except ImportError:  # pragma: no cover - the plot extra is not installed
        return []
    return draw_overview(panels, folder / "overview")


def _write_page(study: Study, path: Path) -> list[Path]:
    study.report(path)
    return [path]


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
