"""Rows of the comparison for Krum and its family, rules around a center, clipping and mixing; float32."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from measure import Call, Row
from numpy.typing import NDArray
from rows_kernels import normal
from scipy.spatial.distance import cdist

from byzadmm import aggregate

__all__ = ["rows"]

Array = NDArray[Any]
Rule = Callable[[Array], object]

F = 16  # of 64 rows


def numpy_krum(X: Array, f: int) -> Array:
    """SciPy's distances, NumPy's selection."""
    D = cdist(X, X, "sqeuclidean")
    np.fill_diagonal(D, np.inf)
    k = len(X) - f - 2
    return X[np.partition(D, k - 1, axis=1)[:, :k].sum(axis=1).argmin()]


def numpy_multi_krum(X: Array, f: int) -> Array:
    """Differences row by row, in plain NumPy."""
    n = len(X)
    D = np.stack([((X - row) ** 2).sum(axis=1) for row in X])
    np.fill_diagonal(D, np.inf)
    scores = np.sort(D, axis=1)[:, : n - f - 2].sum(axis=1)
    return X[np.argsort(scores)[: n - f]].mean(axis=0)


def numpy_mixing(X: Array, f: int) -> Array:
    """All neighbours of all rows side by side, an array (n, n-f, d), and their mean."""
    nearest = np.argsort(cdist(X, X, "sqeuclidean"), axis=1)[:, : len(X) - f]
    return X[nearest].mean(axis=1)


def numpy_closest(X: Array, center: Array, k: int) -> Array:
    nearest = np.argsort(np.abs(X - center), axis=0)[:k]
    return np.take_along_axis(X, nearest, axis=0).mean(axis=0)


def numpy_meamed(X: Array, f: int) -> Array:
    return numpy_closest(X, np.median(X, axis=0), len(X) - f)


def numpy_phocas(X: Array, f: int) -> Array:
    return numpy_closest(X, np.sort(X, axis=0)[f : len(X) - f].mean(axis=0), len(X) - f)


def numpy_centered_clip(X: Array, tau: float, n_iter: int) -> Array:
    v: Array = np.median(X, axis=0)
    for _ in range(n_iter):
        apart = X - v
        factor = np.minimum(1, tau / np.linalg.norm(apart, axis=1)).astype(X.dtype)
        v = v + (factor[:, None] * apart).mean(axis=0)
    return v


def _pair(ours: Rule, theirs: Rule, n: int, d: int) -> tuple[Call, Call]:
    X = normal(n, d)
    return lambda: ours(X), lambda: theirs(X)


def _rows(threads: int, targets: bool) -> list[Row]:
    area = f"choosing, clipping, mixing, float32, {'one thread' if threads == 1 else f'{threads} threads'}"
    t = {"threads": threads}

    def row(
        what: str, against: str, shape: tuple[int, int], ours: Rule, theirs: Rule,
        at_least: float | None = None, at_most: float | None = None,
    ) -> Row:  # fmt: skip
        least, most = (at_least, at_most) if targets else (None, None)
        return Row(area, f"{what} {shape}", against, lambda: _pair(ours, theirs, *shape), least, most)

    wide, many, usual, fifty = (20, 1_000_000), (1000, 10_000), (64, 65_536), (50, 100_000)
    found = []
    if threads == 1:  # the baselines of compare.py have one thread
        found += [
            row("krum", "X @ X.T", many, lambda X: aggregate.krum(X, f=200, **t), lambda X: X @ X.T, None, 1.6),
            row(
                "krum", "our own mean", wide, lambda X: aggregate.krum(X, f=6, **t), lambda X: aggregate.mean(X, **t),
                None, 8,
            ),
            row(
                "krum", "X.sum(axis=0)", wide, lambda X: aggregate.krum(X, f=6, **t), lambda X: X.sum(axis=0),
                None, 3.3,
            ),
            row(
                "geometric_median", "X.sum(axis=0)", wide, lambda X: aggregate.geometric_median(X, **t),
                lambda X: X.sum(axis=0), None, 5,
            ),
            row(
                "bulyan f=11", "our krum + median", fifty, lambda X: aggregate.bulyan(X, f=11, **t),
                lambda X: (aggregate.krum(X, f=11, **t), aggregate.median(X, **t)), None, 2.5,
            ),
        ]  # fmt: skip
    return [
        *found,
        row("krum", "cdist, partition", wide, lambda X: aggregate.krum(X, f=6, **t), lambda X: numpy_krum(X, 6), 15),
        row(
            "nearest_neighbor_mixing", "mean of (n, n-f, d)", usual,
            lambda X: aggregate.nearest_neighbor_mixing(X, f=F, **t), lambda X: numpy_mixing(X, F), 30,
        ),
        row(
            "centered_clip x10", "NumPy", usual, lambda X: aggregate.centered_clip(X, tau=100, n_iter=10, **t),
            lambda X: numpy_centered_clip(X, 100, 10), 10,
        ),
        row("meamed", "NumPy", usual, lambda X: aggregate.meamed(X, f=F, **t), lambda X: numpy_meamed(X, F), 10),
        row("phocas", "NumPy", usual, lambda X: aggregate.phocas(X, f=F, **t), lambda X: numpy_phocas(X, F), 10),
        row(
            "multi_krum", "NumPy", usual, lambda X: aggregate.multi_krum(X, f=F, **t),
            lambda X: numpy_multi_krum(X, F), 10,
        ),
    ]  # fmt: skip


def rows() -> list[Row]:
    """One thread, then two."""
    return _rows(1, targets=True) + _rows(2, targets=True)
