"""One run: iterations up to the next evaluation, the evaluation, a checkpoint, until all are done."""

from __future__ import annotations

import os
import time
import warnings
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from byzadmm._internal.atomic_files import prepare
from byzadmm._internal.npz import Found, check_layout, read_npz, write_npz
from byzadmm._internal.validation import check_int, check_real
from byzadmm.algorithms.base import State
from byzadmm.results import Result
from byzadmm.training.experiment import Experiment
from byzadmm.training.history import History
from byzadmm.training.master import Master, play
from byzadmm.training.workers import Workers

__all__ = ["Advance", "OnEvaluation", "Pause", "Progress", "local", "reporter", "train"]

Progress = Callable[[int, int], None]
#: ``f(k, metrics)`` at every evaluation; True stops the run.
OnEvaluation = Callable[[int, dict[str, float]], Any]


class Pause(NamedTuple):
    """Fewer iterations than were asked for: ``done`` of them, for an evaluation, or because the run is ``over``.

    ``over`` says why, and ``unexpected`` whether that is worth a warning.
    """

    done: int
    over: str = ""
    unexpected: bool = False


#: ``advance(state, first, count)``: iterations ``first .. first+count-1``; the arrays of ``state`` move on.
Advance = Callable[[State, int, int], Pause | None]

#: Iterations of one native call, at most: their step sizes are computed and held in memory before it.
_AT_ONCE = 10_000


def local(run: Experiment, *, stepwise: bool = False) -> tuple[State, Callable[[State, int, int], None]]:
    """The first state of a run in this process, and the function that advances it, natively if every part is native.

    ``stepwise`` never uses the native loop: tests compare it with this path.
    """
    fused = run.algorithm.fused(run) if run.plain and not stepwise else None
    master = Master(run)
    workers = Workers(run, range(run.m), master.state)
    state = master.state() | workers.state()
    if fused is not None:
        return {name: array for name, array in state.items() if name not in run.algorithm.echoes}, _in_slices(fused)

    def advance(state: State, first: int, count: int) -> None:
        master.restore(state)
        workers.restore(state)
        for k in range(first, first + count):
            play(k, master, lambda k, *sent: run.sampling.spread(k, workers.answer(k, *sent)))
        state |= master.state() | workers.state()

    return state, advance


def _in_slices(fused: Callable[[State, int, int], None]) -> Callable[[State, int, int], None]:
    def advance(state: State, first: int, count: int) -> None:
        for at in range(first, first + count, _AT_ONCE):
            fused(state, at, min(_AT_ONCE, first + count - at))

    return advance


def train(
    run: Experiment,
    state: State,
    advance: Advance,
    *,
    progress: bool | Progress | None = None,
    checkpoint: str | os.PathLike[str] | None = None,
    on_evaluation: OnEvaluation | None = None,
    begin: Callable[[int], None] = lambda done: None,
    **config: Any,
) -> Result:
    """Train from ``state``, which changes in place, to the result.

    Parameters
    ----------
    run, state, advance
        As :func:`local` gives them.
    progress, checkpoint, on_evaluation
        As in ``simulate``.
    begin : callable
        Called with the number of iterations done once the state is that of a checkpoint, or the first one.
    config
        Further entries of the result's config.
    """
    if on_evaluation is not None and not callable(on_evaluation):
        raise TypeError(f"on_evaluation: expected None or a callable, got {type(on_evaluation).__name__}")
    history, total = run.history(), run.iterations
    about = run.describe() | config
    fingerprint = run.fingerprint(about, state) if checkpoint is not None else ""
    done, seconds = 0, 0.0
    if checkpoint is not None:
        prepare(checkpoint, "checkpoint")
        done, seconds = _resume(checkpoint, fingerprint, state, history, total)
        history.keep_regular()
    begin(done)
    report, close = reporter(progress, run.unit)
    pause: Pause | None = None

    def stops(found: dict[str, float]) -> bool:
        return on_evaluation is not None and _is_true(on_evaluation(done, found))

    try:
        report(*run.progress(done, state))
        stopped = not history.iterations and stops(history.evaluate(0, state))
        while done < total and not stopped and not (pause and pause.over):
            count = run.span(done)
            start = time.perf_counter()
            pause = advance(state, run.first_k + done, count)
            seconds += time.perf_counter() - start
            done += count if pause is None else pause.done
            if history.has(done, state):  # the run was over before
                continue
            found = history.evaluate(done, state)
            if checkpoint is not None:
                write_npz(
                    checkpoint,
                    {f"state_{name}": array for name, array in state.items()} | history.arrays(),
                    {"fingerprint": fingerprint, "done": done, "seconds": seconds},
                )
            report(*run.progress(done, state))
            stopped = stops(found)
    finally:
        close()
    if pause is not None and pause.over:
        about["ended"] = pause.over
        if pause.unexpected:
            warnings.warn(f"the run ended early: {pause.over}", RuntimeWarning, stacklevel=3)
    if stopped and done < total:
        about["stopped"] = done
    return history.result(about, state, seconds)


def _is_true(value: Any) -> bool:
    """Whether ``value`` is True itself: a number or an array that a function happens to return stops nothing."""
    return isinstance(value, (bool, np.bool_)) and bool(value)


def _resume(path: Any, fingerprint: str, state: State, history: History, total: int) -> tuple[int, float]:
    def check(about: dict[str, Any], found: dict[str, Found]) -> None:
        if about.get("fingerprint") != fingerprint:
            return
        check_int(about.get("done"), "done", low=0)
        check_real(about.get("seconds"), "seconds", low=0.0)
        held: dict[str, Found] = {f"state_{name}": (array.shape, array.dtype) for name, array in state.items()}
        check_layout(found, held | history.layout(found, state))

    try:
        arrays, about = read_npz(path, check)
    except FileNotFoundError:
        return 0, 0.0
    except ValueError as error:
        warnings.warn(f"checkpoint ignored: {error}; starting from the beginning", RuntimeWarning, stacklevel=4)
        return 0, 0.0
    if about.get("fingerprint") != fingerprint:
        raise ValueError(f"checkpoint: {os.fspath(path)} belongs to another run; remove it or choose another path")
    if about["done"] > total:
        raise ValueError(f"checkpoint: {os.fspath(path)} is at iteration {about['done']}, beyond iterations={total}")
    for name in state:
        state[name][...] = arrays[f"state_{name}"]
    history.restore(arrays)
    return int(about["done"]), float(about["seconds"])


def reporter(progress: bool | Progress | None, unit: str = "iterations") -> tuple[Progress, Callable[[], None]]:
    """A function to call with (done, total), and one that ends it: for no progress, a user's function, or a bar."""
    if progress is None or progress is False:
        return (lambda done, total: None), (lambda: None)
    if callable(progress):
        return progress, (lambda: None)
    if progress is not True:
        raise TypeError(f"progress: expected None, True or a callable, got {type(progress).__name__}")
    from byzadmm._internal.progress import Bar

    bar = Bar(unit)
    return bar.update, bar.close
