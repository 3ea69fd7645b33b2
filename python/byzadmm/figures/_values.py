"""Checks of the values of a settings file that have a meaning of their own; an error names the key."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from typing import Any

from byzadmm import catalogue, steps
from byzadmm._internal.validation import check_choice, check_int, check_real
from byzadmm.datasets._scaling import check_scale
from byzadmm.decentralized.mixing import check_declared
from byzadmm.figures._toml import check_count, check_list, check_numbers, check_positive, check_string
from byzadmm.training.experiment import check_settings

__all__ = [
    "QUADRATIC",
    "as_it_is",
    "check_counts",
    "check_dataset",
    "check_f",
    "check_factor",
    "check_finals",
    "check_listed_partitions",
    "check_names",
    "check_natural",
    "check_partitions",
    "check_rho",
    "check_share",
    "check_step",
    "check_steps",
    "check_tables",
    "check_workers",
    "choice_of",
    "training",
]

#: In the place of a data set: the workers' losses are in the file.
QUADRATIC = "quadratic"


def as_it_is(value: Any, name: str) -> Any:
    """Unchecked: a table, or a list of tables, whose keys are checked one by one."""
    return value


def check_dataset(value: Any, name: str) -> str:
    """The name of a data set, or QUADRATIC."""
    return QUADRATIC if value == QUADRATIC else catalogue.dataset_name(value, name)


def _partition(value: Any, name: str) -> str:
    kind, settings = catalogue.parse(check_string(value, name), name, catalogue.PARTITIONS)
    for key, setting in settings.items():
        _PARTITION[key](setting, f"{name}: {key}")
    among = settings.pop("among", "all")
    words = [repr(setting) for setting in settings.values()]  # one number at most
    words += [f"among={among}"] if among != "all" else []
    return ":".join([kind, *([",".join(words)] if words else [])])


def check_partitions(value: Any, name: str) -> tuple[str, ...]:
    """One partition or several, each as on the command line."""
    listed = check_list(value, name) if isinstance(value, list) else [value]
    return tuple(dict.fromkeys(_partition(item, name) for item in listed))


def check_step(value: Any, name: str) -> steps.Step:
    """``{ inv_sqrt = [10, 10] }``: the name of a step size and its numbers."""
    known = {key.replace("-", "_"): entry for key, entry in catalogue.STEPS.items()}
    if not isinstance(value, dict) or len(value) != 1:
        raise TypeError(f"{name}: expected one of {', '.join(known)} with its numbers, got {value!r}")
    [(kind, numbers)] = value.items()
    entry = known[check_choice(kind, name, known)]
    given = check_numbers(numbers if isinstance(numbers, list) else [numbers], name)
    needed = sum(default is catalogue.REQUIRED for default in entry.settings.values())
    if not needed <= len(given) <= len(entry.settings):
        raise ValueError(f"{name}: {kind} got {len(given)} numbers")
    made: steps.Step = entry.make(*given)
    return made


def check_steps(value: Any, name: str) -> Any:
    """A step size, or a list of them, one for each node of a graph."""
    if isinstance(value, list):
        return tuple(check_step(item, f"{name}[{node}]") for node, item in enumerate(check_list(value, name)))
    return check_step(value, name)


def check_f(value: Any, name: str) -> Any:
    """A number of Byzantine workers; on a graph also one for each node, or "exact"."""
    return check_int(value, name) if isinstance(value, (bool, float)) else check_declared(value, name)


def check_rho(value: Any, name: str) -> Any:
    """The weight of the regularizer, or one for each node of a graph."""
    if not isinstance(value, list):
        return training()(value, name)
    return tuple(check_settings(rho=item)["rho"] for item in check_numbers(value, name))


def check_names(value: Any, name: str) -> tuple[str, ...]:
    """A string, or a list of them."""
    return tuple(check_string(item, name) for item in (check_list(value, name) if isinstance(value, list) else [value]))


def check_tables(value: Any, name: str) -> list[Any]:
    """A list of tables, whose keys are checked one by one."""
    return check_list(value, name)


def check_workers(value: Any, name: str) -> tuple[int, ...]:
    """A list of workers; how many there are is checked later."""
    return tuple(check_natural(item, name) for item in check_list(value, name))


def training(first: Callable[[Any, str], Any] = as_it_is) -> Callable[[Any, str], Any]:
    """The check of a setting of the experiment: ``first``, then that of ``simulate``."""
    return lambda value, name: check_settings(**{name: first(value, name)})[name]


def choice_of(names: Mapping[str, Any]) -> Callable[[Any, str], Any]:
    """The check of a string that is one of these names."""
    return lambda value, name: check_choice(check_string(value, name), name, names)


def check_natural(value: Any, name: str) -> int:
    """An integer of at least zero."""
    return check_int(value, name, low=0)


def check_share(value: Any, name: str) -> float:
    """A number between zero and one."""
    return check_real(value, name, low=0.0, high=1.0)


def check_finals(value: Any, name: str) -> tuple[float, ...]:
    """Numbers between zero and one, or NaN."""
    listed = check_list(value, name)
    return tuple(
        math.nan if isinstance(one, float) and math.isnan(one) else check_share(one, f"{name}[{place}]")
        for place, one in enumerate(listed)
    )


def check_counts(value: Any, name: str) -> list[int]:
    """A list of integers of at least zero."""
    return [check_natural(item, name) for item in check_list(value, name)]


def check_listed_partitions(value: Any, name: str) -> tuple[str, ...]:
    """A list of partitions."""
    return check_partitions(check_list(value, name), name)


def check_factor(value: Any, name: str) -> Any:
    """A factor of every feature, or a word for one."""
    return check_scale(value)


_PARTITION: dict[str, Callable[[Any, str], Any]] = {
    "per_label": check_count,
    "alpha": check_positive,
    "gamma": check_share,
    "among": lambda value, name: check_choice(value, name, ("all", "regular")),
}
