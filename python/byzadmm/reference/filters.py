"""What filters measure, in NumPy: distances of rows to a point, and sums of messages over rounds."""

from __future__ import annotations

from typing import Any

import numpy as np

from ._arrays import Array

__all__ = ["add_to_sums", "lengths"]


def lengths(X: Any, center: Any = None) -> Array:
    """``||x_i - center||`` of every row, or ``||x_i||``; infinity beyond float64 and for rows that are not finite.

    Examples
    --------
    >>> from byzadmm import reference
    >>> reference.lengths([[3.0, 4.0], [3e300, 4e300]], [0.0, 0.0]).tolist()
    [5.0, 5e+300]
    """
    rows = np.asarray(X, np.float64)
    point = np.zeros(rows.shape[1]) if center is None else np.asarray(center, np.float64)
    with np.errstate(over="ignore", invalid="ignore"):
        halves = rows / 2 - point / 2  # of numbers of opposite sign the difference may overflow
        largest = np.abs(halves).max(axis=1, keepdims=True)
        unit = np.where((largest > 0) & np.isfinite(largest), largest, 1.0)
        found: Array = np.sqrt(np.sum((halves / unit) ** 2, axis=1)) * unit[:, 0] * 2
    return np.where(np.isnan(found), np.inf, found)


def add_to_sums(X: Any, workers: Any, factor: float, sums: Array, center: int) -> Array:
    """``sums[workers] += factor X`` in float64, and the distances of all sums to ``sums[center]``.

    Examples
    --------
    >>> import numpy as np
    >>> from byzadmm import reference
    >>> sums = np.zeros((3, 1))
    >>> reference.add_to_sums([[2.0], [6.0]], [0, 2], 0.5, sums, 0).tolist(), sums.tolist()
    ([0.0, 1.0, 2.0], [[1.0], [0.0], [3.0]])
    """
    with np.errstate(over="ignore", invalid="ignore"):
        sums[np.asarray(workers)] += factor * np.asarray(X, np.float64)
    return lengths(sums, sums[center])
