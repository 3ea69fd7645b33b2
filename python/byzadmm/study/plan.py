"""What a study runs: its axes, its cells, and the arguments of every run, checked before anything runs."""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import product
from typing import Any, NamedTuple

import numpy as np

from byzadmm import catalogue
from byzadmm._internal.description import describe
from byzadmm._internal.validation import check_choice, check_int
from byzadmm.algorithms import Algorithm
from byzadmm.datasets import Dataset
from byzadmm.losses.base import Loss
from byzadmm.study.choices import (
    AlgorithmChoice,
    Choice,
    PartitionChoice,
    choose_algorithms,
    choose_attacks,
    choose_numbers,
    choose_partitions,
)
from byzadmm.study.extent import make_extent
from byzadmm.study.held_back import SAMPLES, held_back, remaining
from byzadmm.study.network import (
    WITH_A_MASTER,
    NeedsMaster,
    check_beside,
    check_on_graph,
    choose_graph,
    graph_words,
    nodes_of,
)
from byzadmm.training.experiment import DEFAULTS, check_byzantine, check_settings
from byzadmm.training.sampling import Sampling

__all__ = ["AXES", "Cell", "Plan", "load", "make_plan"]

#: What the runs of a study differ in.
AXES = ("algorithm", "attack", "n_byzantine", "partition", "seed")

_WORKERS = 20
_EXTENT = ("iterations", "eval_every")  # settings that runs with delays may not have
_USUAL_REPR: Any = object.__repr__  # has an address


class Cell(NamedTuple):
    """A run's place in a study: a value of every axis, by name."""

    algorithm: str
    attack: str
    n_byzantine: int
    partition: str
    seed: int


@dataclass(frozen=True)
class Plan:
    """The runs of a study.

    Attributes
    ----------
    title : str
    axes : dict
        Axis -> its values by name, in order.
    runs : dict
        Cell -> the arguments of ``simulate``, with "delays" those of ``asynchronous.simulate``, with "graph" those of
        ``decentralized.simulate``, or why it cannot run. Cells that share one dict are one run. A ``loss`` among the
        arguments may be a function ``loss(dataset, parts, batch_size=, seed=)`` that makes it.
    settings : dict
        What all runs have in common, for people.
    labels : dict
        Axis -> name -> what it is called in pictures.
    kinds : dict
        Algorithm -> its name in the catalogue, for its color and line.
    ideal : tuple of str
        The algorithms that exclude the Byzantine workers.
    """

    title: str
    axes: dict[str, list[Any]]
    runs: dict[Cell, dict[str, Any] | str]
    settings: dict[str, Any] = field(default_factory=dict)
    labels: dict[str, dict[str, str]] = field(default_factory=dict)
    kinds: dict[str, str] = field(default_factory=dict)
    ideal: tuple[str, ...] = ()


def make_plan(
    dataset: Dataset | str | None,
    partition: Any = "iid",
    *,
    algorithms: Any,
    attacks: Any = None,
    n_workers: int | None = None,
    n_byzantine: Any = None,
    seeds: Any = 5,
    loss: Any = None,
    validation: Any = None,
    iterations: int | None = None,
    eval_every: int | None = None,
    delays: Any = None,
    until: float | None = None,
    arrivals: int | None = None,
    eval_time: float | None = None,
    graph: Any = None,
    byzantine: Any = None,
    **settings: Any,
) -> Plan:
    """The plan of a comparison; arguments as in :func:`byzadmm.compare`."""
    data = load(dataset)
    _check_loss(loss, data)
    clock = {"delays": delays, "until": until, "arrivals": arrivals, "eval_time": eval_time}
    if graph is not None:
        check_beside(settings | clock | {"validation": validation})
    plain = _plain(settings, graph is not None)
    fixed = nodes_of(graph, None if n_workers is None else check_int(n_workers, "n_workers", low=1))
    if data is None or _is_object(loss):  # it has its own samples
        m = check_int(loss.n_workers, "loss.n_workers", low=1)
        if fixed not in (None, m):
            raise ValueError(f"n_workers: the loss has {m}, got {fixed}")
        given = partition if isinstance(partition, (list, tuple)) else [partition]
        if any(not isinstance(one, str) or one != "iid" for one in given):
            raise ValueError("partition: a loss that is an object has its own; give a function that makes the loss")
        partitions = [PartitionChoice("given", "given", lambda seed, rows, byzantine: None)]
    else:
        partitions, m = choose_partitions(partition, data, fixed, _WORKERS)
    common = plain | make_extent(m, iterations=iterations, eval_every=eval_every, **clock)
    numbers, attackers = _roles(n_byzantine, byzantine, m, 2 * m // 5 if graph is None else m // 5)
    network = None if graph is None else choose_graph(graph, m, attackers[max(numbers)])
    if algorithms is None:
        algorithms = ("ideal", *(catalogue.PAPER if graph is None else catalogue.ON_GRAPHS))
    algorithm_choices = choose_algorithms(algorithms, data, functools.cache(lambda: _preset(data)), network)
    attack_choices = choose_attacks(attacks)
    numbered = seeds if isinstance(seeds, Iterable) else range(check_int(seeds, "seeds", low=1))
    seed_list = choose_numbers(numbered, "seeds", low=0, high=2**64 - 1)
    sampled = Sampling(m, common.get("participation", 1.0), 0).count
    legal = _Legal(m, sampled, network, attackers, delays is not None)
    places = list(product(algorithm_choices, numbers, attack_choices, partitions))
    made_for = {(one.name, q, attack.name, part.name): legal(one, q, attack, part) for one, q, attack, part in places}
    if validation is None and not _is_object(loss) and any(one and one.validates for one, _ in made_for.values()):
        validation = SAMPLES
    divided = None if _is_object(loss) else data  # a loss that is an object has its own samples

    @functools.cache
    def shares(partition: PartitionChoice, seed: int, q: int) -> dict[str, Any]:
        return _shares(partition, seed, divided, validation, attackers[q])

    if data is not None and not _is_object(loss):
        common |= {"loss": ("least-squares" if data.n_classes == 0 else "softmax") if loss is None else loss}
    else:
        common["loss"] = loss
    common |= {} if network is None else {"graph": network}
    common |= {} if byzantine is None else {"byzantine": attackers[numbers[0]]}
    runs: dict[Cell, dict[str, Any] | str] = {}
    alone: dict[tuple[Any, ...], dict[str, Any]] = {}
    for (algorithm, q, attack, one), seed in product(places, seed_list):
        made, illegal = made_for[algorithm.name, q, attack.name, one.name]
        cell = Cell(algorithm.name, attack.name, q, one.name, seed)
        arguments = {"dataset": data, **shares(one, seed, q if one.by_roles else numbers[0])}
        arguments |= {"seed": seed, "n_byzantine": q} | common | {"algorithm": made, "attack": attack.value}
        arguments |= algorithm.extent
        if made is not None and made.ideal:  # it hears no Byzantine worker: one run for all attacks
            arguments = alone.setdefault((id(made), q, one.name, seed), arguments | {"attack": None})
        runs[cell] = illegal or arguments
    axes: dict[str, list[Any]] = {
        "algorithm": [one.name for one in algorithm_choices],
        "attack": [one.name for one in attack_choices],
        "n_byzantine": numbers,
        "partition": [one.name for one in partitions],
        "seed": seed_list,
    }
    chosen: dict[str, list[Any]] = {
        "algorithm": algorithm_choices,
        "attack": attack_choices,
        "partition": list(partitions),
    }
    return Plan(
        title=data.name if data is not None else type(loss).__name__,
        axes=axes,
        runs={cell: runs[cell] for values in product(*axes.values()) for cell in [Cell(*values)]},
        settings=_shown(data, m, common, {"delays": delays, "validation": validation, "graph": graph_words(graph)}),
        labels={axis: {one.name: one.label for one in ones} for axis, ones in chosen.items()},
        kinds={one.name: one.kind for one in algorithm_choices},
        ideal=tuple(dict.fromkeys(cell.algorithm for cell, run in runs.items() if _is_ideal(run))),
    )


def _roles(n_byzantine: Any, byzantine: Any, m: int, default: int) -> tuple[list[int], dict[int, list[int]]]:
    """The numbers of Byzantine workers, and who they are for each of them."""
    if byzantine is None:
        numbers = choose_numbers(default if n_byzantine is None else n_byzantine, "n_byzantine", low=0, high=m)
        return numbers, {q: check_byzantine(q, None, m) for q in numbers}
    named = check_byzantine(0, byzantine, m)
    numbers = choose_numbers(len(named) if n_byzantine is None else n_byzantine, "n_byzantine", low=0, high=m)
    if numbers != [len(named)]:
        raise ValueError(f"byzantine: names {len(named)} workers, but n_byzantine is {', '.join(map(str, numbers))}")
    return numbers, {len(named): named}


def _shares(
    partition: PartitionChoice, seed: int, data: Dataset | None, validation: Any, byzantine: Sequence[int]
) -> dict[str, Any]:
    """The samples of the workers, and those of the master if it has any, as arguments of ``simulate``."""
    if validation is None or data is None:
        held = {} if validation is None else {"validation": validation}
        return {"parts": partition.value(seed, None, byzantine)} | held
    given = partition.value(seed, None, byzantine) if partition.name == "given" else None
    rows = held_back(validation, data, given, seed)
    return {"parts": partition.value(seed, remaining(data, rows), byzantine), "validation": rows}


class _Legal:
    """The algorithm of a cell, or why it is illegal there; cells that differ in nothing that counts share one.

    An algorithm of another topology than that of the study is an error.
    """

    def __init__(
        self, m: int, sampled: int, network: Any, attackers: Mapping[int, Sequence[int]], clocked: bool
    ) -> None:
        self.m, self.sampled, self.network, self.attackers, self.clocked = m, sampled, network, attackers, clocked
        self._made: dict[tuple[Any, ...], tuple[Algorithm | None, str]] = {}
        self._known: dict[tuple[Any, ...], tuple[Algorithm | None, str]] = {}

    def __call__(
        self, choice: AlgorithmChoice, q: int, attack: Choice, partition: Choice
    ) -> tuple[Algorithm | None, str]:
        make = choice.maker(attack.name, partition.name)
        if (make, q) not in self._made:
            self._made[make, q] = self._of_rounds(choice.name, make, q)
        made, illegal = self._made[make, q]
        if made is None or self.network is None:
            return made, illegal
        key = id(made), q, attack.value is None
        if key not in self._known:
            # Nobody forges a message without an attack; an ideal algorithm cuts the Byzantine ones off all the same.
            acting = [] if attack.value is None and not made.ideal else self.attackers[q]
            try:
                check_on_graph(choice.name, made, self.network, acting)
                self._known[key] = made, ""
            except NeedsMaster:
                raise
            except ValueError as error:
                self._known[key] = None, str(error)
        return self._known[key]

    def _of_rounds(self, name: str, make: Callable[[int], Algorithm], q: int) -> tuple[Algorithm | None, str]:
        """The algorithm for ``q`` Byzantine workers, or why there are too few messages per round."""
        try:
            made = make(q)
            made.check(min(self.sampled, self.m - (q if made.ideal else 0)), self.m)
        except ValueError as error:
            return None, str(error)
        if made.schedule == "events" and not self.clocked and self.network is None:
            raise ValueError(f"delays: {name} is asynchronous and needs them, such as 'stragglers:0.2,10'")
        if made.schedule == "graph" and self.network is None:
            raise ValueError(f"graph: {name} is decentralized and needs one, such as 'ring:k=2'")
        return made, ""


def load(dataset: Any) -> Dataset | None:
    """The data set itself, or that of a name of the catalogue, scaled as its settings there want it."""
    if isinstance(dataset, str):
        name = catalogue.dataset_name(dataset)
        return catalogue.load_dataset(name, scale=catalogue.PRESETS[name].scale)
    if dataset is not None and not isinstance(dataset, Dataset):
        raise TypeError(f"dataset: expected a Dataset, a name or None, got {type(dataset).__name__}")
    return dataset


def _check_loss(loss: Any, data: Dataset | None) -> None:
    if data is None and not _is_object(loss):
        raise TypeError("dataset: None goes with a loss that is an object")
    if isinstance(loss, str):
        check_choice(loss, "loss", catalogue.LOSSES)
    elif loss is not None and not _is_object(loss) and not callable(loss):
        raise TypeError(f"loss: expected a name, a loss, or a function that makes one; got {type(loss).__name__}")


def _is_object(loss: Any) -> bool:
    return not isinstance(loss, type) and isinstance(loss, Loss)  # a class has the members too, and makes a loss


def _plain(settings: Mapping[str, Any], on_graph: bool) -> dict[str, Any]:
    """Settings of ``simulate`` for all runs, the plain ones checked here: they would fail in every cell."""
    for name in ("dataset", "parts", "algorithm", "attack", "seed", "checkpoint", "progress", "updates"):
        if name in settings:
            raise TypeError(f"compare() got an unexpected keyword argument {name!r}")
    if on_graph:
        settings = {name: value for name, value in settings.items() if name not in WITH_A_MASTER}
    each = {name for name in ("rho",) if on_graph and np.ndim(settings.get(name, 0))}  # one for each node
    checked = check_settings(**{name: settings[name] for name in DEFAULTS if name in settings and name not in each})
    checked["dtype"] = str(checked["dtype"])
    return {name: value if name in each else checked.get(name, value) for name, value in settings.items()}


def _preset(data: Dataset | None) -> catalogue.Preset:
    if data is None:
        raise ValueError("algorithms: names take their settings from the data set; without one, give objects")
    return catalogue.preset_for(data)


def _is_ideal(run: dict[str, Any] | str) -> bool:
    return not isinstance(run, str) and bool(run["algorithm"].ideal)


def _shown(data: Dataset | None, m: int, common: Mapping[str, Any], given: Mapping[str, Any]) -> dict[str, Any]:
    """What all runs have in common: the data, the loss, and the settings that are not left at their defaults.

    ``given`` is shown as it was said, if it was.
    """
    loss = common["loss"]
    shown: dict[str, Any] = {}
    if data is not None:
        kind = f"{data.n_classes} classes" if data.n_classes else "real targets"
        shown["dataset"] = f"{data.name}: {len(data.train_y)} training and {len(data.test_y)} test samples"
        shown["dataset"] += f", {data.n_features} features, {kind}"
    shown |= {"n_workers": m, "loss": _loss_name(loss)}
    always = ("iterations", "eval_every", "batch_size", "rho", "dtype")
    usual = {name: value for name, value in DEFAULTS.items() if name in common or name not in _EXTENT}
    more = {name: value for name, value in {**common, **given}.items() if name != "loss" and value is not None}
    settings = usual | more
    return shown | {
        name: describe(value)
        for name, value in settings.items()
        if name in always or name not in DEFAULTS or value != DEFAULTS[name]
    }


def _loss_name(loss: Any) -> str:
    if isinstance(loss, str):
        return loss
    if _is_object(loss) and type(loss).__repr__ is not _USUAL_REPR:
        return repr(loss)
    return str(getattr(loss, "__name__", type(loss).__name__))
