"""Attacks, delays and graphs from a user's file, written ``FILE.py:NAME``."""

from __future__ import annotations

import importlib.util
import inspect
import os
import re
import sys
import traceback
from collections.abc import Callable
from pathlib import Path
from types import ModuleType
from typing import Any

from byzadmm.attacks import Attack
from byzadmm.catalogue.entries import REQUIRED, Entry, first_line
from byzadmm.graphs import Flaky, Graph

__all__ = ["located", "own_entry", "split_own"]

_MODULE = re.compile(r"byzadmm (attack|delays|graph) in (.*)", re.DOTALL)  # names of modules made of a user's file

_NOUNS = {"attack": "an attack", "delays": "a delay", "graph": "a graph"}


def split_own(text: str) -> tuple[str, str, str] | None:
    """File, name and what follows the name in ``FILE.py:NAME`` or ``FILE.py:NAME:SETTINGS``; None for other text.

    The file ends at the last ``.py:`` before a name, so that it may have colons and dots in it, as in ``C:\\my.v2.py``.

    Examples
    --------
    >>> from byzadmm.catalogue.own import split_own
    >>> split_own("attacks/my.v2.py:bias"), split_own("gaussian:std=50")
    (('attacks/my.v2.py', 'bias', ''), None)
    """
    found = re.fullmatch(r"(.*\.py)(?::([^:/\\]*))?(:.*)?", text, re.DOTALL | re.IGNORECASE)
    return (found[1], (found[2] or "").strip(), (found[3] or "")[1:]) if found else None


def own_entry(file: str, name: str, folder: str | os.PathLike[str] = "", what: str = "attack") -> Entry:
    """The entry of an attack, delay or graph in a user's file: a function, an object, or a class.

    Parameters
    ----------
    file : str
        Python file; it is run anew by every call.
    name : str
        Of the part in it; may have dots, as in ``Family.weak``.
    folder : path
        What a relative ``file`` is relative to, by default the current one.
    what : "attack", "delays" or "graph"
        Begins the errors.

    Returns
    -------
    Entry
        Its settings are those of the class; a function and an object, which can be called, have none. Of a graph
        ``make`` is called with the number of nodes too, and the settings are those of the function beside it.

    Raises
    ------
    ValueError
        One line: no such file or name, an error in the file with its line, or something that cannot be called.

    Examples
    --------
    >>> import pathlib, tempfile
    >>> from byzadmm.catalogue.own import own_entry
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     _ = pathlib.Path(folder, "my.py").write_text("def same(messages, byzantine, **_): return messages[:1]")
    ...     own_entry("my.py", "same", folder).make().__name__
    'same'
    """
    found: Any = _load(file, Path(folder, os.path.expanduser(file)), what)
    if not name:
        raise ValueError(f"{what}: {file}: expected FILE.py:NAME{_offered(found)}")
    for part in name.split("."):
        try:
            found = getattr(found, part)
        except AttributeError:
            raise ValueError(f"{what}: {file}: no {name!r} in it{_offered(found)}") from None
    noun = _NOUNS[what]
    if what == "graph" and isinstance(found, (Graph, Flaky)):
        return Entry(lambda m: found, {}, first_line(found))
    if not callable(found):
        kind = type(found).__name__
        raise ValueError(f"{what}: {file}:{name}: expected a function, {noun} or a class, got {kind}")
    if what == "graph":
        return Entry(_guarded(found, file, name, what), dict(list(_settings(found).items())[1:]), first_line(found))
    if not inspect.isclass(found):
        return Entry(lambda: found, {}, first_line(found))

    def make(**settings: Any) -> Any:
        made = _guarded(found, file, name, what)(**settings)
        if not callable(made):
            bare = noun.split()[1]
            raise ValueError(f"{what}: {file}:{name}: expected a class with __call__, the {bare}; it has none")
        return made

    return Entry(make, _settings(found), first_line(found))


def _guarded(found: Callable[..., Any], file: str, name: str, what: str) -> Callable[..., Any]:
    """The user's function or class; its errors are a ValueError with the line of the file."""

    def make(*arguments: Any, **settings: Any) -> Any:
        try:
            return found(*arguments, **settings)
        except Exception as error:
            raise _in_file(file, error, f"{file}:{name}", what) from error

    return make


def located(error: Exception) -> Exception:
    """The error; if a user's file raised it while a run called it, a ValueError that names the line there."""
    for frame, line in reversed(list(traceback.walk_tb(error.__traceback__))):
        found = _MODULE.fullmatch(str(frame.f_globals.get("__name__")))
        if found:
            return ValueError(f"{found[1]}: {found[2]}, line {line}: {_words(error)}")
    return error


def _load(file: str, path: Path, what: str) -> ModuleType:
    if not path.is_file():
        raise ValueError(f"{what}: {file}: no such file")
    name = _module(file, what)
    spec = importlib.util.spec_from_file_location(name, path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    folder = str(path.resolve().parent)
    sys.modules[name] = module  # dataclasses look their module up
    sys.path.insert(0, folder)  # the file may import others beside it, as a script may
    try:
        spec.loader.exec_module(module)
    except (Exception, SystemExit) as error:
        del sys.modules[name]
        raise _in_file(file, error, file, what) from error
    finally:
        sys.path.remove(folder)
    return module


def _module(file: str, what: str) -> str:
    """The name of the module that is made of a user's file."""
    return f"byzadmm {what} in {file}"


def _in_file(file: str, error: BaseException, otherwise: str, what: str) -> ValueError:
    """What went wrong, with the line of the file where it has one."""
    line = error.lineno if isinstance(error, SyntaxError) else None
    for frame, number in traceback.walk_tb(error.__traceback__):
        if frame.f_globals.get("__name__") == _module(file, what):
            line = number
    return ValueError(f"{what}: {otherwise if line is None else f'{file}, line {line}'}: {_words(error)}")


def _words(error: BaseException) -> str:
    text = error.msg if isinstance(error, SyntaxError) else str(error)
    return f"{type(error).__name__}: {text}" if text else type(error).__name__


def _offered(module: Any) -> str:
    """What a file has to offer: its own functions, classes and objects that can be called."""
    if not inspect.ismodule(module):
        return ""

    def offers(part: Any) -> bool:
        own = callable(part) and getattr(part, "__module__", "") == module.__name__
        return own or isinstance(part, (Attack, Graph, Flaky))

    names = [name for name, part in vars(module).items() if not name.startswith("_") and offers(part)]
    return f"; it has {', '.join(names)}" if names else ""


def _settings(kind: Any) -> dict[str, Any]:
    try:
        parameters = inspect.signature(kind).parameters.values()
    except ValueError:  # a class that is not written in Python
        return {}
    kinds = (inspect.Parameter.POSITIONAL_OR_KEYWORD, inspect.Parameter.KEYWORD_ONLY)
    return {
        item.name: REQUIRED if item.default is inspect.Parameter.empty else item.default
        for item in parameters
        if item.kind in kinds
    }
