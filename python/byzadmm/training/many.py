"""Many runs side by side, in threads of this process."""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Sequence
from concurrent.futures import CancelledError, Future, ThreadPoolExecutor, as_completed
from typing import NamedTuple

from byzadmm import _core
from byzadmm._internal.validation import check_int
from byzadmm.results import Result
from byzadmm.training.run import Progress, reporter

__all__ = ["OnResult", "Task", "run_many"]

#: Gets the number of a run, and its result or the exception that ended it.
OnResult = Callable[[int, Result | Exception], None]


class Task(NamedTuple):
    """A run to carry out: ``run(progress)`` gives its result and reports (iterations done, total) of ``iterations``."""

    run: Callable[[Progress], Result]
    iterations: int


def run_many(
    tasks: Sequence[Task],
    jobs: int | None = None,
    *,
    progress: bool | Progress | None = None,
    on_result: OnResult | None = None,
    unit: str = "iterations",
) -> list[Result | Exception]:
    """Carry out tasks side by side, one thread each. Ctrl-C ends them all.

    Parameters
    ----------
    tasks : list of Task
    jobs, progress, on_result
        As in :func:`byzadmm.simulate_many`.
    unit : str
        What the progress bar counts.

    Returns
    -------
    list
        In the order of ``tasks``: a Result, or the exception that ended that run.
    """
    at_once = check_int(jobs, "jobs", low=1) if jobs is not None else (os.cpu_count() or 1)
    cancellation = _core.Cancellation()
    lock = threading.Lock()
    over, begun, ended = threading.Event(), [0], threading.Condition()
    done = [0] * len(tasks)
    total = sum(task.iterations for task in tasks)
    report, close = reporter(progress, unit)
    results: list[Result | Exception] = [RuntimeError("not run")] * len(tasks)

    def run(number: int) -> Result:
        def tick(now: int, _: int) -> None:
            with lock:
                done[number] = now
                report(sum(done), total)

        with ended:
            if over.is_set():
                raise CancelledError
            begun[0] += 1
        try:
            with cancellation:
                result = tasks[number].run(tick)
            tick(tasks[number].iterations, 0)  # also of a run that was stopped early
            return result
        finally:
            with ended:
                begun[0] -= 1
                ended.notify()

    try:
        with ThreadPoolExecutor(max_workers=at_once) as pool:
            futures: dict[Future[Result], int] = {}
            try:  # from the first submission on: Ctrl-C may come at any moment, and the pool waits for its threads
                for number in range(len(tasks)):
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
                # Ctrl-C while a thread starts leaves one that the pool does not know of: wait for the runs themselves.
                with ended:
                    over.set()
                    cancellation.cancel()
                    for future in futures:
                        future.cancel()
                    ended.wait_for(lambda: not begun[0])
                raise
    finally:
        close()
    return results
