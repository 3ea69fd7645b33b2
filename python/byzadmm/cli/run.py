"""``byzadmm run``: train, print the tables, save results, draw the curves, write the page."""

from __future__ import annotations

import argparse
import contextlib
import shutil
import tempfile
import warnings
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

from byzadmm._internal.atomic_files import prepare
from byzadmm._internal.progress import remark
from byzadmm._internal.validation import check_int
from byzadmm.cli.output import BAD_INPUT, INTERRUPTED, print_json, say_error
from byzadmm.cli.plan import Request, make_request
from byzadmm.cli.tables import print_tables, records
from byzadmm.study import Cell, Study, carry_out
from byzadmm.study.run import empty_study

#: Gets the study, as far as it is, and the cell whose run has just ended.
Note = Callable[[Study, Cell], None]


def run(args: argparse.Namespace) -> int:
    """Train in this process, the runs side by side."""
    jobs = check_int(args.jobs, "jobs", low=0)
    if args.threads is not None:
        jobs = check_int(args.threads, "threads", low=0)
        if not args.quiet:
            remark("--threads is deprecated for run: its new name is --jobs")

    def many(request: Request, note: Note) -> None:
        carry_out(
            request.plan,
            jobs=jobs or None,
            progress=None if args.quiet else True,
            checkpoint=args.checkpoint,
            on_result=note,
            models=request.out is not None,
            warn=False,
        )

    return present(args, make_request(args), many)


def present(
    args: argparse.Namespace,
    request: Request,
    many: Callable[[Request, Note], None],
    more: Callable[[], dict[str, Any]] = dict,
) -> int:
    """Run, print, save; the exit code.

    Parameters
    ----------
    args : Namespace
    request : Request
    many : callable
        ``many(request, note)`` carries out the runs.
    more : callable
        Further entries of the JSON.
    """
    request = _prepared(args, request)
    study = empty_study(request.plan)

    def note(now: Study, cell: Cell) -> None:
        nonlocal study
        study = now

    stopped = False
    try:
        with _remarks(args.quiet):
            many(request, note)
    except KeyboardInterrupt:
        stopped = True
    wrong = ("failed",) if request.heat_map else ("failed", "illegal")
    failed = {cell: why for cell, why in study.missing.items() if why.status in wrong}
    if all(cell in failed for cell in request.chosen):  # a setting that none can take: no table of Ideal alone
        raise ValueError(failed[request.chosen[0]].words)
    try:
        if study.results and not args.json:
            print_tables(study, request)
    finally:  # also if standard output is closed
        saved, unsaved = _save(study, request)
    if args.json:
        about = {"seed": args.seed, "interrupted": stopped, "runs": records(study, request), "saved": saved}
        print_json(request.about | about | more())
    if not args.quiet:
        remark(*(f"saved {path}" for path in saved))
        if request.no_picture:
            remark(f"no picture: {request.no_picture}")
    if stopped:
        again = "; the same command goes on" if args.checkpoint is not None else ""
        every = len(study.results) + len(study.missing)
        remark(f"byzadmm: interrupted; {len(study.results)} of {every} runs were finished{again}")
        return INTERRUPTED
    for line in dict.fromkeys(_words(request, cell, why.words) for cell, why in failed.items()):
        say_error(ValueError(line))
    return BAD_INPUT if failed else 1 if unsaved else 0


@contextlib.contextmanager
def _remarks(quiet: bool) -> Iterator[None]:
    """Warnings inside the block become remarks of one line."""
    with warnings.catch_warnings():
        warnings.showwarning = lambda message, *_, **__: remark(*([] if quiet else [f"byzadmm: {message}"]))
        yield


def _words(request: Request, cell: Cell, why: str) -> str:
    """What is wrong with a run, with its name unless that is said."""
    return why if why.startswith(f"{cell.algorithm}:") else f"{request.name(cell)}: {why}"


def _prepared(args: argparse.Namespace, request: Request) -> Request:
    """The request, if its files can be written; without the picture if that alone cannot and was not asked for."""
    for what in ("out", "report"):
        if getattr(request, what) is not None:
            prepare(getattr(request, what), what)
    try:
        if request.picture is not None:
            prepare(request.picture, "plot")
    except OSError as error:
        if args.plot is not None:
            raise
        return replace(request, picture=None, no_picture=str(error).removeprefix("plot: "))
    return request


def _save(study: Study, request: Request) -> tuple[list[str], list[str]]:
    """Write result, picture and page; the files that were written, and those that were not."""
    saved: list[str] = []
    unsaved: list[str] = []
    chosen = study.results.get(request.chosen[0])
    if request.out is not None and chosen is not None:
        (saved if written("out", request.out, chosen.save, fallback=True) else unsaved).append(str(request.out))
    draw = study.heatmap if request.heat_map else study.plot
    for what, path, write in (("plot", request.picture, draw), ("report", request.report, study.report)):
        if path is not None and study.results:
            (saved if written(what, path, write) else unsaved).append(str(path))
    return saved, unsaved


def written(what: str, path: Path, write: Callable[[Path], Any], *, fallback: bool = False) -> bool:
    """Whether ``write(path)`` succeeded; an error is printed, and with ``fallback`` a temporary folder is tried."""
    try:
        write(path)
    except Exception as error:  # of any kind: what else was computed is still to be saved
        instead = ""
        if fallback:
            folder = Path(tempfile.mkdtemp(prefix="byzadmm-"))
            try:
                write(folder / path.name)
                instead = f"; saved {folder / path.name} instead"
            except Exception as second:
                instead = f" (nor in a temporary folder: {second})"
                shutil.rmtree(folder, ignore_errors=True)
        say_error(error, f"{what}: cannot write {str(path)!r}{instead}: ")
        return False
    return True
