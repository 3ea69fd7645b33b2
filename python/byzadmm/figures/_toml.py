"""A table of a settings file, and checks of its values; an error names the key."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from byzadmm._internal.validation import check_int, check_real

__all__ = [
    "REQUIRED",
    "Key",
    "Table",
    "check_count",
    "check_flag",
    "check_list",
    "check_numbers",
    "check_positive",
    "check_range",
    "check_string",
]

#: In the place of a default: the key has none and must be given.
REQUIRED: Any = object()


@dataclass(frozen=True)
class Key:
    """One key of a settings file.

    Attributes
    ----------
    check : callable
        ``check(value, name)`` returns the value as it is used; TypeError or ValueError.
    default : object
        What stands for an absent key, as a file would write it; None if that is no value, :data:`REQUIRED` if there is
        none.
    type, permitted, meaning : str
        For people: the kind of value, which values, what it does.
    words : str
        The default in words, where it is no value.
    example : str
        A value as TOML, where the default is no value.
    """

    check: Callable[[Any, str], Any]
    default: Any
    type: str
    permitted: str
    meaning: str
    words: str = ""
    example: str = ""

    @property
    def toml(self) -> str:
        """The default as TOML; empty where it is no value."""
        return "" if self.default is None or self.default is REQUIRED else json.dumps(self.default)

    @property
    def otherwise(self) -> str:
        """What an absent key means, as text."""
        return self.words or self.toml or "required"


class Table:
    """A table of the file whose keys are taken one by one; those that remain at the end are unknown.

    Parameters
    ----------
    values : dict
        What the file has.
    where : str
        Begins the names of keys in errors.
    keys : dict
        Name -> Key. No other key can be taken.
    """

    def __init__(self, values: Any, where: str, keys: Mapping[str, Key]) -> None:
        if not isinstance(values, dict):
            raise TypeError(f"{where.rstrip('.')}: expected a table, got {type(values).__name__}")
        self.values, self.where, self.keys = dict(values), where, keys

    def take(self, name: str) -> Any:
        """The value of a key, checked; if it is absent, its default or a ValueError."""
        key = self.keys[name]
        if name in self.values:
            return key.check(self.values.pop(name), self.where + name)
        if key.default is REQUIRED:
            raise ValueError(f"{self.where}{name}: missing")
        return None if key.default is None else key.check(key.default, self.where + name)

    def take_given(self, *names: str) -> dict[str, Any]:
        """Those of the keys that the file has."""
        return {name: self.take(name) for name in names if name in self.values}

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
