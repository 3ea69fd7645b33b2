"""The record that the data stage hands on, and how raw arrays become one."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from byzadmm._internal.validation import check_choice, check_int, check_real

__all__ = ["Dataset", "Scale", "check_scale", "from_arrays", "make_dataset"]

Array = npt.NDArray[Any]
Scale = float | str

_SCALES = ("raw", "unit", "standard")
_KERNEL_TYPES: dict[str, type[np.generic]] = {
    "bool": np.uint8,
    "uint8": np.uint8,
    "float16": np.float32,
    "float32": np.float32,
}  # everything else becomes float64
_BLOCK = 1 << 15  # rows converted at a time: the float64 temporaries stay small beside the data
_USUAL_EXPONENT = 400  # squares of differences between float64 values of such sizes neither overflow nor vanish
_FAR = 1e200  # in units of a column, far enough to be beyond float32 when scaled
_LARGEST = float(np.finfo(np.float32).max)


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
    train_y, test_y : (N,) and (M,) int64
        Labels ``0..n_classes-1``.
    n_classes : int
        Number of classes.
    scale : float
        Number that multiplies every feature.

    Examples
    --------
    >>> from byzadmm import datasets
    >>> datasets.load("digits")
    Dataset('digits', train=1437, test=360, n_features=64, n_classes=10, dtype=uint8, scale=0.0625)
    """

    name: str
    train_x: Array
    train_y: npt.NDArray[np.int64]
    test_x: Array
    test_y: npt.NDArray[np.int64]
    n_classes: int
    scale: float

    @property
    def n_features(self) -> int:
        """Number of columns, the implicit bias not counted."""
        return int(self.train_x.shape[1])

    def __repr__(self) -> str:
        return (
            f"Dataset({self.name!r}, train={len(self.train_x)}, test={len(self.test_x)}, "
            f"n_features={self.n_features}, n_classes={self.n_classes}, dtype={self.train_x.dtype}, "
            f"scale={self.scale:.6g})"
        )


def from_arrays(
    train_x: npt.ArrayLike,
    train_y: npt.ArrayLike,
    test_x: npt.ArrayLike,
    test_y: npt.ArrayLike,
    *,
    n_classes: int | None = None,
    scale: Scale = 1.0,
    name: str = "custom",
) -> Dataset:
    """Make a `Dataset` from arrays in memory.

    The value a learner sees is ``scale * x``, or the columns brought to 0..1 (``"unit"``) or to mean 0 and deviation 1
    (``"standard"``) by training statistics.

    Parameters
    ----------
    train_x, test_x : (N, D) and (M, D) real
        Features; uint8, float32 and float64 are kept as they are, other types are converted.
    train_y, test_y : (N,) and (M,) integers
        Labels ``0..n_classes-1``.
    n_classes : int, optional
        Default: the largest label plus one.
    scale : float or {"raw", "unit", "standard"}
        See above; ``"raw"`` is 1.0.
    name : str
        Shown in results.

    Returns
    -------
    Dataset
        Shares memory with the arguments where nothing had to be converted.

    Examples
    --------
    >>> from byzadmm import datasets
    >>> datasets.from_arrays([[0.0], [1.0]], [0, 1], [[0.5]], [1]).n_classes
    2
    """
    scale = check_scale(scale)
    if not isinstance(name, str):
        raise TypeError(f"name: expected a string, got {type(name).__name__}")
    x, x_test = _features(train_x, "train_x"), _features(test_x, "test_x")
    if x_test.shape[1] != x.shape[1]:
        raise ValueError(f"test_x: expected {x.shape[1]} columns as in train_x, got {x_test.shape[1]}")
    if x.dtype != x_test.dtype:
        x, x_test = x.astype(np.float64), x_test.astype(np.float64)
    if n_classes is not None:
        n_classes = check_int(n_classes, "n_classes", low=1)
    y = _labels(train_y, "train_y", len(x), n_classes)
    y_test = _labels(test_y, "test_y", len(x_test), n_classes)
    if n_classes is None:
        n_classes = int(max(y.max(), y_test.max())) + 1
    return make_dataset(name, x, y, x_test, y_test, n_classes, scale)


def check_scale(scale: Any) -> Scale:
    """Return ``scale`` if it is a positive number or one of the three words."""
    if isinstance(scale, str):
        return check_choice(scale, "scale", _SCALES)
    return check_real(scale, "scale", low=0.0, strict=True)


def make_dataset(
    name: str, train_x: Array, train_y: Array, test_x: Array, test_y: Array, n_classes: int, scale: Scale
) -> Dataset:
    """Apply a checked ``scale`` to checked arrays."""
    factor = scale if isinstance(scale, float) else 1.0
    if scale in ("unit", "standard"):
        columns = _Columns(train_x)
        center, spread = columns.moments(train_x) if scale == "standard" else (0.0, columns.spread)
        bounds = (0.0, 1.0) if scale == "unit" else (-_LARGEST, _LARGEST)
        train_x, test_x = (columns.scaled(x, center, spread, bounds) for x in (train_x, test_x))
    return Dataset(name, train_x, train_y, test_x, test_y, n_classes, factor)


class _Columns:
    """Offsets from the least training value of each column, in units of ``2**exponent``.

    The exponent, 0 unless a column has extreme values, keeps differences and their squares within float64; offsets of
    values that are close to each other are exact.
    """

    def __init__(self, train_x: Array) -> None:
        low, high = train_x.min(axis=0).astype(np.float64), train_x.max(axis=0).astype(np.float64)
        exponent = np.frexp(np.maximum(np.abs(low), np.abs(high)))[1]
        self.exponent = np.where(np.abs(exponent) > _USUAL_EXPONENT, exponent, 0)
        self.low = np.ldexp(low, -self.exponent)
        self.spread = np.ldexp(high, -self.exponent) - self.low

    def offsets(self, x: Array) -> Iterator[tuple[slice, Array]]:
        """Yield blocks of rows, and their offsets in float64."""
        for i in range(0, len(x), _BLOCK):
            rows = slice(i, i + _BLOCK)
            block = x[rows]
            if self.exponent.any():
                with np.errstate(over="ignore"):  # a test value far beyond those of training
                    block = np.clip(np.ldexp(block.astype(np.float64), -self.exponent), -_FAR, _FAR)
            yield rows, block - self.low

    def moments(self, x: Array) -> tuple[Array, Array]:
        """Return the means and deviations of the offsets, in two passes."""
        mean = sum(block.sum(axis=0) for _, block in self.offsets(x)) / len(x)
        square = np.zeros_like(mean)
        for _, block in self.offsets(x):
            block -= mean
            square += np.square(block, out=block).sum(axis=0)
        square /= len(x)
        # A column without spread has a deviation of rounding errors only, which must not be blown up to 1.
        return mean, np.where(self.spread > 0, np.sqrt(square), 0.0)

    def scaled(self, x: Array, center: Array | float, spread: Array, bounds: tuple[float, float]) -> Array:
        """Return ``(offset - center) / spread`` within bounds as float32; a constant training column becomes 0."""
        out = np.empty(x.shape, dtype=np.float32)
        inverse = np.divide(1.0, spread, out=np.zeros_like(spread), where=spread > 0)
        for rows, block in self.offsets(x):
            block -= center
            with np.errstate(over="ignore"):
                block *= inverse
            out[rows] = np.clip(block, *bounds, out=block)
        return out


def _features(value: Any, name: str) -> Array:
    x = np.asarray(value)
    if x.ndim != 2 or not x.size:
        raise ValueError(f"{name}: expected a non-empty 2-D array, got shape {x.shape}")
    if x.dtype.kind not in "biuf":
        raise TypeError(f"{name}: expected real numbers, got {x.dtype}")
    native = x.dtype.newbyteorder("=")
    with np.errstate(over="ignore"):  # a long double beyond float64 becomes Inf, and is refused below
        x = x.astype(_KERNEL_TYPES.get(native.name, np.float64), copy=False)
    if x.dtype.kind == "f" and not np.isfinite(x).all():
        row, column = np.argwhere(~np.isfinite(x))[0]
        raise ValueError(f"{name}: expected finite numbers, got {x[row, column]} at row {row}, column {column}")
    return np.ascontiguousarray(x)


def _labels(value: Any, name: str, n_rows: int, n_classes: int | None) -> npt.NDArray[np.int64]:
    y = np.asarray(value)
    if y.shape != (n_rows,):
        raise ValueError(f"{name}: expected shape ({n_rows},), got {y.shape}")
    if y.dtype.kind not in "iub":
        raise TypeError(f"{name}: expected integers, got {y.dtype}")
    high = math.inf if n_classes is None else n_classes - 1
    low_label, high_label = int(y.min()), int(y.max())
    if low_label < 0 or high_label > high:
        expected = ">= 0" if n_classes is None else f"in [0, {n_classes - 1}]"
        raise ValueError(f"{name}: expected labels {expected}, got {low_label if low_label < 0 else high_label}")
    return np.ascontiguousarray(y, dtype=np.int64)
