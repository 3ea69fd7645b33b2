"""A script for mpirun: a job in which some ranks never get as far as the first round.

``python mpi_start.py PATIENCE STAGE RANK ...``: these ranks stay in STAGE for ever: ``before`` MPI_Init, ``after`` it,
or loading their data (``load``).
"""

from __future__ import annotations

import os
import signal
import sys
import time
from typing import Any

from byzadmm.engines.mpi import Job
from support.mpi_faults import RUNS, settings


def load_for_ever(*_: Any, **__: Any) -> None:
    time.sleep(1000)


def main(patience: str, stage: str, *ranks: str) -> None:
    stays = os.environ["PMIX_RANK"] in ranks
    if stays and stage == "before":
        time.sleep(1000)
    with Job(deadline=2.0, patience=float(patience) if stage == "before" else 120.0) as job:
        job.patience = float(patience)  # from here on, so that a busy machine has time for MPI_Init
        if job._worker is not None:
            job._worker.patience = job.patience
        if stays and stage == "after":
            os.kill(os.getpid(), signal.SIGSTOP)
        if stays and stage == "load":
            sys.modules[Job.__module__].Experiment = load_for_ever  # type: ignore[attr-defined]
        job.simulate(None, None, **settings(3, RUNS[0], 5))
        if job.report is not None:
            print(*(rank.state for rank in job.report.ranks))
    job.leave(0)


if __name__ == "__main__":
    main(*sys.argv[1:])
