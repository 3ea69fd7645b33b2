"""Features at the scale at which a learner sees them."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import numpy.typing as npt

from byzadmm._internal.validation import check_choice, check_real

__all__ = ["Scale", "check_scale", "scaled"]

Array = npt.NDArray[Any]
Scale = float | str

_SCALES = ("raw", "unit", "standard", "symmetric")
_BLOCK = 1 << 15  # rows converted at a time: the float64 temporaries stay small beside the data
_USUAL_EXPONENT = 400  # squares of differences between float64 values of such sizes neither overflow nor vanish
_FAR = 1e200  # in units of a column, far enough to be beyond float32 when scaled
_LARGEST = float(np.finfo(np.float32).max)


def check_scale(scale: Any) -> Scale:
    """Return ``scale`` if it is a positive number or one of the words."""
    if isinstance(scale, str):
        return check_choice(scale, "scale", _SCALES)
    return check_real(scale, "scale", low=0.0, strict=True)


def scaled(train_x: Array, test_x: Array, scale: Scale) -> tuple[Array, Array, float]:
    """Return both sets at a checked ``scale``, and the factor that is left for the learner."""
    if scale == "raw" or not isinstance(scale, str):
        return train_x, test_x, scale if isinstance(scale, float) else 1.0
    columns = _Columns(train_x.reshape(-1, 1) if scale == "symmetric" else train_x)  # all columns as one
    center: Array | float
    if scale == "standard":
        (center, spread), bounds = columns.moments(train_x), (-_LARGEST, _LARGEST)
    elif scale == "symmetric":
        center, spread, bounds = columns.spread / 2, columns.spread / 2, (-1.0, 1.0)
    else:
        center, spread, bounds = 0.0, columns.spread, (0.0, 1.0)
    return columns.scaled(train_x, center, spread, bounds), columns.scaled(test_x, center, spread, bounds), 1.0


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
