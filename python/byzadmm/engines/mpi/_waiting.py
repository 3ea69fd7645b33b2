"""Waiting for messages, and ranks that have died, the same at both ends."""

from __future__ import annotations

import os
import time
from typing import Any

__all__ = ["TAG", "Backoff", "dead_ranks"]

#: The tag of every message.
TAG = 7
_yield_core = getattr(os, "sched_yield", lambda: time.sleep(0))  # not on every system


class Backoff:
    """Waiting that leaves the core to others: the first looks follow at once, later ones yield, then sleep."""

    def __init__(self) -> None:
        self.looks = 0

    def wait(self) -> None:
        """Call after a look that found nothing."""
        self.looks += 1
        if self.looks > 200:
            time.sleep(5e-5)
        elif self.looks > 50:
            _yield_core()


def dead_ranks(mpi: Any, comm: Any) -> list[int]:
    """All ranks that are known to have died; what MPI has said of them is acknowledged."""
    failed = comm.Get_failed()
    count = failed.Get_size()
    dead = mpi.Group.Translate_ranks(failed, list(range(count)), comm.Get_group())
    comm.Ack_failed(count)
    return list(dead)
