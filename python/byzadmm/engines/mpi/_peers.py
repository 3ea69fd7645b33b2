"""The connections of a rank that holds nodes of a graph to the ranks that hold their neighbors.

A rank that is asked nothing cannot tell the others to wait: each goes through its rounds by itself, and in each hears
its neighbors until the deadline. Messages between two ranks arrive in the order in which they were sent, so that the
oldest one says where its sender is. At most two messages are under way to a rank that does not take them.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from enum import IntEnum
from typing import Any

import numpy as np

from byzadmm._internal.arrays import Array
from byzadmm.engines.messages import (
    EMPTY,
    FAULTS,
    HEADER_BYTES,
    NOTICE_BYTES,
    Bytes,
    Expected,
    Header,
    Kind,
    pack,
    pack_notice,
    peek,
    read_notice,
    validate,
)
from byzadmm.engines.mpi._waiting import TAG, Backoff, dead_ranks

__all__ = ["REASONS", "WITHIN", "Column", "Own", "Peer", "Peers"]

#: Exchanges are numbered ``rounds since the first * WITHIN + place in the round``.
WITHIN = 1 << 16
#: Why a rank is not heard any more, by its number in an account; "refused": it does not hear this one any more.
REASONS = ("", "died", "raised", *FAULTS, "refused")
_UNTAKEN = 2


class Column(IntEnum):
    """What an account says about another rank."""

    ASKED = 0  #: messages that were expected
    ON_TIME = 1
    LATE = 2
    NOT_FINITE = 3  #: numbers that were not finite, as rows
    WAITED = 4  #: seconds that messages on time were waited for
    LONGEST = 5
    IN = 6  #: bytes
    OUT = 7
    CLOSED = 8  #: place in REASONS
    CLOSED_AT = 9  #: in this round
    NOT_FINITE_AT = 10  #: first in this round
    SLOW_SINCE = 11  #: the round in which it has not answered; -1: it has answered


class Own(IntEnum):
    """What an account says about its own rank, in the same columns."""

    DONE = 0  #: iterations done
    RUN = 1  #: rounds of them that it took part in
    WORKED = 2  #: seconds without waiting


class Peer:
    """The connection to one rank, and what is known about it.

    Attributes
    ----------
    rank : int
    first : int
        The first of its nodes.
    closed : str
        Why it is not heard any more; empty while it is.
    heard : tuple of int
        Run and number of the newest message heard.
    held : (header, message) or None
        A message of a later exchange than the present one.
    stats : (len(Column),) float64
        Its row of the account.
    """

    def __init__(self, rank: int) -> None:
        self.rank, self.first = rank, 0
        self.closed = ""
        self.heard = (-1, -1)
        self.held: tuple[Header, Bytes] | None = None
        self.request: Any = None
        self.buffer: Bytes = np.empty(0, np.uint8)
        self.sends: list[tuple[Any, Bytes]] = []
        self.stats = np.zeros(len(Column))

    @property
    def slow(self) -> bool:
        return bool(self.stats[Column.SLOW_SINCE] >= 0)

    def note_not_finite(self, count: int, round: int) -> None:
        """Count models that are not finite."""
        if not self.stats[Column.NOT_FINITE]:
            self.stats[Column.NOT_FINITE_AT] = round
        self.stats[Column.NOT_FINITE] += count

    @property
    def position(self) -> tuple[int, int]:
        """The newest run and number that it is known to be at."""
        return self.heard if self.held is None else (self.held[0].run, self.held[0].round)


class Peers:
    """The connections of one rank to others; they live as long as the job."""

    def __init__(self, mpi: Any, comm: Any) -> None:
        self.mpi, self.comm = mpi, comm
        self.run, self.number, self.last = -1, -1, 0
        self.first = 0
        self.round = 0
        self.deadline = 0.0
        self.waited = 0.0  # seconds in this run
        self.peers: dict[int, Peer] = {}
        self._known: dict[int, Peer] = {}
        self._cap = 0
        self._owed: dict[int, Expected] = {}
        self._begun = 0.0
        self._arrived: dict[int, Array] = {}
        self._dtype = ""

    def begin(
        self, run: int, last: int, first: int, others: Mapping[int, int], cap: int, dtype: str, deadline: float
    ) -> None:
        """Start a run.

        Parameters
        ----------
        run, last : int
            Its number in the job, and its largest number of an exchange.
        first : int
            The first of this rank's nodes.
        others : rank -> int
            The first of the nodes of the others.
        cap : int
            Length of the longest message.
        dtype : "float32" or "float64"
        deadline : float
        """
        self.run, self.number, self.last = run, -1, last
        self.first, self.deadline, self._dtype = first, deadline, dtype
        self._cap = max(cap, HEADER_BYTES + NOTICE_BYTES)
        self.round, self.waited = 0, 0.0
        self._owed, self._arrived = {}, {}
        self.peers = {rank: self._known.setdefault(rank, Peer(rank)) for rank in others}
        for rank, peer in self.peers.items():
            peer.first = others[rank]
            peer.stats[:] = 0
            self._back(peer)
            if peer.closed == "raised":  # the cause may have been in that run alone
                peer.closed = ""
            if peer.closed:
                peer.stats[Column.CLOSED] = REASONS.index(peer.closed)

    def wait_for(self, ready: set[int]) -> None:
        """Wait for the ranks that have begun; the others are slow until they say something."""
        for rank, peer in self.peers.items():
            if rank not in ready:
                peer.stats[Column.SLOW_SINCE] = self.round

    # one exchange

    def exchange(
        self, number: int, out: Mapping[int, Array], owed: Mapping[int, int], among: Callable[[], bool]
    ) -> dict[int, Array]:
        """Send rows to other ranks and hear theirs within the deadline; those that came in time, by rank.

        Parameters
        ----------
        number : int
        out : rank -> (rows, dim) array
        owed : rank -> number of rows
        among : callable
            Called while waiting; True ends the wait.
        """
        self.number = number
        dim = next(iter(out.values())).shape[1] if out else 0
        for rank, rows in out.items():
            self._send(self.peers[rank], pack(Kind.EXCHANGE, rows, run=self.run, round=number, first=self.first))
        self._arrived = {}
        self._owed = {
            rank: Expected(Kind.EXCHANGE, self.run, number, self.peers[rank].first, rows, dim, self._dtype)
            for rank, rows in owed.items()
            if not self.peers[rank].closed
        }
        for rank in self._owed:
            self.peers[rank].stats[Column.ASKED] += 1
        self._begun = time.perf_counter()
        self._collect(among)
        self.waited += time.perf_counter() - self._begun
        for rank in self._owed.keys() - self._arrived.keys():
            peer = self.peers[rank]
            if not (peer.closed or peer.held or peer.slow):
                peer.stats[Column.SLOW_SINCE] = self.round
        self._owed = {}
        return self._arrived

    def _collect(self, among: Callable[[], bool]) -> None:
        end, backoff = self._begun + self.deadline, Backoff()
        for rank in self._owed:
            self._reconsider(self.peers[rank])
        while waiting := self._waiting():
            if self.poll():
                backoff.looks = 0
            elif among() or time.perf_counter() >= end:
                break
            elif not any(peer.request for peer in waiting):  # a long message moves in calls of MPI alone
                backoff.wait()
        self.poll()

    def _waiting(self) -> list[Peer]:
        """Those whose message is waited for: neither slow ones nor those that are ahead."""
        missing = [self.peers[rank] for rank in self._owed.keys() - self._arrived.keys()]
        return [peer for peer in missing if not (peer.closed or peer.held or peer.slow)]

    def ahead(self) -> int:
        """The largest number that at least half of the ranks that are heard have reached, -1: none is known."""
        known = sorted(peer.position for peer in self.peers.values() if not peer.closed)
        if not known:
            return -1
        run, number = known[len(known) // 2]
        return number if run == self.run else -1

    # sending

    def _send(self, peer: Peer, message: Bytes) -> None:
        """Send, unless it is not heard any more or does not take what it has been sent.

        A send is over when its receiver has taken the message.
        """
        self._settle(peer)
        if peer.closed or len(peer.sends) >= _UNTAKEN:
            return
        try:
            peer.sends.append((self.comm.Issend([message, self.mpi.BYTE], peer.rank, TAG), message))
            peer.stats[Column.OUT] += len(message)
        except self.mpi.Exception as error:
            self._note_deaths(error)

    def _settle(self, peer: Peer) -> None:
        peer.sends = [(request, kept) for request, kept in peer.sends if not self._over(request)]

    def _over(self, request: Any) -> bool:
        try:
            return bool(request.Test())
        except self.mpi.Exception as error:
            self._note_deaths(error)
            return True

    def tell(self, text: str) -> None:
        """Say to all that this rank cannot continue, and why."""
        for peer in self.peers.values():
            self._send(peer, pack_notice(text))

    def settle(self, seconds: float) -> bool:
        """Take what comes until all that was sent is taken, or time is up; False: MPI_Finalize could wait for it."""
        end, backoff = time.perf_counter() + seconds, Backoff()
        while True:
            for peer in self._known.values():
                peer.held = None
                self._settle(peer)
            if any(peer.closed for peer in self._known.values()):
                return False
            if not any(peer.sends or peer.request is not None for peer in self._known.values()):
                return True
            if not self.poll():
                if time.perf_counter() >= end:
                    return False
                backoff.wait()

    # receiving

    def poll(self) -> bool:
        """Make progress with the messages of all ranks; whether there was one."""
        return any([self._look(peer) for peer in self.peers.values() if not peer.closed and peer.held is None])

    def _look(self, peer: Peer) -> bool:
        try:
            if peer.request is None:
                status = self.mpi.Status()
                message = self.comm.Improbe(peer.rank, self.mpi.ANY_TAG, status)
                if message is None:
                    return False
                count = status.Get_count(self.mpi.BYTE)
                if not 0 <= count <= self._cap:
                    self._close(peer, "oversized")
                    return True
                peer.buffer = np.empty(count, np.uint8)
                peer.request = message.Irecv([peer.buffer, self.mpi.BYTE])
            if not peer.request.Test():
                return False
        except self.mpi.Exception as error:
            self._note_deaths(error)
            return True
        peer.request = None
        peer.stats[Column.IN] += len(peer.buffer)
        self._sort(peer, peer.buffer)
        return True

    def _reconsider(self, peer: Peer) -> None:
        """A message that was held may be of the present exchange."""
        if peer.held is not None:
            (_, message), peer.held = peer.held, None
            self._sort(peer, message)

    def _sort(self, peer: Peer, message: Bytes) -> None:
        """Take a message, or hold it for later; one that is not what its sender can say ends the connection."""
        owed = self._owed.get(peer.rank)
        if owed is not None and peer.rank not in self._arrived:
            fault, numbers = validate(message, owed)
            if numbers is not None:
                self._take(peer, owed, numbers)
                return
        text = read_notice(message)
        if text is not None:
            self._close(peer, "raised")
            return
        header = peek(message)
        if header is None:
            self._close(peer, "garbage")
            return
        if header.kind == Kind.OVER:
            self._close(peer, "refused")
            return
        came = header.run, header.round
        if header.kind != Kind.EXCHANGE or (came[0] == self.run and not came[1] <= self.last):
            self._close(peer, "wrong_round")
        elif came <= peer.heard:
            self._close(peer, "old_round")
        elif owed is not None and came == (owed.run, owed.round):
            self._close(peer, str(fault))
        elif came > (self.run, self.number):
            self._back(peer)
            peer.held = header, message
        else:
            peer.heard = came
            if came[0] == self.run:
                peer.stats[Column.LATE] += 1
                self._back(peer)

    def _take(self, peer: Peer, owed: Expected, numbers: Array) -> None:
        taken = time.perf_counter() - self._begun
        peer.heard = owed.run, owed.round
        peer.stats[Column.ON_TIME] += 1
        peer.stats[Column.WAITED] += taken
        peer.stats[Column.LONGEST] = max(peer.stats[Column.LONGEST], taken)
        self._back(peer)
        self._arrived[peer.rank] = numbers

    def _back(self, peer: Peer) -> None:
        peer.stats[Column.SLOW_SINCE] = -1

    # ranks that fail

    def _close(self, peer: Peer, why: str) -> None:
        """Hear this rank no more: its nodes are missing from now on. One that broke the format is told."""
        if why in FAULTS:
            self._send(peer, pack(Kind.OVER, EMPTY, run=self.run))
        peer.closed = why
        peer.held = None
        peer.stats[Column.CLOSED], peer.stats[Column.CLOSED_AT] = REASONS.index(why), self.round

    def _note_deaths(self, error: Exception) -> None:
        """Close the connections to the ranks that have died; any other error of MPI is raised again."""
        mpi = self.mpi
        if error.Get_error_class() not in (mpi.ERR_PROC_FAILED, mpi.ERR_PROC_FAILED_PENDING):  # type: ignore[attr-defined]
            raise error
        for rank in dead_ranks(mpi, self.comm):
            if rank in self._known and self._known[rank].closed != "died":
                self._close(self._known[rank], "died")
