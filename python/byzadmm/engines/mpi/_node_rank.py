"""A rank with nodes of a graph: it goes through its rounds by itself, and shows rank 0 its models at evaluations."""

from __future__ import annotations

import os
import time
from collections.abc import Callable
from typing import Any

import numpy as np

from byzadmm._internal.arrays import Array
from byzadmm.algorithms.base import State
from byzadmm.decentralized.experiment import GraphExperiment, rounds
from byzadmm.engines.messages import Bytes, Header, Kind, body, pack
from byzadmm.engines.mpi._checkpoint import RankCheckpoint
from byzadmm.engines.mpi._peers import WITHIN, Column, Own, Peers
from byzadmm.engines.mpi._routes import RankNodes
from byzadmm.engines.mpi._waiting import TAG, Backoff
from byzadmm.engines.mpi._worker import WorkerRank
from byzadmm.training.workers import taken

__all__ = ["NodeRank"]

_SAY = 0.2  # seconds between two accounts
_MOMENT = 2.0  # seconds that the last messages have to arrive
_FOLLOWED = "follower_"  # before the names of what attackers follow, in a saved state


class NodeRank(WorkerRank):
    """A process with workers of a master, or with nodes of a graph, as the run asks for."""

    def __init__(self, mpi: Any, comm: Any, rank: int, size: int, patience: float) -> None:
        super().__init__(mpi, comm, rank, size, patience)
        self._peers = Peers(mpi, comm)
        self._question: Header | None = None
        self._number = -1
        self._kept: list[tuple[Any, Bytes]] = []  # sends under way to rank 0
        self._account: Any = None
        self._said = 0.0

    def serve_nodes(
        self, number: int, build: Callable[[], GraphExperiment], checkpoint: Any, deadline: float
    ) -> None:
        """Take part in run ``number`` until it is over."""
        self._failed, self._number, self._question = False, number, None
        self._peers.peers = {}  # those of an earlier run
        part: Part | None = None
        while True:
            header, message = self._next()
            later = header.kind == Kind.STOP or header.run > number
            if later or (header.kind == Kind.OVER and header.run == number):
                if later:
                    self._held = header, message
                if part is not None and self._question is not None and not self._failed:
                    self._isend(part.answer(self._question))  # rank 0 waits for what it has asked
                return
            if self._failed or header.run < number:
                continue
            try:
                if header.kind == Kind.START:
                    part = Part(self._nodes(build(), deadline), checkpoint, header, body(message, header))
                    numbers = np.full((part.nodes.m, 1), float(part.restored))
                    first = part.nodes.workers[0]
                    self._send(pack(Kind.START, numbers, run=header.run, round=header.round, first=first))
                elif header.kind == Kind.MODELS:
                    self._question = header
                else:
                    assert part is not None
                    self._peers.wait_for(set(body(message, header)[0].astype(int).tolist()))
                    self._train(part)
            except (Exception, SystemExit) as error:
                if part is not None:
                    self._say(part)
                self.notify_failure(error)

    def notify_failure(self, error: BaseException) -> None:
        """Tell rank 0 and the neighbors' ranks once why this rank cannot continue."""
        if not self._failed:
            self._peers.tell(f"{type(error).__name__}: {error}")
        super().notify_failure(error)

    def _nodes(self, run: GraphExperiment, deadline: float) -> RankNodes:
        nodes = RankNodes(run, self.rank, self.size, self._peers, self._over)
        last = run.iterations * WITHIN - 1
        self._peers.begin(
            self._number, last, nodes.workers[0], nodes.others, nodes.longest, run.dtype.name, deadline
        )
        return nodes

    def _train(self, part: Part) -> None:
        """All rounds from where the run is, each with its neighbors at the latest at the deadline."""
        run, peers, backoff = part.run, self._peers, Backoff()
        while self._shown(part):
            peers.poll()
            if part.done == run.iterations:
                backoff.wait()
                continue
            done = peers.ahead() // WITHIN
            if done > part.done:  # the others have given up waiting: on with them
                part.done = min(done, run.iterations - 1)
            peers.round = run.first_k + part.done
            part.advance()
            if time.perf_counter() - self._said > _SAY:
                self._say(part)

    def _over(self) -> bool:
        """Take what rank 0 says; whether the run is over."""
        if self._held is not None:
            return True
        while (found := self._look()) is not None:
            header, _ = found
            later = header.kind == Kind.STOP or header.run > self._number
            if later or (header.kind == Kind.OVER and header.run == self._number):
                self._held = found
                return True
            if header.kind == Kind.MODELS:
                self._question = header
        return False

    def _shown(self, part: Part) -> bool:
        """Show rank 0 the models at an evaluation, which it asks for in advance; False: the run is over meanwhile."""
        backoff = Backoff()
        while not self._over():
            question = self._question
            if question is not None and question.round > part.done:
                return True
            if question is not None:
                self._question = None
                part.save(question)
                self._say(part, last=question.round == part.run.iterations)
                self._isend(part.answer(question))
                if question.round == part.done:
                    part.shown = part.done
            elif part.shown == part.done or not part.at_evaluation:
                return True
            else:
                self._peers.poll()
                backoff.wait()
        return False

    def _say(self, part: Part, *, last: bool = False) -> None:
        """Send rank 0 the account of this run, unless it has not taken the one before and this is not the last."""
        self._said = time.perf_counter()
        if not last and self._account is not None and not self._account.Test():
            return
        rows = [np.zeros(len(Column)), *(peer.stats for _, peer in sorted(self._peers.peers.items()))]
        rows[0][[Own.DONE, Own.RUN, Own.WORKED]] = part.done, part.run_rounds, part.seconds - self._peers.waited
        message = pack(Kind.ACCOUNT, np.stack(rows), run=self._number, first=self.rank)
        self._account = self._isend(message, until_taken=True)

    def _isend(self, message: Bytes, until_taken: bool = False) -> Any:
        """Send to rank 0 without waiting for it; the request is over when the message is away, or taken."""
        send = self.comm.Issend if until_taken else self.comm.Isend
        try:
            self._kept = [(request, kept) for request, kept in self._kept if not request.Test()]
            self._kept.append((send([message, self.mpi.BYTE], 0, TAG), message))
        except self.mpi.Exception:  # rank 0 has died: nobody takes the result
            os._exit(1)
        return self._kept[-1][0]

    def _settled(self) -> bool:
        return self._peers.settle(_MOMENT)


class Part:
    """The nodes of one rank in one run.

    Attributes
    ----------
    done, shown : int
        Iterations done, and after how many the models were shown.
    run_rounds : int
        Rounds of them that these nodes took part in.
    seconds : float
        Spent in them, waiting included.
    restored : bool
        Whether the state is the one that goes with the start.
    """

    def __init__(self, nodes: RankNodes, checkpoint: Any, header: Header, models: Array) -> None:
        self.run, self.nodes = nodes.run, nodes
        self._state, self._advance = rounds(nodes.run, nodes)
        self.done = self.shown = header.round
        self.run_rounds, self.seconds = 0, 0.0
        held = range(nodes.workers[0], nodes.workers[-1] + 1)
        self._checkpoint = None if checkpoint is None else RankCheckpoint(checkpoint, held, header.token, header.round)
        self.restored = header.round == 0 or (self._checkpoint is not None and self._checkpoint.load(self))
        if not self.restored:
            self._state["x"][:] = models

    @property
    def at_evaluation(self) -> bool:
        return self.done == self.run.iterations or self.done % self.run.eval_every == 0

    def advance(self) -> None:
        """The next round."""
        begun = time.perf_counter()
        self._advance(self._state, self.run.first_k + self.done, 1)
        self.done += 1
        self.run_rounds += 1
        self.seconds += time.perf_counter() - begun

    def answer(self, question: Header) -> Bytes:
        """The models, for an evaluation."""
        return pack(
            Kind.MODELS, self._state["x"], run=question.run, round=question.round, first=self.nodes.workers[0]
        )

    def save(self, question: Header) -> None:
        """Save the state if it was asked for, unless the rank is late."""
        if question.save and self._checkpoint is not None and question.round == self.done:
            self._checkpoint.save(self, self.done)

    def state(self) -> State:
        """The arrays themselves."""
        return self._state | {f"{_FOLLOWED}{name}": array for name, array in self.nodes.parts().items()}

    def restore(self, state: State) -> None:
        """Continue from ``state``."""
        found = {name: taken(state, name, old) for name, old in self.state().items()}
        for name, array in found.items():
            inner = name.removeprefix(_FOLLOWED)
            (self._state if inner == name else self.nodes.parts())[inner] = array
