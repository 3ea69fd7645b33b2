"""Standard output and standard error: streams that may be closed, errors as one line, tables and JSON."""

from __future__ import annotations

import contextlib
import io
import json
import math
import os
import re
import sys
from collections.abc import Callable, Iterator, Sequence
from typing import Any

from byzadmm._internal.progress import remark

BAD_INPUT, INTERRUPTED = 2, 130
_LONG_LINE = 1000  # characters of an error that are shown
_NAME_WIDTH = 20  # of the first column of a table, as far as a name can be broken


def guarded(run: Callable[[], int]) -> int:
    """The exit code of ``run``; an error becomes one line on standard error."""
    try:
        try:
            return run()
        finally:
            with _output():
                pass
    except BrokenPipeError:  # `byzadmm ... | head`: the reader has closed the pipe
        _discard_stdout()
        return 1
    except _OutputError as error:
        _discard_stdout()
        say_error(error)
        return 1
    except (ValueError, TypeError, OSError, ImportError, MemoryError, OverflowError) as error:
        say_error(error)
        return BAD_INPUT
    except KeyboardInterrupt:
        remark("byzadmm: interrupted")
        return INTERRUPTED


@contextlib.contextmanager
def standard_streams() -> Iterator[None]:
    """Both standard streams open (Python has None for a closed one) and able to write any character."""
    before = sys.stdout, sys.stderr
    with open(os.devnull, "w") as nowhere:
        sys.stdout, sys.stderr = (stream or nowhere for stream in before)
        errors = getattr(sys.stdout, "errors", None)
        if isinstance(sys.stdout, io.TextIOWrapper):
            sys.stdout.reconfigure(errors="backslashreplace")
        try:
            yield
        finally:
            if isinstance(sys.stdout, io.TextIOWrapper):
                sys.stdout.reconfigure(errors=errors)
            sys.stdout, sys.stderr = before


def say_error(error: Exception, what: str = "") -> None:
    """Print an error as one line, or as several if it lists files to fetch.

    A long line is cut, and control characters are escaped.
    """
    kind = "not enough memory: " if isinstance(error, MemoryError) else ""
    text = f"byzadmm: error: {what}{kind}{error}"
    for line in text.split("\n") if isinstance(error, FileNotFoundError) else [text]:
        if len(line) > _LONG_LINE:
            line = f"{line[: _LONG_LINE // 2]} ... {line[-_LONG_LINE // 2 :]}"
        remark("".join(c if c.isprintable() else ascii(c)[1:-1] for c in line))


def print_table(columns: Sequence[str], rows: Sequence[Sequence[str]], title: str) -> None:
    """Print a table; a column whose name begins with ``>`` is aligned to the right."""
    from rich import box
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    headed = any(columns)
    table = Table(box=box.SIMPLE_HEAD, title=Text(title), title_justify="left", show_header=headed)
    table.padding, table.show_edge, table.pad_edge = (0, 1, 0, 0), False, False
    for number, name in enumerate(columns):
        # Names and numbers stay on one line, other text may be broken.
        right = name[:1] == ">"
        table.add_column(Text(name.lstrip(">")), justify="right" if right else "left", no_wrap=right or number == 0)
    for row in rows:
        table.add_row(Text(_in_lines(row[0])), *(Text(cell) for cell in row[1:]))
    with _output():
        Console(highlight=False).print(table)


def _in_lines(name: str) -> str:
    """A long chain of rules, broken after its plus signs to leave room for the numbers beside it."""
    lines = [""]
    for link in re.split(r"(?<=[+])", name):
        if lines[-1] and len(lines[-1] + link) > _NAME_WIDTH:
            lines.append(" ")
        lines[-1] += link
    return "\n".join(lines)


def print_json(value: Any) -> None:
    """Print a value as JSON; null stands for NaN and infinities."""
    text = json.dumps(_plain(value), indent=2, allow_nan=False)
    with _output():
        print(text)


def _plain(value: Any) -> Any:
    if isinstance(value, dict):
        return {str(key): _plain(item) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [_plain(item) for item in value]
    if hasattr(value, "tolist"):
        return _plain(value.tolist())
    return None if isinstance(value, float) and not math.isfinite(value) else value


class _OutputError(OSError):
    """Standard output cannot be written."""


@contextlib.contextmanager
def _output() -> Iterator[None]:
    """Flush standard output at the end of the block; if that fails, raise an :class:`_OutputError`."""
    try:
        yield
        sys.stdout.flush()
    except BrokenPipeError:
        raise
    except OSError as error:
        raise _OutputError(f"standard output: {error.strerror or error}") from error


def _discard_stdout() -> None:
    """Point standard output at the null device, so that Python's own flush at exit does not fail."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
