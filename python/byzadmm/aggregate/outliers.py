"""Rules that average the rows that do not stand out: by length, from a trusted row, or along one direction."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numpy.typing import NDArray

from byzadmm import _core
from byzadmm._core import Stage
from byzadmm._internal.validation import check_int, check_real
from byzadmm.aggregate._call import Call, generator
from byzadmm.aggregate._registry import Planned, Size, drawn, minority, register
from byzadmm.aggregate.selection import Wide, lengths

__all__ = ["cge", "dnc", "nearest_neighbor_average"]


def _average(call: Call, selected: NDArray[np.int64]) -> None:
    """Mean of rows given by their indices among all rows."""
    _core.mean(call.rows, call.out, None, np.sort(selected).tolist(), call.threads)


@register(
    "CGE",
    max_f=minority,
    stages=lambda of, f: [Stage("lengths"), Stage("best", of.n - f), Stage("mean")],
)
def cge(
    X: Any, *, f: int, nonfinite: str = "exclude", return_info: bool = False, out: Any = None, threads: int = 0
) -> Any:
    """Mean of the ``n-f`` rows of least length (comparative gradient elimination).

    ``(1/(n-f)) sum of x_i over the n-f rows with the smallest ||x_i||``. The paper has the sum: its step is ``n-f``
    times as long. A forged row that is short is kept, so that the result is no longer than the longest regular row,
    and may point anywhere.

    Parameters
    ----------
    X : (n, d) array, or a list of n arrays (d,)
    f : int, 0 <= 2f < n
        Declared number of Byzantine workers.
    nonfinite, return_info
        As in :func:`krum`. The info has ``selected``, shortest first, and ``scores``, the lengths.

    Returns
    -------
    (d,) array of the kind and dtype of ``X``; of rows of equal length the lowest indices are selected

    Examples
    --------
    >>> from byzadmm import aggregate
    >>> aggregate.cge([[3.0], [-1.0], [4.0], [50.0]], f=1).tolist()
    [2.0]

    References
    ----------
    Gupta, Liu, Vaidya, "Byzantine fault-tolerant distributed machine learning with norm-based comparative gradient
    elimination", DSN workshops 2021.
    """
    call = Call("cge", X, nonfinite=nonfinite, return_info=return_info, out=out, threads=threads)
    declared = call.check_f(f)
    norms = lengths(call, declared)
    selected = call.original(norms.order()[: call.n - declared])  # excluded rows lower n and f alike
    _average(call, selected)
    return call.result(lambda: {"selected": selected, "scores": norms.as_float()})


@register(
    "MoNNA",
    max_f=minority,
    stages=lambda of, f, pivot: [Stage("lengths", index=[pivot]), Stage("best", of.n - f), Stage("mean")],
)
def nearest_neighbor_average(
    X: Any,
    *,
    f: int,
    pivot: int = 0,
    nonfinite: str = "exclude",
    return_info: bool = False,
    out: Any = None,
    threads: int = 0,
) -> Any:
    """Mean of the ``n-f`` rows nearest to a trusted row, itself included (MoNNA).

    ``(1/(n-f)) sum of x_i over the n-f rows with the smallest ||x_i - x_pivot||``. No kept row is farther from the
    pivot than the farthest regular row, if the pivot is regular. If it is Byzantine, the result is where it says: its
    authors have no master, and every worker takes its own row. With a master, ``pivot`` is the one worker that it
    trusts, such as one of its own. In training it is the number of a worker, as weights are those of workers; in a
    round without a message from it, and once it is eliminated, the rule moves nothing.

    Parameters
    ----------
    X : (n, d) array, or a list of n arrays (d,)
    f : int, 0 <= 2f < n
        Declared number of Byzantine workers.
    pivot : int in [0, n)
        The trusted row; ByzFL calls it ``idx``. It is an error if it holds NaN or an infinity.
    nonfinite, return_info
        As in :func:`krum`. The info has ``selected``, nearest first, and ``scores``, the distances from the pivot.

    Returns
    -------
    (d,) array of the kind and dtype of ``X``; of equally near rows the lowest indices are selected

    Examples
    --------
    >>> from byzadmm import aggregate
    >>> aggregate.nearest_neighbor_average([[1.0], [2.0], [3.0], [50.0]], f=1, pivot=2).tolist()
    [2.0]

    References
    ----------
    Farhadkhani, Guerraoui, Gupta, Hoang, Pinot, Stephan, "Robust collaborative learning with linear gradient overhead",
    ICML 2023.
    """
    call = Call("nearest_neighbor_average", X, nonfinite=nonfinite, return_info=return_info, out=out, threads=threads)
    declared = call.check_f(f)
    pivot = check_int(pivot, "pivot", low=0, high=call.n - 1)
    trusted = call.rows[pivot]
    if not np.all(np.isfinite(trusted)):
        raise ValueError(f"pivot: expected a finite row to trust, got row {pivot}, which holds NaN or infinite values")
    distances = lengths(call, declared, trusted)
    own = np.where(call.original(np.arange(call.n_kept)) == pivot, -1.0, distances.value)  # first, also among equals
    selected = call.original(Wide(own, distances.exponent).order()[: call.n - declared])
    _average(call, selected)
    return call.result(lambda: {"selected": selected, "scores": distances.as_float()})


def _dnc_stages(of: Size, *, f: int, rng: Any, iterations: int, coordinates: int, factor: float) -> Planned:
    iterations, coordinates, good = _checked(of.n, f, iterations, coordinates, factor)
    if coordinates >= of.d:
        return Planned([Stage("distances"), Stage("projections"), Stage("best", good), Stage("mean")], [])
    own = None if rng is None else generator(rng, "columns")
    made = Planned([], [])
    for _ in range(iterations):
        columns = drawn("distances", 0, lambda rng: _columns(rng, of.d, coordinates), own)
        made.stages.extend([*columns.stages, Stage("projections"), Stage("vote", good)])
        made.draws.extend(columns.draws)
    made.stages.extend([Stage("elected"), Stage("mean")])
    return made


def _checked(n: int, f: int, iterations: Any, coordinates: Any, factor: Any) -> tuple[int, int, int]:
    """Rounds, columns of each, and how many rows are good in one."""
    iterations = check_int(iterations, "iterations", low=1)
    coordinates = check_int(coordinates, "coordinates", low=1)
    factor = check_real(factor, "factor", low=0.0)
    if math.floor(factor * f) >= n:
        raise ValueError(f"factor: expected floor(factor f) < n={n}, got factor={factor} and f={f}")
    return iterations, coordinates, n - math.floor(factor * f)


def _columns(draws: np.random.Generator, d: int, count: int) -> NDArray[np.int64]:
    return np.sort(draws.choice(d, count, replace=False))


@register("DnC", max_f=minority, defaults={"rng": None}, stages=_dnc_stages)
def dnc(
    X: Any,
    *,
    f: int,
    rng: int | np.random.Generator,
    iterations: int = 1,
    coordinates: int = 10000,
    factor: float = 1.0,
    nonfinite: str = "exclude",
    return_info: bool = False,
    out: Any = None,
    threads: int = 0,
) -> Any:
    """Mean of the rows that stand out least along the direction in which the rows differ most (divide and conquer).

    In each round, for randomly chosen columns ``C`` and the top right singular vector ``v`` of the rows less their
    mean ``mu``: ``score_i = <x_iC - mu_C, v>^2``, and the ``n - floor(factor f)`` rows with the smallest scores are
    good. The result is the mean of the rows that are good in every round, or, where there are none, of those that are
    good in most rounds.

    Forged rows of different lengths can hide each other: of two on one line, ``(n-1) t`` and ``t``, the nearer lies in
    the mean of all rows, has score 0 and is kept, for any ``t``. A single forged row, and equal ones, are excluded.

    Parameters
    ----------
    X : (n, d) array, or a list of n arrays (d,)
    f : int, 0 <= 2f < n
        Declared number of Byzantine workers.
    rng : int or numpy.random.Generator
        Draws the columns: a seed gives the same ones in every call, a generator new ones.
    iterations : int
        Number of rounds.
    coordinates : int
        Columns per round, drawn without replacement; all columns, and one round, if ``d`` is not larger.
    factor : float >= 0, floor(factor f) < n
        Rows excluded in a round per Byzantine one. These defaults are those of Blades.
    nonfinite, return_info
        As in :func:`krum`. The info has ``selected`` and ``scores``, with one line per round where there are several.

    Returns
    -------
    (d,) array of the kind and dtype of ``X``; of rows with equal scores the lowest indices are good. Scores are right
    to rounding of the largest squared distance between two rows.

    Examples
    --------
    >>> from byzadmm import aggregate
    >>> aggregate.dnc([[1.0, 0.0], [2.0, 1.0], [3.0, -1.0], [50.0, 50.0]], f=1, rng=0).tolist()
    [2.0, 0.0]

    References
    ----------
    Shejwalkar, Houmansadr, "Manipulating the Byzantine: optimizing model poisoning attacks and defenses for federated
    learning", NDSS 2021.
    """
    call = Call("dnc", X, nonfinite=nonfinite, return_info=return_info, out=out, threads=threads)
    declared = call.check_f(f)
    draws = generator(rng, "columns with, as in DnC(f=2, rng=0)")
    iterations, coordinates, _ = _checked(call.n, declared, iterations, coordinates, factor)
    call.exclude(declared)
    left = declared - len(call.excluded)
    size = call.n_kept - math.floor(factor * left)
    rows = [call.rows[i] for i in (range(call.n) if call.kept is None else call.kept)]
    some = coordinates < call.d
    scores = []
    times = np.zeros(call.n_kept, np.int64)  # how often a row was good
    for _ in range(iterations if some else 1):
        columns = _columns(draws, call.d, coordinates) if some else slice(None)
        scores.append(_scores([row[columns] for row in rows], call.threads))
        order = scores[-1].order()
        times[order[:size]] += 1
    selected = call.original(order[times[order] == times.max()])
    _average(call, selected)

    def details() -> dict[str, Any]:
        found = np.stack([score.as_float() for score in scores])
        return {"selected": selected, "scores": found if len(found) > 1 else found[0]}

    return call.result(details)


def _scores(rows: list[Any], threads: int) -> Wide:
    """Squared projections on the top right singular vector of the rows less their mean; infinite if not finite."""
    squared, exponent, bad = _core.squared_distances(rows, threads)
    score, unit = np.full(len(bad), np.inf), 0
    if not bad.all():
        good = np.ix_(~bad, ~bad)
        score[~bad], unit = _core.projections(squared[good], None if exponent is None else exponent[good])
    return Wide(score, np.full(len(bad), unit, np.int32))
