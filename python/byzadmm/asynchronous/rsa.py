"""Asynchronous RSA: signs of the models that the master heard last."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from byzadmm import _core, steps
from byzadmm.algorithms.base import State, preset
from byzadmm.algorithms.rsa import RSA
from byzadmm.asynchronous.barrier import Barrier
from byzadmm.asynchronous.base import Arrival

if TYPE_CHECKING:
    from byzadmm.datasets import Dataset
    from byzadmm.training.experiment import Experiment

__all__ = ["AsyncRSA"]


@dataclass(frozen=True)
class AsyncRSA(Barrier):
    """RSA whose master moves after ``barrier`` models; the others count as they were heard last.

    A worker, given ``x0``, sends its model ``x_i``, then ``x_i <- x_i - a_i (g_i + lam sgn(x_i - x0))``
    (``eq:rsa-update``). The master, once ``barrier`` workers were heard:
    ``x0 <- x0 - a0 s (rho x0 - lam sum_j sgn(x_j - x0))``, ``x_j`` the model heard last from worker j, and ``s`` the
    share of the workers heard since the last update. With ``barrier=m`` and equal delays this is
    :class:`byzadmm.RSA`, bit for bit. Every worker has one vote of size ``lam`` however often it sends: whatever q
    Byzantine workers send, an update moves no element of ``x0`` by more than ``lam q a0 s`` on their account. No
    convergence bound under stale messages is claimed.

    Parameters
    ----------
    lam, step, master_step, worker_step
        As in :class:`byzadmm.RSA`, one step or two; the master's steps go by updates, a worker's by its jobs.
    barrier, max_delay
        As in :class:`AsyncADMM`.
    memory : bool
        False: only the models heard since the last update vote, each with ``lam a0``; a worker then has the weight of
        its rate.

    Examples
    --------
    >>> from byzadmm import steps
    >>> from byzadmm.asynchronous import AsyncRSA
    >>> AsyncRSA(lam=0.07, step=steps.power(1e-3), barrier=5).message
    'primal'
    """

    lam: float = RSA.lam
    step: steps.Step | None = None
    master_step: steps.Step = None  # type: ignore[assignment]
    worker_step: steps.Step = None  # type: ignore[assignment]
    barrier: int = 1
    max_delay: int | None = None
    memory: bool = True

    message: ClassVar[str] = RSA.message

    def __post_init__(self) -> None:
        rsa = self._side
        object.__setattr__(self, "master_step", rsa.master_step)
        object.__setattr__(self, "worker_step", rsa.worker_step)
        self.check_barrier()
        if not isinstance(self.memory, (bool, np.bool_)):
            raise TypeError(f"memory: expected True or False, got {type(self.memory).__name__}")

    @cached_property
    def _side(self) -> RSA:
        return RSA(self.lam, self.step, self.master_step, self.worker_step)

    @classmethod
    def for_dataset(cls, data: Dataset, **changes: Any) -> AsyncRSA:
        """Settings for regression on ``data``, as in :meth:`byzadmm.RSA.for_dataset`."""
        return cls.of(preset(data).rsa, **changes)

    @classmethod
    def of(cls, rsa: RSA, **changes: Any) -> AsyncRSA:
        """The same settings as ``rsa``."""
        own = ("barrier", "max_delay", "memory")
        made = rsa.changed(**{name: value for name, value in changes.items() if name not in own})
        ends: dict[str, Any] = {"step": made.step}
        if made.step is None:
            ends = {"master_step": made.master_step, "worker_step": made.worker_step}
        return cls(lam=made.lam, **ends, **{name: changes[name] for name in own if name in changes})

    def changed(self, **changes: Any) -> AsyncRSA:
        own = {name: getattr(self, name) for name in ("barrier", "max_delay", "memory")}
        return AsyncRSA.of(self._side, **(own | changes))

    def master_state(self, run: Experiment) -> State:
        never = np.zeros(run.m, np.bool_)
        return {"heard": np.zeros((run.m, run.d), run.dtype), "known": never} | self.barrier_state(run.m)

    def receive(self, run: Experiment, state: State, arrival: Arrival) -> bool:
        state["heard"][arrival.worker] = arrival.message
        state["known"][arrival.worker] = True
        self.hear(state, arrival.worker)
        return True

    def move(self, run: Experiment, state: State, t: int) -> None:
        x0, pace = state["x0"], self.pace(state)
        alpha = steps.at(self.master_step, "master_step", run.first_k + t, run.dtype)
        voting = state["known"] if self.memory else state["fresh"]
        if state["left"] < run.m:
            voting = voting & (state["eliminated"] < 0)
        rows = state["heard"] if voting.all() else state["heard"][voting]
        if self.memory:
            _core.rsa_master_step(x0, rows, x0, alpha * pace, self.lam, run.rho, run.threads)
        else:
            _core.rsa_master_step(x0, rows, x0, alpha, self.lam, run.rho * pace, run.threads)
        self.clear(state)
