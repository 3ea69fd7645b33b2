"""Pre-aggregations: rows to rows, before a rule is applied."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from byzadmm import _core
from byzadmm._core import Stage
from byzadmm._internal.validation import check_int, check_real
from byzadmm.aggregate._call import Call, generator
from byzadmm.aggregate._registry import Planned, Size, drawn, minority, register
from byzadmm.aggregate.selection import Wide, lengths, squared_distances

__all__ = ["arc", "bucketing", "clip", "nearest_neighbor_mixing", "resampling"]


@register(
    "NNM",
    max_f=minority,
    gives_rows=True,
    stages=lambda of, f: [Stage("distances"), Stage("neighbor_means", of.n - f)],
)
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
    # A row is its own first neighbor, also among rows that are equal to it.
    ranked.value.reshape(-1)[:: call.n_kept + 1] = -1.0
    nearest = ranked.order()[:, : call.n - declared]
    call.allocate(call.n_kept)
    _core.neighbor_means(call.rows, call.out, np.ascontiguousarray(nearest), call.kept, call.threads)
    return call.result(lambda: {"selected": call.original(nearest), "distances": distances.as_float()})


def _bucketing_stages(of: Size, *, s: int, rng: Any, permutation: Any) -> Planned:
    s = check_int(s, "s", low=1)
    if permutation is not None:
        order = check_permutation(permutation, of.n)
        return Planned([Stage("group_means", min(s, of.n), index=order.tolist())], [])
    own = None if rng is None else generator(rng, "groups")
    return drawn("group_means", min(s, of.n), lambda rng: rng.permutation(of.n), own)


@register(
    "Bucketing",
    stages=_bucketing_stages,
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
    rng: int | np.random.Generator | None = None,
    permutation: Any = None,
    nonfinite: str = "exclude",
    return_info: bool = False,
    out: Any = None,
    threads: int = 0,
) -> Any:
    """Means of random groups of ``s`` rows: a pre-aggregation.

    ``y_b = mean of x_p(i) for i in [b s, (b+1) s)`` with an order ``p``, random or given; the last group may be
    smaller.

    Parameters
    ----------
    X : (n, d) array, or a list of n arrays (d,)
    s : int >= 1
        Rows per group; ``f`` Byzantine rows reach at most ``f`` of the ``ceil(n/s)`` groups.
    rng : int or numpy.random.Generator
        A seed gives the same groups in every call, a generator new ones. Not used beside a ``permutation``.
    permutation : (n,) integers, optional
        The order of the rows: each of 0, ..., n-1 once. Excluded rows are passed over, so that groups have ``s`` rows
        all the same. In training it is an order of the workers, of which those take part whose messages came.
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
    if permutation is None:
        drawn_order = _drawn_order(
            call, rng, "groups with, as in Bucketing(s=2, rng=0)", lambda draws, n: draws.permutation(n)
        )
    else:
        given = check_permutation(permutation, call.n)

        def drawn_order() -> NDArray[np.int64]:
            return given[~np.isin(given, call.excluded)] if call.excluded else given

    order = _group_means(call, drawn_order, s)
    return call.result(lambda: {"selected": order})


def check_permutation(permutation: Any, n: int) -> NDArray[np.int64]:
    """Return ``permutation`` as an array that holds each of 0, ..., n-1 once."""
    order = np.asarray(permutation)
    if order.dtype.kind not in "iu":
        raise TypeError(f"permutation: expected integers, got dtype {order.dtype}")
    if order.shape != (n,) or not np.array_equal(np.sort(order), np.arange(n)):
        raise ValueError(f"permutation: expected each of 0, ..., {n - 1} once, got {_shortened(order)}")
    return order.astype(np.int64)


def _shortened(order: NDArray[Any]) -> str:
    return f"shape {order.shape}" if order.ndim != 1 or len(order) > 10 else str(order.tolist())


def _drawn_order(
    call: Call, rng: Any, purpose: str, draw: Callable[[np.random.Generator, int], NDArray[np.int64]]
) -> Callable[[], NDArray[np.int64]]:
    """Function that draws an order of the kept rows, with the same random numbers in every call."""
    draws = generator(rng, purpose)
    before = draws.bit_generator.state

    def order() -> NDArray[np.int64]:
        draws.bit_generator.state = before
        return call.original(draw(draws, call.n_kept))

    return order


def _group_means(call: Call, order: Callable[[], NDArray[np.int64]], s: int) -> NDArray[np.int64]:
    """Write the means of groups of ``s`` rows to ``out``; returns the order of the kept rows in them."""
    chosen = np.empty(0, np.int64)

    def make() -> bool:
        nonlocal chosen
        chosen = order()
        size = min(s, max(len(chosen), 1))
        call.allocate(-(-len(chosen) // size))
        return _core.group_means(call.rows, call.out, chosen, size, call.threads)

    call.make_rows(make)
    return chosen


def _resampling_stages(of: Size, *, s: int, rng: Any) -> Planned:
    s = check_int(s, "s", low=1)
    own = None if rng is None else generator(rng, "groups")
    return drawn("group_means", s, lambda rng: rng.permutation(np.repeat(np.arange(of.n), s)), own)


@register(
    "Resampling",
    stages=_resampling_stages,
    max_f=minority,
    gives_rows=True,
    named={"s": 2},
    defaults={"rng": None},
    n_out=lambda n, settings: n,
    reach=lambda settings: check_int(settings["s"], "s", low=1),
)
def resampling(
    X: Any,
    *,
    s: int,
    rng: int | np.random.Generator,
    nonfinite: str = "exclude",
    return_info: bool = False,
    out: Any = None,
    threads: int = 0,
) -> Any:
    """As many means of ``s`` rows as there are rows, with each row in ``s`` places of them: a pre-aggregation.

    ``y_t = mean of the rows p(i) for i in [t s, (t+1) s)``, where ``p`` is a random order of a list that has each row
    ``s`` times. The sum of all rows stays, ``s = 1`` reorders them, and a row may be in a group twice. One Byzantine
    row is part of up to ``s`` means, so that the rule that follows has to tolerate ``s f`` of them.

    Parameters
    ----------
    X : (n, d) array, or a list of n arrays (d,)
    s : int >= 1
        Rows per mean; ``2 s f < n`` for a median that follows.
    rng : int or numpy.random.Generator
        A seed gives the same groups in every call, a generator new ones.
    nonfinite, return_info
        As in :func:`mean`. The info has ``selected``, one line of ``s`` rows per mean.
    out : (n', d) array, optional

    Returns
    -------
    (n', d) array of the kind and dtype of ``X``, for ``n'`` rows that are not excluded

    Examples
    --------
    >>> from byzadmm import aggregate
    >>> float(aggregate.resampling([[1.0], [1.0], [1.0], [5.0]], s=2, rng=0).sum())
    8.0

    References
    ----------
    He, Karimireddy, Jaggi, "Byzantine-robust learning on heterogeneous datasets via resampling", 2020.
    """
    call = Call(
        "resampling", X, nonfinite=nonfinite, return_info=return_info, out=out, threads=threads, gives_rows=True
    )
    s = check_int(s, "s", low=1)
    drawn_order = _drawn_order(
        call,
        rng,
        "groups with, as in Resampling(s=2, rng=0)",
        lambda draws, n: draws.permutation(np.repeat(np.arange(n), s)),
    )
    order = _group_means(call, drawn_order, s)
    return call.result(lambda: {"selected": order.reshape(-1, s)})


@register(
    "Clipping",
    max_f=minority,
    gives_rows=True,
    stages=lambda of, max_norm: [Stage("clip", value=check_real(max_norm, "max_norm", low=0.0, strict=True))],
)
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
    norms = np.empty(0)

    def make() -> bool:
        nonlocal norms
        call.allocate(call.n_kept)
        norms, suspect = _core.clip(call.rows, call.out, max_norm, 0, call.kept, call.threads)
        return suspect

    call.make_rows(make)
    return call.result(lambda: {"distances": norms})


def _rank(n: int, f: int) -> int:
    """The rank of the length that stays, 0 for the least."""
    return n - 1 - 2 * f * (n - f) // n


@register(
    "ARC",
    max_f=minority,
    gives_rows=True,
    stages=lambda of, f: [Stage("lengths"), Stage("shorten", _rank(of.n, f))],
)
def arc(
    X: Any, *, f: int, nonfinite: str = "exclude", return_info: bool = False, out: Any = None, threads: int = 0
) -> Any:
    """The longest rows scaled down to the length of the next one (adaptive robust clipping): a pre-aggregation.

    ``y_i = x_i min(1, c / ||x_i||)`` with ``c`` the length of the ``k+1``-th longest row, ``k = floor(2f(n-f)/n)``.

    Parameters
    ----------
    X : (n, d) array, or a list of n arrays (d,)
    f : int, 0 <= 2f < n
    nonfinite, return_info
        As in :func:`krum`. The info has ``distances``, the lengths before clipping, infinite beyond float64.
    out : (n', d) array, optional

    Returns
    -------
    (n', d) array of the kind and dtype of ``X``, for ``n'`` rows that are not excluded; the input is not modified, and
    neither are rows of length ``c``

    Examples
    --------
    >>> from byzadmm import aggregate
    >>> aggregate.arc([[3.0, 4.0], [0.3, 0.4], [30.0, 40.0]], f=1).tolist()
    [[3.0, 4.0], [0.3, 0.4], [3.0, 4.0]]

    References
    ----------
    Allouah, Guerraoui, Gupta, Jellouli, Rizk, Stephan, "Adaptive gradient clipping for robust federated learning",
    ICLR 2025.
    """
    call = Call("arc", X, nonfinite=nonfinite, return_info=return_info, out=out, threads=threads, gives_rows=True)
    declared = call.check_f(f)
    norms = lengths(call, declared)
    n, left = call.n_kept, declared - len(call.excluded)
    longest = norms.order()[_rank(n, left)]
    assert norms.exponent is not None
    limit, exponent = float(norms.value[longest]), int(norms.exponent[longest])
    call.allocate(n)
    _core.clip(call.rows, call.out, limit, exponent, call.kept, call.threads)
    return call.result(lambda: {"distances": norms.as_float()})
