"""A run whose workers are behind an engine: the same setup, rounds, evaluation and checkpoints as ``simulate``."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from typing import Any, NamedTuple, Protocol

import numpy as np

from byzadmm._internal.arrays import Array
from byzadmm.results import Result
from byzadmm.training.experiment import Experiment
from byzadmm.training.master import Mask, Master, play
from byzadmm.training.run import Progress, train

__all__ = ["Engine", "Event", "Experiment", "Replies", "lead", "on_the_wire"]

class Replies(NamedTuple):
    """What came back in a round.

    Attributes
    ----------
    messages : (m, d) array
        Rows of workers that did not answer mean nothing.
    present : (m,) bool
        Who answered.
    eliminated : list of int
        Workers whose process broke the rules of the exchange: the master ignores them for the rest of the run.
    good : (m,) bool, optional
        Whose message the master can accept, if the engine has found that out already (``Master.receive`` does else).
    """

    messages: Array
    present: Mask
    eliminated: Sequence[int] = ()
    good: Mask | None = None

    @property
    def thrown_out(self) -> Sequence[int]:
        """An older name of ``eliminated``."""
        return self.eliminated


@dataclass(frozen=True)
class Event:
    """Something that happened to somebody: ``what`` in ``round``, to the ``workers`` of a process."""

    round: int
    rank: int
    workers: tuple[int, ...]
    what: str
    text: str = ""

    def record(self) -> dict[str, Any]:
        """For JSON."""
        return asdict(self)

    def __str__(self) -> str:
        who = f"worker {self.workers[0]}" if len(self.workers) == 1 else f"workers {_spans(self.workers)}"
        where = f" (rank {self.rank})" if self.rank else ""
        return f"round {self.round}: {who}{where}: {self.what}" + (f": {self.text}" if self.text else "")


class Engine(Protocol):
    """The way from the master to its workers and back.

    An engine is told to ``start`` (which may take as long as loading data does), carries rounds by ``exchange``, asks
    for the workers' models by ``report`` when the run is evaluated, and is closed at the end.
    """

    events: list[Event]

    def start(self, done: int, x0: Array, token: int) -> None:
        """Every worker is to stand where it stood after ``done`` iterations of the experiment called ``token``."""

    def exchange(self, k: int, x0: Array, deadline: float) -> Replies:
        """Show ``x0`` to the workers in round ``k`` and collect what they send within ``deadline`` seconds.

        The messages are the caller's until two more rounds have passed.
        """

    def report(self, done: int, save: bool, deadline: float) -> Replies | None:
        """The workers' models after ``done`` iterations, None if there are none; with ``save`` their state is kept."""

    def rank_of(self, worker: int) -> int:
        """The process that holds ``worker``."""

    def close(self) -> None:
        """Let go of the workers."""


def on_the_wire(numbers: Array, wire: np.dtype[Any], shrink: bool = False) -> Array:
    """``numbers`` in the type that travels, rounded to nearest, or toward zero with ``shrink``.

    Examples
    --------
    >>> import numpy as np
    >>> from byzadmm.engines import on_the_wire
    >>> float(on_the_wire(np.array([0.3]), np.dtype("f4"))[0]) > 0.3
    True
    >>> float(on_the_wire(np.array([0.3]), np.dtype("f4"), shrink=True)[0]) > 0.3
    False
    """
    if numbers.dtype == wire:
        return numbers
    with np.errstate(over="ignore", invalid="ignore"):
        sent = numbers.astype(wire)
        if shrink and wire.itemsize < numbers.dtype.itemsize:
            beyond = np.abs(sent) > np.abs(numbers)
            sent[beyond] = np.nextafter(sent[beyond], wire.type(0))
    return sent


def lead(
    experiment: Experiment,
    engine: Engine,
    *,
    deadline: float,
    checkpoint: str | os.PathLike[str] | None = None,
    progress: bool | Progress | None = None,
    watch: Callable[[int], None] | None = None,
) -> Result:
    """The master's side of a whole run.

    Parameters
    ----------
    experiment : Experiment
    engine : Engine
    deadline : float
        Seconds that a round waits for answers.
    checkpoint, progress
        As in ``simulate``.
    watch : callable, optional
        Called with the number of iterations done after each.

    Returns
    -------
    Result
        To the bit that of ``simulate``, if every worker answered every round in time.
    """
    master = Master(experiment)
    state = master.state()
    if experiment.has_models:
        state["x"] = experiment.models(range(experiment.m))
    config = {"wire": experiment.wire.name}
    token = 0
    if checkpoint is not None:
        token = int(experiment.fingerprint(experiment.describe() | config, state)[:8], 16)
    heard: list[Replies] = []

    def begin(done: int) -> None:
        master.restore(state)
        engine.start(done, master.x0, token)

    def ask(k: int, x0: Array) -> tuple[Array, Mask, Mask | None]:
        replies = engine.exchange(k, x0, deadline)
        heard[:] = [replies]
        lost = [worker for worker in replies.eliminated if master.eliminated[worker] < 0]
        master.eliminated[lost] = k
        return replies.messages, replies.present, replies.good

    def advance(state: dict[str, Array], first: int, count: int) -> None:
        for k in range(first, first + count):
            play(k, master, ask)
            known = set(heard[0].eliminated)  # those have their event already
            for worker in np.flatnonzero(master.eliminated == k).tolist():
                if worker not in known:
                    finite = bool(np.all(np.isfinite(heard[0].messages[worker])))
                    what = "out_of_range" if finite else "non_finite"
                    engine.events.append(Event(k, engine.rank_of(worker), (worker,), what))
            if watch is not None:
                watch(k - experiment.first_k + 1)
        replies = engine.report(first + count - experiment.first_k, checkpoint is not None, deadline)
        if replies is not None:
            state["x"][replies.present] = replies.messages[replies.present]
        state |= master.state()

    return train(experiment, state, advance, progress=progress, checkpoint=checkpoint, begin=begin, **config)


def _spans(workers: Sequence[int]) -> str:
    """Numbers as text; processes hold consecutive workers."""
    return f"{workers[0]} to {workers[-1]}" if len(workers) > 2 else ", ".join(map(str, workers))
