"""What the rules by diameter and by the covariance must give for finite rows of any size.

Squared distances are integers. Eigenvalues are those of NumPy, of a matrix formed from exact distances in the unit of
the largest of them: its error is relative to the eigenvalue.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from fractions import Fraction
from itertools import combinations, islice
from math import comb
from typing import Any

import numpy as np
import numpy.typing as npt

from support.oracles import Call, _check_mean, check, integers

__all__ = ["coverable"]


def coverable(neighbors: Sequence[int], left: int, k: int) -> bool:
    """Whether at most k nodes of the set ``left`` touch all edges between its nodes; sets are the bits of integers.

    Examples
    --------
    >>> triangle = [0b110, 0b101, 0b011]
    >>> coverable(triangle, 0b111, 1), coverable(triangle, 0b111, 2)
    (False, True)
    """
    degrees = {i: (neighbors[i] & left).bit_count() for i in range(len(neighbors)) if left >> i & 1}
    widest = max(degrees, key=degrees.__getitem__, default=0)
    most = degrees.get(widest, 0)
    if most == 0:
        return True
    if sum(degrees.values()) > 2 * k * most:
        return False
    one = next((i for i, degree in degrees.items() if degree == 1), None)
    if one is not None:  # its neighbor is in some smallest cover
        return coverable(neighbors, left & ~(neighbors[one] | 1 << one), k - 1)
    if coverable(neighbors, left & ~(1 << widest), k - 1):
        return True
    around = neighbors[widest] & left
    return most > 2 and most <= k and coverable(neighbors, left & ~around & ~(1 << widest), k - most)


def _check_selected(call: Call) -> list[int]:
    """As many rows as there should be, in order, the first of equal ones, and their mean."""
    assert call.info.selected is not None
    selected: list[int] = call.info.selected.tolist()
    check(selected == sorted(set(selected)), "the selected rows are not in order")
    check(len(selected) == call.n - call.f, f"{len(selected)} rows selected instead of {call.n - call.f}")
    for i in selected:
        for k in sorted(set(range(i)) - set(selected)):
            check(not np.array_equal(call.X[i], call.X[k]), f"row {i} selected, but the equal row {k} is not")
    for j, result in enumerate(call.result):
        _check_mean(call, call.P[selected, j], [1] * len(selected), result, f"column {j}")
    return selected


def judge_mda(call: Call) -> None:
    """No n-f rows are closer together than the selected ones, which are thus no farther apart than honest rows are."""
    selected = _check_selected(call)
    diameter = int(call.squared[np.ix_(selected, selected)].max())
    unit = 1 << call.digits
    far = [
        sum(1 << k for k in range(call.n) if k != i and call.squared[i, k] * (unit + call.slack) >= diameter * unit)
        for i in range(call.n)
    ]
    closer = diameter > 0 and coverable(far, (1 << call.n) - 1, call.f)
    check(not closer, f"rows with a smaller diameter than that of row {selected[0]} and the others exist")


def _top_eigenvalue(squared: Any, weights: npt.NDArray[np.float64]) -> Fraction:
    """Largest eigenvalue of the weighted scatter matrix, from exact squared distances."""
    unit = int(squared.max())
    if unit == 0:
        return Fraction(0)
    D = np.array([[value / unit for value in line] for line in squared.tolist()])
    w = weights / weights.sum()
    centered = D - (D @ w)[:, None] - w @ D + w @ D @ w
    root = np.sqrt(weights)
    return Fraction(float(np.linalg.eigvalsh(-0.5 * root[:, None] * centered * root)[-1])) * unit


def judge_smea(call: Call) -> None:
    """No n-f rows have a smaller largest eigenvalue: of all, or of those that differ by one row, and of honest ones."""
    selected = _check_selected(call)
    size = len(selected)

    def value(rows: Iterable[int]) -> Fraction:
        chosen = list(rows)
        return _top_eigenvalue(call.squared[np.ix_(chosen, chosen)], np.ones(size))

    sets: list[Iterable[int]] = []
    if comb(call.n, size) <= 300:
        sets += combinations(range(call.n), size)
    else:
        others = sorted(set(range(call.n)) - set(selected))
        sets += [{*selected, k} - {i} for i in selected for k in others]
        if call.honest is not None:
            sets += islice(combinations(np.flatnonzero(call.honest).tolist(), size), 20)
    # Of a squared distance the rounding is relative, and the eigenvalue is at least half of the largest one.
    permitted = 1 + Fraction(4 * call.n * call.slack, 1 << call.digits) + Fraction(1, 10**9)
    mine = value(selected)
    for rows in sets:
        message = f"row {selected[0]} and the others have a larger eigenvalue than rows {sorted(rows)}"
        check(mine <= value(rows) * permitted, message)


def judge_caf(call: Call) -> None:
    """A mean with weights whose covariance is no larger than at the start, nor than honest rows explain.

    Let C be the weight of honest rows in a round and B that of forged ones, H the scatter of the honest rows along v.
    As long as forged rows lose more than honest ones, ``C - B`` is at least ``n - 2b``. They cannot do so until the
    weight is down to ``n - 2f``, so in some round they lose at most as much. With the honest rows' mean at a
    distance r from mu along v, that says ``B r'^2 <= H + C r^2`` for the forged mean at ``r' = C r / B``. Hence
    ``C r^2 <= H B / (C - B)``, and ``sigma (C + B) <= 2 (H + C r^2) <= 2 H (n - b) / (n - 2b)``.
    """
    weights, rounds = call.info.weights, call.info.iterations
    assert weights is not None
    assert rounds is not None
    check(bool((weights >= 0).all()) and abs(weights.sum() - 1) < 1e-12, "the weights are no shares")
    check(weights.max() * (call.n - 2 * call.f) <= 1 + 1e-9, "a row has more weight than it had at the start")
    check(1 <= rounds <= max(1, 2 * call.f), f"{rounds} rounds, each of which takes all weight from some row")
    for j, result in enumerate(call.result):
        _check_mean(call, call.P[:, j], integers(weights, 1074).tolist(), result, f"column {j}")
    kept = np.flatnonzero(weights)
    sigma = _top_eigenvalue(call.squared[np.ix_(kept, kept)], weights[kept])
    permitted = 1 + Fraction(1, 10**2 if call.X.dtype == np.float32 else 10**6)
    start = _top_eigenvalue(call.squared, np.full(call.n, 1 / call.n))
    check(sigma <= start * permitted, "the covariance is larger than at the start")
    if call.honest is not None:
        regular = np.flatnonzero(call.honest)
        forged = call.n - len(regular)
        spread = _top_eigenvalue(call.squared[np.ix_(regular, regular)], np.ones(len(regular)))
        bound = 2 * spread * Fraction(call.n - forged, (call.n - 2 * forged) * (call.n - 2 * call.f))
        check(sigma <= bound * permitted, "the covariance is larger than honest rows explain")
