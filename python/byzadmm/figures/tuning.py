"""Search of step sizes and penalties, in the place of the paper's "hand-tuned to the best".

Every algorithm gets the same number of trials per setting searched. A trial is as long as the panel's runs, trains on a
part of the training set and is scored on the rest of it; the test set is never read. Every trial is written to a
journal at once, so that a search that was stopped can be resumed. There is one search under the panel's attack, and a
"blind" one without, each with curves and a journal of its own.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np

from byzadmm import catalogue, simulate_many
from byzadmm._internal.atomic_files import prepare
from byzadmm._internal.validation import check_int
from byzadmm.figures._files import write_text
from byzadmm.figures._journal import Journal, dimensions, replace_number, replace_table
from byzadmm.figures.parser import load_settings
from byzadmm.figures.settings import FIGURES, READINGS, Curve, Search, Settings, make_parts
from byzadmm.results import Result
from byzadmm.study.boxes import measure, merge, near_ends
from byzadmm.study.held_back import SAMPLES, held_back, remaining
from byzadmm.study.run import make_loss
from byzadmm.study.search import ROUNDS, Trial, round_of_trials, tried, validation_split

__all__ = ["Tuned", "tune", "validation_split"]

#: Reading of the curves of a search -> end of its journal's name, and the tables that are expected.
_SEARCHES = {
    "tuned": (".tuning.json", "[algorithms.NAME] or [algorithms.NAME-tuned] without printed = true"),
    "blind": (".blind.tuning.json", "[algorithms.NAME-blind]"),
}
#: Evaluations per run: five are in the last fifth, over which the score is a mean.
_EVALUATIONS = 20


@dataclass(frozen=True)
class Tuned:
    """The outcome of a search.

    Attributes
    ----------
    best : dict
        Algorithm -> the parameters of its best trial and their validation ``accuracy``.
    settings, journal : Path
        The settings file with them, and all trials. Of a check of both searches, the journal of that under attack.
    differences : list of str
        Where the settings file differs from the journal's best; empty after a search.
    edges : dict
        Algorithm -> the ranges near whose ends its best trial lies, where there are such: more may be beyond.
    """

    best: dict[str, Trial]
    settings: Path
    journal: Path
    differences: list[str]
    edges: dict[str, list[str]] = field(default_factory=dict)

    def table(self) -> str:
        """One line per algorithm."""
        width = max(map(len, ["algorithm", *self.best]))
        lines = [f"{'algorithm':<{width}} {'validation':>10}  parameters"]
        for name, trial in self.best.items():
            values = ", ".join(f"{key} = {value:g}" for key, value in trial.items() if key != "accuracy")
            lines.append(f"{name:<{width}} {trial['accuracy']:>10.4f}  {values}")
        lines += [f"{name}: near an end of the range of {', '.join(ranges)}" for name, ranges in self.edges.items()]
        return "\n".join(lines)


def tune(
    name: str | Path,
    *,
    algorithms: Sequence[str] | None = None,
    blind: bool = False,
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
    ``step/sqrt k``. Ranges that the ``[tuning]`` table of the file does not give are derived from the workers'
    gradients (:meth:`byzadmm.study.boxes.Scales.ranges`).

    Parameters
    ----------
    name : str or Path
        A panel, or a settings file of your own with a ``[tuning]`` table.
    algorithms : list of str, optional
        Only these tables; by default all of the search.
    blind : bool
        False: search under the panel's (first) attack, for the tables that are neither ``printed`` nor called
        "NAME-blind". True: search without attack, all workers regular, for the tables called "NAME-blind". The blind
        searches of two panels that differ in nothing but attack and number of Byzantine workers have the same trials.
    budget, seed : int, optional
        Trials per setting searched (ADMM has three, RSA two, SGD with any rule one) and seed of the search; by default
        those of the file.
    data_dir : path, optional
        Where the data is.
    out : path, optional
        Settings file to write; by default your own file itself, or ``NAME.toml`` in the current folder for a panel of
        the package. The journal is beside it, ``NAME.tuning.json`` or ``NAME.blind.tuning.json``.
    check : bool
        Search nothing, only list where the settings file differs from the best trials of its journals: of both
        searches as far as it has tables for them, or of the blind one alone.
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
    if settings.quadratic:
        raise ValueError(f"{settings.path}: tuning: needs a data set, of which samples are set aside")
    if check:
        return _checked(settings, algorithms, blind)
    reading = "blind" if blind else "tuned"
    search = settings.search
    chosen = _choose(settings, [reading], algorithms)
    if budget is not None:
        search = replace(search, budget=check_int(budget, "budget", low=1))
    if seed is not None:
        search = replace(search, seed=check_int(seed, "seed", low=0))
    target = Path(out) if out is not None else Path(settings.path.name) if str(name) in FIGURES else settings.path
    path = target.with_suffix(_SEARCHES[reading][0])
    for file in (target, path):
        prepare(file, "out")
    under = replace(settings, attacks=(None,), n_byzantine=0) if blind else settings
    dataset = catalogue.load_dataset(settings.dataset, data_dir=data_dir, scale=settings.scale)
    dataset = validation_split(dataset, search.seed)
    count = settings.validation or (SAMPLES if any(curve.algorithm.validates for curve in chosen) else None)
    held = {} if count is None else {"validation": held_back(count, dataset, None, search.seed)}
    runs = under.arguments() | {
        "dataset": dataset,
        "parts": make_parts(under, dataset, search.seed, rows=remaining(dataset, held.get("validation"))),
        **held,
        "attack": under.attacks[0],
        "n_byzantine": under.n_byzantine,
        "seed": search.seed,
    }
    journal = Journal(path, chosen, _describe(under, search) | _measured(runs, chosen, search))
    _search(runs, chosen, journal, progress)
    text = (target if _same_panel(target, settings) else settings.path).read_text(encoding="utf-8")
    for curve in chosen:
        text = replace_table(text, curve, journal.best(curve.name), settings.n_workers)
    text = replace_number(replace_number(text, "budget", search.budget), "seed", search.seed)
    write_text(target, text)
    best = {curve.name: journal.best(curve.name) for curve in chosen}
    differences = _differences(load_settings(target), chosen, journal, reading)
    return Tuned(best, target, path, differences, _edges(best, journal))


def _checked(settings: Settings, algorithms: Sequence[str] | None, blind: bool) -> Tuned:
    """Settings file and journals, compared."""
    readings = ["blind"] if blind else list(_SEARCHES)
    chosen = _choose(settings, readings, algorithms)
    best: dict[str, Trial] = {}
    differences: list[str] = []
    edges: dict[str, list[str]] = {}
    paths = []
    for reading in readings:
        curves = [curve for curve in chosen if curve.reading == reading]
        if not curves:
            continue
        paths.append(settings.path.with_suffix(_SEARCHES[reading][0]))
        if not paths[-1].exists() and len(readings) > 1:
            differences.append(f"{paths[-1].name}: missing")
            continue
        journal = Journal(paths[-1], curves)
        found = {curve.name: journal.best(curve.name) for curve in curves if journal.trials.get(curve.name)}
        best |= found
        edges |= _edges(found, journal)
        differences += _differences(settings, curves, journal, reading)
    return Tuned(best, settings.path, paths[0], differences, edges)


def _edges(best: dict[str, Trial], journal: Journal) -> dict[str, list[str]]:
    ranges = journal.about.get("ranges", {})
    return {name: ends for name, trial in best.items() if (ends := near_ends(trial, ranges))}


def _choose(settings: Settings, readings: Sequence[str], algorithms: Sequence[str] | None) -> list[Curve]:
    curves = {curve.name: curve for curve in settings.curves if curve.reading in readings}
    if not curves:
        [reading, *others] = readings
        words = " ".join([READINGS[reading], *(f"or {READINGS[other]}" for other in others)])
        tables = ", ".join(_SEARCHES[reading][1] for reading in readings)
        raise ValueError(f"{settings.path}: algorithms: expected tables for what is {words}: {tables}; got none")
    for name in algorithms or ():
        if name not in curves:
            raise ValueError(f"algorithms: expected some of {', '.join(curves)}; got {name!r}")
    return [curve for name, curve in curves.items() if algorithms is None or name in algorithms]


def _same_panel(target: Path, settings: Settings) -> bool:
    """Whether there is a file of the same panel already: the tables of its other search are kept."""
    try:
        there = load_settings(target)
    except (OSError, ValueError):
        return False
    if list(map(catalogue.describe_attack, there.attacks)) != list(map(catalogue.describe_attack, settings.attacks)):
        return False
    same = {"name", "path", "curves", "search", "attacks"}  # an attack of a file is another function every time
    plain = replace(there, **{name: getattr(settings, name) for name in same})
    return plain == settings and [curve.name for curve in there.curves] == [curve.name for curve in settings.curves]


def _measured(runs: dict[str, Any], chosen: list[Curve], search: Search) -> dict[str, Any]:
    """What a search depends on and the data says: the ranges that the file does not give, and what they come from."""
    if {name for curve in chosen for name in dimensions(curve)} <= search.ranges.keys():
        return {"ranges": {name: list(ends) for name, ends in search.ranges.items()}}
    scales = measure(make_loss(runs))
    ranges = merge(scales.ranges(), search.ranges)
    return {
        "gradient": scales.gradient,
        "weight": scales.weight,
        "ranges": {name: list(ends) for name, ends in ranges.items()},
    }


def _describe(settings: Settings, search: Search) -> dict[str, Any]:
    """What a search depends on; the journal of another one cannot be resumed."""
    return {
        "budget": search.budget,
        "seed": search.seed,
        "iterations": search.iterations or settings.iterations,
        "dataset": settings.dataset,
        "scale": settings.scale,
        "loss": settings.loss_name,
        "partition": settings.partition,
        "n_workers": settings.n_workers,
        "n_byzantine": settings.n_byzantine,
        "attack": catalogue.describe_attack(settings.attacks[0]),
        "batch_size": settings.batch_size,
        "rho": settings.rho,
        "local_steps": settings.local_steps,
        "participation": settings.participation,
        "score": "final accuracy",
    }


def _search(runs: dict[str, Any], chosen: list[Curve], journal: Journal, progress: bool) -> None:
    """All trials that the journal does not have, round after round, those of all algorithms side by side."""
    about, n_workers = journal.about, len(runs["parts"])
    length = {"iterations": about["iterations"], "eval_every": max(1, about["iterations"] // _EVALUATIONS)}
    for turn in range(len(ROUNDS)):
        wanted: list[tuple[Curve, int, Trial]] = []
        for curve in chosen:
            names, known = dimensions(curve), journal.trials.get(curve.name, {})
            done = [known[number] for number in sorted(known, key=int)]
            made = round_of_trials(names, about["ranges"], turn, about["budget"], done, about["seed"], "accuracy")
            wanted += [(curve, number, trial) for number, trial in made.items() if str(number) not in known]
        configs = [
            runs | length | {"algorithm": tried(curve.algorithm, trial, n_workers)} for curve, _, trial in wanted
        ]

        def keep(which: int, result: Result | Exception, wanted: list[tuple[Curve, int, Trial]] = wanted) -> None:
            if isinstance(result, Exception):
                raise result
            curve, number, trial = wanted[which]
            journal.add(curve.name, number, {**trial, "accuracy": _score(result)})

        if wanted:
            simulate_many(configs, progress=progress, on_result=keep)


def _score(result: Result) -> float:
    """Final accuracy; 0 for a run that diverged, whose model may still hit the labels of one class."""
    score = result.final_accuracy()
    return round(score, 4) if np.all(np.isfinite(result.x0)) and np.isfinite(score) else 0.0


def _differences(settings: Settings, chosen: list[Curve], journal: Journal, reading: str) -> list[str]:
    assert settings.search is not None
    under = replace(settings, attacks=(None,), n_byzantine=0) if reading == "blind" else settings
    found = [
        f"{'tuning.' if key in ('budget', 'seed') else ''}{key}: {value} in {settings.path.name}, "
        f"{journal.about[key]} in {journal.path.name}"
        for key, value in _describe(under, settings.search).items()
        if journal.about.get(key, value) != value
    ]
    now = {curve.name: curve for curve in settings.curves}
    for curve in chosen:
        if not journal.trials.get(curve.name):
            found.append(f"{curve.name}: not in {journal.path.name}")
            continue
        best = journal.best(curve.name)
        budget = journal.about["budget"] * len(dimensions(curve))
        if len(journal.trials[curve.name]) != budget:
            found.append(f"{curve.name}: {len(journal.trials[curve.name])} trials, not {budget}")
        if now[curve.name].algorithm != tried(curve.algorithm, best, settings.n_workers):
            found.append(f"{curve.name}: the parameters are not those of the best trial")
        if now[curve.name].validation != best["accuracy"]:
            found.append(f"{curve.name}: validation is {now[curve.name].validation}, best is {best['accuracy']}")
    return found
