"""Pre-aggregations: rows to rows, before a rule is applied."""

from __future__ import annotations

from typing import Any

import numpy as np

from byzadmm import _core
from byzadmm._internal.validation import check_int, check_real
from byzadmm.aggregate._call import Call
from byzadmm.aggregate._registry import minority, register
from byzadmm.aggregate.selection import Wide, squared_distances

__all__ = ["bucketing", "clip", "nearest_neighbor_mixing"]


@register("NNM", max_f=minority, gives_rows=True)
def nearest_neighbor_mixing(
    X: Any, *, f: int, nonfinite: str = "exclude", return_info: bool = False, out: Any = None, threads: int = 0
) -> Any:
    """Every row replaced by the mean of its ``n-f`` nearest rows (NNM): a pre-aggregation.

    ``y_i = (1/(n-f)) sum of x_k over the n-f rows nearest to x_i``, itself included.

    Parameters
    ----------
    X : (n, d) array, or a list of n arrays (d,)
    f : int, 0 <= 2f < n
    nonfinite, return_info
        As in :func:`krum`. The info has ``selected``, one line of neighbors per row, and ``distances``.
    out : (n', d) array, optional
        ``n'`` is the number of rows that are not excluded.

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
    call = Call(
        "nearest_neighbor_mixing", X, nonfinite=nonfinite, return_info=return_info, out=out, threads=threads,
        gives_rows=True,
    )  # fmt: skip
    declared = call.check_f(f)
    distances = squared_distances(call, declared)
    ranked = Wide(distances.value.copy(), distances.exponent)
    np.fill_diagonal(ranked.value, -1.0)  # a row is its own first neighbor, also among rows that are equal to it
    nearest = ranked.order()[:, : call.n - declared]
    call.allocate(call.n_kept)
    _core.neighbor_means(call.rows, call.out, np.ascontiguousarray(nearest), call.kept, call.threads)
    return call.result(lambda: {"selected": call.original(nearest), "distances": distances.as_float()})


@register(
    "Bucketing",
    max_f=minority,
    gives_rows=True,
    named={"s": 2},
    defaults={"rng": None},
    n_out=lambda n, settings: -(-n // check_int(settings["s"], "s", low=1)),
)
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
    """Means of random groups of ``s`` rows: a pre-aggregation.

    ``y_b = mean of x_p(i) for i in [b s, (b+1) s)`` with a random order ``p``; the last group may be smaller.

    Parameters
    ----------
    X : (n, d) array, or a list of n arrays (d,)
    s : int >= 1
        Rows per group; ``f`` Byzantine rows reach at most ``f`` of the ``ceil(n/s)`` groups.
    rng : int or numpy.random.Generator
        A seed gives the same groups in every call, a generator new ones.
    nonfinite, return_info
        As in :func:`mean`. The info has ``selected``, the rows in the order of the groups.
    out : (ceil(n'/s), d) array, optional

    Returns
    -------
    (ceil(n'/s), d) array of the kind and dtype of ``X``, for ``n'`` rows that are not excluded

    Examples
    --------
    >>> from byzadmm import aggregate
    >>> sorted(aggregate.bucketing([[1.0], [1.0], [1.0], [5.0]], s=2, rng=0)[:, 0].tolist())
    [1.0, 3.0]

    References
    ----------
    Karimireddy, He, Jaggi, "Byzantine-robust learning on heterogeneous datasets via bucketing", ICLR 2022.
    """
    call = Call(
        "bucketing", X, nonfinite=nonfinite, return_info=return_info, out=out, threads=threads, gives_rows=True
    )
    s = check_int(s, "s", low=1)
    if rng is None:  # as in aggregators.Bucketing(s=2)
        raise TypeError(
            "rng: expected a seed or a numpy.random.Generator to draw the groups with, as in Bucketing(s=2, rng=0), "
            "got None; only in training does the run draw for it"
        )
    if not isinstance(rng, np.random.Generator):
        rng = np.random.default_rng(check_int(rng, "rng", low=0))
    call.exclude(call.n - 1)
    order = call.original(rng.permutation(call.n_kept))
    call.allocate(-(-call.n_kept // s))
    for bucket, to in enumerate(call.out):
        _core.mean(call.rows, to, None, np.sort(order[bucket * s : (bucket + 1) * s]).tolist(), call.threads)
    return call.result(lambda: {"selected": order})


@register("Clipping", max_f=minority, gives_rows=True)
def clip(
    X: Any, *, max_norm: float, nonfinite: str = "exclude", return_info: bool = False, out: Any = None, threads: int = 0
) -> Any:
    """Rows scaled down to a length of at most ``max_norm``: a pre-aggregation.

    ``y_i = x_i min(1, max_norm / ||x_i||)``

    Parameters
    ----------
    X : (n, d) array, or a list of n arrays (d,)
    max_norm : float > 0
    nonfinite, return_info
        As in :func:`mean`. The info has ``distances``, the lengths before clipping, infinite beyond float64.
    out : (n', d) array, optional

    Returns
    -------
    (n', d) array of the kind and dtype of ``X``, for ``n'`` rows that are not excluded; the input is not modified

    Examples
    --------
    >>> from byzadmm import aggregate
    >>> aggregate.clip([[3.0, 4.0], [0.3, 0.4]], max_norm=1).tolist()
    [[0.6000000000000001, 0.8], [0.3, 0.4]]
    """
    call = Call("clip", X, nonfinite=nonfinite, return_info=return_info, out=out, threads=threads, gives_rows=True)
    max_norm = check_real(max_norm, "max_norm", low=0.0, strict=True)
    call.exclude(call.n - 1)
    call.allocate(call.n_kept)
    norms = _core.clip(call.rows, call.out, max_norm, call.kept, call.threads)
    return call.result(lambda: {"distances": norms})
