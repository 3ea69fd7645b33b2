"""Targets of any kind as labels ``0..K-1`` or as real numbers."""

from __future__ import annotations

import numbers
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from byzadmm._internal.validation import check_choice, check_int

from ._inputs import as_array, column_names

__all__ = ["Targets", "check_task", "make_targets", "numbered"]

Array = npt.NDArray[Any]

_TASKS = ("classification", "regression")
_MANY_CLASSES = 1000  # whole numbers from here on are more often years, prices or counts than labels
_MAX_CLASSES = 2**31
_PLAIN = (str, numbers.Real, np.bool_)
_REAL = "pass task='regression' for real targets"
_MANY = f"{_REAL}, or task='classification' for so many classes"


class Targets(NamedTuple):
    """Checked targets of both sets, the number of classes (0: real numbers) and their names."""

    train: Array
    test: Array
    n_classes: int
    classes: tuple[str, ...] | None = None


def check_task(task: Any) -> str | None:
    """Return ``task`` if it is one, or None."""
    return None if task is None else check_choice(task, "task", _TASKS)


def numbered(y: Array, name: str, task: str | None) -> tuple[Array, int, tuple[str, ...] | None]:
    """Return real targets, or whole numbers as places among the different ones; the number and the names of classes."""
    if task == "regression" or (task is None and _fraction(y) is not None):
        return y, 0, None
    values, places = np.unique(_whole(y, name), return_inverse=True)
    if task is None and len(values) > _MANY_CLASSES:
        raise ValueError(f"{name}: expected at most {_MANY_CLASSES} different labels, got {len(values)}; {_MANY}")
    return places.astype(np.int64), len(values), tuple(map(str, values.tolist()))


def make_targets(train_y: Any, test_y: Any, sizes: tuple[int, int], task: Any, n_classes: Any) -> Targets:
    """Return the targets of ``sizes`` training and test samples; what they are is decided on the training set."""
    task = check_task(task)
    if n_classes is not None:
        n_classes = check_int(n_classes, "n_classes", low=1)
        if task == "regression":
            raise ValueError(f"n_classes: expected None for task='regression', got {n_classes}")
    y, y_test = _column(train_y, "train_y", sizes[0]), _column(test_y, "test_y", sizes[1])
    if task == "regression" or (task is None and n_classes is None and _fraction(y) is not None):
        return Targets(_real(y, "train_y"), _real(y_test, "test_y"), 0)
    if (y.dtype.kind == "O") != (y_test.dtype.kind == "O"):
        kinds = ["strings" if labels.dtype.kind == "O" else "numbers" for labels in (y, y_test)]
        raise TypeError(f"test_y: expected {kinds[0]} as in train_y, got {kinds[1]}")
    if y.dtype.kind == "O":
        return _named(y, y_test, n_classes)
    y, y_test = _whole(y, "train_y"), _whole(y_test, "test_y")
    if np.array_equal(np.unique(y), [-1, 1]):
        return _named(y, y_test, n_classes)
    limit = n_classes or (_MAX_CLASSES if task else _MANY_CLASSES)
    for labels, name in ((y, "train_y"), (y_test, "test_y")):
        low, high = labels.min(), labels.max()
        if low < 0:
            expected = f"in [0, {n_classes - 1}]" if n_classes else ">= 0"
            raise ValueError(f"{name}: expected labels {expected} (or -1 and 1 alone), got {low}; {_REAL}")
        if high >= limit:
            hint = "" if n_classes or task else f"; {_MANY}"
            raise ValueError(f"{name}: expected labels in [0, {limit - 1}], got {high}{hint}")
    return Targets(y, y_test, n_classes or int(max(y.max(), y_test.max())) + 1)


def _column(value: Any, name: str, n_rows: int) -> Array:
    """Return (n_rows,) booleans, integers, finite float64 or, as objects, strings."""
    if len(column_names(value) or ()) == 1:  # a frame, whose columns have to be numbers as features
        value = value.iloc[:, 0]
    y = as_array(value, name)
    if y.ndim == 2 and y.shape[1] == 1:
        y = y[:, 0]
    if y.shape != (n_rows,):
        hint = ""
        if y.ndim == 2 and len(y) == n_rows:
            one_hot = y.dtype.kind in "biuf" and np.all((y == 0) | (y == 1)) and np.all(y.sum(axis=1) == 1)
            hint = f"; of one-hot rows pass numpy.argmax({name}, axis=1)" if one_hot else "; one target per sample"
        raise ValueError(f"{name}: expected shape ({n_rows},), got {y.shape}{hint}")
    if y.dtype.kind in "UTO":
        # From the list itself: NumPy makes the string "nan" of a missing label among strings, and "1" of a number.
        items = value if isinstance(value, (list, tuple)) else y.tolist()
        items = [item[0] if isinstance(item, (list, tuple)) else item for item in items]
        strings = isinstance(items[0], str)
        for row, item in enumerate(items):
            if isinstance(item, str) != strings or not isinstance(item, _PLAIN):
                raise TypeError(f"{name}: expected strings only, or numbers only, got {item!r} at row {row}")
        if strings:
            return np.array(items, dtype=object)  # not y, in which strings lose zeros at their end
        y = np.asarray(items)
    if y.dtype.kind not in "biuf":
        raise TypeError(f"{name}: expected numbers or strings, got {y.dtype}")
    if y.dtype.kind == "f":
        with np.errstate(over="ignore"):  # a long double beyond float64 becomes Inf
            y = y.astype(np.float64, copy=False)
        if not np.isfinite(y).all():
            row = int(np.argmin(np.isfinite(y)))
            raise ValueError(f"{name}: expected finite numbers, got {y[row]} at row {row}")
    return y


def _fraction(y: Array) -> int | None:
    """Return the first row that is not a whole number."""
    if y.dtype.kind != "f":
        return None
    fractions = y != np.floor(y)
    return int(np.argmax(fractions)) if fractions.any() else None


def _real(y: Array, name: str) -> Array:
    if y.dtype.kind == "O":
        raise TypeError(f"{name}: expected real numbers for task='regression', got strings")
    return np.ascontiguousarray(y, dtype=np.float64)


def _whole(y: Array, name: str) -> Array:
    row = _fraction(y)
    if row is not None:
        raise ValueError(f"{name}: expected whole numbers as labels, got {y[row]} at row {row}; {_REAL}")
    far = np.abs(y.astype(np.float64)) > _MAX_CLASSES
    if far.any():
        raise ValueError(f"{name}: expected labels below {_MAX_CLASSES}, got {y[far][0]}; {_REAL}")
    return np.ascontiguousarray(y, dtype=np.int64)


def _named(y: Array, y_test: Array, n_classes: int | None) -> Targets:
    """Return for each label its place among those of the training set, in sorted order."""
    labels, wanted = y.tolist(), y_test.tolist()
    place = {label: i for i, label in enumerate(sorted(set(labels)))}
    if n_classes not in (None, len(place)):
        raise ValueError(f"n_classes: expected {len(place)}, the number of training labels by name, got {n_classes}")
    for row, label in enumerate(wanted):
        if label not in place:
            raise ValueError(f"test_y: expected labels of the training set, got {label!r} at row {row}")
    train, test = (np.array([place[label] for label in part], dtype=np.int64) for part in (labels, wanted))
    return Targets(train, test, len(place), tuple(map(str, place)))
