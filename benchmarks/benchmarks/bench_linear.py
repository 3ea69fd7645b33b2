"""Logistic and linear regression: gradients, losses and Hessians of all workers, and predictions."""

from __future__ import annotations

import numpy as np

from .common import DTYPES, IMPLS, PROFILE, Benchmark, function, normal

SCALE = 1 / 255
KERNELS = [
    "logistic_gradient",
    "logistic_loss",
    "logistic_hessian_product",
    "least_squares_gradient",
    "least_squares_loss",
    "least_squares_hessian_product",
    "linear_predict",
]


class Linear(Benchmark):
    """uint8 samples, as images come; the label or target is the same 0 or 1."""

    param_names = ("impl", "kernel", "dtype")
    params = (IMPLS, KERNELS, DTYPES)

    def setup(self, impl: str, kernel: str, dtype: str) -> None:
        p = PROFILE
        rng = np.random.default_rng(1)
        W = 0.01 * normal(p.workers, p.features + 1, dtype=dtype)
        X = rng.integers(0, 256, (p.samples, p.features), dtype=np.uint8)
        y = rng.integers(0, 2, p.samples)
        idx = rng.integers(0, p.samples, (p.workers, p.batch))
        wide = W.astype(np.float64)
        given = (lambda w: (w[0], X)) if kernel == "linear_predict" else (lambda w: (w, X, y, idx))
        if kernel.endswith("_hessian_product"):
            given = lambda w: (w, w[::-1], X, idx)  # noqa: E731
        self.call = lambda: function(impl, kernel)(*given(W), scale=SCALE)
        self.exact = lambda: function("reference", kernel)(*given(wide), scale=SCALE)
