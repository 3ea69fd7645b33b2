"""What tells one run of a study from another: a digest of its arguments, the code of a user's functions included."""

from __future__ import annotations

import functools
import hashlib
import sys
import types
from collections.abc import Iterator, Mapping
from dataclasses import is_dataclass
from pathlib import Path
from typing import Any

import numpy as np

from byzadmm import __version__
from byzadmm._internal.description import describe, settings_of

__all__ = ["Identity", "code_digest"]

# Their code changes with their version, not with the user's script.
_LIBRARIES = ("builtins", "byzadmm", "functools", "numpy", "torch")
_INSTALLED = ("site-packages", "dist-packages")
_DEEP = 40
_PLAIN = (str, bytes, int, float, complex, type(None), np.generic)
# What a function reads from its module counts if it is one of these: a logger or an open file says nothing about a run.
_VALUES = (*_PLAIN, np.ndarray, list, tuple, set, frozenset, dict, functools.partial)


class Identity:
    """Digests of the arguments of runs. What many runs share is read once.

    Two runs have one digest if their arrays have the same numbers, their objects the same class and attributes, and the
    functions and classes among them the same name and the same code: defaults, what they close over, and the functions,
    classes and plain values of their modules that they use, but nothing inside of other installed packages.
    """

    def __init__(self) -> None:
        self._known: dict[int, tuple[Any, str]] = {}

    def digest(self, arguments: Mapping[str, Any]) -> str:
        """A name of 32 letters for a run with these arguments of ``simulate``."""
        text = repr((__version__, sorted((name, self._read(value)) for name, value in arguments.items())))
        return _digest(text)

    def _read(self, part: Any) -> str:
        if id(part) not in self._known:
            self._known[id(part)] = part, _digest(repr(_contents(part)))  # the part too, so that its id stays its own
        return self._known[id(part)][1]


def code_digest(part: Any) -> str:
    """A digest of the code of the functions in ``part``, those of a user's classes included; "" if there are none.

    Examples
    --------
    >>> from byzadmm.study.identity import code_digest
    >>> one, same, other = (eval(f"lambda x: x + {n}", {}) for n in (1, 1, 2))
    >>> code_digest(one) == code_digest(same), code_digest(one) == code_digest(other), code_digest(max)
    (True, False, '')
    """
    found = list(_codes(part, {}, 0))
    return _digest(repr(found)) if found else ""


def _digest(text: str) -> str:
    return hashlib.blake2b(text.encode(), digest_size=16).hexdigest()


def _contents(part: Any) -> Any:
    if hasattr(part, "fingerprint") and not isinstance(part, type):  # a loss: what else it holds may be room to work in
        own = {name: value for name, value in settings_of(part).items() if not name.startswith("_")}
        plain = {name: value for name, value in own.items() if isinstance(value, _PLAIN)}
        codes = [code_digest(value) for value in (type(part), *own.values())]
        return [type(part).__qualname__, *map(describe, part.fingerprint()), describe(plain), codes]
    items = part if isinstance(part, (list, tuple)) else [part]
    return [*map(describe, items), code_digest(part)]


def _codes(part: Any, seen: dict[int, Any], depth: int) -> Iterator[str]:
    """The code of all functions and classes in ``part``, and what they hold beside it, as text."""
    if id(part) in seen or depth > _DEEP or isinstance(part, _PLAIN) or hasattr(part, "dtype"):
        return
    seen[id(part)] = part  # itself, so that its id stays its own
    inner: list[Any] = []
    if isinstance(part, functools.partial):
        inner = [part.func, *part.args, *part.keywords.values()]
    elif isinstance(part, types.MethodType):
        inner = [part.__func__, part.__self__]
    elif isinstance(part, types.FunctionType):
        if _module_of(part) not in _LIBRARIES:
            yield from _lines(part.__code__)
            held = [cell.cell_contents for cell in part.__closure__ or () if _filled(cell)]
            inner = [*(part.__defaults__ or ()), *(part.__kwdefaults__ or {}).values(), *held, *_globals(part)]
            yield repr([describe(item) for item in inner])
    elif isinstance(part, (list, tuple, set, frozenset)):
        inner = list(part)
    elif isinstance(part, Mapping):
        inner = list(part.values())
    elif isinstance(part, type):
        for kind in part.__mro__:
            if _module_of(kind) not in _LIBRARIES:
                members = {name: _unwrapped(value) for name, value in vars(kind).items()}
                inner += [value for value in members.values() if isinstance(value, (types.FunctionType, type))]
                plain = {name: value for name, value in members.items() if not name.startswith("__")}
                yield repr([kind.__qualname__, describe(plain)])
    else:
        inner = [type(part), *settings_of(part).values()]
    for item in inner:
        yield from _codes(item, seen, depth + 1)


def _globals(function: types.FunctionType) -> list[Any]:
    """What a function reads from its module, as far as it may change from one script to the next."""
    if _is_installed(function):
        return []
    names = {name for code in _all_codes(function.__code__) for name in code.co_names}
    values = [function.__globals__[name] for name in sorted(names & function.__globals__.keys())]
    return [
        value
        for value in values
        if (isinstance(value, (types.FunctionType, type)) and not _is_installed(value))
        or (isinstance(value, _VALUES) or (is_dataclass(value) and not isinstance(value, type)))
        or (hasattr(value, "state_dict") and not isinstance(value, type))  # a network
    ]


def _all_codes(code: types.CodeType) -> Iterator[types.CodeType]:
    yield code
    for item in code.co_consts:
        if isinstance(item, types.CodeType):
            yield from _all_codes(item)


def _lines(whole: types.CodeType) -> Iterator[str]:
    for code in _all_codes(whole):
        constants = [item for item in code.co_consts if not isinstance(item, types.CodeType)]
        # The items of a set come in another order in every process.
        plain = [sorted(map(repr, item)) if isinstance(item, frozenset) else repr(item) for item in constants]
        arguments = code.co_varnames[: code.co_argcount + code.co_kwonlyargcount]  # attacks are called with keywords
        handlers = getattr(code, "co_exceptiontable", b"")
        yield repr((code.co_code.hex(), handlers, code.co_flags, arguments, plain, code.co_names))


def _unwrapped(member: Any) -> Any:
    """The function inside of a method, a property or a cached property of a class."""
    return next((getattr(member, name) for name in ("fget", "__func__", "func") if hasattr(member, name)), member)


def _module_of(part: Any) -> str:
    return str(getattr(part, "__module__", None) or "").partition(".")[0]


def _is_installed(part: Any) -> bool:
    """Whether it belongs to Python or to an installed package, not to the user's own files."""
    top = _module_of(part)
    if top == "__main__":  # whatever started it
        return False
    file = getattr(sys.modules.get(top), "__file__", None) or ""
    return top in _LIBRARIES or top in sys.stdlib_module_names or not set(Path(file).parts).isdisjoint(_INSTALLED)


def _filled(cell: Any) -> bool:
    try:
        cell.cell_contents  # noqa: B018
    except ValueError:
        return False
    return True
