"""Data stage: arrays, frames, tensors or lists in memory in, a `Dataset` out."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import numpy.typing as npt

from ._dataset import Dataset, make_dataset
from ._inputs import as_array, column_names
from ._scaling import Scale, check_scale
from ._targets import make_targets

__all__ = ["from_arrays"]

Array = npt.NDArray[Any]

_KERNEL_TYPES: dict[str, type[np.generic]] = {
    "bool": np.uint8,
    "uint8": np.uint8,
    "float16": np.float32,
    "float32": np.float32,
}  # everything else becomes float64


def from_arrays(
    train_x: Any,
    train_y: Any,
    test_x: Any,
    test_y: Any,
    *,
    n_classes: int | None = None,
    scale: Scale = 1.0,
    name: str = "custom",
    task: str | None = None,
) -> Dataset:
    """Make a `Dataset` from arrays, lists, pandas frames and series, or tensors in host memory.

    The value a learner sees is ``scale * x``, or the columns brought to 0..1 (``"unit"``) or to mean 0 and deviation 1
    (``"standard"``), or all of them together to -1..1 (``"symmetric"``), by training statistics.

    Parameters
    ----------
    train_x, test_x : (N, ...) and (M, ...) real
        Features; images and other samples of several dimensions are flattened. uint8, float32 and float64 are kept as
        they are, other types are converted. Rows of frames are taken by position, and both frames must have the same
        columns.
    train_y, test_y : (N,) and (M,)
        Targets. Whole numbers (floats too) are labels ``0..n_classes-1``; -1 and +1 alone become 0 and 1; strings
        become ``0..K-1`` in sorted order, their names in ``Dataset.classes``. Floats with a fraction are real targets.
        The training set decides.
    n_classes : int, optional
        Default: the largest label plus one.
    scale : float or {"raw", "unit", "standard", "symmetric"}
        See above; ``"raw"`` is 1.0.
    name : str
        Shown in results.
    task : {"classification", "regression"}, optional
        Says what the targets are: ``"regression"`` takes whole numbers as real targets, ``"classification"`` refuses
        fractions, and takes labels of 1000 and more.

    Returns
    -------
    Dataset
        Shares memory with the arguments where nothing had to be converted.

    Examples
    --------
    >>> from byzadmm import datasets
    >>> datasets.from_arrays([[0.0], [1.0]], [0, 1], [[0.5]], [1]).n_classes
    2
    >>> data = datasets.from_arrays([[0.0], [1.0]], ["ham", "spam"], [[0.5]], ["spam"])
    >>> data.classes, data.test_y.tolist()
    (('ham', 'spam'), [1])
    >>> datasets.from_arrays([[0.0], [1.0]], [3, 5], [[0.5]], [4], task="regression").train_y.tolist()
    [3.0, 5.0]
    """
    scale = check_scale(scale)
    if not isinstance(name, str):
        raise TypeError(f"name: expected a string, got {type(name).__name__}")
    x, x_test = _features(train_x, "train_x"), _features(test_x, "test_x")
    if x_test.shape[1:] != x.shape[1:]:
        if x.ndim == x_test.ndim == 2:
            raise ValueError(f"test_x: expected {x.shape[1]} columns as in train_x, got {x_test.shape[1]}")
        raise ValueError(f"test_x: expected samples of shape {x.shape[1:]} as in train_x, got {x_test.shape[1:]}")
    columns, test_columns = column_names(train_x), column_names(test_x)
    if columns is not None and test_columns is not None and columns != test_columns:
        first, second = next(pair for pair in zip(columns, test_columns, strict=True) if pair[0] != pair[1])
        raise ValueError(f"test_x: expected the columns of train_x in their order, got {second!r} for {first!r}")
    if x.dtype != x_test.dtype:
        x, x_test = x.astype(np.float64), x_test.astype(np.float64)
    y = make_targets(train_y, test_y, (len(x), len(x_test)), task, n_classes)
    return make_dataset(name, _flat(x), y.train, _flat(x_test), y.test, y.n_classes, scale, y.classes)


def _features(value: Any, name: str) -> Array:
    x = as_array(value, name)
    if x.dtype.kind not in "biuf":
        convertible = isinstance(value, np.ndarray) and x.dtype.kind in "OSTU"
        hint = f"; if they are numbers, pass {name}.astype(float)" if convertible else ""
        raise TypeError(f"{name}: expected real numbers, got {x.dtype if x.ndim else type(value).__name__}{hint}")
    if x.ndim < 2 or not x.size:
        raise ValueError(f"{name}: expected a non-empty array (samples, features), got shape {x.shape}")
    native = x.dtype.newbyteorder("=")
    with np.errstate(over="ignore"):  # a long double beyond float64 becomes Inf, and is refused below
        x = x.astype(_KERNEL_TYPES.get(native.name, np.float64), copy=False)
    if x.dtype.kind == "f" and not np.isfinite(x).all():
        place = tuple(int(i) for i in np.argwhere(~np.isfinite(x))[0])
        where = f"column {place[1]}" if x.ndim == 2 else f"position {place[1:]}"
        raise ValueError(f"{name}: expected finite numbers, got {x[place]} at row {place[0]}, {where}")
    return np.ascontiguousarray(x)


def _flat(x: Array) -> Array:
    return x if x.ndim == 2 else x.reshape(len(x), math.prod(x.shape[1:]))
