"""The rules as configured objects, under the class names of the field: ``Krum(f=2)(X)`` is ``krum(X, f=2)``.

An object holds settings only, nothing from one call to the next. ``X`` is what the functions of
``byzadmm.aggregate`` take, and so are further keywords of the call (``out``, ``threads``, ``return_info``).
:class:`Chain` puts pre-aggregations before a rule, :func:`make` finds all of them by name.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, fields, replace
from typing import Any, ClassVar

import numpy as np

from byzadmm import aggregate
from byzadmm._internal.arrays import Array, as_float, half_of, to_numpy, widened, wrapper_of
from byzadmm._internal.validation import check_int

__all__ = [
    "NNM",
    "PRE_AGGREGATORS",
    "RULES",
    "Aggregator",
    "Average",
    "Bucketing",
    "Bulyan",
    "CenteredClipping",
    "Chain",
    "Clipping",
    "GeometricMedian",
    "Krum",
    "Meamed",
    "Median",
    "Medoid",
    "MultiKrum",
    "Phocas",
    "TrMean",
    "make",
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
    """:func:`byzadmm.aggregate.bucketing`: gives rows. In training the run draws for an object without ``rng``.

    Examples
    --------
    >>> from byzadmm.aggregators import Bucketing
    >>> Bucketing(s=2, rng=0)([[1.0], [1.0], [1.0]]).tolist()
    [[1.0], [1.0]]
    """

    s: int
    rng: int | np.random.Generator | None = None

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

#: Settings of a rule that is given by name; the others have defaults of their own, or are ``f``.
NAMED: dict[str, dict[str, Any]] = {"bucketing": {"s": 2}, "centered_clip": {"tau": 0.1}}

_BY_NAME = {name: kind for table in (RULES, PRE_AGGREGATORS) for name, kind in table.items()}
_BY_NAME |= {kind.__name__.lower(): kind for kind in _BY_NAME.values()}


@dataclass(frozen=True)
class Chain:
    """Pre-aggregations, then one rule.

    ``rule(... pre_2(pre_1(X)))``

    Parameters
    ----------
    links : list of callables
        Objects of this module, or functions: rows to rows, the last one rows to a vector.

    Examples
    --------
    >>> from byzadmm.aggregators import NNM, Chain, Median
    >>> Chain([NNM(f=1), Median()])([[0.0], [2.0], [50.0]]).tolist()
    [1.0]
    """

    links: tuple[Callable[..., Any], ...]

    def __post_init__(self) -> None:
        object.__setattr__(self, "links", tuple(self.links))
        if not self.links:
            raise ValueError("rule: expected at least one rule, got none")
        for place, link in enumerate(self.links):
            if not callable(link):
                raise TypeError(f"rule: expected a name or a callable, got {type(link).__name__}")
            last = place == len(self.links) - 1
            if not last and _name(link) in RULES:
                raise ValueError(f"rule: {_name(link)} gives one vector, so nothing can follow it")
            if last and _name(link) in PRE_AGGREGATORS:
                raise ValueError(f"rule: {_name(link)} gives rows, so a rule must follow it")

    def __call__(self, X: Any, **call: Any) -> Any:
        """Apply the links in order; keywords other than ``threads`` are for the last one."""
        if half_of(X) is not None:  # rounded once, at the end
            made = self(widened(X), **call)
            if call.get("out") is not None:
                return made
            result, *info = made if call.get("return_info") else (made,)
            result = wrapper_of(X)(to_numpy(result, "rule"))
            return (result, *info) if info else result
        shared = {key: value for key, value in call.items() if key == "threads"}
        for link in self.links[:-1]:
            X = link(X, **(shared if isinstance(link, Aggregator) else {}))
        return self.links[-1](X, **call)

    def check(self, n: int, workers: int | None = None) -> None:
        """Settings that cannot be right for ``n`` rows, those of some of ``workers`` workers, are a ValueError.

        That is an ``f`` too large for the rows that reach its link, and weights that are not one per worker, or on a
        link whose rows are no longer the workers' own.
        """
        mixed = ""  # what stands between the workers' rows and the link
        for link in self.links:
            if not isinstance(link, Aggregator):
                mixed, n = "a function", 0  # how many rows it gives is known to itself
                continue
            settings = _settings(link)
            if "f" in settings and n:
                aggregate.check_f(link.rule, settings["f"], n)
            if settings.get("weights") is not None:
                if mixed:
                    raise ValueError(f"weights: expected the workers' own rows at {link.rule}, got those of {mixed}")
                aggregate.check_weights(settings["weights"], n if workers is None else workers)
            if isinstance(link, Bucketing):
                mixed, n = mixed or "bucketing", -(-n // check_int(link.s, "s", low=1))

    def in_training(
        self,
        X: Array,
        *,
        workers: Array,
        thrown_out: int,
        rng: np.random.Generator,
        center: Array | None = None,
        threads: int = 0,
    ) -> Any:
        """The chain in one round of a run, which may hear fewer workers than it began with.

        ``f`` shrinks by the workers that were thrown out, and to what the rows that came can bear. Bucketing without a
        generator takes ``rng``, centered clipping without a center ``center``; weights are those of ``workers``, whose
        messages the rows are. None: too few rows for the rule, or none of any weight.
        """
        for place, link in enumerate(self.links):
            if not isinstance(link, Aggregator):
                X = link(X)
                if place < len(self.links) - 1:
                    X = as_float(X, "rule")
                    if X.ndim != 2:
                        raise ValueError(f"rule: expected rows (n, d) from link {place}, got shape {X.shape}")
                continue
            n, settings = len(X), _settings(link)
            changes: dict[str, Any] = {}
            if "f" in settings:
                most = _most(link.rule, n)
                if most < 0:
                    return None
                changes["f"] = f = min(max(settings["f"] - thrown_out, 0), most)
                if settings.get("m") is not None:
                    changes["m"] = min(settings["m"], n - f)
                if settings.get("neighbors") is not None:
                    changes["neighbors"] = min(settings["neighbors"], n - f - 1)
            if isinstance(link, Bucketing) and link.rng is None:
                changes["rng"] = rng
            if isinstance(link, CenteredClipping) and link.center is None:
                changes["center"] = center
            if settings.get("weights") is not None and len(workers) == n:
                changes["weights"] = weights = as_float(settings["weights"], "weights")[workers]
                if not np.any(weights > 0):  # nobody who counts is left
                    return None
            X = replace(link, **changes)(X, threads=threads)
        return X


def make(rule: Any, *, f: int = 0) -> Chain:
    """A rule by name, with the pre-aggregations before it.

    Parameters
    ----------
    rule : str, object, callable, or a list of them
        Names are those of the functions or classes, with hyphens or underscores, joined by plus signs: ``"krum"``,
        ``"nnm+trimmed-mean"``. ``"bucketing"`` has ``s=2``, ``"centered_clip"`` has ``tau=0.1``, which suits features
        of size one and no others; clipping needs its object, as no length suits many problems.
    f : int
        Declared number of Byzantine workers, for every name that takes it.

    Returns
    -------
    Chain

    Examples
    --------
    >>> from byzadmm import aggregators
    >>> aggregators.make("nnm+median", f=1)([[0.0], [2.0], [50.0]]).tolist()
    [1.0]
    """
    declared = check_int(f, "f", low=0)
    links: list[Any] = []
    for part in rule if isinstance(rule, (list, tuple)) else [rule]:
        if isinstance(part, str):
            links += [_named(name, declared) for name in part.split("+")]
        else:
            links += part.links if isinstance(part, Chain) else [part]
    return Chain(tuple(links))


def _named(text: str, f: int) -> Aggregator:
    name = text.strip().replace("-", "_").lower()
    if name not in _BY_NAME:
        known = ", ".join([*RULES, *PRE_AGGREGATORS])
        raise ValueError(f"rule: expected one of {known}, or a callable; got {text!r}")
    kind = _BY_NAME[name]
    if kind is Clipping:
        raise ValueError("rule: clip needs max_norm; give it as aggregators.Clipping(max_norm=...)")
    settings: dict[str, Any] = dict(NAMED.get(kind.rule, {}))
    if "f" in {item.name for item in fields(kind)}:
        settings["f"] = f
    return kind(**settings)


def _name(link: Any) -> str | None:
    return link.rule if isinstance(link, Aggregator) else None


def _settings(link: Aggregator) -> dict[str, Any]:
    return {item.name: getattr(link, item.name) for item in fields(link)}


def _most(rule: str, n: int) -> int:
    """The largest legal ``f``, or -1 for fewer rows than the rule needs."""
    try:
        return aggregate.max_f(rule, n)
    except ValueError:
        return -1
