"""Rank 0 of a run on a graph: it starts the other ranks and collects their models for evaluations."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

import numpy as np

from byzadmm._internal.arrays import Array
from byzadmm.algorithms.base import State
from byzadmm.decentralized.experiment import GraphExperiment
from byzadmm.engines.graph_report import GraphReport, NodeEvent, NodeRankReport
from byzadmm.engines.messages import EMPTY, Expected, Kind, pack
from byzadmm.engines.mpi._channel import Channel
from byzadmm.engines.mpi._channels import Channels
from byzadmm.engines.mpi._master import share
from byzadmm.engines.mpi._peers import REASONS, Column, Own
from byzadmm.engines.mpi._routes import Routes, peers_of
from byzadmm.engines.mpi._waiting import Backoff
from byzadmm.engines.protocol import Event
from byzadmm.engines.report import PASSING
from byzadmm.results import Result
from byzadmm.training.run import OnEvaluation, train

__all__ = ["Collector"]


class Collector:
    """One run on a graph over the connections of a job, as rank 0 sees it.

    The ranks are asked in advance, and show their models when they are there; between evaluations they tell what they
    have heard from each other.
    """

    def __init__(
        self,
        ranks: Channels,
        run: GraphExperiment,
        number: int,
        *,
        patience: float,
        deadline: float,
        tick: Callable[[int], None],
    ) -> None:
        self.ranks, self.run, self.number = ranks, run, number
        self.patience, self.deadline, self.tick = patience, deadline, tick
        self.events: list[Event] = []
        self._new = ranks.events = []
        ranks.event, ranks.eliminated, ranks.round = NodeEvent, [], 0
        size = len(ranks.channels) + 1
        routes = Routes(run, size)
        self._peers = {channel.rank: peers_of(routes, channel.rank) for channel in ranks.channels}
        self._asked, self._who = -1, set[int]()
        self._begun = 0
        self._save = False
        self._go: set[int] = set()
        self._stats: dict[int, NodeRankReport] = {}
        self._slow: dict[int, set[int]] = {channel.rank: set() for channel in ranks.channels}
        self._known: set[tuple[int, str]] = set()
        self._died: list[int] = []
        for channel in ranks.channels:
            channel.workers = share(run.m, channel.rank, size)
            channel.stats = stats = NodeRankReport(channel.rank, tuple(channel.workers))
            if channel.workers:
                self._stats[channel.rank] = stats
            channel.told = None
            told = 1 + len(self._peers[channel.rank])
            channel.account = Expected(Kind.ACCOUNT, number, 0, channel.rank, told, len(Column), "float64")
            channel.room = max(channel.room, channel.account.nbytes)
            if channel.closed == "raised":  # the cause may have been in that run alone
                channel.closed = None
            if channel.closed is not None and channel.workers:
                self._note(0, channel.rank, channel.closed, "in an earlier run")
        self._holding = [channel for channel in ranks.channels if channel.workers]
        self.report = GraphReport([*self._stats.values()], self.events, run.dtype.name, run.m, run.d)

    def lead(self, *, checkpoint: Any, on_evaluation: OnEvaluation | None) -> Result:
        """The whole run."""
        run = self.run
        state = {"x": run.models(range(run.m))}
        token = 0
        if checkpoint is not None:
            token = int(run.fingerprint(run.describe(), state)[:8], 16)

        def advance(state: State, first: int, count: int) -> None:
            self.collect(first + count - run.first_k, state)

        def begin(done: int) -> None:
            self.start(done, state["x"], token, checkpoint is not None)

        return train(run, state, advance, checkpoint=checkpoint, on_evaluation=on_evaluation, begin=begin)

    def start(self, done: int, models: Array, token: int, save: bool) -> None:
        """Have every rank build the experiment and begin; one that is not ready in time takes part later."""
        self._begun, self._save = done, save
        self._given = models.copy(), token
        self.ranks.round = done
        self._restored = np.zeros((self.run.m, 1))
        self._models = np.zeros((self.run.m, self.run.d), self.run.dtype)
        self._fresh()
        for channel in self._holding:
            if channel.closed is None and channel.owed is None:
                self._start(channel)
        self.ranks.collect(self.patience)
        self._require_a_rank()
        if not any(channel.run == self.number for channel in self._holding):
            who = ", ".join(str(channel.rank) for channel in self._holding if channel.owed is not None)
            raise ConnectionError(f"mpi: no rank has loaded its data after {self.patience:g} s (patience): {who}")
        if done:
            for channel in self._holding:
                if channel.run == self.number and not self._restored[channel.workers[0]]:
                    self._note(done, channel.rank, "restarted", "no saved state")
        self._note_absent()
        self._ask_all(done + self.run.span(done))

    def collect(self, done: int, state: dict[str, Array]) -> None:
        """The models after ``done`` iterations into ``state``; those of ranks that are late stay as they are."""
        ranks, backoff = self.ranks, Backoff()
        heard, end = time.perf_counter(), np.inf
        while ranks.waiting:
            if ranks.poll():
                ranks.read()
                heard, backoff.looks = time.perf_counter(), 0
                self._ask_all(done)
                self._follow()
                if end == np.inf and ranks.present.any():
                    end = heard + self.deadline
            elif time.perf_counter() >= min(end, heard + self.patience + 2 * self.deadline):
                break
            else:
                backoff.wait()
        ranks.collect(0.0)
        self._follow()
        for rank in self._died:
            self._once(ranks.round, rank, "died", "")
        self._require_a_rank()
        if end == np.inf and not ranks.present.any():
            silent = self.patience + 2 * self.deadline
            raise ConnectionError(f"mpi: no rank has said anything for {silent:g} s")
        self._note_absent()
        state["x"][ranks.present] = self._models[ranks.present]
        self.report.rounds = done - self._begun
        self.tick(done)
        if done < self.run.iterations:
            self._ask_all(done + self.run.span(done))

    def finish(self) -> None:
        """Take the last answers, and complete the report from what the ranks told."""
        self.ranks.collect(self.deadline)
        self._follow()
        self._summarize()

    def _summarize(self) -> None:
        told = self._told()
        for rank, stats in self._stats.items():
            tellers = [other for other in told if rank in self._peers[other]]
            seen = [told[other][1 + self._peers[other].index(rank)] for other in tellers]
            _fill(stats, np.array(seen).reshape(-1, len(Column)), told.get(rank))
            stats.state = self._state(self.ranks.channels[rank - 1], seen)

    def _told(self) -> dict[int, Array]:
        """What each rank has told last, if it can be true."""
        told = {channel.rank: channel.told for channel in self._holding if channel.told is not None}
        return {rank: rows for rank, rows in told.items() if self._can_be(rows)}

    def _can_be(self, rows: Array) -> bool:
        """Whether an account can be true: counts and times, reasons that there are, rounds of this run."""
        if not (np.all(rows >= -1) and np.all(rows <= 2.0**62)):  # NaN neither
            return False
        own, others = rows[0], np.delete(rows[1:], Column.SLOW_SINCE, axis=1)
        fine = own[Own.DONE] <= self.run.iterations and np.all(rows[1:, Column.CLOSED] < len(REASONS))
        return bool(fine and np.all(own >= 0) and np.all(others >= 0))

    def _state(self, channel: Channel, seen: list[Array]) -> str:
        """Why a rank is not heard any more, by rank 0 or by others."""
        if channel.closed is not None:
            return channel.closed
        reasons = [why for row in seen if (why := REASONS[int(row[Column.CLOSED])]) not in ("", "refused")]
        slow = any(row[Column.SLOW_SINCE] >= 0 for row in seen)
        return reasons[0] if reasons else "slow" if slow else channel.state

    def _fresh(self) -> None:
        self.ranks.present, self.ranks.good = (np.zeros(self.run.m, np.bool_) for _ in range(2))

    def _start(self, channel: Channel) -> None:
        models, token = self._given
        mine = channel.workers
        message = pack(Kind.START, models[mine.start : mine.stop], run=self.number, round=self._begun, token=token)
        owed = Expected(Kind.START, self.number, self._begun, mine.start, len(mine), 1, "float64")
        self.ranks.ask(channel, message, owed, self._restored)

    def _ask_all(self, done: int) -> None:
        """Ask every rank that owes no answer for its models after ``done`` iterations, once."""
        if self._asked != done:
            self._asked, self._who = done, set()
            self._fresh()
        for channel in self._holding:
            if channel.closed is not None or channel.owed is not None or channel.rank in self._who:
                continue
            if channel.run != self.number:  # not waited for
                self._start(channel)
                self.ranks.waiting.discard(channel.rank)
                continue
            if channel.rank not in self._go:
                self._go.add(channel.rank)
                ready = [other.rank for other in self._holding if other.run == self.number and other.closed is None]
                self.ranks.tell(channel, pack(Kind.GO, np.array([ready], np.float64), run=self.number))
            self._who.add(channel.rank)
            owed = Expected(
                Kind.MODELS, self.number, done, channel.workers.start, len(channel.workers), self.run.d,
                self.run.dtype.name,
            )  # fmt: skip
            message = pack(Kind.MODELS, EMPTY, run=self.number, round=done, save=self._save)
            self.ranks.ask(channel, message, owed, self._models)

    def _follow(self) -> None:
        """Events and progress from what the ranks told of each other."""
        # In which round a rank died is known to those that waited for it.
        self._died += [event.rank for event in self._new if event.what == "died"]
        self.events += [event for event in self._new if event.what != "died"]
        self._known |= {(event.rank, event.what) for event in self._new if event.what not in (*PASSING, "died")}
        self._new.clear()
        told = self._told()
        for teller, rows in told.items():
            for other, row in zip(self._peers[teller], rows[1:], strict=True):
                why = REASONS[int(row[Column.CLOSED])]
                if why and why != "refused":
                    self._once(int(row[Column.CLOSED_AT]), other, why, f"says rank {teller}")
                if row[Column.NOT_FINITE]:
                    self._once(int(row[Column.NOT_FINITE_AT]), other, "non_finite", f"says rank {teller}")
                since = int(row[Column.SLOW_SINCE])
                if since >= 0 and not why:
                    if not self._slow[other]:
                        self._note(since, other, "slow", f"rank {teller} heard nothing in time")
                    self._slow[other].add(teller)
                elif teller in self._slow[other]:
                    self._slow[other].discard(teller)
                    if not self._slow[other] and not why:
                        self._note(self.run.first_k + int(rows[0][Own.DONE]) - 1, other, "back", "")
        done = max((int(rows[0][Own.DONE]) for rows in told.values()), default=0)
        if done - self._begun > self.report.rounds:
            self.report.rounds = done - self._begun
            self.ranks.round = self.run.first_k + done - 1
            self._summarize()
            self.tick(done)

    def _once(self, number: int, rank: int, what: str, text: str) -> None:
        if (rank, what) not in self._known:
            self._known.add((rank, what))
            self._note(number, rank, what, text)

    def _note(self, number: int, rank: int, what: str, text: str) -> None:
        self.events.append(NodeEvent(number, rank, tuple(self.ranks.channels[rank - 1].workers), what, text))

    def _note_absent(self) -> None:
        """Leave the nodes of ranks that cannot be asked any more out of the curves."""
        self.run.absent |= {node for channel in self._holding if channel.closed is not None for node in channel.workers}

    def _require_a_rank(self) -> None:
        """Raise if no rank with nodes can be asked any more."""
        if all(channel.closed is not None for channel in self._holding):
            why = ", ".join(f"rank {channel.rank} {channel.closed}" for channel in self._holding)
            raise ConnectionError(f"mpi: no node is left in round {self.ranks.round} ({why})")


def _fill(rank: NodeRankReport, seen: Array, own: Array | None) -> None:
    """What other ranks have told of a rank, a row each, and what it has told of itself and of them."""
    heard = seen.sum(axis=0)
    rank.asked, rank.on_time, rank.late = (int(heard[at]) for at in (Column.ASKED, Column.ON_TIME, Column.LATE))
    rank.not_finite = int(heard[Column.NOT_FINITE])
    rank.longest = float(seen[:, Column.LONGEST].max(initial=0.0))
    rank.waited = float(heard[Column.WAITED])
    if own is not None:
        rank.bytes_up, rank.bytes_down = int(own[1:, Column.OUT].sum()), int(own[1:, Column.IN].sum())
        rank.rounds, rank.worked = int(own[0, Own.RUN]), float(own[0, Own.WORKED])
