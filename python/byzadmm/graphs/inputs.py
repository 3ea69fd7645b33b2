"""What a graph is made from, checked: an adjacency matrix, pairs of nodes, lists of nodes."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from byzadmm._internal.arrays import as_index, is_array, to_numpy
from byzadmm._internal.validation import check_int

__all__ = ["MOST", "Bools", "Ints", "check_nodes", "of_matrix", "of_pairs"]

Ints = NDArray[np.int64]
Bools = NDArray[np.bool_]

#: Nodes of a graph: an edge is one integer while edges are sorted.
MOST = 2**31 - 1


def check_nodes(value: Any, name: str, m: int) -> list[int]:
    """Return ``value`` as a list of different nodes in ``[0, m)``, in the order given."""
    if isinstance(value, str) or not isinstance(value, Iterable):
        raise TypeError(f"{name}: expected a list of nodes, got {type(value).__name__}")
    nodes = [check_int(node, name, low=0, high=m - 1) for node in value]
    if len(set(nodes)) != len(nodes):
        raise ValueError(f"{name}: a node is named twice in {sorted(nodes)}")
    return nodes


def of_matrix(adjacency: Any) -> tuple[int, Ints]:
    """Number of nodes and edges of an adjacency matrix."""
    matrix = to_numpy(adjacency, "adjacency")
    if matrix.dtype.kind not in "biuf":
        raise TypeError(f"adjacency: expected booleans, or numbers 0 and 1, got dtype {matrix.dtype}")
    if matrix.ndim != 2 or matrix.shape[0] != matrix.shape[1] or not matrix.size:
        hint = "; a list of edges needs the number of nodes beside it, as in Graph(edges, 4)"
        raise ValueError(f"adjacency: expected shape (m, m), got {matrix.shape}{hint}")

    def refuse(wrong: Bools, expected: str) -> None:
        if wrong.any():
            i, j = np.argwhere(wrong)[0].tolist()
            raise ValueError(f"adjacency: expected {expected}, got {matrix[i, j]} at ({i}, {j})")

    refuse((matrix != 0) & (matrix != 1), "0 or 1")
    refuse(np.diag(np.diag(matrix) != 0), "zeros on the diagonal, no self-loops")
    refuse(matrix != matrix.T, "a symmetric matrix")
    return len(matrix), np.argwhere(np.triu(matrix != 0)).astype(np.int64)


def of_pairs(edges: Any, m: int) -> Ints:
    """Edges in their one form: pairs (i, j) with i < j, ascending, each once."""
    if not is_array(edges):
        if isinstance(edges, str) or not isinstance(edges, Iterable):
            raise TypeError(f"edges: expected pairs of nodes, got {type(edges).__name__}")
        edges = list(edges)
    pairs = as_index(edges if np.size(edges) else np.empty((0, 2), np.int64), "edges")
    if pairs.ndim != 2 or pairs.shape[1] != 2:
        hint = "; an adjacency matrix is given without m" if pairs.shape == (m, m) else ""
        raise ValueError(f"edges: expected shape (E, 2), one pair of nodes per edge, got {pairs.shape}{hint}")
    low, high = pairs.min(axis=1), pairs.max(axis=1)
    for wrong, expected in (((low < 0) | (high >= m), f"nodes in [0, {m - 1}]"), (low == high, "two different nodes")):
        if wrong.any():
            raise ValueError(f"edges: expected {expected}, got {tuple(pairs[wrong.argmax()].tolist())}")
    return np.stack(np.divmod(np.unique(low * m + high), m), axis=1)
