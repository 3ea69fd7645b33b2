"""The values of a study's axes: names, objects and functions to named choices."""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from byzadmm import catalogue
from byzadmm._internal.arrays import is_array
from byzadmm._internal.description import describe, settings_of
from byzadmm._internal.validation import check_int
from byzadmm.aggregators import Aggregator
from byzadmm.algorithms import SGD, Algorithm
from byzadmm.datasets import Dataset
from byzadmm.decentralized import DSGD, NeighborhoodRule
from byzadmm.graphs import Flaky, Graph

__all__ = [
    "AlgorithmChoice",
    "Choice",
    "PartitionChoice",
    "Parts",
    "choose_algorithms",
    "choose_attacks",
    "choose_numbers",
    "choose_partitions",
]

#: Samples of every worker.
Parts = Sequence[Any]

_PLAIN = (str, list, tuple, type(None), type)  # what has no settings that could tell it from another


@dataclass(frozen=True)
class Choice:
    """A value of an axis: its name in rows, its label in pictures, and the value."""

    name: str
    label: str
    value: Any


@dataclass(frozen=True)
class AlgorithmChoice(Choice):
    """An algorithm; ``value(q)`` makes it for ``q`` Byzantine workers.

    ``kind`` is its name in the catalogue, which has its color and line, or its own name. ``variants`` has other makers
    for some cases: (attack, partition), by their names -> a function of ``q`` like ``value``. ``extent`` has length
    and evaluations of its runs, if they are not those of all.
    """

    kind: str = ""
    variants: Mapping[tuple[str, str], Callable[[int], Algorithm]] = field(default_factory=dict)
    extent: Mapping[str, int] = field(default_factory=dict)

    def maker(self, attack: str, partition: str) -> Callable[[int], Algorithm]:
        """What makes it under this attack with this partition."""
        maker: Callable[[int], Algorithm] = self.variants.get((attack, partition), self.value)
        return maker


@dataclass(frozen=True)
class PartitionChoice(Choice):
    """A partition; ``value(seed, rows, byzantine)`` divides the samples ``rows``, None: all.

    ``by_roles``: whether its parts depend on who is Byzantine.
    """

    by_roles: bool = False


def choose_algorithms(
    given: Any,
    dataset: Dataset | None,
    preset: Callable[[], catalogue.Preset],
    graph: Graph | Flaky | None = None,
) -> list[AlgorithmChoice]:
    """The algorithms of a study.

    Parameters
    ----------
    given : name, Algorithm, rule, or a list or dict of them
        A name of the catalogue ("admm", "krum", "nnm+trimmed-mean"); an Algorithm, or a class of them; a function or an
        object of ``byzadmm.aggregators``, which stands for SGD with that rule; an AlgorithmChoice as it is. The keys of
        a dict are labels.
    dataset : Dataset or None
    preset : callable
        Gives the settings of the catalogue for the data; called if a name or a rule needs them.
    graph : Graph or Flaky, optional
        What names mean on it; a rule stands for DSGD then, and may be a neighborhood rule.
    """
    labels, items = _items(given, "algorithms")
    choices = [_algorithm(item, dataset, preset, graph) for item in items]
    if labels is not None:
        choices = [replace(one, name=label, label=label) for label, one in zip(labels, choices, strict=True)]
    return _unlike(choices, items, "algorithms")


def _algorithm(
    item: Any, dataset: Dataset | None, preset: Callable[[], catalogue.Preset], graph: Graph | Flaky | None
) -> AlgorithmChoice:
    if isinstance(item, AlgorithmChoice):
        return item
    if isinstance(item, type) and issubclass(item, Aggregator):
        item = catalogue.hyphenated(item.rule)
    if isinstance(item, str):
        name = item.strip()

        def named(q: int) -> Algorithm:
            return catalogue.make_algorithm(name, preset(), q, graph=graph)

        kind, label = catalogue.label_of(named(0).describe())  # an error about the name now, not in every cell
        label = catalogue.LABELS.get(catalogue.hyphenated(name), name if ":" in name else label)
        return AlgorithmChoice(name, label, named, kind)
    if isinstance(item, type) and issubclass(item, Algorithm):
        on = () if graph is None or item.schedule != "graph" else (graph,)
        item = item.for_dataset(dataset, *on) if hasattr(item, "for_dataset") and dataset is not None else item()
    elif isinstance(item, type) and issubclass(item, NeighborhoodRule):
        item = item()
    if callable(item) and not isinstance(item, Algorithm):
        name = catalogue.hyphenated(item.rule) if isinstance(item, Aggregator) else catalogue.name_of(item)
        near = isinstance(item, NeighborhoodRule)
        if near and graph is None:
            raise ValueError(f"graph: {name} is a rule of neighborhoods and needs one, such as 'ring:k=2'")
        made = (SGD if graph is None else DSGD)(rule=item, step=preset().step)
        name = catalogue.label_of(made.describe())[0] if near else name
        return AlgorithmChoice(name, catalogue.LABELS.get(name, name), made.declaring, name)
    if not isinstance(item, Algorithm):
        raise TypeError(f"algorithms: expected a name, an algorithm or a rule, got {type(item).__name__}")
    kind, label = catalogue.label_of(item.describe())
    known = catalogue.algorithms() | catalogue.decentralized()
    if kind == type(item).__name__.lower() and kind not in known:  # a user's own
        kind = label = type(item).__name__
    return AlgorithmChoice(kind, label, item.declaring, kind)


def choose_attacks(given: Any) -> list[Choice]:
    """The attacks of a study: None, a name with settings, an object, a function, or a list or dict of them."""
    labels, items = _items(given, "attacks")
    choices = []
    for item in items:
        if isinstance(item, Choice):
            choices.append(item)
            continue
        attack = catalogue.make_attack(item) if isinstance(item, str) else item
        attack = attack() if isinstance(attack, type) else attack
        if attack is not None and not callable(attack):
            raise TypeError(f"attacks: expected a name, an attack, a function or None, got {type(item).__name__}")
        if attack is None:
            choices.append(Choice("none", "no attack", None))
            continue
        own = type(attack).__name__
        name = catalogue.attack_name(attack)
        typed = item.strip() if isinstance(item, str) else name
        choices.append(Choice(typed, own if own.isupper() and typed == name else typed, attack))
    if labels is not None:
        choices = [Choice(label, label, one.value) for label, one in zip(labels, choices, strict=True)]
    return _unlike(choices, items, "attacks")


def choose_numbers(given: Any, what: str, *, low: int, high: int) -> list[int]:
    """One integer, or a list of different ones."""
    items = list(given) if isinstance(given, (Iterable, np.ndarray)) and not isinstance(given, str) else [given]
    numbers = [check_int(item, what, low=low, high=high) for item in items]
    if not numbers or len(set(numbers)) < len(numbers):
        raise ValueError(f"{what}: expected different numbers, at least one; got {items}")
    return numbers


def choose_partitions(
    given: Any, dataset: Dataset, n_workers: int | None, default: int
) -> tuple[list[PartitionChoice], int]:
    """The partitions of a study, and the number of workers.

    Parameters
    ----------
    given : name, function, list of index arrays, or a list or dict of these
        A function is called as ``f(labels, n_workers, seed)``.
    dataset : Dataset
    n_workers : int or None
        None: as many as there are index arrays, or ``default``.
    default : int
    """
    if not isinstance(given, Mapping) and _is_parts(given):
        given = [given]
    labels, items = _items(given, "partition")
    lengths = {len(item) for item in items if _is_parts(item)}
    if len(lengths) > 1 or (n_workers is not None and lengths - {n_workers}):
        wanted = "as many index arrays in each" if n_workers is None else f"{n_workers} index arrays, one per worker"
        raise ValueError(f"partition: expected {wanted}, got {' and '.join(map(str, sorted(lengths)))}")
    m = n_workers if n_workers is not None else next(iter(lengths), default)
    choices = [_partition(item, dataset, m) for item in items]
    if labels is not None:
        choices = [replace(one, name=label, label=label) for label, one in zip(labels, choices, strict=True)]
    return _unlike(choices, items, "partition"), m


def _partition(item: Any, dataset: Dataset, m: int) -> PartitionChoice:
    if isinstance(item, str):

        def named(seed: int, rows: Any, byzantine: Sequence[int]) -> list[Any]:
            return catalogue.make_parts(item, dataset, m, seed, rows, byzantine)

        by_roles = "among" in catalogue.parse(item, "partition", catalogue.PARTITIONS)[1]
        return PartitionChoice(item.strip(), catalogue.partition_label(item), named, by_roles)
    if callable(item):
        name = catalogue.name_of(item)
        return PartitionChoice(name, name, lambda seed, rows, byzantine: _divided(item, dataset, m, seed, rows))
    if _is_parts(item):
        return PartitionChoice("given", "given", lambda seed, rows, byzantine: item)
    raise TypeError(
        f"partition: expected a name, a function, a list of index arrays, or several; got {type(item).__name__}"
    )


def _divided(divide: Callable[..., Iterable[Any]], dataset: Dataset, m: int, seed: int, rows: Any) -> list[Any]:
    """The parts that a user's function makes of the samples ``rows``."""
    made = list(divide(dataset.train_y if rows is None else dataset.train_y[rows], m, seed))
    if rows is not None:
        made = [rows[np.asarray(part)] for part in made]
    if len(made) != m:
        raise ValueError(f"partition: expected {m} index arrays, one per worker, got {len(made)}")
    return made


def _is_parts(given: Any) -> bool:
    """Whether it is a list of index arrays: of lists of whole numbers, not of names or of such lists."""

    def is_indices(item: Any) -> bool:
        if is_array(item):
            return np.ndim(item) == 1
        return isinstance(item, (list, tuple, range)) and all(isinstance(one, (int, np.integer)) for one in item)

    return isinstance(given, (list, tuple)) and bool(given) and all(map(is_indices, given))


def _items(given: Any, what: str) -> tuple[list[str] | None, list[Any]]:
    """Labels, if there are any, and values."""
    if isinstance(given, Mapping):
        labels, items = [str(label) for label in given], list(given.values())
    else:
        labels, items = None, list(given) if isinstance(given, (list, tuple)) else [given]
    if not items:
        raise ValueError(f"{what}: expected at least one, got none")
    return labels, items


def _settings(part: Any) -> dict[str, Any]:
    return dict(part.keywords) if isinstance(part, functools.partial) else settings_of(part)


def _unlike(choices: list[Any], items: list[Any], what: str) -> list[Any]:
    """The choices; an object whose name another choice has gets the settings in which such objects differ added."""
    made = []
    for choice, item in zip(choices, items, strict=True):
        same = [other for one, other in zip(choices, items, strict=True) if one.name == choice.name]
        if len(same) > 1 and not isinstance(item, _PLAIN):
            held = [_settings(one) for one in same if not isinstance(one, _PLAIN)]
            own = _settings(item)
            differ = [key for key in own if len({repr(describe(each.get(key))) for each in held}) > 1]
            words = ", ".join(f"{key}={describe(own[key])}" for key in differ) or "own"
            choice = replace(choice, name=f"{choice.name} ({words})", label=f"{choice.label} ({words})")
        made.append(choice)
    names = [choice.name for choice in made]
    if len(set(names)) < len(names):
        twice = next(name for name in names if names.count(name) > 1)
        raise ValueError(f"{what}: two are called {twice!r}; give them labels with a dict")
    labels = [choice.label for choice in made]
    return [replace(choice, label=choice.name) if labels.count(choice.label) > 1 else choice for choice in made]
