"""Array types shared by the twins: what comes in, and the dtype that goes out."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

__all__ = ["Array", "as_float", "as_rows", "narrow"]

Array = npt.NDArray[Any]


def as_float(values: npt.ArrayLike) -> Array:
    """Return ``values`` as a native-endian float32 or float64 array; every other real type becomes float64."""
    array = np.asarray(values)
    if array.dtype.kind not in "fiub":
        raise TypeError(f"values: expected real numbers, got {array.dtype}")
    single = array.dtype.kind == "f" and array.dtype.itemsize == 4
    return array.astype(np.float32 if single else np.float64, copy=False)


def as_rows(values: npt.ArrayLike) -> Array:
    """Return ``values`` as an ``(n, d)`` float array with at least one row."""
    rows = as_float(values)
    if rows.ndim != 2 or rows.shape[0] == 0:
        raise ValueError(f"X: expected shape (n, d) with n >= 1, got {rows.shape}")
    return rows


def narrow(result: Array, dtype: np.dtype[Any]) -> Array:
    """Round a float64 result to ``dtype``; too large for float32 is an infinity there, not a warning."""
    with np.errstate(over="ignore"):
        return result.astype(dtype, copy=False)
