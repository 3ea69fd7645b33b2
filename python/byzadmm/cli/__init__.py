"""The command ``byzadmm``: parsing of arguments and printing; ``docs/cli.md`` describes it."""

from __future__ import annotations

import sys
from collections.abc import Sequence

from byzadmm.cli.output import guarded, standard_streams
from byzadmm.cli.parser import make_parser

__all__ = ["main"]


def main(argv: Sequence[str] | None = None) -> int:
    """Run one command and return its exit code: 0, 2 for bad input, 130 after Ctrl-C, 1 for other failures.

    Parameters
    ----------
    argv : list of str, optional
        The words after ``byzadmm``; by default those of the process.

    Examples
    --------
    >>> from byzadmm.cli import main
    >>> main(["data", "path", "--data-dir", "mydata"])  # doctest: +ELLIPSIS
    mydata
    ...
    0
    """

    def run() -> int:
        args = make_parser().parse_args(argv)
        if args.json and closed:
            raise OSError("json: standard output is closed")
        code: int = args.run(args)
        return code

    closed = sys.stdout is None
    with standard_streams():
        return guarded(run)
