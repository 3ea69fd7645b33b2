"""ByzFL's aggregators and pre-aggregators: ``TrMean(f=1)(vectors)``.

Every object keeps its settings only, changes no input, excludes rows with NaN or infinities as far as ``f`` allows, and
gives equal results for equal rows. ``f`` may be any integer with ``2f < n``.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from byzadmm import _core, aggregate
from byzadmm._internal.arrays import Array, as_rows
from byzadmm._internal.validation import check_int, check_real
from byzadmm.aggregate._call import Call
from byzadmm.aggregate._registry import check_f
from byzadmm.aggregate.selection import Wide, squared_distances
from byzadmm.byzfl._inputs import check_rng, legacy

__all__ = [
    "ARC",
    "CAF",
    "MDA",
    "NNM",
    "SMEA",
    "Average",
    "Bucketing",
    "CenteredClipping",
    "Clipping",
    "GeometricMedian",
    "Krum",
    "Meamed",
    "Median",
    "MoNNA",
    "MultiKrum",
    "TrMean",
]


@dataclass
class _Tolerant:
    """Base of the rules with a declared number of Byzantine rows."""

    f: int = 0

    def __post_init__(self) -> None:
        self.f = check_int(self.f, "f", low=0)


class Average:
    """Mean of the rows: not robust. Rows that are not finite are excluded."""

    def __call__(self, vectors: Any) -> Any:
        """The mean of ``vectors``."""
        return aggregate.mean(vectors)


class Median:
    """Median of every coordinate, the midpoint of the middle two for an even number of rows."""

    def __call__(self, vectors: Any) -> Any:
        """The median of ``vectors``."""
        return aggregate.median(vectors)


class TrMean(_Tolerant):
    """Mean of every coordinate without its ``f`` smallest and ``f`` largest values."""

    def __call__(self, vectors: Any) -> Any:
        """The trimmed mean of ``vectors``."""
        return aggregate.trimmed_mean(vectors, f=self.f)


@dataclass
class GeometricMedian:
    """Point with the smallest sum of distances to the rows.

    The exact minimizer, where ByzFL takes ``T`` steps from zero with distances of at least ``nu``: for rows that are
    closer together than ``nu`` that is their mean. Both are accepted, and change nothing.
    """

    nu: float = 0.1
    T: int = 3

    def __post_init__(self) -> None:
        self.nu = check_real(self.nu, "nu", low=0.0)
        self.T = check_int(self.T, "T", low=0)

    def __call__(self, vectors: Any) -> Any:
        """The geometric median of ``vectors``."""
        return aggregate.geometric_median(vectors)


def _by_krum_score(vectors: Any, f: int) -> tuple[Call, Any]:
    """The rows in the order of their sums of squared distances to the ``n-f-1`` nearest others, for any ``2f < n``.

    ``aggregate.krum`` has the neighbors and the limit on ``f`` of the paper: ``n-f-2`` and ``n >= 2f + 3``.
    """
    call = Call("krum", vectors, nonfinite="exclude", return_info=False, out=None, threads=0)
    check_f("trimmed_mean", f, call.n)
    nearest = call.n - f - 1
    distances = squared_distances(call, f)
    scores = _core.krum_scores(distances.value, distances.exponent, nearest, None, float(nearest), 0)
    return call, call.original(Wide(*scores).order())


class Krum(_Tolerant):
    """Row with the smallest sum of squared distances to its ``n-f-1`` nearest neighbors; the paper has ``n-f-2``."""

    def __call__(self, vectors: Any) -> Any:
        """The selected row of ``vectors``."""
        call, order = _by_krum_score(vectors, self.f)
        np.copyto(call.out, call.rows[int(order[0])])
        return call.result()


class MultiKrum(_Tolerant):
    """Mean of the ``n-f`` rows that :class:`Krum` prefers."""

    def __call__(self, vectors: Any) -> Any:
        """The mean of the selected rows of ``vectors``."""
        call, order = _by_krum_score(vectors, self.f)
        _core.mean(call.rows, call.out, None, np.sort(order[: call.n - self.f]).tolist(), 0)
        return call.result()


@dataclass
class CenteredClipping:
    """Center moved ``L`` times by the mean of the differences to the rows, each clipped to length ``tau``.

    It starts at ``m``, by default zeros, in every call. ByzFL's object goes on from its last result: write
    ``aggregate.m = aggregate(vectors)`` for that.
    """

    m: Any = None
    L: int = 1
    tau: float = 100.0

    def __post_init__(self) -> None:
        self.L = check_int(self.L, "L", low=1)
        self.tau = check_real(self.tau, "tau", low=0.0, strict=True)

    def __call__(self, vectors: Any) -> Any:
        """The center after ``L`` steps."""
        start: Array = np.zeros(as_rows(vectors)[2]) if self.m is None else self.m
        return aggregate.centered_clip(vectors, tau=self.tau, center=start, n_iter=self.L)


class MDA(_Tolerant):
    """Mean of the ``n-f`` rows whose largest pairwise distance is least."""

    def __call__(self, vectors: Any) -> Any:
        """The mean of the selected rows of ``vectors``."""
        return aggregate.mda(vectors, f=self.f)


@dataclass
class MoNNA(_Tolerant):
    """Mean of the ``n-f`` rows nearest to row ``idx``, which is trusted."""

    idx: int = 0

    def __post_init__(self) -> None:
        super().__post_init__()
        self.idx = check_int(self.idx, "idx", low=0)

    def __call__(self, vectors: Any) -> Any:
        """The mean of the selected rows of ``vectors``."""
        return aggregate.nearest_neighbor_average(vectors, f=self.f, pivot=self.idx)


class Meamed(_Tolerant):
    """Mean of the ``n-f`` values closest to the median, in every coordinate."""

    def __call__(self, vectors: Any) -> Any:
        """The mean around the median of ``vectors``."""
        return aggregate.meamed(vectors, f=self.f)


class CAF(_Tolerant):
    """Weighted mean after outliers along the top eigenvector of the covariance have lost weight, round by round.

    The eigenvector is exact; ByzFL takes one step of power iteration from a random vector.
    """

    def __call__(self, vectors: Any) -> Any:
        """The filtered mean of ``vectors``."""
        return aggregate.caf(vectors, f=self.f)


class SMEA(_Tolerant):
    """Mean of the ``n-f`` rows whose covariance has the least largest eigenvalue.

    The eigenvalues are exact; ByzFL takes one step of power iteration from a random vector.
    """

    def __call__(self, vectors: Any) -> Any:
        """The mean of the selected rows of ``vectors``."""
        return aggregate.smea(vectors, f=self.f)


class NNM(_Tolerant):
    """Every row replaced by the mean of its ``n-f`` nearest rows, itself included: a pre-aggregator."""

    def __call__(self, vectors: Any) -> Any:
        """The mixed rows."""
        return aggregate.nearest_neighbor_mixing(vectors, f=self.f)


@dataclass
class Bucketing:
    """Means of random groups of ``s`` rows: a pre-aggregator.

    ``rng`` is a seed, for the same groups in every call, or a ``numpy.random.Generator``. By default the order of the
    rows is drawn as ByzFL draws it, from the global state of NumPy or, for tensors, of PyTorch.
    """

    s: int = 1
    rng: Any = None

    def __post_init__(self) -> None:
        self.s = check_int(self.s, "s", low=1)
        check_rng(self.rng)

    def __call__(self, vectors: Any) -> Any:
        """The means of the groups."""
        if self.rng is not None:
            return aggregate.bucketing(vectors, s=self.s, rng=self.rng)
        (source, is_torch), n = legacy(vectors), len(vectors)
        order = source.randperm(n) if is_torch else source.permutation(n)
        return aggregate.bucketing(vectors, s=self.s, permutation=order)


@dataclass
class Clipping:
    """Rows scaled down to a length of at most ``c``: a pre-aggregator. The input is not modified."""

    c: float = 2.0

    def __post_init__(self) -> None:
        self.c = check_real(self.c, "c", low=0.0, strict=True)

    def __call__(self, vectors: Any) -> Any:
        """The clipped rows."""
        return aggregate.clip(vectors, max_norm=self.c)


class ARC(_Tolerant):
    """The ``floor(2f(n-f)/n)`` longest rows scaled down to the length of the next one: a pre-aggregator.

    The input is not modified.
    """

    def __call__(self, vectors: Any) -> Any:
        """The clipped rows."""
        return aggregate.arc(vectors, f=self.f)
