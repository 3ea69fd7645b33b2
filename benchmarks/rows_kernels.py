"""Rows of the comparison for ``byzadmm.kernels`` and the first rules of ``byzadmm.aggregate``."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import cache, partial
from typing import Any

import numpy as np
from measure import Call, Row
from numpy.typing import NDArray

from byzadmm import aggregate, kernels

__all__ = ["rows", "weiszfeld"]

Array = NDArray[Any]

WORKERS, CLASSES, FEATURES, BATCH, SAMPLES = 20, 10, 784, 32, 60_000
DIM = CLASSES * (FEATURES + 1)
#: Rule and column sizes; the second is a model that does not fit into a cache.
SIZES = [(20, 7850), (20, 1_000_000), (100, 100_000), (1000, 10_000)]


@cache
def normal(*shape: int, dtype: str = "float32") -> Array:
    """Seeded normal numbers; shared by the rows that use the same ones."""
    return np.random.default_rng(sum(shape)).standard_normal(shape).astype(dtype)


@cache
def attacked(n: int, d: int, dtype: str = "float32") -> Array:
    """Rows around a common point of norm comparable to their spread, two in five of them replaced by its sign flip."""
    center = normal(d)
    X = normal(n, d) + center
    X[n - 2 * n // 5 :] = -3 * X[: 2 * n // 5]
    return X.astype(dtype)


def weiszfeld(X: Array, tol: float, max_iter: int = 1000) -> Array:
    """The textbook iteration for the geometric median, stopped by the residual that ours is stopped by."""
    z: Array = X.mean(axis=0)
    for _ in range(max_iter):
        apart = X - z
        weight = 1 / np.sqrt(np.einsum("ij,ij->i", apart, apart))
        new = weight @ X / weight.sum()
        # The step is the sum of the unit vectors divided by the sum of the weights.
        residual = np.linalg.norm(new - z) * weight.sum() / len(X)
        z = new
        if residual <= tol:
            break
    return z


def numpy_softmax_gradient(W: Array, X: Array, y: Array, idx: Array, scale: float) -> Array:
    """Batched NumPy: gather, convert, matmul, softmax, matmul, all in the dtype of W."""
    A = X[idx].astype(W.dtype)
    P = A @ W[:, :, :-1].transpose(0, 2, 1)
    P *= W.dtype.type(scale)
    P += W[:, None, :, -1]
    P -= P.max(axis=2, keepdims=True)
    np.exp(P, out=P)
    P /= P.sum(axis=2, keepdims=True)
    P[np.arange(len(W))[:, None], np.arange(idx.shape[1]), y[idx]] -= 1
    P /= idx.shape[1]
    g = np.empty_like(W)
    g[:, :, -1] = P.sum(axis=1)
    P *= W.dtype.type(scale)
    np.matmul(P.transpose(0, 2, 1), A, out=g[:, :, :-1])
    return g


@cache
def softmax_problem(dtype: str) -> tuple[Array, Array, Array, Array]:
    """Models, samples, labels and the batches of all workers."""
    rng = np.random.default_rng(7)
    W = (0.01 * rng.standard_normal((WORKERS, CLASSES, FEATURES + 1))).astype(dtype)
    X = rng.integers(0, 256, (SAMPLES, FEATURES), dtype=np.uint8)
    return W, X, rng.integers(0, CLASSES, SAMPLES), rng.integers(0, SAMPLES, (WORKERS, BATCH))


def _against_copy(ours: Call, count: int, dtype: str) -> tuple[Call, Call]:
    """Ours and an ``np.copyto`` that moves ``count`` numbers, half of them read and half written."""
    source = normal(count // 2, dtype=dtype)
    target = np.empty_like(source)
    return ours, lambda: np.copyto(target, source)


# --- the rules --------------------------------------------------------------------------------------------------------


def _median(n: int, d: int, dtype: str, threads: int) -> tuple[Call, Call]:
    X = normal(n, d, dtype=dtype)
    return lambda: aggregate.median(X, threads=threads), lambda: np.median(X, axis=0)


def _median_and_mean(n: int, d: int, dtype: str) -> tuple[Call, Call]:
    X = normal(n, d, dtype=dtype)
    out = np.empty(d, dtype)
    return lambda: aggregate.median(X, out=out, threads=1), lambda: aggregate.mean(X, out=out, threads=1)


def _trimmed_mean(n: int, d: int, f: int, dtype: str, threads: int) -> tuple[Call, Call]:
    X = normal(n, d, dtype=dtype)
    return lambda: aggregate.trimmed_mean(X, f=f, threads=threads), lambda: np.sort(X, axis=0)[f : n - f].mean(axis=0)


def _geometric_median(n: int, d: int, dtype: str, threads: int) -> tuple[Call, Call]:
    X = attacked(n, d, dtype)
    return lambda: aggregate.geometric_median(X, tol=1e-6, threads=threads), lambda: weiszfeld(X, 1e-6)


def _mean(n: int, d: int, dtype: str, threads: int) -> tuple[Call, Call]:
    X = normal(n, d, dtype=dtype)
    return lambda: aggregate.mean(X, threads=threads), lambda: X.mean(axis=0)


def _rule_rows(dtype: str, threads: int, targets: bool) -> list[Row]:
    area = _area("rules", dtype, threads)
    at_least = {"median": [35, 35, 12, 12], "trimmed_mean": [12], "geometric_median": [7]}

    def row(rule: str, i: int, build: Callable[[], tuple[Call, Call]], against: str, detail: str = "") -> Row:
        wanted = at_least.get(rule, [])
        n, d = SIZES[i]
        return Row(
            area, f"{rule} ({n}, {d}){detail}", against, build, wanted[i] if targets and i < len(wanted) else None
        )

    found = [row("median", i, partial(_median, n, d, dtype, threads), "numpy.median") for i, (n, d) in enumerate(SIZES)]
    if threads == 1:
        n, d = SIZES[1]
        found.append(
            Row(area, f"median ({n}, {d})", "our own mean", partial(_median_and_mean, n, d, dtype), at_most=2.5)
        )
    for i, (n, d) in enumerate(SIZES):
        f = 2 * n // 5
        found.append(
            row("trimmed_mean", i, partial(_trimmed_mean, n, d, f, dtype, threads), "sort, slice, mean", f" f={f}")
        )
    for i, (n, d) in enumerate(SIZES[:2]):
        found.append(
            row("geometric_median", i, partial(_geometric_median, n, d, dtype, threads), "NumPy Weiszfeld, 1e-6")
        )
    for i, (n, d) in enumerate(SIZES[:2]):
        found.append(row("mean", i, partial(_mean, n, d, dtype, threads), "numpy.mean"))
    return found


# --- softmax regression -----------------------------------------------------------------------------------------------


def _softmax_gradient(dtype: str, threads: int) -> tuple[Call, Call]:
    W, X, y, idx = softmax_problem(dtype)
    out = np.empty_like(W)
    return (
        lambda: kernels.softmax_gradient(W, X, y, idx, scale=1 / 255, out=out, threads=threads),
        lambda: numpy_softmax_gradient(W, X, y, idx, 1 / 255),
    )


def _softmax_and_matmul(dtype: str) -> tuple[Call, Call]:
    ours, _ = _softmax_gradient(dtype, 1)
    A, B = normal(1024, 1024, dtype=dtype), normal(1024, 1024, dtype=dtype)
    C = np.empty_like(A)
    return ours, lambda: np.matmul(A, B, out=C)


def _softmax_predict(dtype: str, threads: int) -> tuple[Call, Call]:
    W, X, _, _ = softmax_problem(dtype)
    w, rows = W[0], np.ascontiguousarray(X[:10_000]).astype(dtype)
    return (
        lambda: kernels.softmax_predict(w, rows, threads=threads),
        lambda: (rows @ w[:, :-1].T + w[:, -1]).argmax(axis=1),
    )


def _evaluation(dtype: str, threads: int) -> tuple[Call, Call]:
    """Classes of 10,000 rows, and the loss on 5000; three in five runs of eight pixels are zero, as in MNIST."""
    W, X, y, _ = softmax_problem(dtype)
    kept = np.repeat(np.random.default_rng(8).random((10_000, FEATURES // 8)) < 0.4, 8, axis=1)
    w, rows, spread = W[0], X[:10_000] * kept, np.arange(0, 10_000, 2)

    def ours() -> object:
        options = {"scale": 1 / 255, "threads": threads}
        return kernels.softmax_predict(w, rows, **options), kernels.softmax_loss(w, rows, y[:10_000], spread, **options)

    def logits(of: Array) -> Array:
        z: Array = of.astype(dtype) @ w[:, :-1].T
        z *= w.dtype.type(1 / 255)
        z += w[:, -1]
        return z

    def numpy() -> object:
        z = logits(rows[spread])
        z -= z.max(axis=1, keepdims=True)
        own = z[np.arange(len(z)), y[spread]]
        return logits(rows).argmax(axis=1), (np.log(np.exp(z).sum(axis=1)) - own).mean()

    return ours, numpy


def _softmax_rows(dtype: str, threads: int, targets: bool) -> list[Row]:
    area = _area("softmax, 20 workers x 32 samples x 784 x 10, uint8", dtype, threads)
    wanted = (1.7 if threads == 1 else 3.0) if targets else None
    found = [Row(area, "softmax_gradient", "batched NumPy", partial(_softmax_gradient, dtype, threads), wanted)]
    if threads == 1:
        # Logits and gradient: two multiply-adds for every worker, sample, class and feature.
        work = 2 * WORKERS * BATCH * CLASSES * FEATURES / 1024**3
        flops = Row(
            area, "softmax_gradient, FLOP rate", "matmul 1024 x 1024", partial(_softmax_and_matmul, dtype),
            0.4 if targets else None, work=work,
        )  # fmt: skip
        found.append(flops)
    found.append(
        Row(area, f"softmax_predict, 10000 {dtype}", "matmul, argmax", partial(_softmax_predict, dtype, threads))
    )
    found.append(Row(area, "evaluation, sparse pixels", "the same in NumPy", partial(_evaluation, dtype, threads)))
    return found


# --- steps: time against the traffic of a copy ------------------------------------------------------------------------


def _step_calls(dtype: str, threads: int) -> list[tuple[str, Call, int, int]]:
    """Name, call, and how many (m, d) arrays and (d,) vectors it reads and writes."""
    x, g, eta, eta_prev = (normal(WORKERS, DIM, dtype=dtype).copy() for _ in range(4))
    x0, out, master = normal(DIM, dtype=dtype), np.empty((WORKERS, DIM), dtype), np.empty(DIM, dtype)
    go = {"threads": threads}
    return [
        ("admm_worker_step", lambda: kernels.admm_worker_step(x, g, eta, eta_prev, alpha=0.1, out=out, **go), 5, 0),
        ("admm_dual_step", lambda: kernels.admm_dual_step(eta, x, x0, beta=0.5, lam=0.5, out=out, **go), 3, 1),
        ("admm_master_step", lambda: kernels.admm_master_step(x0, eta, g, alpha=0.1, rho=0.1, out=master, **go), 2, 2),
        ("rsa_worker_step", lambda: kernels.rsa_worker_step(x, g, x0, alpha=0.1, lam=0.5, out=out, **go), 3, 1),
        (
            "rsa_master_step",
            lambda: kernels.rsa_master_step(x0, x, alpha=0.1, lam=0.5, rho=0.1, out=master, **go),
            1,
            2,
        ),
    ]


def _step_rows(dtype: str, threads: int) -> list[Row]:
    area = _area(f"steps ({WORKERS}, {DIM})", dtype, threads)
    found = []
    for name, ours, arrays, vectors in _step_calls(dtype, threads):
        build = partial(_against_copy, ours, arrays * WORKERS * DIM + vectors * DIM, dtype)
        found.append(Row(area, name, "copyto, same bytes", build, at_most=1.5))
    return found


# --- random numbers ---------------------------------------------------------------------------------------------------


def _philox_normal(dtype: str) -> tuple[Call, Call]:
    out = np.empty((WORKERS, DIM), dtype)
    rng = np.random.Generator(np.random.Philox(1))
    kind = np.dtype(dtype).type
    return (
        lambda: kernels.philox_normal(out.shape, seed=1, dtype=dtype, out=out),
        lambda: rng.standard_normal(out=out, dtype=kind),
    )


def _philox_integers() -> tuple[Call, Call]:
    shape = (1000, WORKERS * BATCH)
    rng = np.random.Generator(np.random.Philox(1))
    return lambda: kernels.philox_integers(shape, high=SAMPLES, seed=1), lambda: rng.integers(0, SAMPLES, shape)


def _philox_rows() -> list[Row]:
    shape = f"({WORKERS}, {DIM})"
    found = [
        Row(
            "random numbers, one thread",
            f"philox_normal {shape} {dtype}",
            "Philox Generator",
            partial(_philox_normal, dtype),
        )
        for dtype in ("float32", "float64")
    ]
    found.append(
        Row(
            "random numbers, one thread",
            f"philox_integers (1000, {WORKERS * BATCH})",
            "Philox Generator",
            _philox_integers,
        )
    )
    return found


def _small_rows() -> list[Row]:
    """Where the cost of a call is all there is."""
    X, x0 = normal(3, 8), normal(8)
    area = "tiny inputs (3, 8), float32: the cost of a call"
    return [
        Row(
            area, "rsa_worker_step", "the same in NumPy",
            lambda: (
                lambda: kernels.rsa_worker_step(X, X, x0, alpha=0.1, lam=0.5),
                lambda: X - 0.1 * (X + 0.5 * np.sign(X - x0)),
            ),
        ),
    ]  # fmt: skip


def _area(what: str, dtype: str, threads: int) -> str:
    return f"{what}, {dtype}, {'one thread' if threads == 1 else f'{threads} threads'}"


def rows() -> list[Row]:
    """All rows: float32 on one thread (with the targets), then two threads, float64, and what is left."""
    found: list[Row] = []
    for dtype, threads in [("float32", 1), ("float32", 2), ("float64", 1)]:
        single = (dtype, threads) == ("float32", 1)
        group = _rule_rows(dtype, threads, targets=single) + _softmax_rows(dtype, threads, targets=dtype == "float32")
        if threads == 1:  # the steps are too little work to share
            group += _step_rows(dtype, threads)
        found += [replace(row, threads=threads) for row in group]
    return found + _philox_rows() + _small_rows()
