"""The main kernels under the roof of this machine: operations per second against operations per byte, float32.

A kernel has two limits: what memory can bring, and what one core can compute. The first is measured by NumPy's sum of
rows that are too large for the caches, the second by a matrix product; both on one thread, as the kernels.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from measure import best_of
from numpy.typing import NDArray
from rows_kernels import normal

from byzadmm import aggregate, kernels

__all__ = ["Point", "Roof", "measure_points", "measure_roof"]

Array = NDArray[Any]
WIDE, USUAL, MANY = (20, 1_000_000), (20, 7850), (100, 100_000)


@dataclass(frozen=True)
class Roof:
    """Bytes and operations per second that one core reaches."""

    bytes: float
    flops: float


@dataclass(frozen=True)
class Point:
    """A kernel: least operations, and bytes that it has to read and write at least once, for one call."""

    name: str
    flops: float
    bytes: float
    call: Callable[[], object]


def points() -> Iterator[Point]:
    """Kernels with the operations of their definition: a comparison, a sum, a product are one each."""
    for shape in (WIDE, USUAL):
        n, d = shape
        X = normal(n, d)
        size = 4.0 * n * d
        yield Point(f"mean {shape}", n * d, size + 4 * d, lambda X=X: aggregate.mean(X, threads=1))
        # A network that sorts n numbers has some n log2(n)^2 / 4 exchanges of two operations each.
        exchanges = n * np.log2(n) ** 2 / 4
        yield Point(f"median {shape}", 2 * exchanges * d, size, lambda X=X: aggregate.median(X, threads=1))
        yield Point(
            f"trimmed_mean {shape}", (2 * exchanges + n / 2) * d, size,
            lambda X=X: aggregate.trimmed_mean(X, f=6, threads=1),
        )  # fmt: skip
        gram = n * (n + 1) * d
        yield Point(f"krum {shape}", gram, size, lambda X=X: aggregate.krum(X, f=6, threads=1))
        yield Point(
            f"geometric_median {shape}",
            gram + 2 * n * d,
            2 * size,
            lambda X=X: aggregate.geometric_median(X, threads=1),
        )
    n, d = 64, 65_536
    X = normal(n, d)
    yield Point(
        f"nnm {n, d}", n * (n + 1) * d + 2 * n * (n - 16) * d, 12.0 * n * d,
        lambda: aggregate.nearest_neighbor_mixing(X, f=16, threads=1),
    )  # fmt: skip
    rng = np.random.default_rng(0)
    m, batch, features, classes = 20, 32, 784, 10
    models = np.zeros((m, classes, features + 1), np.float32)
    images = rng.integers(0, 256, (60_000, features), np.uint8)
    labels = rng.integers(0, classes, 60_000)
    rows = rng.integers(0, 60_000, (m, batch))
    yield Point(
        "softmax_gradient", 4.0 * m * batch * features * classes, m * (batch * features + 8.0 * classes * features),
        lambda: kernels.softmax_gradient(models, images, labels, rows, scale=1 / 255, threads=1),
    )  # fmt: skip


def measure_roof(seconds: float) -> Roof:
    """What this machine can do."""
    large, square = normal(*WIDE), normal(1024, 1024)
    out = np.empty(WIDE[1], np.float32)
    read = best_of(lambda: large.sum(axis=0, out=out), seconds, time.perf_counter)
    product = best_of(lambda: square @ square, seconds, time.perf_counter)
    return Roof(4.0 * (large.size + out.size) / read, 2.0 * 1024**3 / product)


def measure_points(seconds: float) -> list[tuple[Point, float]]:
    """Every kernel with its seconds per call."""
    return [(point, best_of(point.call, seconds, time.perf_counter)) for point in points()]
