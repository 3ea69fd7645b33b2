"""The rules of ``byzadmm.aggregators`` as neighborhood rules, and what a rule may be given as."""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from byzadmm import aggregators
from byzadmm._internal.arrays import Array
from byzadmm._internal.description import describe
from byzadmm.decentralized.rules.base import REGISTRY, NeighborhoodRule, Reals, simplified

__all__ = ["Aggregated", "make_rule"]


@dataclass(frozen=True)
class Aggregated(NeighborhoodRule):
    """A rule of ``byzadmm.aggregators``, or a chain of them, on the node's own model and its neighbors'.

    The own model is row 0: ``NearestNeighborAverage(f)`` has its pivot there. A rule by name has the ``f`` of the run,
    a configured one its own. A link without a center starts from the own model.

    Parameters
    ----------
    rule : name, object of ``byzadmm.aggregators``, or a list of them

    Examples
    --------
    >>> from byzadmm.decentralized import Aggregated
    >>> Aggregated("nnm+median")([0.0], [[1.0], [2.0], [3.0], [90.0]], f=1).tolist()
    [1.5]
    """

    draws: ClassVar[bool] = True

    rule: Any

    def __post_init__(self) -> None:
        chain_of(self.rule, 0)

    def max_f(self, n: int) -> int:
        for f in range(n + 1, -1, -1):
            try:
                chain_of(self.rule, f).check(n + 1)
            except ValueError:
                continue
            return f
        return -1

    def combined(
        self,
        own: Array,
        rows: list[Array],
        weights: Reals,
        own_weight: float,
        f: int,
        rng: np.random.Generator | None = None,
    ) -> Array:
        chain = chain_of(self.rule, f)
        X: Any = [own, *rows]
        if not all(isinstance(link, aggregators.Aggregator) for link in chain.links):
            X = np.stack(X)  # a function takes an array
        generator = np.random.default_rng() if rng is None else rng
        made = chain.in_training(X, workers=np.arange(len(X)), eliminated=0, rng=generator, center=own)
        return own.copy() if made is None else np.asarray(made)

    def describe(self) -> dict[str, Any]:
        return {"name": type(self).__name__, "rule": describe(self.rule)}


def chain_of(rule: Any, f: int) -> aggregators.Chain:
    """The chain for a declared ``f``."""
    return _chain(rule, f) if isinstance(rule, str) else aggregators.make(rule, f=f)


@functools.lru_cache(maxsize=256)
def _chain(rule: str, f: int) -> aggregators.Chain:
    return aggregators.make(rule, f=f)


def make_rule(rule: Any) -> NeighborhoodRule | Callable[..., Any]:
    """A neighborhood rule from its name, an object, a function, or what ``byzadmm.aggregators`` knows.

    Examples
    --------
    >>> from byzadmm.decentralized.rules.aggregated import make_rule
    >>> make_rule("ios"), make_rule("nnm+krum")
    (IOS(b=None), Aggregated(rule='nnm+krum'))
    """
    if isinstance(rule, str):
        kind = REGISTRY.get(simplified(rule))
        if kind is not None:
            return kind()
        try:
            return Aggregated(rule)
        except ValueError as error:
            own = ", ".join(REGISTRY)
            raise ValueError(f"{error}; neighborhood rules are {own}") from error
    if isinstance(rule, (aggregators.Aggregator, aggregators.Chain)):
        return Aggregated(rule)
    if isinstance(rule, Sequence):
        return Aggregated(tuple(rule))
    if callable(rule) and not isinstance(rule, type):
        made: NeighborhoodRule | Callable[..., Any] = rule
        return made
    raise TypeError(
        "rule: expected a neighborhood rule of byzadmm.decentralized, a name, a rule of byzadmm.aggregators, or a "
        f"function (own, rows, weights, own_weight, f) -> (d,); got {rule!r}"
    )
