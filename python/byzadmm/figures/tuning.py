"""Search of step sizes and penalties, in the place of the paper's "hand-tuned to the best".

Every algorithm gets the same number of trials. A trial trains on a part of the training set and is scored on the rest
of it; the test set is never read. Half of the trials are spread over the whole range, the others over boxes around the
best so far. Every trial is written to a journal at once, so that a search that was stopped can be resumed.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from byzadmm import catalogue, simulate_many
from byzadmm._internal.atomic_files import prepare
from byzadmm._internal.validation import check_int
from byzadmm.datasets import Dataset
from byzadmm.figures._files import write_text
from byzadmm.figures._journal import Journal, dimensions, replace_number, replace_table
from byzadmm.figures.parser import load_settings
from byzadmm.figures.settings import FIGURES, Curve, Search, Settings, make_parts
from byzadmm.results import Result
from byzadmm.study.search import SIDES, Trial, propose, rounds, tried, validation_split

__all__ = ["Tuned", "tune", "validation_split"]

@dataclass(frozen=True)
class Tuned:
    """The outcome of a search.

    Attributes
    ----------
    best : dict
        Algorithm -> the parameters of its best trial and their validation ``accuracy``.
    settings, journal : Path
        The settings file with them, and all trials.
    differences : list of str
        Where the settings file differs from the journal's best; empty after a search.
    """

    best: dict[str, Trial]
    settings: Path
    journal: Path
    differences: list[str]

    def table(self) -> str:
        """One line per algorithm."""
        lines = [f"{'algorithm':<20} {'validation':>10}  parameters"]
        for name, trial in self.best.items():
            values = ", ".join(f"{key} = {value:g}" for key, value in trial.items() if key != "accuracy")
            lines.append(f"{name:<20} {trial['accuracy']:>10.4f}  {values}")
        return "\n".join(lines)


def tune(
    name: str | Path,
    *,
    algorithms: Sequence[str] | None = None,
    budget: int | None = None,
    seed: int | None = None,
    data_dir: str | os.PathLike[str] | None = None,
    out: str | os.PathLike[str] | None = None,
    check: bool = False,
    progress: bool = True,
) -> Tuned:
    """Search step sizes (and ``lam``, ``beta``) for the algorithms of a panel, and write them into a settings file.

    The score is the final accuracy on the validation samples. ADMM's steps are ``1/(m beta + slope sqrt k)`` at the
    master and ``1/(beta + slope sqrt k)`` at the workers, the form of all steps in the paper; the others' are
    ``step/sqrt k``. Ranges that the ``[tuning]`` table of the file does not give are those of the catalogue
    (:meth:`byzadmm.catalogue.Preset.ranges`) for the data.

    Parameters
    ----------
    name : str or Path
        A panel, or a settings file of your own with a ``[tuning]`` table.
    algorithms : list of str, optional
        Only these; by default all that are not marked ``printed``.
    budget, seed : int, optional
        Trials per algorithm and seed of the search; by default those of the file.
    data_dir : path, optional
        Where the data is.
    out : path, optional
        Settings file to write; by default your own file itself, or ``NAME.toml`` in the current folder for a panel of
        the package. The journal is beside it, ``NAME.tuning.json``.
    check : bool
        Search nothing, only list where the settings file differs from the best trials of its journal.
    progress : bool
        Show how far it is.

    Returns
    -------
    Tuned

    Examples
    --------
    >>> from byzadmm import figures
    >>> figures.tune("fig1a", check=True).differences
    []
    """
    settings = load_settings(name)
    if settings.search is None:
        raise ValueError(f"{settings.path}: tuning: missing")
    search = settings.search
    chosen = _choose(settings, algorithms)
    if budget is not None:
        search = replace(search, budget=check_int(budget, "budget", low=1))
    if seed is not None:
        search = replace(search, seed=check_int(seed, "seed", low=0))
    if check:
        journal = Journal(settings.path.with_suffix(".tuning.json"), chosen)
        target = settings.path
    else:
        packaged = str(name) in FIGURES
        target = Path(out) if out is not None else Path(settings.path.name) if packaged else settings.path
        for path in (target, target.with_suffix(".tuning.json")):
            prepare(path, "out")
        dataset = catalogue.load_dataset(settings.dataset, data_dir=data_dir, scale=settings.scale)
        if any(key not in search.ranges for curve in chosen for key in dimensions(curve)):
            search = replace(search, ranges={**catalogue.preset_for(dataset).ranges(), **search.ranges})
        journal = Journal(target.with_suffix(".tuning.json"), chosen, _describe(settings, search))
        dataset = validation_split(dataset, search.seed)
        start = 0
        for end, side in zip(rounds(search.budget), SIDES, strict=True):
            _search_round(settings, search, chosen, dataset, journal, range(start, end), side, progress)
            start = end
        text = settings.path.read_text(encoding="utf-8")
        for curve in chosen:
            text = replace_table(text, curve, journal.best(curve.name), settings.n_workers)
        text = replace_number(replace_number(text, "budget", search.budget), "seed", search.seed)
        write_text(target, text)
    best = {curve.name: journal.best(curve.name) for curve in chosen if curve.name in journal.trials}
    return Tuned(best, target, journal.path, _differences(load_settings(target), chosen, journal))


def _choose(settings: Settings, algorithms: Sequence[str] | None) -> list[Curve]:
    curves = {curve.name: curve for curve in settings.curves if not curve.printed}
    for name in algorithms or ():
        if name not in curves:
            raise ValueError(f"algorithms: expected some of {', '.join(curves)}; got {name!r}")
    return [curve for name, curve in curves.items() if algorithms is None or name in algorithms]


def _describe(settings: Settings, search: Search) -> dict[str, Any]:
    """What a search depends on; the journal of another one cannot be resumed."""
    return {
        "budget": search.budget,
        "seed": search.seed,
        "iterations": search.iterations,
        "ranges": {key: list(ends) for key, ends in search.ranges.items()},
        "dataset": settings.dataset,
        "scale": settings.scale,
        "partition": settings.partition,
        "n_workers": settings.n_workers,
        "n_byzantine": settings.n_byzantine,
        "attack": catalogue.describe_attack(settings.attacks[0]),
        "batch_size": settings.batch_size,
        "rho": settings.rho,
        "score": "final accuracy",
    }


def _search_round(
    settings: Settings,
    search: Search,
    chosen: list[Curve],
    dataset: Dataset,
    journal: Journal,
    numbers: range,
    side: float,
    progress: bool,
) -> None:
    """The trials with these numbers of every algorithm, as far as the journal does not have them."""
    parts = make_parts(settings, dataset, search.seed)
    wanted: list[tuple[Curve, int, Trial]] = []
    for curve in chosen:
        known = journal.trials.get(curve.name, {})
        # The box depends on finished rounds only, so that an interrupted round is resumed with the same trials.
        before = [trial for number, trial in known.items() if int(number) < numbers.start]
        center = max(before, key=lambda trial: trial["accuracy"]) if before else None
        for number in numbers:
            if str(number) not in known:
                trial = propose(dimensions(curve), search.ranges, number, side, center, search.seed)
                wanted.append((curve, number, trial))
    common = settings.arguments() | {
        "dataset": dataset,
        "parts": parts,
        "attack": settings.attacks[0],
        "n_byzantine": settings.n_byzantine,
        "iterations": search.iterations,
        "eval_every": max(1, search.iterations // 10),
        "seed": search.seed,
    }
    configs = [common | {"algorithm": tried(curve.algorithm, trial, settings.n_workers)} for curve, _, trial in wanted]

    def keep(which: int, result: Result | Exception) -> None:
        if isinstance(result, Exception):
            raise result
        curve, number, trial = wanted[which]
        journal.add(curve.name, number, {**trial, "accuracy": round(result.final_accuracy(), 4)})

    simulate_many(configs, progress=progress, on_result=keep)


def _differences(settings: Settings, chosen: list[Curve], journal: Journal) -> list[str]:
    search = settings.search
    assert search is not None
    found = [
        f"tuning.{key}: {getattr(search, key)} in {settings.path.name}, {journal.about[key]} in the journal"
        for key in ("budget", "seed", "iterations")
        if getattr(search, key) != journal.about[key]
    ]
    now = {curve.name: curve for curve in settings.curves}
    for curve in chosen:
        if curve.name not in journal.trials:
            found.append(f"{curve.name}: not in the journal")
            continue
        best = journal.best(curve.name)
        if len(journal.trials[curve.name]) != journal.about["budget"]:
            found.append(f"{curve.name}: {len(journal.trials[curve.name])} trials, not {journal.about['budget']}")
        if now[curve.name].algorithm != tried(curve.algorithm, best, settings.n_workers):
            found.append(f"{curve.name}: the parameters are not those of the best trial")
        if now[curve.name].validation != best["accuracy"]:
            found.append(f"{curve.name}: validation is {now[curve.name].validation}, best is {best['accuracy']}")
    return found
