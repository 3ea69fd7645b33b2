"""Rules that select rows by the distances between them: Krum, Multi-Krum, medoid, Bulyan."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from byzadmm import _core
from byzadmm._core import Stage
from byzadmm._internal.arrays import Array
from byzadmm._internal.validation import check_int
from byzadmm.aggregate._call import Call
from byzadmm.aggregate._registry import Size, max_f, minority, register
from byzadmm.aggregate._weights import Weights, kept_weights, scaled_weights

__all__ = ["bulyan", "krum", "medoid", "multi_krum"]


@dataclass
class Wide:
    """Non-negative numbers ``value * 2**exponent``, each with an exponent of its own; plain numbers if that is None."""

    value: NDArray[np.float64]
    exponent: NDArray[np.int32] | None

    def order(self) -> NDArray[np.int64]:
        """Indices along the last axis, smallest number first, the lowest index first among equals."""
        if self.exponent is None:
            return np.argsort(self.value, axis=-1, kind="stable")
        return np.lexsort((self.value, self.exponent), axis=-1)

    def as_float(self) -> NDArray[np.float64]:
        """As float64; numbers out of its range become infinite or 0."""
        with np.errstate(over="ignore", under="ignore"):
            return self.value if self.exponent is None else np.ldexp(self.value, self.exponent)


def squared_distances(call: Call, tolerated: int) -> Wide:
    """Squared distances between the kept rows; rows that are not finite are excluded, or infinitely far (propagate)."""
    squared, exponent, bad = _core.squared_distances(call.rows, call.threads)
    if bad.any() and call.exclude(tolerated):
        finite = np.ix_(~bad, ~bad)
        squared, exponent = squared[finite], None if exponent is None else exponent[finite]
    return Wide(squared, exponent)


def lengths(call: Call, tolerated: int, center: Array | None = None) -> Wide:
    """Distances of the kept rows from ``center``, or from 0; others are excluded, or infinitely far (propagate)."""
    length, exponent = _core.lengths(call.rows, center, call.threads)
    bad = np.isinf(length)
    if bad.any() and call.exclude(tolerated):
        length, exponent = length[~bad], exponent[~bad]
    return Wide(length, exponent)


def _krum_scores(call: Call, f: int, neighbors: Any, weights: Any) -> tuple[Wide, Wide, Weights | None]:
    """Squared distances, scores and weights of the kept rows; a row of weight 0 has an infinite score."""
    nearest = _neighbors(call.n, f, neighbors)
    w = scaled_weights(weights, call.n)
    distances = squared_distances(call, f)
    w = kept_weights(call, w)
    scores = _core.krum_scores(distances.value, distances.exponent, nearest, _mass(w), float(nearest), call.threads)
    return distances, Wide(*scores), w


def _neighbors(n: int, f: int, neighbors: Any) -> int:
    return n - f - 2 if neighbors is None else check_int(neighbors, "neighbors", low=1, high=n - f - 1)


def _mass(w: Weights | None) -> Weights | None:
    """How many rows each row counts as."""
    return None if w is None else np.ascontiguousarray(w / w.max() / np.mean(w / w.max()))


def _kept(n: int, f: int, m: Any) -> int:
    return n - f if m is None else check_int(m, "m", low=1, high=n - f)


def _scored(n: int, f: int, neighbors: Any, w: Weights | None) -> list[Stage]:
    nearest = _neighbors(n, f, neighbors)
    return [Stage("distances"), Stage("krum_scores", nearest, value=float(nearest), weights=_mass(w))]


def _krum_stages(of: Size, *, f: int, neighbors: Any, weights: Any) -> list[Stage]:
    return [*_scored(of.n, f, neighbors, scaled_weights(weights, of.n)), Stage("best", 1), Stage("row")]


def _multi_krum_stages(of: Size, *, f: int, m: Any, neighbors: Any, weights: Any) -> list[Stage]:
    w = scaled_weights(weights, of.n)
    return [*_scored(of.n, f, neighbors, w), Stage("best", _kept(of.n, f, m), weights=w), Stage("mean")]


@register("Krum", max_f=lambda n: (n - 3) // 2, stages=_krum_stages)
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
    """Row with the smallest sum of squared distances to its ``n-f-2`` nearest neighbors.

    ``x_i`` with the smallest ``score_i = sum of ||x_i - x_k||^2 over the n-f-2 rows k != i nearest to x_i``.

    Parameters
    ----------
    X : (n, d) array, or a list of n arrays (d,)
    f : int, n >= 2f + 3
        Declared number of Byzantine workers.
    neighbors : int in [1, n-f-1], optional
        Number of nearest rows in a score; by default ``n-f-2`` (the paper), ByzFL has ``n-f-1``.
    weights : (n,) array, optional
        Scaled to mean 1; row k then counts as ``w_k`` rows among the neighbors, nearest first, up to a total of
        ``neighbors``. A row of weight 0 is never selected. See :func:`cap_weights`.
    nonfinite, return_info
        As in :func:`mean`; at most ``f`` rows can be excluded, and ``f`` is lowered by their number;
        ``"propagate"`` takes such rows as infinitely far away. The info has ``selected``, ``scores`` and ``distances``.

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
    call = Call("krum", X, nonfinite=nonfinite, return_info=return_info, out=out, threads=threads)
    distances, scores, _ = _krum_scores(call, call.check_f(f), neighbors, weights)
    selected = call.original(scores.order()[:1])
    np.copyto(call.out, call.rows[int(selected[0])])
    return call.result(
        lambda: {"selected": selected, "scores": scores.as_float(), "distances": distances.as_float()}
    )


@register("MultiKrum", max_f=lambda n: (n - 3) // 2, stages=_multi_krum_stages)
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
    """Mean of the ``m`` rows with the smallest Krum scores.

    ``(1/m) sum of x_i over the m rows with the smallest score_i`` (:func:`krum`), summed in float64.

    Parameters
    ----------
    X : (n, d) array, or a list of n arrays (d,)
    f : int, n >= 2f + 3
    m : int in [1, n-f], optional
        By default ``n-f``, as in ByzFL; 1 is Krum.
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
    call = Call("multi_krum", X, nonfinite=nonfinite, return_info=return_info, out=out, threads=threads)
    declared = call.check_f(f)
    size = _kept(call.n, declared, m)
    distances, scores, w = _krum_scores(call, declared, neighbors, weights)
    best = scores.order()[:size]
    if w is not None:
        best = best[w[best] > 0]
    members = np.sort(best)
    shares = None if w is None else np.ascontiguousarray(w[members])
    _core.mean(call.rows, call.out, shares, call.original(members).tolist(), call.threads)
    return call.result(
        lambda: {"selected": call.original(best), "scores": scores.as_float(), "distances": distances.as_float()}
    )


def _medoid_stages(of: Size, *, weights: Any) -> list[Stage]:
    return [Stage("distances"), Stage("medoid", weights=scaled_weights(weights, of.n)), Stage("row")]


@register("Medoid", max_f=minority, stages=_medoid_stages)
def medoid(
    X: Any,
    *,
    weights: Any = None,
    nonfinite: str = "exclude",
    return_info: bool = False,
    out: Any = None,
    threads: int = 0,
) -> Any:
    """Row with the smallest sum of distances to the other rows.

    ``x_i`` with the smallest ``sum_k w_k ||x_i - x_k||``: the geometric median restricted to the rows.

    Parameters
    ----------
    X : (n, d) array, or a list of n arrays (d,)
    weights : (n,) array, optional
        Non-negative; a row of weight 0 is never selected.
    nonfinite, return_info
        As in :func:`krum`; at most ``(n-1)//2`` rows can be excluded. With ``"propagate"`` such rows are neither
        selected nor counted.

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
    call = Call("medoid", X, nonfinite=nonfinite, return_info=return_info, out=out, threads=threads)
    w = scaled_weights(weights, call.n)
    distances = squared_distances(call, max_f("medoid", call.n))
    w = kept_weights(call, w)
    if call.kept is None and nonfinite == "propagate":
        # A row at an infinite distance adds the same to the sums of all others: it changes no comparison between them.
        w = np.where(call.nonfinite_rows(), 0.0, 1.0 if w is None else w)
    best, scores = _core.medoid(call.rows, distances.value, distances.exponent, w, call.kept, call.threads)
    selected = call.original([best])
    np.copyto(call.out, call.rows[int(selected[0])])
    return call.result(lambda: {"selected": selected, "scores": scores, "distances": distances.as_float()})


def _bulyan_stages(of: Size, *, f: int) -> list[Stage]:
    choice = [Stage("distances"), Stage("bulyan_choice", of.n - 2 * f, f=f)]
    return [*choice, Stage("median"), Stage("closest_mean", of.n - 4 * f)]


@register("Bulyan", max_f=lambda n: (n - 3) // 4, stages=_bulyan_stages)
def bulyan(
    X: Any, *, f: int, nonfinite: str = "exclude", return_info: bool = False, out: Any = None, threads: int = 0
) -> Any:
    """Mean around the median, in every coordinate, of rows that Krum selects one by one.

    ``n-2f`` rows are selected: each is the one with the smallest Krum score among the ``r`` rows that remain, with
    ``max(1, r-f-2)`` neighbors. The result has in every coordinate the mean of the ``n-4f`` selected values closest to
    their median.

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
    call = Call("bulyan", X, nonfinite=nonfinite, return_info=return_info, out=out, threads=threads)
    declared = call.check_f(f)
    distances = squared_distances(call, declared)
    left = declared - len(call.excluded)
    chosen = _core.bulyan_choice(distances.value, distances.exponent, left, call.n_kept - 2 * left)
    selected = call.original(chosen)
    rows = np.sort(selected).tolist()
    center = np.empty_like(call.out)
    _core.median(call.rows, center, "mid", rows, call.threads)
    _core.closest_mean(call.rows, call.out, center, call.n_kept - 4 * left, rows, call.threads)
    return call.result(lambda: {"selected": selected, "distances": distances.as_float()})
