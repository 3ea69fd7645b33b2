"""Chains: pre-aggregations, then one rule, from objects, functions or names."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import MISSING, dataclass, fields, replace
from typing import Any

import numpy as np

from byzadmm import _core
from byzadmm._internal.arrays import Array, as_float, half_of, to_numpy, widened, wrapper_of
from byzadmm._internal.validation import check_int
from byzadmm.aggregate import _registry
from byzadmm.aggregate._weights import check_weights
from byzadmm.aggregate.preaggregation import check_permutation
from byzadmm.aggregators.configured import NAMED, PRE_AGGREGATORS, RULES, Aggregator, settings_of

__all__ = ["Chain", "make", "reach"]

#: Settings that address workers, and their checks for a number of workers.
_OF_WORKERS: Mapping[str, Callable[[Any, int], Any]] = {
    "weights": check_weights,
    "pivot": lambda pivot, n: check_int(pivot, "pivot", low=0, high=n - 1),
    "permutation": check_permutation,
}


@dataclass(frozen=True)
class Chain:
    """Pre-aggregations, then one rule.

    ``rule(... pre_2(pre_1(X)))``

    Parameters
    ----------
    links : list of callables
        Objects of ``byzadmm.aggregators``, or functions: rows to rows, the last one rows to a vector.

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
        """Raise a ValueError for settings that cannot be right for ``n`` rows, those of some of ``workers`` workers.

        These are an ``f`` that is too large for the rows that reach its link, and weights, a pivot or a permutation
        that do not fit the workers, or that belong to a link whose rows are no longer one per worker.
        """
        senders = n if workers is None else workers
        mixed = ""  # the link, if any, after which rows are no longer one per worker
        for link in self.links:
            if not isinstance(link, Aggregator):
                mixed, n = "a function", 0  # the number of rows that it gives is unknown
                continue
            settings, n_out = settings_of(link), _registry.RULES[link.rule].n_out
            if "f" in settings and n:
                _registry.check_f(link.rule, settings["f"], n)
            for name, check in _OF_WORKERS.items():
                if settings.get(name) is None:
                    continue
                if mixed:
                    raise ValueError(f"{name}: expected the workers' own rows at {link.rule}, got those of {mixed}")
                check(settings[name], senders)
            if n_out is not None:
                mixed, n = mixed or link.rule, n_out(n, settings)

    def lowered(self, by: int) -> Chain:
        """The chain without ``by`` Byzantine workers: every ``f`` is lowered by the rows that they would change."""
        links: list[Any] = []
        for place, link in enumerate(self.links):
            changes: dict[str, Any] = {}
            if by and isinstance(link, Aggregator) and "f" in settings_of(link):
                changes["f"] = max(settings_of(link)["f"] - by * reach(self.links[:place]), 0)
            links.append(replace(link, **changes) if changes and isinstance(link, Aggregator) else link)
        return Chain(tuple(links))

    def in_training(
        self,
        X: Array,
        *,
        workers: Array,
        eliminated: int,
        rng: np.random.Generator,
        center: Array | None = None,
        threads: int = 0,
    ) -> Any:
        """Apply the chain in one round of a run, in which fewer workers may take part than at the beginning.

        ``f`` is lowered by the number of rows that eliminated workers would have changed, and to the largest that is
        legal for the rows that came. A link with ``rng=None`` takes ``rng``, one with ``center=None`` takes ``center``.
        Weights, a pivot and a permutation are those of the ``workers`` whose messages the rows are. Worker -1 is the
        master: its row has the mean of the weights, and comes last in a permutation. None: too few rows for the rule,
        none with a positive weight, or none of the pivot.
        """
        given: dict[str, Any] = {"rng": rng, "center": center}
        for place, link in enumerate(self.lowered(eliminated).links):
            if not isinstance(link, Aggregator):
                X = link(X)
                if place < len(self.links) - 1:
                    X = as_float(X, "rule")
                    if X.ndim != 2:
                        raise ValueError(f"rule: expected rows (n, d) from link {place}, got shape {X.shape}")
                continue
            suited = _suited(link, len(X), workers)
            if suited is None:
                return None
            settings = settings_of(suited)
            changes = {key: value for key, value in given.items() if key in settings and settings[key] is None}
            X = replace(suited, **changes)(X, threads=threads)
        return X

    def plan(
        self, size: _registry.Size, *, workers: Array, eliminated: int, rng: Callable[[int], np.random.Generator]
    ) -> _core.Plan | None:
        """What :meth:`in_training` does with finite rows, for the native loop of SGD; of a chain that is ``planned``.

        ``rng`` gives the random numbers of a round. The loop knows the ``center``. None: as there.
        """
        stages: list[_core.Stage] = []
        draws: list[_registry.Draw] = []
        for link in self.lowered(eliminated).links:
            assert isinstance(link, Aggregator)
            suited = _suited(link, size.n, workers)
            if suited is None:
                return None
            settings, rule = settings_of(suited), _registry.RULES[suited.rule]
            assert rule.stages is not None
            made = rule.stages(size, **{name: value for name, value in settings.items() if name != "nonfinite"})
            if isinstance(made, _registry.Planned):
                draws += made.draws
                made = made.stages
            stages += made
            if rule.n_out is not None:
                size = size._replace(n=rule.n_out(size.n, settings))

        def draw(k: int) -> list[Array]:
            generator = rng(k)
            return [one(generator) for one in draws]

        return _core.Plan(stages, draw if draws else None)

    @property
    def planned(self) -> bool:
        """Whether every link has stages for a plan."""
        return all(isinstance(link, Aggregator) and _registry.RULES[link.rule].stages for link in self.links)


def make(rule: Any, *, f: int = 0) -> Chain:
    """Chain of pre-aggregations and one rule, from names, objects or functions.

    Parameters
    ----------
    rule : str, object, callable, or a list of them
        Names are those of the functions or classes, with hyphens or underscores, joined by plus signs: ``"krum"``,
        ``"nnm+trimmed-mean"``. ``"bucketing"`` and ``"resampling"`` have ``s=2``, ``"centered_clip"`` has ``tau=0.1``,
        which suits features of size one and no others. ``"clip"`` is an error, as no length suits most problems: give
        the object.
    f : int
        Declared number of Byzantine workers, for every name that takes it. A name that follows resampling gets
        ``s f``, the number of means that these can change. The ``f`` of an object is taken as it is: it counts rows
        that reach the object.

    Returns
    -------
    Chain

    Examples
    --------
    >>> from byzadmm import aggregators
    >>> aggregators.make("nnm+median", f=1)([[0.0], [2.0], [50.0]]).tolist()
    [1.0]
    """
    return Chain(tuple(links_of(rule if isinstance(rule, (list, tuple)) else [rule], check_int(f, "f", low=0))))


def _suited(link: Aggregator, n: int, workers: Array) -> Aggregator | None:
    """The link with settings that suit the ``n`` rows that reach it in a round; None: there are none.

    See :meth:`Chain.in_training`.
    """
    settings = settings_of(link)
    changes: dict[str, Any] = {}
    if "f" in settings:
        most = _most(link.rule, n)
        if most < 0:
            return None
        changes["f"] = f = min(settings["f"], most)
        if settings.get("m") is not None:
            changes["m"] = min(settings["m"], n - f)
        if settings.get("neighbors") is not None:
            changes["neighbors"] = min(settings["neighbors"], n - f - 1)
    if settings.get("weights") is not None and len(workers) == n:
        own = as_float(settings["weights"], "weights")
        changes["weights"] = weights = np.where(workers >= 0, own[workers], own.mean())
        if not np.any(weights > 0):
            return None
    if "pivot" in settings and len(workers) == n:
        if settings["pivot"] not in workers:
            return None
        changes["pivot"] = int(np.flatnonzero(workers == settings["pivot"])[0])
    if settings.get("permutation") is not None and len(workers) == n:
        place_of = {int(worker): row for row, worker in enumerate(workers)}
        order = [place_of[w] for w in settings["permutation"] if w in place_of]
        changes["permutation"] = order + np.flatnonzero(workers < 0).tolist()
    return replace(link, **changes)


def links_of(parts: Sequence[Any], f: int = 0) -> list[Any]:
    """The links of names, objects, functions and chains that follow each other, as :func:`make` puts them together."""
    links: list[Any] = []
    for part in parts:
        if isinstance(part, str):
            for name in part.split("+"):
                links.append(_named(name, f * reach(links)))
        else:
            links += part.links if isinstance(part, Chain) else [part]
    return links


def reach(links: Sequence[Any]) -> int:
    """How many of the rows that these links give one Byzantine worker can change; of a function, one is assumed."""
    found = 1
    for link in links:
        if isinstance(link, Aggregator):
            found *= _registry.RULES[link.rule].reach(settings_of(link))
    return found


def _named(text: str, f: int) -> Aggregator:
    name = text.strip().replace("-", "_").lower()
    by_name = RULES | PRE_AGGREGATORS
    by_name |= {kind.__name__.lower(): kind for kind in by_name.values()}
    if name not in by_name:
        known = ", ".join([*RULES, *PRE_AGGREGATORS])
        raise ValueError(f"rule: expected one of {known}, or a callable; got {text!r}")
    kind = by_name[name]
    settings: dict[str, Any] = dict(NAMED.get(kind.rule, {}))
    for item in fields(kind):
        if item.name == "f":
            settings["f"] = f
        elif item.default is MISSING and item.name not in settings:
            form = f"aggregators.{kind.__name__}({item.name}=...)"
            raise ValueError(f"rule: {kind.rule} needs {item.name}; give it as {form}")
    return kind(**settings)


def _name(link: Any) -> str | None:
    return link.rule if isinstance(link, Aggregator) else None


def _most(rule: str, n: int) -> int:
    """The largest legal ``f``, or -1 for fewer rows than the rule needs."""
    try:
        return _registry.max_f(rule, n)
    except ValueError:
        return -1
