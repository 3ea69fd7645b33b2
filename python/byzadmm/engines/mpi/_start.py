"""MPI_Init under a time limit, and the end of a job that cannot start or cannot end in order."""

from __future__ import annotations

import ctypes
import importlib
import os
import sys
from typing import Any

from byzadmm.engines.mpi import _launch as launch

__all__ = ["abort", "bad_start", "start_mpi"]

_GRACE = 10.0  # seconds that mpirun has to end after an abort


def start_mpi(patience: float) -> Any:
    """The module ``mpi4py.MPI`` after MPI_Init, which returns only when every rank has called it.

    mpi4py would call it while the module is imported and hold the interpreter's lock meanwhile, so that no other thread
    could see that time is up; ``ctypes`` releases the lock.
    """
    rank = int(os.environ.get("PMIX_RANK", "0"))

    def expired() -> None:
        missing = launch.absent()
        named = [f"rank {other} {why}" for other, why in missing.items()]
        whom = ", ".join(named[:3]) + (f" and {len(named) - 3} more" if len(named) > 3 else "")
        text = f"mpi: rank {rank} waited {patience:g} s (patience) in MPI_Init for every rank to start"
        launch.say(f"{text}: {whom}" if whom else text)
        if launch.tolerant():  # then mpirun would not end them; the ranks that are in MPI end as this one does
            launch.end_ranks(missing)
        os._exit(2)

    try:
        rc = importlib.import_module("mpi4py").rc
        rc(initialize=False, finalize=rc.finalize is not False)  # no effect if MPI runs already
        mpi = importlib.import_module("mpi4py.MPI")
        if not mpi.Is_initialized():
            init = getattr(ctypes.CDLL(mpi.__file__), "MPI_Init_thread", lambda *_: mpi.Init_thread())
            with launch.watchdog(launch.patience_of(rank, patience), expired):
                init(None, None, mpi.THREAD_MULTIPLE, ctypes.byref(ctypes.c_int()))
    except (ImportError, RuntimeError) as error:  # no mpi4py; no MPI library under it
        raise ImportError(f"mpi: needs mpi4py and an MPI library; pip install 'byzadmm[mpi]' ({error})") from error
    return mpi


def abort(comm: Any, code: int) -> None:
    """End all ranks, also those that are stopped, and mpirun."""
    _ending = launch.end_launcher(_GRACE)
    comm.Abort(code)


def bad_start(comm: Any, text: str) -> None:
    """End the job with exit code 2 and one line."""
    launch.say(text)
    if launch.tolerant():  # otherwise mpirun ends the other ranks as soon as this one is gone
        launch.end_ranks(range(sys.maxsize))
        if not launch.all_here():
            abort(comm, 2)
    os._exit(2)
