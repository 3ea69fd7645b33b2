"""New labels for old ones: the mapping of label flipping."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from byzadmm._internal.arrays import Array, is_array, to_numpy
from byzadmm._internal.validation import check_int

__all__ = ["check_mapping", "mapped"]


def check_mapping(mapping: Any) -> tuple[int, ...] | dict[int, int] | None:
    """A mapping of labels as plain integers: a tuple, a dict, or None."""
    if mapping is None:
        return None
    if isinstance(mapping, Mapping):
        pairs = sorted((_label(old), _label(new)) for old, new in mapping.items())
        return dict(pairs)
    if is_array(mapping):
        mapping = to_numpy(mapping, "mapping").tolist()
    if not isinstance(mapping, Sequence) or isinstance(mapping, (str, bytes)):
        raise TypeError(f"mapping: expected a sequence of labels, a dict or None, got {type(mapping).__name__}")
    return tuple(_label(new) for new in mapping)


def mapped(mapping: Any, n_classes: int) -> Array:
    """The new label of each of ``0..n_classes-1``, int64.

    Examples
    --------
    >>> from byzadmm._internal.labels import mapped
    >>> mapped(None, 3).tolist(), mapped({0: 1}, 3).tolist(), mapped([1, 2, 0], 3).tolist()
    ([2, 1, 0], [1, 1, 2], [1, 2, 0])
    """
    given = check_mapping(mapping)
    new: Array = np.arange(n_classes, dtype=np.int64)
    if given is None:
        new = n_classes - 1 - new
        return new
    pairs = given if isinstance(given, dict) else dict(enumerate(given))
    wrong = len(pairs) != n_classes and not isinstance(given, dict)
    if wrong or any(label >= n_classes for pair in pairs.items() for label in pair):
        expected = f"{n_classes} labels in [0, {n_classes}), or a dict of such labels"
        raise ValueError(f"mapping: expected {expected}, got {mapping!r}")
    new[list(pairs)] = list(pairs.values())
    return new


def _label(value: Any) -> int:
    return check_int(value, "mapping", low=0)
