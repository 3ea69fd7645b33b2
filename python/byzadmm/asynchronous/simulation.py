"""Asynchronous training under attack, on a queue of events in simulated time."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from typing import Any

from byzadmm.algorithms.base import Algorithm
from byzadmm.asynchronous.events import events
from byzadmm.asynchronous.experiment import AsyncExperiment
from byzadmm.asynchronous.rounds import rounds
from byzadmm.attacks import Attack
from byzadmm.datasets import Dataset
from byzadmm.results import Result
from byzadmm.training.run import OnEvaluation, Progress, train

__all__ = ["simulate"]


def simulate(
    dataset: Dataset | None,
    parts: Sequence[Any] | None,
    *,
    algorithm: Algorithm,
    delays: Any,
    updates: int | None = None,
    arrivals: int | None = None,
    until: float | None = None,
    eval_every: int = 50,
    eval_time: float | None = None,
    attack: Attack | Callable[..., Any] | None = None,
    n_byzantine: int = 0,
    byzantine: Sequence[int] | None = None,
    batch_size: int = 32,
    rho: float = 0.01,
    seed: int = 0,
    dtype: str = "float32",
    threads: int = 0,
    loss: str | Any = "softmax",
    x0_init: Any = None,
    x_init: Any = None,
    first_k: int = 1,
    local_steps: int = 1,
    participation: float = 1.0,
    record: str | None = None,
    optimum: Any = None,
    validation: Any = None,
    progress: bool | Progress | None = None,
    checkpoint: str | os.PathLike[str] | None = None,
    on_evaluation: OnEvaluation | None = None,
) -> Result:
    """Train with workers that take their time, some of them Byzantine, and return the curves and what happened.

    An update is a change of the model; there are as many of them in a second of simulated time as the algorithm and the
    delays make. The same seed gives the same bits for every thread count and interval of evaluation, resumed or not.

    Parameters
    ----------
    dataset, parts
        As in :func:`byzadmm.simulate`.
    algorithm : algorithm of ``byzadmm.asynchronous``, or any other
        One that works in rounds, such as ``byzadmm.ADMM``, waits in every round for all its workers: its bits are those
        of :func:`byzadmm.simulate`.
    delays : delay of ``byzadmm.delays``, a number, or a function ``f(worker, job, rng) -> seconds``
        Time from the moment when a worker is given the model to the arrival of its message.
    updates, arrivals : int, optional
        The run ends after so many updates of the model, or messages received; by default after 1000 updates.
    until : float, optional
        It ends at this simulated time. Of several ends the first counts.
    eval_every : int
        Updates between evaluations; or
    eval_time : float, optional
        simulated time between them. Neither changes the run.
    attack, n_byzantine, byzantine
        As in :func:`byzadmm.simulate`. An attack is called when a Byzantine worker's message arrives; it sees the
        honest messages that all workers last had under way, the current model, and the number of the update.
    first_k : int
        Number of the first update, and of every worker's first job, in step sizes, batches and attacks.
    participation : float in (0, 1]
        For algorithms that work in rounds.
    batch_size, rho, seed, dtype, threads, loss, x0_init, x_init, local_steps, record, optimum, validation
        As in :func:`byzadmm.simulate`.
    progress, checkpoint, on_evaluation
        As in :func:`byzadmm.simulate`; ``on_evaluation(k, metrics)`` after ``k`` updates, with "time" and "arrivals"
        among the metrics.

    Returns
    -------
    Result
        With ``time``, ``arrivals``, ``staleness``, ``accepted`` and ``rejected``. If the run ended before ``updates``,
        ``config["ended"]`` says why; if no message is on its way any more, that is a warning too. A run without
        ``arrivals`` and ``until`` also ends, with a warning, if it stands still: after 1000 messages of every worker
        that still answers without an update.

    Examples
    --------
    >>> from byzadmm import asynchronous, attacks, datasets, delays, partition
    >>> data = datasets.load("digits")
    >>> parts = partition.iid(data.train_y, 20, seed=0)
    >>> run = asynchronous.simulate(data, parts, until=400, delays=delays.Stragglers(),
    ...                             algorithm=asynchronous.AsyncADMM.for_dataset(data, barrier=10),
    ...                             attack=attacks.SignFlip(), n_byzantine=8)
    >>> bool(run.accuracy[-1] > 0.85), float(run.time[-1])
    (True, 400.0)
    """
    run = AsyncExperiment(
        dataset,
        parts,
        algorithm=algorithm,
        delays=delays,
        updates=updates,
        arrivals=arrivals,
        until=until,
        eval_every=eval_every,
        eval_time=eval_time,
        attack=attack,
        n_byzantine=n_byzantine,
        byzantine=byzantine,
        batch_size=batch_size,
        rho=rho,
        seed=seed,
        dtype=dtype,
        threads=threads,
        loss=loss,
        x0_init=x0_init,
        x_init=x_init,
        first_k=first_k,
        local_steps=local_steps,
        participation=participation,
        record=record,
        optimum=optimum,
        validation=validation,
    )
    begin = events if algorithm.schedule == "events" else rounds
    return train(run, *begin(run), progress=progress, checkpoint=checkpoint, on_evaluation=on_evaluation)
