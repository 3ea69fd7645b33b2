"""Rows of the comparison for filters: what they add to a round of 20 workers with 32 samples each; float32."""

from __future__ import annotations

from typing import Any

import numpy as np
from measure import Call, Row
from numpy.typing import NDArray
from rows_training import M, mnist

from byzadmm import filters, kernels, losses, partition, reference
from byzadmm.training.validation import Validation

__all__ = ["rows"]

Array = NDArray[Any]

HELD = 1000  # rows of the master
D = 7850


def messages() -> Array:
    return np.random.default_rng(0).standard_normal((M, D), np.float32)


def weighing(chosen: filters.Filter, validation: Any = None) -> Call:
    """``weigh`` once, on messages of MNIST's size."""
    X, workers, x0 = messages(), np.arange(M), np.zeros(D, np.float32)
    state = chosen.begin(M, D, X.dtype)
    given: dict[str, Any] = {"workers": workers, "state": state, "validation": validation}
    rng = np.random.default_rng(0)
    return lambda: chosen.weigh(X, x0=x0, k=1, step=1e-4, rng=rng, **given)


def zeno() -> tuple[Call, Call]:
    """21 losses on 32 samples of the master, and two gradients of 20 workers with as many samples."""
    data = mnist()
    parts = [part + HELD for part in partition.iid(data.train_y[HELD:], M, seed=0)]
    validation = Validation(losses.Softmax(data, parts, threads=1), np.arange(HELD), seed=0)
    W = np.zeros((M, 10, 785), np.float32)
    idx, out = np.random.default_rng(1).integers(0, len(data.train_y), (M, 32)), np.empty_like(W)

    def two_gradients() -> None:
        for _ in range(2):
            kernels.softmax_gradient(W, data.train_x, data.train_y, idx, out=out, threads=1)

    return weighing(filters.Zeno(8), validation), two_gradients


def safeguard() -> tuple[Call, Call]:
    """One window against the same sums and distances by the NumPy twin."""
    X, sums = messages(), np.zeros((M, D))
    ours = weighing(filters.Safeguard(50, 1e9))
    return ours, lambda: reference.add_to_sums(X, np.arange(M), 1 / M, sums, 0)


def rows() -> list[Row]:
    area = "filters, one round, 20 workers, d = 7850, float32"
    return [
        Row(area, "Zeno, 32 samples", "two softmax_gradient", zeno, at_most=1),
        Row(area, "Safeguard, one window", "its sums in NumPy", safeguard, at_least=2),
    ]
