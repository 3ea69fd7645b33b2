"""Frames, series, tensors and lists as NumPy arrays, without importing the packages that they are of."""

from __future__ import annotations

import sys
from typing import Any

import numpy as np
import numpy.typing as npt

from byzadmm._internal.arrays import to_numpy

__all__ = ["as_array", "column_names"]

Array = npt.NDArray[Any]


def as_array(value: Any, name: str) -> Array:
    """Return ``value`` as a NumPy array; a missing value and a column that holds no numbers are errors by name."""
    if hasattr(value, "toarray"):  # of SciPy
        raise TypeError(f"{name}: expected a dense array, got {type(value).__name__}; pass {name}.toarray()")
    if _is_pandas(value, "DataFrame"):
        return _frame(value, name)
    if _is_pandas(value, "Series", "Index", "Categorical"):
        return _series(sys.modules["pandas"].Series(value), name)
    if getattr(value, "requires_grad", False):
        value = value.detach()
    if isinstance(value, (list, tuple)) and value and all(hasattr(item, "__dlpack__") for item in value):
        items = [as_array(item, f"{name}[{i}]") for i, item in enumerate(value)]
        for i, item in enumerate(items):
            if item.shape != items[0].shape:
                raise ValueError(f"{name}[{i}]: expected shape {items[0].shape} as before, got {item.shape}")
        return np.stack(items)
    return to_numpy(value, name)


def column_names(value: Any) -> list[Any] | None:
    """Return the names of the columns of a frame, None for anything else."""
    return list(value.columns) if _is_pandas(value, "DataFrame") else None


def _is_pandas(value: Any, *kinds: str) -> bool:
    pandas = sys.modules.get("pandas")
    return any(isinstance(value, getattr(pandas, kind, ())) for kind in kinds)


def _frame(frame: Any, name: str) -> Array:
    columns = []
    for i, label in enumerate(frame.columns):
        where, series = f"{name}: column {label!r}", frame.iloc[:, i]  # by position: a label can occur twice
        column = _series(series, where)
        if column.dtype.kind not in "biuf" or str(series.dtype) == "category":
            text = column.dtype.kind in "OTU" or str(series.dtype) == "category"
            hint = "; encode it, as pandas.get_dummies does, or leave it out" if text else ""
            raise TypeError(f"{where}: expected real numbers, got {series.dtype}{hint}")
        columns.append(column)
    return np.stack(columns, axis=1) if columns else np.empty(frame.shape)


def _series(series: Any, name: str) -> Array:
    missing = np.asarray(series.isna(), dtype=bool)
    if missing.any():
        row = int(np.argmax(missing))
        raise ValueError(f"{name}: expected no missing values, got {series.iloc[row]} at row {row}")
    array: Array = series.to_numpy(dtype=getattr(series.dtype, "numpy_dtype", None))  # which nullable types have
    return array
