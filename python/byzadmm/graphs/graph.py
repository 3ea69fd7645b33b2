"""The undirected graph: nodes, edges, and the weights and constants that follow from them."""

from __future__ import annotations

import os
from collections.abc import Iterable
from dataclasses import dataclass
from functools import cached_property
from typing import Any, TypeVar

import numpy as np
from numpy.typing import ArrayLike, NDArray

from byzadmm._internal.arrays import as_float
from byzadmm._internal.description import describe
from byzadmm._internal.validation import check_int
from byzadmm.graphs import flow, robust
from byzadmm.graphs.inputs import MOST, Bools, Ints, check_nodes, of_matrix, of_pairs

__all__ = ["Graph"]

Reals = NDArray[np.float64]

Frozen = TypeVar("Frozen", bound=NDArray[Any])


@dataclass(frozen=True, init=False, eq=False, repr=False)
class Graph:
    """Undirected graph on the nodes 0..m-1, without self-loops; it never changes.

    ``Graph(adjacency)`` takes a matrix, ``Graph(edges, m)`` pairs of nodes and the number of nodes. Graphs with the
    same nodes and edges are equal and have the same hash.

    Parameters
    ----------
    adjacency : (m, m) array_like
        Symmetric, of booleans or of the numbers 0 and 1, with zeros on the diagonal. With ``m``: the edges.
    m : int, optional
        Number of nodes, if edges are given.
    edges : iterable of pairs of nodes, optional
        The same as the first argument with ``m``, by its name. An edge may be named several times, in either order.

    Attributes
    ----------
    m : int
        Number of nodes.
    edges : (E, 2) int64 array
        Each edge once, with the smaller node first, in ascending order; read-only.

    Examples
    --------
    >>> from byzadmm.graphs import Graph
    >>> square = Graph([(0, 1), (1, 2), (2, 3), (3, 0)], 4)
    >>> square.edges.tolist(), square.neighbors(0)
    ([[0, 1], [0, 3], [1, 2], [2, 3]], [1, 3])
    >>> Graph(square.adjacency) == square
    True
    """

    m: int
    edges: Ints

    def __init__(self, adjacency: Any = None, m: int | None = None, *, edges: Any = None) -> None:
        if (adjacency is None) == (edges is None):
            came = "neither" if edges is None else "both"
            raise TypeError(f"Graph: expected an adjacency matrix, or edges and the number of nodes; got {came}")
        if edges is None and m is not None:
            adjacency, edges = None, adjacency
        if edges is None:
            m, pairs = of_matrix(adjacency)
        elif m is None:
            raise TypeError("m: expected the number of nodes beside the edges, as in Graph(edges, 4); got none")
        else:
            m = check_int(m, "m", low=1, high=MOST)
            pairs = of_pairs(edges, m)
        object.__setattr__(self, "m", m)
        object.__setattr__(self, "edges", _frozen(pairs))

    @cached_property
    def adjacency(self) -> Bools:
        """(m, m) booleans, symmetric: who is a neighbor of whom; read-only."""
        matrix = np.zeros((self.m, self.m), np.bool_)
        i, j = self.edges.T
        matrix[i, j] = matrix[j, i] = True
        return _frozen(matrix)

    @cached_property
    def degrees(self) -> Ints:
        """(m,) int64: the number of neighbors of each node; read-only."""
        return _frozen(np.bincount(self.edges.ravel(), minlength=self.m).astype(np.int64))

    @cached_property
    def _neighbors(self) -> tuple[tuple[int, ...], ...]:
        both = np.concatenate([self.edges, self.edges[:, ::-1]])
        both = both[np.lexsort((both[:, 1], both[:, 0]))]
        return tuple(tuple(part.tolist()) for part in np.split(both[:, 1], np.cumsum(self.degrees)[:-1]))

    def neighbors(self, i: int) -> list[int]:
        """The neighbors of node ``i``, ascending."""
        return list(self._neighbors[check_int(i, "i", low=0, high=self.m - 1)])

    def metropolis(self) -> Reals:
        """Metropolis weights: ``W_ij = 1/(1 + max(deg_i, deg_j))`` for neighbors, ``W_ii = 1 - sum_j W_ij``.

        Returns
        -------
        (m, m) array
            Symmetric, not negative, and every row sums to one.

        Examples
        --------
        >>> from byzadmm import graphs
        >>> graphs.star(3).metropolis().round(3).tolist()
        [[0.333, 0.333, 0.333], [0.333, 0.667, 0.0], [0.333, 0.0, 0.667]]
        """
        weights = np.zeros((self.m, self.m))
        i, j = self.edges.T
        weights[i, j] = weights[j, i] = 1.0 / (1 + np.maximum(self.degrees[i], self.degrees[j]))
        # No row of the others exceeds deg/(1 + deg): what is left is positive.
        np.fill_diagonal(weights, 1.0 - weights.sum(axis=1))
        return weights

    def incidence(self) -> Ints:
        """Incidence matrix (E, m): +1 at the smaller node of each edge, -1 at the larger.

        ``A^T A`` is the Laplacian, ``diag(degrees) - adjacency``.
        """
        matrix = np.zeros((len(self.edges), self.m), np.int64)
        rows = np.arange(len(self.edges))
        matrix[rows, self.edges[:, 0]] = 1
        matrix[rows, self.edges[:, 1]] = -1
        return matrix

    @cached_property
    def components(self) -> Ints:
        """(m,) int64: the connected component of each node, numbered by their first nodes from 0 on; read-only."""
        labels = np.full(self.m, -1)
        for first in range(self.m):
            if labels[first] < 0:
                labels[list(self._reached(first, set(range(self.m))))] = labels.max() + 1
        return _frozen(labels)

    def connected(self, nodes: Iterable[int] | None = None) -> bool:
        """Whether the subgraph of these nodes, by default of all, is connected: a path inside it between any two.

        Examples
        --------
        >>> from byzadmm import graphs
        >>> graphs.star(5).connected(), graphs.star(5).connected([1, 2, 3])
        (True, False)
        """
        among = set(range(self.m) if nodes is None else check_nodes(nodes, "nodes", self.m))
        if not among:
            raise ValueError("nodes: expected at least one node, got none")
        return len(self._reached(min(among), among)) == len(among)

    def _reached(self, first: int, among: set[int]) -> set[int]:
        """The nodes of ``among`` to which a path inside ``among`` leads from ``first``."""
        reached, ahead = {first}, [first]
        while ahead:
            found = among.intersection(self._neighbors[ahead.pop()]) - reached
            reached |= found
            ahead += found
        return reached

    def without(self, nodes: Iterable[int]) -> Graph:
        """The subgraph of the other nodes, numbered anew from 0 in their order.

        Examples
        --------
        >>> from byzadmm import graphs
        >>> graphs.ring(5).without([1]).edges.tolist()
        [[0, 3], [1, 2], [2, 3]]
        """
        kept = np.ones(self.m, np.bool_)
        kept[check_nodes(nodes, "nodes", self.m)] = False
        if not kept.any():
            raise ValueError(f"nodes: expected fewer than all {self.m} nodes, got all of them")
        inside = self.edges[kept[self.edges].all(axis=1)]
        return Graph(edges=(np.cumsum(kept) - 1)[inside], m=int(kept.sum()))

    def cut_off(self, nodes: Iterable[int]) -> Graph:
        """The graph on the same nodes without the edges of these.

        Examples
        --------
        >>> from byzadmm import graphs
        >>> graphs.ring(5).cut_off([1]).edges.tolist()
        [[0, 4], [2, 3], [3, 4]]
        """
        cut = np.zeros(self.m, np.bool_)
        cut[check_nodes(nodes, "nodes", self.m)] = True
        return Graph(edges=self.edges[~cut[self.edges].any(axis=1)], m=self.m)

    def robustness(self) -> int:
        """Largest ``r`` for which the graph is r-robust; at most 16 nodes.

        A graph is r-robust if of any two disjoint non-empty sets of nodes at least one has a node with ``r`` or more
        neighbors outside its set. (2F+1)-robust graphs reach agreement by W-MSR in spite of F Byzantine neighbors of
        every node. The complete graph has the largest value, ``ceil(m/2)``; a single node counts as 1-robust.

        Examples
        --------
        >>> from byzadmm import graphs
        >>> graphs.complete(5).robustness(), graphs.ring(6).robustness(), graphs.Graph([], 3).robustness()
        (3, 1, 0)

        References
        ----------
        H. LeBlanc, H. Zhang, X. Koutsoukos, S. Sundaram, "Resilient asymptotic consensus in robust networks", IEEE
        JSAC 31(4), 2013.
        """
        if self.m > robust.MOST:
            raise ValueError(f"robustness: expected at most {robust.MOST} nodes (2^m sets are tried), got {self.m}")
        return robust.robustness([self.neighbors(i) for i in range(self.m)])

    def lambda_0(self, h: ArrayLike, *, tol: float | None = None) -> Any:
        r"""Least penalty for which TV-penalized consensus has the minimizer ``x*`` of the whole problem.

        ``lambda_0 = max_S |sum_{i in S} h_ic| / |edges that leave S|`` over sets of nodes S, in every coordinate c.

        ``x*`` minimizes ``sum_i F_i(x_i) + f0(x_i) + lam sum_edges ||x_i - x_j||_1`` if and only if a flow of at most
        ``lam`` through each edge carries ``h`` off: out of node i flows ``h_ic``, net. By max-flow min-cut there is
        one exactly if no set of nodes has more to send than its outgoing edges carry. The largest ratio is found by
        Newton's method on minimum cuts (Dinkelbach), and proved by a flow, in all coordinates side by side; it is that
        of a set of nodes, correct up to rounding.

        Parameters
        ----------
        h : (m, d) or (m,) array_like
            Row i is the gradient of ``F_i + f0`` at ``x*``; finite. A graph with Byzantine nodes is taken
            :meth:`without` them.
        tol : float, optional
            A component's sum that is below ``tol`` times the sum of all ``|h_ic|`` of its coordinate counts as
            rounding, and its mean is subtracted. By default 1e-9, and 1e-4 if ``h`` is in single precision.

        Returns
        -------
        (d,) float64 array, or float for (m,)
            Infinite where the ``h`` of a connected component do not sum to zero: no penalty is large enough.

        Examples
        --------
        On a ring of four nodes with ``F_i = (x - b_i)^2/2``, ``b = (2, 0, -2, 0)``, ``x*`` is 0 and ``h`` is ``-b``:

        >>> from byzadmm import graphs
        >>> ring = graphs.ring(4)
        >>> ring.lambda_0([-2, 0, 2, 0]), round(ring.lambda_bound([-2, 0, 2, 0]), 2)
        (1.0, 2.83)

        References
        ----------
        The problem: J. Peng, W. Li, Q. Ling, "Byzantine-robust decentralized stochastic optimization over static and
        time-varying networks", Signal Processing 183, 2021. The exact constant is ours (``docs/decentralized.md``).
        """
        rows, single = self._checked(h)
        columns, exponents = flow.balanced(rows, self.components, tol)
        largest = flow.largest_ratios(columns, self.edges)
        with np.errstate(over="ignore", under="ignore"):
            found = np.ldexp(largest, exponents)
        return float(found[0]) if single else found

    def lambda_bound(self, h: ArrayLike, *, tol: float | None = None) -> float:
        """Published sufficient penalty: ``sqrt(m)/sigma_min(A) max_i ||h_i||_inf``, often several times too large.

        ``A`` is the incidence matrix, ``sigma_min`` its least singular value that is not zero. Arguments, and when it
        is infinite, are those of :meth:`lambda_0`, which it is never below.
        """
        rows, _ = self._checked(h)
        columns, _ = flow.balanced(rows, self.components, tol)
        largest = float(np.abs(rows).max(initial=0.0))
        if np.isnan(columns).any():
            return float("inf")
        if largest == 0 or not len(self.edges):
            return 0.0
        # The squared singular values are the eigenvalues of the Laplacian, of which each component has one zero.
        laplacian = np.diag(self.degrees) - self.adjacency.astype(np.int64)
        least = np.linalg.eigvalsh(laplacian.astype(np.float64))[self.components.max() + 1]
        return float(np.sqrt(self.m / least)) * largest

    def _checked(self, h: ArrayLike) -> tuple[NDArray[Any], bool]:
        """``h`` as an (m, d) array of finite numbers, and whether it came as (m,)."""
        array = as_float(h, "h")
        if array.ndim not in (1, 2) or len(array) != self.m:
            raise ValueError(f"h: expected shape ({self.m}, d) or ({self.m},), one row per node, got {array.shape}")
        if not np.all(np.isfinite(array)):
            raise ValueError("h: expected finite numbers")
        return (array[:, None], True) if array.ndim == 1 else (array, False)

    def present(self, k: int, seed: int = 0) -> Bools:
        """(E,) booleans: which of ``edges`` are there in round ``k``. All: :class:`Flaky` has others."""
        return np.ones(len(self.edges), np.bool_)

    def at(self, k: int, seed: int = 0) -> Graph:
        """The graph of round ``k``: itself, in every round; that of a :class:`Flaky` varies."""
        return self

    def plot(self, path: str | os.PathLike[str] | None = None, *, byzantine: Iterable[int] = (), ax: Any = None) -> Any:
        """Draw nodes and edges, and return the axes.

        Needs matplotlib. Nodes are on a circle, node 0 on top; graphs that :mod:`byzadmm.graphs` makes are drawn in
        the form that their names suggest. Byzantine nodes differ in color and shape, their edges in color.

        Parameters
        ----------
        path : path, optional
            Write the picture there: PNG, PDF or SVG.
        byzantine : iterable of int
            The Byzantine nodes.
        ax : axes, optional
            Draw there; by default on a new figure.
        """
        from byzadmm.graphs.pictures import draw

        return draw(self, path, byzantine=check_nodes(byzantine, "byzantine", self.m), ax=ax)

    def describe(self) -> dict[str, Any]:
        """Number of nodes and a digest of the edges, for a result's config."""
        return {"name": type(self).__name__, "m": self.m, "edges": describe(self.edges)}

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Graph):
            return NotImplemented
        return self.m == other.m and np.array_equal(self.edges, other.edges)

    def __hash__(self) -> int:
        return hash((self.m, self.edges.tobytes()))

    def __reduce__(self) -> tuple[type[Graph], tuple[Ints, int]]:
        # Arrays that are unpickled are writable.
        return type(self), (self.edges, self.m)

    def __repr__(self) -> str:
        return f"<Graph, {self.m} nodes, {len(self.edges)} edges>"


def _frozen(array: Frozen) -> Frozen:
    """The array itself, read-only from now on."""
    array.flags.writeable = False
    return array
