"""Kardam: asynchronous SGD with a filter on how fast gradients change, and one on how often a worker is accepted."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from byzadmm import _core
from byzadmm._internal.arrays import Array
from byzadmm._internal.validation import check_int
from byzadmm.algorithms.base import State, preset
from byzadmm.asynchronous.asgd import ASGD, Dampening
from byzadmm.asynchronous.base import Arrival

if TYPE_CHECKING:
    from byzadmm.datasets import Dataset
    from byzadmm.training.experiment import Experiment

__all__ = ["Kardam"]


@dataclass(frozen=True)
class Kardam(ASGD):
    """Kardam: a gradient is a step if it changes no faster than those of most workers, and its sender was not heard of
    late.

    Lipschitz filter: ``||g - g_last|| / ||x^t - x^(t-1)||``, with ``g_last`` the gradient accepted last, must not
    exceed the ``(m - f) / m`` quantile over the workers of the largest of their last ``history`` coefficients
    ``||g' - g|| / ||x' - x||`` of consecutive gradients of their own. As long as there is nothing to compare with it
    passes everything, and so it does after m rejections running, without which a run could stand still.

    Frequency filter: of any ``2 f + 1`` gradients accepted in turn, ``f + 1`` must be honest. Without knowing who is,
    their senders must all be different.

    Parameters
    ----------
    step : step size
    dampening : "inverse", "exponential", None or callable
        As in :class:`ASGD`.
    momentum : float in [0, 1)
        As in :class:`ASGD`.
    f : int
        Declared number of Byzantine workers: ``m >= 3 f + 1``.
    history : int
        Coefficients of each worker that are kept.

    Examples
    --------
    >>> from byzadmm import steps
    >>> from byzadmm.asynchronous import Kardam
    >>> Kardam(step=steps.power(0.1), f=3).factor(3)
    0.25

    References
    ----------
    Damaskinos, El Mhamdi, Guerraoui, Patra, Taziki, "Asynchronous Byzantine machine learning (the case of SGD)", ICML
    2018.
    """

    dampening: Dampening = "inverse"
    f: int = 0
    history: int = 25

    #: Entries of the state that a result has: rejections by the frequency filter alone, of each worker.
    tallies: ClassVar[tuple[str, ...]] = ("too_frequent",)

    def __post_init__(self) -> None:
        super().__post_init__()
        check_int(self.f, "f", low=0)
        check_int(self.history, "history", low=1)

    @classmethod
    def for_dataset(cls, data: Dataset, **changes: Any) -> Kardam:
        """The step for regression on ``data``, as in :meth:`byzadmm.ADMM.for_dataset`."""
        return cls(**({"step": preset(data).async_step} | changes))

    def check(self, n: int, workers: int | None = None) -> None:
        if n < 3 * self.f + 1:
            raise ValueError(f"f: expected 3 f + 1 <= {n} workers, f <= {(n - 1) // 3}, got {self.f}")

    def declaring(self, f: int) -> Kardam:
        made = self if self.f else self.changed(f=f)
        assert isinstance(made, Kardam)
        return made

    def master_state(self, run: Experiment) -> State:
        m, d = run.m, run.d
        state = super().master_state(run)
        state |= {name: np.zeros((m, d), run.dtype) for name in ("own_gradients", "own_points")}
        # Coefficients of each worker, and the largest of them; -1: none.
        state |= {"coefficients": np.full((m, self.history), -1.0), "largest": np.full(m, -1.0)}
        state |= {"last": np.zeros(d, run.dtype), "moved": np.zeros(())}
        # Gradients received of each worker; accepted of all; rejected running.
        state |= {"received": np.zeros(m, np.int64), "taken": np.zeros(2, np.int64)}
        return state | {"senders": np.full(2 * self.f, -1, np.int64), "too_frequent": np.zeros(m, np.int64)}

    def receive(self, run: Experiment, state: State, arrival: Arrival) -> bool:
        worker, g = arrival.worker, arrival.message
        self._remember(state, arrival)
        taken = state["taken"]
        smooth = taken[1] >= run.m or self._is_smooth(state, g, run.m)
        rare = worker not in state["senders"]
        state["too_frequent"][worker] += smooth and not rare
        if not (smooth and rare):
            taken[1] += 1
            return False
        if self.f:
            state["senders"][taken[0] % (2 * self.f)] = worker
        taken[:] = taken[0] + 1, 0
        state["last"][:] = g
        return super().receive(run, state, arrival)

    def _remember(self, state: State, arrival: Arrival) -> None:
        """Note how fast this worker's gradient changed since its last one."""
        worker, received = arrival.worker, int(state["received"][arrival.worker])
        own, point = state["own_gradients"][worker], state["own_points"][worker]
        apart = _core.distance(arrival.point, point, take=True)
        change = _core.distance(arrival.message, own, take=True)
        if received and apart > 0:
            held = state["coefficients"][worker]
            held[(received - 1) % self.history] = change / apart
            state["largest"][worker] = held.max()
        state["received"][worker] = received + 1

    def _is_smooth(self, state: State, g: Array, m: int) -> bool:
        moved, largest = float(state["moved"]), state["largest"]
        if not state["taken"][0] or moved == 0:
            return True
        if state["left"] < m:
            largest = largest[state["eliminated"] < 0]
        known = np.sort(largest[largest >= 0])
        return not len(known) or _core.distance(g, state["last"]) / moved <= _quantile(known, (m - self.f) / m)

    def move(self, run: Experiment, state: State, t: int) -> None:
        before = state["x0"].copy()
        super().move(run, state, t)
        state["moved"][...] = _core.distance(state["x0"], before)


def _quantile(ordered: Array, share: float) -> float:
    """The least of these values, in ascending order, that ``share`` of them do not exceed."""
    return float(ordered[min(max(math.ceil(share * len(ordered) - 1e-9) - 1, 0), len(ordered) - 1)])
