"""Rows of the comparison against ByzFL and Flower, where they are installed; float32 NumPy rows, one thread.

``pip install byzfl==0.0.11 flwr==1.41.0`` brings them; they are no dependency of anything else.
"""

from __future__ import annotations

from functools import partial
from importlib import import_module
from importlib.util import find_spec

from measure import Call, Row
from rows_kernels import normal

from byzadmm import aggregate

__all__ = ["rows"]

SHAPES = [(20, 7850), (20, 1_000_000)]
F = 4
#: Function of ``byzadmm.aggregate`` and its settings -> class of ByzFL and its settings.
BYZFL = [
    ("median", {}, "Median", {}),
    ("trimmed_mean", {"f": F}, "TrMean", {"f": F}),
    ("geometric_median", {}, "GeometricMedian", {}),
    ("krum", {"f": F}, "Krum", {"f": F}),
    ("multi_krum", {"f": F}, "MultiKrum", {"f": F}),
    ("meamed", {"f": F}, "Meamed", {"f": F}),
    ("nearest_neighbor_mixing", {"f": F}, "NNM", {"f": F}),
    ("centered_clip", {"tau": 10.0, "n_iter": 1, "center": 0.0}, "CenteredClipping", {"tau": 10.0, "L": 1}),
]
#: The same -> function of ``flwr.server.strategy.aggregate`` and what it takes besides the replies.
FLOWER = [
    ("median", {}, "aggregate_median", ()),
    ("krum", {"f": F}, "aggregate_krum", (F, 0)),
]


def rows() -> list[Row]:
    found: list[Row] = []
    for shape in SHAPES:
        if find_spec("byzfl"):
            for name, ours, theirs, settings in BYZFL:

                def build(
                    name: str = name, ours: dict = ours, theirs: str = theirs, settings: dict = settings,
                    shape: tuple[int, int] = shape,
                ) -> tuple[Call, Call]:
                    X = normal(shape)
                    if "center" in ours:
                        ours = ours | {"center": X[0] * 0}
                    rule = getattr(import_module("byzfl"), theirs)(**settings)
                    return partial(getattr(aggregate, name), X, threads=1, **ours), partial(rule, X)

                found.append(Row("peers, float32, one thread", f"{name} {shape}", f"ByzFL {theirs}", build))
        if find_spec("flwr"):
            for name, ours, theirs, more in FLOWER:

                def build_flower(
                    name: str = name, ours: dict = ours, theirs: str = theirs, more: tuple = more,
                    shape: tuple[int, int] = shape,
                ) -> tuple[Call, Call]:
                    X = normal(shape)
                    function = getattr(import_module("flwr.server.strategy.aggregate"), theirs)
                    replies = [([row], 1) for row in X]
                    return partial(getattr(aggregate, name), X, threads=1, **ours), partial(function, replies, *more)

                found.append(Row("peers, float32, one thread", f"{name} {shape}", f"Flower {theirs}", build_flower))
    return found
