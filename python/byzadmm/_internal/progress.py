"""A progress bar on a terminal and in a notebook, plain lines elsewhere."""

from __future__ import annotations

import contextlib
import os
import signal
import sys
import time
from collections.abc import Callable
from typing import TextIO

from byzadmm._internal.notebook import CellBar, find_display

__all__ = ["Bar", "remark"]


def remark(*lines: str, end: str = "\n") -> None:
    """Print lines beside the result, on standard error; if that is closed or full, go on without them."""
    for line in lines:
        if sys.stderr is not None:
            with contextlib.suppress(OSError):
                print(line, end=end, file=sys.stderr, flush=True)


class Bar:
    """``update(done, total)`` as often as you like, with a function for a remark beside it; ``close()`` at the end.

    On a terminal a bar of rich; in a notebook a bar below the cell, which stays; when standard error is a file or a
    pipe, a line at most every ten seconds. ``live`` is for a process whose standard error mpirun forwards, in whole
    lines: one line is written over five times a second on the controlling terminal, which it shares with an mpirun on
    the same machine; without a terminal, a line a second.
    """

    PLAIN_INTERVAL, LIVE_INTERVAL, OVERWRITE_INTERVAL = 10.0, 1.0, 0.2
    TERMINAL = "/dev/tty"

    def __init__(self, label: str, live: bool = False) -> None:
        self.label = label
        self._bar = None
        self._terminal = _terminal(self.TERMINAL) if live else None
        self._every = self.OVERWRITE_INTERVAL if self._terminal else self.LIVE_INTERVAL if live else self.PLAIN_INTERVAL
        self._last = time.monotonic()
        display = None if live else find_display()
        self._cell = None if display is None else CellBar(display, label)
        if self._cell is None and sys.stderr is not None and sys.stderr.isatty():
            from rich.console import Console
            from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn, TimeRemainingColumn

            self._bar = Progress(
                TextColumn("{task.description}"),
                BarColumn(),
                TextColumn("{task.completed}/{task.total}"),
                TimeElapsedColumn(),
                TextColumn("left"),
                TimeRemainingColumn(),
                TextColumn("{task.fields[note]}"),
                console=Console(stderr=True),
                transient=True,
            )
            self._task = self._bar.add_task(label, total=None, note="")
            self._bar.start()

    def update(self, done: int, total: int, note: Callable[[], str] = str) -> None:
        if self._cell is not None:
            self._cell.show(done, total, note())
        elif self._bar is not None:
            self._bar.update(self._task, completed=done, total=total, note=note())
        elif time.monotonic() - self._last >= self._every:
            self._last = time.monotonic()
            line = ", ".join(filter(None, (f"{self.label}: {done} of {total}", note())))
            if self._terminal is None:
                remark(line)
            else:
                self._overwrite(line)

    def clear(self) -> None:
        """Make room for a line on standard error; the live line comes back a moment later, below it."""
        if self._terminal is not None:
            self._last = time.monotonic()
            self._overwrite("")

    def close(self) -> None:
        if self._cell is not None:
            self._cell.close()
        if self._bar is not None:
            self._bar.stop()
            self._bar = None
        if self._terminal is not None:
            self._overwrite("")
            self._terminal.close()
            self._terminal = None

    def _overwrite(self, line: str) -> None:
        assert self._terminal is not None
        with contextlib.suppress(OSError):  # it was closed
            columns = os.get_terminal_size(self._terminal.fileno()).columns or 80  # 0 is unknown
            self._terminal.write(f"\r{line[: columns - 1]}\033[K")
            self._terminal.flush()


def _terminal(path: str) -> TextIO | None:
    """The controlling terminal, if there is one."""
    try:
        terminal = open(path, "w", encoding="utf-8")  # noqa: SIM115
    except OSError:
        return None
    signal.signal(signal.SIGTTOU, signal.SIG_IGN)  # a rank is no foreground process: `stty tostop` would stop it
    return terminal
