"""Many runs side by side, one thread each."""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Sequence
from concurrent.futures import Future, ThreadPoolExecutor, as_completed
from typing import Any

import numpy as np

from byzadmm import _core
from byzadmm._validation import check_int
from byzadmm.results import Result
from byzadmm.training.experiment import Experiment
from byzadmm.training.run import Progress, local, reporter, train

__all__ = ["simulate_many"]


def simulate_many(
    configs: Sequence[dict[str, Any]],
    workers: int | None = None,
    *,
    progress: bool | Progress | None = None,
    on_result: Callable[[int, Result | Exception], None] | None = None,
) -> list[Result | Exception]:
    """Run many experiments side by side, one thread each. Ctrl-C ends them all.

    Parameters
    ----------
    configs : list of dict
        Arguments of :func:`simulate`, ``dataset`` and ``parts`` included.
    workers : int, optional
        How many at once; one per CPU without it.
    progress : None, True or callable
        One bar for all of them; a callable gets (iterations done, total).
    on_result : callable, optional
        Gets (number, result) as each run ends.

    Returns
    -------
    list
        In the order of ``configs``: a Result, or the exception that ended that run; the others are not lost.

    Examples
    --------
    >>> from byzadmm import SGD, losses, simulate_many, steps
    >>> config = dict(dataset=None, parts=None, loss=losses.Quadratic([1.0], [[2.0]]),
    ...               algorithm=SGD(step=steps.constant(0.5)), rho=0.0, iterations=60)
    >>> [round(float(run.x0[0]), 3) for run in simulate_many([config, config | {"first_k": 3}])]
    [2.0, 2.0]
    """
    todo = [dict(config) for config in configs]
    at_once = check_int(workers, "workers", low=1) if workers is not None else (os.cpu_count() or 1)
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

        config = {"threads": 1} | todo[number]
        checkpoint = config.pop("checkpoint", None)
        config.pop("progress", None)
        with cancellation:
            run = Experiment(config.pop("dataset", None), config.pop("parts", None), config)
            return train(run, *local(run), progress=tick, checkpoint=checkpoint)

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
