"""The table of rules: one entry per rule holds what its function's signature does not say.

Everything that lists rules reads this table: the classes of ``byzadmm.aggregators``, the command line, the common
tests, the random inputs of ``tests/fuzz.py`` and the benchmarks.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, NamedTuple, TypeVar

import numpy as np
from numpy.typing import NDArray

from byzadmm import _core
from byzadmm._internal.validation import check_choice, check_int

__all__ = ["RULES", "Draw", "Planned", "Rule", "Size", "check_f", "drawn", "max_f", "register"]

Function = TypeVar("Function", bound=Callable[..., Any])

#: The index of a stage, drawn anew for every round.
Draw = Callable[[np.random.Generator], NDArray[np.int64]]


class Size(NamedTuple):
    """Finite rows for which a rule writes its stages: how many, of what length and dtype."""

    n: int
    d: int
    dtype: np.dtype[Any]


class Planned(NamedTuple):
    """Stages of a rule (``cpp/include/byzadmm/choices.hpp``), and how to draw the index of each that is drawn."""

    stages: list[_core.Stage]
    draws: list[Draw]


def drawn(kind: str, count: int, draw: Draw, rng: np.random.Generator | None) -> Planned:
    """A stage whose index ``draw`` draws: now from ``rng``, or for None from the run's generator in every round."""
    if rng is None:
        return Planned([_core.Stage(kind, count, drawn=True)], [draw])
    return Planned([_core.Stage(kind, count, index=draw(rng).tolist())], [])


@dataclass(frozen=True)
class Rule:
    """One rule or pre-aggregation.

    Attributes
    ----------
    function : ``(X, *, settings, nonfinite, return_info, out, threads)``
    class_name : name of its class in ``byzadmm.aggregators``
    max_f : number of rows -> largest number of Byzantine rows among them that it tolerates, negative if it needs more
        rows
    gives_rows : whether it is a pre-aggregation, which gives rows instead of one vector
    named : settings that it has when it is given by name, beside ``f`` and the function's defaults
    defaults : defaults of the class for keywords that the function requires
    n_out : for a pre-aggregation whose rows are no longer one per worker, ``(n, settings)`` -> number of its rows
    reach : for a pre-aggregation, settings -> how many of its rows one Byzantine row can turn into Byzantine ones
    signs : whether its result is made of signs, whatever the size of the rows
    stages : ``(size, **settings)`` -> the kernels that make the result of finite rows in the native loop of SGD, as a
        list of stages or a :class:`Planned`; None if that loop cannot have the rule. ``f`` and what addresses rows suit
        the number of rows; ``rng=None`` draws anew in every round
    """

    function: Callable[..., Any]
    class_name: str
    max_f: Callable[[int], int]
    gives_rows: bool = False
    named: Mapping[str, Any] = field(default_factory=dict)
    defaults: Mapping[str, Any] = field(default_factory=dict)
    n_out: Callable[[int, Mapping[str, Any]], int] | None = None
    signs: bool = False
    stages: Callable[..., Planned | list[_core.Stage]] | None = None
    reach: Callable[[Mapping[str, Any]], int] = lambda settings: 1


#: Function name -> rule, in the order in which rules are listed everywhere.
RULES: dict[str, Rule] = {}


def register(class_name: str, max_f: Callable[[int], int], **details: Any) -> Callable[[Function], Function]:
    """Decorator of a rule's function; the arguments are attributes of :class:`Rule`."""

    def add(function: Function) -> Function:
        RULES[function.__name__] = Rule(function, class_name, max_f, **details)
        return function

    return add


def minority(n: int) -> int:
    """The largest ``f`` with ``2f < n``."""
    return (n - 1) // 2


def max_f(rule: str, n: int) -> int:
    """Largest legal ``f`` of a rule for ``n`` workers.

    Examples
    --------
    >>> from byzadmm import aggregate
    >>> aggregate.max_f("trimmed_mean", 20)
    9
    """
    check_choice(rule, "rule", RULES)
    most = RULES[rule].max_f(check_int(n, "n", low=1))
    if most < 0:
        raise ValueError(f"{rule}: expected at least 3 workers, got n={n}")
    return most


def check_f(rule: str, f: Any, n: int) -> int:
    """Return ``f`` if it is legal for ``n`` workers; otherwise an error names the largest legal one."""
    number = check_int(f, "f", low=0)
    if number > RULES[rule].max_f(n):
        most = max_f(rule, n)
        raise ValueError(f"{rule}: f={number} is too large for n={n} workers; at most {most}")
    return number
