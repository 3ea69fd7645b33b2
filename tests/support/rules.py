"""Every registered rule with settings that suit n rows, rows to try it on, and rules registered for one test alone."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator
from dataclasses import MISSING, fields
from math import comb
from typing import Any

import numpy as np
import numpy.typing as npt

from byzadmm import aggregate
from byzadmm.aggregate import _registry
from byzadmm.aggregators import PRE_AGGREGATORS, RULES, Aggregator
from byzadmm.aggregators.configured import NAMED, add

__all__ = [
    "ALL_RULES",
    "apply",
    "assert_near",
    "legal",
    "middle",
    "normal",
    "registered",
    "settings_for",
    "tolerance",
    "tolerated",
]

Array = npt.NDArray[Any]

#: Function name -> class of every rule and pre-aggregation.
ALL_RULES: dict[str, type[Aggregator]] = RULES | PRE_AGGREGATORS

#: Values of settings other than ``f`` that have no default, or whose default tells little; for rows of about unit size.
VALUES: dict[str, Any] = {"tau": 1.5, "n_iter": 3, "s": 3, "rng": 5, "max_norm": 2.0}
VALUES |= {"iterations": 3, "coordinates": 30}


#: Rules whose twins and oracles go through all sets of n-f rows.
ENUMERATED = ("mda", "smea")


def legal(name: str, n: int) -> int:
    """The largest legal ``f`` of a rule for n rows, -1 for fewer rows than it needs."""
    try:
        return aggregate.max_f(name, n)
    except ValueError:
        return -1


def tolerated(name: str, n: int) -> int:
    """The same, as far as twins and oracles follow in a fraction of a second: few sets, of few rows."""
    most = legal(name, n)
    while name in ENUMERATED and most > (n <= 100) and comb(n, most) * (n - most) ** 3 > 6e6:
        most -= 1
    return most


def settings_for(name: str, n: int, f: int | None = None) -> dict[str, Any] | None:
    """Settings of a rule for n rows, ``f`` as large as is legal unless given, the last one trusted; None: too few."""
    most = tolerated(name, n)
    if most < 0:
        return None
    settings: dict[str, Any] = {}
    for item in fields(ALL_RULES[name]):
        if item.name == "f":
            settings["f"] = most if f is None else min(f, most)
        elif item.name == "pivot":
            settings["pivot"] = n - 1
        elif item.name in VALUES or item.default is MISSING:
            settings[item.name] = VALUES[item.name]
    return settings


def apply(rule: str, X: Any, **settings: Any) -> Any:
    """The function of that name, applied to ``X``."""
    return getattr(aggregate, rule)(X, **settings)


def normal(n: int, d: int, seed: int = 0, dtype: str = "float64") -> Array:
    return np.random.default_rng(seed).standard_normal((n, d)).astype(dtype)


def tolerance(X: Array) -> dict[str, float]:
    """A few units in the last place of the largest number that takes part, for ``assert_allclose``."""
    eps = float(np.finfo(X.dtype).eps)
    return {"rtol": 16 * eps, "atol": 16 * eps * float(np.abs(X).max(initial=0.0))}



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


def middle(X: Array, even: str) -> Array:
    """The median by sorting alone; halves are added, so that nothing overflows."""
    ordered = np.sort(X, axis=0)
    low, high = ordered[(len(X) - 1) // 2], ordered[len(X) // 2]
    if even == "mid" and len(X) % 2 == 0:
        with np.errstate(over="ignore"):
            whole = (low + high) / 2
        return np.where(np.isfinite(whole), whole, low / 2 + high / 2).astype(X.dtype)
    return high if even == "high" else low


def assert_near(got: Array, expected: Array, X: Array, ulps: float = 4) -> None:
    """Within a few roundings of the largest value of each column."""
    assert got.dtype == expected.dtype
    bound = ulps * np.finfo(got.dtype).eps * np.abs(X).max(axis=0).astype(np.float64)
    bound += 4 * float(np.finfo(got.dtype).smallest_subnormal)
    with np.errstate(over="ignore"):
        off = np.abs(got.astype(np.float64) - expected.astype(np.float64))
    assert (off <= bound).all(), f"off by {off.max()} where {bound[off.argmax()]} is allowed"
