"""A run whose workers are behind an engine: the same record, rounds, evaluation and checkpoints as ``simulate``."""

from __future__ import annotations

import os
import warnings
from collections.abc import Callable
from typing import Any

import numpy as np

from byzadmm._internal.arrays import Array
from byzadmm.engines.protocol import Engine, Event, Replies
from byzadmm.results import Result
from byzadmm.training.experiment import Experiment
from byzadmm.training.master import Master, play
from byzadmm.training.run import OnEvaluation, Progress, train
from byzadmm.training.sampling import Mask
from byzadmm.training.workers import check_apart

__all__ = ["lead"]


def lead(
    experiment: Experiment,
    engine: Engine,
    *,
    deadline: float,
    checkpoint: str | os.PathLike[str] | None = None,
    progress: bool | Progress | None = None,
    on_evaluation: OnEvaluation | None = None,
    watch: Callable[[int], None] | None = None,
) -> Result:
    """Train with the workers behind ``engine``: the master's side of a whole run.

    Parameters
    ----------
    experiment : Experiment
    engine : Engine
    deadline : float
        Seconds that a round waits for answers.
    checkpoint, progress, on_evaluation
        As in ``simulate``.
    watch : callable, optional
        Called after every iteration with their number so far.

    Returns
    -------
    Result
        To the bit that of ``simulate``, if every worker answered every round in time.
    """
    if experiment.algorithm.second is not None:
        name = type(experiment.algorithm).__name__
        raise ValueError(f"algorithm: {name} has two exchanges per round; byzadmm.simulate runs it, engines do not")
    check_apart(experiment)
    master = Master(experiment)
    state = master.state()
    if experiment.has_models:
        state["x"] = experiment.models(range(experiment.m))
    config = {"wire": experiment.wire.name}
    token = 0
    if checkpoint is not None:
        token = int(experiment.fingerprint(experiment.describe() | config, state)[:8], 16)
    models_of = _models(engine)
    latest: list[Replies] = []

    def begin(done: int) -> None:
        master.restore(state)
        engine.start(done, master.x0, token)

    def ask(k: int, x0: Array) -> tuple[Array, Mask, Mask | None]:
        replies = engine.exchange(k, x0, deadline)
        latest[:] = [replies]
        news = [worker for worker in replies.eliminated if master.eliminated[worker] < 0]
        master.eliminated[news] = k
        return replies.messages, replies.present, replies.good

    def advance(state: dict[str, Array], first: int, count: int) -> None:
        for k in range(first, first + count):
            play(k, master, ask)
            known = set(latest[0].eliminated)  # the engine has written their event
            for worker in np.flatnonzero(master.eliminated == k).tolist():
                if worker not in known:
                    finite = bool(np.all(np.isfinite(latest[0].messages[worker])))
                    what = "non_finite" if not finite else "out_of_range" if experiment.shrink else "filtered"
                    engine.events.append(Event(k, engine.rank_of(worker), (worker,), what))
            if watch is not None:
                watch(k - experiment.first_k + 1)
        replies = models_of(first + count - experiment.first_k, checkpoint is not None, deadline)
        if replies is not None:
            state["x"][replies.present] = replies.messages[replies.present]
        state |= master.state()

    return train(
        experiment,
        state,
        advance,
        progress=progress,
        checkpoint=checkpoint,
        on_evaluation=on_evaluation,
        begin=begin,
        **config,
    )


def _models(engine: Any) -> Callable[[int, bool, float], Replies | None]:
    """``engine.models``, or ``engine.report``, its deprecated name."""
    if not hasattr(engine, "models") and hasattr(engine, "report"):
        warnings.warn(f"{type(engine).__name__}.report: call the method models", DeprecationWarning, stacklevel=3)
        return engine.report  # type: ignore[no-any-return]
    return engine.models  # type: ignore[no-any-return]
