"""The master's connection to one rank."""

from __future__ import annotations

from typing import Any

import numpy as np

from byzadmm._internal.arrays import Array
from byzadmm.engines.messages import Bytes, Expected
from byzadmm.engines.report import RankReport

__all__ = ["Channel"]


class Channel:
    """The master's connection to one rank, and what it knows about that rank.

    Attributes
    ----------
    workers : range
        The workers that the rank holds.
    run : int
        The last run that it has started.
    closed : str or None
        Why the master does not ask it any more: "died", "raised" or a fault.
    ended : bool
        It has said that it is ending.
    owed, asked, sink
        The answer that it owes, when it was asked, and the array (m, dim) that receives the numbers.
    buffer, request, count
        A receive in flight, into the first ``count`` bytes of the buffer; after it, the message that was received.
    account, told
        What it may tell beside its answers (on a graph), and the last that it told.
    room : int
        Bytes of the longest account in this job.
    arrived : float or None
        When a message was received in time that has not been checked yet.
    sends, discards : list of (request, buffer)
        Operations in flight; their buffers must live as long.
    """

    def __init__(self, rank: int) -> None:
        self.rank = rank
        self.workers = range(0)
        self.run = -1
        self.closed: str | None = None
        self.ended = False
        self.owed: Expected | None = None
        self.asked = 0.0
        self.sink: Array | None = None
        self.buffer: Bytes = np.empty(0, np.uint8)
        self.request: Any = None
        self.count = 0
        self.account: Expected | None = None
        self.told: Array | None = None
        self.room = 0
        self.arrived: float | None = None
        self.sends: list[tuple[Any, Bytes]] = []
        self.discards: list[tuple[Any, Bytes]] = []
        self.stats = RankReport(rank)

    @property
    def state(self) -> str:
        """ "ready", "slow" or why it is closed."""
        return self.closed or ("slow" if self.owed is not None else "ready")
