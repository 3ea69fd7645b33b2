"""Softmax regression: gradients and Hessians of all workers, loss and accuracy."""

from __future__ import annotations

import numpy as np

from .common import DTYPES, IMPLS, PROFILE, Benchmark, function, normal

CLASSES, SCALE = 10, 1 / 255


class Softmax(Benchmark):
    """uint8 samples, as images come."""

    param_names = ("impl", "kernel", "dtype")
    params = (
        IMPLS,
        ["softmax_gradient", "softmax_loss", "softmax_hessian_product", "softmax_predict", "softmax_accuracy"],
        DTYPES,
    )

    def setup(self, impl: str, kernel: str, dtype: str) -> None:
        p = PROFILE
        rng = np.random.default_rng(1)
        W = 0.01 * normal(p.workers, CLASSES, p.features + 1, dtype=dtype)
        X = rng.integers(0, 256, (p.samples, p.features), dtype=np.uint8)
        y = rng.integers(0, CLASSES, p.samples)
        idx = rng.integers(0, p.samples, (p.workers, p.batch))
        wide = W.astype(np.float64)
        arguments = {
            "softmax_gradient": lambda w: (w, X, y, idx),
            "softmax_loss": lambda w: (w, X, y, idx),
            "softmax_hessian_product": lambda w: (w, w[::-1], X, idx),
            "softmax_predict": lambda w: (w[0], X),
            "softmax_accuracy": lambda w: (w[0], X, y),
        }[kernel]
        self.call = lambda: function(impl, kernel)(*arguments(W), scale=SCALE)
        self.exact = lambda: function("reference", kernel)(*arguments(wide), scale=SCALE)
