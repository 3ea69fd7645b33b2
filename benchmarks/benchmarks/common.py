"""Sizes, dtypes, thread counts and seeded data: one source for all benchmarks.

``BYZADMM_BENCH`` names the profile: ``quick`` (the default), ``regular`` or ``large``.
"""

from __future__ import annotations

import os
from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass
from types import ModuleType
from typing import Any

import numpy as np
from numpy.typing import NDArray

from byzadmm import aggregate, kernels, reference

__all__ = ["DTYPES", "IMPLS", "PROFILE", "Benchmark", "function", "largest_error", "normal"]

Array = NDArray[Any]


@dataclass(frozen=True)
class Profile:
    """Rows and columns for the rules, and the size of the softmax problem."""

    rules: list[tuple[int, int]]
    steps: list[tuple[int, int]]
    workers: int
    batch: int
    features: int
    samples: int
    draws: int


PROFILES = {
    "quick": Profile([(20, 1000), (100, 500)], [(20, 7850)], 20, 32, 784, 2000, 20_000),
    "regular": Profile([(20, 7850), (100, 10_000), (1000, 1000)], [(20, 7850)], 20, 32, 784, 60_000, 157_000),
    "large": Profile(
        [(20, 7850), (20, 1_000_000), (100, 100_000), (1000, 10_000)],
        [(20, 7850), (20, 1_000_000)], 100, 64, 784, 60_000, 20_000_000,
    ),
}  # fmt: skip
PROFILE = PROFILES[os.environ.get("BYZADMM_BENCH", "quick")]
IMPLS = ["native", "reference"]
DTYPES = ["float32", "float64"]


def normal(*shape: int, dtype: str = "float32", seed: int = 0) -> Array:
    """Seeded normal numbers."""
    return np.random.default_rng(seed).standard_normal(shape).astype(dtype)


def function(impl: str, name: str) -> Callable[..., Any]:
    """The function of that name: native (a kernel or a rule) or its NumPy twin."""
    native: ModuleType = kernels if hasattr(kernels, name) else aggregate
    found: Callable[..., Any] = getattr(native if impl == "native" else reference, name)
    return found


def largest_error(result: Any, exact: Any) -> float:
    """Largest difference relative to the largest entry."""
    return float(np.max(np.abs(np.asarray(result, np.float64) - exact)) / np.max(np.abs(exact)))


class Benchmark(ABC):
    """What asv asks of every function; ``setup`` fills ``call`` and ``exact``. asv skips it, for it is abstract."""

    timeout = 120.0
    call: Callable[[], Any]
    exact: Callable[[], Any]

    @abstractmethod
    def setup(self, *parameters: Any) -> None: ...

    def time_call(self, *_: Any) -> None:
        self.call()

    def peakmem_call(self, *_: Any) -> None:
        self.call()

    def track_error(self, *_: Any) -> float:
        return largest_error(self.call(), self.exact())

    track_error.unit = "relative error"  # type: ignore[attr-defined]
