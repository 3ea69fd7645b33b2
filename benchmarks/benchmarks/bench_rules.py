"""The robust rules."""

from __future__ import annotations

import numpy as np

from .common import DTYPES, IMPLS, PROFILE, Benchmark, function, normal

ARGUMENTS = {
    "mean": lambda n: {},
    "median": lambda n: {},
    "trimmed_mean": lambda n: {"f": 2 * n // 5},
    "geometric_median": lambda n: {"tol": 1e-6},
}


class Rules(Benchmark):
    """Each rule on normal rows."""

    param_names = ("impl", "rule", "shape", "dtype")
    params = (IMPLS, list(ARGUMENTS), PROFILE.rules, DTYPES)

    def setup(self, impl: str, rule: str, shape: tuple[int, int], dtype: str) -> None:
        X = normal(*shape, dtype=dtype)
        arguments = ARGUMENTS[rule](shape[0])
        self.call = lambda: function(impl, rule)(X, **arguments)
        self.exact = lambda: function("reference", rule)(X.astype(np.float64), **arguments)
