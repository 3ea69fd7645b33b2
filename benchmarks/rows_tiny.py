"""Rows of the comparison where the cost of a call is all there is: every rule against its plain NumPy form."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from measure import Row
from numpy.typing import NDArray
from rows_kernels import normal, weiszfeld
from rows_rules import numpy_centered_clip, numpy_krum, numpy_meamed, numpy_mixing, numpy_multi_krum, numpy_phocas

from byzadmm import aggregate

__all__ = ["rows"]

Array = NDArray[Any]
Rule = Callable[[Array], object]


def numpy_clip(X: Array, max_norm: float) -> Array:
    return X * np.minimum(1, max_norm / np.linalg.norm(X, axis=1))[:, None].astype(X.dtype)


def numpy_bucketing(X: Array, s: int, rng: np.random.Generator) -> Array:
    return rng.permutation(X).reshape(-1, s, X.shape[1]).mean(axis=1)


def _cases() -> dict[str, tuple[tuple[int, int], Rule, Rule]]:
    rng = np.random.default_rng(0)
    least, more = (3, 8), (6, 8)  # Krum and its family need more rows
    return {
        "mean": (least, aggregate.mean, lambda X: X.mean(axis=0)),
        "median": (least, aggregate.median, lambda X: np.median(X, axis=0)),
        "trimmed_mean": (least, lambda X: aggregate.trimmed_mean(X, f=1), lambda X: np.sort(X, axis=0)[1:2].mean(0)),
        "geometric_median": (least, aggregate.geometric_median, lambda X: weiszfeld(X, 1e-6)),
        "krum": (more, lambda X: aggregate.krum(X, f=1), lambda X: numpy_krum(X, 1)),
        "multi_krum": (more, lambda X: aggregate.multi_krum(X, f=1), lambda X: numpy_multi_krum(X, 1)),
        "meamed": (least, lambda X: aggregate.meamed(X, f=1), lambda X: numpy_meamed(X, 1)),
        "phocas": (least, lambda X: aggregate.phocas(X, f=1), lambda X: numpy_phocas(X, 1)),
        "centered_clip": (
            least, lambda X: aggregate.centered_clip(X, tau=1.0), lambda X: numpy_centered_clip(X, 1.0, 1),
        ),
        "nearest_neighbor_mixing": (
            more, lambda X: aggregate.nearest_neighbor_mixing(X, f=1), lambda X: numpy_mixing(X, 1),
        ),
        "bucketing": (more, lambda X: aggregate.bucketing(X, s=2, rng=rng), lambda X: numpy_bucketing(X, 2, rng)),
        "clip": (least, lambda X: aggregate.clip(X, max_norm=1.0), lambda X: numpy_clip(X, 1.0)),
    }  # fmt: skip


def rows() -> list[Row]:
    """One row per rule."""

    def row(name: str, shape: tuple[int, int], ours: Rule, theirs: Rule) -> Row:
        X = normal(*shape)
        area = "tiny inputs, float32: the cost of a call"
        return Row(area, f"{name} {shape}", "plain NumPy", lambda: (lambda: ours(X), lambda: theirs(X)), at_most=1.5)

    return [row(name, *case) for name, case in _cases().items()]
