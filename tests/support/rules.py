"""Every registered rule with settings that suit n rows, and rules that are registered for one test alone."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator
from dataclasses import MISSING, fields
from typing import Any

from byzadmm import aggregate
from byzadmm.aggregate import _registry
from byzadmm.aggregators import PRE_AGGREGATORS, RULES, Aggregator
from byzadmm.aggregators.configured import NAMED, add

__all__ = ["ALL_RULES", "registered", "settings_for", "tolerated"]

#: Function name -> class of every rule and pre-aggregation.
ALL_RULES: dict[str, type[Aggregator]] = RULES | PRE_AGGREGATORS

#: Values of settings that have no default, for rows of about unit size.
REQUIRED: dict[str, Any] = {"tau": 1.5, "s": 3, "max_norm": 2.0}


def tolerated(name: str, n: int) -> int:
    """The largest legal ``f`` of a rule for n rows, -1 for fewer rows than it needs."""
    try:
        return aggregate.max_f(name, n)
    except ValueError:
        return -1


def settings_for(name: str, n: int, f: int | None = None) -> dict[str, Any] | None:
    """Settings of a rule for n rows, ``f`` as large as is legal unless given; None if n rows are too few."""
    most = tolerated(name, n)
    if most < 0:
        return None
    settings: dict[str, Any] = {}
    for item in fields(ALL_RULES[name]):
        if item.name == "f":
            settings["f"] = most if f is None else min(f, most)
        elif item.name == "rng":
            settings["rng"] = 5
        elif item.default is MISSING:
            settings[item.name] = REQUIRED[item.name]
    return settings


@contextlib.contextmanager
def registered(
    function: Callable[..., Any], class_name: str, max_f: Callable[[int], int], **details: Any
) -> Iterator[type[Aggregator]]:
    """Register a rule as the built-in ones are, for as long as the context lasts."""
    name = function.__name__
    tables: tuple[dict[str, Any], ...] = (_registry.RULES, RULES, PRE_AGGREGATORS, NAMED, ALL_RULES)
    _registry.register(class_name, max_f, **details)(function)
    try:
        ALL_RULES[name] = add(name)
        yield ALL_RULES[name]
    finally:
        for table in tables:
            table.pop(name, None)
