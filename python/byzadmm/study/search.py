"""Search of step sizes and penalties: the points that are tried, and the search that comes before a comparison.

A trial trains on a part of the training set and is scored on the rest of it; the test set is never read. Half of the
trials are spread over the whole range, the others over smaller and smaller boxes around the best so far. All are as
long as the runs: which settings are best depends on the length (on raw COVERTYPE steps chosen at 6,000 of 20,000
iterations were three times too small), so there is no halving by shorter runs.
"""

from __future__ import annotations

import math
import os
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from byzadmm import catalogue, steps
from byzadmm._internal.arrays import Array
from byzadmm._internal.validation import check_choice, check_int, check_real
from byzadmm.algorithms import Algorithm
from byzadmm.datasets import Dataset
from byzadmm.decentralized import degree_steps
from byzadmm.decentralized.base import shared_out
from byzadmm.study.boxes import measure, merge
from byzadmm.study.plan import Cell, Plan
from byzadmm.study.run import carry_out, make_loss
from byzadmm.study.study import HIGHER, Study
from byzadmm.training.experiment import DEFAULTS
from byzadmm.training.run import Progress

__all__ = ["ROUNDS", "Trial", "propose", "round_of_trials", "step_settings", "tried", "tuned", "validation_split"]

#: Parameters of one trial and, once it is done, its score.
Trial = dict[str, float]
#: Largest number of samples put aside for validation; a sixth of the training set if that is less.
VALIDATION = 5000
#: The rounds of a search: share of the trials that are done after it, side of its boxes in parts of the whole range.
ROUNDS = ((0.5, 1.0), (0.625, 0.4), (0.75, 0.25), (0.875, 0.16), (1.0, 0.1))

_OPTIONS = ("budget", "attack", "ranges", "iterations", "seed")


def tuned(
    plan: Plan,
    tune: Any,
    *,
    jobs: int | None = None,
    progress: bool | Progress | None = None,
    checkpoint: str | os.PathLike[str] | None = None,
) -> tuple[Plan, dict[str, Trial]]:
    """The plan with settings that a search has found, and what it found for every algorithm.

    ADMM, RSA and SGD with any rule get the same number of trials per setting searched: ``lam``, ``beta`` and the
    slope of the steps for ADMM, ``lam`` and the step for RSA, the step for SGD. Other algorithms stay as they are. The
    trials run with the first number of Byzantine workers, partition and seed.

    Parameters
    ----------
    plan : Plan
    tune : int or dict
        Trials per setting; or "budget" for that, and optionally "attack", one of the plan's by name (the first), or
        "none"; "ranges", ``{"lam": (low, high)}`` for "lam", "beta", "step" and "slope" (by default derived from the
        gradients: :meth:`byzadmm.study.boxes.Scales.ranges`; those of the catalogue for real targets and networks);
        "iterations" (as many as the runs have) and "seed" (0), which sets the samples for validation and the points.
    jobs, progress, checkpoint
        As in :func:`byzadmm.compare`.
    """
    options = dict(tune) if isinstance(tune, Mapping) else {"budget": tune}
    for name in options:
        check_choice(name, "tune", _OPTIONS)
    budget = check_int(options.get("budget", 8), "tune: budget", low=1)
    seed = check_int(options.get("seed", 0), "tune: seed", low=0)
    attack = check_choice(options.get("attack", plan.axes["attack"][0]), "tune: attack", (*plan.axes["attack"], "none"))
    given = _checked_ranges(options.get("ranges", {}))
    bases = _bases(plan, attack)
    if not bases:
        return plan, {}
    common = next(iter(bases.values()))
    if not isinstance(common["dataset"], Dataset) or common["parts"] is None:
        raise ValueError("tune: needs a data set of which samples can be set aside, and a loss made of it")
    graph = common.get("graph")
    data, kept = _split(common["dataset"], seed)
    held = {"validation": _restricted([common["validation"]], kept)[0]} if "validation" in common else {}
    common = {
        "dataset": data,
        "parts": _restricted(common["parts"], kept),
        **held,
        **_length(options, common),
    }
    ranges = _ranges(bases, common, given)
    m = len(common["parts"])
    done: dict[str, list[Trial]] = {name: [] for name in bases}
    for turn in range(len(ROUNDS)):
        trials: dict[str, tuple[str, Trial]] = {}
        for name, base in bases.items():
            made = round_of_trials(_searched(base["algorithm"]), ranges, turn, budget, done[name], seed)
            trials |= {f"{name} #{number}": (name, trial) for number, trial in made.items()}
        if not trials:
            continue
        runs = {
            Cell(label, attack, 0, "validation", seed): bases[name]
            | common
            | {"algorithm": tried(bases[name]["algorithm"], trial, m, graph)}
            for label, (name, trial) in trials.items()
        }
        axes = {axis: list(dict.fromkeys(getattr(cell, axis) for cell in runs)) for axis in plan.axes}
        study = carry_out(
            Plan(plan.title, axes, dict(runs)),
            jobs=jobs,
            progress=progress,
            checkpoint=_beside(checkpoint),
            may_fail=True,
        )
        for cell in runs:
            name, trial = trials[cell.algorithm]
            done[name].append(trial | {"score": _score(study, cell)})
    best = {name: max(trials, key=lambda trial: trial["score"]) for name, trials in done.items()}
    best = {name: trial for name, trial in best.items() if trial["score"] > -math.inf}  # all failed: as it was
    changed: dict[int, dict[str, Any]] = {}

    def found(cell: Cell, run: dict[str, Any] | str) -> dict[str, Any] | str:
        if isinstance(run, str) or cell.algorithm not in best:
            return run
        if id(run) not in changed:  # cells that share a run still do
            changed[id(run)] = run | {"algorithm": tried(run["algorithm"], best[cell.algorithm], m, graph)}
        return changed[id(run)]

    return replace(plan, runs={cell: found(cell, run) for cell, run in plan.runs.items()}), best


def validation_split(dataset: Dataset, seed: int) -> Dataset:
    """The data set with validation samples, cut out of the training set, in the place of the test set.

    Parameters
    ----------
    dataset : Dataset
    seed : int

    Returns
    -------
    Dataset
        Its ``test_x`` are former training samples; the test set is not in it.

    Examples
    --------
    >>> from byzadmm import datasets
    >>> from byzadmm.study.search import validation_split
    >>> validation_split(datasets.load("digits"), 0)
    Dataset('digits', train=1198, test=239, n_features=64, n_classes=10, dtype=uint8, scale=0.0625)
    """
    return _split(dataset, seed)[0]


def _split(dataset: Dataset, seed: int) -> tuple[Dataset, Array]:
    """The data set of :func:`validation_split`, and which samples are left for training, ascending."""
    n = len(dataset.train_y)
    order = np.random.default_rng(seed).permutation(n)
    held = order[: min(VALIDATION, n // 6)]
    kept = np.sort(order[len(held) :])
    split = replace(
        dataset,
        train_x=np.ascontiguousarray(dataset.train_x[kept]),
        train_y=dataset.train_y[kept],
        test_x=np.ascontiguousarray(dataset.train_x[held]),
        test_y=dataset.train_y[held],
    )
    return split, kept


def round_of_trials(
    names: Sequence[str],
    ranges: Mapping[str, Sequence[float]],
    turn: int,
    budget: int,
    done: Sequence[Trial],
    seed: int,
    score: str = "score",
) -> dict[int, Trial]:
    """The trials of one of the :data:`ROUNDS` of a search.

    The first round is spread over the whole range, the others over a box around the best trial of the rounds before.

    Parameters
    ----------
    names : tuple of str
        The settings searched.
    ranges : dict
        As :func:`propose` takes them.
    turn : int
        Number of the round.
    budget : int
        Trials per setting searched.
    done : list of Trial
        At least the trials of the rounds before, in the order of their numbers; others are not used, so that an
        interrupted round is resumed with the same trials.
    seed : int
    score : str
        The entry of a trial that says how good it is.

    Returns
    -------
    dict
        Number of the trial -> its settings.

    Examples
    --------
    >>> from byzadmm.study.search import round_of_trials
    >>> round_of_trials(["step"], {"step": (0.1, 10.0)}, 0, 4, [], 0)
    {0: {'step': 0.32}, 1: {'step': 5.6}}
    """
    total = budget * len(names)
    start, end = (math.ceil(share * total) for share in (ROUNDS[turn - 1][0] if turn else 0, ROUNDS[turn][0]))
    center = max(done[:start], key=lambda trial: trial[score], default=None)
    return {number: propose(names, ranges, number, ROUNDS[turn][1], center, seed) for number in range(start, end)}


def propose(
    names: Sequence[str],
    ranges: Mapping[str, Sequence[float]],
    number: int,
    side: float,
    center: Trial | None,
    seed: int,
) -> Trial:
    """A point of an evenly spread sequence, in a box of that side around the center; logarithmic in every direction.

    The range of a setting may be that of its quotient by another one, as "slope/lam".
    """
    # The additive recurrence of the generalized golden ratio fills a cube evenly at any length.
    ratio = 2.0
    for _ in range(30):
        ratio = (1 + ratio) ** (1 / (len(names) + 1))
    start = np.random.default_rng(seed).random(len(names))
    trial: Trial = {}
    for axis, (name, divisor, ends) in enumerate(_axes(names, ranges)):
        low, high = (math.log(end) for end in ends)
        width = side * (high - low)
        if center is not None:
            middle = math.log(center[name] / (center[divisor] if divisor else 1.0))
            low = min(max(middle - width / 2, low), high - width)
        value = math.exp(low + width * ((start[axis] + (number + 1) * ratio ** -(axis + 1)) % 1.0))
        value *= trial[divisor] if divisor else 1.0
        trial[name] = float(f"{value:.2g}")  # two digits are written exactly in a file, and finer ones do not matter
    return {name: trial[name] for name in names}


def _axes(names: Sequence[str], ranges: Mapping[str, Sequence[float]]) -> list[tuple[str, str, Sequence[float]]]:
    """Setting, the one by which it is divided or "", and the range; divisors come first."""
    found: dict[str, tuple[str, str, Sequence[float]]] = {}
    keys = [(*key.partition("/")[::2], key) for key in ranges]
    while len(found) < len(names):
        name, divisor, key = next(
            (name, divisor, key)
            for wanted in names
            for name, divisor, key in keys
            if name == wanted and name not in found and (not divisor or divisor in found)
        )
        found[name] = name, divisor, ranges[key]
    return list(found.values())


def step_settings(trial: Trial, n_workers: int) -> dict[str, dict[str, list[float]]]:
    """The steps of a trial as a settings file writes them."""
    if "slope" not in trial:
        return {"step": {"power": [trial["step"], 0.5]}}
    master = float(f"{n_workers * trial['beta']:.6g}")
    return {
        "master_step": {"inv_sqrt": [master, trial["slope"]]},
        "worker_step": {"inv_sqrt": [trial["beta"], trial["slope"]]},
    }


def tried(algorithm: Algorithm, trial: Trial, n_workers: int, graph: Any = None) -> Algorithm:
    """The algorithm with the parameters of a trial."""
    given: dict[str, Any] = {key: value for key, value in trial.items() if key in ("lam", "beta")}
    if graph is not None and "slope" in trial:
        return algorithm.changed(**given, step=degree_steps(graph, trial["beta"], trial["slope"]))
    for key, step in step_settings(trial, n_workers).items():
        [(name, numbers)] = step.items()
        given[key] = getattr(steps, name)(*numbers)
    return algorithm.changed(**given)


def _searched(algorithm: Algorithm) -> tuple[str, ...]:
    """What a search varies for this algorithm; nothing for one that the catalogue does not have."""
    entries = (*catalogue.algorithms().values(), *catalogue.decentralized().values())
    return next((entry.tuned for entry in entries if entry.kind is type(algorithm)), ())


def _bases(plan: Plan, attack: str) -> dict[str, dict[str, Any]]:
    """The arguments of every algorithm that can be searched, in the first legal cell of the others' first values."""
    found: dict[str, dict[str, Any]] = {}
    for cell, run in plan.runs.items():
        named = cell.attack == attack or attack not in plan.axes["attack"]
        if isinstance(run, str) or not named or cell.algorithm in found or not _searched(run["algorithm"]):
            continue
        found[cell.algorithm] = run if attack in plan.axes["attack"] else run | {"attack": None}
    return found


def _length(options: Mapping[str, Any], arguments: Mapping[str, Any]) -> dict[str, Any]:
    """How long the trials are: as the runs, or so many iterations."""
    name = "updates" if "delays" in arguments else "iterations"
    given = options.get("iterations", arguments.get(name, DEFAULTS.get(name)))
    return {name: None if given is None else check_int(given, "tune: iterations", low=1)}


def _ranges(
    bases: Mapping[str, dict[str, Any]], common: dict[str, Any], given: Mapping[str, Any]
) -> dict[str, Sequence[float]]:
    """The given ranges, and those derived from the data for the others: by the gradients if the model is linear."""
    if {name for base in bases.values() for name in _searched(base["algorithm"])} <= given.keys():
        return dict(given)
    arguments = next(iter(bases.values())) | common
    data: Dataset = arguments["dataset"]
    loss = None if data.n_classes == 0 else make_loss(arguments)
    plain = not hasattr(loss, "samples")
    found: Mapping[str, Any] = catalogue.preset_for(data).ranges() if plain else measure(loss).ranges()
    return merge(found if arguments.get("graph") is None else _shared(found, arguments["graph"]), given)


def _shared(ranges: Mapping[str, Any], graph: Any) -> dict[str, Any]:
    """Ranges of a master's links, shared out among those of a graph as :meth:`DADMM.for_dataset` does it."""

    def factor(name: str) -> float:
        over, _, under = name.partition("/")
        share = {each: shared_out(1.0, graph) if each in ("lam", "beta") else 1.0 for each in (over, under)}
        return share[over] / share[under]

    return {name: tuple(float(f"{end * factor(name):.3g}") for end in ends) for name, ends in ranges.items()}


def _checked_ranges(given: Any) -> dict[str, tuple[float, float]]:
    if not isinstance(given, Mapping):
        raise TypeError(f"tune: ranges: expected a dict, got {type(given).__name__}")
    for name, ends in given.items():
        check_choice(name, "tune: ranges", ("lam", "beta", "step", "slope"))
        if np.shape(ends) != (2,):
            raise TypeError(f"tune: ranges: {name}: expected (low, high), got {ends!r}")
        low = check_real(ends[0], f"tune: ranges: {name}", low=0.0, strict=True)
        check_real(ends[1], f"tune: ranges: {name}", low=low)
    return dict(given)


def _restricted(parts: Sequence[Any], kept: Array) -> list[Array]:
    """The parts without the samples set aside, by their new places; a worker that has none left keeps one sample."""
    made = []
    for part in parts:
        left = np.intersect1d(np.asarray(part), kept)
        made.append(np.searchsorted(kept, left if len(left) else kept[:1]))
    return made


def _score(study: Study, cell: Cell) -> float:
    """The higher the better; a run that failed or diverged is the worst."""
    metric = study.metric()
    final = study.final(cell, metric)
    return -math.inf if math.isnan(final) else final if metric in HIGHER else -final


def _beside(checkpoint: str | os.PathLike[str] | None) -> str | None:
    return None if checkpoint is None else os.path.join(checkpoint, "search")
