"""The makers by the names that a person types, for a given number of nodes."""

from __future__ import annotations

import functools
import math
from collections.abc import Callable
from typing import Any

from byzadmm._internal.validation import check_int
from byzadmm.graphs import makers
from byzadmm.graphs.graph import Graph

__all__ = ["REGISTRY"]

Maker = Callable[..., Graph]


def torus(m: int, a: int | None = None) -> Graph:
    """Grid of a rows and m/a columns whose opposite sides are joined; by default as square as there is."""
    m = check_int(m, "m", low=1)
    if a is None:
        a = max(side for side in range(1, math.isqrt(m) + 1) if m % side == 0)
        if a == 1:
            raise ValueError(f"m: a torus has a number of nodes that is a product of two others, got {m}")
    elif m % check_int(a, "a", low=1):
        raise ValueError(f"a: expected a divisor of the {m} nodes, got {a}")
    return makers.torus(a, m // a)


def halved(maker: Maker) -> Maker:
    """The maker of a graph on ``2k`` nodes, called with their number."""

    @functools.wraps(maker)
    def make(m: int, **settings: Any) -> Graph:
        if check_int(m, "m", low=1) % 2:
            raise ValueError(f"m: {maker.__name__} has two nodes for each k, expected an even number, got {m}")
        return maker(m // 2, **settings)

    return make


#: Name -> maker, called as ``make(m, **settings)`` for m nodes: "two-castle" is ``two_castle(m // 2)``, and
#: "torus" ``torus(a, m // a)``.
REGISTRY: dict[str, Maker] = {
    "complete": makers.complete,
    "ring": makers.ring,
    "torus": torus,
    "star": makers.star,
    "erdos-renyi": makers.erdos_renyi,
    "two-castle": halved(makers.two_castle),
    "octopus": halved(makers.octopus),
    "dumbbell": halved(makers.dumbbell),
    "two-worlds": halved(makers.two_worlds),
}
