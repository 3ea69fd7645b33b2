"""Hostile inputs for every rule: a legal minority of attackers that may send any finite number.

``case(seed, index)`` is one input, the same on every machine: honest rows and forged ones over the whole range of a
dtype, and the rule or chain to try them on, taken in turn from the registries. ``case.check()`` runs it with one and
with two threads, under warnings as errors, and judges every link by :mod:`support.oracles`.
``contracts/test_hostile.py`` checks a few hundred of them, ``fuzz.py`` as many as there is time for.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable
from dataclasses import dataclass, field, fields
from typing import Any

import numpy as np
import numpy.typing as npt

from byzadmm import aggregate
from byzadmm.aggregators import PRE_AGGREGATORS, RULES, Aggregator, Chain
from support.arrays import same_bits
from support.judges import JUDGES
from support.oracles import Call, check
from support.rules import ALL_RULES, legal, tolerated

__all__ = ["PLANS", "Case", "case"]

Array = npt.NDArray[Any]
Generator = np.random.Generator

#: Every rule, every pre-aggregation, and every pre-aggregation before every rule.
PLANS: list[tuple[str, ...]] = [(name,) for name in ALL_RULES]
PLANS += [(pre, rule) for pre in PRE_AGGREGATORS for rule in RULES]


# --- numbers ----------------------------------------------------------------------------------------------------------


class _Numbers:
    """Finite numbers of one dtype, by their binary exponents: from the smallest subnormal to the largest number."""

    def __init__(self, rng: Generator, dtype: str) -> None:
        self.rng, self.dtype = rng, np.dtype(dtype)
        info = np.finfo(self.dtype)
        self.largest, self.least = float(info.max), float(info.smallest_subnormal)
        self.low, self.high = int(np.log2(self.least)), int(info.maxexp)

    def exponent(self, low: int | None = None, high: int | None = None) -> int:
        low, high = (self.low if low is None else max(low, self.low)), (self.high if high is None else high)
        return int(self.rng.integers(low, max(low, high) + 1))

    def finite(self, values: Array) -> Array:
        """In the dtype; what lies beyond it becomes its largest number."""
        return np.clip(values, -self.largest, self.largest).astype(self.dtype)

    def of_size(self, exponent: Any, shape: tuple[int, ...]) -> Array:
        with np.errstate(over="ignore"):
            return self.finite(np.ldexp(self.rng.standard_normal(shape), exponent))

    def any(self, shape: tuple[int, ...]) -> Array:
        """All magnitudes, one for each element, and the special ones."""
        values = self.of_size(self.rng.integers(self.low, self.high + 1, shape), shape)
        special = self.finite(self.rng.choice([0.0, self.least, -self.least, 1.0, self.largest, -self.largest], shape))
        return np.where(self.rng.random(shape) < 0.15, special, values)

    def near(self, row: Array, exponent: Any, shape: tuple[int, ...]) -> Array:
        with np.errstate(over="ignore"):
            return self.finite(row.astype(np.float64) + np.ldexp(self.rng.standard_normal(shape), exponent))


def _honest_rows(numbers: _Numbers, n: int, d: int) -> tuple[str, Array]:
    rng = numbers.rng
    kind = str(rng.choice(["cluster"] * 4 + ["ordinary"] * 4 + ["columns", "heterogeneous", "equal", "zero"]))
    if kind == "ordinary":
        return kind, numbers.finite(rng.normal(1.0, 0.1, (n, d)))
    if kind == "heterogeneous":
        return kind, numbers.any((n, d))
    if kind == "zero":
        return kind, np.zeros((n, d), numbers.dtype)
    size = numbers.exponent()
    center = numbers.of_size(size, (d,))
    if kind == "equal":
        return kind, np.repeat(center[None], n, axis=0)
    if kind == "columns":
        sizes = rng.integers(numbers.low, numbers.high + 1, d)
        return kind, numbers.near(numbers.of_size(sizes, (d,)), sizes - rng.integers(0, 60, d), (n, d))
    below = int(rng.choice([4, 20, 60, 2000]))
    return kind, numbers.near(center, numbers.exponent(size - below, size + 2), (n, d))


def _forged_rows(numbers: _Numbers, count: int, honest: Array) -> tuple[str, Array]:
    rng, d = numbers.rng, honest.shape[1]
    shape = (count, d)
    victim = honest[rng.integers(len(honest))]
    size = int(np.frexp(np.abs(victim.astype(np.float64)).max())[1])
    first = int(rng.integers(count + 1))

    def one_magnitude(rows: int) -> Array:
        return numbers.of_size(numbers.exponent(), (rows, d))

    def spike() -> Array:
        rows = np.repeat(victim[None], count, axis=0)
        rows[np.arange(count), rng.integers(0, d, count)] = numbers.of_size(numbers.high, (count,))
        return rows

    kinds: dict[str, Callable[[], Array]] = {
        "all magnitudes": lambda: numbers.any(shape),
        "one magnitude": lambda: one_magnitude(count),
        "a magnitude each": lambda: numbers.of_size(rng.integers(numbers.low, numbers.high + 1, (count, 1)), shape),
        "two groups": lambda: np.concatenate([one_magnitude(first), one_magnitude(count - first)]),
        "identical": lambda: np.repeat(one_magnitude(1), count, axis=0),
        "tight and far": lambda: numbers.near(one_magnitude(1)[0], numbers.exponent(high=size), shape),
        "one huge element": spike,
        "mixed": lambda: np.where(rng.random(shape) < 0.5, numbers.any(shape), victim),
        "copies": lambda: np.repeat(victim[None], count, axis=0),
        "next to an honest row": lambda: numbers.near(victim, numbers.exponent(size - 60, size - 20), shape),
        "opposite": lambda: np.repeat(-victim[None], count, axis=0),
        "largest": lambda: numbers.finite(rng.choice([-1.0, 1.0], shape) * numbers.largest),
        "next scale": lambda: numbers.near(victim, size + rng.integers(0, 80), shape),
    }
    kind = str(rng.choice(list(kinds)))
    return kind, kinds[kind]()


def _weights(rng: Generator, honest: npt.NDArray[np.bool_], f: int) -> Array:
    """Weights of which the forged rows have at most the share f/n."""
    n = len(honest)
    kind = rng.choice(["equal", "integers", "uniform", "wide"])
    if kind == "equal":
        return np.full(n, rng.choice([1.0, 0.1, 3e-300, 1e300]))
    draw = {
        "integers": lambda: rng.integers(1, 6, n).astype(float),
        "uniform": lambda: rng.random(n) + 0.01,
        "wide": lambda: np.ldexp(rng.random(n) + 0.5, rng.integers(-40, 40, n)),
    }
    weights = draw[str(kind)]()
    if rng.random() < 0.3 and honest.sum() > 3:
        weights[rng.choice(np.flatnonzero(honest))] = 0.0
    forged = ~honest
    if forged.any():
        most = weights[honest].sum() * f / (n - f)
        weights[forged] *= min(1.0, (1 - 2.0**-30) * most / weights[forged].sum())
    return weights


# --- one input --------------------------------------------------------------------------------------------------------


def _most(name: str, n: int) -> int:
    """The largest ``f`` that is tried with n rows."""
    return legal(name, n) if n <= 30 else tolerated(name, n)


def _settings(name: str, numbers: _Numbers, X: Array, honest: npt.NDArray[np.bool_], f: int) -> dict[str, Any]:
    """Keywords for every field of the class; a field that is not known here keeps its default."""
    rng, n = numbers.rng, len(X)
    size = int(np.frexp(np.abs(X.astype(np.float64)).max(initial=0.0))[1])
    length = numbers.exponent() if rng.random() < 0.5 else numbers.exponent(size - 60, size + 2)
    length = min(length, 1023)
    known: dict[str, Callable[[], Any]] = {
        "f": lambda: f,
        "even": lambda: str(rng.choice(["mid", "low", "high"])),
        "weights": lambda: _weights(rng, honest, f) if rng.random() < 0.4 else None,
        "m": lambda: int(rng.integers(1, n - f + 1)) if rng.random() < 0.3 else None,
        "neighbors": lambda: int(rng.integers(1, n - f)) if rng.random() < 0.3 else None,
        "tau": lambda: max(float(np.ldexp(rng.uniform(0.5, 1.0), length)), 5e-324),
        "max_norm": lambda: max(float(np.ldexp(rng.uniform(0.5, 1.0), length)), 5e-324),
        "center": lambda: [None, X[rng.integers(n)].copy(), numbers.any((X.shape[1],))][rng.integers(3)],
        "n_iter": lambda: int(rng.integers(1, 4)),
        "s": lambda: int(rng.integers(1, 5)),
        "rng": lambda: int(rng.integers(1000)),
        "permutation": lambda: rng.permutation(n) if rng.random() < 0.3 else None,
        "pivot": lambda: int(rng.choice(np.flatnonzero(honest))),
        "iterations": lambda: int(rng.integers(1, 4)),
        "coordinates": lambda: int(rng.integers(1, X.shape[1] + 2)),
        "factor": lambda: float(rng.choice([1.0, 0.5, 1.5])),
    }
    return {item.name: known[item.name]() for item in fields(ALL_RULES[name]) if item.name in known}


@dataclass
class Case:
    """One input: rows, and the links to send them through."""

    seed: int
    index: int
    plan: tuple[str, ...]
    X: Array
    honest: npt.NDArray[np.bool_]
    f: int
    kinds: str
    numbers: _Numbers
    links: list[Aggregator] = field(default_factory=list)

    def __str__(self) -> str:
        n, d = self.X.shape
        settings = ", ".join(map(repr, self.links))
        return (
            f"seed {self.seed}, index {self.index}: {'+'.join(self.plan)}, shape ({n}, {d}), {self.X.dtype}, "
            f"f={self.f}, {self.kinds}, forged rows {np.flatnonzero(~self.honest).tolist()}, {settings}"
        )

    def check(self) -> None:
        """AssertionError if a result is not finite, differs between thread counts, or is not what its rule says."""
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("error")
                self._check()
        except Exception as error:
            raise AssertionError(f"{self}\n  {type(error).__name__}: {error}") from error

    def _check(self) -> None:
        rows, honest, f = self.X, self.honest, self.f
        out = rows
        for name in self.plan:
            own = len(rows) == len(honest)  # the rows are still those of the workers
            most = _most(name, len(rows))
            if most < 0:
                return  # bucketing left too few rows for the rule
            settings = _settings(name, self.numbers, rows, honest if own else np.ones(len(rows), bool), min(f, most))
            link = ALL_RULES[name](**settings)
            self.links.append(link)
            out, info = link(rows, return_info=True, threads=1)
            check(bool(np.isfinite(out).all()), "the result is not finite")
            other, other_info = link(rows, return_info=True, threads=2)
            check(same_bits(out, other), "the result depends on the number of threads")
            check(_same(info, other_info), "the info depends on the number of threads")
            # What a rule promises about attackers it promises about the workers' own rows, as many as it tolerates.
            promises = rows is self.X and int((~honest).sum()) <= most and name != "mean"
            JUDGES[name](Call(rows, settings, out, info, honest if promises else None))
            rows = out
        if len(self.links) > 1:
            check(same_bits(Chain(tuple(self.links))(self.X), out), "the chain differs from its links")


def _same(a: aggregate.Info, b: aggregate.Info) -> bool:
    return all(np.array_equal(getattr(a, item.name), getattr(b, item.name)) for item in fields(a))


def case(seed: int, index: int) -> Case:
    """The input number ``index`` of a stream, which takes the plans in turn."""
    plan = PLANS[index % len(PLANS)]
    rng = np.random.default_rng([seed, index])
    numbers = _Numbers(rng, str(rng.choice(["float32", "float64"])))
    shape = rng.random()
    if shape < 0.05:  # many rows: selection by counting, distances by products
        n, d = int(rng.integers(65, 91)), int(rng.integers(1, 4))
    elif shape < 0.10:  # more than a tile of columns
        n, d = int(rng.integers(3, 9)), int(rng.integers(513, 601))
    else:
        n = int(rng.integers(3, 13) if rng.random() < 0.75 else rng.integers(13, 31))
        d = int(2 ** rng.uniform(0, 5.3))
    most = min((_most(name, n) for name in plan if name != "mean"), default=(n - 1) // 2)
    count = most if rng.random() < 0.6 else int(rng.integers(0, most + 1))
    f = count if rng.random() < 0.8 else int(rng.integers(count, most + 1))
    honest_kind, rows = _honest_rows(numbers, n - count, d)
    forged_kind, forged = _forged_rows(numbers, count, rows)
    place = str(rng.choice(["lowest", "highest", "random"]))
    order = {"lowest": np.arange(count), "highest": np.arange(n - count, n)}.get(place)
    if order is None:
        order = np.sort(rng.choice(n, count, replace=False))
    honest = np.ones(n, bool)
    honest[order] = False
    X = np.empty((n, d), numbers.dtype)
    X[honest], X[~honest] = rows, forged
    X.flags.writeable = False
    return Case(seed, index, plan, X, honest, f, f"honest rows {honest_kind}, forged {forged_kind}", numbers)
