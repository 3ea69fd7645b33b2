"""Training under attack: combines data, partition, algorithm, attack and evaluation. Contains no arithmetic.

Built-in parts run as one native call from evaluation to evaluation; an attack, rule, loss or algorithm of your own runs
through the same kernels one iteration at a time. Both paths give the same bits, for every thread count and evaluation
interval.
"""

from __future__ import annotations

import os
import warnings
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from byzadmm.algorithms.base import Algorithm
from byzadmm.attacks import Attack
from byzadmm.datasets import Dataset
from byzadmm.results import Result
from byzadmm.training.experiment import Experiment
from byzadmm.training.many import OnResult, Task, run_many
from byzadmm.training.run import OnEvaluation, Progress, local, train

__all__ = ["simulate", "simulate_many"]


def simulate(
    dataset: Dataset | None,
    parts: Sequence[Any] | None,
    *,
    algorithm: Algorithm,
    attack: Attack | Callable[..., Any] | None = None,
    n_byzantine: int = 0,
    byzantine: Sequence[int] | None = None,
    iterations: int = 1000,
    batch_size: int = 32,
    rho: float = 0.01,
    eval_every: int = 50,
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
    """Train with ``len(parts)`` workers, some of them Byzantine, and return the curves.

    Parameters
    ----------
    dataset : Dataset or None
        Of ``byzadmm.datasets``; None with a loss that needs none.
    parts : list of index arrays, one per worker, or None
        Of ``byzadmm.partition``.
    algorithm : ADMM, RSA, SGD, or another algorithms.Algorithm
    attack : Attack, callable or None
        None: the Byzantine workers are honest. They take no part in Ideal SGD either way.
    n_byzantine : int
        The last so many workers are Byzantine; or
    byzantine : list of int
        exactly these.
    iterations, batch_size : int
    rho : float >= 0
        ``f0(x) = rho/2 ||x||^2``.
    eval_every : int
        Iterations between evaluations; never changes the run.
    seed : int
    dtype : "float32" or "float64"
    threads : int
        0: choose.
    loss : "softmax", "logistic", "least-squares", or an object with ``dim``, ``n_workers`` and ``gradient``
        Of ``byzadmm.losses`` or your own; such an object keeps its own seed and batch size.
    x0_init, x_init : (d,) and (m, d) arrays
        By default what the loss says (``initial``), or zeros.
    first_k : int
        Number of the first iteration in step sizes and attacks.
    local_steps : int
        Steps that each worker takes on its own loss from ``x0`` in every round, with the step of the algorithm; it
        sends ``(x0 - w) / step`` for the model ``w`` after them, so that 1 is the gradient. For SGD and algorithms with
        ``local_step``.
    participation : float in (0, 1]
        Share of the workers that take part in a round, ``ceil(participation m)`` drawn for each by ``seed``. The others
        compute nothing and send nothing: ADMM counts their last dual again, RSA and SGD exclude them. An attack and a
        rule see the messages of those drawn, and ``f`` is the number of Byzantine ones tolerated among them.
    record : None or "trajectory"
        Keep ``x0`` (and ``x``) at every evaluation.
    optimum : (d,) array
        Record the distance of ``x0`` to it.
    validation : list of int
        Rows of the training set that the master holds, none of them in ``parts``: clean samples for the algorithms and
        filters that need them.
    progress : None, True or callable
        True: a progress bar; a callable gets (done, total).
    checkpoint : path
        State is saved there at every evaluation; the same call after a crash continues from it, to the same bits.
        Calls are the same if their arrays have the same numbers, functions the same name, objects the same class and
        attributes. Of a symbolic link the target is replaced. A path that cannot be written is an error before the
        first iteration.
    on_evaluation : callable
        Called as ``on_evaluation(k, metrics)`` at every evaluation, the first at ``k = 0`` iterations done; ``metrics``
        has its values by name ("accuracy", "loss", "consensus_gap", ...). If it returns True the run stops: the result
        has the curves up to there and ``config["stopped"] = k``. Other return values have no effect; an exception
        ends the run. It is called after the checkpoint is written, and a resumed run calls it for new evaluations
        only; one that was stopped goes on.

    Returns
    -------
    Result

    Examples
    --------
    >>> from byzadmm import ADMM, attacks, datasets, partition, simulate
    >>> data = datasets.load("digits")
    >>> parts = partition.iid(data.train_y, 20, seed=0)
    >>> admm = ADMM.for_dataset(data)
    >>> run = simulate(data, parts, algorithm=admm, attack=attacks.SignFlip(), n_byzantine=8, iterations=1000)
    >>> bool(run.accuracy[-1] > 0.88)
    True
    """
    run = Experiment(
        dataset,
        parts,
        algorithm=algorithm,
        attack=attack,
        n_byzantine=n_byzantine,
        byzantine=byzantine,
        iterations=iterations,
        batch_size=batch_size,
        rho=rho,
        eval_every=eval_every,
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
    return train(run, *local(run), progress=progress, checkpoint=checkpoint, on_evaluation=on_evaluation)


def simulate_many(
    configs: Sequence[dict[str, Any]],
    jobs: int | None = None,
    *,
    progress: bool | Progress | None = None,
    on_result: OnResult | None = None,
    workers: int | None = None,
) -> list[Result | Exception]:
    """Run many experiments side by side, one thread each. Ctrl-C ends them all.

    Parameters
    ----------
    configs : list of dict
        Arguments of :func:`simulate`, ``dataset`` and ``parts`` included. An ``on_evaluation`` is called in the thread
        of its run.
    jobs : int, optional
        How many at once; by default one per CPU.
    progress : None, True or callable
        One bar for all of them; a callable gets (iterations done, total).
    on_result : callable, optional
        Gets (number, result) as each run ends.
    workers : int, optional
        The former name of ``jobs``; deprecated.

    Returns
    -------
    list
        In the order of ``configs``: a Result, or the exception that ended that run; the other runs are not affected.

    Examples
    --------
    >>> from byzadmm import SGD, losses, simulate_many, steps
    >>> config = dict(dataset=None, parts=None, loss=losses.Quadratic([1.0], [[2.0]]),
    ...               algorithm=SGD(step=steps.constant(0.5)), rho=0.0, iterations=60)
    >>> [round(float(run.x0[0]), 3) for run in simulate_many([config, config | {"first_k": 3}])]
    [2.0, 2.0]
    """
    todo = [dict(config) for config in configs]
    if workers is not None:
        warnings.warn("simulate_many(workers=) is deprecated: use jobs=", DeprecationWarning, stacklevel=2)
        jobs = workers

    def task(config: dict[str, Any]) -> Task:
        wanted = config.get("iterations", 1000)
        # A run with an impossible number of iterations fails by itself, later.
        count = max(int(wanted), 0) if isinstance(wanted, (int, np.integer)) else 0

        def run(tick: Progress) -> Result:
            given = {"threads": 1} | config | {"progress": tick}
            return simulate(given.pop("dataset", None), given.pop("parts", None), **given)

        return Task(run, count)

    return run_many([task(config) for config in todo], jobs, progress=progress, on_result=on_result)
