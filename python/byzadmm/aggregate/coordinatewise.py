"""Rules that work on every coordinate by itself: mean, median, trimmed mean, majority of signs."""

from __future__ import annotations

from typing import Any

import numpy as np

from byzadmm import _core
from byzadmm._core import Stage
from byzadmm._internal.arrays import Array
from byzadmm._internal.validation import check_choice
from byzadmm.aggregate._call import Call
from byzadmm.aggregate._registry import Size, minority, register
from byzadmm.aggregate._weights import kept_weights, scaled_weights, voters, voting

__all__ = ["mean", "median", "sign_majority", "trimmed_mean"]


@register(
    "Average",
    max_f=lambda n: 0,
    stages=lambda of, weights: [Stage("mean", weights=scaled_weights(weights, of.n))],
)
def mean(
    X: Any,
    *,
    weights: Any = None,
    nonfinite: str = "exclude",
    return_info: bool = False,
    out: Any = None,
    threads: int = 0,
) -> Any:
    """Weighted mean of the rows: not robust, the baseline of every comparison.

    ``sum_i w_i x_i / sum_i w_i``, summed in float64.

    Parameters
    ----------
    X : (n, d) array, or a list of n arrays (d,)
    weights : (n,) array, optional
        Non-negative; by default all equal.
    nonfinite : "exclude", "raise" or "propagate"
        Rows with NaN or infinities are excluded, are an error, or are used as they are.
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
    call = Call("mean", X, nonfinite=nonfinite, return_info=return_info, out=out, threads=threads)
    w = scaled_weights(weights, call.n)
    call.compute(lambda: _core.mean(call.rows, call.out, kept_weights(call, w), call.kept, call.threads), call.n - 1)

    def details() -> dict[str, Any]:
        left = kept_weights(call, w)
        shares = np.ones(call.n_kept) if left is None else left / left.max()
        return {"weights": shares / np.sum(shares)}

    return call.result(details)


def _median_stages(of: Size, *, even: str, weights: Any) -> list[Stage]:
    mode = _core.EVEN.index(check_choice(even, "even", _core.EVEN))
    if weights is None:
        return [Stage("median", mode)]
    return [Stage("weigh", weights=voting(weights, of.n)), Stage("weighted_median", mode)]


@register("Median", max_f=minority, stages=_median_stages)
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
    """Median of every coordinate.

    ``out_j = median_i x_ij``; with weights, the value with half of the weight on either side.

    Parameters
    ----------
    X : (n, d) array, or a list of n arrays (d,)
    even : "mid", "low" or "high"
        For an even number of rows: the midpoint of the middle two, the lower or the upper one.
    weights : (n,) array, optional
        Non-negative; by default all equal. See :func:`cap_weights`.
    nonfinite, return_info
        As in :func:`mean`; at most ``(n-1)//2`` rows can be excluded.

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
    call = Call("median", X, nonfinite=nonfinite, return_info=return_info, out=out, threads=threads)
    mode = check_choice(even, "even", _core.EVEN)
    w, tolerated = scaled_weights(weights, call.n), minority(call.n)
    if w is not None:
        having = voters(call, w, tolerated)
        if having is None:
            call.out.fill(np.nan)
        else:
            _core.weighted_median(call.rows, call.out, having[0], mode, having[1], call.threads)
    elif call.compute(lambda: _core.median(call.rows, call.out, mode, call.kept, call.threads), tolerated):
        _core.mark_nan_columns(call.rows, call.out, call.threads)
    return call.result()


def _trimmed_mean_stages(of: Size, *, f: int, weights: Any) -> list[Stage]:
    if weights is None:
        return [Stage("trimmed_mean", f=f)]
    w = voting(weights, of.n)
    cut = f / of.n * w[w > 0].sum()
    return [Stage("weigh", weights=w), Stage("weighted_trimmed_mean", value=cut)]


@register("TrMean", max_f=minority, stages=_trimmed_mean_stages)
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
    """Mean of every coordinate without its ``f`` smallest and ``f`` largest values.

    ``out_j = (1/(n-2f)) sum of x_(f+1)j .. x_(n-f)j`` over the sorted column, summed in float64.

    Parameters
    ----------
    X : (n, d) array, or a list of n arrays (d,)
    f : int, 0 <= 2f < n
        Declared number of Byzantine workers.
    weights : (n,) array, optional
        Non-negative. The share ``f/n`` of the whole weight is then cut off at either end of a column; a value that
        lies across the cut keeps part of its weight. See :func:`cap_weights`.
    nonfinite, return_info
        As in :func:`mean`; at most ``f`` rows can be excluded, and ``f`` is lowered by their number.

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
    call = Call("trimmed_mean", X, nonfinite=nonfinite, return_info=return_info, out=out, threads=threads)
    declared = call.check_f(f)
    w = scaled_weights(weights, call.n)
    if w is not None:
        having = voters(call, w, declared)
        if having is None:
            call.out.fill(np.nan)
        else:
            share = (declared - len(call.excluded)) / call.n_kept
            cut = share * having[0].sum()
            _core.weighted_trimmed_mean(call.rows, call.out, having[0], cut, having[1], call.threads)
    elif call.compute(lambda: trim(call, call.out, declared), declared):
        _core.mark_nan_columns(call.rows, call.out, call.threads)
    return call.result()


@register("SignMajority", max_f=minority, signs=True, stages=lambda of: [Stage("sign_majority")])
def sign_majority(
    X: Any, *, nonfinite: str = "exclude", return_info: bool = False, out: Any = None, threads: int = 0
) -> Any:
    """Sign that most values have, in every coordinate.

    ``out_j = sgn(sum_i sgn(x_ij))``: 1, -1, or 0 where as many values are positive as negative. A number has its sign
    however small it is, and -0.0 has none. The result has no scale: a step along it is as long as the step size says.

    Parameters
    ----------
    X : (n, d) array, or a list of n arrays (d,)
    nonfinite, return_info
        As in :func:`mean`; at most ``(n-1)//2`` rows can be excluded. With ``"propagate"`` an infinity has its sign.

    Returns
    -------
    (d,) array of the kind and dtype of ``X``

    Examples
    --------
    >>> from byzadmm import aggregate
    >>> aggregate.sign_majority([[0.1, -3.0], [1e-320, 2.0], [-1e9, 0.0]]).tolist()
    [1.0, 0.0]

    References
    ----------
    Bernstein, Zhao, Azizzadenesheli, Anandkumar, "signSGD with majority vote is communication efficient and fault
    tolerant", ICLR 2019.
    """
    call = Call("sign_majority", X, nonfinite=nonfinite, return_info=return_info, out=out, threads=threads)
    if call.compute(lambda: _core.sign_majority(call.rows, call.out, call.kept, call.threads), minority(call.n)):
        _core.mark_nan_columns(call.rows, call.out, call.threads)
    return call.result()


def trim(call: Call, to: Array, f: int) -> bool:
    """Trimmed mean of the kept rows; excluded ones count among the ``f``. True: a sum was not finite."""
    return _core.trimmed_mean(call.rows, to, f - len(call.excluded), call.kept, call.threads)
