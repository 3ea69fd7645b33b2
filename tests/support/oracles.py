"""What each rule must give for finite rows of any size, judged in integer or decimal arithmetic.

Every float is an integer in units of the smallest subnormal number of its dtype, so sums, squares and comparisons of
rows are exact in Python's integers. A judgement permits what rounding explains: a value off by units in the last place
of what was summed, a choice whose score exceeds the least one by a few parts in ``1/eps``. Nothing here depends on how
a kernel scales its numbers.

Where a claim about attackers is judged, ``honest`` says which rows are regular: at least ``n - f`` of them, with at
least the share ``1 - f/n`` of the weight.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from decimal import Context, Decimal, localcontext
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt

from byzadmm import aggregate
from support.exact import geometric_median_excess

__all__ = ["Call", "check"]

Array = npt.NDArray[Any]

_CONTEXT = Context(prec=60, Emin=-999999, Emax=999999)
_GEOMETRIC_TOL = 1e-6  # the default of geometric_median


def integers(values: Array, bits: int) -> Array:
    """``values * 2**bits`` as an object array of Python integers; every value is a multiple of ``2**-bits``."""

    def one(value: Any) -> int:
        numerator, denominator = float(value).as_integer_ratio()
        return numerator << (bits + 1 - denominator.bit_length())

    return np.array([one(value) for value in np.ravel(values)], object).reshape(np.shape(values))


@dataclass
class Call:
    """One call of a rule and what came of it; integers are in units of the smallest subnormal of the dtype."""

    X: Array
    settings: dict[str, Any]
    out: Array
    info: aggregate.Info
    honest: npt.NDArray[np.bool_] | None = None

    @property
    def n(self) -> int:
        return len(self.X)

    @property
    def f(self) -> int:
        return int(self.settings.get("f", 0))

    @property
    def bits(self) -> int:
        return 149 if self.X.dtype == np.float32 else 1074

    @property
    def digits(self) -> int:
        """``eps = 2**-digits``."""
        return 23 if self.X.dtype == np.float32 else 52

    @cached_property
    def P(self) -> Array:
        return integers(self.X, self.bits)

    @cached_property
    def result(self) -> Array:
        return integers(self.out, self.bits)

    @cached_property
    def weights(self) -> list[int]:
        """In any unit; all 1 where the rule was given none."""
        given = self.settings.get("weights")
        return [1] * self.n if given is None else integers(given, 1074).tolist()

    @cached_property
    def squared(self) -> Array:
        """Squared distances of all pairs."""
        return np.array([((self.P - row) ** 2).sum(axis=1) for row in self.P], object).reshape(self.n, self.n)

    @cached_property
    def honest_diameter_squared(self) -> int:
        assert self.honest is not None
        return int(self.squared[np.ix_(self.honest, self.honest)].max())

    @property
    def slack(self) -> int:
        """Relative error of a squared distance, in eps: products of moved rows are used for more than 72 rows."""
        return (16 + self.X.shape[1]) * (40 if self.n > 72 else 1)

    def is_about_least(self, score: int, least: int, extra: int = 0) -> bool:
        return score << self.digits <= least * ((1 << self.digits) + self.slack + extra)


def check(holds: bool, message: str) -> None:
    """An assertion that ``python -O`` keeps."""
    if not holds:
        raise AssertionError(message)


# --- column-wise ------------------------------------------------------------------------------------------------------


def _check_mean(call: Call, column: Sequence[int], weights: Sequence[int], result: int, name: str) -> None:
    """``result`` is the mean in float64, rounded to the dtype: right to rounding of what was added."""
    count, whole = len(column), sum(weights)
    exact = sum(w * v for w, v in zip(weights, column, strict=True))
    added = sum(w * abs(v) for w, v in zip(weights, column, strict=True))
    permitted = ((2 * count + 8) * added >> 52) + (2 * abs(exact) >> call.digits) + (count + 2) * whole
    check(abs(result * whole - exact) <= permitted, f"{name}: not the mean")


def _check_inside(call: Call, result: int, low: int, high: int, name: str) -> None:
    """Up to rounding of the largest of the values that may have been added."""
    permitted = ((2 * call.n + 8) * max(abs(low), abs(high)) >> call.digits) + call.n + 2
    check(low - permitted <= result <= high + permitted, f"{name}: outside of what the honest rows permit")


def _check_in_honest_hull(call: Call) -> None:
    if call.honest is None:
        return
    honest = call.P[np.flatnonzero(call.honest)]
    for j, result in enumerate(call.result):
        _check_inside(call, result, honest[:, j].min(), honest[:, j].max(), f"column {j}")


def judge_mean(call: Call) -> None:
    """Exact weighted mean."""
    for j, result in enumerate(call.result):
        _check_mean(call, call.P[:, j], call.weights, result, f"column {j}")


def judge_median(call: Call) -> None:
    """Half of the weight on either side, and inside the honest interval, which holds more than half of the weight."""
    weighted, even = call.settings.get("weights") is not None, call.settings.get("even", "mid")
    total = sum(call.weights)
    slack = (4 * call.n * total >> 52) + 1  # sums of weights in float64 this close to half may be taken for it

    def between(low: int, high: int) -> tuple[int, int]:
        return {"mid": (low, high), "low": (low, low), "high": (high, high)}[even]

    for j, result in enumerate(call.result):
        column = sorted((v, w) for v, w in zip(call.P[:, j], call.weights, strict=True) if w)
        values = [value for value, _ in column]
        permitted = [] if weighted else [between(values[(call.n - 1) // 2], values[call.n // 2])]
        below = 0
        for i, (value, weight) in enumerate(column if weighted else []):
            upto = below + weight
            if 2 * below < total + slack and 2 * upto > total - slack:
                permitted.append((value, value))
            if i + 1 < len(column) and abs(2 * upto - total) <= slack:
                permitted.append(between(value, values[i + 1]))
            below = upto
        check(
            any(abs(2 * result - a - b) <= (abs(a + b) >> call.digits) + 1 for a, b in permitted),
            f"column {j}: not the median",
        )
    _check_in_honest_hull(call)


def _trimmed(column: list[tuple[int, int]], low: int, high: int) -> list[tuple[int, int]]:
    """The part of (value, weight) pairs, in ascending order, between two sums of weight."""
    kept, below = [], 0
    for value, weight in column:
        share = min(below + weight, high) - max(below, low)
        below += weight
        if share > 0:
            kept.append((value, share))
    return kept


def judge_trimmed_mean(call: Call) -> None:
    """Mean of the middle ``1 - 2f/n`` of the weight; inside the honest interval."""
    n, f = call.n, call.f
    weights = [n * w for w in call.weights]  # so that the cut is an integer
    total = sum(weights)
    cut = total // n * f
    crumb = 0 if call.settings.get("weights") is None or f == 0 else (8 * n * total >> 52) + 1
    for j, result in enumerate(call.result):
        column = sorted(zip(call.P[:, j], weights, strict=True))
        if not crumb:
            kept = _trimmed(column, cut, total - cut)
            values, shares = zip(*kept, strict=True)
            _check_mean(call, values, shares, result, f"column {j}")
            continue
        # The place of the cut is rounded, and the value there may be 1e300: any cut within rounding is accepted.
        bounds = []
        for low in (cut - crumb, cut + crumb):
            for high in (total - cut - crumb, total - cut + crumb):
                kept = _trimmed(column, max(low, 0), min(high, total))
                whole = sum(w for _, w in kept)
                rounding = (2 * n + 8) * sum(w * abs(v) for v, w in kept) // whole >> call.digits
                mean = sum(w * v for v, w in kept) // whole
                bounds += [mean - rounding - n - 2, mean + rounding + n + 2]
        check(min(bounds) <= result <= max(bounds), f"column {j}: not the trimmed mean")
    _check_in_honest_hull(call)


def _check_closest_mean(call: Call, rows: Array, center: Array, k: int) -> None:
    """Every column: the mean of the k values closest to the center, the first rows among equally close ones."""
    for j, (result, middle) in enumerate(zip(call.result, integers(center, call.bits), strict=True)):
        values = rows[:, j]
        apart = abs(values - middle)
        radius = sorted(apart)[k - 1]
        slack = (2 * radius >> call.digits) + 2
        sure = [v for v, a in zip(values, apart, strict=True) if a < radius - slack]
        edge = [v for v, a in zip(values, apart, strict=True) if abs(a - radius) <= slack]
        if all(abs(a - radius) > slack or a == radius for a in apart):  # only exact ties: the lowest index decides
            _check_mean(call, sure + edge[: k - len(sure)], [1] * k, result, f"column {j}")
            continue
        edge.sort()
        few = [sure + edge[: k - len(sure)], sure + edge[len(edge) - (k - len(sure)) :]]
        rounding = (((2 * k + 8) * max(map(abs, few[0] + few[1]))) >> call.digits) + k + 2
        low, high = (sum(part) // k for part in few)
        check(low - rounding <= result <= high + rounding, f"column {j}: not the mean of the closest values")


def _check_around(call: Call, center: Array) -> None:
    """No farther from a center in the honest interval than the farthest end of it.

    At least as many honest values as are kept lie within that distance, so all kept values do, and their mean.
    """
    if call.honest is None:
        return
    honest = call.P[np.flatnonzero(call.honest)]
    for j, (result, middle) in enumerate(zip(call.result, integers(center, call.bits), strict=True)):
        low, high = honest[:, j].min(), honest[:, j].max()
        _check_inside(call, middle, low, high, f"center of column {j}")
        reach = max(middle - low, high - middle, 0)
        _check_inside(call, result, middle - reach, middle + reach, f"column {j}")


def judge_meamed(call: Call) -> None:
    """Mean of the n-f values closest to the median."""
    center = aggregate.median(call.X, even=call.settings.get("even", "mid"))
    _check_closest_mean(call, call.P, center, call.n - call.f)
    _check_around(call, center)


def judge_phocas(call: Call) -> None:
    """Mean of the n-f values closest to the trimmed mean."""
    center = aggregate.trimmed_mean(call.X, f=call.f)
    _check_closest_mean(call, call.P, center, call.n - call.f)
    _check_around(call, center)


def judge_sign_majority(call: Call) -> None:
    """The sign that most values have; where the forged rows cannot turn it, that of the honest ones."""
    for j, result in enumerate(call.out.tolist()):
        signs = [(v > 0) - (v < 0) for v in call.P[:, j]]
        total = sum(signs)
        check(result == (total > 0) - (total < 0), f"column {j}: not the sign of {total}")


# --- choices by distance ----------------------------------------------------------------------------------------------


def _krum_score(call: Call, i: int, others: Sequence[int], neighbors: int) -> int:
    """Sum of squared distances to the nearest others, times the number of rows and in units of their weights."""
    total = sum(call.weights)
    score, left = 0, neighbors * total
    for squared, k in sorted((call.squared[i, k], k) for k in others if k != i):
        share = min(call.n * call.weights[k], left)
        score += share * squared
        left -= share
        if not left:
            break
    return score


def _neighbors(call: Call) -> int:
    given = call.settings.get("neighbors")
    return call.n - call.f - 2 if given is None else int(given)


def _check_first_of_equals(call: Call, selected: int) -> None:
    if call.settings.get("weights") is None:
        twins = (call.X[:selected] == call.X[selected]).all(axis=1)
        check(not twins.any(), f"row {selected} chosen, but an equal row has a lower index")


def _check_krum_radius(call: Call, selected: Sequence[int]) -> None:
    """A forged row that is chosen lies near an honest one.

    An honest row whose honest others have the weight of ``m`` rows has a score of at most ``m D^2``, with ``D`` the
    honest diameter, and every chosen row has a score of at most the largest of those. Of the weight ``m`` around a
    chosen forged row, other forged rows have at most ``B - w``, so some honest row is within ``m D^2 / (m - B + w)``.
    """
    if call.honest is None:
        return
    honest, forged = np.flatnonzero(call.honest), np.flatnonzero(~call.honest)
    total, m = sum(call.weights), _neighbors(call)
    weight = [call.n * w for w in call.weights]  # in units in which the average row has `total`
    regular = sum(weight[k] for k in honest)
    scored = [h for h in honest if weight[h] and regular - weight[h] >= m * total]
    if len(scored) < len(selected):
        return
    for i in selected:
        if call.honest[i]:
            continue
        left = min(m * total - sum(weight[k] for k in forged) + weight[i], regular)
        if left <= 0:
            return
        nearest = min(call.squared[i, k] for k in honest if weight[k])
        bound = m * total * call.honest_diameter_squared
        check(call.is_about_least(nearest * left, bound), f"row {i}: a forged row far from all honest ones was chosen")


def judge_krum(call: Call) -> None:
    """A row with the least score."""
    assert call.info.selected is not None
    (selected,) = call.info.selected.tolist()
    check(call.out.tobytes() == call.X[selected].tobytes(), f"not row {selected}, which was selected")
    check(call.weights[selected] > 0, f"row {selected} of weight 0 was chosen")
    scores = [_krum_score(call, i, range(call.n), _neighbors(call)) for i in range(call.n)]
    least = min(score for score, w in zip(scores, call.weights, strict=True) if w)
    check(call.is_about_least(scores[selected], least), f"row {selected}: its score is not the least")
    _check_first_of_equals(call, selected)
    _check_krum_radius(call, [selected])


def judge_multi_krum(call: Call) -> None:
    """Mean of the rows with the m least scores."""
    assert call.info.selected is not None
    selected = call.info.selected.tolist()
    m = call.settings.get("m") or call.n - call.f
    voters = [i for i in range(call.n) if call.weights[i]]
    check(len(set(selected)) == len(selected) == min(m, len(voters)), f"{len(selected)} rows selected instead of {m}")
    scores = [_krum_score(call, i, range(call.n), _neighbors(call)) for i in range(call.n)]
    last = sorted(scores[i] for i in voters)[len(selected) - 1]
    for i in selected:
        check(call.weights[i] > 0, f"row {i} of weight 0 was chosen")
        check(call.is_about_least(scores[i], last), f"row {i}: its score is not among the least {m}")
    _check_krum_radius(call, selected)
    for j, result in enumerate(call.result):
        _check_mean(call, call.P[selected, j], [call.weights[i] for i in selected], result, f"column {j}")


def _check_center_radius(call: Call, distance_squared: Callable[[int], int], digits: int) -> None:
    """The result is within ``2 D W / (W - B)`` of every honest row, with weights W of honest and B of forged rows.

    Its sum of distances is at most that of an honest row h at distance r: forged rows are nearer by at most r, honest
    ones at distance at most D of h are farther by at least r - 2 D, so that ``r (W - B) <= 2 D W``.
    """
    if call.honest is None:
        return
    honest = np.flatnonzero(call.honest)
    regular = sum(call.weights[k] for k in honest)
    margin = 2 * regular - sum(call.weights)
    bound = 4 * call.honest_diameter_squared * regular**2
    for h in honest:
        if call.weights[h]:
            squared = distance_squared(h) * margin**2
            near = squared << digits <= bound * ((1 << digits) + 16)
            check(near, f"farther from row {h} than forged rows can move it")


def _check_mean_of_least(call: Call, scores: Sequence[int], size: int) -> list[int]:
    """The result is the mean of the ``size`` rows with the least scores, which are returned."""
    assert call.info.selected is not None
    selected: list[int] = call.info.selected.tolist()
    check(len(set(selected)) == len(selected) == size, f"{len(selected)} rows selected instead of {size}")
    last = sorted(scores)[size - 1]
    for i in selected:
        check(call.is_about_least(scores[i], last), f"row {i}: its score is not among the least {size}")
    for j, result in enumerate(call.result):
        _check_mean(call, call.P[selected, j], [1] * size, result, f"column {j}")
    return selected


def judge_cge(call: Call) -> None:
    """Mean of the n-f shortest rows, none of them longer than the longest honest one."""
    norms = (call.P**2).sum(axis=1).tolist()
    selected = _check_mean_of_least(call, norms, call.n - call.f)
    if call.honest is not None:
        longest = max(norms[i] for i in np.flatnonzero(call.honest))
        for i in selected:
            check(call.is_about_least(norms[i], longest), f"row {i}: longer than every honest row")


def judge_nearest_neighbor_average(call: Call) -> None:
    """Mean of the n-f rows nearest to the pivot, none of them farther from it than the farthest honest one."""
    pivot = call.settings.get("pivot", 0)
    apart = call.squared[pivot].tolist()
    selected = _check_mean_of_least(call, apart, call.n - call.f)
    check(selected[0] == pivot, f"row {pivot} is not its own nearest row")
    if call.honest is not None:
        farthest = max(apart[i] for i in np.flatnonzero(call.honest))
        for i in selected:
            check(call.is_about_least(apart[i], farthest), f"row {i}: farther from the pivot than every honest row")


def judge_dnc(call: Call) -> None:
    """Mean of the rows with small projections in all rounds; those of one round are looked at where they are distinct.

    Products of centered rows are exact integers; in units of the largest squared distance, rounded to float64, they
    have the top eigenvector to ``1e-9`` if the second largest eigenvalue is not nearly as large.
    """
    assert call.info.selected is not None
    selected: list[int] = call.info.selected.tolist()
    for j, result in enumerate(call.result):
        _check_mean(call, call.P[selected, j], [1] * len(selected), result, f"column {j}")
    size = call.n - math.floor(call.settings.get("factor", 1.0) * call.f)
    several = call.settings.get("coordinates", 10000) < call.X.shape[1]
    check(len(set(selected)) == len(selected) and (several or len(selected) == size), f"{len(selected)} rows selected")
    whole = call.n * call.P - call.P.sum(axis=0)
    largest = int((whole**2).sum(axis=1).max())
    if several or largest == 0:
        return
    products = np.array([[(a * b).sum() * 2**60 // largest for b in whole] for a in whole], np.float64) / 2.0**60
    values, vectors = np.linalg.eigh(products)
    if call.n > 1 and values[-2] > 0.99 * values[-1]:
        return
    scores = vectors[:, -1] ** 2 * values[-1]
    permitted = 1e-9 + 100 * call.slack * 2.0**-call.digits
    last = np.sort(scores)[size - 1]
    for i in selected:
        check(scores[i] <= last + permitted, f"row {i}: its projection is not among the least {size}")


def judge_medoid(call: Call) -> None:
    """A row with the least sum of distances."""
    assert call.info.selected is not None
    (selected,) = call.info.selected.tolist()
    check(call.out.tobytes() == call.X[selected].tobytes(), f"not row {selected}, which was selected")
    check(call.weights[selected] > 0, f"row {selected} of weight 0 was chosen")
    # 64 bits after the point
    root = np.vectorize(lambda square: math.isqrt(square << 128), otypes=[object])(call.squared)
    sums = [sum(w * d for w, d in zip(call.weights, line, strict=True)) for line in root]
    best = min((i for i in range(call.n) if call.weights[i]), key=lambda i: (sums[i], i))
    rounding = (16 + call.X.shape[1]) * call.n * sum(call.weights) * (root[selected, best] + 1)
    check(
        (sums[selected] - sums[best]) << call.digits <= rounding + (call.n * sum(call.weights) << call.digits),
        f"row {selected}: its sum of distances is larger than that of row {best}",
    )
    _check_first_of_equals(call, selected)
    _check_center_radius(call, lambda h: call.squared[selected, h], call.digits - 8)


def judge_geometric_median(call: Call) -> None:
    """A minimizer to the tolerance, or said not to be one; in any case near the honest rows."""
    excess = geometric_median_excess(call.X, call.out, call.settings.get("weights"))
    check(not call.info.converged or excess <= 2 * _GEOMETRIC_TOL, f"not the minimizer: residual {excess:.1e}")
    rounding = sum(abs(value) for value in call.result) >> call.digits

    def distance_squared(h: int) -> int:
        apart = math.isqrt(int(((call.P[h] - call.result) ** 2).sum()))
        return max(0, apart - rounding) ** 2

    _check_center_radius(call, distance_squared, 10)


def judge_bulyan(call: Call) -> None:
    """Krum's choice n-2f times, each among the rows left; then the n-4f values closest to the median of the chosen."""
    assert call.info.selected is not None
    n, f, selected = call.n, call.f, call.info.selected.tolist()
    check(len(set(selected)) == len(selected) == n - 2 * f, f"{len(selected)} rows selected instead of {n - 2 * f}")
    left = list(range(n))
    for step, chosen in enumerate(selected):
        neighbors = max(1, len(left) - f - 2)
        scores = {i: _krum_score(call, i, left, neighbors) for i in left}
        good = call.is_about_least(scores[chosen], min(scores.values()), extra=4 * n)
        check(good, f"choice {step}: the score of row {chosen} is not the least")
        left.remove(chosen)
    rows = sorted(selected)
    center = aggregate.median(call.X[rows])
    _check_closest_mean(call, call.P[rows], center, n - 4 * f)
    _check_around(call, center)


# --- clipping, mixing -------------------------------------------------------------------------------------------------


def _decimals(values: Array) -> list[Decimal]:
    return [Decimal(float(value)) for value in values]


def _norm(values: Sequence[Decimal]) -> Decimal:
    return sum((v * v for v in values), Decimal(0)).sqrt()


def judge_centered_clip(call: Call) -> None:
    """``n_iter`` steps of clipped differences from the center, or from the median."""
    given, dim = call.settings.get("center"), call.X.shape[1]
    center = aggregate.median(call.X) if given is None else np.asarray(given, call.X.dtype)
    with localcontext(_CONTEXT):
        rows = [_decimals(row) for row in call.X]
        tau, v = Decimal(call.settings["tau"]), _decimals(center)
        unit = Decimal(2) ** -call.bits
        eps = (16 + call.n + dim) * Decimal(2) ** -call.digits
        earlier = Decimal(0)  # rounding errors of the steps before: no step makes them longer
        for _ in range(call.settings.get("n_iter", 1)):
            moves = []
            for row in rows:
                apart = [x - c for x, c in zip(row, v, strict=True)]
                norm = _norm(apart)
                factor = min(Decimal(1), tau / norm) if norm else Decimal(1)
                moves.append([factor * a for a in apart])
            columns = list(zip(*moves, strict=True))
            v = [c + sum(column, Decimal(0)) / call.n for c, column in zip(v, columns, strict=True)]
            errors = [
                eps * (abs(c) + sum(map(abs, column), Decimal(0)) / call.n) + (call.n + 2) * unit
                for c, column in zip(v, columns, strict=True)
            ]
            last, earlier = earlier, earlier + _norm(errors)
        for j, (result, exact, error) in enumerate(zip(_decimals(call.out), v, errors, strict=True)):
            check(abs(result - exact) <= error + 2 * last, f"column {j}: not the clipped center")


def judge_clip(call: Call) -> None:
    """Rows times ``min(1, max_norm / norm)``."""
    with localcontext(_CONTEXT):
        _check_clipped(call, Decimal(call.settings["max_norm"]))


def judge_arc(call: Call) -> None:
    """Rows clipped to the length of the longest but ``2 f (n-f) / n``: at most n-f forged rows are among those."""
    with localcontext(_CONTEXT):
        norms = [_norm(_decimals(row)) for row in call.X]
        limit = sorted(norms, reverse=True)[2 * call.f * (call.n - call.f) // call.n]
        _check_clipped(call, limit)
        if call.honest is not None:
            longest = max(norm for norm, regular in zip(norms, call.honest, strict=True) if regular)
            check(limit <= longest, "rows longer than every honest one are left")


def _check_clipped(call: Call, limit: Decimal) -> None:
    """In a context of many digits."""
    unit = Decimal(2) ** -call.bits
    eps = (16 + call.X.shape[1]) * Decimal(2) ** -call.digits
    for i, (before, after) in enumerate(zip(call.X, call.out, strict=True)):
        row = _decimals(before)
        norm = _norm(row)
        factor = min(Decimal(1), limit / norm) if norm else Decimal(1)
        for x, y in zip(row, _decimals(after), strict=True):
            check(abs(y - factor * x) <= eps * abs(factor * x) + 2 * unit, f"row {i}: not the clipped row")


def judge_nearest_neighbor_mixing(call: Call) -> None:
    """Means of the n-f nearest rows. Those nearest to an honest row are no farther than the farthest honest one."""
    assert call.info.selected is not None
    size = call.n - call.f
    for i, chosen in enumerate(call.info.selected.tolist()):
        check(i in chosen and len(set(chosen)) == size, f"row {i}: not itself and {size - 1} others were chosen")
        radius = sorted(call.squared[i])[size - 1]
        for k in chosen:
            check(call.is_about_least(call.squared[i, k], radius), f"row {i}: row {k} is not among the nearest")
        for j, result in enumerate(call.result[i]):
            _check_mean(call, call.P[chosen, j], [1] * size, result, f"row {i}, column {j}")


def judge_bucketing(call: Call) -> None:
    """Means of groups of s rows."""
    assert call.info.selected is not None
    s, order = call.settings["s"], call.info.selected.tolist()
    check(sorted(order) == list(range(call.n)), "not every row is in one group")
    _check_groups(call, [order[at : at + s] for at in range(0, call.n, s)])


def judge_resampling(call: Call) -> None:
    """Means of n groups of s rows, each row s times."""
    assert call.info.selected is not None
    s, groups = call.settings["s"], call.info.selected
    check(sorted(groups.ravel().tolist()) == [i for i in range(call.n) for _ in range(s)], f"not every row {s} times")
    check(groups.shape == (call.n, s), f"not {call.n} groups of {s} rows")
    _check_groups(call, groups.tolist())


def _check_groups(call: Call, groups: Sequence[Sequence[int]]) -> None:
    check(len(groups) == len(call.result), f"{len(call.result)} rows instead of {len(groups)}")
    for b, (group, line) in enumerate(zip(groups, call.result, strict=True)):
        for j, result in enumerate(line):
            _check_mean(call, call.P[group, j], [1] * len(group), result, f"group {b}, column {j}")
