"""The engine without a network: all workers in this process. Other engines are compared with it."""

from __future__ import annotations

from collections.abc import Callable
from types import TracebackType
from typing import Any

import numpy as np

from byzadmm._internal.arrays import Array
from byzadmm.engines.messages import on_the_wire
from byzadmm.engines.protocol import Event, Replies
from byzadmm.engines.run import lead
from byzadmm.results import Result
from byzadmm.training.experiment import Experiment
from byzadmm.training.run import OnEvaluation
from byzadmm.training.workers import Workers

__all__ = ["LocalEngine", "simulate"]


class LocalEngine:
    """All workers in this process, answering in time; ``x0`` and the messages are rounded as on the wire.

    Parameters
    ----------
    experiment : Experiment
    """

    def __init__(self, experiment: Experiment) -> None:
        self.experiment = experiment
        self.workers = Workers(experiment, range(experiment.m))
        self.events: list[Event] = []
        self._all = np.ones(experiment.m, np.bool_)

    def start(self, done: int, x0: Array, token: int) -> None:
        """The workers are where they start: nothing to do."""

    def exchange(self, k: int, x0: Array, deadline: float = np.inf) -> Replies:
        """Round ``k``; there is no deadline to miss."""
        wire, dtype = self.experiment.wire, self.experiment.dtype
        shown = on_the_wire(x0, wire).astype(dtype, copy=False)
        answers = on_the_wire(self.workers.answer(k, shown), wire, self.experiment.shrink)
        messages, present = self.experiment.sampling.spread(k, answers.astype(dtype, copy=False))
        return Replies(messages, self._all if present is None else present)

    def models(self, done: int, save: bool, deadline: float = np.inf) -> Replies | None:
        """The workers' models."""
        models = self.workers.state().get("x")
        return None if models is None else Replies(models, self._all)

    def rank_of(self, worker: int) -> int:
        """There is one process."""
        return 0

    def close(self) -> None:
        """Nothing to release."""

    def __enter__(self) -> LocalEngine:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()


def simulate(
    dataset: Any,
    parts: Any,
    *,
    wire: str | None = None,
    watch: Callable[[int], None] | None = None,
    progress: Any = None,
    on_evaluation: OnEvaluation | None = None,
    **settings: Any,
) -> Result:
    """:func:`byzadmm.simulate` round by round through :class:`LocalEngine`: what a run over MPI is compared with.

    Parameters
    ----------
    dataset, parts, progress, on_evaluation, settings
        As in ``byzadmm.simulate``, which alone takes ``checkpoint``.
    wire : None, "float32" or "float64"
        Round ``x0`` and the messages to this type, as if they travelled.
    watch : callable, optional
        Called after every iteration with their number so far.

    Returns
    -------
    Result
        With ``wire=None`` the bits of ``byzadmm.simulate``.

    Examples
    --------
    >>> import byzadmm
    >>> from byzadmm import SGD, engines, losses, steps
    >>> settings = dict(loss=losses.Quadratic([1.0], [[2.0]]), algorithm=SGD(step=steps.constant(0.5)), iterations=9)
    >>> a, b = engines.simulate(None, None, **settings), byzadmm.simulate(None, None, **settings)
    >>> bool(a.x0 == b.x0)
    True
    """
    if "checkpoint" in settings:
        raise TypeError("checkpoint: not taken by engines.simulate; byzadmm.simulate takes it")
    experiment = Experiment(dataset, parts, wire=wire, **settings)
    with LocalEngine(experiment) as engine:
        return lead(
            experiment, engine, deadline=np.inf, progress=progress, on_evaluation=on_evaluation, watch=watch
        )
