"""Graphs from and to networkx."""

from __future__ import annotations

from typing import Any

from byzadmm.graphs.graph import Graph

__all__ = ["from_networkx", "to_networkx"]


def from_networkx(g: Any) -> Graph:
    """Graph with the nodes and edges of a networkx graph; its nodes are numbered 0..m-1 in their order.

    Attributes of nodes and edges are not looked at. Needs networkx.

    Parameters
    ----------
    g : networkx.Graph
        Undirected, without parallel edges and self-loops.

    Examples
    --------
    >>> import networkx
    >>> from byzadmm import graphs
    >>> graphs.from_networkx(networkx.path_graph(["a", "b", "c"])).edges.tolist()
    [[0, 1], [1, 2]]
    """
    networkx = _networkx()
    if not isinstance(g, networkx.Graph):
        raise TypeError(f"g: expected a networkx graph, got {type(g).__name__}")
    if g.is_directed() or g.is_multigraph():
        raise TypeError(f"g: expected an undirected graph without parallel edges, got a {type(g).__name__}")
    number = {node: i for i, node in enumerate(g)}
    if not number:
        raise ValueError("g: expected at least one node, got none")
    loops = [node for node in g if g.has_edge(node, node)]
    if loops:
        raise ValueError(f"g: expected no self-loops, got one at {loops[0]!r}")
    return Graph(edges=[(number[one], number[other]) for one, other in g.edges()], m=len(number))


def to_networkx(graph: Graph) -> Any:
    """``networkx.Graph`` with the nodes 0..m-1 and the same edges. Needs networkx.

    Examples
    --------
    >>> from byzadmm import graphs
    >>> sorted(graphs.to_networkx(graphs.star(3)).edges)
    [(0, 1), (0, 2)]
    """
    if not isinstance(graph, Graph):
        raise TypeError(f"graph: expected a byzadmm.graphs.Graph, got {type(graph).__name__}")
    made = _networkx().Graph()
    made.add_nodes_from(range(graph.m))
    made.add_edges_from(graph.edges.tolist())
    return made


def _networkx() -> Any:
    try:
        import networkx
    except ImportError as error:
        raise ImportError(f"graphs: needs networkx; pip install 'byzadmm[graph]' ({error})") from error
    return networkx
