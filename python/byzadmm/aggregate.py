"""Robust rules: one vector from n workers' vectors, right as long as the liars among them are few.

Rows are workers. A row with NaN or an infinity is a Byzantine row: by default it is left out and ``f`` shrinks by it.
Inputs are never modified, results have the kind and dtype of the input, ties go to the lowest index, and the same bits
come out for every thread count. ``docs/rules.md`` has definitions, legal ``f`` and breakdown points.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from byzadmm import _core
from byzadmm._arrays import Array, as_float, as_rows, prepare_out, wrapper_of
from byzadmm._validation import check_choice, check_int, check_real

__all__ = ["Info", "geometric_median", "max_f", "mean", "median", "trimmed_mean"]

NONFINITE = ("exclude", "raise", "propagate")
_EVEN = ("mid", "low", "high")
_MAX_THREADS = 4096


@dataclass(frozen=True)
class Info:
    """What a rule can tell about its result; a field that the rule does not have is None.

    Attributes
    ----------
    kept : row indices that took part
    excluded : rows left out because they were not finite
    weights : each kept row's share in the result
    iterations, converged, residual : how an iterative rule ended
    """

    kept: NDArray[np.int64]
    excluded: NDArray[np.int64]
    weights: NDArray[np.float64] | None = None
    iterations: int | None = None
    converged: bool | None = None
    residual: float | None = None


#: Largest number of Byzantine rows among n that each rule bears.
_MAX_F: dict[str, Callable[[int], int]] = {
    "mean": lambda n: 0,
    "median": lambda n: (n - 1) // 2,
    "trimmed_mean": lambda n: (n - 1) // 2,
    "geometric_median": lambda n: (n - 1) // 2,
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
    return _MAX_F[rule](check_int(n, "n", low=1))


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
        bad = np.flatnonzero(_core.nonfinite_rows(self.rows, self.threads)).tolist()
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
        self.kept = [i for i in range(self.n) if i not in set(bad)]
        return True

    def info(self, **details: Any) -> Info:
        kept = range(self.n) if self.kept is None else self.kept
        return Info(np.array(kept, np.int64), np.array(self.excluded, np.int64), **details)


def _few(rows: list[int]) -> str:
    return f"{rows[:5]}" if len(rows) <= 5 else f"{rows[:5]} and {len(rows) - 5} more"


def _begin(rule: str, X: Any, out: Any, nonfinite: str, threads: Any) -> _Call:
    rows, n, d, dtype = as_rows(X)
    result = prepare_out(out, (d,), dtype, rows if isinstance(rows, list) else [rows], [X])
    check_choice(nonfinite, "nonfinite", NONFINITE)
    return _Call(rule, rows, n, d, result, nonfinite, check_int(threads, "threads", low=0, high=_MAX_THREADS))


def _finish(call: _Call, X: Any, out: Any, return_info: bool, **details: Any) -> Any:
    result = out if out is not None else wrapper_of(X)(call.out)
    return (result, call.info(**details)) if return_info else result


def _check_weights(weights: Any, n: int) -> NDArray[np.float64] | None:
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
    w = _check_weights(weights, call.n)
    if _core.mean(call.rows, call.out, w, None, call.threads):
        if call.exclude_nonfinite(call.n - 1):
            w = _kept_weights(w, call)
        if _core.mean(call.rows, call.out, w, call.kept, call.threads):
            scaled = np.empty_like(call.out)  # finite where only the sum overflowed
            _core.mean_scaled(call.rows, scaled, w, call.kept, call.threads)
            np.copyto(call.out, scaled, where=~np.isfinite(call.out))
    shares = np.full(call.n - len(call.excluded), 1.0) if w is None else w
    return _finish(call, X, out, return_info, weights=shares / shares.max() / np.sum(shares / shares.max()))


def _kept_weights(w: NDArray[np.float64] | None, call: _Call) -> NDArray[np.float64] | None:
    if w is None:
        return None
    left = np.ascontiguousarray(w[call.kept])
    if not np.any(left > 0):
        raise ValueError(f"{call.rule}: every finite row has weight 0")
    return left


def median(
    X: Any,
    *,
    even: str = "mid",
    nonfinite: str = "exclude",
    return_info: bool = False,
    out: Any = None,
    threads: int = 0,
) -> Any:
    """The coordinate-wise median.

    ``out_j = median_i x_ij``

    Parameters
    ----------
    X : (n, d) array, or a list of n arrays (d,)
    even : "mid", "low" or "high"
        For an even number of rows: the midpoint of the middle two, the lower or the upper one.
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
    mode = _EVEN.index(check_choice(even, "even", _EVEN))
    if _core.median(call.rows, call.out, mode, None, call.threads):
        if call.exclude_nonfinite(max_f("median", call.n)):
            _core.median(call.rows, call.out, mode, call.kept, call.threads)
        elif nonfinite == "propagate":
            _core.mark_nan_columns(call.rows, call.out, call.threads)
    return _finish(call, X, out, return_info)


def trimmed_mean(
    X: Any, *, f: int, nonfinite: str = "exclude", return_info: bool = False, out: Any = None, threads: int = 0
) -> Any:
    """The coordinate-wise mean without the ``f`` smallest and the ``f`` largest values.

    ``out_j = (1/(n-2f)) sum of x_(f+1)j .. x_(n-f)j`` over the sorted column, summed in float64.

    Parameters
    ----------
    X : (n, d) array, or a list of n arrays (d,)
    f : int, 0 <= 2f < n
        Declared number of Byzantine workers.
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
    if _core.trimmed_mean(call.rows, call.out, cut, None, call.threads):
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

    ``argmin_z sum_i w_i ||x_i - z||``, the true minimiser, without smoothing, at any scale of the data.

    Parameters
    ----------
    X : (n, d) array, or a list of n arrays (d,)
    weights : (n,) array, optional
    tol : float > 0
        Relative: bound on the optimality residual ``||sum w_i (x_i - z)/||x_i - z|| || / sum w_i`` and on the last
        step relative to the typical distance.
    max_iter : int
    nonfinite, return_info
        As in :func:`mean`; at most ``(n-1)//2`` rows can be left out. The info has ``iterations``, ``converged``,
        ``residual`` and ``weights``, the convex combination of the rows that the result is.

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
    w = _check_weights(weights, call.n)
    tol = check_real(tol, "tol", low=0.0, strict=True)
    max_iter = check_int(max_iter, "max_iter", low=1, high=2**31 - 1)
    ended = _solve_geometric_median(call, w, tol, max_iter)
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
