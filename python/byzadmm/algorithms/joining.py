"""Messages of a round joined to one vector by a rule: what algorithms with a setting ``rule`` share."""

from __future__ import annotations

from dataclasses import replace
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np

from byzadmm import _core, aggregators
from byzadmm._internal.arrays import Array, checked_vector
from byzadmm._internal.description import describe
from byzadmm.aggregators.chain import links_of, reach
from byzadmm.algorithms.base import Algorithm, Heard, State

if TYPE_CHECKING:
    from byzadmm.training.experiment import Experiment

__all__ = ["ByRule", "declared", "draws", "eliminated", "joined", "rule_of"]

_RULE = _core.PURPOSES.index("rule")


def rule_of(rule: Any, f: int, name: str = "rule") -> aggregators.Chain:
    """The chain of ``rule``, which must not hold a generator: a run could not be resumed.

    Examples
    --------
    >>> from byzadmm.algorithms.joining import rule_of
    >>> len(rule_of("nnm+median", f=1).links)
    2
    """
    chain = aggregators.make(rule, f=f)
    if any(isinstance(getattr(link, "rng", None), np.random.Generator) for link in chain.links):
        raise ValueError(f"{name}: a generator cannot be resumed; leave rng out, and the run draws for every round")
    return chain


def declared(rule: Any, f: int) -> Any:
    """``rule`` with ``f`` Byzantine workers declared by its objects whose ``f`` is 0; names take theirs from elsewhere.

    An object after resampling gets ``s f``, the number of means that these workers can change.

    Examples
    --------
    >>> from byzadmm import aggregators
    >>> from byzadmm.algorithms.joining import declared
    >>> declared(["resampling", aggregators.Krum(f=0)], 2)[1].f
    4
    """
    if not isinstance(rule, (list, tuple, aggregators.Chain)):
        return replace(rule, f=f) if getattr(rule, "f", None) == 0 else rule
    parts = rule.links if isinstance(rule, aggregators.Chain) else rule
    return tuple(declared(part, f * reach(links_of(parts[:place]))) for place, part in enumerate(parts))


class ByRule(Algorithm):
    """Base of the algorithms whose master combines messages by ``rule``, a setting as in :class:`SGD`, beside ``f``."""

    rule: Any
    f: int

    def check_rule(self) -> None:
        """Raise an error for a rule that is none; a list becomes a tuple, so that settings do not change."""
        if isinstance(self.rule, list):
            object.__setattr__(self, "rule", tuple(self.rule))
        self.combination()

    @cached_property
    def _chain(self) -> aggregators.Chain:
        return rule_of(self.rule, self.f)

    def combination(self) -> aggregators.Chain:
        """The rule and what comes before it, as one callable."""
        return self._chain

    def check(self, n: int, workers: int | None = None) -> None:
        self.combination().check(n, workers)

    def declaring(self, f: int) -> Algorithm:
        return self.changed(rule=declared(self.rule, f), f=self.f or f)

    def describe(self) -> dict[str, Any]:
        settings = super().describe()
        return settings | ({"rule": describe(self.rule.links)} if isinstance(self.rule, aggregators.Chain) else {})


def joined(
    chain: aggregators.Chain,
    run: Experiment,
    state: State,
    heard: Heard,
    k: int,
    exchange: int = 0,
    *,
    absent: int | None = None,
) -> Array | None:
    """What ``chain`` makes of the messages of round ``k``, (d,); None if they are too few for it.

    ``f`` is lowered by the number of Byzantine workers that are ``absent`` from the messages, by default those that are
    eliminated. Rules that draw do so anew in each ``exchange``. An entry "center" of the state is where centered
    clipping starts, and its result.
    """
    if not len(heard.rows):
        return None
    center = state.get("center")
    made = chain.in_training(
        heard.rows,
        workers=heard.workers,
        eliminated=eliminated(run, state, k) if absent is None else absent,
        rng=draws(run, k, exchange),
        center=None if center is None or np.isnan(center[0]) else center,
        threads=run.threads,
    )
    if made is None:
        return None
    with np.errstate(over="ignore"):
        out = checked_vector(made, "rule", run.d, finite=False).astype(run.dtype)
    if center is not None and np.all(np.isfinite(out)):
        center[:] = out
    return out


def eliminated(run: Experiment, state: State, k: int) -> int:
    """How many of the workers of round ``k`` the master has eliminated."""
    return int(np.sum(state["eliminated"][run.sampling.workers(k)] >= 0))


def draws(run: Experiment, k: int, exchange: int = 0) -> np.random.Generator:
    """The master's random numbers of round ``k``."""
    return np.random.Generator(np.random.Philox(key=run.seed, counter=[0, _RULE, exchange, k]))
