"""``byzadmm mpi run``: the runs of ``byzadmm run`` one after another, with workers or nodes on other ranks."""

from __future__ import annotations

import argparse
import contextlib
import functools
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

from byzadmm import catalogue
from byzadmm._internal.atomic_files import prepare, prepare_folder
from byzadmm._internal.progress import Bar, remark
from byzadmm._internal.validation import check_int
from byzadmm.cli.output import guarded, print_table
from byzadmm.cli.plan import Request, drawable, ending, make_request
from byzadmm.cli.run import Note, present, written
from byzadmm.study import Missing
from byzadmm.study.run import empty_study


def mpi_run(args: argparse.Namespace) -> int:
    """Train with rank 0 as the master; the exit code of the master is that of the job."""
    from byzadmm.engines.mpi import Job

    os.environ["TERM"] = "dumb"  # mpirun gives every rank a terminal, whether there is one or not
    job = Job(deadline=args.deadline, patience=args.patience)
    if job.is_master:
        code = guarded(lambda: _master(args, job))
    else:
        code = 0
        _silently(lambda: _worker(args, job))
    job.leave(code)
    return code


def _silently(run: Callable[[], None]) -> None:
    """Run without a message: the engine reports errors to the master, which prints one line for all ranks."""
    with contextlib.suppress(ValueError, TypeError, OSError, ImportError, KeyboardInterrupt):
        run()


def _arguments(args: argparse.Namespace, name: str, run: dict[str, Any]) -> dict[str, Any]:
    """The arguments of ``Job.simulate``, or on a graph ``Job.simulate_decentralized``, for the run of that name."""
    ranks: dict[str, Any] = {"threads": check_int(args.threads, "threads", low=0) or 1}
    if "graph" not in run:
        ranks["wire"] = args.wire
    if args.checkpoint is not None:
        ranks["checkpoint"] = Path(args.checkpoint) / f"{name.replace(os.sep, '-')}.npz"
    return {"dataset": None, "parts": None} | run | ranks


def _simulate(job: Any, run: dict[str, Any]) -> Callable[..., Any]:
    """What trains with the workers, or on a graph the nodes, on the other ranks."""
    return job.simulate_decentralized if "graph" in run else job.simulate  # type: ignore[no-any-return]


def _request(args: argparse.Namespace) -> Request:
    """What the command line asks for, which must go round by round."""
    entries = catalogue.algorithms()
    named = [name.partition(":")[0].strip().lower() for name in args.algorithm or ()]
    waiting = [name for name in named if name in entries and entries[name].kind.schedule == "events"]
    if waiting and args.settings is None:
        raise ValueError(f"algorithm: {waiting[0]} is asynchronous, and does not run over MPI yet; see byzadmm run")
    request = make_request(args)
    if any("graph" in run for run in request.runs().values()):
        raise ValueError("graph: the nodes of a graph run in one process, not over MPI yet; see byzadmm run")
    if any("delays" in run for run in request.runs().values()):
        raise ValueError("delays: are simulated in one process, not over MPI yet; see byzadmm run")
    if any("graph" in run for run in request.runs().values()):
        for name in ("wire", "timeline", "trace"):
            if getattr(args, name) is not None:
                raise ValueError(f"{name}: not on a graph, where no master asks; got {getattr(args, name)!r}")
    return request


def _worker(args: argparse.Namespace, job: Any) -> None:
    with job:
        request = _request(args)
        for cell, run in request.runs().items():
            _simulate(job, run)(**_arguments(args, request.name(cell), run))


def _master(args: argparse.Namespace, job: Any) -> int:
    from byzadmm.engines.report import RunReport

    reports: dict[str, RunReport] = {}

    def many(request: Request, note: Note) -> None:
        study = empty_study(request.plan)
        for cell, run in request.runs().items():
            name = request.name(cell)
            bar = None if args.quiet else Bar(name, args.live)
            shown = 0  # events that have been printed

            def watch(done: int, report: RunReport, bar: Bar | None = bar, total: int = run["iterations"]) -> None:
                nonlocal shown
                if bar is not None:
                    if shown < len(report.events):
                        bar.clear()
                        remark(*(str(event) for event in report.events[shown:]))
                        shown = len(report.events)
                    bar.update(done, total, report.line)

            places = [place for place, shared in request.plan.runs.items() if shared is run]
            try:
                more = {"trace": True} if args.trace is not None and cell == request.chosen[0] else {}
                result = _simulate(job, run)(**_arguments(args, name, run), watch=watch, **more)
                reports[name] = job.report
                for place in places:
                    study.results[place] = result
                    del study.missing[place]
            except (ValueError, TypeError, OSError) as error:
                study.missing |= dict.fromkeys(places, Missing("failed", f"{type(error).__name__}: {error}"))
            finally:
                if bar is not None:
                    bar.close()
            note(study, cell)

    with job:
        with job.watched("loading its data"):
            request = _request(args)
        trace = None if args.trace is None else ending(args.trace, "trace", (".npz",))
        timeline = None if args.timeline is None else drawable(args.timeline, "timeline")
        record = None if request.out is None else request.out.with_suffix(".mpi.json")
        for what, path in (("timeline", timeline), ("trace", trace), ("out", record)):
            if path is not None:
                prepare(path, what)
        if args.checkpoint is not None:
            prepare_folder(args.checkpoint, "checkpoint")
        if not (job.tolerant or args.quiet):
            remark("mpirun without --with-ft ulfm: a rank that dies ends the job")
        code = present(args, request, many, lambda: {"mpi": {name: made.record() for name, made in reports.items()}})
        chosen = request.name(request.chosen[0])
        kept = reports.get(chosen)
        if reports and not args.json:
            whole = RunReport.together(list(reports.values()))
            print_table(whole.columns, whole.rows(), f"\n{job.size - 1} worker ranks, {whole.rounds} rounds")
        if kept is not None and record is not None:
            code = max(code, _also_written(args, "out", record, kept.save))
        if kept is not None and timeline is not None:
            draw = functools.partial(kept.draw, title=f"{chosen}: {request.plan.title}")
            code = max(code, _also_written(args, "timeline", timeline, draw))
        if kept is not None and trace is not None:
            code = max(code, _also_written(args, "trace", trace, kept.save_trace))
        return code


def _also_written(args: argparse.Namespace, what: str, path: Path, write: Callable[[Path], None]) -> int:
    """The exit code of writing one more file."""
    if not written(what, path, write):
        return 1
    remark(*([] if args.quiet else [f"saved {path}"]))
    return 0
