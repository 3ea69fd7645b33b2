"""An MPI that fails on demand: what a real one does too seldom to be tested."""

from __future__ import annotations

from collections import deque
from types import SimpleNamespace
from typing import Any

__all__ = ["DIED", "FAKE", "OTHER", "Comm", "FailureError", "Request"]

DIED, OTHER = 75, 15
DIED, OTHER = 75, 15


class FailureError(Exception):
    def __init__(self, code: int) -> None:
        self.code = code

    def Get_error_class(self) -> int:
        return self.code


class Request:
    """Over at once, never, or failing."""

    def __init__(self, outcome: Any = True) -> None:
        self.outcome = outcome

    def Test(self) -> bool:
        if isinstance(self.outcome, Exception):
            raise self.outcome
        return bool(self.outcome)


class Comm:
    """One queue of (rank, bytes, outcome of the receive); an exception in it is raised by the probe.

    Where a rank is probed, what others sent stays in the queue.
    """

    def __init__(self) -> None:
        self.queue: deque[Any] = deque()
        self.dead: list[int] = []
        self.sent: list[tuple[int, Any]] = []
        self.received = 0
        self.send_fails: Exception | None = None
        self.taken = True  # whether a message that waits for its receiver is taken

    def Improbe(self, source: int, tag: int, status: Any) -> Any:
        for item in self.queue:
            if source <= 0 or isinstance(item, Exception) or item[0] == source:
                self.queue.remove(item)
                break
        else:
            return None
        if isinstance(item, Exception):
            raise item
        rank, content, outcome = item
        status.source, status.count = rank, content if isinstance(content, int) else len(content)

        def receive(buffer: Any) -> Request:
            if outcome == "refused":
                raise FailureError(DIED)
            self.received += 1
            buffer[0][:] = content
            return Request(outcome)

        return SimpleNamespace(Irecv=receive)

    def Isend(self, buffer: Any, rank: int, tag: int) -> Request:
        if self.send_fails is not None:
            raise self.send_fails
        self.sent.append((rank, buffer[0]))
        return Request()

    def Issend(self, buffer: Any, rank: int, tag: int) -> Request:
        self.Isend(buffer, rank, tag)
        return Request(self.taken)

    def Get_failed(self) -> Any:
        return SimpleNamespace(Get_size=lambda: len(self.dead), ranks=self.dead)

    def Ack_failed(self, count: int) -> int:
        return count

    def Get_group(self) -> Any:
        return None


class Status:
    source = count = 0

    def Get_count(self, kind: Any) -> int:
        return self.count

    def Get_source(self) -> int:
        return self.source


FAKE = SimpleNamespace(
    BYTE="byte",
    ANY_SOURCE=-1,
    ANY_TAG=-1,
    ERR_PROC_FAILED=DIED,
    ERR_PROC_FAILED_PENDING=76,
    Exception=FailureError,
    Status=Status,
    Group=SimpleNamespace(Translate_ranks=lambda group, numbers, other: group.ranks),
)
