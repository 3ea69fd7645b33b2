"""``byzadmm reproduce``, ``byzadmm tune`` and ``byzadmm settings``."""

from __future__ import annotations

import argparse
import importlib
from dataclasses import asdict
from pathlib import Path
from typing import Any

from byzadmm._internal.atomic_files import prepare
from byzadmm._internal.progress import remark
from byzadmm._internal.validation import check_int
from byzadmm.cli.output import INTERRUPTED, print_json


def figures() -> Any:
    """``byzadmm.figures``, imported when a command needs it."""
    return importlib.import_module("byzadmm.figures")


def reproduce(args: argparse.Namespace) -> int:
    """Make figures and print the table of claims."""
    names = list(args.names) or ["all"]
    seeds = check_int(args.seeds, "seeds", low=1)
    if args.page is not None:
        prepare(args.page, "page")
    report = figures().reproduce(
        names,
        seeds=seeds,
        quick=args.quick,
        out=args.out,
        data_dir=args.data_dir,
        progress=not args.quiet,
        checkpoint=args.checkpoint,
        report=args.report,
    )
    if args.page is not None:
        report.write("page", lambda path: [figures().write_report(report, path)], Path(args.page))
    if args.json:
        about = {"seeds": report.seeds, "quick": report.quick, "seconds": report.seconds}
        about |= {"interrupted": report.interrupted, "failed": report.failed}
        about |= {
            "differences": [asdict(row) for row in report.differences],
            "claims": [claim.record() for claim in report.claims],
            "finals": [row for panel in report.panels.values() for row in panel.finals()],
            "files": [str(path) for path in report.paths],
        }
        print_json(about)
    else:
        print(report.table())
        if not args.quiet:
            remark(*(f"saved {path}" for path in report.paths))
    if report.interrupted:
        again = "; the same command goes on" if args.checkpoint is not None else ""
        remark(f"byzadmm: interrupted; what was finished is in {args.out}{again}")
        return INTERRUPTED
    return 1 if report.failed else 0


def tune(args: argparse.Namespace) -> int:
    """Search settings and print the best ones."""
    try:
        found = figures().tune(
            args.name,
            algorithms=args.algorithms,
            blind=args.blind,
            budget=args.budget,
            seed=args.seed,
            data_dir=args.data_dir,
            out=args.out,
            check=args.check,
            progress=not args.quiet,
        )
    except KeyboardInterrupt:
        remark("byzadmm: interrupted; the same command resumes from the journal")
        return INTERRUPTED
    if args.json:
        files = {"settings": str(found.settings), "journal": str(found.journal)}
        print_json(files | {"best": found.best, "differences": found.differences})
    else:
        print(found.table())
    for difference in found.differences:
        remark(f"byzadmm: differs: {difference}")
    return 1 if found.differences else 0


def settings(args: argparse.Namespace) -> int:
    """Print a commented settings file."""
    print(figures().settings_text(args.name), end="")
    return 0
