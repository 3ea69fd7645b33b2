"""The largest ratio of what a set of nodes sends to the edges that leave it, by max-flow min-cut in many columns.

All columns are worked on side by side: an array has a row per node (m, d) or per edge (E, d), and one column per
coordinate. Flow along an edge (i, j), i < j, is positive from i to j.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from byzadmm._internal.validation import check_real

__all__ = ["balanced", "largest_ratios"]

Reals = NDArray[np.float64]
Ints = NDArray[np.int64]
Bools = NDArray[np.bool_]

_EPS = float(np.finfo(np.float64).eps)
_TOLERANCE = {4: 1e-4, 8: 1e-9}  # by bytes of a number
_AT_ONCE = 1 << 22  # flows that are held at once: 32 MB
_FAR = np.iinfo(np.int32).max  # the distance of a node from which there is no way


def balanced(h: NDArray[Any], components: Ints, tol: float | None) -> tuple[Reals, NDArray[np.int32]]:
    """Columns scaled to a size of about one, with component sums of zero, and the exponents of two that were taken out.

    NaN: a component's sum is not zero, up to ``tol`` times the sum of all absolute values of the column.
    """
    tol = _TOLERANCE[h.dtype.itemsize] if tol is None else check_real(tol, "tol", low=0.0)
    # Powers of two: nothing is rounded, and the result for 2^k h is 2^k times that for h, bit by bit.
    columns = h.astype(np.float64)
    exponents = np.frexp(np.abs(columns).max(axis=0, initial=0.0))[1]
    with np.errstate(under="ignore"):
        columns = np.ldexp(columns, -exponents)
    limits = tol * np.abs(columns).sum(axis=0)
    bad = np.zeros(columns.shape[1], np.bool_)
    for component in range(components.max() + 1):
        inside = components == component
        sums = columns[inside].sum(axis=0)
        bad |= np.abs(sums) > limits
        columns[inside] -= sums / inside.sum()
    columns[:, bad] = np.nan
    return columns, exponents


def largest_ratios(h: Reals, edges: Ints) -> Reals:
    """``max_S |sum_{i in S} h_i| / |edges that leave S|`` of every column of ``h``, as :func:`balanced` gives them.

    Examples
    --------
    >>> import numpy as np
    >>> from byzadmm.graphs.flow import largest_ratios
    >>> largest_ratios(np.array([[0.5], [0.25], [-0.75]]), np.array([[0, 1], [1, 2]])).tolist()
    [0.75]
    """
    found = np.full(h.shape[1], np.inf)
    columns = np.flatnonzero(~np.isnan(h).any(axis=0))
    if not len(edges):
        found[columns] = 0.0
        return found
    network = _Network(edges, len(h))
    width = max(1, _AT_ONCE // len(edges))
    for lo in range(0, len(columns), width):
        part = columns[lo : lo + width]
        found[part] = network.largest_ratios(h[:, part])
    return found


class _Network:
    """The edges in both directions, by the node that they leave."""

    def __init__(self, edges: Ints, m: int) -> None:
        self.i, self.j = edges.T
        self.m = m
        count = len(edges)
        tails = np.concatenate([self.i, self.j])
        self.order = np.argsort(tails, kind="stable")
        tails = tails[self.order]
        self.heads = np.concatenate([self.j, self.i])[self.order]
        edge = self.order % count
        sign = np.where(self.order < count, 1.0, -1.0)[:, None]
        #: Where the arcs of the nodes with any begin, and those nodes.
        self.firsts = np.flatnonzero(np.diff(tails, prepend=-1))
        self.tails = tails[self.firsts]
        #: Per such node: the edges at it, the direction in which they leave it, the nodes at their other ends.
        ends = [*self.firsts[1:].tolist(), 2 * count]
        spans = [slice(lo, hi) for lo, hi in zip(self.firsts.tolist(), ends, strict=True)]
        self.around = [
            (int(i), edge[span], sign[span], self.heads[span]) for i, span in zip(self.tails, spans, strict=True)
        ]
        self.incidence = np.zeros((count, m))
        self.incidence[np.arange(count), self.i] = 1.0
        self.incidence[np.arange(count), self.j] = -1.0

    def ratios(self, inside: Bools, h: Reals) -> Reals:
        """What the sets of nodes (m, d) send per edge that leaves them; 0 for sets that none leaves."""
        inside = inside ^ inside[:1]  # a set and the rest send the same, up to rounding: the one without node 0
        sent = np.abs(np.where(inside, h, 0.0).sum(axis=0))
        leaving = np.count_nonzero(inside[self.i] != inside[self.j], axis=0)
        found: Reals = np.divide(sent, leaving, out=np.zeros(len(sent)), where=leaving > 0)
        return found

    def largest_ratios(self, h: Reals) -> Reals:
        """Newton's method: a flow under the ratio found so far either carries all, or shows a set of larger ratio."""
        ratio, flow = self.begin(h)
        rounding = 4 * self.m * _EPS * np.abs(h).max(axis=0, initial=0.0)
        live = np.arange(h.shape[1])
        while len(live):
            now, flows = ratio[live], flow[:, live]
            stuck = self.push(flows, now, h[:, live] - self.incidence.T @ flows, rounding[live])
            flow[:, live] = flows  # legal under any larger ratio too
            larger = self.ratios(stuck, h[:, live])
            ratio[live] = np.maximum(now, larger)
            # Every further round has a set of strictly larger ratio; what does not count is rounding.
            live = live[larger > now * (1 + 16 * _EPS)]
        return ratio

    def begin(self, h: Reals) -> tuple[Reals, Reals]:
        """Ratios of good sets of nodes, and a flow within them that carries most of ``h``.

        The flow of least energy, ``y_i - y_j`` with potentials ``L y = h``, is clipped, and what is then missing is
        sent along the flow of least energy once more. The sets are those of the nodes of highest potential: in random
        problems 99 of 100 columns have their best set among them.
        """
        m, d = h.shape
        inverse = np.linalg.pinv(self.incidence.T @ self.incidence, hermitian=True)
        potential = inverse @ h
        order = np.argsort(-potential, axis=0, kind="stable")
        rank = np.argsort(order, axis=0, kind="stable")
        low, high = np.minimum(rank[self.i], rank[self.j]), np.maximum(rank[self.i], rank[self.j])
        # An edge leaves the sets of the first n nodes for low < n <= high.
        column = np.arange(d)
        opens, closes = (np.bincount((end * d + column).ravel(), minlength=m * d) for end in (low, high))
        leaving = np.cumsum((opens - closes).reshape(m, d), axis=0)
        sent = np.abs(np.cumsum(np.take_along_axis(h, order, axis=0), axis=0))
        ratios = np.divide(sent, leaving, out=np.zeros((m, d)), where=leaving > 0)
        ratio = self.ratios(rank <= ratios.argmax(axis=0), h)
        flow = np.clip(potential[self.i] - potential[self.j], -ratio, ratio)
        missing = inverse @ (h - self.incidence.T @ flow)
        flow += missing[self.i] - missing[self.j]
        return ratio, np.clip(flow, -ratio, ratio, out=flow)

    def push(self, flow: Reals, most: Reals, excess: Reals, rounding: Reals) -> Bools:
        """Push excess to nodes that lack something along shortest ways, at most ``most`` per edge; changes ``flow``.

        Returns the nodes (m, d) from which no way was left at the end: if they have excess, ``most`` is too small for
        what they send. This is push-relabel with exact distances. A node either gets rid of its excess or fills all
        of its shortest ways, which puts it farther away: a column takes at most m^2 sweeps, usually about ten.
        """
        stuck = np.zeros(excess.shape, np.bool_)
        columns = np.flatnonzero((excess > rounding).any(axis=0))
        forward = True
        while len(columns):
            left = excess[:, columns]
            far = self.distances(flow[:, columns], most[columns], left < -rounding[columns])
            stuck[:, columns] = far == _FAR
            go = ((left > rounding[columns]) & (far < _FAR)).any(axis=0)
            columns, far = columns[go], far[:, go]
            for i, edge, sign, heads in self.around if forward else reversed(self.around):
                at = np.flatnonzero((excess[i, columns] > rounding[columns]) & (far[i] < _FAR) & (far[i] > 0))
                if len(at):
                    where = columns[at]
                    limit, have = most[where], excess[i, where]
                    out = flow[edge[:, None], where] * sign
                    room = (limit - out) * (far[heads[:, None], at] == far[i, at] - 1)
                    filled = np.cumsum(room, axis=0)
                    sent = np.minimum(np.maximum(have - (filled - room), 0.0), room)
                    full = (sent == room) & (sent > 0)
                    # Filled edges are at the limit itself, whatever a sum would be rounded to.
                    flow[edge[:, None], where] = np.where(full, limit, out + sent) * sign
                    excess[heads[:, None], where] += sent
                    excess[i, where] = np.maximum(have - filled[-1], 0.0)
            forward = not forward
        return stuck

    def distances(self, flow: Reals, most: Reals, goals: Bools) -> NDArray[np.int32]:
        """Edges with room (m, d) on the shortest way to a goal, by a search backwards, eight columns to a byte."""
        room = np.packbits(np.concatenate([flow < most, flow > -most]), axis=1)[self.order]
        reached = ahead = np.packbits(goals, axis=1)
        far: NDArray[np.int32] = np.where(goals, np.int32(0), np.int32(_FAR))
        for distance in range(1, self.m):
            found = np.zeros_like(reached)
            found[self.tails] = np.bitwise_or.reduceat(room & ahead[self.heads], self.firsts, axis=0)
            ahead = found & ~reached
            if not ahead.any():
                break
            reached = reached | ahead
            far[np.unpackbits(ahead, axis=1, count=flow.shape[1]).view(np.bool_)] = distance
        return far
