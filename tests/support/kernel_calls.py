"""Calls of the kernels, for tests that run them all under some condition: threads, instruction sets, interrupts."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import numpy.typing as npt

from byzadmm import aggregate, kernels, redundancy

Array = npt.NDArray[Any]


def calls(dtype: str, d: int) -> dict[str, Callable[[int], Any]]:
    """Every kernel on inputs whose lengths no thread count divides, as functions of the thread count."""
    rng = np.random.default_rng(d)
    few, some, many = (rng.standard_normal((n, d)).astype(dtype) for n in (11, 37, 131))
    poisoned = few.copy()
    poisoned[3, d // 2] = np.nan
    x0 = rng.standard_normal(d).astype(dtype)
    X, y = rng.integers(0, 256, (211, 37), dtype=np.uint8), rng.integers(0, 7, 211)
    W, idx = rng.standard_normal((13, 7, 38)).astype(dtype), rng.integers(0, 211, (13, 33))
    rows, pairs = redundancy.Repetition(r=11), redundancy.Cyclic(f=2)
    return {
        "mean": lambda t: aggregate.mean(few, threads=t),
        "weighted mean": lambda t: aggregate.mean(few, weights=np.arange(1.0, 12.0), threads=t),
        "median, few": lambda t: aggregate.median(few, threads=t),
        "median, some": lambda t: aggregate.median(some, threads=t),
        "median, many": lambda t: aggregate.median(many, threads=t),
        "median, NaN": lambda t: aggregate.median(poisoned, threads=t),
        "median, NaN kept": lambda t: aggregate.median(poisoned, nonfinite="propagate", threads=t),
        "trimmed_mean, few": lambda t: aggregate.trimmed_mean(few, f=2, threads=t),
        "trimmed_mean, some": lambda t: aggregate.trimmed_mean(some, f=9, threads=t),
        "trimmed_mean, many": lambda t: aggregate.trimmed_mean(many, f=50, threads=t),
        "geometric_median": lambda t: aggregate.geometric_median(few, threads=t),
        "geometric_median, some": lambda t: aggregate.geometric_median(some, threads=t),
        "geometric_median, NaN": lambda t: aggregate.geometric_median(poisoned, threads=t),
        "softmax_gradient": lambda t: kernels.softmax_gradient(W, X, y, idx, scale=1 / 255, threads=t),
        "softmax_gradient, all": lambda t: kernels.softmax_gradient(W, X, y, scale=1 / 255, threads=t),
        "softmax_loss": lambda t: kernels.softmax_loss(W, X, y, scale=1 / 255, threads=t),
        "softmax_predict": lambda t: kernels.softmax_predict(W[0], X, threads=t),
        "logistic_gradient": lambda t: kernels.logistic_gradient(W[:, 0], X, y % 2, idx, scale=1 / 255, threads=t),
        "logistic_loss": lambda t: kernels.logistic_loss(W[:, 0], X, y % 2, scale=1 / 255, threads=t),
        "least_squares_gradient": lambda t: kernels.least_squares_gradient(W[:, 0], X, y / 3, threads=t),
        "least_squares_loss": lambda t: kernels.least_squares_loss(W[:, 0], X, y / 3, idx, threads=t),
        "softmax_hessian_product": lambda t: kernels.softmax_hessian_product(W, W[::-1], X, idx, threads=t),
        "logistic_hessian_product, parts": lambda t: kernels.logistic_hessian_product(
            W[0, 0], W[1, 0], X, np.arange(1700) % 211, scale=1 / 255, threads=t
        ),
        "least_squares_hessian_product": lambda t: kernels.least_squares_hessian_product(
            W[:, 0], W[:, 1], X, threads=t
        ),
        "linear_predict": lambda t: kernels.linear_predict(W[0, 0], X, threads=t),
        "admm_worker_step": lambda t: kernels.admm_worker_step(few, 2 * few, few - 1, few, alpha=0.1, threads=t),
        "admm_dual_step": lambda t: kernels.admm_dual_step(few, 2 * few, x0, beta=0.3, lam=0.4, threads=t),
        "admm_master_step": lambda t: kernels.admm_master_step(x0, few, 2 * few, alpha=0.1, rho=0.1, threads=t),
        "rsa_worker_step": lambda t: kernels.rsa_worker_step(few, 2 * few, x0, alpha=0.1, lam=0.3, threads=t),
        "rsa_master_step": lambda t: kernels.rsa_master_step(x0, few, alpha=0.1, lam=0.3, rho=0.1, threads=t),
        "encode, cyclic": lambda t: redundancy.encode(few, pairs, threads=t),
        "decode, repetition": lambda t: redundancy.decode(np.repeat(few[:1], 11, axis=0), rows, threads=t),
        "decode, cyclic": lambda t: redundancy.decode(np.zeros((11, 2 * d), dtype) + d, pairs, rng=0, threads=t),
        "philox_normal": lambda t: kernels.philox_normal(d, seed=1, dtype=dtype, threads=t),
    }


NAMES = list(calls("float32", 3))


def step_arrays(m: int, d: int, dtype: str, seed: int = 2) -> dict[str, Array]:
    rng = np.random.default_rng(seed)
    arrays = {name: rng.standard_normal((m, d)).astype(dtype) for name in ("x", "g", "eta", "eta_prev")}
    x0 = rng.standard_normal(d).astype(dtype)
    arrays["x"][0, 0] = x0[0]  # sgn(0)
    return arrays | {"x0": x0, "messages": arrays["x"]}


#: Steps of ADMM and RSA: the arrays that each takes, and its settings.
STEPS: dict[str, tuple[tuple[str, ...], dict[str, float]]] = {
    "admm_worker_step": (("x", "g", "eta", "eta_prev"), {"alpha": 0.3}),
    "admm_dual_step": (("eta", "x", "x0"), {"beta": 0.7, "lam": 0.5}),
    "admm_master_step": (("x0", "eta", "eta_prev"), {"alpha": 0.3, "rho": 0.01}),
    "rsa_worker_step": (("x", "g", "x0"), {"alpha": 0.3, "lam": 0.07}),
    "rsa_master_step": (("x0", "messages"), {"alpha": 0.3, "lam": 0.07, "rho": 0.01}),
}


def call_step(name: str, arrays: dict[str, Any], **options: Any) -> Any:
    names, settings = STEPS[name]
    return getattr(kernels, name)(*(arrays[key] for key in names), **(settings | options))
