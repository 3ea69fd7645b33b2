"""Where the workers of a run are: in this process (``local``), or one or more to a process over MPI (``mpi``).

All engines carry the same exchange and give the same bits while everybody answers; what a worker sends is checked in
one place (``messages``). ``byzadmm.engines.mpi`` is imported when asked for: it needs mpi4py.
"""

from __future__ import annotations

from byzadmm.engines.local import LocalEngine, simulate
from byzadmm.engines.messages import FAULTS, Expected, Kind, pack, validate
from byzadmm.engines.training import Engine, Event, Experiment, Replies, lead, on_the_wire

__all__ = [
    "FAULTS",
    "Engine",
    "Event",
    "Expected",
    "Experiment",
    "Kind",
    "LocalEngine",
    "Replies",
    "lead",
    "on_the_wire",
    "pack",
    "simulate",
    "validate",
]
