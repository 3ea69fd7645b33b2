"""All processes of one ``mpirun``: what a script uses."""

from __future__ import annotations

import atexit
import contextlib
import inspect
import os
import sys
import time
import warnings
from collections.abc import Callable
from types import TracebackType
from typing import Any

from byzadmm import decentralized
from byzadmm._internal.validation import check_real
from byzadmm.decentralized.experiment import GraphExperiment
from byzadmm.engines.messages import EMPTY, Kind, pack
from byzadmm.engines.mpi import _launch as launch
from byzadmm.engines.mpi._channels import Channels
from byzadmm.engines.mpi._collector import Collector
from byzadmm.engines.mpi._master import MasterEngine
from byzadmm.engines.mpi._node_rank import NodeRank
from byzadmm.engines.mpi._routes import check_routes
from byzadmm.engines.mpi._start import abort, bad_start, start_mpi
from byzadmm.engines.report import RunReport
from byzadmm.engines.run import lead
from byzadmm.results import Result
from byzadmm.training.experiment import Experiment
from byzadmm.training.run import OnEvaluation

__all__ = ["Job"]


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
        Only the master returns results.
    tolerant : bool
        Whether the job outlives a rank that dies (``mpirun --with-ft ulfm``).
    report : RunReport or None
        What happened in the last run, on the master.

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
        self._mpi: Any = start_mpi(self.patience)
        self._comm: Any = self._mpi.COMM_WORLD
        for comm in (self._comm, self._mpi.COMM_SELF):  # the latter for errors that belong to no communicator
            comm.Set_errhandler(self._mpi.ERRORS_RETURN)
        self.rank: int = self._comm.Get_rank()
        self.size: int = self._comm.Get_size()
        if self.size < 2:
            start = launch.EXAMPLE.replace("mpirun", launch.find_mpirun() or "mpirun", 1)
            raise ValueError(f"mpi: expected a master and at least one worker, got one process; start with {start}")
        self.is_master = self.rank == 0
        self.tolerant = launch.tolerant()
        self.report: RunReport | None = None
        self._runs = 0
        self._closed = False
        self._ranks = Channels(self._mpi, self._comm, self.size, self.tolerant) if self.is_master else None
        self._worker = None
        if not self.is_master:
            self._worker = NodeRank(self._mpi, self._comm, self.rank, self.size, self.patience)
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
        on_evaluation: OnEvaluation | None = None,
        trace: bool = False,
        **settings: Any,
    ) -> Result | None:
        """:func:`byzadmm.simulate` with the workers on the other ranks.

        Parameters
        ----------
        dataset, parts, settings
            As in ``byzadmm.simulate``; the same on every rank. ``threads`` is 1 unless given: ranks share their cores.
        wire : None, "float32" or "float64"
            Type of the numbers that travel; that of the run by default.
        checkpoint : path, optional
            At each evaluation the master saves its state there, and every rank that of its workers beside it. The same
            call after a crash continues from there, to the same bits.
        watch : callable, optional
            Called by the master after every iteration with their number and the report so far.
        on_evaluation : callable, optional
            As in ``byzadmm.simulate``; called by the master.
        trace : bool
            Keep how long every worker's answer took in every round, for ``job.report.save_trace(path)``.

        Returns
        -------
        Result on the master, None on the other ranks
            To the bit that of ``byzadmm.simulate`` if every worker answered in time.
        """
        number = self._runs
        self._runs += 1

        def build() -> Experiment:
            return Experiment(dataset, parts, wire=wire, **({"threads": 1} | settings))

        if self._worker is not None:
            self._worker.serve(number, build, checkpoint)
            return None
        assert self._ranks is not None
        self.report = None
        begun = time.perf_counter()
        try:
            with self.watched("loading its data"):
                experiment = build()
            engine = MasterEngine(self._ranks, experiment, number, self.patience)
            report = self.report = engine.run_report
            report.trace = [] if trace else None

            def tick(done: int) -> None:
                report.rounds += 1
                if watch is not None:
                    watch(done, report)

            return lead(
                experiment,
                engine,
                deadline=self.deadline,
                checkpoint=checkpoint,
                on_evaluation=on_evaluation,
                watch=tick,
            )
        finally:
            self._ranks.tell_all(pack(Kind.OVER, EMPTY, run=number))
            if self.report is not None:
                self.report.seconds = time.perf_counter() - begun
                self.report.finish(self._ranks.states())

    def simulate_decentralized(
        self,
        dataset: Any,
        parts: Any,
        *,
        checkpoint: str | os.PathLike[str] | None = None,
        watch: Callable[[int, RunReport], None] | None = None,
        on_evaluation: OnEvaluation | None = None,
        **settings: Any,
    ) -> Result | None:
        """:func:`byzadmm.decentralized.simulate` with the nodes on the other ranks.

        Messages go from the ranks that hold nodes to those that hold their neighbors. Rank 0 has no part in the rounds:
        it asks for the models at evaluations. A message that is not there at the deadline is missing in that round.

        Parameters
        ----------
        dataset, parts, settings
            As in ``decentralized.simulate``; the same on every rank. ``threads`` is 1 unless given.
        checkpoint : path, optional
            At each evaluation rank 0 saves the curves there, and every rank the state of its nodes beside them. The
            same call after a crash continues from there, to the same bits.
        watch : callable, optional
            Called by rank 0 a few times a second, with the iterations that are done and the report so far.
        on_evaluation : callable, optional
            As in ``decentralized.simulate``; called by rank 0.

        Returns
        -------
        Result on rank 0, None on the other ranks
            To the bit that of ``decentralized.simulate`` if every message came in time.
        """
        number = self._runs
        self._runs += 1

        def build() -> GraphExperiment:
            for name in settings.keys() - inspect.signature(decentralized.simulate).parameters.keys():
                raise TypeError(f"simulate_decentralized() got an unexpected keyword argument {name!r}")
            experiment = GraphExperiment(dataset, parts, **({"threads": 1} | settings))
            check_routes(experiment, self.size)
            return experiment

        def quietly() -> GraphExperiment:
            with warnings.catch_warnings():  # rank 0 says it
                warnings.simplefilter("ignore", RuntimeWarning)
                return build()

        if self._worker is not None:
            self._worker.serve_nodes(number, quietly, checkpoint, self.deadline)
            return None
        assert self._ranks is not None
        self.report = None
        begun = time.perf_counter()
        collector: Collector | None = None
        try:
            with self.watched("loading its data"):
                run = build()

            def tick(done: int) -> None:
                if watch is not None and self.report is not None:
                    watch(done, self.report)

            collector = Collector(
                self._ranks, run, number, patience=self.patience, deadline=self.deadline, tick=tick
            )
            self.report = collector.report
            return collector.lead(checkpoint=checkpoint, on_evaluation=on_evaluation)
        finally:
            self._ranks.tell_all(pack(Kind.OVER, EMPTY, run=number))
            if collector is not None:
                collector.finish()
                collector.report.seconds = time.perf_counter() - begun

    def watched(self, stage: str) -> contextlib.AbstractContextManager[None]:
        """Abort the job with exit code 2 and one line if the block, a ``stage`` of the start, exceeds the patience."""

        def expired() -> None:
            bad_start(self._comm, f"mpi: rank {self.rank} was {stage} for {self.patience:g} s (patience)")

        return launch.watchdog(self.patience, expired)

    def close(self) -> None:
        """Tell all ranks to end, wait until they do, and make sure that this process can end."""
        if self._closed:
            return
        self._closed = True
        if self._ranks is not None:
            self._leave = self._ranks.stop(self.deadline)
        elif self._worker is not None:
            self._leave = "exit" if self._worker.stop() else None
        if self._leave is not None:
            atexit.register(self.leave, self._code)

    def leave(self, code: int) -> None:
        """End the process now if MPI_Finalize would not return because a rank has failed; otherwise do nothing.

        It is called at the end of the script, with exit code 1 if an exception left the ``with`` block, else 0.
        """
        if self._leave is None:
            return
        sys.stdout.flush()
        sys.stderr.flush()
        if self._leave == "abort":
            abort(self._comm, code)
        os._exit(code)

    def __enter__(self) -> Job:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if error is not None:
            self._code = 1
            if self._worker is not None:
                self._worker.notify_failure(error)
        self.close()
