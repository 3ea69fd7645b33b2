"""The master's connections to the other ranks: sending, receiving, and ranks that fail.

A message is received only if it has the length of something that is expected, into a buffer that exists already.
"""

from __future__ import annotations

import time
from typing import Any

import numpy as np

from byzadmm import _core
from byzadmm._internal.arrays import Array
from byzadmm.engines.messages import (
    EMPTY,
    HEADER_BYTES,
    NOTICE_BYTES,
    Bytes,
    Expected,
    Kind,
    pack,
    peek,
    read_notice,
    seconds_of,
    take_answers,
    validate,
)
from byzadmm.engines.mpi import _launch as launch
from byzadmm.engines.mpi._channel import Channel
from byzadmm.engines.mpi._waiting import TAG, Backoff, dead_ranks
from byzadmm.engines.protocol import Event

__all__ = ["Channels"]

# Unwanted messages are received and discarded up to this size and number; larger ones stay with their sender.
_DISCARD_BYTES, _DISCARDS = 1 << 16, 16
_MOMENT = 5.0  # seconds until MPI reports a death


class Channels:
    """The connections to all ranks; they live as long as the job."""

    def __init__(self, mpi: Any, comm: Any, size: int, tolerant: bool) -> None:
        self.mpi, self.comm, self.tolerant = mpi, comm, tolerant
        self.channels = [Channel(rank) for rank in range(1, size)]
        self.waiting: set[int] = set()  # ranks whose answer can still be in time
        self.present: Array = np.zeros(0, np.bool_)
        self.good: Array = np.zeros(0, np.bool_)  # workers whose message the master can accept
        self.bound = 0.0
        self.events: list[Event] = []
        self.event = Event
        self.round = 0
        self.unread: list[Channel] = []
        self.eliminated: list[int] = []  # workers whose rank has broken the format, for the next exchange to report
        self.unreceived = False  # a message was left with its sender
        self.seconds_checking = 0.0
        self._status = mpi.Status()

    def states(self) -> dict[int, str]:
        """For each rank "ready", "slow" or why it is closed."""
        return {channel.rank: channel.state for channel in self.channels}

    # sending

    def ask(self, channel: Channel, message: Bytes, owed: Expected, sink: Array) -> None:
        """Send a message to which the rank owes an answer; its numbers will go to their rows of ``sink``."""
        channel.owed, channel.sink, channel.asked = owed, sink, time.perf_counter()
        channel.stats.bytes_down += len(message)
        self.waiting.add(channel.rank)
        self._send(channel, message)

    def _send(self, channel: Channel, message: Bytes) -> None:
        # A buffer must live until its send is over, which it never is for a rank that is stopped.
        channel.sends = [(request, kept) for request, kept in channel.sends if not self._over(request)]
        try:
            channel.sends.append((self.comm.Isend([message, self.mpi.BYTE], channel.rank, TAG), message))
        except self.mpi.Exception as error:
            self._note_deaths(error)

    def _over(self, request: Any) -> bool:
        try:
            return bool(request.Test())
        except self.mpi.Exception as error:
            self._note_deaths(error)
            return True

    def collect(self, seconds: float) -> None:
        """Receive until every rank that was asked has answered, or time is up."""
        end = time.perf_counter() + seconds
        backoff = Backoff()
        while self.waiting:
            if self.poll():
                backoff.looks = 0
            elif time.perf_counter() >= end:
                break
            elif not any(channel.request for channel in self.channels):  # a long message moves in calls of MPI alone
                backoff.wait()
        self.read()
        for rank in sorted(self.waiting):
            self._note(self.channels[rank - 1], "slow")
        self.waiting.clear()

    # receiving

    def poll(self) -> bool:
        """Make progress with one message, if there is one."""
        for channel in self.channels:
            if channel.request is not None and self._tested(channel):
                return True
        try:
            message = self.comm.Improbe(self.mpi.ANY_SOURCE, self.mpi.ANY_TAG, self._status)
        except self.mpi.Exception as error:
            self._note_deaths(error)
            return True
        if message is None:
            return False
        self._take(message, self._status.Get_count(self.mpi.BYTE), self.channels[self._status.Get_source() - 1])
        return True

    def _take(self, message: Any, count: int, channel: Channel) -> None:
        """Receive a message of ``count`` bytes if that is possible for an answer or a notice; otherwise discard it."""
        if channel.arrived is not None:  # the buffer holds an earlier message of this rank
            self.read()
        if channel.account is not None:
            self._finish(channel)
        owed = 0 if channel.owed is None else channel.owed.nbytes
        cap = max(owed, channel.room, HEADER_BYTES + NOTICE_BYTES)
        if channel.closed is None and not 0 <= count <= cap:
            self._eliminate(channel, "oversized")
        elif channel.closed is None and channel.request is not None:
            self._eliminate(channel, "unasked")
        if channel.closed is not None:
            self._discard(message, count, channel)
            return
        if len(channel.buffer) < cap:
            channel.buffer = np.empty(cap, np.uint8)
        channel.count = count
        try:
            channel.request = message.Irecv([channel.buffer[:count], self.mpi.BYTE])
        except self.mpi.Exception as error:
            self._note_deaths(error)
            return
        self._tested(channel)

    def _finish(self, channel: Channel) -> None:
        """Wait a moment for the message that is being received: one that tells beside its answers does not wait."""
        end = time.perf_counter() + _MOMENT
        while channel.request is not None and not self._tested(channel) and time.perf_counter() < end:
            pass
        if channel.arrived is not None:
            self.read()

    def _discard(self, message: Any, count: int, channel: Channel) -> None:
        rest = []
        for request, buffer in channel.discards:
            if self._over(request):
                self._note_end(channel, buffer)
            else:
                rest.append((request, buffer))
        channel.discards = rest
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
            self._note_end(channel, buffer)
        else:
            channel.discards.append((request, buffer))

    def _note_end(self, channel: Channel, message: Bytes) -> None:
        header = peek(message)
        if header is not None and header.kind == Kind.STOP:
            channel.ended = True
            self.unreceived |= header.save

    def _tested(self, channel: Channel) -> bool:
        try:
            if not channel.request.Test():
                return False
        except self.mpi.Exception as error:
            channel.request = None
            self._note_deaths(error)
            return True
        channel.request = None
        if channel.account is not None and self._is_account(channel, channel.account):
            return True
        if channel.rank in self.waiting:
            channel.arrived = time.perf_counter()
            self.waiting.discard(channel.rank)
        self.unread.append(channel)
        if channel.arrived is None:
            self.read()
        return True

    def _is_account(self, channel: Channel, account: Expected) -> bool:
        """Take what a rank tells beside its answers; that of an earlier run is ignored."""
        message = channel.buffer[: channel.count]
        _, numbers = validate(message, account)
        if numbers is not None:
            channel.told = numbers.copy()
            return True
        header = peek(message)
        return header is not None and header.kind == Kind.ACCOUNT and header.run < account.run

    def read(self) -> None:
        """Check what was received, all answers of a round together: one by one each would find cold caches."""
        start = time.thread_time()
        unread, self.unread = self.unread, []
        valid = self._take_round(unread)
        for channel in unread:
            arrived, channel.arrived = channel.arrived, None
            if channel in valid:
                channel.owed = None
                channel.stats.bytes_up += channel.count
                assert arrived is not None
                channel.stats.answered(arrived - channel.asked, seconds_of(channel.buffer))
            else:
                self._arrived(channel, channel.buffer[: channel.count], arrived)
        self.seconds_checking += time.thread_time() - start

    def _take_round(self, unread: list[Channel]) -> set[Channel]:
        """The channels whose answer to a round arrived in time and is exactly what is owed; their numbers are taken."""
        usual, answers = [], []
        for channel in unread:
            owed = channel.owed
            if channel.arrived is not None and owed is not None and owed.kind == Kind.ROUND:
                usual.append(channel)
                answers.append((channel.buffer, channel.count, owed))
        if not usual:
            return set()
        sink = usual[0].sink
        assert sink is not None
        valid = take_answers(answers, self.bound, sink, self.present, self.good)
        return {channel for channel, is_valid in zip(usual, valid, strict=True) if is_valid}

    def _arrived(self, channel: Channel, message: Bytes, arrived: float | None) -> None:
        """Check one message; ``arrived``: when it did, None if that was too late."""
        channel.stats.bytes_up += len(message)
        owed = channel.owed
        fault, numbers = ("unasked", None) if owed is None else validate(message, owed)
        if owed is None or numbers is None:
            self._not_an_answer(channel, message, str(fault))
            return
        channel.owed = None
        if owed.kind == Kind.START:
            channel.run = owed.run
        if arrived is None:
            channel.stats.late += 1
            self._note(channel, "back", f"its answer to {owed.kind.name.lower()} {owed.round} came too late")
            return
        assert channel.sink is not None
        mine = slice(owed.first, owed.first + owed.rows)
        channel.sink[mine] = numbers
        self.present[mine] = True
        if owed.kind == Kind.ROUND:
            self.good[mine] = _core.acceptable(channel.sink[mine], self.bound)
            channel.stats.answered(arrived - channel.asked, seconds_of(message))

    def _not_an_answer(self, channel: Channel, message: Bytes, fault: str) -> None:
        text = read_notice(message)
        if text is not None:
            self._close(channel, "raised", text)
            return
        self._note_end(channel, message)
        if not channel.ended:
            self._eliminate(channel, fault)

    # ranks that fail

    def _note(self, channel: Channel, what: str, text: str = "") -> None:
        self.events.append(self.event(self.round, channel.rank, tuple(channel.workers), what, text))

    def _close(self, channel: Channel, why: str, text: str = "") -> None:
        """Ask this rank no more: its workers are missing from now on."""
        channel.closed, channel.owed = why, None
        self.waiting.discard(channel.rank)
        if channel.request is not None:  # the receive may still write into its buffer
            channel.discards.append((channel.request, channel.buffer))
            channel.request, channel.buffer = None, np.empty(0, np.uint8)
        self._note(channel, why, text)

    def _eliminate(self, channel: Channel, fault: str) -> None:
        """Close the channel for a fault: its workers are eliminated."""
        self._close(channel, fault)
        self.eliminated += channel.workers

    def _note_deaths(self, error: Exception) -> None:
        """Close the channels of the ranks that have died; any other error of MPI is raised again."""
        self.read()  # what they sent before is valid
        mpi = self.mpi
        if error.Get_error_class() not in (mpi.ERR_PROC_FAILED, mpi.ERR_PROC_FAILED_PENDING):  # type: ignore[attr-defined]
            raise error
        dead = dead_ranks(mpi, self.comm)
        for channel in self.channels:
            if channel.rank in dead and channel.closed != "died":
                self._close(channel, "died")

    # the end

    def stop(self, seconds: float) -> str | None:
        """Tell all ranks to end; how the master has to end: None (by MPI_Finalize), "exit" or "abort".

        A second message tells each rank whether to call MPI_Finalize, which all ranks have to call: that is known only
        when all have answered the first, or time is up.
        """
        self.waiting.clear()  # a round that was interrupted
        self.read()
        self.tell_all(pack(Kind.STOP, EMPTY))
        missing = self._await_ends(seconds)
        if missing and self.tolerant:  # an abort does not always end several ranks that are stopped
            launch.end_ranks(missing)
            missing = self._await_ends(_MOMENT)
        hard = bool(missing) or self.unreceived or any(channel.closed == "died" for channel in self.channels)
        self.tell_all(pack(Kind.STOP, EMPTY, save=hard))
        return "abort" if missing else "exit" if hard else None

    def _await_ends(self, seconds: float) -> set[int]:
        """Ranks that have neither died nor said that they are ending when time is up."""
        end = time.perf_counter() + seconds
        backoff = Backoff()
        while missing := {channel.rank for channel in self.channels if not channel.ended and channel.closed != "died"}:
            for channel in self.channels:
                for request, buffer in channel.discards:
                    if self._over(request):
                        self._note_end(channel, buffer)
            if self.poll():
                backoff.looks = 0
            elif time.perf_counter() >= end:
                break
            else:
                backoff.wait()
        return missing

    def tell_all(self, message: Bytes) -> None:
        """Send what needs no answer."""
        for channel in self.channels:
            self.tell(channel, message)

    def tell(self, channel: Channel, message: Bytes) -> None:
        """Send one rank what needs no answer."""
        if channel.closed != "died":
            self._send(channel, message)
