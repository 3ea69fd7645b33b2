"""Which messages travel between which ranks, and the nodes of one rank, whose messages come over MPI."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from byzadmm import _core
from byzadmm._internal.arrays import Array
from byzadmm.algorithms.base import State
from byzadmm.decentralized.experiment import GraphExperiment, rounds
from byzadmm.decentralized.network import Links, Network, Nodes, links_of, tells_apart
from byzadmm.engines.messages import HEADER_BYTES
from byzadmm.engines.mpi._master import share
from byzadmm.engines.mpi._peers import WITHIN, Peers

__all__ = ["Follower", "RankNodes", "Routes", "check_routes", "peers_of"]

Ints = NDArray[np.int64]
_LARGEST = 2**31 - 1  # bytes in one message, a limit of MPI


class Route(NamedTuple):
    """What one rank sends another: ``row[i]`` of the message goes on ``links[i]``; ``of[r]`` is a link of row r."""

    links: Ints
    row: Ints
    of: Ints


class Routes:
    """Who sends what to whom, in a run whose nodes are on several ranks.

    A node's message goes to a rank once, whoever of its nodes hears it; forged ones too unless an attack tells every
    receiver something else.

    Attributes
    ----------
    links : Links
        Those of the whole graph.
    place : (m,) int64
        The rank of each node.
    forged : (L,) bool
        Links on which a Byzantine node speaks to a regular one.
    """

    def __init__(self, run: GraphExperiment, size: int) -> None:
        self.run, self.m = run, run.m
        self.links: Links = links_of(run.graph.edges, run.m)
        self.place = np.repeat(np.arange(size), [len(share(run.m, rank, size)) for rank in range(size)])
        byzantine = np.zeros(run.m, np.bool_)
        byzantine[run.byzantine] = True
        self.forged = byzantine[self.links.senders] & ~byzantine[self.links.receivers]
        told = 2 + self.links.receivers if tells_apart(run.attack) else 1
        self._message = self.links.senders * (run.m + 2) + np.where(self.forged, told, 0)
        self.sources, self.targets = self.place[self.links.senders], self.place[self.links.receivers]

    def there(self, k: int) -> NDArray[np.bool_]:
        """The links of round ``k``."""
        graph = self.run.graph.at(k, self.run.seed)
        found: NDArray[np.bool_] = graph.adjacency[self.links.receivers, self.links.senders]
        return found

    def between(self, source: int, target: int, there: Any) -> Route | None:
        """What a rank sends another on the links that are there; None: nothing."""
        links = np.flatnonzero((self.sources == source) & (self.targets == target) & there)
        if not len(links):
            return None
        _, of, row = np.unique(self._message[links], return_index=True, return_inverse=True)
        return Route(links, row.reshape(-1), links[of])


def peers_of(routes: Routes, rank: int) -> list[int]:
    """The ranks with neighbors of a rank's nodes."""
    others: list[int] = np.unique(routes.sources[(routes.targets == rank) & (routes.sources != rank)]).tolist()
    return others


def check_routes(run: GraphExperiment, size: int) -> None:
    """Raise a ValueError for a run that cannot have its nodes on several ranks."""
    name = type(run.algorithm).__name__
    if run.algorithm.together:
        raise ValueError(f"algorithm: {name} does not run over MPI: {run.algorithm.together}")
    if run.iterations >= 2**63 // WITHIN:
        raise ValueError(f"iterations: expected less than {2**63 // WITHIN} over MPI, got {run.iterations}")
    routes = Routes(run, size)
    most = max((len(route.of) for route in _all_routes(routes, size)), default=0) * run.length * run.dtype.itemsize
    most = max(most, max(len(share(run.m, rank, size)) for rank in range(size)) * run.d * run.dtype.itemsize)
    if HEADER_BYTES + most > _LARGEST:
        raise ValueError(f"mpi: {most} bytes from one rank are too many for a message; use more ranks")


def _all_routes(routes: Routes, size: int) -> list[Route]:
    pairs = [(source, target) for target in range(1, size) for source in peers_of(routes, target)]
    return [route for pair in pairs if (route := routes.between(*pair, True)) is not None]


class Follower(Network):
    """All nodes of a run as they are if every rank answers: what attackers see, computed where they are.

    Attributes
    ----------
    state : State
    """

    def __init__(self, run: GraphExperiment) -> None:
        super().__init__(run)
        self.state, self._advance = rounds(run, self)
        self._told: list[dict[int, Array]] = []
        self._at = -1

    def forged(self, k: int, place: int) -> dict[int, Array]:
        """What is forged in an exchange of round ``k``, by the number of the link."""
        if self._at != k:
            self._told = []
            self._advance(self.state, k, 1)
            self._at = k
        return self._told[place]

    def _heard(self, *given: Any) -> tuple[list[Array], NDArray[np.bool_], Ints]:
        self._told.append({})
        return super()._heard(*given)

    def _forge(self, *given: Any) -> list[tuple[Array, Ints, Ints]]:
        made = super()._forge(*given)
        for rows, at, place in made:
            self._told[-1].update(zip(at.tolist(), (rows[row] for row in place.tolist()), strict=True))
        return made


class RankNodes(Nodes):
    """The nodes of one rank, whose messages from other ranks come over MPI.

    Parameters
    ----------
    run : GraphExperiment
    rank, size : int
    peers : Peers
        Has begun with this run.
    over : callable
        Whether the run is over: called while waiting.
    """

    def __init__(self, run: GraphExperiment, rank: int, size: int, peers: Peers, over: Callable[[], bool]) -> None:
        super().__init__(run, share(run.m, rank, size))
        self.rank, self._peers, self._over = rank, peers, over
        self.routes = Routes(run, size)
        self._others = peers_of(self.routes, rank)
        self._here = np.flatnonzero(self.routes.targets == rank)  # link l of these nodes is this one of all
        self._told = np.flatnonzero((self.routes.sources == rank) & self.routes.forged)
        self._inner = np.flatnonzero(self.routes.sources[self._here] == rank)
        native = run.native_attack is not None and getattr(run.attack, "sees", "all") == "own"
        self._looks = len(self._told) > 0 and (tells_apart(run.attack) or not native)
        self.follower = Follower(run) if self._looks else None
        self._round, self._place = -1, 0
        self._fixed: tuple[Any, Any] = None, None

    @property
    def others(self) -> dict[int, int]:
        """The ranks with neighbors of these nodes -> the first of their nodes."""
        return {other: int(np.argmax(self.routes.place == other)) for other in self._others}

    @property
    def longest(self) -> int:
        """Bytes of the longest message from another rank."""
        ways = [self.routes.between(other, self.rank, True) for other in self._others]
        rows = max((len(way.of) for way in ways if way is not None), default=0)
        return HEADER_BYTES + rows * self.run.length * self.dtype.itemsize

    def parts(self) -> State:
        """The state of the follower, for a checkpoint."""
        return {} if self.follower is None else self.follower.state

    def _ways(self, k: int) -> tuple[Any, dict[int, Route], dict[int, Route]]:
        """Which links are there in round ``k``, and what is sent to and heard from other ranks."""
        graph = self.run.graph.at(k, self.run.seed)
        held, found = self._fixed
        if held is not graph:
            there = self.routes.there(k)
            out = {other: self.routes.between(self.rank, other, there) for other in self._others}
            into = {other: self.routes.between(other, self.rank, there) for other in self._others}
            found = (
                there,
                {other: way for other, way in out.items() if way is not None},
                {other: way for other, way in into.items() if way is not None},
            )
            self._fixed = graph, found
        return found  # type: ignore[no-any-return]

    def _heard(
        self, messages: Array, k: int, index: int, present: Any, weights: Any
    ) -> tuple[list[Array], NDArray[np.bool_], Ints]:
        self._place = self._place + 1 if self._round == k else 0
        self._round = k
        if self._place >= WITHIN:
            raise ValueError(f"algorithm: more than {WITHIN} exchanges in a round")
        there, out, into = self._ways(k)
        forged = self._forge(messages, k, index, there)
        sent = {other: self._said(way, messages, forged) for other, way in out.items()}
        number = (k - self.run.first_k) * WITHIN + self._place
        came = self._peers.exchange(number, sent, {other: len(way.of) for other, way in into.items()}, self._over)
        table, good = list(messages), np.asarray(_core.acceptable(messages, 0.0))
        found = np.full(len(self.links.senders), -1)
        inner = self._inner if present is None else self._inner[present[self._inner]]
        found[inner] = np.searchsorted(self.numbers, self.links.senders[inner])
        for at in inner[self.routes.forged[self._here[inner]]].tolist():
            found[at] = len(table)
            table.append(forged[int(self._here[at])])
        if len(table) > self.m:
            good = np.concatenate([good, np.asarray(_core.acceptable(np.stack(table[self.m :]), 0.0))])
        for other, numbers in came.items():
            rows = np.ascontiguousarray(numbers, self.dtype)
            fine = np.asarray(_core.acceptable(rows, 0.0))
            if not fine.all():
                self._peers.peers[other].note_not_finite(int(np.count_nonzero(~fine)), k)
            found[np.searchsorted(self._here, into[other].links)] = len(table) + into[other].row
            table += list(rows)
            good = np.concatenate([good, fine])
        return table, good, found

    def _said(self, way: Route, messages: Array, forged: dict[int, Array]) -> Array:
        """The rows of a message: what the nodes of this rank say on the links of a way."""
        rows: Array = messages[np.searchsorted(self.numbers, self.routes.links.senders[way.of])]
        for at in np.flatnonzero(self.routes.forged[way.of]).tolist():
            rows[at] = forged[int(way.of[at])]
        return rows

    def _forge(self, messages: Array, k: int, index: int, there: Any) -> dict[int, Array]:
        """What the Byzantine nodes of this rank forge, by the number of the link."""
        told = self._told[there[self._told]]
        if not len(told):
            return {}
        if self.follower is not None:
            return self.follower.forged(k, self._place)
        # Such an attack goes by the honest message of its own node alone.
        run, senders = self.run, self.routes.links.senders
        assert run.native_attack is not None
        attackers = np.unique(senders[told])
        honest = np.full((run.m, messages.shape[1]), np.nan, messages.dtype)
        honest[self.numbers] = messages
        rows = np.empty((len(attackers), messages.shape[1]), messages.dtype)
        x0 = np.zeros(messages.shape[1], messages.dtype)
        _core.attack_messages(
            run.native_attack, honest, attackers.tolist(), x0, index, run.seed, rows, run.threads, others=run.byzantine
        )
        return dict(zip(told.tolist(), rows[np.searchsorted(attackers, senders[told])], strict=True))
