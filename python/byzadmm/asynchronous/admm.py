"""Asynchronous stochastic ADMM: the paper's workers, and a master that moves after every few duals."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from byzadmm import _core, steps
from byzadmm.algorithms.admm import ADMM
from byzadmm.algorithms.base import State, preset
from byzadmm.asynchronous.barrier import Barrier
from byzadmm.asynchronous.base import Arrival

if TYPE_CHECKING:
    from byzadmm.datasets import Dataset
    from byzadmm.training.experiment import Experiment

__all__ = ["AsyncADMM"]


@dataclass(frozen=True)
class AsyncADMM(Barrier):
    """Stochastic ADMM whose master moves after ``barrier`` duals; the others count as they were heard last.

    A worker, given ``x0``: ``x_i <- x_i - a_i (g_i + 2 eta_i - eta_i_prev)``, then
    ``eta_i <- clip(eta_i + beta/2 (x_i - x0), lam)``, which it sends (``eqxi-update``, ``eq11``). The master, once
    ``barrier`` workers were heard: ``x0 <- x0 - a0 s (rho x0 - sum_j (2 eta_j - eta_j_prev))`` (``eqx0-update-1``),
    where ``eta_j_prev = eta_j`` for every worker that was not heard since the last update, and ``s`` is the share of
    the workers that were: each dual pulls as often as in rounds. With ``barrier=m`` and equal delays this is
    :class:`byzadmm.ADMM`, bit for bit. Whatever q Byzantine workers send and whenever, an update moves no element of
    ``x0`` by more than ``3 lam q a0 s`` on their account. No convergence bound under stale messages is claimed.

    Parameters
    ----------
    lam, beta, master_step, worker_step
        As in :class:`byzadmm.ADMM`; the master's steps go by updates, a worker's by its jobs.
    barrier : int
        Workers heard between two updates; fewer where fewer are left.
    max_delay : int, optional
        The master waits for every worker whose model would be more than so many updates old: 0 waits for all.

    Examples
    --------
    >>> from byzadmm.asynchronous import AsyncADMM
    >>> AsyncADMM(barrier=5).message
    'dual'
    """

    lam: float = ADMM.lam
    beta: float = ADMM.beta
    master_step: steps.Step = ADMM.master_step
    worker_step: steps.Step = ADMM.worker_step
    barrier: int = 1
    max_delay: int | None = None

    message: ClassVar[str] = ADMM.message
    master_first: ClassVar[bool] = ADMM.master_first

    def __post_init__(self) -> None:
        self._side  # noqa: B018 - checks the settings
        self.check_barrier()

    @cached_property
    def _side(self) -> ADMM:
        return ADMM(self.lam, self.beta, self.master_step, self.worker_step)

    @classmethod
    def for_dataset(cls, data: Dataset, **changes: Any) -> AsyncADMM:
        """Settings for regression on ``data``, as in :meth:`byzadmm.ADMM.for_dataset`."""
        return cls.of(preset(data).admm, **changes)

    @classmethod
    def of(cls, admm: ADMM, **changes: Any) -> AsyncADMM:
        """The same settings as ``admm``."""
        shared = ("lam", "beta", "master_step", "worker_step")
        return cls(**({name: getattr(admm, name) for name in shared} | changes))

    def master_state(self, run: Experiment) -> State:
        state = {name: np.zeros((run.m, run.d), run.dtype) for name in ("heard", "heard_prev")}
        # Sums over as many workers as "summed" says, so that the cost of an update does not grow with their number.
        state |= {name: np.zeros(run.d) for name in ("total", "change")} | {"summed": np.array(run.m)}
        return state | self.barrier_state(run.m)

    def receive(self, run: Experiment, state: State, arrival: Arrival) -> bool:
        worker = arrival.worker
        heard, before = state["heard"][worker], state["heard_prev"][worker]
        _core.admm_hear(arrival.message, heard, before, state["total"], state["change"])
        self.hear(state, worker)
        return True

    def move(self, run: Experiment, state: State, t: int) -> None:
        x0, pace = state["x0"], self.pace(state)
        alpha = steps.at(self.master_step, "master_step", run.first_k + t, run.dtype)
        if pace == 1:  # everybody was heard: a round, and its bits
            heard, before = state["heard"], state["heard_prev"]
            if state["left"] < run.m:
                live = state["eliminated"] < 0
                heard, before = heard[live], before[live]
            _core.admm_master_step(x0, heard, before, x0, alpha, run.rho, run.threads)
            state["change"][:] = 0
        else:
            if state["left"] < state["summed"]:  # an eliminated worker does not count any more
                state["total"][:] = state["heard"][state["eliminated"] < 0].sum(axis=0, dtype=np.float64)
                state["summed"][...] = state["left"]
            _core.admm_master_step_of_sums(x0, state["total"], state["change"], alpha * pace, run.rho)
        self.clear(state)
