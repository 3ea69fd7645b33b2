"""Lengths of rows as plain numbers."""

from __future__ import annotations

import numpy as np

from byzadmm import _core
from byzadmm._internal.arrays import Array

__all__ = ["lengths"]


def lengths(rows: Array, center: Array | None = None) -> Array:
    """``||x_i - center||`` of every row, or ``||x_i||``; infinity beyond float64 and for rows that are not finite."""
    mantissa, exponent = _core.lengths(rows, center, 1)
    with np.errstate(over="ignore", under="ignore"):
        found: Array = np.ldexp(mantissa, exponent)
    return found
