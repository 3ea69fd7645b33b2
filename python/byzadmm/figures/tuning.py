"""The "hand-tuned to the best" of the paper, done by a search that can be repeated.

Every algorithm gets the same number of trials. A trial trains on a part of the training set and is scored on the rest
of it; the test set is never read. Half of the trials are spread over the whole range, the others over boxes around the
best so far. Every trial goes into a journal at once, so that a search that was stopped goes on where it was.
"""

from __future__ import annotations

import json
import math
import os
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from byzadmm import datasets, simulate_many, steps
from byzadmm._internal.atomic_files import prepare
from byzadmm._internal.validation import check_int, check_real
from byzadmm.algorithms import Algorithm
from byzadmm.datasets import Dataset
from byzadmm.figures._files import write_text
from byzadmm.figures.settings import FIGURES, Curve, Settings, load_settings, make_parts
from byzadmm.results import Result

__all__ = ["Tuned", "tune", "validation_split"]

Trial = dict[str, float]

#: Largest number of samples put aside for validation; a sixth of the training set if that is less.
VALIDATION = 5000
_DIMENSIONS = {"admm": ("lam", "beta", "slope"), "rsa": ("lam", "step")}
_SIDES = (1.0, 0.5, 0.25)  # side of the box of each round, in parts of the whole range


@dataclass(frozen=True)
class Tuned:
    """What a search found.

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

    The score is the final accuracy on the validation samples. ADMM's steps are ``1/(m beta + slope sqrt k)`` at the master and
    ``1/(beta + slope sqrt k)`` at the workers, the form that all of the paper's have; the others' are ``step/sqrt k``.

    Parameters
    ----------
    name : str or Path
        A panel, or a settings file of your own with a ``[tuning]`` table.
    algorithms : list of str, optional
        Only these; without it all that are not marked ``printed``.
    budget, seed : int, optional
        Trials per algorithm and seed of the search; those of the file without them.
    data_dir : path, optional
        Where the data is.
    out : path, optional
        Settings file to write; your own file itself, or ``NAME.toml`` here for a panel of the package. The journal is
        beside it, ``NAME.tuning.json``.
    check : bool
        Search nothing: say where the settings file differs from the best of its journal.
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
    chosen = _choose(settings, algorithms)
    trials_each = settings.search.budget if budget is None else check_int(budget, "budget", low=1)
    key = settings.search.seed if seed is None else check_int(seed, "seed", low=0)
    if check:
        journal = _Journal(settings.path.with_suffix(".tuning.json"), chosen)
        target = settings.path
    else:
        packaged = str(name) in FIGURES
        target = Path(out) if out is not None else Path(settings.path.name) if packaged else settings.path
        about = _describe(settings, trials_each, key)
        journal = _Journal(target.with_suffix(".tuning.json"), chosen, about)
        for path in (target, journal.path):
            prepare(path, "out")
        full = datasets.load(settings.dataset, data_dir=data_dir, scale=settings.scale)
        dataset = validation_split(full, key)
        start = 0
        for end, side in zip(_rounds(trials_each), _SIDES, strict=True):
            _search_round(settings, chosen, dataset, journal, range(start, end), side, progress)
            start = end
        text = settings.path.read_text(encoding="utf-8")
        for curve in chosen:
            text = _replace_table(text, curve, journal.best(curve.name), settings.n_workers)
        text = _replace_number(_replace_number(text, "budget", trials_each), "seed", key)
        write_text(target, text)
    best = {curve.name: journal.best(curve.name) for curve in chosen if curve.name in journal.trials}
    return Tuned(best, target, journal.path, _differences(load_settings(target), chosen, journal))


def validation_split(dataset: Dataset, seed: int) -> Dataset:
    """Cut validation samples out of the training set; they take the place of the test set.

    Parameters
    ----------
    dataset : Dataset
    seed : int

    Returns
    -------
    Dataset
        Its ``test_x`` are former training samples; the test set is gone.

    Examples
    --------
    >>> from byzadmm import datasets
    >>> from byzadmm.figures.tuning import validation_split
    >>> validation_split(datasets.load("digits"), 0)
    Dataset('digits', train=1198, test=239, n_features=64, n_classes=10, dtype=uint8, scale=0.0625)
    """
    n = len(dataset.train_y)
    order = np.random.default_rng(seed).permutation(n)
    held = order[: min(VALIDATION, n // 6)]
    kept = np.sort(order[len(held) :])
    return Dataset(
        dataset.name,
        np.ascontiguousarray(dataset.train_x[kept]),
        dataset.train_y[kept],
        np.ascontiguousarray(dataset.train_x[held]),
        dataset.train_y[held],
        dataset.n_classes,
        dataset.scale,
    )


def _choose(settings: Settings, algorithms: Sequence[str] | None) -> list[Curve]:
    curves = {curve.name: curve for curve in settings.curves if not curve.printed}
    for name in algorithms or ():
        if name not in curves:
            raise ValueError(f"algorithms: expected some of {', '.join(curves)}; got {name!r}")
    chosen = [curve for name, curve in curves.items() if algorithms is None or name in algorithms]
    assert settings.search is not None
    for curve in chosen:
        for dimension in _dimensions(curve.kind):
            if dimension not in settings.search.ranges:
                raise ValueError(f"{settings.path}: tuning.{dimension}: missing, {curve.name} needs it")
    return chosen


def _describe(settings: Settings, budget: int, seed: int) -> dict[str, Any]:
    """What a search depends on; a journal of another one is not gone on with."""
    search, attack = settings.search, settings.attacks[0]
    assert search is not None
    return {
        "budget": budget,
        "seed": seed,
        "iterations": search.iterations,
        "ranges": {key: list(ends) for key, ends in search.ranges.items()},
        "dataset": settings.dataset,
        "scale": settings.scale,
        "partition": settings.partition,
        "n_workers": settings.n_workers,
        "n_byzantine": settings.n_byzantine,
        "attack": None if attack is None else attack.describe(),
        "batch_size": settings.batch_size,
        "rho": settings.rho,
        "score": "final accuracy",
    }


def _dimensions(kind: str) -> tuple[str, ...]:
    return _DIMENSIONS.get(kind, ("step",))


def _rounds(budget: int) -> list[int]:
    """How many trials are done after each round: half, three quarters, all."""
    return [math.ceil(budget / 2), math.ceil(3 * budget / 4), budget]


class _Journal:
    """All trials of a search, on disk after each: algorithm -> number of the trial -> parameters and accuracy."""

    def __init__(self, path: Path, curves: Sequence[Curve], about: dict[str, Any] | None = None) -> None:
        self.path = path
        self.trials: dict[str, dict[str, Trial]] = {}
        if about is not None and not path.exists():
            self.about = about
            return
        try:
            record = json.loads(path.read_text(encoding="utf-8"))
            self.about, self.trials = dict(record["search"]), _checked(record["trials"])
            if about is None and not {"budget", "seed", "iterations"} <= self.about.keys():
                raise ValueError("the search is not described")
        except (OSError, ValueError, KeyError, TypeError, AttributeError, RecursionError) as error:
            raise ValueError(f"{path}: not a journal of a search ({error})") from error
        if about is not None and self.about != about:
            raise ValueError(f"{path}: belongs to another search; remove it or choose another out")
        for curve in curves:
            for number, trial in self.trials.get(curve.name, {}).items():
                missing = [name for name in _dimensions(curve.kind) if name not in trial]
                if missing:
                    raise ValueError(f"{path}: trial {number} of {curve.name}: {missing[0]}: missing")

    def best(self, name: str) -> Trial:
        trials = self.trials[name]
        return max((trials[number] for number in sorted(trials, key=int)), key=lambda trial: trial["accuracy"])

    def add(self, name: str, number: int, trial: Trial) -> None:
        self.trials.setdefault(name, {})[str(number)] = trial
        write_text(self.path, self.text())

    def text(self) -> str:
        lines = [
            f"  {json.dumps(name)}: {{\n"
            + ",\n".join(f'    "{n}": {json.dumps(trials[n])}' for n in sorted(trials, key=int))
            + "\n  }"
            for name, trials in sorted(self.trials.items())
        ]
        return f'{{"search": {json.dumps(self.about)},\n"trials": {{\n' + ",\n".join(lines) + "\n}}\n"


def _checked(trials: Any) -> dict[str, dict[str, Trial]]:
    """What a journal has about each trial must be numbers, its accuracy among them."""
    return {
        name: {
            str(int(number)): {key: check_real(trial[key], key) for key in {**trial, "accuracy": None}}
            for number, trial in numbered.items()
        }
        for name, numbered in trials.items()
    }


def _search_round(
    settings: Settings,
    chosen: list[Curve],
    dataset: Dataset,
    journal: _Journal,
    numbers: range,
    side: float,
    progress: bool,
) -> None:
    """The trials with these numbers of every algorithm, as far as the journal does not have them."""
    search, seed = settings.search, journal.about["seed"]
    assert search is not None
    parts = make_parts(settings, dataset, seed)
    wanted: list[tuple[Curve, int, Trial]] = []
    for curve in chosen:
        known = journal.trials.get(curve.name, {})
        # The box depends on finished rounds only, so that an interrupted round goes on with the same trials.
        before = [trial for number, trial in known.items() if int(number) < numbers.start]
        centre = max(before, key=lambda trial: trial["accuracy"]) if before else None
        for number in numbers:
            if str(number) not in known:
                wanted.append((curve, number, _propose(curve.kind, search.ranges, number, side, centre, seed)))
    configs = [
        {
            "dataset": dataset,
            "parts": parts,
            "algorithm": _algorithm(curve, trial, settings.n_workers),
            "attack": settings.attacks[0],
            "n_byzantine": settings.n_byzantine,
            "iterations": search.iterations,
            "batch_size": settings.batch_size,
            "rho": settings.rho,
            "eval_every": max(1, search.iterations // 10),
            "seed": seed,
        }
        for curve, _, trial in wanted
    ]

    def keep(which: int, result: Result | Exception) -> None:
        if isinstance(result, Exception):
            raise result
        curve, number, trial = wanted[which]
        journal.add(curve.name, number, {**trial, "accuracy": round(result.final_accuracy(), 4)})

    simulate_many(configs, progress=progress, on_result=keep)


def _propose(
    kind: str, ranges: Mapping[str, tuple[float, float]], number: int, side: float, centre: Trial | None, seed: int
) -> Trial:
    """A point of an evenly spread sequence, in a box of that side around the centre; logarithmic in every direction."""
    names = _dimensions(kind)
    # The additive recurrence of the generalised golden ratio fills a cube evenly at any length.
    ratio = 2.0
    for _ in range(30):
        ratio = (1 + ratio) ** (1 / (len(names) + 1))
    start = np.random.default_rng(seed).random(len(names))
    trial: Trial = {}
    for axis, name in enumerate(names):
        low, high = (math.log(end) for end in ranges[name])
        width = side * (high - low)
        if centre is not None:
            low = min(max(math.log(centre[name]) - width / 2, low), high - width)
        value = math.exp(low + width * ((start[axis] + (number + 1) * ratio ** -(axis + 1)) % 1.0))
        trial[name] = float(f"{value:.2g}")  # two digits: what a file can hold exactly, and as fine as it matters
    return trial


def _steps(kind: str, trial: Trial, n_workers: int) -> dict[str, dict[str, list[float]]]:
    """The steps of a trial as a settings file writes them."""
    if kind != "admm":
        return {"step": {"power": [trial["step"], 0.5]}}
    master = float(f"{n_workers * trial['beta']:.6g}")
    return {
        "master_step": {"inv_sqrt": [master, trial["slope"]]},
        "worker_step": {"inv_sqrt": [trial["beta"], trial["slope"]]},
    }


def _algorithm(curve: Curve, trial: Trial, n_workers: int) -> Algorithm:
    given: dict[str, Any] = {key: value for key, value in trial.items() if key in ("lam", "beta")}
    for key, step in _steps(curve.kind, trial, n_workers).items():
        [(name, numbers)] = step.items()
        given[key] = getattr(steps, name)(*numbers)
    return curve.algorithm.changed(**given)


def _differences(settings: Settings, chosen: list[Curve], journal: _Journal) -> list[str]:
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
        if now[curve.name].algorithm != _algorithm(curve, best, settings.n_workers):
            found.append(f"{curve.name}: the parameters are not those of the best trial")
        if now[curve.name].validation != best["accuracy"]:
            found.append(f"{curve.name}: validation is {now[curve.name].validation}, best is {best['accuracy']}")
    return found


def _replace_table(text: str, curve: Curve, trial: Trial, n_workers: int) -> str:
    """The text of a settings file with what was tuned in one algorithm's table written anew; the rest stays."""
    new = [f"{key} = {trial[key]!r}" for key in ("lam", "beta") if key in trial]
    for key, step in _steps(curve.kind, trial, n_workers).items():
        [(name, numbers)] = step.items()
        new.append(f"{key} = {{ {name} = {numbers} }}")
    new.append(f"validation = {trial['accuracy']}")

    def written(found: re.Match[str]) -> str:
        tuned = re.compile(r"(lam|beta|step|master_step|worker_step|validation) *=")
        kept = [line for line in found[0].splitlines() if not tuned.match(line)]
        return "\n".join(kept + new) + "\n"

    pattern = rf"^\[algorithms\.{re.escape(curve.name)}\]\n(?:(?!\[|\n).*\n?)*"
    text, count = re.subn(pattern, written, text, flags=re.MULTILINE)
    if count != 1:
        raise ValueError(f"algorithms.{curve.name}: expected one table written as [algorithms.{curve.name}]")
    return text


def _replace_number(text: str, key: str, value: int) -> str:
    return re.sub(rf"(^\[tuning\]\n(?:(?!\[).*\n)*?{key} *= *)\d+", rf"\g<1>{value}", text, flags=re.MULTILINE)
