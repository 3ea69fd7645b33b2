"""Graphs of the literature, made from a few numbers."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np

from byzadmm._internal.validation import check_int, check_real
from byzadmm.graphs.graph import Graph
from byzadmm.graphs.inputs import Bools, Ints, check_nodes

__all__ = [
    "complete",
    "dumbbell",
    "erdos_renyi",
    "octopus",
    "ring",
    "star",
    "torus",
    "two_castle",
    "two_worlds",
]

_MAX_SEED = 2**64 - 1
_TRIES = 1000


def complete(m: int) -> Graph:
    """Graph in which every node is linked to every other.

    Examples
    --------
    >>> from byzadmm import graphs
    >>> graphs.complete(4).degrees.tolist()
    [3, 3, 3, 3]
    """
    return _of(_pairs(check_int(m, "m", low=1)), m)


def ring(m: int, k: int = 1) -> Graph:
    """Graph of nodes in a circle, each linked to the ``k`` nearest on each side.

    Parameters
    ----------
    m : int
        Number of nodes, at least 2.
    k : int
        At most ``m // 2``, with which the graph is complete.

    Examples
    --------
    >>> from byzadmm import graphs
    >>> graphs.ring(7, k=2).neighbors(0)
    [1, 2, 5, 6]
    """
    m = check_int(m, "m", low=2)
    k = check_int(k, "k", low=1, high=m // 2)
    i, step = (part.ravel() for part in np.meshgrid(np.arange(m), np.arange(1, k + 1), indexing="ij"))
    return _of(np.stack([i, (i + step) % m], axis=1), m)


def torus(a: int, b: int) -> Graph:
    """Grid of ``a`` rows and ``b`` columns whose opposite sides are joined: four neighbors for each node.

    Node ``b r + c`` is in row r and column c. Along a side of two nodes there is one link, along one of a single node
    none, so that ``torus(1, b)`` is a ring.

    Examples
    --------
    >>> from byzadmm import graphs
    >>> graphs.torus(3, 4).neighbors(0)
    [1, 3, 4, 8]
    """
    a, b = check_int(a, "a", low=1), check_int(b, "b", low=1)
    node = np.arange(a * b).reshape(a, b)
    links = [(node, np.roll(node, -1, axis)) for axis in (0, 1) if node.shape[axis] > 1]
    pairs = [np.stack([one.ravel(), other.ravel()], axis=1) for one, other in links]
    return _of(np.concatenate([np.empty((0, 2), np.int64), *pairs]), a * b)


def star(m: int) -> Graph:
    """Graph of a hub, node 0, and ``m - 1`` nodes that are linked to the hub alone.

    Examples
    --------
    >>> from byzadmm import graphs
    >>> graphs.star(4).edges.tolist()
    [[0, 1], [0, 2], [0, 3]]
    """
    m = check_int(m, "m", low=1)
    return _of(np.stack([np.zeros(m - 1, np.int64), np.arange(1, m)], axis=1), m)


def erdos_renyi(m: int, p: float, seed: int = 0, connected: Iterable[int] | str | None = "all") -> Graph:
    """Random graph in which each pair of nodes is linked with probability ``p``, independently.

    Parameters
    ----------
    m : int
        Number of nodes.
    p : float in [0, 1]
    seed : int
        The same seed gives the same graph everywhere.
    connected : "all", None or iterable of int
        The graph is drawn anew until the subgraph of these nodes is connected (of the regular ones, say), at most 1000
        times. None: the first one is taken, whatever it is.

    Examples
    --------
    >>> from byzadmm import graphs
    >>> graphs.erdos_renyi(30, 0.7, seed=1)
    <Graph, 30 nodes, 316 edges>
    """
    m = check_int(m, "m", low=1)
    p = check_real(p, "p", low=0.0, high=1.0)
    seed = check_int(seed, "seed", low=0, high=_MAX_SEED)
    if isinstance(connected, str) and connected != "all":
        raise ValueError(f'connected: expected "all", None or a list of nodes, got {connected!r}')
    nodes = None if connected is None else list(range(m))
    if not (connected is None or isinstance(connected, str)):
        nodes = check_nodes(connected, "connected", m)
        if not nodes:
            raise ValueError("connected: expected at least one node, or None, got no node")
    pairs = _pairs(m)
    words = np.random.Philox(key=seed)
    for _ in range(_TRIES):
        graph = _of(pairs[below(words.random_raw(len(pairs)) >> np.uint64(11), p)], m)
        if nodes is None or graph.connected(nodes):
            return graph
    raise ValueError(
        f"p: expected one for which the {len(nodes or ())} nodes of `connected` are connected in one of {_TRIES} "
        f"graphs, got {p} with m={m}; connected=None takes any graph"
    )


def two_castle(k: int) -> Graph:
    """Complete graph on ``2k`` nodes without the links between node ``i`` and node ``i + k``.

    Examples
    --------
    >>> from byzadmm import graphs
    >>> graphs.two_castle(3).neighbors(0)
    [1, 2, 4, 5]

    References
    ----------
    Z. Wu, T. Chen, Q. Ling, "Byzantine-resilient decentralized stochastic optimization with robust aggregation rules",
    IEEE Transactions on Signal Processing 71, 2023; so is :func:`octopus`.
    """
    k = check_int(k, "k", low=2)
    pairs = _pairs(2 * k)
    return _of(pairs[pairs[:, 1] - pairs[:, 0] != k], 2 * k)


def octopus(k: int) -> Graph:
    """Complete graph on the nodes 0..k-1, each with an arm: node ``k + i`` is linked to node ``i`` alone.

    Examples
    --------
    >>> from byzadmm import graphs
    >>> graphs.octopus(3).neighbors(0), graphs.octopus(3).neighbors(3)
    ([1, 2, 3], [0])
    """
    k = check_int(k, "k", low=1)
    node = np.arange(k)
    return _of(np.concatenate([_pairs(k), np.stack([node, node + k], axis=1)]), 2 * k)


def dumbbell(k: int) -> Graph:
    """Two complete graphs, on the nodes 0..k-1 and k..2k-1, joined by the one edge between nodes k-1 and k.

    Examples
    --------
    >>> from byzadmm import graphs
    >>> graphs.dumbbell(3).neighbors(2)
    [0, 1, 3]
    """
    k = check_int(k, "k", low=1)
    return _of(np.concatenate([_pairs(k), _pairs(k) + k, [[k - 1, k]]]), 2 * k)


def two_worlds(k: int, c: int) -> Graph:
    """Two complete graphs on ``k`` nodes each, and from each node links to ``c`` nodes of the other.

    Node ``i < k`` is linked to the nodes ``k + (i + t) mod k``, ``t = 0, ..., c - 1``, so that every node has degree
    ``k - 1 + c``.

    Parameters
    ----------
    k, c : int
        ``1 <= c <= k``.

    Examples
    --------
    >>> from byzadmm import graphs
    >>> graphs.two_worlds(3, 2).neighbors(2), graphs.two_worlds(3, 2).neighbors(3)
    ([0, 1, 3, 5], [0, 2, 4, 5])

    References
    ----------
    R. Gaucher, A. Dieuleveut, H. Hendrikx, "Unified breakdown analysis for Byzantine robust gossip", ICML 2025.
    """
    k = check_int(k, "k", low=1)
    c = check_int(c, "c", low=1, high=k)
    i, t = (part.ravel() for part in np.meshgrid(np.arange(k), np.arange(c), indexing="ij"))
    return _of(np.concatenate([_pairs(k), _pairs(k) + k, np.stack([i, k + (i + t) % k], axis=1)]), 2 * k)


def below(words: np.ndarray[tuple[int, ...], np.dtype[np.uint64 | np.int64]], p: float) -> Bools:
    """Which of these random integers below 2^53 are below ``p 2^53``: none for p = 0, all for p = 1."""
    return words * 2.0**-53 < p


def _pairs(m: int) -> Ints:
    """All pairs i < j, in ascending order."""
    return np.stack(np.triu_indices(m, 1), axis=1)


def _of(edges: Ints, m: int) -> Graph:
    return Graph(edges=edges, m=m)
