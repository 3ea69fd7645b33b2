"""The protocol of an asynchronous algorithm: what the master does with each message as it arrives.

A worker's side is that of :class:`byzadmm.algorithms.Algorithm` (``worker_state``, ``answer`` and so on), called for
one job at a time. The master's side is ``receive`` for every message, and ``move`` whenever it is ``ready``.
"""

from __future__ import annotations

from functools import cached_property
from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple

from byzadmm import _core, steps
from byzadmm._internal.arrays import Array
from byzadmm.algorithms.base import Algorithm, State
from byzadmm.algorithms.sgd import SGD

if TYPE_CHECKING:
    from byzadmm.training.experiment import Experiment
    from byzadmm.training.workers import Group

__all__ = ["Arrival", "AsyncAlgorithm"]


class Arrival(NamedTuple):
    """A message at the moment when it reaches the master.

    Attributes
    ----------
    worker : int
        Its sender.
    message : (length,) array
        Finite, and within the algorithm's ``bound``; the next event may overwrite it.
    point : (d,) array
        The model that the worker was given for this job.
    staleness : int
        Updates of the model since then.
    number : int
        How many messages arrived before it.
    """

    worker: int
    message: Array
    point: Array
    staleness: int
    number: int


class AsyncAlgorithm(Algorithm):
    """A distributed training algorithm whose master acts on each message as it arrives.

    Everything that changes is in the state dictionaries, whose arrays keep their shapes: a checkpoint holds them. The
    master's has "x0", "eliminated" (m,), the round in which a worker was eliminated or -1, "left", how many are not,
    "versions" (m,), how many updates the model had when each worker was given it, and "since" (m,), how many messages
    of each worker have arrived since the last update.

    Attributes
    ----------
    waits : bool
        Whether a sender gets its next job with the next update of the model; by default as soon as all messages of this
        instant are received.
    tallies : tuple of str
        Entries of the master's state, one number per worker, that the result has among its ``events``.

    Examples
    --------
    >>> import numpy as np
    >>> from byzadmm import asynchronous, attacks, delays, losses
    >>> class SignVote(asynchronous.AsyncAlgorithm):
    ...     def master_state(self, run):
    ...         return {"signs": np.zeros((run.m, run.d), run.dtype)}
    ...     def answer(self, group, state, x0, k):
    ...         return group.gradients(x0, k)
    ...     def receive(self, run, state, arrival):
    ...         state["signs"][arrival.worker] = np.sign(arrival.message)
    ...         return True
    ...     def move(self, run, state, t):
    ...         state["x0"] -= 0.05 / np.sqrt(run.first_k + t) * np.sign(state["signs"].sum(axis=0))
    >>> loss = losses.Quadratic(np.ones(5), np.full((5, 2), 3.0))
    >>> run = asynchronous.simulate(None, None, loss=loss, algorithm=SignVote(), delays=delays.Exponential(),
    ...                             attack=attacks.SignFlip(), n_byzantine=2, updates=5000)
    >>> bool(np.all(np.abs(run.x0 - 3.0) < 0.05))
    True
    """

    schedule: ClassVar[str] = "events"
    waits: ClassVar[bool] = False

    def receive(self, run: Experiment, state: State, arrival: Arrival) -> bool:
        """Take a message into the state, which must copy what it keeps; False: it is rejected."""
        raise NotImplementedError(f"{type(self).__name__} has no receive")

    def ready(self, run: Experiment, state: State, t: int, accepted: bool) -> bool:
        """Whether the master moves now, after ``t`` updates, having just accepted a message or not."""
        return accepted

    def move(self, run: Experiment, state: State, t: int) -> None:
        """Change ``state["x0"]`` in place: update number ``t``, counted from 0."""
        raise NotImplementedError(f"{type(self).__name__} has no move")


class SendsGradients(AsyncAlgorithm):
    """Base of those whose workers send gradients, with momentum if ``momentum`` is positive, as in :class:`SGD`."""

    step: steps.Step
    momentum: float

    @cached_property
    def _side(self) -> SGD:
        return SGD(step=self.step, momentum=self.momentum)

    def local_step(self, k: int) -> float | None:
        return self.step(k)

    def check_dtype(self, dtype: Any) -> None:
        self._side.check_dtype(dtype)

    def worker_state(self, group: Group) -> State:
        return {"momentum": group.zeros()} if self.momentum else {}

    def answer(self, group: Group, state: State, x0: Array, k: int) -> Array:
        g = group.gradients(x0, k)
        if self.momentum:
            _core.momentum_step(state["momentum"], g, self.momentum, group.threads)
            g[:] = state["momentum"]
        return g
