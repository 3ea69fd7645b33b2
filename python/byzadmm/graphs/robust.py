"""r-robustness by a pass over all sets of nodes."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

__all__ = ["MOST", "robustness"]

#: Nodes for which all sets are tried: 2^16 of them.
MOST = 16


def robustness(neighbors: Sequence[Sequence[int]]) -> int:
    """Largest r for which the graph with these neighbors is r-robust (:meth:`byzadmm.graphs.Graph.robustness`).

    With ``reach(S)`` the most neighbors outside S that a node of S has, it is the minimum over S of ``max(reach(S),
    min of reach over the non-empty subsets of the complement of S)``. The inner minimum for all sets at once takes one
    pass per node, where pairs of sets would be 3^m.

    Examples
    --------
    >>> from byzadmm.graphs.robust import robustness
    >>> robustness([[1], [0, 2], [1]])
    1
    """
    m = len(neighbors)
    sets = np.arange(2**m)
    reach = np.zeros(2**m, np.int64)
    for i in range(m):
        outside = sum((~sets >> j) & 1 for j in neighbors[i]) + np.zeros_like(sets)
        reach = np.where(sets >> i & 1, np.maximum(reach, outside), reach)
    reach[0] = m  # the empty set is none of the two
    least = reach.copy()  # over the subsets of a set
    for i in range(m):
        halves = least.reshape(-1, 2, 2**i)  # without node i, with it
        halves[:, 1] = np.minimum(halves[:, 1], halves[:, 0])
    pairs = np.maximum(reach, least[::-1])  # the complement of set s is 2^m - 1 - s
    return int(min(pairs.min(), (m + 1) // 2))  # a single node has no pair of sets
