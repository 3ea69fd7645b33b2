"""The picture of several results: the curves of their algorithms in one plot."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from byzadmm.catalogue import LABELS
from byzadmm.results import Result
from byzadmm.study import AXES, Cell, Study

__all__ = ["draw_runs"]


def draw_runs(path: str | Path, results: Sequence[tuple[str, Result]], title: str) -> None:
    """Draw accuracy against iterations, or the loss where there is no accuracy: one curve per algorithm.

    The picture of a :class:`byzadmm.Study` with these results and nothing else.

    Parameters
    ----------
    path : path
        PNG, SVG or PDF by its ending.
    results : list of (str, Result)
        Name of the algorithm, as on the command line, and its result.
    title : str
    """
    names = [name for name, _ in results]
    place: tuple[Any, ...] = ("", 0, "", 0)
    axes = dict(zip(AXES, [names, *([value] for value in place)], strict=True))
    found = {Cell(name, *place): result for name, result in results}
    ideal = tuple(name for name in names if name == "ideal")
    Study(title, axes, results=found, labels={"algorithm": LABELS}, ideal=ideal).plot(path)
