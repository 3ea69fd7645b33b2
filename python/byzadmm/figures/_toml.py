"""A table of a settings file, and checks of its values; an error names the key."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from byzadmm._internal.validation import check_int, check_real

__all__ = [
    "Table",
    "check_count",
    "check_flag",
    "check_list",
    "check_numbers",
    "check_positive",
    "check_range",
    "check_string",
]


class Table:
    """A table of the file whose keys are taken one by one; those that remain at the end are unknown."""

    def __init__(self, values: Any, where: str) -> None:
        if not isinstance(values, dict):
            raise TypeError(f"{where.rstrip('.')}: expected a table, got {type(values).__name__}")
        self.values, self.where = dict(values), where

    def take(self, key: str, check: Callable[[Any, str], Any], *default: Any) -> Any:
        """The value of ``key`` as ``check(value, name)`` returns it; if it is absent, the default or a ValueError."""
        if key not in self.values:
            if default:
                return default[0]
            raise ValueError(f"{self.where}{key}: missing")
        return check(self.values.pop(key), self.where + key)

    def close(self) -> None:
        """Raise a ValueError for a key that was not taken."""
        if self.values:
            raise ValueError(f"{self.where}{min(self.values)}: unknown key")


def check_string(value: Any, name: str) -> str:
    """A string."""
    if not isinstance(value, str):
        raise TypeError(f"{name}: expected a string, got {type(value).__name__}")
    return value


def check_count(value: Any, name: str) -> int:
    """An integer of at least one."""
    return check_int(value, name, low=1)


def check_positive(value: Any, name: str) -> float:
    """A finite number above zero."""
    return check_real(value, name, low=0.0, strict=True)


def check_flag(value: Any, name: str) -> bool:
    """True or false."""
    if not isinstance(value, bool):
        raise TypeError(f"{name}: expected true or false, got {type(value).__name__}")
    return value


def check_numbers(value: Any, name: str) -> tuple[float, ...]:
    """A list of finite numbers, not empty."""
    if not isinstance(value, list) or not value:
        raise TypeError(f"{name}: expected a list of numbers, got {value!r}")
    return tuple(check_real(item, name) for item in value)


def check_range(value: Any, name: str) -> tuple[float, float]:
    """Two numbers 0 < low < high."""
    ends = check_numbers(value, name)
    if len(ends) != 2 or not 0 < ends[0] < ends[1]:
        raise ValueError(f"{name}: expected two numbers 0 < low < high, got {value!r}")
    return ends[0], ends[1]


def check_list(value: Any, name: str) -> list[Any]:
    """A list, not empty."""
    if not isinstance(value, list) or not value:
        raise TypeError(f"{name}: expected a list, got {value!r}")
    return value
