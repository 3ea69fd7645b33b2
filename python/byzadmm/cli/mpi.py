"""``byzadmm mpi run``: the runs of ``byzadmm run`` one after another, with the workers on other ranks."""

from __future__ import annotations

import argparse
import contextlib
import functools
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

from byzadmm._internal.atomic_files import prepare, prepare_folder
from byzadmm._internal.progress import Bar, remark
from byzadmm._internal.validation import check_int
from byzadmm.cli.output import guarded, print_table
from byzadmm.cli.plan import Runs, drawable, make_plan
from byzadmm.cli.run import Keep, carry_out, written


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
    """The arguments of ``Job.simulate`` for the run of that name."""
    ranks: dict[str, Any] = {"wire": args.wire, "threads": check_int(args.threads, "threads", low=0) or 1}
    if args.checkpoint is not None:
        ranks["checkpoint"] = Path(args.checkpoint) / f"{name.replace(os.sep, '-')}.npz"
    return {"dataset": None, "parts": None} | run | ranks


def _worker(args: argparse.Namespace, job: Any) -> None:
    with job:
        for name, run in make_plan(args).runs.items():
            job.simulate(**_arguments(args, name, run))


def _master(args: argparse.Namespace, job: Any) -> int:
    from byzadmm.engines.report import COLUMNS, RunReport

    reports: dict[str, RunReport] = {}

    def many(runs: Runs, keep: Keep) -> None:
        for number, (name, run) in enumerate(runs.items()):
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

            try:
                keep(number, job.simulate(**_arguments(args, name, run), watch=watch))
                reports[name] = job.report
            except (ValueError, TypeError, OSError) as error:
                keep(number, error)
            finally:
                if bar is not None:
                    bar.close()

    with job:
        with job.watched("loading its data"):
            plan = make_plan(args)
        timeline = None if args.timeline is None else drawable(args.timeline, "timeline")
        record = None if plan.out is None else plan.out.with_suffix(".mpi.json")
        for what, path in (("timeline", timeline), ("out", record)):
            if path is not None:
                prepare(path, what)
        if args.checkpoint is not None:
            prepare_folder(args.checkpoint, "checkpoint")
        if not (job.tolerant or args.quiet):
            remark("mpirun without --with-ft ulfm: a rank that dies ends the job")
        code = carry_out(args, plan, many, lambda: {"mpi": {name: report.record() for name, report in reports.items()}})
        kept = reports.get(plan.chosen[0])
        if reports and not args.json:
            whole = RunReport.together(list(reports.values()))
            print_table(COLUMNS, whole.rows(), f"\n{job.size - 1} worker ranks, {whole.rounds} rounds")
        if kept is not None and record is not None:
            code = max(code, _also_written(args, "out", record, kept.save))
        if kept is not None and timeline is not None:
            draw = functools.partial(kept.draw, title=f"{plan.chosen[0]}: {plan.title}")
            code = max(code, _also_written(args, "timeline", timeline, draw))
        return code


def _also_written(args: argparse.Namespace, what: str, path: Path, write: Callable[[Path], None]) -> int:
    """The exit code of writing one more file."""
    if not written(what, path, write):
        return 1
    remark(*([] if args.quiet else [f"saved {path}"]))
    return 0
