"""``byzadmm run``: train, print the table, save the result, draw the curves."""

from __future__ import annotations

import argparse
import functools
import shutil
import tempfile
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

from byzadmm._internal.atomic_files import prepare
from byzadmm._internal.progress import remark
from byzadmm._internal.validation import check_int
from byzadmm.catalogue import located
from byzadmm.cli.output import BAD_INPUT, INTERRUPTED, print_json, print_table, say_error
from byzadmm.cli.plan import Plan, Runs, make_plan
from byzadmm.results import Result, versus_ideal
from byzadmm.simulation import simulate_many

#: Gets the number of a run and its result or error.
Keep = Callable[[int, Result | Exception], None]


def run(args: argparse.Namespace) -> int:
    """Train in this process, the runs side by side."""
    jobs = check_int(args.jobs, "jobs", low=0)
    if args.threads is not None:
        jobs = check_int(args.threads, "threads", low=0)
        if not args.quiet:
            remark("--threads is deprecated for run: its new name is --jobs")

    def many(runs: Runs, keep: Keep) -> None:
        simulate_many(list(runs.values()), jobs or None, progress=None if args.quiet else True, on_result=keep)

    return carry_out(args, make_plan(args), many)


def carry_out(
    args: argparse.Namespace,
    plan: Plan,
    many: Callable[[Runs, Keep], None],
    more: Callable[[], dict[str, Any]] = dict,
) -> int:
    """Run, print, save; the exit code.

    Parameters
    ----------
    args : Namespace
    plan : Plan
    many : callable
        ``many(runs, keep)`` carries out the runs.
    more : callable
        Further entries of the JSON.
    """
    plan = _prepared(args, plan)
    ended: dict[str, Result | Exception] = {}
    names = list(plan.runs)

    def keep(number: int, result: Result | Exception) -> None:
        ended[names[number]] = located(result) if isinstance(result, Exception) else result

    stopped = False
    try:
        many(plan.runs, keep)
    except KeyboardInterrupt:
        stopped = True
    finished = [(name, result) for name in names if isinstance(result := ended.get(name), Result)]
    failed = {name: result for name, result in ended.items() if isinstance(result, Exception)}
    if all(isinstance(failed.get(name), (TypeError, ValueError)) for name in plan.chosen):
        raise failed[plan.chosen[0]]  # a setting that none can take: one error, no table of Ideal alone
    if len(failed) == len(names):
        raise next(iter(failed.values()))
    try:
        if finished and not args.json:
            _print_results(finished, plan.title)
    finally:  # also if standard output is closed
        saved, unsaved = _save(finished, plan)
    if args.json:
        about = {"seed": args.seed, "interrupted": stopped, "runs": _records(finished), "saved": saved}
        print_json(plan.about | about | more())
    if not args.quiet:
        remark(*(f"saved {path}" for path in saved))
        if plan.no_picture:
            remark(f"no picture: {plan.no_picture}")
    if stopped:
        remark(f"byzadmm: interrupted; {len(finished)} of {len(names)} runs were finished")
        return INTERRUPTED
    for name, error in failed.items():
        say_error(error, "" if str(error).startswith(f"{name}:") else f"{name}: ")
    return BAD_INPUT if failed else 1 if unsaved else 0


def _prepared(args: argparse.Namespace, plan: Plan) -> Plan:
    """The plan, if its files can be written; without the picture if that alone cannot and was not asked for."""
    if plan.out is not None:
        prepare(plan.out, "out")
    try:
        if plan.picture is not None:
            prepare(plan.picture, "plot")
    except OSError as error:
        if args.plot is not None:
            raise
        return replace(plan, picture=None, no_picture=str(error).removeprefix("plot: "))
    return plan


def _save(finished: list[tuple[str, Result]], plan: Plan) -> tuple[list[str], list[str]]:
    """Write result and picture; the files that were written, and those that were not."""
    saved: list[str] = []
    unsaved: list[str] = []
    chosen = dict(finished).get(plan.chosen[0])
    if plan.out is not None and chosen is not None:
        (saved if written("out", plan.out, chosen.save, fallback=True) else unsaved).append(str(plan.out))
    if plan.picture is not None and finished:
        draw = functools.partial(_draw, finished=finished, title=plan.title)
        (saved if written("plot", plan.picture, draw) else unsaved).append(str(plan.picture))
    return saved, unsaved


def _draw(path: Path, *, finished: list[tuple[str, Result]], title: str) -> None:
    from byzadmm.figures.curves import draw_runs  # matplotlib is imported where there is something to draw

    draw_runs(path, finished, title)


def written(what: str, path: Path, write: Callable[[Path], None], *, fallback: bool = False) -> bool:
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


def _records(finished: list[tuple[str, Result]]) -> list[dict[str, Any]]:
    ideal = next((result.final_accuracy() for name, result in finished if name == "ideal"), None)
    return [
        {
            "algorithm": name,
            "accuracy": result.final_accuracy(),
            "loss": result.loss[-1],
            "iterations": int(result.iterations[-1]),
            "seconds": result.seconds,
            "eliminated": result.eliminated,
            "verdict": "reference" if name == "ideal" else versus_ideal(result.final_accuracy(), ideal),
            "settings": result.config["algorithm"],
            "curves": {"iterations": result.iterations, "accuracy": result.accuracy, "loss": result.loss},
        }
        for name, result in finished
    ]


def _print_results(finished: list[tuple[str, Result]], title: str) -> None:
    rows = [
        [
            row["algorithm"],
            f"{row['accuracy']:.3f}",
            _short(row["loss"]),
            str(row["iterations"]),
            f"{row['seconds']:.2f}",
            str(len(row["eliminated"]) or "-"),
            row["verdict"],
        ]
        for row in _records(finished)
    ]
    columns = ["algorithm", ">accuracy", ">loss", ">iterations", ">seconds", ">eliminated", "vs Ideal"]
    print_table(columns, rows, title)


def _short(number: float) -> str:
    """A number in at most six characters."""
    return f"{number:.0f}" if 100 <= number < 1e6 else f"{number:.3g}" if number < 100 else f"{number:.0e}"
