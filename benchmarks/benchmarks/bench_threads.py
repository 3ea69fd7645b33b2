"""Rules and gradients with one thread and two, and on every instruction set that is built and runs here."""

from __future__ import annotations

import importlib
from typing import Any

import numpy as np

from byzadmm import _core, _isa, aggregate, kernels

from .bench_rules import arguments
from .common import PROFILE, normal

RULES = ["mean", "median", "trimmed_mean", "geometric_median", "krum", "nearest_neighbor_mixing", "centered_clip"]
CALLS = [*RULES, "softmax_gradient"]


class _Calls:
    def prepare(self, name: str) -> None:
        if name in RULES:
            n, d = PROFILE.rules[-1]
            X, settings = normal(n, d), arguments(name, n)
            self.call: Any = lambda threads: getattr(aggregate, name)(X, threads=threads, **settings)
            return
        p, rng = PROFILE, np.random.default_rng(1)
        W, X = 0.01 * normal(p.workers, 10, p.features + 1), rng.integers(0, 256, (p.samples, p.features), np.uint8)
        y, idx = rng.integers(0, 10, p.samples), rng.integers(0, p.samples, (p.workers, p.batch))
        self.call = lambda threads: kernels.softmax_gradient(W, X, y, idx, scale=1 / 255, threads=threads)


class Threads(_Calls):
    """float32."""

    param_names = ("kernel", "threads")
    params = (CALLS, [1, 2])

    def setup(self, kernel: str, threads: int) -> None:
        self.prepare(kernel)

    def time_call(self, kernel: str, threads: int) -> None:
        self.call(threads)


class Sets(_Calls):
    """float32, one thread."""

    param_names = ("kernel", "isa")
    params = (CALLS, [isa for isa in _isa.built() if _isa.supports(isa)])

    def setup(self, kernel: str, isa: str) -> None:
        self.prepare(kernel)
        _core.use(importlib.import_module(f"byzadmm._kernels_{isa}").table)

    def teardown(self, kernel: str, isa: str) -> None:
        _core.use(_isa.chosen.table)

    def time_call(self, kernel: str, isa: str) -> None:
        self.call(1)
