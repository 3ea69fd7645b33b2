"""The rules as configured objects, under the class names of the field: ``Krum(f=2)(X)`` is ``krum(X, f=2)``.

An object holds settings only, nothing from one call to the next. ``X`` is what the functions of
``byzadmm.aggregate`` take, and so are further keywords of the call (``out``, ``threads``, ``return_info``).
"""

from __future__ import annotations

from dataclasses import dataclass, fields
from typing import Any, ClassVar

import numpy as np

from byzadmm import aggregate

__all__ = [
    "NNM",
    "PRE_AGGREGATORS",
    "RULES",
    "Aggregator",
    "Average",
    "Bucketing",
    "Bulyan",
    "CenteredClipping",
    "Clipping",
    "GeometricMedian",
    "Krum",
    "Meamed",
    "Median",
    "Medoid",
    "MultiKrum",
    "Phocas",
    "TrMean",
]


@dataclass(frozen=True, kw_only=True)
class Aggregator:
    """What all have in common: the fields are the keywords of the function named ``rule``."""

    nonfinite: str = "exclude"

    rule: ClassVar[str]

    def __call__(self, X: Any, **call: Any) -> Any:
        """Apply the rule to the rows of ``X``."""
        settings = {item.name: getattr(self, item.name) for item in fields(self)}
        return getattr(aggregate, self.rule)(X, **settings, **call)


@dataclass(frozen=True)
class Average(Aggregator):
    """:func:`byzadmm.aggregate.mean`.

    Examples
    --------
    >>> from byzadmm.aggregators import Average
    >>> Average()([[1.0], [3.0]]).tolist()
    [2.0]
    """

    weights: Any = None

    rule = "mean"


@dataclass(frozen=True)
class Median(Aggregator):
    """:func:`byzadmm.aggregate.median`.

    Examples
    --------
    >>> from byzadmm.aggregators import Median
    >>> Median()([[1.0], [2.0], [9.0]]).tolist()
    [2.0]
    """

    even: str = "mid"
    weights: Any = None

    rule = "median"


@dataclass(frozen=True)
class TrMean(Aggregator):
    """:func:`byzadmm.aggregate.trimmed_mean`.

    Examples
    --------
    >>> from byzadmm.aggregators import TrMean
    >>> TrMean(f=1)([[1.0], [2.0], [9.0]]).tolist()
    [2.0]
    """

    f: int
    weights: Any = None

    rule = "trimmed_mean"


@dataclass(frozen=True)
class GeometricMedian(Aggregator):
    """:func:`byzadmm.aggregate.geometric_median`.

    Examples
    --------
    >>> from byzadmm.aggregators import GeometricMedian
    >>> GeometricMedian()([[1.0], [2.0], [9.0]]).tolist()
    [2.0]
    """

    weights: Any = None
    tol: float = 1e-6
    max_iter: int = 1000

    rule = "geometric_median"


@dataclass(frozen=True)
class Krum(Aggregator):
    """:func:`byzadmm.aggregate.krum`.

    Examples
    --------
    >>> from byzadmm.aggregators import Krum
    >>> Krum(f=1)([[1.0], [1.25], [0.75], [1.5], [50.0]]).tolist()
    [1.0]
    """

    f: int
    neighbors: int | None = None
    weights: Any = None

    rule = "krum"


@dataclass(frozen=True)
class MultiKrum(Aggregator):
    """:func:`byzadmm.aggregate.multi_krum`.

    Examples
    --------
    >>> from byzadmm.aggregators import MultiKrum
    >>> MultiKrum(f=1)([[1.0], [1.5], [0.5], [50.0], [1.0]]).tolist()
    [1.0]
    """

    f: int
    m: int | None = None
    neighbors: int | None = None
    weights: Any = None

    rule = "multi_krum"


@dataclass(frozen=True)
class Medoid(Aggregator):
    """:func:`byzadmm.aggregate.medoid`.

    Examples
    --------
    >>> from byzadmm.aggregators import Medoid
    >>> Medoid()([[0.0], [1.0], [50.0]]).tolist()
    [1.0]
    """

    weights: Any = None

    rule = "medoid"


@dataclass(frozen=True)
class Bulyan(Aggregator):
    """:func:`byzadmm.aggregate.bulyan`.

    Examples
    --------
    >>> from byzadmm.aggregators import Bulyan
    >>> Bulyan(f=1)([[1.0], [2.0], [3.0], [2.0], [2.0], [2.0], [1e9]]).tolist()
    [2.0]
    """

    f: int

    rule = "bulyan"


@dataclass(frozen=True)
class Meamed(Aggregator):
    """:func:`byzadmm.aggregate.meamed`.

    Examples
    --------
    >>> from byzadmm.aggregators import Meamed
    >>> Meamed(f=1)([[1.0], [2.0], [3.0], [90.0]]).tolist()
    [2.0]
    """

    f: int

    rule = "meamed"


@dataclass(frozen=True)
class Phocas(Aggregator):
    """:func:`byzadmm.aggregate.phocas`.

    Examples
    --------
    >>> from byzadmm.aggregators import Phocas
    >>> Phocas(f=1)([[1.0], [2.0], [3.0], [90.0]]).tolist()
    [2.0]
    """

    f: int

    rule = "phocas"


@dataclass(frozen=True)
class CenteredClipping(Aggregator):
    """:func:`byzadmm.aggregate.centered_clip`.

    Examples
    --------
    >>> from byzadmm.aggregators import CenteredClipping
    >>> CenteredClipping(tau=2, center=[1.0])([[0.0], [1.0], [2.0], [1e9]]).tolist()
    [1.5]
    """

    tau: float
    center: Any = None
    n_iter: int = 1

    rule = "centered_clip"


@dataclass(frozen=True)
class NNM(Aggregator):
    """:func:`byzadmm.aggregate.nearest_neighbor_mixing`: gives rows.

    Examples
    --------
    >>> from byzadmm.aggregators import NNM
    >>> NNM(f=1)([[0.0], [2.0], [50.0]]).tolist()
    [[1.0], [1.0], [26.0]]
    """

    f: int

    rule = "nearest_neighbor_mixing"


@dataclass(frozen=True)
class Bucketing(Aggregator):
    """:func:`byzadmm.aggregate.bucketing`: gives rows.

    Examples
    --------
    >>> from byzadmm.aggregators import Bucketing
    >>> Bucketing(s=2, rng=0)([[1.0], [1.0], [1.0]]).tolist()
    [[1.0], [1.0]]
    """

    s: int
    rng: int | np.random.Generator

    rule = "bucketing"


@dataclass(frozen=True)
class Clipping(Aggregator):
    """:func:`byzadmm.aggregate.clip`: gives rows.

    Examples
    --------
    >>> from byzadmm.aggregators import Clipping
    >>> Clipping(max_norm=1)([[5.0], [0.5]]).tolist()
    [[1.0], [0.5]]
    """

    max_norm: float

    rule = "clip"


#: Function name -> class, for rules that give a vector.
RULES: dict[str, type[Aggregator]] = {
    kind.rule: kind
    for kind in (
        Average, Median, TrMean, GeometricMedian, Krum, MultiKrum, Medoid, Bulyan, Meamed, Phocas, CenteredClipping,
    )
}  # fmt: skip

#: The same for pre-aggregations, which give rows.
PRE_AGGREGATORS: dict[str, type[Aggregator]] = {kind.rule: kind for kind in (NNM, Bucketing, Clipping)}
