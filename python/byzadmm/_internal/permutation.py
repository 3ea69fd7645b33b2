"""Seeded orders, shared by the data and partition stages."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

__all__ = ["permutation"]


def permutation(n: int, seed: int) -> npt.NDArray[np.int64]:
    """Return a seeded order of ``0..n-1``.

    Sorting raw Philox words rather than calling ``Generator.permutation``: NumPy promises the words of a bit generator
    for good, but not what its Generator methods make of them, and a split must not move with a NumPy release.
    """
    words = np.random.Philox(key=seed).random_raw(n)
    return np.argsort(words, kind="stable").astype(np.int64, copy=False)
