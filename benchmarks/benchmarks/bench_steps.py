"""The update equations of ADMM and RSA."""

from __future__ import annotations

from typing import Any

import numpy as np

from .common import DTYPES, IMPLS, PROFILE, Array, Benchmark, function, normal

#: Names of the arrays a step reads (x0 is a vector, the rest have a row per worker), and its numbers.
STEPS: dict[str, tuple[str, dict[str, float]]] = {
    "admm_worker_step": ("x g eta eta_prev", {"alpha": 0.1}),
    "admm_dual_step": ("eta x x0", {"beta": 0.5, "lam": 0.5}),
    "admm_master_step": ("x0 eta eta_prev", {"alpha": 0.1, "rho": 0.1}),
    "rsa_worker_step": ("x g x0", {"alpha": 0.1, "lam": 0.5}),
    "rsa_master_step": ("x0 x", {"alpha": 0.1, "lam": 0.5, "rho": 0.1}),
}


class Steps(Benchmark):
    """Each step; the result is allocated by the call, as a first user would have it."""

    param_names = ("impl", "step", "shape", "dtype")
    params = (IMPLS, list(STEPS), PROFILE.steps, DTYPES)

    def setup(self, impl: str, step: str, shape: tuple[int, int], dtype: str) -> None:
        names, numbers = STEPS[step]
        arrays: list[Array] = [
            normal(*(shape[1:] if name == "x0" else shape), dtype=dtype, seed=seed)
            for seed, name in enumerate(names.split())
        ]
        wide: list[Any] = [array.astype(np.float64) for array in arrays]
        self.call = lambda: function(impl, step)(*arrays, **numbers)
        self.exact = lambda: function("reference", step)(*wide, **numbers)
