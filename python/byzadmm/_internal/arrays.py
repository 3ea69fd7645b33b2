"""Arrays of any kind in, arrays of the same kind out: lists, NumPy, and anything with DLPack or ``__array__``.

What leaves this module for the native side is C-ordered, aligned, of native byte order and of a dtype the kernels have.
Nothing is copied that is so already. float16 and bfloat16 are computed in float32; results come back in the type that
came, rounded to nearest, and as an infinity where that type has no number so large.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

__all__ = [
    "Array",
    "as_float",
    "as_index",
    "as_rows",
    "as_samples",
    "checked_start",
    "checked_vector",
    "common_float",
    "half_of",
    "is_array",
    "prepare_out",
    "to_numpy",
    "widened",
    "wrapper_of",
]

Array = NDArray[Any]
Wrap = Callable[[Array], Any]

_SINGLE, _DOUBLE = np.dtype(np.float32), np.dtype(np.float64)
_HALVES = ("float16", "bfloat16")
_CPU_DEVICE = 1  # kDLCPU of DLPack


def to_numpy(value: Any, name: str) -> Array:
    """``value`` as a NumPy array, sharing memory where its kind allows; a tensor that cannot is a clear error."""
    if isinstance(value, np.ma.MaskedArray):
        raise TypeError(f"{name}: expected an array without a mask, got a masked one; fill it or remove rows")
    if isinstance(value, np.ndarray):
        array = value if type(value) is np.ndarray else np.asarray(value)
        if array.dtype.kind == "V" and array.dtype.name == "bfloat16":  # of the package ml_dtypes
            return array.astype(_SINGLE)
        return array
    if getattr(value, "requires_grad", False):
        raise ValueError(f"{name}: the tensor requires grad; pass {name}.detach()")
    if hasattr(value, "is_neg") and value.is_neg():  # DLPack passes the numbers on, but not this sign
        raise ValueError(f"{name}: the tensor has its negative bit set; pass {name}.resolve_neg()")
    if hasattr(value, "__dlpack_device__"):
        try:
            device = int(value.__dlpack_device__()[0])
        except ValueError as error:  # a tensor without memory
            raise ValueError(f"{name}: expected an array in host memory, got none ({error})") from error
        if device != _CPU_DEVICE:
            raise ValueError(f"{name}: expected an array in host memory, got DLPack device type {device}")
        if half_of(value) == "bfloat16":  # which NumPy does not know
            value = widened(value)
        try:
            return np.from_dlpack(value)
        except (BufferError, RuntimeError, TypeError):  # e.g. a dtype NumPy does not know: try __array__ below
            pass
    try:
        return np.asarray(value)
    except (TypeError, ValueError, RuntimeError) as error:
        raise TypeError(f"{name}: expected an array of real numbers, got {type(value).__name__} ({error})") from error


def half_of(*values: Any) -> str | None:
    """"float16" or "bfloat16" if every one of the arrays, or of the items of a list of them, is of that type."""
    found = None
    for value in values:
        dtype = getattr(value, "dtype", None)
        if dtype is _SINGLE or dtype is _DOUBLE:
            return None
        if isinstance(value, (list, tuple)):
            name = half_of(*value)
        else:
            name = getattr(dtype, "name", None) or str(dtype).rpartition(".")[2]  # torch's have no name
        if name not in _HALVES or found not in (None, name):
            return None
        found = name
    return found


def widened(value: Any) -> Any:
    """An array of a half type, or a list of them, as the same kind in float32."""
    if isinstance(value, (list, tuple)):
        return [widened(item) for item in value]
    return value.float() if hasattr(value, "float") else value.astype(np.float32)


def wrapper_of(value: Any, *others: Any) -> Wrap:
    """Function that turns a NumPy result into the kind of ``value``; a list has the kind of its first item.

    A float32 result becomes float16 or bfloat16 if that is the type of ``value`` and of all ``others``.
    """
    if type(value) is np.ndarray and (value.dtype is _SINGLE or value.dtype is _DOUBLE):
        return _as_it_is
    half = half_of(value, *others)
    if isinstance(value, (list, tuple)) and value:
        value = value[0]
    package = type(value).__module__.partition(".")[0]
    wrap = _as_it_is
    if package == "torch":
        wrap = sys.modules["torch"].from_numpy
    elif package in ("jax", "jaxlib"):
        wrap = sys.modules["jax"].numpy.asarray
    if half is None:
        return wrap

    def narrowed(result: Array) -> Any:
        made = wrap(result)
        if result.dtype != _SINGLE:  # labels
            return made
        if package == "torch":
            return made.to(value.dtype)
        with np.errstate(over="ignore"):
            return made.astype(np.float16 if half == "float16" else value.dtype)

    return narrowed


def _as_it_is(result: Array) -> Any:
    return result


def real_dtype(array: Array, name: str) -> np.dtype[Any]:
    """float32 for float32 and float16, float64 for every other real dtype; anything else is not a number here."""
    if array.dtype is _SINGLE or array.dtype is _DOUBLE:
        return array.dtype
    if array.dtype.kind not in "fiub" or array.dtype.itemsize > 8:
        raise TypeError(f"{name}: expected real numbers (float32 or float64), got dtype {array.dtype}")
    is_single = array.dtype.kind == "f" and array.dtype.itemsize <= 4
    return _SINGLE if is_single else _DOUBLE


def _packed(array: Array, dtype: np.dtype[Any]) -> Array:
    """``array`` itself if it is C-ordered, aligned and of that dtype already: np.require takes longer to see it."""
    if array.dtype == dtype:
        flags = array.flags
        if flags.c_contiguous and flags.aligned:
            return array
    return np.require(array, dtype, ["C", "A"])


def as_float(value: Any, name: str, dtype: np.dtype[Any] | None = None) -> Array:
    """A C-ordered float32 or float64 array; ``dtype`` forces which."""
    array = to_numpy(value, name)
    own = real_dtype(array, name)
    return _packed(array, dtype or own)


def checked_start(value: Any, name: str, shape: tuple[int, ...], dtype: np.dtype[Any]) -> Array:
    """``value`` in the dtype of a run, where it must be finite too."""
    array = as_float(value, name)
    if array.shape != shape:
        raise ValueError(f"{name}: expected shape {shape}, got {array.shape}")
    with np.errstate(over="ignore"):
        start: Array = array.astype(dtype, copy=False)
    if not np.all(np.isfinite(start)):
        raise ValueError(f"{name}: expected finite numbers in {dtype}")
    return start


def checked_vector(value: Any, name: str, d: int, finite: bool = True) -> Array:
    """``value`` as a float array (d,)."""
    array = as_float(value, name)
    if array.shape != (d,):
        raise ValueError(f"{name}: expected shape ({d},), got {array.shape}")
    if finite and not np.all(np.isfinite(array)):
        raise ValueError(f"{name}: expected finite numbers")
    return array


def common_float(**values: Any) -> list[Array]:
    """All of them in one dtype: float32 if every one is float32 or float16, else float64."""
    arrays = [to_numpy(value, name) for name, value in values.items()]
    dtypes = [real_dtype(array, name) for array, name in zip(arrays, values, strict=True)]
    dtype = _SINGLE if all(own is _SINGLE for own in dtypes) else _DOUBLE
    return [_packed(array, dtype) for array in arrays]


def as_rows(X: Any) -> tuple[Array | list[Array], int, int, np.dtype[Any]]:
    """Workers' vectors as an (n, d) array, or as a list of n arrays (d,) without stacking them: rows, n, d, dtype."""
    if type(X) is np.ndarray and X.ndim == 2 and X.size and (X.dtype is _SINGLE or X.dtype is _DOUBLE):
        packed = _packed(X, X.dtype)  # nothing else is to be found out about most of what comes
        return packed, *packed.shape, X.dtype
    if isinstance(X, (list, tuple)) and X and all(map(is_array, X)):
        rows = [to_numpy(row, f"X[{i}]") for i, row in enumerate(X)]
        for i, row in enumerate(rows):
            if row.ndim != 1 or row.shape != rows[0].shape:
                expected = rows[0].shape if rows[0].ndim == 1 else "(d,)"
                raise ValueError(f"X[{i}]: expected shape {expected}, got {row.shape}")
        dtype = np.result_type(*(real_dtype(row, "X") for row in rows))
        if rows[0].size == 0:
            raise ValueError(f"X: expected at least one row and one column, got shape {(len(rows), 0)}")
        return [_packed(row, dtype) for row in rows], len(rows), rows[0].size, dtype
    array = as_float(X, "X")
    if array.ndim != 2:
        raise ValueError(f"X: expected shape (n, d), one row per worker, got {array.shape}")
    if array.size == 0:
        raise ValueError(f"X: expected at least one row and one column, got shape {array.shape}")
    return array, array.shape[0], array.shape[1], array.dtype


def as_samples(X: Any) -> Array:
    """Features: uint8, float32 and float64 are kept, float16 becomes float32, other real dtypes float64."""
    array = to_numpy(X, "X")
    dtype = array.dtype if array.dtype == np.uint8 else real_dtype(array, "X")
    return _packed(array, dtype)


def as_index(value: Any, name: str) -> Array:
    """int64 labels or indices; floats are refused, not rounded."""
    array = to_numpy(value, name)
    if array.dtype.kind not in "iu":
        raise TypeError(f"{name}: expected integers, got dtype {array.dtype}")
    if array.dtype == np.uint64 and array.size and int(array.max()) > np.iinfo(np.int64).max:
        raise ValueError(f"{name}: expected integers below 2**63")
    return _packed(array, np.dtype(np.int64))


def prepare_out(
    out: Any,
    shape: tuple[int, ...],
    dtype: np.dtype[Any],
    inputs: Sequence[Array],
    sources: Sequence[Any] = (),
    may_be: Sequence[Array] = (),
) -> Array:
    """A fresh array, or the caller's ``out`` checked: it may be one of ``may_be``, but overlap nothing else.

    ``sources`` are the arguments that ``inputs`` were made from: a converted copy no longer shows whose memory it was.
    """
    if out is None:
        return np.empty(shape, dtype)
    if not is_array(out):  # a list would be converted, and the result lost with the copy
        raise TypeError(f"out: expected an array, got {type(out).__name__}")
    array = to_numpy(out, "out")
    if array.dtype != dtype:
        raise TypeError(f"out: expected dtype {dtype}, got {array.dtype}")
    if array.shape != shape:
        raise ValueError(f"out: expected shape {shape}, got {array.shape}")
    if not (array.flags.c_contiguous and array.flags.aligned):
        raise ValueError("out: expected a C-contiguous array")
    if not array.flags.writeable:
        raise ValueError("out: expected a writable array, got a read-only one")
    # Bounds first: they are read a hundred times faster than addresses, and seldom overlap.
    for other in inputs:
        if np.may_share_memory(array, other):
            allowed = any(other is one for one in may_be)
            if not (allowed and _same_memory(array, other)):
                raise ValueError("out: overlaps an input; pass a separate array")
    for source in sources:
        for part in source if isinstance(source, (list, tuple)) else (source,):
            if not is_array(part) or any(part is other for other in inputs):
                continue
            memory = to_numpy(part, "out")
            if (
                np.may_share_memory(array, memory)
                and not any(_same_memory(memory, other) for other in inputs)
                and np.shares_memory(array, memory)
            ):
                raise ValueError("out: overlaps an input; pass a separate array")
    return array


def is_array(value: Any) -> bool:
    """Whether ``value`` offers its numbers as an array."""
    return hasattr(value, "__array__") or hasattr(value, "__dlpack__")


def _same_memory(a: Array, b: Array) -> bool:
    return a.__array_interface__["data"][0] == b.__array_interface__["data"][0] and a.shape == b.shape
