"""Rows of the comparison for the rules that ByzFL and Flower have too, where these are installed; float32.

A peer gets what it works on fastest: an array, or for Flower a list of arrays and numbers of samples. Every setting is
the peer's own. ByzFL's clipping overwrites its argument, and is given a copy.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from importlib.util import find_spec
from typing import Any

import numpy as np
from measure import Call, Row
from numpy.typing import NDArray
from rows_kernels import normal

from byzadmm import aggregate

__all__ = ["rows"]

Array = NDArray[Any]
Rule = Callable[[Array], object]

SIZES = [(20, 7850), (50, 100_000), (20, 1_000_000)]
#: How many times faster ours must be than ByzFL on arrays.
AT_LEAST = {"centered_clip x1": 4.0, "clip": 1.0, "bucketing s=2": 1.0}
FEW = 2  # Byzantine rows for rules that go through subsets


def _byzfl(f: int) -> dict[str, tuple[Rule, Rule]]:
    """Rule -> ours and ByzFL's, on arrays."""
    import byzfl

    rng = np.random.default_rng(0)

    def centered(X: Array) -> object:
        return byzfl.CenteredClipping(tau=10.0)(X)

    def smoothed(X: Array) -> object:
        return byzfl.GeometricMedian()(X)

    def clipped(X: Array) -> object:
        return byzfl.Clipping(c=10.0)(X.copy())

    def shortened(X: Array) -> object:
        return byzfl.ARC(f=f)(X.copy())

    t: dict[str, Any] = {"threads": 1}
    return {
        "mean": (lambda X: aggregate.mean(X, **t), byzfl.Average()),
        "median": (lambda X: aggregate.median(X, **t), byzfl.Median()),
        "trimmed_mean": (lambda X: aggregate.trimmed_mean(X, f=f, **t), byzfl.TrMean(f=f)),
        "geometric_median": (lambda X: aggregate.geometric_median(X, **t), smoothed),
        "krum": (lambda X: aggregate.krum(X, f=f, **t), byzfl.Krum(f=f)),
        "multi_krum": (lambda X: aggregate.multi_krum(X, f=f, **t), byzfl.MultiKrum(f=f)),
        "mda f=2": (lambda X: aggregate.mda(X, f=FEW, **t), byzfl.MDA(f=FEW)),
        "meamed": (lambda X: aggregate.meamed(X, f=f, **t), byzfl.Meamed(f=f)),
        "nearest_neighbor_average": (
            lambda X: aggregate.nearest_neighbor_average(X, f=f, pivot=0, **t), byzfl.MoNNA(f=f, idx=0),
        ),
        "centered_clip x1": (
            lambda X: aggregate.centered_clip(X, tau=10, center=np.zeros(X.shape[1], X.dtype), **t), centered,
        ),
        "nearest_neighbor_mixing": (lambda X: aggregate.nearest_neighbor_mixing(X, f=f, **t), byzfl.NNM(f=f)),
        "bucketing s=2": (lambda X: aggregate.bucketing(X, s=2, rng=rng, **t), byzfl.Bucketing(s=2)),
        "clip": (lambda X: aggregate.clip(X, max_norm=10, **t), clipped),
        "arc": (lambda X: aggregate.arc(X, f=f, **t), shortened),
    }  # fmt: skip


def _flower(f: int) -> dict[str, tuple[Rule, Rule]]:
    """Rule -> ours and Flower's."""
    from flwr.server.strategy import aggregate as flower

    def results(X: Array) -> list[tuple[list[Array], int]]:
        return [([row], 1) for row in X]

    t: dict[str, Any] = {"threads": 1}
    return {
        "mean": (lambda X: aggregate.mean(X, **t), lambda X: flower.aggregate(results(X))),
        "median": (lambda X: aggregate.median(X, **t), lambda X: flower.aggregate_median(results(X))),
        "trimmed_mean": (
            lambda X: aggregate.trimmed_mean(X, f=f, **t),
            lambda X: flower.aggregate_trimmed_avg(results(X), (f + 0.5) / len(X)),
        ),
        "krum": (lambda X: aggregate.krum(X, f=f, **t), lambda X: flower.aggregate_krum(results(X), f, 0)),
        "multi_krum": (
            lambda X: aggregate.multi_krum(X, f=f, **t), lambda X: flower.aggregate_krum(results(X), f, len(X) - f),
        ),
    }  # fmt: skip


def _pair(cases: Callable[[int], dict[str, tuple[Rule, Rule]]], rule: str, n: int, d: int) -> tuple[Call, Call]:
    ours, theirs = cases(2 * n // 5)[rule]
    X = normal(n, d)
    return lambda: ours(X), lambda: theirs(X)


def rows() -> list[Row]:
    """Every shared rule at every size; none for a peer that is not installed."""
    found = []
    for package, peer, cases in [("byzfl", "ByzFL NumPy", _byzfl), ("flwr", "Flower", _flower)]:
        if find_spec(package) is None:
            continue
        for rule in cases(0):
            for shape in SIZES:
                least = AT_LEAST.get(rule) if peer.startswith("ByzFL") else None
                build = partial(_pair, cases, rule, *shape)
                found.append(Row("peers, float32, one thread", f"{rule} {shape}", peer, build, at_least=least))
    return found
