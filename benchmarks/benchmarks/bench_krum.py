"""Krum and its family, rules around a center, clipping and mixing."""

from __future__ import annotations

import numpy as np

from .common import DTYPES, IMPLS, PROFILE, Benchmark, function, normal

ARGUMENTS = {
    "krum": lambda n: {"f": (n - 3) // 2},
    "multi_krum": lambda n: {"f": (n - 3) // 2},
    "medoid": lambda n: {},
    "bulyan": lambda n: {"f": (n - 3) // 4},
    "meamed": lambda n: {"f": 2 * n // 5},
    "phocas": lambda n: {"f": 2 * n // 5},
    "centered_clip": lambda n: {"tau": 10.0, "n_iter": 3},
    "nearest_neighbor_mixing": lambda n: {"f": n // 4},
    "bucketing": lambda n: {"s": 2, "rng": 0},
    "clip": lambda n: {"max_norm": 10.0},
}


class Krum(Benchmark):
    """Each rule on normal rows."""

    param_names = ("impl", "rule", "shape", "dtype")
    params = (IMPLS, list(ARGUMENTS), PROFILE.rules, DTYPES)

    def setup(self, impl: str, rule: str, shape: tuple[int, int], dtype: str) -> None:
        X = normal(*shape, dtype=dtype)
        arguments = ARGUMENTS[rule](shape[0])
        self.call = lambda: function(impl, rule)(X, **arguments)
        self.exact = lambda: function("reference", rule)(X.astype(np.float64), **arguments)
