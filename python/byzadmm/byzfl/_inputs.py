"""Rows and random numbers as ByzFL takes them."""

from __future__ import annotations

import sys
from typing import Any

import numpy as np

from byzadmm._internal.arrays import Array, as_rows
from byzadmm._internal.validation import check_int

__all__ = ["check_rng", "legacy", "stacked"]


def stacked(vectors: Any) -> Array:
    """The rows of ``vectors`` as one float array (n, d)."""
    rows = as_rows(vectors)[0]
    return np.stack(rows) if isinstance(rows, list) else rows


def check_rng(rng: Any) -> None:
    """Raise a TypeError or ValueError if ``rng`` is no seed, no generator and not None."""
    if rng is not None and not isinstance(rng, np.random.Generator):
        check_int(rng, "rng", low=0)


def legacy(vectors: Any) -> tuple[Any, bool]:
    """The module whose global random state ByzFL draws from for ``vectors``, and whether it is PyTorch.

    A program that is moved here seeds it already (``numpy.random.seed``, ``torch.manual_seed``).
    """
    first = vectors[0] if isinstance(vectors, (list, tuple)) and vectors else vectors
    if type(first).__module__.partition(".")[0] == "torch":
        return sys.modules["torch"], True
    return np.random, False
