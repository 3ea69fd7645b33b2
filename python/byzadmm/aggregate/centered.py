"""Rules around a center: the values closest to it, or clipped differences to it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from byzadmm import _core
from byzadmm._core import Stage
from byzadmm._internal.arrays import Array, as_float
from byzadmm._internal.validation import check_choice, check_int, check_real
from byzadmm.aggregate._call import Call
from byzadmm.aggregate._registry import Size, max_f, minority, register
from byzadmm.aggregate.coordinatewise import trim

__all__ = ["centered_clip", "meamed", "phocas"]


def _mean_around(call: Call, f: int, center: Array, find_center: Callable[[], bool]) -> None:
    """Mean of the n-f values closest to a center in every column; ``find_center`` writes it for the kept rows."""
    propagated = call.compute(find_center, f)
    # Excluded rows lower n and f alike, so that n-f stays.
    _core.closest_mean(call.rows, call.out, center, call.n - f, call.kept, call.threads)
    if propagated:
        _core.mark_nan_columns(call.rows, call.out, call.threads)


def _meamed_stages(of: Size, *, f: int, even: str) -> list[Stage]:
    mode = _core.EVEN.index(check_choice(even, "even", _core.EVEN))
    return [Stage("median", mode), Stage("closest_mean", of.n - f)]


@register("Meamed", max_f=minority, stages=_meamed_stages)
def meamed(
    X: Any,
    *,
    f: int,
    even: str = "mid",
    nonfinite: str = "exclude",
    return_info: bool = False,
    out: Any = None,
    threads: int = 0,
) -> Any:
    """Mean of the ``n-f`` values closest to the median, in every coordinate.

    ``out_j = mean of the n-f values x_ij closest to median_i x_ij``, the lowest ``i`` among equally close ones.

    Parameters
    ----------
    X : (n, d) array, or a list of n arrays (d,)
    f : int, 0 <= 2f < n
    even : "mid", "low" or "high"
        For an even number of rows, the median to measure from: see :func:`median`.
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
    call = Call("meamed", X, nonfinite=nonfinite, return_info=return_info, out=out, threads=threads)
    declared, center = call.check_f(f), np.empty_like(call.out)
    mode = check_choice(even, "even", _core.EVEN)
    _mean_around(call, declared, center, lambda: _core.median(call.rows, center, mode, call.kept, call.threads))
    return call.result()


@register(
    "Phocas",
    max_f=minority,
    stages=lambda of, f: [Stage("trimmed_mean", f=f), Stage("closest_mean", of.n - f)],
)
def phocas(
    X: Any, *, f: int, nonfinite: str = "exclude", return_info: bool = False, out: Any = None, threads: int = 0
) -> Any:
    """Mean of the ``n-f`` values closest to the trimmed mean, in every coordinate.

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
    call = Call("phocas", X, nonfinite=nonfinite, return_info=return_info, out=out, threads=threads)
    declared, center = call.check_f(f), np.empty_like(call.out)
    _mean_around(call, declared, center, lambda: trim(call, center, declared))
    return call.result()


def _centered_clip_stages(of: Size, *, tau: float, center: Any, n_iter: int) -> list[Stage]:
    tau, n_iter = _checked(tau, n_iter)
    start = None if center is None else _checked_center(center, of.d, of.dtype)
    return [Stage("start", weights=start), Stage("centered_clip", n_iter, value=tau)]


def _checked(tau: Any, n_iter: Any) -> tuple[float, int]:
    return check_real(tau, "tau", low=0.0, strict=True), check_int(n_iter, "n_iter", low=1, high=2**31 - 1)


def _checked_center(center: Any, d: int, dtype: np.dtype[Any]) -> Array:
    start = as_float(center, "center", dtype)
    if start.shape != (d,):
        raise ValueError(f"center: expected shape ({d},), got {start.shape}")
    if not np.all(np.isfinite(start)):
        raise ValueError("center: expected finite numbers")
    return start


@register("CenteredClipping", max_f=minority, named={"tau": 0.1}, stages=_centered_clip_stages)
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
    """Center moved by the mean of the differences to the rows, each clipped to length ``tau``.

    ``v <- v + (1/n) sum_i (x_i - v) min(1, tau / ||x_i - v||)``, ``n_iter`` times. No state is kept between calls: pass
    the last result as ``center`` to continue from it, as the paper does over rounds.

    Parameters
    ----------
    X : (n, d) array, or a list of n arrays (d,)
    tau : float > 0
        A row moves the center by at most ``tau/n`` per iteration.
    center : (d,) array, optional
        Where to start; by default the coordinate-wise median, which no minority can move far.
    n_iter : int
    nonfinite, return_info
        As in :func:`mean`; at most ``(n-1)//2`` rows can be excluded. The info has ``iterations`` and ``weights``, the
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
    call = Call("centered_clip", X, nonfinite=nonfinite, return_info=return_info, out=out, threads=threads)
    tau, n_iter = _checked(tau, n_iter)
    start = None if center is None else _checked_center(center, call.d, call.out.dtype)
    if start is not None:
        np.copyto(call.out, start)
    tolerated = max_f("centered_clip", call.n)
    factors = _moved(call, start, tau, n_iter)
    if factors is None and call.exclude(tolerated):
        factors = _moved(call, start, tau, n_iter)
    if factors is None:
        call.out.fill(np.nan)
        return call.result(lambda: {"iterations": 0})
    return call.result(lambda: {"iterations": n_iter, "weights": factors})


def _moved(call: Call, start: Array | None, tau: float, n_iter: int) -> NDArray[np.float64] | None:
    """Move ``out`` from the start, or from the median of the kept rows.

    The last factors, or None: a row is not finite.
    """
    if start is None:
        _core.median(call.rows, call.out, "mid", call.kept, call.threads)
    return _core.centered_clip(call.rows, call.out, tau, n_iter, call.kept, call.threads)
