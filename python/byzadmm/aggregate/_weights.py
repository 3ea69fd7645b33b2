"""Weights of rows: their check, their unit, and which rows they leave with a say."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from byzadmm._internal.arrays import as_float
from byzadmm._internal.validation import check_real
from byzadmm.aggregate._call import Call

__all__ = ["cap_weights", "check_weights"]

Weights = NDArray[np.float64]


def check_weights(weights: Any, n: int | None = None) -> Weights:
    """Return ``weights`` as float64 numbers, one per row: finite, at least 0, not all 0."""
    checked = as_float(weights, "weights", np.dtype(np.float64))
    if checked.ndim != 1 or n not in (None, len(checked)):
        raise ValueError(f"weights: expected shape ({'n' if n is None else n},), got {checked.shape}")
    if not np.all(np.isfinite(checked)) or np.any(checked < 0) or not np.any(checked > 0):
        raise ValueError("weights: expected finite numbers >= 0, not all zero")
    return checked


def scaled_weights(weights: Any, n: int) -> Weights | None:
    """Checked weights divided by a power of two, so that the largest lies in [1/2, 1). None stays None.

    The division is exact. Products with tiny weights keep their digits, and sums stay finite.
    """
    if weights is None:
        return None
    checked = check_weights(weights, n)
    return np.asarray(np.ldexp(checked, -int(np.frexp(checked.max())[1])))


def kept_weights(call: Call, w: Weights | None) -> Weights | None:
    """Weights of the kept rows; an error if all of them are 0."""
    if w is None or call.kept is None:
        return w
    left = np.ascontiguousarray(w[call.kept])
    if not np.any(left > 0):
        raise ValueError(f"{call.rule}: every finite row has weight 0")
    return left


def voters(call: Call, w: Weights, tolerated: int) -> tuple[Weights, list[int]] | None:
    """Weights, the largest of them 1, and indices of the finite rows of positive weight. None: the result is NaN.

    That is so if a row is not finite and ``nonfinite="propagate"``.
    """
    if np.any(call.nonfinite_rows()) and not call.exclude(tolerated):
        return None
    left = kept_weights(call, w)
    assert left is not None
    return np.ascontiguousarray(left[left > 0] / left.max()), call.original(np.flatnonzero(left > 0)).tolist()


def voting(weights: Any, n: int) -> Weights:
    """The weights of :func:`voters` for ``n`` finite rows, with 0 for those that are no voters."""
    w = scaled_weights(weights, n)
    assert w is not None
    return np.asarray(w / w.max())


def cap_weights(weights: Any, cap: float) -> Weights:
    """Weights of at most ``cap``: a bound on the weight that a worker can claim for itself.

    ``min(w_i, cap)``. The rules tolerate Byzantine workers as long as these have at most the share ``f/n`` of the sum
    of all weights. Data sizes that workers report themselves guarantee that only once they are capped.

    Parameters
    ----------
    weights : (n,) array
        Finite, non-negative, not all zero.
    cap : float > 0

    Returns
    -------
    (n,) float64 array

    Examples
    --------
    >>> from byzadmm import aggregate
    >>> aggregate.cap_weights([10, 20, 1e9], 30).tolist()
    [10.0, 20.0, 30.0]
    """
    return np.minimum(check_weights(weights), check_real(cap, "cap", low=0.0, strict=True))
