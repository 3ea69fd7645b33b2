"""A graph whose edges fail at random, anew in every round."""

from __future__ import annotations

import os
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import numpy as np

from byzadmm import _core
from byzadmm._internal.description import describe
from byzadmm._internal.validation import check_int, check_real
from byzadmm.graphs.graph import Graph
from byzadmm.graphs.inputs import Bools, Ints, check_nodes
from byzadmm.graphs.makers import below

__all__ = ["Flaky", "checked_graph"]

_EDGE = _core.PURPOSES.index("edge")
_MAX_SEED = 2**64 - 1
_MAX_ROUND = 2**63 - 1


@dataclass(frozen=True)
class Flaky:
    """Time-varying graph: in every round each edge of a graph is there with probability ``p``, independently.

    What does not change from round to round is that of the graph: ``m``, ``edges``, ``adjacency``, ``degrees``,
    ``neighbors``, ``connected``. The graph of a round is :meth:`at`, and it depends on ``seed`` and round alone, not
    on what was drawn before. A plain :class:`Graph` has ``present`` and ``at`` too.

    Parameters
    ----------
    graph : Graph
    p : float in [0, 1]

    Examples
    --------
    >>> from byzadmm import graphs
    >>> flaky = graphs.Flaky(graphs.ring(6), p=0.5)
    >>> flaky.present(k=1, seed=0).tolist()
    [True, True, False, True, True, True]
    >>> flaky.at(k=1, seed=0).edges.tolist() == flaky.edges[flaky.present(k=1, seed=0)].tolist()
    True
    """

    graph: Graph
    p: float

    def __post_init__(self) -> None:
        if not isinstance(self.graph, Graph):
            raise TypeError(f"graph: expected a byzadmm.graphs.Graph, got {type(self.graph).__name__}")
        object.__setattr__(self, "p", check_real(self.p, "p", low=0.0, high=1.0))

    @property
    def m(self) -> int:
        """Number of nodes."""
        return self.graph.m

    @property
    def edges(self) -> Ints:
        """(E, 2) int64: every edge that may be there."""
        return self.graph.edges

    @property
    def adjacency(self) -> Bools:
        """(m, m) booleans: who may be a neighbor of whom."""
        return self.graph.adjacency

    @property
    def degrees(self) -> Ints:
        """(m,) int64: the most neighbors that each node may have."""
        return self.graph.degrees

    def neighbors(self, i: int) -> list[int]:
        """Every node that may be a neighbor of node ``i``, ascending."""
        return self.graph.neighbors(i)

    def connected(self, nodes: Iterable[int] | None = None) -> bool:
        """Whether the subgraph of these nodes, by default of all, is connected when every edge is there."""
        return self.graph.connected(nodes)

    def without(self, nodes: Iterable[int]) -> Flaky:
        """The subgraph of the other nodes, numbered anew from 0 in their order; its draws are others."""
        return Flaky(self.graph.without(nodes), self.p)

    def cut_off(self, nodes: Iterable[int]) -> Flaky:
        """The graph on the same nodes without the edges of these, with the draws of :meth:`without`."""
        return Flaky(self.graph.cut_off(nodes), self.p)

    def present(self, k: int, seed: int = 0) -> Bools:
        """(E,) booleans: which of ``edges`` are there in round ``k``, from the stream (seed; edge, 0, k)."""
        k = check_int(k, "k", low=0, high=_MAX_ROUND)
        words = np.empty(len(self.edges), np.int64)
        _core.philox_integers(words, 2**53, check_int(seed, "seed", low=0, high=_MAX_SEED), (_EDGE, 0, k))
        return below(words, self.p)

    def at(self, k: int, seed: int = 0) -> Graph:
        """The graph of round ``k``: all nodes, and the edges that are there."""
        return Graph(edges=self.edges[self.present(k, seed)], m=self.m)

    def plot(self, path: str | os.PathLike[str] | None = None, *, byzantine: Iterable[int] = (), ax: Any = None) -> Any:
        """Draw the graph with dashed edges; arguments and result are those of :meth:`Graph.plot`."""
        from byzadmm.graphs.pictures import draw

        return draw(self.graph, path, byzantine=check_nodes(byzantine, "byzantine", self.m), ax=ax, line="--")

    def describe(self) -> dict[str, Any]:
        """Graph and probability, for a result's config."""
        return {"name": type(self).__name__, "graph": self.graph.describe(), "p": describe(self.p)}


def checked_graph(graph: Any) -> Graph | Flaky:
    """``graph`` itself, if it is one."""
    if not isinstance(graph, (Graph, Flaky)):
        raise TypeError(f"graph: expected one of byzadmm.graphs, got {type(graph).__name__}")
    return graph
