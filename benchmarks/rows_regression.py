"""Rows of the comparison for logistic and linear regression: gradients of all workers, and one iteration of ADMM."""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np
from measure import Call, Row
from numpy.typing import NDArray
from rows_kernels import BATCH, FEATURES, WORKERS, softmax_problem
from rows_training import TURN, M, Q, admm, covtype, native, numpy_turn

from byzadmm import attacks, datasets, kernels, partition, reference

__all__ = ["rows"]

Array = NDArray[Any]
LOSSES = ("logistic", "least_squares")


def numpy_gradient(loss: str, W: Array, X: Array, y: Array, idx: Array, scale: float) -> Array:
    """Batched NumPy: gather, convert, matmul, residuals, matmul, all in the dtype of W."""
    A = X[idx].astype(W.dtype)
    z = np.matmul(A, W[:, :-1, None])[:, :, 0]
    z *= W.dtype.type(scale)
    z += W[:, -1:]
    if loss == "logistic":
        z = 1 / (1 + np.exp(-z))
    z -= y[idx]
    z /= idx.shape[1]
    g = np.empty_like(W)
    g[:, -1] = z.sum(axis=1)
    z *= W.dtype.type(scale)
    g[:, :-1] = np.matmul(z[:, None], A)[:, 0]
    return g


def _gradient(loss: str, dtype: str, threads: int) -> tuple[Call, Call]:
    W, X, y, idx = softmax_problem(dtype)
    models = np.ascontiguousarray(W[:, 0])
    targets = y % 2 if loss == "logistic" else (y % 2).astype(np.float64)
    theirs, out = targets.astype(dtype), np.empty_like(models)
    ours = getattr(kernels, f"{loss}_gradient")
    return (
        lambda: ours(models, X, targets, idx, scale=1 / 255, out=out, threads=threads),
        lambda: numpy_gradient(loss, models, X, theirs, idx, 1 / 255),
    )


def _training(loss: str) -> tuple[Call, Call]:
    """COVERTYPE's shape with two classes, or with those as targets."""
    data = covtype()
    y, y_test = data.train_y % 2, data.test_y % 2
    if loss == "logistic":
        made = datasets.Dataset("random", data.train_x, y, data.test_x, y_test, 2, 1.0)
    else:
        made = datasets.Dataset("random", data.train_x, y * 1.0, data.test_x, y_test * 1.0, 0, 1.0)
    parts = partition.iid(y, M, seed=0)
    gradients = getattr(reference, f"{loss}_gradients")
    theirs = numpy_turn(parts, partial(gradients, made.train_x, made.train_y, parts), made.n_features + 1)
    return native(made, admm(), attacks.SignFlip(), loss=loss.replace("_", "-"), parts=parts), theirs


def rows() -> list[Row]:
    found = []
    for dtype in ("float32", "float64"):
        area = f"regression, {WORKERS} workers x {BATCH} samples x {FEATURES}, uint8, {dtype}, one thread"
        for loss in LOSSES:
            wanted = 1.5 if dtype == "float32" else None
            found.append(Row(area, f"{loss}_gradient", "batched NumPy", partial(_gradient, loss, dtype, 1), wanted))
    area = f"regression, {TURN} iterations of ADMM, {M} workers x 32 samples x 54, {Q} Byzantine, float32"
    found += [Row(area, loss, "batched NumPy", partial(_training, loss), at_least=5) for loss in LOSSES]
    return found
