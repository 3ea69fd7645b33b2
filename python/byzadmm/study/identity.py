"""What tells one run of a study from another: a digest of its arguments, the code of a user's functions included."""

from __future__ import annotations

import functools
import hashlib
import types
from collections.abc import Iterator, Mapping
from typing import Any

from byzadmm import __version__
from byzadmm._internal.description import describe, settings_of
from byzadmm.datasets import Dataset

__all__ = ["Identity", "code_digest"]

# Their code changes with their version, not with the user's script.
_LIBRARIES = ("builtins", "byzadmm", "functools", "numpy", "torch")
_DEEP = 20


class Identity:
    """Digests of the arguments of runs. Arrays that many runs share are read once.

    Two runs have one digest if their arrays have the same numbers, their objects the same class and attributes, and the
    functions among them the same name and the same code. Functions that those call, and what they read from their
    modules, do not count.
    """

    def __init__(self) -> None:
        self._known: dict[int, tuple[Any, Any]] = {}

    def digest(self, arguments: Mapping[str, Any]) -> str:
        """A name of 32 letters for a run with these arguments of ``simulate``."""
        shared = {
            name: self._shared(value) for name, value in arguments.items() if name in ("dataset", "parts", "loss")
        }
        own = {name: _own(value) for name, value in arguments.items() if name not in shared}
        text = repr((__version__, sorted(shared.items()), sorted(own.items())))
        return hashlib.blake2b(text.encode(), digest_size=16).hexdigest()

    def _shared(self, part: Any) -> Any:
        if id(part) not in self._known:
            self._known[id(part)] = part, _data(part)  # the part too, so that its id stays its own
        return self._known[id(part)][1]


def code_digest(part: Any) -> str:
    """A digest of the code of the functions in ``part``, those of a user's classes included; "" if there are none.

    Examples
    --------
    >>> from byzadmm.study.identity import code_digest
    >>> mine = {"__name__": "mine"}  # a module: the package's own functions do not count
    >>> one, same, two = (eval(text, mine) for text in ("lambda x: x + 1", "lambda y: y + 1", "lambda x: x + 2"))
    >>> code_digest(one) == code_digest(same), code_digest(one) == code_digest(two), code_digest(len)
    (True, False, '')
    """
    found = [text for code in _codes(part, set(), 0) for text in _lines(code)]
    return hashlib.blake2b(repr(found).encode(), digest_size=16).hexdigest() if found else ""


def _own(part: Any) -> Any:
    described = part.describe() if hasattr(part, "describe") else describe(part)
    return described, code_digest(part)


def _data(part: Any) -> Any:
    if isinstance(part, Dataset):
        arrays = (part.train_x, part.train_y, part.test_x, part.test_y)
        return [part.name, part.n_classes, part.scale, *map(describe, arrays)]
    if isinstance(part, (list, tuple)):
        return [describe(item) for item in part]
    if hasattr(part, "fingerprint") and not isinstance(part, type):
        return [type(part).__qualname__, *map(describe, part.fingerprint())]
    return _own(part)


def _codes(part: Any, seen: set[int], depth: int) -> Iterator[Any]:
    """Code objects, and what functions hold beside their code, of everything in ``part``."""
    if id(part) in seen or depth > _DEEP:
        return
    seen.add(id(part))
    inner: list[Any] = []
    if isinstance(part, functools.partial):
        inner = [part.func, *part.args, *part.keywords.values()]
    elif isinstance(part, types.MethodType):
        inner = [part.__func__, part.__self__]
    elif isinstance(part, types.FunctionType):
        if _foreign(part.__module__):
            yield part.__code__
            held = [cell.cell_contents for cell in part.__closure__ or () if _filled(cell)]
            inner = [*(part.__defaults__ or ()), *(part.__kwdefaults__ or {}).values(), *held]
            yield [describe(item) for item in inner]
    elif isinstance(part, (list, tuple)):
        inner = list(part)
    elif isinstance(part, Mapping):
        inner = list(part.values())
    elif isinstance(part, type):
        for kind in part.__mro__:
            if _foreign(kind.__module__):
                inner += [getattr(value, "fget", getattr(value, "__func__", value)) for value in vars(kind).values()]
        inner = [value for value in inner if isinstance(value, types.FunctionType)]
    elif not isinstance(part, (str, bytes, int, float, complex, type(None))) and not hasattr(part, "dtype"):
        inner = [type(part), *settings_of(part).values()]
    for item in inner:
        yield from _codes(item, seen, depth + 1)


def _lines(code: Any) -> Iterator[str]:
    if not isinstance(code, types.CodeType):
        yield repr(code)
        return
    constants = [item for item in code.co_consts if not isinstance(item, types.CodeType)]
    # The items of a set come in another order in every process.
    plain = [sorted(map(repr, item)) if isinstance(item, frozenset) else repr(item) for item in constants]
    yield repr((code.co_code.hex(), plain, code.co_names))
    for item in code.co_consts:
        if isinstance(item, types.CodeType):
            yield from _lines(item)


def _foreign(module: str | None) -> bool:
    return (module or "").partition(".")[0] not in _LIBRARIES


def _filled(cell: Any) -> bool:
    try:
        cell.cell_contents  # noqa: B018
    except ValueError:
        return False
    return True
