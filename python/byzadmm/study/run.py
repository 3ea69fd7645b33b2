"""The runs of a plan, carried out side by side; finished ones are kept in a folder and not repeated."""

from __future__ import annotations

import contextlib
import copy
import os
import time
import warnings
from collections.abc import Callable, Mapping
from datetime import datetime
from pathlib import Path
from typing import Any

from byzadmm import asynchronous, decentralized
from byzadmm._internal.atomic_files import prepare, prepare_folder
from byzadmm._internal.validation import check_int
from byzadmm.catalogue import LOSSES, located
from byzadmm.losses.base import Loss
from byzadmm.results import Result
from byzadmm.simulation import simulate
from byzadmm.study.extent import progress_of
from byzadmm.study.identity import Identity
from byzadmm.study.plan import Cell, Plan
from byzadmm.study.study import Missing, Study
from byzadmm.training.experiment import DEFAULTS
from byzadmm.training.many import Task, run_many
from byzadmm.training.run import Progress

__all__ = ["OnEvaluation", "carry_out", "empty_study", "make_loss"]

OnEvaluation = Callable[[int, dict[str, Any]], Any]


def carry_out(
    plan: Plan,
    *,
    jobs: int | None = None,
    progress: bool | Progress | None = None,
    on_evaluation: OnEvaluation | None = None,
    checkpoint: str | os.PathLike[str] | None = None,
    on_result: Callable[[Study, Cell], None] = lambda study, cell: None,
    models: bool = False,
    warn: bool = True,
    may_fail: bool = False,
) -> Study:
    """Run what a plan asks for and is not in the folder ``checkpoint`` yet.

    Parameters
    ----------
    plan : Plan
    jobs, progress, on_evaluation, checkpoint
        As in :func:`byzadmm.compare`.
    on_result : callable
        Gets the study, as far as it is, and the cell whose run has just ended. After Ctrl-C, which is raised, it is
        what remains of the study.
    models : bool
        Whether results have the workers' models: m models per run may fill the memory.
    warn : bool
        Whether runs that failed are a warning; they are in ``missing`` either way.
    may_fail : bool
        If all runs fail, return the study all the same; by default the first error is raised.
    """
    if on_evaluation is not None and not callable(on_evaluation):
        raise TypeError(f"on_evaluation: expected None or a callable, got {type(on_evaluation).__name__}")
    cores = os.cpu_count() or 1
    at_once = cores if jobs is None else check_int(jobs, "jobs", low=1)
    begun = time.perf_counter()
    study = empty_study(plan)
    shared: dict[int, list[Cell]] = {}
    for cell, arguments in plan.runs.items():
        if not isinstance(arguments, str):
            shared.setdefault(id(arguments), []).append(cell)
    folder = None if checkpoint is None else Folder(checkpoint, on_evaluation)
    waiting: list[list[Cell]] = []

    def keep(cells: list[Cell], result: Result | Exception) -> None:
        for cell in cells:
            if isinstance(result, Exception):
                study.missing[cell] = Missing("failed", f"{type(result).__name__}: {result}")
            else:
                study.results[cell] = result
                del study.missing[cell]
        study.seconds = time.perf_counter() - begun
        on_result(study, cells[0])

    for cells in shared.values():
        found = folder.find(plan.runs[cells[0]]) if folder is not None else None
        if found is None:
            waiting.append(cells)
        else:
            keep(cells, found)
    errors: list[Exception] = []

    def ended(number: int, result: Result | Exception) -> None:
        if isinstance(result, Exception):
            result = located(result)
            errors.append(result)
        keep(waiting[number], result)

    threads = max(1, cores // max(1, min(len(waiting), at_once)))
    tasks = [_task(cells[0], plan.runs[cells[0]], threads, on_evaluation, folder, models) for cells in waiting]
    unit = next((progress_of(run)[1] for run in plan.runs.values() if not isinstance(run, str)), "iterations")
    run_many(tasks, at_once, progress=progress, on_result=ended, unit=unit)
    study.seconds = time.perf_counter() - begun
    if errors and not study.results and not may_fail:
        raise errors[0]
    if errors and warn:
        warnings.warn(
            f"{len(errors)} of {len(shared)} runs failed, the first with {type(errors[0]).__name__}: {errors[0]}",
            RuntimeWarning,
            stacklevel=3,
        )
    if folder is not None:
        for cell, result in study.results.items():
            study.files[cell] = folder.file(plan.runs[cell], result).name
        study.save(folder.path)
    return study


def empty_study(plan: Plan) -> Study:
    """The study of a plan of which nothing has been run; its date is now."""
    study = Study(plan.title, plan.axes, dict(plan.settings), labels=plan.labels, kinds=plan.kinds, ideal=plan.ideal)
    study.when = datetime.now().astimezone().strftime("%Y-%m-%d %H:%M")
    for cell, arguments in plan.runs.items():
        study.missing[cell] = Missing("illegal", arguments) if isinstance(arguments, str) else Missing("missing", "")
    return study


def _task(
    cell: Cell,
    arguments: Any,
    threads: int,
    on_evaluation: OnEvaluation | None,
    folder: Folder | None,
    models: bool,
) -> Task:
    def run(tick: Progress) -> Result:
        given = {"threads": threads} | arguments | {"progress": tick}
        given |= {name: _own_copy(given[name]) for name in ("algorithm", "attack", "loss", "delays") if name in given}
        if not isinstance(given["loss"], str):
            given["loss"] = make_loss(given)
        if on_evaluation is not None:
            given["on_evaluation"] = lambda k, metrics: on_evaluation(k, {**metrics, **cell._asdict()})
        if folder is not None:
            given["checkpoint"] = folder.state(arguments)
        result = _simulator(given)(given.pop("dataset"), given.pop("parts"), **given)
        if not models:
            result.x = None
        if folder is not None:
            folder.keep(arguments, result)
        return result

    return Task(run, progress_of(arguments)[0])


def _simulator(arguments: Mapping[str, Any]) -> Callable[..., Result]:
    """Who carries out a run with these arguments."""
    if "graph" in arguments:
        return decentralized.simulate
    return asynchronous.simulate if "delays" in arguments else simulate


def make_loss(arguments: Mapping[str, Any]) -> Any:
    """The loss of a run: of its name, or by its function, from data set, parts, batch size and seed; or the object."""
    loss = arguments["loss"]
    if not isinstance(loss, (str, type)) and isinstance(loss, Loss):
        return loss
    make = LOSSES[loss] if isinstance(loss, str) else loss
    batch_size = arguments.get("batch_size", DEFAULTS["batch_size"])
    return make(arguments["dataset"], arguments["parts"], batch_size=batch_size, seed=arguments["seed"])


def _own_copy(part: Any) -> Any:
    """An object of the user's as it was given, for one run: it may hold state or buffers, and others run beside it."""
    if hasattr(part, "native_form") or getattr(part, "thread_safe", False):  # a loss with all samples in it
        return part
    try:
        return copy.deepcopy(part)
    except (TypeError, RuntimeError, copy.Error):  # locks and open files; tensors that are part of a computation
        return part


class Folder:
    """The results of finished runs, and the states of others, each in a file named by what was run.

    Parameters
    ----------
    path : path
        Made if it is not there.
    on_evaluation : callable or None
        A run that it has stopped is found again only with the same function.
    """

    def __init__(self, path: str | os.PathLike[str], on_evaluation: OnEvaluation | None) -> None:
        self.path = Path(path)
        for name in ("results", "states"):
            prepare_folder(self.path / name, "checkpoint")
        prepare(self.path / "study.json", "checkpoint")
        self._identity = Identity()
        self._names: dict[int, str] = {}
        self._stopper = self._identity.digest({"on_evaluation": on_evaluation})[:8]

    def _name(self, arguments: Any) -> str:
        if id(arguments) not in self._names:
            counted = {name: value for name, value in arguments.items() if name != "threads"}
            self._names[id(arguments)] = self._identity.digest(counted)
        return self._names[id(arguments)]

    def _files(self, arguments: Any) -> tuple[Path, Path]:
        name = self._name(arguments)
        return self.path / "results" / f"{name}.npz", self.path / "results" / f"{name}-{self._stopper}.npz"

    def find(self, arguments: Any) -> Result | None:
        """The result of these arguments, if it is there and whole."""
        for path in self._files(arguments):
            try:
                return Result.load(path)
            except FileNotFoundError:
                continue
            except ValueError as error:
                warnings.warn(f"checkpoint: a result is computed anew: {error}", RuntimeWarning, stacklevel=4)
        return None

    def state(self, arguments: Any) -> Path:
        """Where the run with these arguments keeps its state."""
        return self.path / "states" / f"{self._name(arguments)}.npz"

    def file(self, arguments: Any, result: Result) -> Path:
        """Where the result of these arguments is kept."""
        return self._files(arguments)["stopped" in result.config]

    def keep(self, arguments: Any, result: Result) -> None:
        """Write a result; its state is not needed any more."""
        result.save(self.file(arguments, result))
        with contextlib.suppress(OSError):
            self.state(arguments).unlink()
