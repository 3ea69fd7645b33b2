"""A partial barrier: the master moves once it has heard from some of its workers, who wait for that."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from byzadmm._internal.arrays import Array
from byzadmm._internal.validation import check_int
from byzadmm.algorithms.base import Algorithm, State
from byzadmm.asynchronous.base import AsyncAlgorithm

if TYPE_CHECKING:
    from byzadmm.training.experiment import Experiment
    from byzadmm.training.workers import Group

__all__ = ["Barrier"]


class Barrier(AsyncAlgorithm):
    """Base of the algorithms whose master waits for ``barrier`` workers, and whose workers are those of ``_side``.

    The master's state has "fresh" (m,), who was heard since the last update, and "heard_of", how many that are.
    """

    barrier: int
    max_delay: int | None

    @property
    def _side(self) -> Algorithm:
        """The synchronous algorithm, whose workers these are."""
        raise NotImplementedError(f"{type(self).__name__} has no _side")

    waits: ClassVar[bool] = True

    def check_barrier(self) -> None:
        check_int(self.barrier, "barrier", low=1)
        if self.max_delay is not None:
            check_int(self.max_delay, "max_delay", low=0)

    def check(self, n: int, workers: int | None = None) -> None:
        if self.barrier > n:
            raise ValueError(f"barrier: expected at most the number of workers, {n}, got {self.barrier}")

    def barrier_state(self, m: int) -> State:
        return {"fresh": np.zeros(m, np.bool_), "heard_of": np.zeros((), np.int64)}

    def hear(self, state: State, worker: int) -> None:
        """Note that a message of this worker counts in the next update."""
        state["fresh"][worker] = True
        state["heard_of"] += 1

    def clear(self, state: State) -> None:
        """Begin to wait for the update after this one."""
        state["fresh"][:] = False
        state["heard_of"][...] = 0

    def pace(self, state: State) -> float:
        """The share of the workers left that were heard since the last update; 1 before anybody was heard."""
        return int(state["heard_of"]) / int(state["left"]) or 1.0

    def ready(self, run: Experiment, state: State, t: int, accepted: bool) -> bool:
        if state["heard_of"] < min(self.barrier, max(int(state["left"]), 1)):
            return False
        if self.max_delay is None:
            return True
        missing = (state["eliminated"] < 0) & ~state["fresh"]
        return not np.any(t - state["versions"][missing] >= self.max_delay)

    def check_dtype(self, dtype: np.dtype[Any]) -> None:
        self._side.check_dtype(dtype)

    def bound(self) -> float:
        return self._side.bound()

    def worker_state(self, group: Group) -> State:
        return self._side.worker_state(group)

    def answer(self, group: Group, state: State, x0: Array, k: int) -> Array:
        return self._side.answer(group, state, x0, k)

    def shown(self, state: State, messages: Array, k: int) -> tuple[Array, int]:
        return self._side.shown(state, messages, k)

    def forger_state(self, group: Group, q: int) -> State:
        return self._side.forger_state(group, q)

    def sent(self, group: Group, state: State, forged: Array, x0: Array, *, direct: bool) -> Array:
        return self._side.sent(group, state, forged, x0, direct=direct)

    def influence(self, rows: Array, x0: Array) -> Array:
        return self._side.influence(rows, x0)
