"""The master's side of a round: its model, the messages it received, and which workers it has eliminated."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from byzadmm import _core
from byzadmm._internal.arrays import Array
from byzadmm.algorithms.base import Heard, State
from byzadmm.training.sampling import Mask
from byzadmm.training.workers import taken

if TYPE_CHECKING:
    from byzadmm.training.experiment import Experiment

__all__ = ["Master", "message_bound", "play"]


def play(k: int, master: Master, ask: Callable[..., tuple[Any, ...]]) -> None:
    """Round ``k``: the master moves first (ADMM, whose workers compare themselves with its new model) or last.

    Before it moves last, it may ask a second time. ``ask(k, x0)``, then ``ask(k, x0, question)``, returns what
    :meth:`Master.receive` takes: the messages (m, d), which workers sent one (None: all), and which messages are
    acceptable if that is known already.
    """
    if master.run.algorithm.master_first:
        master.receive(k, *ask(k, master.update(k)))
        return
    master.receive(k, *ask(k, master.point))
    if master.run.algorithm.second is not None:
        master.receive(k, *ask(k, master.point, master.question(k)))
    master.update(k)


def message_bound(run: Experiment) -> float:
    """What no element of a message may exceed in size (``lam`` for duals); 0 if it need only be finite."""
    bound = run.algorithm.bound()
    return bound if np.isfinite(bound) else 0.0


class Master:
    """The master: its model ``x0``, the messages it received last, and the workers it has eliminated.

    ``eliminated[i]`` is the round in which worker i sent an unacceptable message, or -1. A worker that sends nothing in
    a round is not eliminated: its last message counts again, or none does, as the algorithm's ``missing`` says.

    Parameters
    ----------
    run : Experiment
    """

    def __init__(self, run: Experiment) -> None:
        self.run = run
        self._state: State = {"x0": run.x0_init.copy(), "eliminated": np.full(run.m, -1, np.int64)}
        if run.algorithm.missing == "last":
            self._state["heard"] = np.zeros((run.m, run.length), run.dtype)
        self._state |= run.algorithm.master_state(run)
        self._expected = np.ones(run.m, np.bool_)
        if run.algorithm.ideal:
            self._expected[run.byzantine] = False
        self._heard = Heard(np.empty((0, run.length), run.dtype), np.empty(0, np.int64))

    @property
    def x0(self) -> Array:
        """The model; the next update changes this array."""
        return self._state["x0"]

    @property
    def point(self) -> Array:
        """What the workers are sent."""
        return self.run.algorithm.point(self._state)

    @property
    def eliminated(self) -> NDArray[np.int64]:
        return self._state["eliminated"]

    def state(self) -> State:
        """The arrays themselves."""
        return dict(self._state)

    def restore(self, state: State) -> None:
        """Continue from ``state``, whose arrays are used, not copied; other entries in it are ignored."""
        self._state = {name: taken(state, name, old) for name, old in self._state.items()}

    def receive(self, k: int, messages: Array, present: Mask | None = None, good: Mask | None = None) -> None:
        """Take the messages of round ``k``, (m, d); rows of workers that are not ``present`` are not read.

        A message that is not finite, or a dual out of range, eliminates its sender (paper, below ``eq11``). Where the
        last message of a missing worker counts again, the master keeps ``messages`` itself for two rounds and writes
        those rows into it.
        """
        arrived = self._expected if present is None else self._expected & present
        if good is None:
            good = np.array(_core.acceptable(messages, message_bound(self.run)))
        self.eliminated[arrived & ~good & (self.eliminated < 0)] = k
        if self.run.algorithm.missing == "last":
            if not arrived.all():
                messages[~arrived] = self._state["heard"][~arrived]
            self._state["heard"] = messages
        else:
            self._heard = _select(messages, arrived & (self.eliminated < 0))

    def question(self, k: int) -> Array:
        """What the workers are sent in the second exchange of round ``k``."""
        return self.run.algorithm.question(self.run, self._state, self._heard, k)

    def update(self, k: int) -> Array:
        """Move ``x0`` by the messages received last, and return it."""
        algorithm = self.run.algorithm
        heard = self._heard
        if algorithm.missing == "last":
            heard = _select(self._state["heard"], self.eliminated < 0)
        algorithm.update(self.run, self._state, heard, k)
        return self.x0


def _select(messages: Array, keep: Mask) -> Heard:
    rows = messages if keep.all() else np.ascontiguousarray(messages[keep])
    return Heard(rows, np.flatnonzero(keep))
