"""Descriptions of settings and objects that are the same in every process.

They are written to a result's config, and a checkpoint is matched with its run by them: they contain no address and no
abbreviated array.
"""

from __future__ import annotations

import functools
import hashlib
import inspect
import random
import re
from collections.abc import Mapping
from dataclasses import fields, is_dataclass
from typing import Any

import numpy as np

from byzadmm._internal.arrays import Array, is_array, to_numpy

__all__ = ["describe", "settings_of"]

_MANY = 16  # items of a list: more are replaced by a digest
_LONG = 400  # characters of a setting: more are replaced by a digest
_DEEP = 40  # levels of objects in objects
_USUAL_REPR: Any = object.__repr__  # has an address


def describe(part: Any) -> Any:
    """``part`` as JSON can hold it: plain values as they are, short lists item by item, everything else as text.

    Arrays count by dtype, shape and a digest of their bytes, functions by name, objects by class and attributes.

    Examples
    --------
    >>> from byzadmm import steps
    >>> from byzadmm._internal.description import describe
    >>> describe([steps.constant(0.5), len, None])
    ['Constant(a=0.5)', 'len', None]
    """
    if isinstance(part, np.generic):
        part = part.item()
    if part is None or isinstance(part, (bool, int, float, str)):
        return part
    if isinstance(part, (list, tuple)) and len(part) <= _MANY:
        return [describe(item) for item in part]
    return _text(part, {}, 0)


def settings_of(part: Any) -> dict[str, Any]:
    """The fields of a dataclass, and whatever else an object holds; what a cached property keeps is no setting."""
    held: dict[str, Any] = {item.name: getattr(part, item.name) for item in fields(part)} if is_dataclass(part) else {}
    slots = [name for kind in type(part).__mro__ for name in _listed(kind.__dict__.get("__slots__", ()))]
    more = {name: getattr(part, name) for name in slots if hasattr(part, name) and not name.startswith("__")}
    more |= getattr(part, "__dict__", {})
    for name in sorted(more.keys() - held.keys()):
        if not isinstance(getattr(type(part), name, None), functools.cached_property):
            held[name] = more[name]
    return held


def _text(part: Any, seen: dict[int, tuple[Any, str]], depth: int) -> str:
    """``seen`` keeps what was described, so that nothing is described twice, and a ring comes to an end."""
    if isinstance(part, np.generic):
        part = part.item()
    if part is None or isinstance(part, (bool, int, float, str, complex, bytes)):
        return _short(repr(part), type(part).__name__)
    if id(part) not in seen:
        seen[id(part)] = part, "..."
        seen[id(part)] = part, _made(part, seen, depth)
    return seen[id(part)][1]


def _made(part: Any, seen: dict[int, tuple[Any, str]], depth: int) -> str:
    kind = type(part).__qualname__
    if depth > _DEEP:
        return kind

    def inner(item: Any) -> str:
        return _text(item, seen, depth + 1)

    def named(settings: Mapping[str, Any]) -> list[str]:
        return [f"{name}={inner(value)}" for name, value in settings.items()]

    if isinstance(part, functools.partial):
        return f"partial({', '.join([inner(part.func), *map(inner, part.args), *named(part.keywords)])})"
    if inspect.ismethod(part):
        return f"{inner(part.__self__)}.{part.__name__}"
    if isinstance(getattr(part, "__qualname__", None), str):
        return str(part.__qualname__)
    if isinstance(part, (list, tuple)):
        return _short(f"[{', '.join(map(inner, part))}]", kind, len(part))
    if isinstance(part, (set, frozenset)):
        return _short(f"{{{', '.join(sorted(map(inner, part)))}}}", kind, len(part))
    if isinstance(part, Mapping):
        items = sorted(f"{inner(key)}: {inner(value)}" for key, value in part.items())
        return _short(f"{{{', '.join(items)}}}", kind, len(part))
    array = _as_array(part)
    if array is not None:
        if array.dtype.hasobject:  # its bytes are addresses
            return f"array({array.shape}, {inner(array.tolist())})"
        return f"array({array.dtype}, {array.shape}, {_digest(np.ascontiguousarray(array).data)})"
    if isinstance(part, (np.random.Generator, random.Random)):
        state = part.getstate() if isinstance(part, random.Random) else part.bit_generator.state
        return f"{kind}({_digest(inner(state).encode())})"
    held = settings_of(part)
    if not held and type(part).__repr__ is not _USUAL_REPR and not is_dataclass(part):
        return _short(re.sub(r" at 0x[0-9a-fA-F]+", "", repr(part)), kind)
    return _short(f"{kind}({', '.join(named(held))})", kind)


def _listed(slots: Any) -> tuple[str, ...]:
    return (slots,) if isinstance(slots, str) else tuple(slots)


def _as_array(part: Any) -> Array | None:
    if not is_array(part) or isinstance(part, type):
        return None
    try:
        return to_numpy(part.detach() if hasattr(part, "detach") else part, "part")
    except (TypeError, ValueError):  # one that has no numbers in host memory
        return None


def _short(text: str, kind: str, items: int = 0) -> str:
    return text if len(text) <= _LONG and items <= _MANY else f"{kind}({_digest(text.encode())})"


def _digest(content: Any) -> str:
    return hashlib.blake2b(content, digest_size=8).hexdigest()
