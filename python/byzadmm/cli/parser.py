"""The commands of ``byzadmm``, their help, and the functions that carry them out.

Of a command that is not given nothing is imported but its name and its line of help.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable
from importlib import import_module
from typing import Any

import byzadmm
from byzadmm.cli import options

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
    _command(
        commands,
        "run",
        "train under attack, compare algorithms, draw the curves",
        "byzadmm run",
        "byzadmm run --algorithm admm median --attack gaussian:std=50 -q 6",
        "byzadmm run --dataset mnist --algorithm admm --lam 0.1 --out run.npz",
        "byzadmm run --rule krum nnm+trimmed-mean -f 8 --momentum 0.9",
        "byzadmm run --attack alie my_attack.py:bias --seeds 5 --report page.html",
        "byzadmm run --partition dirichlet:0.3 --json",
        "byzadmm run --delays stragglers:0.2,10 --algorithm admm async-admm",
        "byzadmm run --graph ring:k=2 --algorithm dadmm --attack isolation",
        run="run.run",
        fill=_fill_run,
    )
    _command(
        commands,
        "reproduce",
        "the paper's figures and the table of its claims",
        "byzadmm reproduce fig1a fig2a",
        "byzadmm reproduce all --seeds 3 --out figures",
        "byzadmm reproduce peng ios",
        "byzadmm reproduce my.toml --quick",
        run="reproduce.reproduce",
        fill=options.add_reproduce,
    )
    _command(
        commands,
        "tune",
        "search step sizes for a figure on a validation split",
        "byzadmm tune fig2a --budget 16",
        "byzadmm tune fig2a --blind",
        "byzadmm tune my.toml --algorithms rsa median",
        "byzadmm tune fig2a --check",
        run="reproduce.tune",
        fill=options.add_tune,
    )
    _command(
        commands,
        "settings",
        "print a commented settings file: a figure's, or one to start from",
        "byzadmm settings > my.toml",
        "byzadmm settings fig2a > my.toml",
        more="Change what you like, then:\n  byzadmm run my.toml          each algorithm once\n"
        "  byzadmm reproduce my.toml    with several seeds; pictures and numbers\n"
        "  byzadmm tune my.toml         search step sizes\n\ndocs/settings.md has every key.",
        run="reproduce.settings",
        fill=options.add_settings,
    )
    _command(
        commands,
        "data",
        "list the data sets, fetch one, show where files are looked for",
        "byzadmm data list",
        "byzadmm data fetch mnist",
        "byzadmm data path",
        run="lists.data",
        fill=options.add_data,
    )
    _command(
        commands,
        "list",
        "names of algorithms, attacks, rules, delays, graphs or figures",
        "byzadmm list attacks",
        "byzadmm list rules --json",
        run="lists.show",
        fill=options.add_list,
    )
    _command(
        commands,
        "info",
        "version, instruction set, threads, data and extras",
        "byzadmm info --json",
        run="lists.info",
        fill=options.add_info,
    )
    _command(commands, "mpi", "the same with the workers in other processes and on other machines", fill=_fill_mpi)
    return parser


def _fill_run(parser: options.Parser) -> None:
    options.add_run(parser)
    options.add_many(parser)


def _fill_mpi(parser: options.Parser) -> None:
    from byzadmm.engines.mpi._launch import EXAMPLE

    lines = (EXAMPLE, "srun --mpi=pmix -n 21 byzadmm mpi run my.toml --checkpoint states")
    parser.epilog = _examples(*lines)
    parser.set_defaults(run=lambda args: _help(parser))
    _command(
        parser.add_subparsers(metavar="run", title="commands"),
        "run",
        "train under attack; rank 0 is the master, the workers are divided among the other ranks",
        *lines,
        run="mpi.mpi_run",
        fill=_fill_mpi_run,
    )


def _fill_mpi_run(parser: options.Parser) -> None:
    options.add_run(parser)
    options.add_mpi(parser)


def _command(
    commands: Any,
    name: str,
    text: str,
    *examples: str,
    more: str = "",
    run: str = "",
    fill: Callable[[options.Parser], None],
) -> None:
    """Add a command: ``run`` is a module of this package and a function there, ``fill`` adds the options."""
    made: options.Parser = commands.add_parser(
        name,
        help=text,
        description=f"{text[0].upper()}{text[1:]}.",
        epilog="\n\n".join(filter(None, [_examples(*examples), more])),
        formatter_class=argparse.RawDescriptionHelpFormatter,
        allow_abbrev=False,
    )
    made.fill = fill
    made.set_defaults(run=lambda args: _function(run)(args))


def _function(place: str) -> Command:
    module, _, name = place.partition(".")
    found: Command = getattr(import_module(f"byzadmm.cli.{module}"), name)
    return found


def _examples(*lines: str) -> str:
    return "\n".join(["examples:", *(f"  {line}" for line in lines)])


def _help(parser: argparse.ArgumentParser) -> int:
    parser.print_help()
    return 0
