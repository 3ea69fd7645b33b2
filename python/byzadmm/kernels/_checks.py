"""Checks and results that the kernels share."""

from __future__ import annotations

from typing import Any

from byzadmm._internal.arrays import Array, wrapper_of
from byzadmm._internal.validation import check_real


def returned(array: Array, out: Any, like: Any, *others: Any) -> Any:
    """What a kernel returns: the caller's ``out``, or ``array`` as the kind of array that came in."""
    return out if out is not None else wrapper_of(like, *others)(array)


def require_shape(array: Array, name: str, shape: tuple[int, ...]) -> None:
    if array.shape != shape:
        raise ValueError(f"{name}: expected shape {shape}, got {array.shape}")


def require_workers(array: Array, name: str) -> tuple[int, int]:
    if array.ndim != 2:
        raise ValueError(f"{name}: expected shape (m, d), one row per worker, got {array.shape}")
    if array.size == 0:
        raise ValueError(f"{name}: expected at least one row and one column, got shape {array.shape}")
    return array.shape


def positive(value: Any, name: str, like: Array) -> float:
    return check_real(value, name, low=0.0, strict=True, dtype=like.dtype)


def not_negative(value: Any, name: str, like: Array) -> float:
    return check_real(value, name, low=0.0, dtype=like.dtype)
