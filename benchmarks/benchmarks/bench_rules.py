"""The robust rules, every one that is registered."""

from __future__ import annotations

from dataclasses import MISSING, fields
from math import comb
from typing import Any

import numpy as np

from byzadmm import aggregate
from byzadmm.aggregators import PRE_AGGREGATORS, RULES

from .common import DTYPES, IMPLS, PROFILE, Benchmark, function, normal

CLASSES = RULES | PRE_AGGREGATORS
#: Settings other than ``f`` that have no default, or whose default tells little.
#: Rules whose twins go through all sets of n-f rows.
ENUMERATED = ("mda", "smea")
VALUES = {"tau": 10.0, "n_iter": 3, "s": 2, "rng": 0, "max_norm": 10.0}


def arguments(rule: str, n: int) -> dict[str, Any]:
    """Settings for n rows, ``f`` four fifths of the largest legal one, less where the twin enumerates sets."""
    found: dict[str, Any] = {}
    for item in fields(CLASSES[rule]):
        if item.name == "f":
            found["f"] = 4 * aggregate.max_f(rule, n) // 5
            while rule in ENUMERATED and found["f"] > 0 and comb(n, found["f"]) * (n - found["f"]) ** 3 > 6e6:
                found["f"] -= 1
        elif item.name in VALUES or item.default is MISSING:
            found[item.name] = VALUES[item.name]
    return found


class Rules(Benchmark):
    """Each rule on normal rows."""

    param_names = ("impl", "rule", "shape", "dtype")
    params = (IMPLS, list(CLASSES), PROFILE.rules, DTYPES)

    def setup(self, impl: str, rule: str, shape: tuple[int, int], dtype: str) -> None:
        X = normal(*shape, dtype=dtype)
        settings = arguments(rule, shape[0])
        self.call = lambda: function(impl, rule)(X, **settings)
        self.exact = lambda: function("reference", rule)(X.astype(np.float64), **settings)


class TinyRules(Rules):
    """Where the cost of a call is all there is."""

    params = (IMPLS, list(CLASSES), [(7, 8)], ["float32"])


class NearTheLimit:
    """Rules by distances, float32, one thread, beside a sum of the same rows, which memory limits."""

    timeout = 120.0
    param_names = ("rule", "shape")
    params = (["krum", "geometric_median", "nearest_neighbor_mixing"], [(20, 7850), (20, 1_000_000), (64, 65_536)])

    def setup(self, rule: str, shape: tuple[int, int]) -> None:
        self.X = normal(*shape, dtype="float32")
        settings = {} if rule == "geometric_median" else {"f": shape[0] // 4}
        self.call = lambda: getattr(aggregate, rule)(self.X, threads=1, **settings)

    def time_call(self, *_: Any) -> None:
        self.call()

    def time_sum(self, *_: Any) -> None:
        self.X.sum(axis=0)
