"""Rules that keep the rows with the least spread: by diameter, and by the largest eigenvalue of the covariance."""

from __future__ import annotations

from math import comb
from typing import Any

import numpy as np

from byzadmm import _core
from byzadmm._core import Stage
from byzadmm._internal.validation import check_int
from byzadmm.aggregate._call import Call
from byzadmm.aggregate._registry import Size, minority, register
from byzadmm.aggregate.selection import Wide, squared_distances

__all__ = ["caf", "mda", "smea"]

_MOST_SUBSETS = 1_000_000


def _mean_of(call: Call, chosen: Any) -> Any:
    """The rule's result: the mean of the chosen ones of the kept rows."""
    selected = call.original(chosen)
    _core.mean(call.rows, call.out, None, selected.tolist(), call.threads)
    return selected


def _too_hard(n: int, f: int) -> str:
    return (
        f"mda: the search for the least diameter of n={n} workers without f={f} exceeded its limit of "
        "262144 steps; f <= 30 always stays within it"
    )


def _mda_stages(of: Size, *, f: int) -> list[Stage]:
    return [Stage("distances"), Stage("least_diameter", f=f, message=_too_hard(of.n, f)), Stage("mean")]


@register("MDA", max_f=minority, stages=_mda_stages)
def mda(
    X: Any, *, f: int, nonfinite: str = "exclude", return_info: bool = False, out: Any = None, threads: int = 0
) -> Any:
    """Mean of the ``n-f`` rows whose largest pairwise distance is least (minimum-diameter averaging).

    ``(1/(n-f)) sum of x_i over i in S``, ``S`` of ``n-f`` rows with the least ``max over i, k in S of ||x_i - x_k||``;
    of several such sets the one whose list of indices is lexicographically smallest. The set is found exactly, by a
    search for at most ``f`` rows that touch all pairs farther apart than some distance.

    Parameters
    ----------
    X : (n, d) array, or a list of n arrays (d,)
    f : int, 2f < n
        Declared number of Byzantine workers. Up to ``f = 30`` the search ends for every input. Beyond that it may need
        more work than its limit on rows made to be hard (ordinary ones, and ``f`` rows far away, are not), and a
        ValueError says so.
    nonfinite, return_info
        As in :func:`krum`. The info has ``selected``, in ascending order, and ``distances``.

    Returns
    -------
    (d,) array of the kind and dtype of ``X``

    Examples
    --------
    >>> from byzadmm import aggregate
    >>> aggregate.mda([[0.0], [1.0], [3.0], [4.0], [5.0]], f=2).tolist()
    [4.0]

    References
    ----------
    El Mhamdi, Guerraoui, Guirguis, Hoang, Rouault, "Genuinely distributed Byzantine machine learning", PODC 2020.
    """
    call = Call("mda", X, nonfinite=nonfinite, return_info=return_info, out=out, threads=threads)
    declared = call.check_f(f)
    distances = squared_distances(call, declared)
    chosen = _core.least_diameter(distances.value, distances.exponent, declared - len(call.excluded))
    if chosen is None:
        raise ValueError(_too_hard(call.n, declared))
    selected = _mean_of(call, chosen)
    return call.result(lambda: {"selected": selected, "distances": distances.as_float()})


def _most_enumerated(n: int) -> int:
    """The largest ``f`` with ``2f < n`` and at most a million sets of ``n-f`` rows."""
    most = minority(n)
    while comb(n, most) > _MOST_SUBSETS:
        most -= 1
    return most


@register(
    "SMEA",
    max_f=_most_enumerated,
    stages=lambda of, f: [Stage("distances"), Stage("least_variance", f=f), Stage("mean")],
)
def smea(
    X: Any, *, f: int, nonfinite: str = "exclude", return_info: bool = False, out: Any = None, threads: int = 0
) -> Any:
    """Mean of the ``n-f`` rows whose covariance has the least largest eigenvalue.

    ``(1/(n-f)) sum of x_i over i in S``, ``S`` of ``n-f`` rows with the least largest eigenvalue of
    ``(1/(n-f)) sum over S of (x_i - mean_S)(x_i - mean_S)^T`` (smallest maximum eigenvalue averaging); of several such
    sets, to ten digits, the one whose list of indices is lexicographically smallest. All sets are enumerated, most of
    them by bounds alone.

    Parameters
    ----------
    X : (n, d) array, or a list of n arrays (d,)
    f : int, 2f < n and at most 1 000 000 sets of n-f rows
        Declared number of Byzantine workers: any minority of up to 22, 6 of 30, 3 of 100.
    nonfinite, return_info
        As in :func:`krum`. The info has ``selected``, in ascending order, and ``distances``.

    Returns
    -------
    (d,) array of the kind and dtype of ``X``

    Examples
    --------
    >>> from byzadmm import aggregate
    >>> aggregate.smea([[0.0], [1.0], [3.0], [4.0], [5.0]], f=2).tolist()
    [4.0]

    References
    ----------
    Allouah, Guerraoui, Gupta, Pinot, Stephan, "On the privacy-robustness-utility trilemma in distributed learning",
    ICML 2023.
    """
    call = Call("smea", X, nonfinite=nonfinite, return_info=return_info, out=out, threads=threads)
    declared, most = check_int(f, "f", low=0), _most_enumerated(call.n)
    if most < declared <= minority(call.n):
        raise ValueError(
            f"smea: f={declared} of n={call.n} workers means {comb(call.n, declared)} subsets, "
            f"more than {_MOST_SUBSETS}; at most f={most}"
        )
    call.check_f(declared)
    distances = squared_distances(call, declared)
    chosen = _core.least_variance(distances.value, distances.exponent, declared - len(call.excluded))
    selected = _mean_of(call, chosen)
    return call.result(lambda: {"selected": selected, "distances": distances.as_float()})


def _crumb(dtype: np.dtype[Any]) -> float:
    """A weight below it may be rounding."""
    return float(2.0 ** (-20 if dtype == np.float32 else -40))


def _caf_stages(of: Size, *, f: int) -> list[Stage]:
    return [Stage("distances"), Stage("filtered_weights", f=f, value=_crumb(of.dtype)), Stage("mean")]


@register("CAF", max_f=minority, stages=_caf_stages)
def caf(
    X: Any, *, f: int, nonfinite: str = "exclude", return_info: bool = False, out: Any = None, threads: int = 0
) -> Any:
    """Weighted mean after outliers along the top eigenvector of the covariance have lost weight, round by round.

    The covariance-bound agnostic filter. From ``c_i = 1``, rounds of ::

        mu = sum c_i x_i / sum c_i,   sigma, v = top eigenpair of sum c_i (x_i - mu)(x_i - mu)^T / sum c_i
        tau_i = <v, x_i - mu>^2,      c_i <- c_i (1 - tau_i / max of tau_k over c_k > 0)

    go on while ``sum c_i > n-2f``; the result is the ``mu`` of the least ``sigma``, the first of equals. The first
    round takes place for every ``f``, so that ``f=0`` gives the mean. A weight below ``2**-40`` (``2**-20`` for float32
    rows) may be rounding and counts as 0. If the largest eigenvalue is repeated, ``v`` is some unit vector of its
    eigenspace, the same for the same rows.

    Parameters
    ----------
    X : (n, d) array, or a list of n arrays (d,)
    f : int, 2f < n
        Declared number of Byzantine workers.
    nonfinite, return_info
        As in :func:`mean`; at most ``f`` rows can be excluded, and ``f`` is lowered by their number; with
        ``"propagate"`` such a row makes the result NaN. The info has ``weights``, ``iterations`` (rounds) and
        ``distances``.

    Returns
    -------
    (d,) array of the kind and dtype of ``X``

    Examples
    --------
    >>> from byzadmm import aggregate
    >>> aggregate.caf([[1.0], [1.0], [1.0], [9.0]], f=1).tolist()
    [1.0]

    References
    ----------
    Allouah, Guerraoui, Stephan, "Towards trustworthy federated learning with untrusted participants", ICML 2025.
    """
    call = Call("caf", X, nonfinite=nonfinite, return_info=return_info, out=out, threads=threads)
    declared = call.check_f(f)
    distances = squared_distances(call, declared)
    if call.kept is None and call.nonfinite == "propagate" and call.nonfinite_rows().any():
        call.out.fill(np.nan)
        return call.result(lambda: {"iterations": 0, "distances": distances.as_float()})
    if call.kept is not None:  # by the way that suits their number: the weights depend on every bit
        distances = Wide(*_core.squared_distances([call.rows[i] for i in call.kept], call.threads)[:2])
    left = declared - len(call.excluded)
    weights, rounds = _core.filtered_weights(distances.value, distances.exponent, left, _crumb(call.out.dtype))
    rows = np.flatnonzero(weights > 0)
    _core.mean(call.rows, call.out, np.ascontiguousarray(weights[rows]), call.original(rows).tolist(), call.threads)
    return call.result(
        lambda: {"weights": weights / weights.sum(), "iterations": rounds, "distances": distances.as_float()}
    )
