"""The geometric median."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from byzadmm import _core
from byzadmm._core import Stage
from byzadmm._internal.validation import check_int, check_real
from byzadmm.aggregate._call import Call
from byzadmm.aggregate._registry import Size, max_f, minority, register
from byzadmm.aggregate._weights import Weights, kept_weights, scaled_weights

__all__ = ["geometric_median"]


def _stages(of: Size, *, weights: Any, tol: float, max_iter: int) -> list[Stage]:
    tol, max_iter = _checked(tol, max_iter)
    w = scaled_weights(weights, of.n)
    weigh = [] if w is None else [Stage("weigh", weights=w)]
    return [*weigh, Stage("geometric_median", max_iter, value=tol)]


def _checked(tol: Any, max_iter: Any) -> tuple[float, int]:
    return check_real(tol, "tol", low=0.0, strict=True), check_int(max_iter, "max_iter", low=1, high=2**31 - 1)


@register("GeometricMedian", max_f=minority, stages=_stages)
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
    """Point with the smallest sum of distances to the rows.

    ``argmin_z sum_i w_i ||x_i - z||``, the exact minimizer, without smoothing, for finite rows of any size.

    Parameters
    ----------
    X : (n, d) array, or a list of n arrays (d,)
    weights : (n,) array, optional
    tol : float > 0
        Relative: bound on the optimality residual ``||sum w_i (x_i - z)/||x_i - z|| || / sum w_i`` and on the last
        step relative to the typical distance.
    max_iter : int
    nonfinite, return_info
        As in :func:`mean`; at most ``(n-1)//2`` rows can be excluded. The info has ``iterations``; ``converged``:
        whether the tolerance was met before the result was rounded to its dtype; ``residual``: that of the rounded
        result, above ``tol`` where rows differ in their last digits; ``weights``: the convex combination of the rows
        that the result is.

    Returns
    -------
    (d,) array of the kind and dtype of ``X``; a data point that is the minimizer is returned exactly

    Examples
    --------
    >>> from byzadmm import aggregate
    >>> aggregate.geometric_median([[1.0, 2.0, 3.0], [4.0, 5.0, 6.0], [7.0, 8.0, 9.0]]).tolist()
    [4.0, 5.0, 6.0]

    References
    ----------
    Vardi, Zhang, "The multivariate L1-median and associated data depth", PNAS 97(4), 2000.
    """
    call = Call("geometric_median", X, nonfinite=nonfinite, return_info=return_info, out=out, threads=threads)
    w = scaled_weights(weights, call.n)
    tol, max_iter = _checked(tol, max_iter)
    # The solver reads no row of weight 0, yet such a row is excluded like any other if it is not finite.
    unread = w is not None and np.any(w == 0) and np.any(call.nonfinite_rows())
    ended = None if unread else _solve(call, w, tol, max_iter)
    if ended is None:
        if call.exclude(max_f("geometric_median", call.n)):
            ended = _solve(call, kept_weights(call, w), tol, max_iter)
        else:
            call.out.fill(np.nan)
    if ended is None:
        return call.result(lambda: {"iterations": 0, "converged": False, "residual": np.nan})
    return call.result(ended)


def _solve(call: Call, w: Weights | None, tol: float, max_iter: int) -> Callable[[], dict[str, Any]] | None:
    """Write the geometric median of the kept rows to ``out``: the details of the info, None if a row is not finite."""
    voters = slice(None) if w is None else np.flatnonzero(w > 0)
    iterations, converged, residual, shares = _core.geometric_median(
        call.rows,
        call.out,
        None if w is None else np.ascontiguousarray(w[voters]),
        tol,
        max_iter,
        call.kept if w is None else call.original(voters).tolist(),
        call.threads,
    )

    def details() -> dict[str, Any]:
        weights = np.zeros(call.n_kept)
        weights[voters] = shares
        return {"weights": weights, "iterations": iterations, "converged": converged, "residual": residual}

    return None if iterations < 0 else details
