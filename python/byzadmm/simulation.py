"""Training under attack: combines data, partition, algorithm, attack and evaluation. Contains no arithmetic.

Built-in parts run as one native call from evaluation to evaluation; an attack, rule, loss or algorithm of your own runs
through the same kernels one iteration at a time. Both paths give the same bits, for every thread count and evaluation
interval.
"""

from __future__ import annotations

import os
import threading
import warnings
from collections.abc import Callable, Sequence
from concurrent.futures import Future, ThreadPoolExecutor, as_completed
from typing import Any

import numpy as np

from byzadmm import _core
from byzadmm._internal.validation import check_int
from byzadmm.algorithms.base import Algorithm
from byzadmm.attacks import Attack
from byzadmm.datasets import Dataset
from byzadmm.results import Result
from byzadmm.training.experiment import Experiment
from byzadmm.training.run import Progress, local, reporter, train

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
    record: str | None = None,
    optimum: Any = None,
    progress: bool | Progress | None = None,
    checkpoint: str | os.PathLike[str] | None = None,
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
    record : None or "trajectory"
        Keep ``x0`` (and ``x``) at every evaluation.
    optimum : (d,) array
        Record the distance of ``x0`` to it.
    progress : None, True or callable
        True: a progress bar; a callable gets (done, total).
    checkpoint : path
        State is saved there at every evaluation; the same call after a crash continues from it, to the same bits.
        Calls are the same if their arrays have the same numbers, functions the same name, objects the same class and
        attributes. Of a symbolic link the target is replaced. A path that cannot be written is an error before the
        first iteration.

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
        record=record,
        optimum=optimum,
    )
    return train(run, *local(run), progress=progress, checkpoint=checkpoint)


def simulate_many(
    configs: Sequence[dict[str, Any]],
    jobs: int | None = None,
    *,
    progress: bool | Progress | None = None,
    on_result: Callable[[int, Result | Exception], None] | None = None,
    workers: int | None = None,
) -> list[Result | Exception]:
    """Run many experiments side by side, one thread each. Ctrl-C ends them all.

    Parameters
    ----------
    configs : list of dict
        Arguments of :func:`simulate`, ``dataset`` and ``parts`` included.
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
    at_once = check_int(jobs, "jobs", low=1) if jobs is not None else (os.cpu_count() or 1)
    cancellation = _core.Cancellation()
    lock = threading.Lock()
    done = [0] * len(todo)
    # A run with an impossible number of iterations fails by itself, later.
    wanted = [config.get("iterations", 1000) for config in todo]
    total = sum(max(int(number), 0) for number in wanted if isinstance(number, (int, np.integer)))
    report, close = reporter(progress)
    results: list[Result | Exception] = [RuntimeError("not run")] * len(todo)

    def run(number: int) -> Result:
        def tick(now: int, _: int) -> None:
            with lock:
                done[number] = now
                report(sum(done), total)

        config = {"threads": 1} | todo[number] | {"progress": tick}
        with cancellation:
            return simulate(config.pop("dataset", None), config.pop("parts", None), **config)

    try:
        with ThreadPoolExecutor(max_workers=at_once) as pool:
            futures: dict[Future[Result], int] = {}
            try:  # from the first submission on: Ctrl-C may come at any moment, and the pool waits for its threads
                for number in range(len(todo)):
                    futures[pool.submit(run, number)] = number
                for future in as_completed(futures):
                    number = futures[future]
                    error = future.exception()
                    if error is not None and not isinstance(error, Exception):
                        raise error
                    results[number] = error if error is not None else future.result()
                    if on_result is not None:
                        on_result(number, results[number])
            except BaseException:
                cancellation.cancel()
                for future in futures:
                    future.cancel()
                raise
    finally:
        close()
    return results
