"""A worker rank: what it answers to the master, and its workers in one run."""

from __future__ import annotations

import os
import time
from collections.abc import Callable
from typing import Any

import numpy as np

from byzadmm._internal.arrays import Array
from byzadmm.engines.messages import EMPTY, Bytes, Header, Kind, body, on_the_wire, pack, pack_notice, peek
from byzadmm.engines.mpi import _launch as launch
from byzadmm.engines.mpi._checkpoint import RankCheckpoint
from byzadmm.engines.mpi._master import share
from byzadmm.engines.mpi._start import bad_start
from byzadmm.engines.mpi._waiting import TAG, Backoff
from byzadmm.training.experiment import Experiment
from byzadmm.training.workers import Workers

__all__ = ["RankWorkers", "WorkerRank"]


class WorkerRank:
    """A process with workers: answers what the master asks until it is told to stop."""

    def __init__(self, mpi: Any, comm: Any, rank: int, size: int, patience: float) -> None:
        self.mpi, self.comm, self.rank, self.size, self.patience = mpi, comm, rank, size, patience
        self._contacted = False  # whether a message of the master has arrived
        self._held: tuple[Header, Bytes] | None = None  # received, for the next run
        self._failed = False  # in this run

    def serve(self, number: int, build: Callable[[], Experiment], checkpoint: Any) -> None:
        """Take part in run ``number`` until it is over; a run that the master could not start is over at once."""
        self._failed = False
        workers: RankWorkers | None = None
        while True:
            header, message = self._next()
            if header.kind == Kind.STOP or header.run > number:
                self._held = header, message
                return
            if header.kind == Kind.OVER and header.run == number:
                return
            if self._failed or header.run < number:
                continue
            begun = time.perf_counter()
            try:
                if header.kind == Kind.START:
                    experiment = build()
                    mine = share(experiment.m, self.rank, self.size)
                    workers = RankWorkers(experiment, mine, checkpoint, header, body(message, header)[0])
                    numbers = np.full((len(workers.mine), 1), float(workers.restored))
                else:
                    assert workers is not None
                    numbers = workers.answer(header, message)
            except (Exception, SystemExit) as error:
                self.notify_failure(error)
                continue
            assert workers is not None
            spent = time.perf_counter() - begun
            first = workers.first(header)
            self._send(pack(header.kind, numbers, run=header.run, round=header.round, first=first, seconds=spent))

    def notify_failure(self, error: BaseException) -> None:
        """Tell the master once why this rank cannot continue; it answers nothing more until the next run."""
        if not self._failed:
            self._failed = True
            self._send(pack_notice(f"{type(error).__name__}: {error}"))

    def stop(self) -> bool:
        """Wait for the end; whether the process must end without MPI_Finalize."""
        self._until_told()
        self._send(pack(Kind.STOP, EMPTY, save=not self._settled()))
        return self._until_told().save

    def _settled(self) -> bool:
        """Whether no message to other ranks is under way that MPI_Finalize could wait for."""
        return True

    def _until_told(self) -> Header:
        while True:
            header, _ = self._next()
            if header.kind == Kind.STOP:
                return header

    def _next(self) -> tuple[Header, Bytes]:
        """The next message of the master."""
        if self._held is not None:
            held, self._held = self._held, None
            return held
        backoff = Backoff()
        limit = 2 * self.patience  # the master may take that long to load its own data, and reports it itself
        end = time.perf_counter() + launch.patience_of(self.rank - 1, limit)
        while (found := self._look()) is None:
            if not self._contacted and time.perf_counter() >= end:
                bad_start(self.comm, f"mpi: rank {self.rank} waited {limit:g} s for the master's first message")
            backoff.wait()
        self._contacted = True
        return found

    def _look(self) -> tuple[Header, Bytes] | None:
        """A message of the master, if there is one."""
        status = self.mpi.Status()
        try:
            message = self.comm.Improbe(0, self.mpi.ANY_TAG, status)
            if message is None:
                return None
            content = np.empty(status.Get_count(self.mpi.BYTE), np.uint8)
            message.Recv([content, self.mpi.BYTE])
        except self.mpi.Exception:  # the master has died: nothing is left to do
            os._exit(1)
        header = peek(content)
        assert header is not None
        return header, content

    def _send(self, message: Bytes) -> None:
        try:
            self.comm.Send([message, self.mpi.BYTE], 0, TAG)
        except self.mpi.Exception:
            os._exit(1)


class RankWorkers:
    """The workers of one rank in one run."""

    def __init__(self, experiment: Experiment, mine: range, checkpoint: Any, header: Header, x0: Array) -> None:
        self.experiment, self.mine = experiment, mine
        self.workers = Workers(experiment, mine)
        self._checkpoint = None if checkpoint is None else RankCheckpoint(checkpoint, mine, header.token, header.round)
        self.restored = header.round == 0 or (self._checkpoint is not None and self._checkpoint.load(self.workers))
        if not self.restored and experiment.has_models:
            self.workers.state()["x"][:] = x0

    def first(self, header: Header) -> int:
        """Where the rows of the answer are: in a round, among those of all workers that take part in it."""
        if header.kind == Kind.ROUND:
            return self.experiment.sampling.places(header.round, self.mine).start
        return self.mine.start

    def answer(self, header: Header, message: Bytes) -> Array:
        """The numbers of the answer to a message about a round or the models."""
        experiment = self.experiment
        if header.kind == Kind.ROUND:
            x0 = body(message, header)[0].astype(experiment.dtype)
            return on_the_wire(self.workers.answer(header.round, x0), experiment.wire, experiment.shrink)
        if header.save and self._checkpoint is not None:
            self._checkpoint.save(self.workers, header.round)
        if not experiment.has_models:
            return np.zeros((len(self.mine), 0), experiment.dtype)
        return self.workers.state()["x"][np.searchsorted(self.workers.held, self.mine)]  # its own alone
