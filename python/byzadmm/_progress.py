"""A progress bar on a terminal, plain lines elsewhere."""

from __future__ import annotations

import contextlib
import sys
import time
from collections.abc import Callable

__all__ = ["Bar", "remark"]


def remark(*lines: str, end: str = "\n") -> None:
    """Print lines beside the result, on standard error; if that is closed or full, go on without them."""
    for line in lines:
        if sys.stderr is not None:
            with contextlib.suppress(OSError):
                print(line, end=end, file=sys.stderr, flush=True)


class Bar:
    """``update(done, total)`` as often as you like, with a function for a remark beside it; ``close()`` at the end.

    On a terminal a bar of rich; when standard error is a file or a pipe, a line at most every ten seconds, or with
    ``live`` one that is written over five times a second.
    """

    PLAIN_INTERVAL, LIVE_INTERVAL = 10.0, 0.2

    def __init__(self, label: str, live: bool = False) -> None:
        self.label, self.live = label, live
        self._bar = None
        self._last = time.monotonic()
        if sys.stderr is not None and sys.stderr.isatty():
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
        if self._bar is not None:
            self._bar.update(self._task, completed=done, total=total, note=note())
        elif time.monotonic() - self._last >= (self.LIVE_INTERVAL if self.live else self.PLAIN_INTERVAL):
            self._last = time.monotonic()
            line = ", ".join(filter(None, (f"{self.label}: {done} of {total}", note())))
            remark(f"\r{line}\033[K" if self.live else line, end="" if self.live else "\n")

    def close(self) -> None:
        if self._bar is not None:
            self._bar.stop()
            self._bar = None
        elif self.live:
            remark("\r\033[K", end="")
