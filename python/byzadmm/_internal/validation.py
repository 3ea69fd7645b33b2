"""Checks of scalar arguments, with messages that name the argument, what was expected and what came.

Arrays are checked in ``_internal/arrays.py``, weights of rows in ``aggregate/_weights.py``. The native functions check
memory (dtype, order, writability) once more, in ``cpp/bindings/arrays.hpp``.
"""

from __future__ import annotations

import math
import numbers
import operator
from collections.abc import Collection, Iterable
from typing import Any

import numpy as np

__all__ = ["check_choice", "check_int", "check_real", "check_threads", "check_workers"]

_MAX_THREADS = 4096
# What rounds to zero, and what to infinity, in float32: half its smallest number, half a step beyond its largest.
_FLOAT32_ZERO, _FLOAT32_INFINITY = 2.0**-150, 2.0**128 - 2.0**103


def check_int(value: Any, name: str, *, low: int | None = None, high: int | None = None) -> int:
    """Return ``value`` as an int, or say what was expected. Booleans and non-integral floats are refused."""
    try:
        number = None if isinstance(value, (bool, np.bool_)) else operator.index(value)
    except TypeError:  # also an array: its type has __index__, its value need not
        number = None
    if number is None:
        raise TypeError(f"{name}: expected an integer, got {type(value).__name__}")
    if (low is not None and number < low) or (high is not None and number > high):
        raise ValueError(f"{name}: expected an integer{_interval(low, high)}, got {number}")
    return number


def check_real(
    value: Any,
    name: str,
    *,
    low: float | None = None,
    high: float | None = None,
    strict: bool = False,
    dtype: Any = None,
) -> float:
    """Return ``value`` as a finite float within ``[low, high]`` (``strict`` excludes ``low`` itself).

    With a NumPy ``dtype``, the number rounded to it must be finite too, and not ``low`` itself where that is excluded.
    """
    if isinstance(value, bool) or not isinstance(value, numbers.Real):
        raise TypeError(f"{name}: expected a real number, got {type(value).__name__}")
    try:
        number = float(value)
    except OverflowError:  # an int beyond the largest float
        number = -math.inf if value < 0 else math.inf
    too_low = low is not None and (number <= low if strict else number < low)
    if not math.isfinite(number) or too_low or (high is not None and number > high):
        raise ValueError(f"{name}: expected a finite number{_interval(low, high, strict)}, got {number!r}")
    if dtype is not None and dtype.itemsize == 4:
        vanishes = strict and low == 0 and number <= _FLOAT32_ZERO
        if vanishes or abs(number) >= _FLOAT32_INFINITY:
            raise ValueError(
                f"{name}: expected a finite number{_interval(low, high, strict)} in float32, got {number!r}"
            )
    return number


def check_choice(value: Any, name: str, choices: Collection[str]) -> str:
    """Return ``value`` if it is one of ``choices``."""
    if not isinstance(value, str):
        raise TypeError(f"{name}: expected a string, got {type(value).__name__}")
    if value not in choices:
        raise ValueError(f"{name}: expected one of {', '.join(choices)}; got {value!r}")
    return value


def check_threads(threads: Any) -> int:
    """Return ``threads`` if it is a number of threads; 0 leaves the choice to the kernels."""
    return check_int(threads, "threads", low=0, high=_MAX_THREADS)


def check_workers(value: Any, name: str, m: int) -> list[int]:
    """Return ``value`` as a list of different numbers in ``[0, m)``, in the order given."""
    if not isinstance(value, Iterable):
        raise TypeError(f"{name}: expected a list of workers' numbers, got {type(value).__name__}")
    workers = [check_int(worker, name, low=0, high=m - 1) for worker in value]
    if len(set(workers)) != len(workers):
        raise ValueError(f"{name}: a worker is named twice in {sorted(workers)}")
    return workers


def _interval(low: float | None, high: float | None, strict: bool = False) -> str:
    if low is not None and high is not None:
        return f" in {'(' if strict else '['}{low}, {high}]"
    if low is not None:
        return f" {'>' if strict else '>='} {low}"
    if high is not None:
        return f" <= {high}"
    return ""
