"""BASGD: messages are averaged in buffers, and a robust rule joins the buffers."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np

from byzadmm import _core, steps
from byzadmm._internal.arrays import Array
from byzadmm._internal.validation import check_int
from byzadmm.algorithms.base import Heard, State, preset
from byzadmm.algorithms.joining import ByRule
from byzadmm.algorithms.sgd import SGD
from byzadmm.asynchronous.base import Arrival, SendsGradients

if TYPE_CHECKING:
    from byzadmm.datasets import Dataset
    from byzadmm.training.experiment import Experiment

__all__ = ["BASGD"]


@dataclass(frozen=True)
class BASGD(SendsGradients, ByRule):
    """Buffered asynchronous SGD: a rule joins B means of messages as soon as none of them is empty.

    Worker i sends into buffer ``i mod B``; buffer b has the mean ``h_b`` of what came since the last update. Then
    ``x0 <- x0 - a (rule(h_1, ..., h_B) + rho x0)``, and all buffers are emptied. A fast attacker fills its own buffer
    only. A buffer all of whose workers are slow holds up everybody, and so does one whose workers have crashed: see
    ``patience``. One whose workers are all eliminated is closed, and is no row of the rule.

    Parameters
    ----------
    rule : str, callable, or a list of them
        As in :class:`byzadmm.SGD`, for B rows.
    buffers : int, optional
        B, at most the number of workers; by default ``3 f + 1``, or as many as workers if that is more or ``f`` is 0.
        More buffers tolerate more attackers and wait for longer.
    step : step size
    f : int
        Declared number of Byzantine workers, each of which spoils one buffer: ``2 f < B``.
    momentum : float in [0, 1)
        Workers send ``m_i <- momentum m_i + (1 - momentum) g_i`` in place of ``g_i``.
    patience : int, optional
        Once so many messages came without an update, and whenever so many more did, every buffer of silent workers gets
        half of the others from the fullest one that has two of them: every second. That one is emptied, so that
        nobody's messages are in two buffers. A worker is silent that has sent no more than a quarter of the median of
        all since the last update. By default workers keep their buffers.

    Examples
    --------
    >>> from byzadmm import steps
    >>> from byzadmm.asynchronous import BASGD
    >>> BASGD(rule="trimmed_mean", f=3, step=steps.power(0.1)).count(30)
    10

    References
    ----------
    Yang, Li, "BASGD: Buffered Asynchronous SGD for Byzantine Learning", ICML 2021.
    """

    rule: Any = "median"
    buffers: int | None = None
    step: steps.Step = None  # type: ignore[assignment]
    f: int = 0
    momentum: float = 0.0
    patience: int | None = None

    def __post_init__(self) -> None:
        if self.step is None:
            raise TypeError("step: BASGD needs one; BASGD.for_dataset(data) has one for your data")
        steps.check_step(self.step, "step")
        self.check_rule()
        self._side  # noqa: B018 - checks the other settings
        for name in ("buffers", "patience"):
            if getattr(self, name) is not None:
                check_int(getattr(self, name), name, low=1)

    @classmethod
    def for_dataset(cls, data: Dataset, **changes: Any) -> BASGD:
        """The step for regression on ``data``, as in :meth:`byzadmm.ADMM.for_dataset`."""
        return cls(**({"step": preset(data).step} | changes))

    @cached_property
    def _side(self) -> SGD:
        return SGD(rule=self.rule, step=self.step, f=self.f, momentum=self.momentum)

    def count(self, m: int) -> int:
        """B for ``m`` workers."""
        if self.buffers is not None:
            return self.buffers
        return min(3 * self.f + 1, m) if self.f else m

    def check(self, n: int, workers: int | None = None) -> None:
        rows = self.count(n)
        if rows > n:
            raise ValueError(f"buffers: expected at most one per worker, {n}, got {rows}")
        if 2 * self.f >= rows and self.rule != "mean":  # which is not robust anyway
            raise ValueError(f"f: expected 2 f < {rows} buffers, f <= {(rows - 1) // 2}, got {self.f}")
        super().check(rows, rows)

    def master_state(self, run: Experiment) -> State:
        b = self.count(run.m)
        state: State = {"buffers": np.zeros((b, run.d), run.dtype), "counts": np.zeros(b, np.int64)}
        return state | {"buffer_of": np.arange(run.m) % b} | self._side.master_state(run)

    def receive(self, run: Experiment, state: State, arrival: Arrival) -> bool:
        b = int(state["buffer_of"][arrival.worker])
        state["counts"][b] += 1
        _core.add_to_mean(state["buffers"][b], arrival.message, int(state["counts"][b]))
        if self.patience is not None and state["since"].sum() % self.patience == 0:
            self._reassign(state)
        return True

    def _reassign(self, state: State) -> None:
        """Every buffer of silent workers gets every second of the others of the fullest one that has two."""
        counts, buffer_of, since = state["counts"], state["buffer_of"], state["since"]
        left = state["eliminated"] < 0
        heard = left & (since > np.median(since[left]) / 4)
        for silent in np.flatnonzero(_sizes(state, left) * (_sizes(state, heard) == 0)):
            fullest = int(np.argmax(counts * (_sizes(state, heard) > 1)))
            sharing = np.flatnonzero(heard & (buffer_of == fullest))
            if counts[fullest] and len(sharing) > 1:
                buffer_of[sharing[1::2]] = silent
                counts[fullest] = 0

    def ready(self, run: Experiment, state: State, t: int, accepted: bool) -> bool:
        counts = state["counts"]
        if counts.all() or not counts.any() or state["left"] == run.m:
            return bool(counts.all())
        return bool(np.all(counts[_sizes(state, state["eliminated"] < 0) > 0]))

    def move(self, run: Experiment, state: State, t: int) -> None:
        filled = np.flatnonzero(state["counts"])
        rows = state["buffers"] if len(filled) == len(state["counts"]) else state["buffers"][filled]
        self._side.update(run, state, Heard(rows, filled), run.first_k + t)
        state["counts"][:] = 0


def _sizes(state: State, workers: Array) -> Array:
    """How many of these workers each buffer has."""
    sizes: Array = np.bincount(state["buffer_of"][workers], minlength=len(state["counts"]))
    return sizes
