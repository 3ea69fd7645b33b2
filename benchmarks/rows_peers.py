"""Rows of the comparison against ByzFL and Flower, where they are installed; float32 rows in NumPy, one thread.

``pip install byzfl==0.0.11 flwr==1.41.0`` brings them; nothing else depends on them. ByzFL's geometric median takes
three steps from zero, ours goes on until it has converged.
"""

from __future__ import annotations

from functools import partial
from importlib import import_module
from importlib.util import find_spec
from typing import Any

from measure import Call, Row
from rows_kernels import normal

from byzadmm import aggregators

__all__ = ["rows"]

F = 4
SHAPES = [(20, 7850), (20, 1_000_000)]
#: Classes that ByzFL and `byzadmm.aggregators` have in common, and their settings.
BYZFL: list[tuple[str, dict[str, Any]]] = [
    ("Median", {}),
    ("TrMean", {"f": F}),
    ("GeometricMedian", {}),
    ("Krum", {"f": F}),
    ("MultiKrum", {"f": F}),
    ("Meamed", {"f": F}),
    ("NNM", {"f": F}),
]
#: Function of ``flwr.server.strategy.aggregate`` and what it takes after the replies -> our rule.
FLOWER: list[tuple[str, tuple[int, ...], Any]] = [
    ("aggregate_median", (), aggregators.Median()),
    ("aggregate_krum", (F, 0), aggregators.Krum(f=F)),
]


def against_byzfl(name: str, settings: dict[str, Any], shape: tuple[int, int]) -> tuple[Call, Call]:
    X = normal(*shape)
    theirs = getattr(import_module("byzfl"), name)(**settings)
    return partial(getattr(aggregators, name)(**settings), X, threads=1), partial(theirs, X)


def against_flower(name: str, more: tuple[int, ...], ours: Any, shape: tuple[int, int]) -> tuple[Call, Call]:
    X = normal(*shape)
    replies = [([row], 1) for row in X]
    theirs = getattr(import_module("flwr.server.strategy.aggregate"), name)
    return partial(ours, X, threads=1), partial(theirs, replies, *more)


def rows() -> list[Row]:
    area, found = "peers, float32, one thread", []
    for shape in SHAPES:
        for name, settings in BYZFL if find_spec("byzfl") else []:
            found.append(Row(area, f"{name} {shape}", "ByzFL", partial(against_byzfl, name, settings, shape)))
        for name, more, ours in FLOWER if find_spec("flwr") else []:
            build = partial(against_flower, name, more, ours, shape)
            found.append(Row(area, f"{type(ours).__name__} {shape}", "Flower", build))
    return found
