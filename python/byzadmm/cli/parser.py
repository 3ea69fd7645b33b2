"""The commands of ``byzadmm``, their help, and the functions that carry them out."""

from __future__ import annotations

import argparse
from collections.abc import Callable
from typing import Any

import byzadmm
from byzadmm.cli import options
from byzadmm.cli.lists import LISTS, data, info, show
from byzadmm.cli.mpi import mpi_run
from byzadmm.cli.reproduce import reproduce, settings, tune
from byzadmm.cli.run import run
from byzadmm.engines.mpi._launch import EXAMPLE as MPIRUN

Command = Callable[[argparse.Namespace], int]


def make_parser() -> options.Parser:
    """The parser of the whole command line; ``args.run`` is the function of the command."""
    parser = options.Parser(
        prog="byzadmm",
        description="Byzantine-robust learning: train under attack, reproduce the paper's figures.",
        epilog=_examples("byzadmm run", "byzadmm run --attack gaussian -q 4", "byzadmm reproduce fig1a"),
        formatter_class=argparse.RawDescriptionHelpFormatter,
        allow_abbrev=False,
    )
    parser.add_argument("--version", action="version", version=f"byzadmm {byzadmm.__version__}")
    parser.set_defaults(run=lambda args: _help(parser), json=False)
    commands = parser.add_subparsers(metavar="COMMAND", title="commands")
    made = _command(
        commands,
        "run",
        run,
        "train under attack, compare algorithms, draw the curves",
        "byzadmm run",
        "byzadmm run --algorithm admm median --attack gaussian:std=50 -q 6",
        "byzadmm run --dataset mnist --algorithm admm --lam 0.1 --out run.npz",
        "byzadmm run --rule krum nnm+trimmed-mean -f 8 --momentum 0.9",
        "byzadmm run --attack alie my_attack.py:bias --seeds 5 --report page.html",
        "byzadmm run --partition dirichlet:0.3 --json",
        "byzadmm run --delays stragglers:0.2,10 --algorithm admm async-admm",
        "byzadmm run --graph ring:k=2 --algorithm dadmm --attack isolation",
    )
    options.add_run(made)
    options.add_many(made)
    made = _command(
        commands,
        "reproduce",
        reproduce,
        "the paper's figures and the table of its claims",
        "byzadmm reproduce fig1a fig2a",
        "byzadmm reproduce all --seeds 3 --out figures",
        "byzadmm reproduce peng ios",
        "byzadmm reproduce my.toml --quick",
    )
    options.add_reproduce(made)
    made = _command(
        commands,
        "tune",
        tune,
        "search step sizes for a figure on a validation split",
        "byzadmm tune fig2a --budget 16",
        "byzadmm tune fig2a --blind",
        "byzadmm tune my.toml --algorithms rsa median",
        "byzadmm tune fig2a --check",
    )
    options.add_tune(made)
    made = _command(
        commands,
        "settings",
        settings,
        "print a commented settings file: a figure's, or one to start from",
        "byzadmm settings > my.toml",
        "byzadmm settings fig2a > my.toml",
        more="Change what you like, then:\n  byzadmm run my.toml          each algorithm once\n"
        "  byzadmm reproduce my.toml    with several seeds; pictures and numbers\n"
        "  byzadmm tune my.toml         search step sizes\n\ndocs/settings.md has every key.",
    )
    options.add_settings(made)
    made = _command(
        commands,
        "data",
        data,
        "list the data sets, fetch one, show where files are looked for",
        "byzadmm data list",
        "byzadmm data fetch mnist",
        "byzadmm data path",
    )
    made.add_argument("action", metavar="list|fetch|path")
    made.add_argument("name", nargs="?", metavar="NAME", help="data set to fetch")
    made.add_argument("--data-dir", metavar="DIR", help="look here first")
    made.add_argument("--json", action="store_true", help="print JSON")
    made = _command(
        commands,
        "list",
        show,
        "names of algorithms, attacks, rules, delays, graphs or figures",
        "byzadmm list attacks",
        "byzadmm list rules --json",
    )
    made.add_argument("what", metavar="|".join(LISTS))
    made.add_argument("--json", action="store_true", help="print JSON")
    made = _command(commands, "info", info, "version, instruction set, threads, data and extras", "byzadmm info --json")
    made.add_argument("--json", action="store_true", help="print JSON")
    made.add_argument("--data-dir", metavar="DIR", help="look for data here first")
    lines = (MPIRUN, "srun --mpi=pmix -n 21 byzadmm mpi run my.toml --checkpoint states")
    mpi = _command(
        commands,
        "mpi",
        lambda args: _help(mpi),
        "the same with the workers in other processes and on other machines",
        *lines,
    )
    made = _command(
        mpi.add_subparsers(metavar="run", title="commands"),
        "run",
        mpi_run,
        "train under attack; rank 0 is the master, the workers are divided among the other ranks",
        *lines,
    )
    options.add_run(made)
    options.add_mpi(made)
    return parser


def _command(
    commands: Any, name: str, run: Command, text: str, *examples: str, more: str = ""
) -> argparse.ArgumentParser:
    made: argparse.ArgumentParser = commands.add_parser(
        name,
        help=text,
        description=f"{text[0].upper()}{text[1:]}.",
        epilog="\n\n".join(filter(None, [_examples(*examples), more])),
        formatter_class=argparse.RawDescriptionHelpFormatter,
        allow_abbrev=False,
    )
    made.set_defaults(run=run)
    return made


def _examples(*lines: str) -> str:
    return "\n".join(["examples:", *(f"  {line}" for line in lines)])


def _help(parser: argparse.ArgumentParser) -> int:
    parser.print_help()
    return 0
