"""Decentralized SGD with any neighborhood rule: gossip, BRIDGE, IOS, clipping and others."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np

from byzadmm import _core
from byzadmm._internal.validation import check_choice, check_real
from byzadmm.algorithms.base import State, preset
from byzadmm.decentralized.base import (
    DecentralizedAlgorithm,
    NodeSteps,
    check_step_count,
    checked_steps,
    steps_at,
)
from byzadmm.decentralized.mixing import Declared, Rule, check_declared, combine, declared_of
from byzadmm.decentralized.rules import NeighborhoodRule, make_rule

if TYPE_CHECKING:
    from byzadmm.datasets import Dataset
    from byzadmm.decentralized.network import Nodes
    from byzadmm.graphs import Flaky, Graph

__all__ = ["DSGD"]


@dataclass(frozen=True)
class DSGD(DecentralizedAlgorithm):
    """Decentralized SGD: every node takes a step of its own and combines its model with its neighbors'.

    "adapt-first": ``y_i = x_i - a (g_i + rho x_i)`` is sent, ``x_i <- rule(y_i; y_j)``. "combine-first": ``x_i`` is
    sent, ``x_i <- rule(x_i; x_j) - a (g_i + rho x_i)`` with the slope at the former ``x_i``.

    Parameters
    ----------
    rule : neighborhood rule, name, rule of ``byzadmm.aggregators``, or function
        BRIDGE-T is ``TrimNeighbors(b)``; BRIDGE-M, K and B are "median", "krum" and "bulyan" with "combine-first", on
        the node's own model and its neighbors'. A function is called with ``(own, rows, weights, own_weight, f)``.
    step : step size, or one for each node
    order : None, "adapt-first" or "combine-first"
        None: the rule's own, "combine-first" for TrimNeighbors and WMSR, "adapt-first" for all others.
    f : int, one for each node, or "exact"
        Byzantine neighbors that a node takes into account, for rules that do not have their own number; "exact": as
        many as it has.
    momentum : float in [0, 1)
        Nodes use ``m_i <- momentum m_i + (1 - momentum) g_i`` in place of ``g_i``.
    ideal : bool
        The Byzantine nodes are cut off, and the others train on what is left of the graph: the reference of every
        comparison. With gossip it is SGD gossip in which attackers take no part.

    Examples
    --------
    >>> from byzadmm import steps
    >>> from byzadmm.decentralized import DSGD, IOS
    >>> DSGD(rule=IOS(b=2), step=steps.power(0.9)).order, DSGD(rule="trim-neighbors", f=2, step=steps.power(0.9)).order
    ('adapt-first', 'combine-first')
    """

    rule: Any = "gossip"
    step: NodeSteps = None  # type: ignore[assignment]
    order: str | None = None
    f: Declared = 0
    momentum: float = 0.0
    ideal: bool = False

    def __post_init__(self) -> None:
        if self.step is None:
            raise TypeError("step: expected a step size of byzadmm.steps, one for each node, or a callable k -> float")
        object.__setattr__(self, "step", checked_steps(self.step))
        object.__setattr__(self, "f", check_declared(self.f))
        if self.order is None:
            object.__setattr__(self, "order", self._usual_order)
        check_choice(self.order, "order", ("adapt-first", "combine-first"))
        if not 0 <= check_real(self.momentum, "momentum") < 1:
            raise ValueError(f"momentum: expected a number in [0, 1), got {self.momentum!r}")
        if not isinstance(self.ideal, (bool, np.bool_)):
            raise TypeError(f"ideal: expected True or False, got {type(self.ideal).__name__}")
        if isinstance(self._rule, NeighborhoodRule) and self.f and self._rule.declared(0):
            raise ValueError(f"f: the rule has a number of its own, {self._rule!r}; got f={self.f!r} besides")

    @classmethod
    def for_dataset(cls, data: Dataset, graph: Graph | Flaky | None = None, **changes: Any) -> DSGD:
        """The step for regression on ``data``, on any graph, as in :meth:`byzadmm.SGD.for_dataset`.

        Examples
        --------
        >>> from byzadmm import datasets
        >>> from byzadmm.decentralized import DSGD
        >>> DSGD.for_dataset(datasets.load("digits"), rule="ios", f="exact").step
        Power(c=10.0, p=0.5)
        """
        return cls(**({"step": preset(data).step} | changes))

    @cached_property
    def _rule(self) -> Rule:
        return make_rule(self.rule)

    @property
    def _usual_order(self) -> str:
        return str(getattr(self._rule, "order", NeighborhoodRule.order))

    def changed(self, **changes: Any) -> DSGD:
        """The same with other settings; another rule has its own order, unless this one's was another."""
        if "rule" in changes and self.order == self._usual_order:
            changes = {"order": None} | changes
        return replace(self, **changes)

    def declaring(self, f: int) -> DSGD:
        """The same with as many Byzantine neighbors declared as each node has, if their number is not set."""
        own = isinstance(self._rule, NeighborhoodRule) and self._rule.declared(0)
        return self if self.f or own else self.changed(f="exact")

    def check_graph(self, graph: Graph | Flaky, byzantine: Sequence[int]) -> None:
        check_step_count(self.step, graph.m)
        declared_of(graph, byzantine, self._rule, self.f)

    def begin(self, nodes: Nodes) -> State:
        return {"x": nodes.models()} | ({"momentum": nodes.zeros()} if self.momentum else {})

    def iterate(self, nodes: Nodes, state: State, k: int) -> None:
        x = state["x"]
        g = nodes.gradients(x, k)
        if self.momentum:
            _core.momentum_step(state["momentum"], g, self.momentum, nodes.threads)
            g = state["momentum"]
        if "declared" not in nodes.kept:
            every = declared_of(nodes.run.graph, nodes.run.byzantine, self._rule, self.f)
            nodes.kept["declared"] = every[nodes.numbers]
        f = nodes.kept["declared"]
        alpha = steps_at(self.step, nodes, k)
        moved = np.empty_like(x)
        if self.order == "adapt-first":
            _core.node_steps(x, x, g, None, alpha, nodes.rhos, moved, nodes.threads)
            combine(nodes, nodes.exchange(moved, k), self._rule, f, moved, x, k)
        else:
            combine(nodes, nodes.exchange(x, k), self._rule, f, x, moved, k)
            _core.node_steps(moved, x, g, None, alpha, nodes.rhos, x, nodes.threads)
