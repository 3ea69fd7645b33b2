"""The record that the data stage hands on."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from byzadmm._internal.permutation import permutation
from byzadmm._internal.validation import check_int, check_real

from ._scaling import Scale, scaled

__all__ = ["Dataset", "check_split", "make_dataset", "split"]

Array = npt.NDArray[Any]

_MAX_SEED = 2**64 - 1


@dataclass(frozen=True, eq=False, repr=False)
class Dataset:
    """A training and a test set, features in the type they came in.

    The value a learner sees is ``scale * train_x``; the bias column is implicit.

    Parameters
    ----------
    name : str
        Where it came from.
    train_x, test_x : (N, D) and (M, D) uint8, float32 or float64
        Features, one row per sample.
    train_y, test_y : (N,) and (M,) int64, or float64 for regression
        Labels ``0..n_classes-1``, or real targets.
    n_classes : int
        Number of classes; 0 for regression.
    scale : float
        Number that multiplies every feature.
    classes : tuple of str, optional
        What the labels stand for, where they came by name.

    Examples
    --------
    >>> from byzadmm import datasets
    >>> datasets.load("digits")
    Dataset('digits', train=1437, test=360, n_features=64, n_classes=10, dtype=uint8, scale=0.0625)
    >>> datasets.from_arrays([[0.0], [1.0]], [0.5, 1.5], [[0.5]], [1.0])
    Dataset('custom', train=2, test=1, n_features=1, targets=real, dtype=float64, scale=1)
    """

    name: str
    train_x: Array
    train_y: npt.NDArray[np.int64] | npt.NDArray[np.float64]
    test_x: Array
    test_y: npt.NDArray[np.int64] | npt.NDArray[np.float64]
    n_classes: int
    scale: float
    classes: tuple[str, ...] | None = None

    @property
    def n_features(self) -> int:
        """Number of columns, the implicit bias not counted."""
        return int(self.train_x.shape[1])

    @property
    def task(self) -> str:
        """ "classification", or "regression" if the targets are real numbers."""
        return "classification" if self.n_classes else "regression"

    def __repr__(self) -> str:
        targets = f"n_classes={self.n_classes}" if self.n_classes else "targets=real"
        return (
            f"Dataset({self.name!r}, train={len(self.train_x)}, test={len(self.test_x)}, "
            f"n_features={self.n_features}, {targets}, dtype={self.train_x.dtype}, scale={self.scale:.6g})"
        )


def make_dataset(
    name: str,
    train_x: Array,
    train_y: Array,
    test_x: Array,
    test_y: Array,
    n_classes: int,
    scale: Scale,
    classes: tuple[str, ...] | None = None,
) -> Dataset:
    """Apply a checked ``scale`` to checked arrays."""
    train_x, test_x, factor = scaled(train_x, test_x, scale)
    return Dataset(name, train_x, train_y, test_x, test_y, n_classes, factor, classes)


def check_split(test_fraction: Any, seed: Any) -> tuple[float, int]:
    """Return the share of rows for the test set and the seed of a split, checked."""
    fraction = check_real(test_fraction, "test_fraction", low=0.0, high=1.0, strict=True)
    return fraction, check_int(seed, "seed", low=0, high=_MAX_SEED)


def split(n: int, n_test: int | float, seed: int) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.int64]]:
    """Return the rows of the training and of the test set, a number or a share of ``n``, in seeded order."""
    n_train = n - (n_test if isinstance(n_test, int) else round(n_test * n))
    if not 0 < n_train < n:
        raise ValueError(f"test_fraction: expected at least one training and one test row out of {n}, got {n_test}")
    order = permutation(n, seed)
    return order[:n_train], order[n_train:]
