"""A progress bar below the cell of a notebook, without widgets: one output that is written over."""

from __future__ import annotations

import html
import importlib
import sys
import time
from collections.abc import Callable
from typing import Any

__all__ = ["CellBar", "find_display"]


def find_display() -> Callable[..., Any] | None:
    """IPython's ``display`` if this process is the kernel of a notebook; None elsewhere. Imports nothing new."""
    ipython = sys.modules.get("IPython")
    shell = ipython.get_ipython() if ipython is not None else None
    if getattr(shell, "kernel", None) is None:  # not imported, not in use, or a terminal
        return None
    display: Callable[..., Any] = importlib.import_module("IPython.display").display
    return display


class CellBar:
    """``show(done, total, note)`` as often as you like; ``close()`` leaves the last state below the cell.

    Parameters
    ----------
    display : callable
        IPython's.
    label : str
        What is counted.
    """

    INTERVAL = 0.2

    def __init__(self, display: Callable[..., Any], label: str) -> None:
        self.label = label
        self._begun = self._last = time.monotonic()
        self._first = 0  # a resumed run does not begin at zero
        self._pending: tuple[int, int, str] | None = None
        self._display, self._handle = display, None

    def show(self, done: int, total: int, note: str = "") -> None:
        """Show this state, or keep it for later if another was shown a moment ago."""
        self._pending = done, total, note
        if self._handle is None:
            self._first = done
        if self._handle is None or time.monotonic() - self._last >= self.INTERVAL:
            self._flush()

    def close(self) -> None:
        self._flush()

    def _flush(self) -> None:
        if self._pending is None:
            return
        content, self._pending, self._last = self._content(*self._pending), None, time.monotonic()
        if self._handle is None:
            self._handle = self._display(content, raw=True, display_id=True)
        else:
            self._handle.update(content, raw=True)

    def _content(self, done: int, total: int, note: str) -> dict[str, str]:
        passed = time.monotonic() - self._begun
        parts = [f"{self.label}: {done} of {total}", f"{_clock(passed)} elapsed"]
        advanced = done - self._first
        if advanced > 0 and done < total:
            parts.append(f"{_clock(passed * (total - done) / advanced)} left")
        line = ", ".join(filter(None, (*parts, note)))
        bar = f'<progress value="{done}" max="{max(total, 1)}" style="vertical-align: middle"></progress>'
        return {"text/plain": line, "text/html": f"{bar} {html.escape(line)}"}


def _clock(seconds: float) -> str:
    minutes, rest = divmod(round(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours}:{minutes:02}:{rest:02}" if hours else f"{minutes}:{rest:02}"
