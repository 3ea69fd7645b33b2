"""Robust rules: one vector from n workers' vectors, right as long as the liars among them are few.

Rows are workers. A row with NaN or an infinity is a Byzantine row: by default it is left out and ``f`` shrinks by it.
Inputs are never modified, results have the kind and dtype of the input (float16 and bfloat16 are computed in float32,
and an ``out`` for them is float32), ties go to the lowest index, and the same bits
come out for every thread count. ``docs/rules.md`` has definitions, legal ``f`` and breakdown points.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from byzadmm import _core
from byzadmm._internal.arrays import Array, as_float, as_rows, prepare_out, wrapper_of
from byzadmm._internal.validation import check_choice, check_int, check_real, check_threads

__all__ = [
    "Info",
    "bucketing",
    "bulyan",
    "cap_weights",
    "centered_clip",
    "clip",
    "geometric_median",
    "krum",
    "max_f",
    "meamed",
    "mean",
    "median",
    "medoid",
    "multi_krum",
    "nearest_neighbor_mixing",
    "phocas",
    "trimmed_mean",
]

NONFINITE = ("exclude", "raise", "propagate")


@dataclass(frozen=True)
class Info:
    """What a rule can tell about its result; a field that the rule does not have is None.

    Attributes
    ----------
    kept : row indices that took part
    excluded : rows left out because they were not finite
    weights : each kept row's share in the result
    iterations, converged, residual : how an iterative rule ended
    selected : rows that were chosen, best first; for nearest-neighbour mixing one line of neighbours per kept row, for
        bucketing the kept rows in the order of the buckets
    scores : what the choice went by, for each kept row
    distances : between kept rows (squared), or the length of each kept row before it was clipped; what float64 cannot
        hold is infinite or 0 here and in the scores, while the choice went by the true numbers
    """

    kept: NDArray[np.int64]
    excluded: NDArray[np.int64]
    weights: NDArray[np.float64] | None = None
    iterations: int | None = None
    converged: bool | None = None
    residual: float | None = None
    selected: NDArray[np.int64] | None = None
    scores: NDArray[np.float64] | None = None
    distances: NDArray[np.float64] | None = None


#: Largest number of Byzantine rows among n that each rule bears.
_MAX_F: dict[str, Callable[[int], int]] = {
    "mean": lambda n: 0,
    "median": lambda n: (n - 1) // 2,
    "trimmed_mean": lambda n: (n - 1) // 2,
    "geometric_median": lambda n: (n - 1) // 2,
    "krum": lambda n: (n - 3) // 2,
    "multi_krum": lambda n: (n - 3) // 2,
    "medoid": lambda n: (n - 1) // 2,
    "bulyan": lambda n: (n - 3) // 4,
    "meamed": lambda n: (n - 1) // 2,
    "phocas": lambda n: (n - 1) // 2,
    "centered_clip": lambda n: (n - 1) // 2,
    # Pre-aggregations: the rule that follows may bear less.
    "nearest_neighbor_mixing": lambda n: (n - 1) // 2,
    "bucketing": lambda n: (n - 1) // 2,
    "clip": lambda n: (n - 1) // 2,
}


def max_f(rule: str, n: int) -> int:
    """The largest legal ``f`` of a rule for ``n`` workers.

    Examples
    --------
    >>> from byzadmm import aggregate
    >>> aggregate.max_f("trimmed_mean", 20)
    9
    """
    check_choice(rule, "rule", _MAX_F)
    most = _MAX_F[rule](check_int(n, "n", low=1))
    if most < 0:
        raise ValueError(f"{rule}: expected at least 3 workers, got n={n}")
    return most


def check_f(rule: str, f: Any, n: int) -> int:
    number = check_int(f, "f", low=0)
    most = max_f(rule, n)
    if number > most:
        raise ValueError(f"{rule}: f={number} is too large for n={n} workers; at most {most}")
    return number


@dataclass
class _Call:
    """One call of a rule: its rows, where the result goes, and what to do about rows that are not finite."""

    rule: str
    rows: Array | list[Array]
    n: int
    d: int
    out: Array
    nonfinite: str
    threads: int
    kept: list[int] | None = None
    excluded: list[int] = field(default_factory=list)

    def exclude_nonfinite(self, bearable: int) -> bool:
        """Look closer after a sum was not finite. True: rows were left out, run again without them."""
        odd = np.asarray(_core.nonfinite_rows(self.rows, self.threads))
        bad = np.flatnonzero(odd).tolist()
        if not bad or self.nonfinite == "propagate":
            return False
        if self.nonfinite == "raise":
            raise ValueError(f"{self.rule}: rows {_few(bad)} hold NaN or infinite values")
        if len(bad) > bearable:
            raise ValueError(
                f"{self.rule}: {len(bad)} of {self.n} rows hold NaN or infinite values; "
                f"at most {bearable} can be left out"
            )
        self.excluded = bad
        self.kept = np.flatnonzero(~odd).tolist()
        return True

    def info(self, **details: Any) -> Info:
        kept = range(self.n) if self.kept is None else self.kept
        return Info(np.array(kept, np.int64), np.array(self.excluded, np.int64), **details)


def _few(rows: list[int]) -> str:
    return f"{rows[:5]}" if len(rows) <= 5 else f"{rows[:5]} and {len(rows) - 5} more"


def _begin(rule: str, X: Any, out: Any, nonfinite: str, threads: Any, *, gives_rows: bool = False) -> _Call:
    """Check what every rule takes; the ``out`` of a rule that gives rows waits for their number (``_prepare_rows``)."""
    rows, n, d, dtype = as_rows(X)
    result = np.empty(0, dtype) if gives_rows else prepare_out(out, (d,), dtype, _arrays_of(rows), [X])
    check_choice(nonfinite, "nonfinite", NONFINITE)
    return _Call(rule, rows, n, d, result, nonfinite, check_threads(threads))


def _arrays_of(rows: Array | list[Array]) -> list[Array]:
    return rows if isinstance(rows, list) else [rows]


def _prepare_rows(call: _Call, X: Any, out: Any, n_rows: int) -> None:
    call.out = prepare_out(out, (n_rows, call.d), call.out.dtype, _arrays_of(call.rows), [X])


def _finish(call: _Call, X: Any, out: Any, return_info: bool, **details: Any) -> Any:
    result = out if out is not None else wrapper_of(X)(call.out)
    return (result, call.info(**details)) if return_info else result


def check_weights(weights: Any, n: int) -> NDArray[np.float64] | None:
    if weights is None:
        return None
    checked = as_float(weights, "weights", np.dtype(np.float64))
    if checked.shape != (n,):
        raise ValueError(f"weights: expected shape ({n},), got {checked.shape}")
    if not np.all(np.isfinite(checked)) or np.any(checked < 0) or not np.any(checked > 0):
        raise ValueError("weights: expected finite numbers >= 0, not all zero")
    # By a power of two, which costs no accuracy: products with tiny weights keep their digits, sums stay finite.
    return np.asarray(np.ldexp(checked, -int(np.frexp(checked.max())[1])))


def mean(
    X: Any,
    *,
    weights: Any = None,
    nonfinite: str = "exclude",
    return_info: bool = False,
    out: Any = None,
    threads: int = 0,
) -> Any:
    """The weighted mean: not robust, the baseline of every comparison.

    ``sum_i w_i x_i / sum_i w_i``, summed in float64.

    Parameters
    ----------
    X : (n, d) array, or a list of n arrays (d,)
    weights : (n,) array, optional
        Non-negative; all equal without it.
    nonfinite : "exclude", "raise" or "propagate"
        Rows with NaN or infinities: left out, an error, or used as they are.
    return_info : bool
        Also return an :class:`Info`.

    Returns
    -------
    (d,) array of the kind and dtype of ``X``

    Examples
    --------
    >>> from byzadmm import aggregate
    >>> aggregate.mean([[1.0, 2.0], [3.0, 6.0]]).tolist()
    [2.0, 4.0]
    """
    call = _begin("mean", X, out, nonfinite, threads)
    w = check_weights(weights, call.n)
    if _core.mean(call.rows, call.out, w, None, call.threads) and call.exclude_nonfinite(call.n - 1):
        w = _kept_weights(w, call)
        _core.mean(call.rows, call.out, w, call.kept, call.threads)
    shares = np.full(call.n - len(call.excluded), 1.0) if w is None else w
    return _finish(call, X, out, return_info, weights=shares / shares.max() / np.sum(shares / shares.max()))


def _kept_weights(w: NDArray[np.float64] | None, call: _Call) -> NDArray[np.float64] | None:
    if w is None or call.kept is None:
        return w
    left = np.ascontiguousarray(w[call.kept])
    if not np.any(left > 0):
        raise ValueError(f"{call.rule}: every finite row has weight 0")
    return left


def _voters(call: _Call, w: NDArray[np.float64], bearable: int) -> tuple[NDArray[np.float64], list[int] | None]:
    """Weights and indices of the rows that have a say: finite, of positive weight. None: a NaN is to be passed on."""
    if np.any(_core.nonfinite_rows(call.rows, call.threads)):
        if not call.exclude_nonfinite(bearable):
            return w, None
        w = w[call.kept or []]
    if not np.any(w > 0):
        raise ValueError(f"{call.rule}: every finite row has weight 0")
    here = range(call.n) if call.kept is None else call.kept
    # Largest weight 1: their sum is finite.
    return np.ascontiguousarray(w[w > 0] / w.max()), [i for i, share in zip(here, w, strict=True) if share > 0]


def median(
    X: Any,
    *,
    even: str = "mid",
    weights: Any = None,
    nonfinite: str = "exclude",
    return_info: bool = False,
    out: Any = None,
    threads: int = 0,
) -> Any:
    """The coordinate-wise median.

    ``out_j = median_i x_ij``; with weights, the value with half of the weight on either side.

    Parameters
    ----------
    X : (n, d) array, or a list of n arrays (d,)
    even : "mid", "low" or "high"
        For an even number of rows: the midpoint of the middle two, the lower or the upper one.
    weights : (n,) array, optional
        Non-negative; all equal without it. See :func:`cap_weights`.
    nonfinite, return_info
        As in :func:`mean`; at most ``(n-1)//2`` rows can be left out.

    Returns
    -------
    (d,) array of the kind and dtype of ``X``

    Examples
    --------
    >>> from byzadmm import aggregate
    >>> aggregate.median([[1.0], [2.0], [1e9]]).tolist()
    [2.0]

    References
    ----------
    Yin, Chen, Kannan, Bartlett, "Byzantine-robust distributed learning", ICML 2018.
    """
    call = _begin("median", X, out, nonfinite, threads)
    mode = check_choice(even, "even", _core.EVEN)
    w = check_weights(weights, call.n)
    if w is not None:
        positive, voters = _voters(call, w, max_f("median", call.n))
        if voters is None:
            call.out.fill(np.nan)
        else:
            _core.weighted_median(call.rows, call.out, positive, mode, voters, call.threads)
    elif _core.median(call.rows, call.out, mode, None, call.threads):
        if call.exclude_nonfinite(max_f("median", call.n)):
            _core.median(call.rows, call.out, mode, call.kept, call.threads)
        elif nonfinite == "propagate":
            _core.mark_nan_columns(call.rows, call.out, call.threads)
    return _finish(call, X, out, return_info)


def trimmed_mean(
    X: Any,
    *,
    f: int,
    weights: Any = None,
    nonfinite: str = "exclude",
    return_info: bool = False,
    out: Any = None,
    threads: int = 0,
) -> Any:
    """The coordinate-wise mean without the ``f`` smallest and the ``f`` largest values.

    ``out_j = (1/(n-2f)) sum of x_(f+1)j .. x_(n-f)j`` over the sorted column, summed in float64.

    Parameters
    ----------
    X : (n, d) array, or a list of n arrays (d,)
    f : int, 0 <= 2f < n
        Declared number of Byzantine workers.
    weights : (n,) array, optional
        Non-negative. The share ``f/n`` of the whole weight is then cut off at either end of a column, in part where a
        value lies across the cut. See :func:`cap_weights`.
    nonfinite, return_info
        As in :func:`mean`; at most ``f`` rows can be left out, and ``f`` shrinks by them.

    Returns
    -------
    (d,) array of the kind and dtype of ``X``

    Examples
    --------
    >>> from byzadmm import aggregate
    >>> aggregate.trimmed_mean([[1.0], [2.0], [4.0], [1e9]], f=1).tolist()
    [3.0]

    References
    ----------
    Yin, Chen, Kannan, Bartlett, "Byzantine-robust distributed learning", ICML 2018.
    """
    call = _begin("trimmed_mean", X, out, nonfinite, threads)
    cut = check_f("trimmed_mean", f, call.n)
    w = check_weights(weights, call.n)
    if w is not None:
        positive, voters = _voters(call, w, cut)
        if voters is None:
            call.out.fill(np.nan)
        else:
            share = (cut - len(call.excluded)) / (call.n - len(call.excluded))
            _core.weighted_trimmed_mean(call.rows, call.out, positive, share * positive.sum(), voters, call.threads)
    elif _core.trimmed_mean(call.rows, call.out, cut, None, call.threads):
        if call.exclude_nonfinite(cut):
            _core.trimmed_mean(call.rows, call.out, cut - len(call.excluded), call.kept, call.threads)
        elif nonfinite == "propagate":
            _core.mark_nan_columns(call.rows, call.out, call.threads)
    return _finish(call, X, out, return_info)


def geometric_median(
    X: Any,
    *,
    weights: Any = None,
    tol: float = 1e-6,
    max_iter: int = 1000,
    nonfinite: str = "exclude",
    return_info: bool = False,
    out: Any = None,
    threads: int = 0,
) -> Any:
    """The point with the least sum of distances to the rows.

    ``argmin_z sum_i w_i ||x_i - z||``, the true minimiser, without smoothing, for finite rows of any size.

    Parameters
    ----------
    X : (n, d) array, or a list of n arrays (d,)
    weights : (n,) array, optional
    tol : float > 0
        Relative: bound on the optimality residual ``||sum w_i (x_i - z)/||x_i - z|| || / sum w_i`` and on the last
        step relative to the typical distance.
    max_iter : int
    nonfinite, return_info
        As in :func:`mean`; at most ``(n-1)//2`` rows can be left out. The info has ``iterations``; ``converged``:
        whether the tolerance was met before the result was rounded to its dtype; ``residual``: that of the rounded
        result, above ``tol`` where rows differ in their last digits; ``weights``: the convex combination of the rows
        that the result is.

    Returns
    -------
    (d,) array of the kind and dtype of ``X``; a data point that is the minimiser is returned exactly

    Examples
    --------
    >>> from byzadmm import aggregate
    >>> aggregate.geometric_median([[1.0, 2.0, 3.0], [4.0, 5.0, 6.0], [7.0, 8.0, 9.0]]).tolist()
    [4.0, 5.0, 6.0]

    References
    ----------
    Vardi, Zhang, "The multivariate L1-median and associated data depth", PNAS 97(4), 2000.
    """
    call = _begin("geometric_median", X, out, nonfinite, threads)
    w = check_weights(weights, call.n)
    tol = check_real(tol, "tol", low=0.0, strict=True)
    max_iter = check_int(max_iter, "max_iter", low=1, high=2**31 - 1)
    # The solver does not look at rows of weight 0; one that is not finite is treated like any other such row.
    overlooked = w is not None and np.any(w == 0) and np.any(_core.nonfinite_rows(call.rows, call.threads))
    ended = {"iterations": -1} if overlooked else _solve_geometric_median(call, w, tol, max_iter)
    if ended["iterations"] < 0:  # a row is not finite
        if call.exclude_nonfinite(max_f("geometric_median", call.n)):
            ended = _solve_geometric_median(call, _kept_weights(w, call), tol, max_iter)
        else:
            call.out.fill(np.nan)
            ended = {"weights": None, "iterations": 0, "converged": False, "residual": np.nan}
    return _finish(call, X, out, return_info, **ended)


def _solve_geometric_median(
    call: _Call, w: NDArray[np.float64] | None, tol: float, max_iter: int
) -> dict[str, Any]:
    rows = list(range(call.n)) if call.kept is None else call.kept
    voters = np.arange(len(rows)) if w is None else np.flatnonzero(w > 0)  # a row of weight 0 has no say
    iterations, converged, residual, shares = _core.geometric_median(
        call.rows,
        call.out,
        None if w is None else np.ascontiguousarray(w[voters]),
        tol,
        max_iter,
        [rows[i] for i in voters],
        call.threads,
    )
    spread = np.zeros(len(rows))
    spread[voters] = shares
    return {"weights": spread, "iterations": iterations, "converged": converged, "residual": residual}


def cap_weights(weights: Any, cap: float) -> NDArray[np.float64]:
    """Weights of at most ``cap``: a bound on what a worker may claim about itself.

    ``min(w_i, cap)``. The rules bear weights as long as the liars hold at most the share ``f/n`` of their sum; sizes
    that workers report themselves promise nothing until they are capped.

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
    checked = as_float(weights, "weights", np.dtype(np.float64))
    if checked.ndim != 1:
        raise ValueError(f"weights: expected shape (n,), got {checked.shape}")
    check_weights(checked, len(checked))
    return np.minimum(checked, check_real(cap, "cap", low=0.0, strict=True))


# --- rules that go by the distances between rows ----------------------------------------------------------------------


@dataclass
class _Wide:
    """Non-negative numbers ``value * 2**exponent``, each with its own exponent; without exponents, plain numbers."""

    value: NDArray[np.float64]
    exponent: NDArray[np.int32] | None

    def order(self) -> NDArray[np.int64]:
        """Indices along the last axis, smallest number first, the lowest index first among equals."""
        if self.exponent is None:
            return np.argsort(self.value, axis=-1, kind="stable")
        return np.lexsort((self.value, self.exponent), axis=-1)

    def as_float(self) -> NDArray[np.float64]:
        """As float64: what is out of its range is infinite or 0."""
        with np.errstate(over="ignore", under="ignore"):
            return self.value if self.exponent is None else np.ldexp(self.value, self.exponent)


def _distances(call: _Call, tolerable: int) -> _Wide:
    """All squared distances, once; rows that are not finite are excluded, or infinitely far away (``nonfinite``)."""
    squared, exponent, bad = _core.squared_distances(call.rows, call.threads)
    if bad.any() and call.exclude_nonfinite(tolerable):
        finite = np.ix_(~bad, ~bad)
        squared, exponent = squared[finite], None if exponent is None else exponent[finite]
    return _Wide(squared, exponent)


def _original(call: _Call, index: Any) -> NDArray[np.int64]:
    """Indices of kept rows as indices of rows."""
    chosen: NDArray[np.int64] = np.asarray(index, np.int64)
    return chosen if call.kept is None else np.array(call.kept, np.int64)[chosen]


def _copy_row(call: _Call, index: int) -> None:
    np.copyto(call.out, call.rows[index])


def _mean_of(call: _Call, keep: list[int] | None, w: NDArray[np.float64] | None, to: Array) -> None:
    _core.mean(call.rows, to, w, keep, call.threads)


def _krum_scores(call: _Call, f: int, neighbors: Any, weights: Any) -> tuple[_Wide, _Wide, NDArray[np.float64] | None]:
    """Squared distances, scores and weights of the kept rows; a row of weight 0 has an infinite score."""
    nearest = call.n - f - 2
    if neighbors is not None:
        nearest = check_int(neighbors, "neighbors", low=1, high=call.n - f - 1)
    w = check_weights(weights, call.n)
    distances = _distances(call, f)
    w = _kept_weights(w, call)
    mass = None if w is None else np.ascontiguousarray(w / w.max() / np.mean(w / w.max()))
    scores = _core.krum_scores(distances.value, distances.exponent, nearest, mass, float(nearest), call.threads)
    return distances, _Wide(*scores), w


def krum(
    X: Any,
    *,
    f: int,
    neighbors: int | None = None,
    weights: Any = None,
    nonfinite: str = "exclude",
    return_info: bool = False,
    out: Any = None,
    threads: int = 0,
) -> Any:
    """The row that is closest to its nearest others.

    ``x_i`` with the least ``score_i = sum of ||x_i - x_k||^2 over the n-f-2 rows k != i nearest to x_i``.

    Parameters
    ----------
    X : (n, d) array, or a list of n arrays (d,)
    f : int, n >= 2f + 3
        Declared number of Byzantine workers.
    neighbors : int in [1, n-f-1], optional
        How many others count; ``n-f-2`` without it (the paper), ``n-f-1`` is ByzFL's choice.
    weights : (n,) array, optional
        Scaled to mean 1; row k then counts as ``w_k`` rows among the neighbours, nearest first, up to a total of
        ``neighbors``. A row of weight 0 is never chosen. See :func:`cap_weights`.
    nonfinite, return_info
        As in :func:`mean`; at most ``f`` rows can be left out, and ``f`` shrinks by them; ``"propagate"`` takes such
        rows as infinitely far away. The info has ``selected``, ``scores`` and ``distances``.

    Returns
    -------
    (d,) array of the kind and dtype of ``X``, equal to one of its rows; the lowest index among equal scores

    Examples
    --------
    >>> from byzadmm import aggregate
    >>> aggregate.krum([[1.0], [1.25], [0.75], [1.5], [50.0]], f=1).tolist()
    [1.0]

    References
    ----------
    Blanchard, El Mhamdi, Guerraoui, Stainer, "Machine learning with adversaries", NIPS 2017.
    """
    call = _begin("krum", X, out, nonfinite, threads)
    distances, scores, _ = _krum_scores(call, check_f("krum", f, call.n), neighbors, weights)
    selected = _original(call, scores.order()[:1])
    _copy_row(call, int(selected[0]))
    details = {"selected": selected, "scores": scores.as_float(), "distances": distances.as_float()}
    return _finish(call, X, out, return_info, **details)


def multi_krum(
    X: Any,
    *,
    f: int,
    m: int | None = None,
    neighbors: int | None = None,
    weights: Any = None,
    nonfinite: str = "exclude",
    return_info: bool = False,
    out: Any = None,
    threads: int = 0,
) -> Any:
    """The mean of the ``m`` rows with the least Krum scores.

    ``(1/m) sum of x_i over the m rows with the least score_i`` (:func:`krum`), summed in float64.

    Parameters
    ----------
    X : (n, d) array, or a list of n arrays (d,)
    f : int, n >= 2f + 3
    m : int in [1, n-f], optional
        ``n-f`` without it, as in ByzFL; 1 is Krum.
    neighbors, weights, nonfinite, return_info
        As in :func:`krum`; weights weigh the mean as well.

    Returns
    -------
    (d,) array of the kind and dtype of ``X``

    Examples
    --------
    >>> from byzadmm import aggregate
    >>> aggregate.multi_krum([[1.0], [1.5], [0.5], [50.0], [1.0]], f=1).tolist()
    [1.0]

    References
    ----------
    Blanchard, El Mhamdi, Guerraoui, Stainer, "Machine learning with adversaries", NIPS 2017.
    """
    call = _begin("multi_krum", X, out, nonfinite, threads)
    declared = check_f("multi_krum", f, call.n)
    size = call.n - declared if m is None else check_int(m, "m", low=1, high=call.n - declared)
    distances, scores, w = _krum_scores(call, declared, neighbors, weights)
    best = scores.order()[:size]
    if w is not None:
        best = best[w[best] > 0]
    members = np.sort(best)
    _mean_of(call, _original(call, members).tolist(), None if w is None else np.ascontiguousarray(w[members]), call.out)
    details = {"selected": _original(call, best), "scores": scores.as_float(), "distances": distances.as_float()}
    return _finish(call, X, out, return_info, **details)


def medoid(
    X: Any,
    *,
    weights: Any = None,
    nonfinite: str = "exclude",
    return_info: bool = False,
    out: Any = None,
    threads: int = 0,
) -> Any:
    """The row with the least sum of distances to the others.

    ``x_i`` with the least ``sum_k w_k ||x_i - x_k||``: the geometric median, restricted to the rows.

    Parameters
    ----------
    X : (n, d) array, or a list of n arrays (d,)
    weights : (n,) array, optional
        Non-negative; a row of weight 0 is never chosen.
    nonfinite, return_info
        As in :func:`krum`; at most ``(n-1)//2`` rows can be excluded. ``"propagate"`` neither chooses nor counts such
        rows.

    Returns
    -------
    (d,) array of the kind and dtype of ``X``, equal to one of its rows; the lowest index among equal sums

    Examples
    --------
    >>> from byzadmm import aggregate
    >>> aggregate.medoid([[0.0], [1.0], [50.0]]).tolist()
    [1.0]

    References
    ----------
    Kaufman, Rousseeuw, "Clustering by means of medoids", 1987.
    """
    call = _begin("medoid", X, out, nonfinite, threads)
    w = check_weights(weights, call.n)
    distances = _distances(call, max_f("medoid", call.n))
    w = _kept_weights(w, call)
    if call.kept is None and nonfinite == "propagate":
        # An infinitely far row is so for all others alike: no choice for them, no difference to the choice.
        w = np.where(_core.nonfinite_rows(call.rows, call.threads), 0.0, 1.0 if w is None else w)
    best, scores = _core.medoid(call.rows, distances.value, distances.exponent, w, call.kept, call.threads)
    selected = _original(call, [best])
    _copy_row(call, int(selected[0]))
    return _finish(call, X, out, return_info, selected=selected, scores=scores, distances=distances.as_float())


def bulyan(
    X: Any, *, f: int, nonfinite: str = "exclude", return_info: bool = False, out: Any = None, threads: int = 0
) -> Any:
    """Krum, again and again, then the middle of what it chose.

    ``n-2f`` times the row with the least Krum score among the rows left, with ``max(1, left-f-2)`` neighbours; then in
    every coordinate the mean of the ``n-4f`` chosen values closest to their median.

    Parameters
    ----------
    X : (n, d) array, or a list of n arrays (d,)
    f : int, n >= 4f + 3
    nonfinite, return_info
        As in :func:`krum`. The info has ``selected`` and ``distances``.

    Returns
    -------
    (d,) array of the kind and dtype of ``X``

    Examples
    --------
    >>> from byzadmm import aggregate
    >>> aggregate.bulyan([[1.0], [2.0], [3.0], [2.0], [2.0], [2.0], [1e9]], f=1).tolist()
    [2.0]

    References
    ----------
    El Mhamdi, Guerraoui, Rouault, "The hidden vulnerability of distributed learning in Byzantium", ICML 2018.
    """
    call = _begin("bulyan", X, out, nonfinite, threads)
    declared = check_f("bulyan", f, call.n)
    distances = _distances(call, declared)
    declared -= len(call.excluded)
    n = len(distances.value)
    chosen = _core.bulyan_choice(distances.value, distances.exponent, declared, n - 2 * declared)
    selected = _original(call, chosen)
    keep = np.sort(selected).tolist()
    center = np.empty_like(call.out)
    _core.median(call.rows, center, "mid", keep, call.threads)
    _core.closest_mean(call.rows, call.out, center, n - 4 * declared, keep, call.threads)
    return _finish(call, X, out, return_info, selected=selected, distances=distances.as_float())


# --- coordinate-wise rules around a center ----------------------------------------------------------------------------


def _around(call: _Call, f: int, center_of: Callable[[Array, int], bool]) -> None:
    """The mean of the n-f values closest to a center in every column; ``center_of(to, f)`` finds the center."""
    center = np.empty_like(call.out)
    poisoned = False
    if center_of(center, f):
        if call.exclude_nonfinite(f):
            f -= len(call.excluded)
            center_of(center, f)
        poisoned = call.nonfinite == "propagate"
    n = call.n - len(call.excluded)
    _core.closest_mean(call.rows, call.out, center, n - f, call.kept, call.threads)
    if poisoned:
        _core.mark_nan_columns(call.rows, call.out, call.threads)


def meamed(
    X: Any, *, f: int, nonfinite: str = "exclude", return_info: bool = False, out: Any = None, threads: int = 0
) -> Any:
    """The coordinate-wise mean around the median.

    ``out_j = mean of the n-f values x_ij closest to median_i x_ij``, the lowest ``i`` among equally close ones.

    Parameters
    ----------
    X : (n, d) array, or a list of n arrays (d,)
    f : int, 0 <= 2f < n
    nonfinite, return_info
        As in :func:`trimmed_mean`.

    Returns
    -------
    (d,) array of the kind and dtype of ``X``

    Examples
    --------
    >>> from byzadmm import aggregate
    >>> aggregate.meamed([[1.0], [2.0], [3.0], [90.0]], f=1).tolist()
    [2.0]

    References
    ----------
    Xie, Koyejo, Gupta, "Generalized Byzantine-tolerant SGD", 2018.
    """
    call = _begin("meamed", X, out, nonfinite, threads)
    declared = check_f("meamed", f, call.n)
    _around(
        call, declared, lambda to, f: _core.median(call.rows, to, "mid", call.kept, call.threads)
    )
    return _finish(call, X, out, return_info)


def phocas(
    X: Any, *, f: int, nonfinite: str = "exclude", return_info: bool = False, out: Any = None, threads: int = 0
) -> Any:
    """The coordinate-wise mean around the trimmed mean.

    ``out_j = mean of the n-f values x_ij closest to trimmed_mean_f(x_.j)``, the lowest ``i`` among equally close ones.

    Parameters
    ----------
    X : (n, d) array, or a list of n arrays (d,)
    f : int, 0 <= 2f < n
    nonfinite, return_info
        As in :func:`trimmed_mean`.

    Returns
    -------
    (d,) array of the kind and dtype of ``X``

    Examples
    --------
    >>> from byzadmm import aggregate
    >>> aggregate.phocas([[1.0], [2.0], [3.0], [90.0]], f=1).tolist()
    [2.0]

    References
    ----------
    Xie, Koyejo, Gupta, "Phocas: dimensional Byzantine-resilient stochastic gradient descent", 2018.
    """
    call = _begin("phocas", X, out, nonfinite, threads)
    declared = check_f("phocas", f, call.n)
    _around(call, declared, lambda to, f: _core.trimmed_mean(call.rows, to, f, call.kept, call.threads))
    return _finish(call, X, out, return_info)


# --- clipping and mixing ----------------------------------------------------------------------------------------------


def centered_clip(
    X: Any,
    *,
    tau: float,
    center: Any = None,
    n_iter: int = 1,
    nonfinite: str = "exclude",
    return_info: bool = False,
    out: Any = None,
    threads: int = 0,
) -> Any:
    """A center that moves by the mean of clipped differences.

    ``v <- v + (1/n) sum_i (x_i - v) min(1, tau / ||x_i - v||)``, ``n_iter`` times. Nothing is kept between calls: pass
    the last result as ``center`` to go on from it, as the paper does over rounds.

    Parameters
    ----------
    X : (n, d) array, or a list of n arrays (d,)
    tau : float > 0
        How far one row can move the center, times n.
    center : (d,) array, optional
        Where to start; the coordinate-wise median without it, which no minority can move far.
    n_iter : int
    nonfinite, return_info
        As in :func:`mean`; at most ``(n-1)//2`` rows can be left out. The info has ``iterations`` and ``weights``, the
        last ``min(1, ...)`` of each kept row.

    Returns
    -------
    (d,) array of the kind and dtype of ``X``

    Examples
    --------
    >>> from byzadmm import aggregate
    >>> aggregate.centered_clip([[0.0], [1.0], [2.0], [1e9]], tau=2.0, center=[1.0]).tolist()
    [1.5]

    References
    ----------
    Karimireddy, He, Jaggi, "Learning from history for Byzantine robust optimization", ICML 2021.
    """
    call = _begin("centered_clip", X, out, nonfinite, threads)
    tau = check_real(tau, "tau", low=0.0, strict=True)
    n_iter = check_int(n_iter, "n_iter", low=1, high=2**31 - 1)
    start = None
    if center is not None:
        start = as_float(center, "center", call.out.dtype)
        if start.shape != (call.d,):
            raise ValueError(f"center: expected shape ({call.d},), got {start.shape}")
        if not np.all(np.isfinite(start)):
            raise ValueError("center: expected finite numbers")
    # Into an array of its own, for center may be out.
    moving = np.empty_like(call.out)
    suspect = _core.mean(call.rows, moving, None, None, call.threads)
    if suspect and not call.exclude_nonfinite(max_f("centered_clip", call.n)) and nonfinite == "propagate":
        suspect = bool(np.any(_core.nonfinite_rows(call.rows, call.threads)))
    else:
        suspect = False
    if suspect:
        call.out.fill(np.nan)
        return _finish(call, X, out, return_info, iterations=0)
    if start is None:
        _core.median(call.rows, moving, "mid", call.kept, call.threads)
    else:
        np.copyto(moving, start)
    factors = _core.centered_clip(call.rows, moving, tau, n_iter, call.kept, call.threads)
    np.copyto(call.out, moving)
    return _finish(call, X, out, return_info, iterations=n_iter, weights=factors)


def nearest_neighbor_mixing(
    X: Any, *, f: int, nonfinite: str = "exclude", return_info: bool = False, out: Any = None, threads: int = 0
) -> Any:
    """Every row replaced by the mean of its nearest rows (NNM), before a rule is applied.

    ``y_i = (1/(n-f)) sum of x_k over the n-f rows nearest to x_i``, itself included.

    Parameters
    ----------
    X : (n, d) array, or a list of n arrays (d,)
    f : int, 0 <= 2f < n
    nonfinite, return_info
        As in :func:`krum`. The info has ``selected``, one line of neighbours per row, and ``distances``.
    out : (n', d) array, optional
        ``n'`` is the number of rows that are not left out.

    Returns
    -------
    (n', d) array of the kind and dtype of ``X``

    Examples
    --------
    >>> from byzadmm import aggregate
    >>> aggregate.nearest_neighbor_mixing([[0.0], [1.0], [2.0], [50.0]], f=1).tolist()
    [[1.0], [1.0], [1.0], [17.666666666666668]]

    References
    ----------
    Allouah, Farhadkhani, Guerraoui, Gupta, Pinot, Stephan, "Fixing by mixing", AISTATS 2023.
    """
    call = _begin("nearest_neighbor_mixing", X, out, nonfinite, threads, gives_rows=True)
    declared = check_f("nearest_neighbor_mixing", f, call.n)
    distances = _distances(call, declared)
    n = len(distances.value)
    ranked = _Wide(distances.value.copy(), distances.exponent)
    np.fill_diagonal(ranked.value, -1.0)  # a row is its own first neighbor, whatever ties with it
    nearest = ranked.order()[:, : call.n - declared]
    _prepare_rows(call, X, out, n)
    _core.neighbor_means(call.rows, call.out, np.ascontiguousarray(nearest), call.kept, call.threads)
    selected = _original(call, nearest)
    return _finish(call, X, out, return_info, selected=selected, distances=distances.as_float())


def _exclude_rows(call: _Call) -> None:
    """For pre-aggregations that take no ``f``: all but one row may be left out."""
    if np.any(_core.nonfinite_rows(call.rows, call.threads)):
        call.exclude_nonfinite(call.n - 1)


def bucketing(
    X: Any,
    *,
    s: int,
    rng: int | np.random.Generator,
    nonfinite: str = "exclude",
    return_info: bool = False,
    out: Any = None,
    threads: int = 0,
) -> Any:
    """Means of random groups of ``s`` rows, before a rule is applied.

    ``y_b = mean of x_p(i) for i in [b s, (b+1) s)`` with a random order ``p``; the last group may be smaller.

    Parameters
    ----------
    X : (n, d) array, or a list of n arrays (d,)
    s : int >= 1
        ``f`` liars spoil up to ``f`` of the ``ceil(n/s)`` groups.
    rng : int or numpy.random.Generator
        A seed gives the same groups at every call; a generator moves on.
    nonfinite, return_info
        As in :func:`mean`. The info has ``selected``, the rows in the order of the groups.
    out : (ceil(n'/s), d) array, optional

    Returns
    -------
    (ceil(n'/s), d) array of the kind and dtype of ``X``, for ``n'`` rows that are not left out

    Examples
    --------
    >>> from byzadmm import aggregate
    >>> sorted(aggregate.bucketing([[1.0], [1.0], [1.0], [5.0]], s=2, rng=0)[:, 0].tolist())
    [1.0, 3.0]

    References
    ----------
    Karimireddy, He, Jaggi, "Byzantine-robust learning on heterogeneous datasets via bucketing", ICLR 2022.
    """
    call = _begin("bucketing", X, out, nonfinite, threads, gives_rows=True)
    s = check_int(s, "s", low=1)
    if rng is None:  # as in aggregators.Bucketing(s=2)
        raise TypeError(
            "rng: expected a seed or a numpy.random.Generator to draw the groups with, as in Bucketing(s=2, rng=0), "
            "got None; only in training does the run draw for it"
        )
    if not isinstance(rng, np.random.Generator):
        rng = np.random.default_rng(check_int(rng, "rng", low=0))
    _exclude_rows(call)
    n = call.n - len(call.excluded)
    order = _original(call, rng.permutation(n))
    _prepare_rows(call, X, out, -(-n // s))
    for bucket, to in enumerate(call.out):
        _mean_of(call, np.sort(order[bucket * s : (bucket + 1) * s]).tolist(), None, to)
    return _finish(call, X, out, return_info, selected=order)


def clip(
    X: Any, *, max_norm: float, nonfinite: str = "exclude", return_info: bool = False, out: Any = None, threads: int = 0
) -> Any:
    """Rows shortened to a length, before a rule is applied.

    ``y_i = x_i min(1, max_norm / ||x_i||)``

    Parameters
    ----------
    X : (n, d) array, or a list of n arrays (d,)
    max_norm : float > 0
    nonfinite, return_info
        As in :func:`mean`. The info has ``distances``, the lengths before, infinite beyond float64.
    out : (n', d) array, optional

    Returns
    -------
    (n', d) array of the kind and dtype of ``X``, for ``n'`` rows that are not left out; the input is not modified

    Examples
    --------
    >>> from byzadmm import aggregate
    >>> aggregate.clip([[3.0, 4.0], [0.3, 0.4]], max_norm=1).tolist()
    [[0.6000000000000001, 0.8], [0.3, 0.4]]
    """
    call = _begin("clip", X, out, nonfinite, threads, gives_rows=True)
    max_norm = check_real(max_norm, "max_norm", low=0.0, strict=True)
    _exclude_rows(call)
    _prepare_rows(call, X, out, call.n - len(call.excluded))
    norms = _core.clip(call.rows, call.out, max_norm, call.kept, call.threads)
    return _finish(call, X, out, return_info, distances=norms)
