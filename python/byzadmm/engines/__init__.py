"""Where the workers of a run are: in this process (``local``), or one or more to a process over MPI (``mpi``).

All engines carry the same exchange and give the same bits while every worker answers in time. What arrives from another
process is checked in ``messages``: its form there alone, its numbers by the native test that every engine applies.
``byzadmm.engines.mpi`` needs mpi4py and is not imported with this package.
"""

from __future__ import annotations

from byzadmm.engines.local import LocalEngine, simulate
from byzadmm.engines.messages import FAULTS, Expected, Kind, on_the_wire, pack, validate
from byzadmm.engines.protocol import Engine, Event, Replies
from byzadmm.engines.run import lead
from byzadmm.training.experiment import Experiment

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
