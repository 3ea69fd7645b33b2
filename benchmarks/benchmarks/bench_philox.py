"""Random numbers."""

from __future__ import annotations

from .common import IMPLS, PROFILE, Benchmark, function

ARGUMENTS = {
    "philox_normal": {"dtype": "float64"},
    "philox_integers": {"high": 60_000},
}


class Philox(Benchmark):
    """One stream; native and reference draw the same numbers, so the error tracked is 0 or rounding."""

    param_names = ("impl", "kind")
    params = (IMPLS, list(ARGUMENTS))

    def setup(self, impl: str, kind: str) -> None:
        self.call = lambda: function(impl, kind)(PROFILE.draws, seed=1, **ARGUMENTS[kind])
        self.exact = lambda: function("reference", kind)(PROFILE.draws, seed=1, **ARGUMENTS[kind])
