"""The nodes of a run and the messages between them: who hears what in an exchange, honest and forged."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from byzadmm import _core
from byzadmm._internal.arrays import Array
from byzadmm.algorithms.base import State
from byzadmm.training.workers import Group, call_attack, first_state

if TYPE_CHECKING:
    from byzadmm.decentralized.experiment import GraphExperiment

__all__ = ["Links", "Mail", "Network", "Nodes", "links_of", "tells_apart"]

Ints = NDArray[np.int64]
Reals = NDArray[np.float64]

_RULE = _core.PURPOSES.index("rule")


class Links(NamedTuple):
    """Edges in the directions that lead to some nodes: link ``l`` to row ``receivers[l]`` from the node ``senders[l]``.

    They are sorted by receiver, then sender; those to row i are ``offsets[i] .. offsets[i+1]-1``. ``edges[l]`` is the
    edge in ``graph.edges``. Where all nodes are held, row i is node i.
    """

    offsets: Ints
    receivers: Ints
    senders: Ints
    edges: Ints


class Mail:
    """What every node hears in one exchange.

    A message that is not finite, or does not come, is left out of the round for its receiver, and its weight is added
    to the receiver's own.

    Attributes
    ----------
    table : list of arrays
        The different messages.
    index : (L,) int64
        For each link its row in ``table``; -1: nothing came, or nothing finite.
    dictated : (L,) bool, or None
        Links on which an attack forged what the algorithm ``dictates``.
    finite : (m,) bool
        Whether what each node itself sent is finite.
    left_out, counts : (m,) int64
        Messages to each node that were not finite or did not come, and those that it heard.
    link_weights : (L,) float64
        Metropolis weight of each link.
    own_weights : (m,) float64
        What is left for each node itself.
    """

    def __init__(
        self, links: Links, table: list[Array], index: Ints, weights: Reals, finite: Any, left_out: Ints, dictated: Any
    ) -> None:
        self.links, self.table, self.index, self.dictated = links, table, index, dictated
        self.finite, self.left_out = finite, left_out
        heard = index >= 0
        m = len(finite)
        self.counts: Ints = np.bincount(links.receivers[heard], minlength=m)
        self.link_weights = weights
        self.own_weights = np.asarray(1.0 - np.bincount(links.receivers[heard], weights[heard], m), np.float64)
        self._offsets: list[int] = links.offsets.tolist()
        self._index: list[int] = index.tolist()

    @property
    def heard(self) -> tuple[list[Array], Ints, Ints]:
        """Table, index and offsets, as native functions take them."""
        return self.table, self.index, self.links.offsets

    def rows(self, i: int) -> list[Array]:
        """The messages that node ``i`` heard, by ascending senders; not to be changed."""
        lo, hi = self._offsets[i], self._offsets[i + 1]
        return [self.table[row] for row in self._index[lo:hi] if row >= 0]

    def senders(self, i: int) -> Ints:
        """Their senders."""
        lo, hi = self._offsets[i], self._offsets[i + 1]
        return self.links.senders[lo:hi][self.index[lo:hi] >= 0]

    def columns(self, block: Array) -> Mail:
        """The same messages, some of their columns."""
        table = [np.ascontiguousarray(row[block]) for row in self.table]
        return Mail(self.links, table, self.index, self.link_weights, self.finite, self.left_out, self.dictated)

    def weights(self, i: int) -> tuple[Reals, float]:
        """Metropolis weights of these messages, and of the node itself: with them they sum to one."""
        lo, hi = self._offsets[i], self._offsets[i + 1]
        return self.link_weights[lo:hi][self.index[lo:hi] >= 0], float(self.own_weights[i])


class Nodes(Group):
    """Nodes of a run as an algorithm sees them: models, gradients, and the exchange of messages.

    Row i of every array belongs to node ``numbers[i]``, which is i where one process holds all nodes.

    Attributes
    ----------
    m : int
        Number of nodes held.
    numbers : (m,) int64
    rhos : (m,) float64
        Weights of their regularizers.
    links : Links
        Those that lead to them.
    """

    run: GraphExperiment

    def __init__(self, run: GraphExperiment, held: Sequence[int] | None = None) -> None:
        super().__init__(run, range(run.m) if held is None else held)
        self.m = len(self.workers)
        self.numbers = np.array(self.workers, np.int64)
        self.rhos = run.rhos[self.numbers]
        self.links = links_of(run.graph.edges, run.m, self.numbers)
        self.memory: State = {}
        self._receivers = self.numbers[self.links.receivers]
        self._byzantine = np.zeros(run.m, np.bool_)
        self._byzantine[run.byzantine] = True
        # Byzantine nodes tell each other the truth: their states are honest.
        self._forged = np.flatnonzero(self._byzantine[self.links.senders] & ~self._byzantine[self._receivers])
        self._static: tuple[Any, Any, Reals] = None, None, np.empty(0)

    def rng(self, i: int, k: int) -> np.random.Generator:
        """The generator of row ``i`` in round ``k``."""
        counter = [0, _RULE, 1 + self.workers[i], k]
        return np.random.Generator(np.random.Philox(key=self.run.seed, counter=counter))

    def exchange(self, messages: Array, k: int, *, index: int | None = None) -> Mail:
        """Every node sends its message, row i of ``messages`` (m, n), to its neighbors of round ``k``.

        The Byzantine nodes' rows are their honest messages, which others hear in forged form. ``index`` is the number
        of the message for an attack, by default ``k``. The rows that are heard are views of ``messages``.
        """
        messages = np.ascontiguousarray(messages)
        links = self.links
        present, weights = self._graph(k)
        table, good, found = self._heard(messages, k, k if index is None else index, present, weights)
        usable = (found >= 0) & good[found]
        left_out = np.zeros(self.m, np.int64)
        if not usable.all():
            lost = ~usable if present is None else present & ~usable
            left_out = np.bincount(links.receivers[lost], minlength=self.m)
            found = np.where(usable, found, -1)
        dictated = None
        if len(self._forged) and getattr(self.run.attack, "sends", "") == self.run.algorithm.dictates:
            dictated = np.zeros(len(found), np.bool_)
            dictated[self._forged] = True
        return Mail(links, table, found, weights, good[: self.m], left_out, dictated)

    def _heard(
        self, messages: Array, k: int, index: int, present: Any, weights: Reals
    ) -> tuple[list[Array], NDArray[np.bool_], Ints]:
        """What is heard: the different messages, own ones first, which are finite, and the one on each link or -1."""
        raise NotImplementedError("a base class")

    def _graph(self, k: int) -> tuple[Any, Reals]:
        """Which links there are in round ``k`` (None: all), and their Metropolis weights."""
        graph = self.run.graph.at(k, self.run.seed)
        held, present, weights = self._static
        if held is not graph:
            present = graph.adjacency[self._receivers, self.links.senders]
            weights = graph.metropolis()[self._receivers, self.links.senders]
            self._static = graph, (None if present.all() else present), weights
        return self._static[1:]


class Network(Nodes):
    """All nodes of a run in this process."""

    def __init__(self, run: GraphExperiment) -> None:
        super().__init__(run)
        self.memory = first_state(run) if run.byzantine else {}
        attack = run.attack
        self._receives = bool(getattr(attack, "per_receiver", False))
        self._apart = tells_apart(attack)
        self._regular = np.flatnonzero(~self._byzantine)

    def _heard(
        self, messages: Array, k: int, index: int, present: Any, weights: Reals
    ) -> tuple[list[Array], NDArray[np.bool_], Ints]:
        senders = self.links.senders
        found = senders if present is None else np.where(present, senders, -1)
        table, good = list(messages), np.asarray(_core.acceptable(messages, 0.0))
        if len(self._forged):
            found = found.copy()
            there = self._forged if present is None else self._forged[present[self._forged]]
            for rows, at, place in self._forge(messages, index, weights, there):
                found[at] = len(table) + place
                table += list(rows)
                good = np.concatenate([good, np.asarray(_core.acceptable(rows, 0.0))])
        return table, good, found

    def _forge(self, honest: Array, index: int, weights: Reals, forged: Ints) -> list[tuple[Array, Ints, Ints]]:
        """Forged messages for the links ``forged``: rows, the links on which they go, and the row of each."""
        links, run = self.links, self.run
        if not self._apart:
            x0 = np.zeros(honest.shape[1], honest.dtype)
            if run.native_attack is None:
                with np.errstate(all="ignore"):
                    x0[:] = honest[self._regular].mean(axis=0, dtype=np.float64)
            shown = self._seen(honest, run.byzantine)
            slots = np.searchsorted(run.byzantine, links.senders[forged])
            return [(self._called(shown, index, x0, run.byzantine), forged, slots)]
        made = []
        for i in self._regular.tolist():
            at = forged[links.receivers[forged] == i]
            if len(at):
                attackers = links.senders[at].tolist()
                more: dict[str, Any] = {"receiver": i} if self._receives else {}
                if getattr(run.attack, "asks_weights", False):
                    row = np.zeros(self.m)
                    here = slice(links.offsets[i], links.offsets[i + 1])
                    row[links.senders[here]] = weights[here]
                    row[i] = 1.0 - weights[here].sum()
                    more["weights"] = row
                rows = self._called(self._seen(honest, [i]), index, honest[i], attackers, **more)
                made.append((rows, at, np.arange(len(at))))
        return made

    def _seen(self, honest: Array, nodes: list[int]) -> Array:
        """The honest messages that an attack is shown: all, or those of ``nodes`` and their neighbors."""
        if getattr(self.run.attack, "view", "all") == "all":
            return honest
        far = np.ones(self.m, np.bool_)
        far[nodes] = False
        far &= ~np.any(self.run.graph.adjacency[nodes], axis=0)
        seen: Array = honest.copy()
        seen[far] = np.nan
        return seen

    def _called(self, honest: Array, index: int, x0: Array, attackers: list[int], **more: Any) -> Array:
        """The forged messages of ``attackers``, a row each."""
        run = self.run
        out = np.empty((len(attackers), honest.shape[1]), honest.dtype)
        if run.native_attack is not None and not more:
            _core.attack_messages(
                run.native_attack, honest, attackers, x0, index, run.seed, out, run.threads, others=run.byzantine
            )
            return out
        given: dict[str, Any] = {"x0": x0.copy(), "k": index, "byzantine": list(attackers), "algorithm": run.algorithm}
        stream = 1 + more["receiver"] if "receiver" in more else 0
        messages = call_attack(run, run.attack, honest.copy(), self.memory, given | more, len(attackers), stream=stream)
        with np.errstate(over="ignore"):
            out[:] = messages
        return out


def tells_apart(attack: Any) -> bool:
    """Whether an attack is called for each receiver: it may tell every neighbor something else."""
    return bool(getattr(attack, "per_receiver", False)) or bool(getattr(attack, "uses_x0", False))


def links_of(edges: Ints, m: int, held: Ints | None = None) -> Links:
    """The links of the edges (E, 2) of a graph on ``m`` nodes, or those of them that lead to the nodes ``held``."""
    number = np.arange(len(edges))
    receivers, senders = np.concatenate([edges, edges[:, ::-1]]).reshape(-1, 2).T
    both = np.concatenate([number, number])
    order = np.lexsort((senders, receivers))
    if held is not None and len(held) < m:
        order = order[np.isin(receivers[order], held)]
        receivers = np.searchsorted(held, receivers)
        m = len(held)
    offsets = np.concatenate([[0], np.cumsum(np.bincount(receivers[order], minlength=m))]).astype(np.int64)
    return Links(offsets, *(np.ascontiguousarray(column[order], np.int64) for column in (receivers, senders, both)))
