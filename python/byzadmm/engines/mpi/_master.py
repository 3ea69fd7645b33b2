"""The master's side of one run over MPI."""

from __future__ import annotations

import itertools
import time

import numpy as np

from byzadmm._internal.arrays import Array
from byzadmm.engines.messages import HEADER_BYTES, Bytes, Expected, Kind, on_the_wire, pack
from byzadmm.engines.mpi._channel import Channel
from byzadmm.engines.mpi._channels import Channels
from byzadmm.engines.protocol import Event, Replies
from byzadmm.engines.report import RankReport, RunReport
from byzadmm.training.experiment import Experiment
from byzadmm.training.master import message_bound
from byzadmm.training.workers import held_by

__all__ = ["MasterEngine", "share"]

_LARGEST = 2**31 - 1  # bytes in one message, a limit of MPI


def share(m: int, rank: int, size: int) -> range:
    """The workers that ``rank`` of ``size`` holds: consecutive, in numbers that differ by at most one; none at rank 0.

    Examples
    --------
    >>> from byzadmm.engines.mpi import share
    >>> [share(7, rank, 4) for rank in range(4)]
    [range(0, 0), range(0, 3), range(3, 5), range(5, 7)]
    """
    if rank == 0:
        return range(0)
    each, more = divmod(m, size - 1)
    first = (rank - 1) * each + min(rank - 1, more)
    return range(first, first + each + (rank <= more))


class MasterEngine:
    """One run over the connections of a job: the protocol of :class:`byzadmm.engines.Engine`."""

    def __init__(self, ranks: Channels, experiment: Experiment, number: int, patience: float) -> None:
        self.ranks, self.experiment, self.number, self.patience = ranks, experiment, number, patience
        self.events = ranks.events = []
        ranks.event, ranks.eliminated, ranks.round, ranks.seconds_checking = Event, [], 0, 0.0
        rows = experiment.sampling.count
        # The master keeps the answers of two rounds; those of the next go into the third.
        self._turns = itertools.cycle([np.zeros((rows, experiment.length), experiment.dtype) for _ in range(3)])
        ranks.bound = message_bound(experiment)
        self._first: Bytes = np.empty(0, np.uint8)
        self._done = 0
        self._ended: float | None = None
        for channel in ranks.channels:
            channel.workers = share(experiment.m, channel.rank, len(ranks.channels) + 1)
            channel.stats = RankReport(channel.rank, tuple(channel.workers))
            if channel.closed == "raised":  # the cause may have been in that run alone
                channel.closed = None
            if channel.closed is not None and channel.workers:
                self.events.append(Event(0, channel.rank, tuple(channel.workers), channel.closed, "in an earlier run"))
                ranks.eliminated += channel.workers if channel.closed != "died" else []
        # They hold copies of workers of other ranks, which move on in every round.
        self._following = {
            channel.rank
            for channel in ranks.channels
            if len(held_by(experiment, channel.workers)) > len(channel.workers)
        }
        widest = max(len(channel.workers) for channel in ranks.channels) * experiment.length * experiment.dtype.itemsize
        if HEADER_BYTES + widest > _LARGEST:
            raise ValueError(f"mpi: {widest} bytes from one rank are too many for a message; use more ranks")
        self.run_report = RunReport(
            [channel.stats for channel in ranks.channels], self.events, experiment.wire.name, experiment.m, experiment.d
        )

    def start(self, done: int, x0: Array, token: int) -> None:
        """Have every rank build the experiment; one that is not ready in time takes part later."""
        self._done = done
        self._first = pack(Kind.START, x0[None].copy(), run=self.number, round=done, token=token)
        self.ranks.round = done
        self._restored = np.zeros((self.experiment.m, 1))
        self._begin(self.experiment.m)
        for channel in self.ranks.channels:
            if channel.workers and channel.closed is None and channel.owed is None:
                self._start(channel)
        self.ranks.collect(self.patience)
        self._require_a_rank()
        if not any(channel.run == self.number for channel in self.ranks.channels if channel.workers):
            who = ", ".join(str(channel.rank) for channel in self.ranks.channels if channel.owed is not None)
            raise ConnectionError(f"mpi: no rank has loaded its data after {self.patience:g} s (patience): {who}")
        if done:
            for channel in self.ranks.channels:
                if channel.workers and channel.run == self.number and not self._restored[channel.workers[0]]:
                    self.events.append(Event(done, channel.rank, tuple(channel.workers), "restarted", "no saved state"))

    def exchange(self, k: int, x0: Array, deadline: float) -> Replies:
        """Round ``k`` with every rank that owes no answer and has a worker that takes part."""
        ranks, report, sampling = self.ranks, self.run_report, self.experiment.sampling
        begun, checked = self._since_last(), ranks.seconds_checking
        ranks.round = k
        present = self._begin(sampling.count)
        message = pack(Kind.ROUND, on_the_wire(x0, self.experiment.wire)[None], run=self.number, round=k)
        messages = next(self._turns)
        self._ask(Kind.ROUND, k, message, self.experiment.length, self.experiment.wire.name, messages)
        asked = time.perf_counter()
        ranks.collect(deadline)
        eliminated, ranks.eliminated = ranks.eliminated, []
        self._require_a_rank()
        report.keep_round(k, begun)
        report.seconds_asking += asked - begun
        report.seconds_checking += ranks.seconds_checking - checked
        report.seconds_waiting += time.perf_counter() - asked - (ranks.seconds_checking - checked)
        self._ended = time.thread_time()
        if sampling.complete:
            return Replies(messages, present, eliminated, ranks.good)
        messages, present, good = (sampling.spread(k, rows)[0] for rows in (messages, present, ranks.good))
        return Replies(messages, present, eliminated, good)

    def _since_last(self) -> float:
        """The time now; the processor time since the last exchange is added to ``seconds_updating``."""
        if self._ended is not None:
            self.run_report.seconds_updating += time.thread_time() - self._ended
        self._ended = None
        return time.perf_counter()

    def models(self, done: int, save: bool, deadline: float) -> Replies | None:
        """The models of every rank that owes no answer, in the run's own type."""
        self._since_last()
        experiment, has_models = self.experiment, self.experiment.has_models
        if not (has_models or save):
            return None
        present = self._begin(experiment.m)
        models = np.zeros((experiment.m, experiment.d if has_models else 0), experiment.dtype)
        message = pack(Kind.MODELS, np.zeros((1, 0), experiment.dtype), run=self.number, round=done, save=save)
        self._ask(Kind.MODELS, done, message, models.shape[1], experiment.dtype.name, models)
        self.ranks.collect(deadline)
        return Replies(models, present) if has_models else None

    def rank_of(self, worker: int) -> int:
        """The rank that holds ``worker``."""
        return next(channel.rank for channel in self.ranks.channels if worker in channel.workers)

    def close(self) -> None:
        """The connections stay open: they belong to the job."""

    def _begin(self, rows: int) -> Array:
        self.ranks.present, self.ranks.good = (np.zeros(rows, np.bool_) for _ in range(2))
        return self.ranks.present

    def _start(self, channel: Channel) -> None:
        owed = Expected(Kind.START, self.number, self._done, channel.workers.start, len(channel.workers), 1, "float64")
        self.ranks.ask(channel, self._first, owed, self._restored)

    def _ask(self, kind: Kind, number: int, message: Bytes, dim: int, dtype: str, sink: Array) -> None:
        behind = []
        for channel in self.ranks.channels:
            if not channel.workers or channel.closed is not None or channel.owed is not None:
                continue
            if channel.run != self.number:
                behind.append(channel)
                continue
            places = channel.workers
            if kind == Kind.ROUND:
                places = self.experiment.sampling.places(number, channel.workers)
                if not places and channel.rank not in self._following:
                    continue
            owed = Expected(kind, self.number, number, places.start, len(places), dim, dtype)
            self.ranks.ask(channel, message, owed, sink)
            channel.stats.asked += kind == Kind.ROUND
        for channel in behind:  # not waited for: they take part from the round after their answer
            self._start(channel)
            self.ranks.waiting.discard(channel.rank)

    def _require_a_rank(self) -> None:
        """Raise if no rank with workers can be asked any more."""
        holding = [channel for channel in self.ranks.channels if channel.workers]
        if all(channel.closed is not None for channel in holding):
            why = ", ".join(f"rank {channel.rank} {channel.closed}" for channel in holding)
            raise ConnectionError(f"mpi: no worker is left in round {self.ranks.round} ({why})")
