"""The engine over MPI: rank 0 is the master, the other ranks hold the workers; raw bytes from point to point.

The master trusts nobody: no length is received that was not looked at first, no round waits beyond its deadline, and a
rank that owes an answer is not asked again. ``docs/mpi.md`` says what each fault leads to.
"""

from __future__ import annotations

import atexit
import contextlib
import ctypes
import glob
import importlib
import itertools
import os
import sys
import time
from collections.abc import Callable
from pathlib import Path
from types import TracebackType
from typing import Any

import numpy as np

from byzadmm import _core
from byzadmm._internal.arrays import Array
from byzadmm._internal.atomic_files import prepare
from byzadmm._internal.validation import check_real
from byzadmm.engines import _launch
from byzadmm.engines.messages import (
    HEADER_BYTES,
    NOTICE_BYTES,
    Bytes,
    Expected,
    Header,
    Kind,
    body,
    pack,
    pack_notice,
    peek,
    read_notice,
    seconds_of,
    validate,
)
from byzadmm.engines.report import RankReport, RunReport
from byzadmm.engines.training import Event, Experiment, Replies, lead, on_the_wire
from byzadmm.results import Result, read_npz, write_npz
from byzadmm.training.master import message_bound
from byzadmm.training.workers import Workers

__all__ = ["Job", "share"]

_TAG = 7
# Unwanted messages are received and discarded up to this size and number; larger ones stay with their sender.
_DISCARD_BYTES, _DISCARDS = 1 << 16, 16
_NOTHING = np.zeros((1, 0), np.float32)
_MOMENT = 5.0  # seconds until a death is known
_GRACE = 10.0  # seconds that mpirun has to end after an abort
_let_others_run = getattr(os, "sched_yield", lambda: time.sleep(0))  # not on every system
_LARGEST = 2**31 - 1  # bytes in one message, a limit of MPI


def share(m: int, rank: int, size: int) -> range:
    """The workers that ``rank`` of ``size`` holds: consecutive, as even as can be; none for the master.

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


class Job:
    """All processes of one ``mpirun``. Each of them runs the same script and makes the same calls.

    Parameters
    ----------
    deadline : float
        Seconds that a round waits for answers.
    patience : float
        Seconds that each stage before the first round may take: all ranks in MPI_Init, the master's first message, the
        ranks' loading of their data. After that the process ends with exit code 2 and a line that names the stage.

    Attributes
    ----------
    rank, size : int
    is_master : bool
        Results come out there, and there alone.
    tolerant : bool
        Whether the job outlives a rank that dies (``mpirun --with-ft ulfm``).
    report : RunReport or None
        What happened in the last run; the master's.

    Examples
    --------
    A script for ``mpirun --with-ft ulfm --oversubscribe -np 5 python script.py``::

        with Job() as job:
            algorithm = ADMM.for_dataset(data)
            result = job.simulate(data, parts, algorithm=algorithm, attack=attacks.SignFlip(), n_byzantine=8)
            if job.is_master:
                result.save("run.npz")
    """

    def __init__(self, *, deadline: float = 10.0, patience: float = 120.0) -> None:
        self.deadline = check_real(deadline, "deadline", low=0.0, strict=True)
        self.patience = check_real(patience, "patience", low=0.0, strict=True)
        self._mpi: Any = _start_mpi(self.patience)
        self._comm: Any = self._mpi.COMM_WORLD
        for comm in (self._comm, self._mpi.COMM_SELF):  # the latter for errors that belong to no communicator
            comm.Set_errhandler(self._mpi.ERRORS_RETURN)
        self.rank: int = self._comm.Get_rank()
        self.size: int = self._comm.Get_size()
        if self.size < 2:
            start = _launch.EXAMPLE.replace("mpirun", _launch.find_mpirun() or "mpirun", 1)
            raise ValueError(f"mpi: expected a master and at least one worker, got one process; start with {start}")
        self.is_master = self.rank == 0
        self.tolerant = _launch.tolerant()
        self.report: RunReport | None = None
        self._runs = 0
        self._closed = False
        self._hub = _Hub(self._mpi, self._comm, self.size, self.tolerant) if self.is_master else None
        self._desk = None if self.is_master else _Desk(self._mpi, self._comm, self.rank, self.size, self.patience)
        self._leave: str | None = None
        self._code = 0

    def simulate(
        self,
        dataset: Any,
        parts: Any,
        *,
        wire: str | None = None,
        checkpoint: str | os.PathLike[str] | None = None,
        watch: Callable[[int, RunReport], None] | None = None,
        **settings: Any,
    ) -> Result | None:
        """:func:`byzadmm.simulate` with the workers on the other ranks.

        Parameters
        ----------
        dataset, parts, settings
            As in ``byzadmm.simulate``; the same on every rank. ``threads`` is 1 unless given: ranks share their cores.
        wire : None, "float32" or "float64"
            Type of the numbers that travel; the run's own without it.
        checkpoint : path, optional
            The master keeps its state there, and every rank that of its workers beside it, at each evaluation. The same
            call after a crash goes on from there, to the same bits.
        watch : callable, optional
            Called by the master after each iteration with their number and the report so far.

        Returns
        -------
        Result on the master, None on the other ranks
            To the bit that of ``byzadmm.simulate`` if every worker answered in time.
        """
        number = self._runs
        self._runs += 1

        def build() -> Experiment:
            return Experiment(dataset, parts, wire=wire, **({"threads": 1} | settings))

        if self._desk is not None:
            self._desk.serve(number, build, checkpoint)
            return None
        assert self._hub is not None
        self.report = None
        begun = time.perf_counter()
        try:
            with self.watched("loading its data"):
                experiment = build()
            engine = _Engine(self._hub, experiment, number, self.patience)
            report = self.report = engine.report_so_far

            def tick(done: int) -> None:
                report.rounds += 1
                if watch is not None:
                    watch(done, report)

            return lead(experiment, engine, deadline=self.deadline, checkpoint=checkpoint, watch=tick)
        finally:
            self._hub.tell_all(pack(Kind.OVER, _NOTHING, run=number))
            if self.report is not None:
                self.report.seconds = time.perf_counter() - begun
                self.report.finish(self._hub.states())

    def watched(self, stage: str) -> contextlib.AbstractContextManager[None]:
        """Abort the job with exit code 2 and one line if the block, a ``stage`` of the start, exceeds the patience."""

        def expired() -> None:
            _bad_start(self._comm, f"mpi: rank {self.rank} was {stage} for {self.patience:g} s (patience)")

        return _launch.watchdog(self.patience, expired)

    def close(self) -> None:
        """Tell everybody that it is over, wait a moment, and see to it that the process can end."""
        if self._closed:
            return
        self._closed = True
        if self._hub is not None:
            self._leave = self._hub.stop(self.deadline)
        elif self._desk is not None:
            self._leave = "exit" if self._desk.stop() else None
        if self._leave is not None:
            atexit.register(self.leave, self._code)

    def leave(self, code: int) -> None:
        """End the process now where MPI could not end in an orderly way because somebody is gone; else do nothing.

        At the end of a script this happens by itself, with exit code 0, or 1 if an exception left the ``with`` block.
        """
        if self._leave is None:
            return
        sys.stdout.flush()
        sys.stderr.flush()
        if self._leave == "abort":
            _abort(self._comm, code)
        os._exit(code)

    def __enter__(self) -> Job:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if error is not None:
            self._code = 1
            if self._desk is not None:
                self._desk.give_up(error)
        self.close()


def _start_mpi(patience: float) -> Any:
    """The module ``mpi4py.MPI`` after MPI_Init, which returns only when every rank has called it.

    mpi4py would call it while the module is imported, and hold the interpreter's lock meanwhile: no other thread could
    see that time is up. ``ctypes`` gives the lock away.
    """
    rank = int(os.environ.get("PMIX_RANK", "0"))

    def expired() -> None:
        missing = _launch.absent()
        named = [f"rank {other} {why}" for other, why in missing.items()]
        whom = ", ".join(named[:3]) + (f" and {len(named) - 3} more" if len(named) > 3 else "")
        text = f"mpi: rank {rank} waited {patience:g} s (patience) in MPI_Init for every rank to start"
        _launch.say(f"{text}: {whom}" if whom else text)
        if _launch.tolerant():  # then mpirun would leave them behind; the ranks in MPI are no different from this one
            _launch.end_ranks(missing)
        os._exit(2)

    try:
        rc = importlib.import_module("mpi4py").rc
        rc(initialize=False, finalize=rc.finalize is not False)  # without effect where MPI runs already
        mpi = importlib.import_module("mpi4py.MPI")
        if not mpi.Is_initialized():
            init = getattr(ctypes.CDLL(mpi.__file__), "MPI_Init_thread", lambda *_: mpi.Init_thread())
            with _launch.watchdog(_launch.patience_of(rank, patience), expired):
                init(None, None, mpi.THREAD_MULTIPLE, ctypes.byref(ctypes.c_int()))
    except (ImportError, RuntimeError) as error:  # no mpi4py; no MPI library under it
        raise ImportError(f"mpi: needs mpi4py and an MPI library; pip install 'byzadmm[mpi]' ({error})") from error
    return mpi


def _abort(comm: Any, code: int) -> None:
    """End all ranks, also those that were stopped and will never answer, and mpirun."""
    _ending = _launch.end_launcher(_GRACE)
    comm.Abort(code)


def _bad_start(comm: Any, text: str) -> None:
    """End the job with exit code 2 and one line."""
    _launch.say(text)
    if _launch.tolerant():  # otherwise mpirun ends the other ranks as soon as this one is gone
        _launch.end_ranks(range(sys.maxsize))
        if not _launch.all_here():
            _abort(comm, 2)
    os._exit(2)


class _Idle:
    """Waiting without burning a core that a worker may need: look again at once, then let others run, then doze."""

    def __init__(self) -> None:
        self.looks = 0

    def wait(self) -> None:
        self.looks += 1
        if self.looks > 200:
            time.sleep(5e-5)
        elif self.looks > 50:
            _let_others_run()


# --- the master's side -----------------------------------------------------------------------------------------------


class _Link:
    """A rank as the master sees it."""

    def __init__(self, rank: int) -> None:
        self.rank = rank
        self.workers = range(0)
        self.run = -1  # the last run it has started
        self.gone: str | None = None  # why it is not asked any more
        self.left = False
        self.owed: Expected | None = None
        self.asked = 0.0
        self.sink: Array | None = None  # where the answer goes, (m, dim)
        self.begins = b""  # how it has to begin
        self.buffer: Bytes = np.empty(0, np.uint8)
        self.request: Any = None  # a receive in flight into buffer[:count]
        self.count = 0
        self.came: float | None = None  # when an answer arrived in time that has not been read yet
        self.sends: list[tuple[Any, Bytes]] = []
        self.discards: list[tuple[Any, Bytes]] = []
        self.stats = RankReport(rank)


class _Hub:
    """The master's end of all links; lives as long as the job."""

    def __init__(self, mpi: Any, comm: Any, size: int, tolerant: bool) -> None:
        self.mpi, self.comm, self.tolerant = mpi, comm, tolerant
        self.links = [_Link(rank) for rank in range(1, size)]
        self.waiting: set[int] = set()  # ranks whose answer can still be in time
        self.present: Array = np.zeros(0, np.bool_)
        self.good: Array = np.zeros(0, np.bool_)  # whose message the master can accept
        self.bound = 0.0
        self.events: list[Event] = []
        self.round = 0
        self.unread: list[_Link] = []
        self.lost: list[int] = []  # workers to be eliminated
        self.unreceived = False
        self.seconds_checking = 0.0
        self._status = mpi.Status()

    def states(self) -> dict[int, str]:
        return {link.rank: link.gone or ("slow" if link.owed is not None else "ready") for link in self.links}

    # asking

    def ask(self, link: _Link, message: Bytes, owed: Expected, sink: Array) -> None:
        link.owed, link.sink, link.begins, link.asked = owed, sink, owed.header(), time.perf_counter()
        link.stats.bytes_down += len(message)
        self.waiting.add(link.rank)
        self._send(link, message)

    def _send(self, link: _Link, message: Bytes) -> None:
        # A buffer lives until its send is over: the rank may be stopped, and its message with it.
        link.sends = [(request, kept) for request, kept in link.sends if not self._over(request)]
        try:
            link.sends.append((self.comm.Isend([message, self.mpi.BYTE], link.rank, _TAG), message))
        except self.mpi.Exception as error:
            self._note_deaths(error)

    def _over(self, request: Any) -> bool:
        try:
            return bool(request.Test())
        except self.mpi.Exception as error:
            self._note_deaths(error)
            return True

    def collect(self, seconds: float) -> None:
        """Take what comes until nobody who was asked owes an answer, or time is up."""
        end = time.perf_counter() + seconds
        idle = _Idle()
        while self.waiting:
            if self.poll():
                idle.looks = 0
            elif time.perf_counter() >= end:
                break
            elif not any(link.request for link in self.links):  # a long message moves only while it is looked after
                idle.wait()
        self._read()
        for rank in sorted(self.waiting):
            self._note(self.links[rank - 1], "slow")
        self.waiting.clear()

    # hearing

    def poll(self) -> bool:
        """Take one thing that has come, if any."""
        for link in self.links:
            if link.request is not None and self._tested(link):
                return True
        try:
            message = self.comm.Improbe(self.mpi.ANY_SOURCE, self.mpi.ANY_TAG, self._status)
        except self.mpi.Exception as error:
            self._note_deaths(error)
            return True
        if message is None:
            return False
        self._take(message, self._status.Get_count(self.mpi.BYTE), self.links[self._status.Get_source() - 1])
        return True

    def _take(self, message: Any, count: int, link: _Link) -> None:
        """Receive a message, now that its length is known, into room that is there; or do not receive it."""
        if link.came is not None:  # another one of its messages is in that room
            self._read()
        cap = max(0 if link.owed is None else link.owed.nbytes, HEADER_BYTES + NOTICE_BYTES)
        if link.gone is None and not 0 <= count <= cap:
            self._eliminate(link, "oversized")
        elif link.gone is None and link.request is not None:
            self._eliminate(link, "unasked")
        if link.gone is not None:
            self._discard(message, count, link)
            return
        if len(link.buffer) < cap:
            link.buffer = np.empty(cap, np.uint8)
        link.count = count
        try:
            link.request = message.Irecv([link.buffer[:count], self.mpi.BYTE])
        except self.mpi.Exception as error:
            self._note_deaths(error)
            return
        self._tested(link)

    def _discard(self, message: Any, count: int, link: _Link) -> None:
        rest = []
        for request, buffer in link.discards:
            if self._over(request):
                self._heard_leaving(link, buffer)
            else:
                rest.append((request, buffer))
        link.discards = rest
        if not 0 <= count <= _DISCARD_BYTES or len(rest) >= _DISCARDS:
            self.unreceived = True
            return
        buffer = np.empty(count, np.uint8)
        try:
            request = message.Irecv([buffer, self.mpi.BYTE])
        except self.mpi.Exception as error:
            self._note_deaths(error)
            return
        if self._over(request):
            self._heard_leaving(link, buffer)
        else:
            link.discards.append((request, buffer))

    def _heard_leaving(self, link: _Link, message: Bytes) -> None:
        header = peek(message)
        link.left |= header is not None and header.kind == Kind.STOP

    def _tested(self, link: _Link) -> bool:
        try:
            if not link.request.Test():
                return False
        except self.mpi.Exception as error:
            link.request = None
            self._note_deaths(error)
            return True
        link.request = None
        if link.rank in self.waiting:
            link.came = time.perf_counter()
            self.waiting.discard(link.rank)
        self.unread.append(link)
        if link.came is None:
            self._read()
        return True

    def _read(self) -> None:
        """Look at what was received. All answers of a round together: one by one, each would find cold caches."""
        start = time.thread_time()
        unread, self.unread = self.unread, []
        taken = self._take_at_once(unread)
        for link in unread:
            came, link.came = link.came, None
            if came is not None and link in taken:
                link.owed = None
                link.stats.bytes_up += link.count
                link.stats.answered(came - link.asked, seconds_of(link.buffer))
            else:
                self._arrived(link, link.buffer[: link.count], came)
        self.seconds_checking += time.thread_time() - start

    def _take_at_once(self, unread: list[_Link]) -> set[_Link]:
        """The links whose answer is exactly what is owed in this round: checked, copied and screened in one pass.

        Whatever is not goes the long way, through ``validate``, which says what is wrong with it.
        """
        usual, envelopes = [], []
        for link in unread:
            owed = link.owed
            if link.came is None or owed is None or owed.kind != Kind.ROUND or link.sink is None:
                continue
            if link.sink.dtype == owed.dtype and sys.byteorder == "little":  # as on the wire
                usual.append(link)
                envelopes.append((link.buffer, link.count, link.begins, owed.first, owed.rows))
        if not usual:
            return set()
        sink = usual[0].sink
        assert sink is not None
        fit = _core.take_messages(envelopes, HEADER_BYTES, self.bound, sink, self.present, self.good)
        return {link for link, fits in zip(usual, fit, strict=True) if fits}

    def _arrived(self, link: _Link, message: Bytes, came: float | None) -> None:
        """``came``: when, if that was in time."""
        link.stats.bytes_up += len(message)
        owed = link.owed
        fault, numbers = ("unasked", None) if owed is None else validate(message, owed)
        if owed is None or numbers is None:
            self._not_an_answer(link, message, str(fault))
            return
        link.owed = None
        if owed.kind == Kind.START:
            link.run = owed.run
        if came is None:
            link.stats.late += 1
            self._note(link, "back", f"its answer to {owed.kind.name.lower()} {owed.round} came too late")
            return
        assert link.sink is not None
        mine = slice(owed.first, owed.first + owed.rows)
        link.sink[mine] = numbers
        self.present[mine] = True
        if owed.kind == Kind.ROUND:
            self.good[mine] = _core.acceptable(link.sink[mine], self.bound)
        if owed.kind == Kind.ROUND:
            link.stats.answered(came - link.asked, seconds_of(message))

    def _not_an_answer(self, link: _Link, message: Bytes, fault: str) -> None:
        text = read_notice(message)
        if text is not None:
            self._lose(link, "raised", text)
            return
        self._heard_leaving(link, message)
        if not link.left:
            self._eliminate(link, fault)

    # losing

    def _note(self, link: _Link, what: str, text: str = "") -> None:
        self.events.append(Event(self.round, link.rank, tuple(link.workers), what, text))

    def _lose(self, link: _Link, why: str, text: str = "") -> None:
        """It cannot answer any more: from now on its workers are missing."""
        link.gone, link.owed = why, None
        self.waiting.discard(link.rank)
        if link.request is not None:  # the receive may still write into its buffer
            link.discards.append((link.request, link.buffer))
            link.request, link.buffer = None, np.empty(0, np.uint8)
        self._note(link, why, text)

    def _eliminate(self, link: _Link, fault: str) -> None:
        """It broke the rules of the exchange: its workers are eliminated."""
        self._lose(link, fault)
        self.lost += link.workers

    def _note_deaths(self, error: Exception) -> None:
        """Which ranks have died; any other error of MPI is raised again."""
        self._read()  # what they said before counts
        mpi = self.mpi
        if error.Get_error_class() not in (mpi.ERR_PROC_FAILED, mpi.ERR_PROC_FAILED_PENDING):  # type: ignore[attr-defined]
            raise error
        failed = self.comm.Get_failed()
        count = failed.Get_size()
        dead = mpi.Group.Translate_ranks(failed, list(range(count)), self.comm.Get_group())
        self.comm.Ack_failed(count)
        for link in self.links:
            if link.rank in dead and link.gone != "died":
                self._lose(link, "died")

    # the end

    def stop(self, seconds: float) -> str | None:
        """Send everybody home; how the master has to leave: None (in good order), "exit" or "abort".

        Twice: only when it is known who answers can the ranks be told whether MPI's own farewell, in which all take
        part, would ever end.
        """
        self.waiting.clear()  # a round that was interrupted
        self._read()
        self.tell_all(pack(Kind.STOP, _NOTHING))
        missing = self._await_leaving(seconds)
        if missing and self.tolerant:  # an abort does not always end several ranks that are stopped
            _launch.end_ranks(missing)
            missing = self._await_leaving(_MOMENT)
        hard = bool(missing) or self.unreceived or any(link.gone == "died" for link in self.links)
        self.tell_all(pack(Kind.STOP, _NOTHING, save=hard))
        return "abort" if missing else "exit" if hard else None

    def _await_leaving(self, seconds: float) -> set[int]:
        """Ranks that are neither dead nor have said good-bye when time is up."""
        end = time.perf_counter() + seconds
        idle = _Idle()
        while missing := {link.rank for link in self.links if not link.left and link.gone != "died"}:
            for link in self.links:
                for request, buffer in link.discards:
                    if self._over(request):
                        self._heard_leaving(link, buffer)
            if self.poll():
                idle.looks = 0
            elif time.perf_counter() >= end:
                break
            else:
                idle.wait()
        return missing

    def tell_all(self, message: Bytes) -> None:
        """What needs no answer."""
        for link in self.links:
            if link.gone != "died":
                self._send(link, message)


class _Engine:
    """One run over the links of a job: the protocol of :class:`byzadmm.engines.Engine`."""

    def __init__(self, hub: _Hub, experiment: Experiment, number: int, patience: float) -> None:
        self.hub, self.experiment, self.number, self.patience = hub, experiment, number, patience
        setup = experiment
        self.events = hub.events = []
        hub.lost, hub.round, hub.seconds_checking = [], 0, 0.0
        # The master keeps the answers of two rounds; those of the next go into the third.
        self._turns = itertools.cycle([np.zeros((setup.m, setup.d), setup.dtype) for _ in range(3)])
        hub.bound = message_bound(setup)
        self._first: Bytes = np.empty(0, np.uint8)
        self._done = 0
        self._ended: float | None = None
        for link in hub.links:
            link.workers = share(setup.m, link.rank, len(hub.links) + 1)
            link.stats = RankReport(link.rank, tuple(link.workers))
            if link.gone == "raised":  # what it could not do may have been that run's alone
                link.gone = None
            if link.gone is not None and link.workers:
                self.events.append(Event(0, link.rank, tuple(link.workers), link.gone, "in an earlier run"))
                hub.lost += link.workers if link.gone != "died" else []
        widest = max(len(link.workers) for link in hub.links) * setup.d * setup.dtype.itemsize
        if HEADER_BYTES + widest > _LARGEST:
            raise ValueError(f"mpi: {widest} bytes from one rank are too many for a message; use more ranks")
        self.report_so_far = RunReport(
            [link.stats for link in hub.links], self.events, experiment.wire.name, setup.m, setup.d
        )

    def start(self, done: int, x0: Array, token: int) -> None:
        """Have everybody build the experiment; who is not ready in time may come later."""
        self._done = done
        self._first = pack(Kind.START, x0[None].copy(), run=self.number, round=done, token=token)
        self.hub.round = done
        self._restored = np.zeros((self.experiment.m, 1))
        self._begin()
        for link in self.hub.links:
            if link.workers and link.gone is None and link.owed is None:
                self._start(link)
        self.hub.collect(self.patience)
        self._somebody()
        if not any(link.run == self.number for link in self.hub.links if link.workers):
            who = ", ".join(str(link.rank) for link in self.hub.links if link.owed is not None)
            raise ConnectionError(f"mpi: no rank has loaded its data after {self.patience:g} s (patience): {who}")
        if done:
            for link in self.hub.links:
                if link.workers and link.run == self.number and not self._restored[link.workers[0]]:
                    self.events.append(Event(done, link.rank, tuple(link.workers), "restarted", "no saved state"))

    def exchange(self, k: int, x0: Array, deadline: float) -> Replies:
        """Round ``k`` with every rank that owes nothing."""
        hub, report = self.hub, self.report_so_far
        begun, checked = self._since_last(), hub.seconds_checking
        hub.round = k
        present = self._begin()
        message = pack(Kind.ROUND, on_the_wire(x0, self.experiment.wire)[None], run=self.number, round=k)
        messages = next(self._turns)
        self._ask(Kind.ROUND, k, message, self.experiment.d, self.experiment.wire.name, messages)
        asked = time.perf_counter()
        hub.collect(deadline)
        lost, hub.lost = hub.lost, []
        self._somebody()
        report.keep_round(k, begun)
        report.seconds_asking += asked - begun
        report.seconds_checking += hub.seconds_checking - checked
        report.seconds_waiting += time.perf_counter() - asked - (hub.seconds_checking - checked)
        self._ended = time.thread_time()
        return Replies(messages, present, lost, hub.good)

    def _since_last(self) -> float:
        """The time; the processor time since the end of the last exchange was the master's own work."""
        if self._ended is not None:
            self.report_so_far.seconds_updating += time.thread_time() - self._ended
        self._ended = None
        return time.perf_counter()

    def report(self, done: int, save: bool, deadline: float) -> Replies | None:
        """The models of every rank that owes nothing, in the run's own type."""
        self._since_last()
        has_models, setup = self.experiment.has_models, self.experiment
        if not (has_models or save):
            return None
        present = self._begin()
        models = np.zeros((setup.m, setup.d if has_models else 0), setup.dtype)
        message = pack(Kind.REPORT, np.zeros((1, 0), setup.dtype), run=self.number, round=done, save=save)
        self._ask(Kind.REPORT, done, message, models.shape[1], setup.dtype.name, models)
        self.hub.collect(deadline)
        return Replies(models, present) if has_models else None

    def rank_of(self, worker: int) -> int:
        """The rank that holds ``worker``."""
        return next(link.rank for link in self.hub.links if worker in link.workers)

    def close(self) -> None:
        """The links stay: they are the job's."""

    def _begin(self) -> Array:
        self.hub.present, self.hub.good = (np.zeros(self.experiment.m, np.bool_) for _ in range(2))
        return self.hub.present

    def _start(self, link: _Link) -> None:
        owed = Expected(Kind.START, self.number, self._done, link.workers.start, len(link.workers), 1, "float64")
        self.hub.ask(link, self._first, owed, self._restored)

    def _ask(self, kind: Kind, number: int, message: Bytes, dim: int, dtype: str, sink: Array) -> None:
        late = []
        for link in self.hub.links:
            if not link.workers or link.gone is not None or link.owed is not None:
                continue
            if link.run != self.number:
                late.append(link)
                continue
            owed = Expected(kind, self.number, number, link.workers.start, len(link.workers), dim, dtype)
            self.hub.ask(link, message, owed, sink)
            link.stats.asked += kind == Kind.ROUND
        for link in late:  # nobody waits for these: they take part from the round after their answer
            self._start(link)
            self.hub.waiting.discard(link.rank)

    def _somebody(self) -> None:
        if all(link.gone is not None for link in self.hub.links if link.workers):
            why = ", ".join(f"rank {link.rank} {link.gone}" for link in self.hub.links if link.workers)
            raise ConnectionError(f"mpi: no worker is left in round {self.hub.round} ({why})")


# --- a worker rank's side --------------------------------------------------------------------------------------------


class _Desk:
    """A worker rank: answers what the master asks, until it is told to stop."""

    def __init__(self, mpi: Any, comm: Any, rank: int, size: int, patience: float) -> None:
        self.mpi, self.comm, self.rank, self.size, self.patience = mpi, comm, rank, size, patience
        self._met = False  # whether the master has said anything yet
        self._held: tuple[Header, Bytes] | None = None
        self._failed = False

    def serve(self, number: int, build: Callable[[], Experiment], checkpoint: Any) -> None:
        """Run ``number``, from its start until it is over; a run that the master could not begin is over at once."""
        self._failed = False
        side: _Side | None = None
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
                    side = _Side(experiment, mine, checkpoint, header, body(message, header)[0])
                    numbers = np.full((len(side.mine), 1), float(side.restored))
                else:
                    assert side is not None
                    numbers = side.answer(header, message)
            except (Exception, SystemExit) as error:
                self.give_up(error)
                continue
            assert side is not None
            spent = time.perf_counter() - begun
            self._say(
                pack(header.kind, numbers, run=header.run, round=header.round, first=side.mine.start, seconds=spent)
            )

    def give_up(self, error: BaseException) -> None:
        """Say so once, and answer nothing more until the next run."""
        if not self._failed:
            self._failed = True
            self._say(pack_notice(f"{type(error).__name__}: {error}"))

    def stop(self) -> bool:
        """Wait for the end; whether the process must leave without MPI's farewell."""
        self._until_told()
        self._say(pack(Kind.STOP, _NOTHING))
        return self._until_told().save

    def _until_told(self) -> Header:
        while True:
            header, _ = self._next()
            if header.kind == Kind.STOP:
                return header

    def _next(self) -> tuple[Header, Bytes]:
        """What the master says next."""
        if self._held is not None:
            held, self._held = self._held, None
            return held
        idle, status = _Idle(), self.mpi.Status()
        limit = 2 * self.patience  # the master may need as long as that for its own data, and then says so
        end = time.perf_counter() + _launch.patience_of(self.rank - 1, limit)
        try:
            while (message := self.comm.Improbe(0, self.mpi.ANY_TAG, status)) is None:
                if not self._met and time.perf_counter() >= end:
                    _bad_start(self.comm, f"mpi: rank {self.rank} waited {limit:g} s for the master's first message")
                idle.wait()
            self._met = True
            content = np.empty(status.Get_count(self.mpi.BYTE), np.uint8)
            message.Recv([content, self.mpi.BYTE])
        except self.mpi.Exception:  # without a master there is nothing left to do, and nobody to say good-bye to
            os._exit(1)
        header = peek(content)
        assert header is not None
        return header, content

    def _say(self, message: Bytes) -> None:
        try:
            self.comm.Send([message, self.mpi.BYTE], 0, _TAG)
        except self.mpi.Exception:
            os._exit(1)


class _Side:
    """The workers of one rank in one run."""

    def __init__(self, experiment: Experiment, mine: range, checkpoint: Any, header: Header, x0: Array) -> None:
        self.experiment, self.mine, self.checkpoint, self.token = experiment, mine, checkpoint, header.token
        self._ending = f".w{mine.start}-{mine.stop - 1}.npz"
        self.workers = Workers(experiment, mine)
        if checkpoint is not None:
            prepare(checkpoint, "checkpoint")
        self.restored = header.round == 0 or self._load(header.round)
        self._last = header.round
        if not self.restored and experiment.has_models:
            self.workers.state()["x"][:] = x0

    def answer(self, header: Header, message: Bytes) -> Array:
        """To a question about a round, or for a report."""
        experiment, setup = self.experiment, self.experiment
        if header.kind == Kind.ROUND:
            x0 = body(message, header)[0].astype(setup.dtype)
            return on_the_wire(self.workers.answer(header.round, x0), experiment.wire, experiment.shrink)
        if header.save:
            self._save(header.round)
        if not experiment.has_models:
            return np.zeros((len(self.mine), 0), setup.dtype)
        return self.workers.state()["x"][np.searchsorted(self.workers.held, self.mine)]  # without its shadows

    def _path(self, done: int) -> Path:
        return Path(f"{os.fspath(self.checkpoint)}.{done}{self._ending}")

    def _save(self, done: int) -> None:
        """The state of now, beside that of the time before: the master may die before it has saved its own."""
        write_npz(self._path(done), self.workers.state(), {"token": self.token})
        keep, self._last = {self._path(self._last), self._path(done)}, done
        base = Path(self.checkpoint)
        for old in base.parent.glob(f"{glob.escape(base.name)}.*{self._ending}"):
            if old not in keep:
                old.unlink(missing_ok=True)

    def _load(self, done: int) -> bool:
        try:
            arrays, about = read_npz(self._path(done))
            if about.get("token") != self.token:
                return False
            self.workers.restore(arrays)
        except (OSError, ValueError):
            return False
        return True
