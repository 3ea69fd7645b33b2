"""The options of each command."""

from __future__ import annotations

import argparse
from collections.abc import Callable
from typing import Any, NoReturn

PICTURE = "byzadmm-run.png"


class Parser(argparse.ArgumentParser):
    """A parser whose errors are one line without the usage; ``fill`` adds its options, when it is to parse."""

    fill: Callable[[Parser], None] | None = None

    def parse_known_args(self, args: Any = None, namespace: Any = None) -> Any:
        if self.fill is not None:
            fill, self.fill = self.fill, None
            fill(self)
        return super().parse_known_args(args, namespace)

    def error(self, message: str) -> NoReturn:
        raise ValueError(f"{message} (see {self.prog} --help)")


def add_run(parser: argparse.ArgumentParser) -> None:
    """Those of ``run`` and ``mpi run``."""
    from byzadmm.catalogue import LOSSES
    from byzadmm.study.held_back import SAMPLES
    from byzadmm.training.experiment import DEFAULTS

    rho, batch_size, seed, dtype = (DEFAULTS[name] for name in ("rho", "batch_size", "seed", "dtype"))
    steps, share = DEFAULTS["local_steps"], DEFAULTS["participation"]
    parser.add_argument("settings", nargs="?", metavar="FILE.toml", help="a settings file, or a figure such as fig1a")
    what = parser.add_argument_group("experiment")
    what.add_argument("--dataset", default="digits", metavar="NAME", help="see `byzadmm data list` (digits)")
    what.add_argument(
        "--algorithm", nargs="+", metavar="NAME", help="see `byzadmm list algorithms` (five of them), beside Ideal"
    )
    what.add_argument(
        "--rule", nargs="+", metavar="RULE", help="sgd (on a graph dsgd) with these: krum, nnm+krum, trimmed-mean:f=8"
    )
    what.add_argument("-f", type=int, metavar="F", help="declared number of Byzantine workers, the f of rules (Q)")
    what.add_argument(
        "--attack", nargs="+", default=["sign-flip"], help="as in gaussian:std=50; FILE.py:NAME; none (sign-flip)"
    )
    what.add_argument(
        "-q",
        "--n-byzantine",
        nargs="+",
        type=int,
        metavar="Q",
        help="numbers of Byzantine workers: the last ones (8; of a graph's nodes a fifth)",
    )
    what.add_argument("--byzantine", nargs="+", type=int, metavar="I", help="which are Byzantine, in place of -q")
    what.add_argument("--n-workers", type=int, default=20, metavar="M", help="workers in all (20)")
    what.add_argument(
        "--partition", nargs="+", default=["iid"], help="iid, by-label, dirichlet:ALPHA or gamma-similarity:GAMMA (iid)"
    )
    what.add_argument(
        "--graph", metavar="NAME", help="train without a master: ring:k=2; see `byzadmm list graphs` (a master)"
    )
    what.add_argument(
        "--delays", metavar="NAME", help="time that workers take: stragglers:0.2,10; see `byzadmm list delays` (rounds)"
    )
    what.add_argument("--scale", help="a factor of every feature, or raw, unit, standard, symmetric")
    what.add_argument("--seed", type=int, default=seed, metavar="N", help=f"seed of partition and run ({seed})")
    what.add_argument("--data-dir", metavar="DIR", help="look for data here first")
    how = parser.add_argument_group("training (defaults suit the data set)")
    how.add_argument("--iterations", type=int, metavar="N", help="iterations, with --delays updates (1000)")
    how.add_argument("--until", type=float, metavar="TIME", help="end at this simulated time (1000 usual jobs)")
    how.add_argument("--arrivals", type=int, metavar="N", help="end after so many messages, with --delays")
    how.add_argument(
        "--batch-size",
        type=int,
        default=batch_size,
        metavar="B",
        help=f"samples per worker and iteration ({batch_size})",
    )
    how.add_argument("--loss", metavar="NAME", help=f"{', '.join(LOSSES)} (that of the data)")
    how.add_argument("--local-steps", type=int, default=steps, metavar="E", help=f"steps per round, SGD ({steps})")
    how.add_argument(
        "--participation", type=float, default=share, metavar="P", help=f"share of workers drawn per round ({share:g})"
    )
    how.add_argument(
        "--validation", type=int, metavar="N", help=f"samples that the master holds ({SAMPLES} where one needs them)"
    )
    how.add_argument("--rho", type=float, default=rho, help=f"weight of the master's regularizer ({rho})")
    how.add_argument("--lam", type=float, help="weight of the TV norm (ADMM, RSA, DADMM, DRSA)")
    how.add_argument("--beta", type=float, help="penalty parameter (ADMM, DADMM)")
    how.add_argument("--step", help="step size of RSA, SGD and on a graph: 0.1, power:0.5, inv-sqrt:10,1")
    how.add_argument("--master-step", metavar="STEP", help="step size of the master (ADMM, RSA)")
    how.add_argument("--worker-step", metavar="STEP", help="step size of the workers (ADMM, RSA)")
    how.add_argument("--momentum", type=float, metavar="BETA", help="workers' momentum (SGD, any rule)")
    how.add_argument("--variance-reduction", metavar="saga|lsvrg", help="Byrd-SAGA or LSVRG (SGD, any rule)")
    how.add_argument("--filter", metavar="NAME", help="filter before the rule, as in zeno:b=8 (SGD, any rule)")
    how.add_argument("--coding", metavar="NAME", help="redundant batches, as in cyclic:f=2 (SGD)")
    how.add_argument("--dtype", default=dtype, help=f"float32 or float64 ({dtype})")
    out = parser.add_argument_group("output")
    out.add_argument("--eval-every", type=int, metavar="N", help="iterations between evaluations (a 20th of all)")
    out.add_argument("--eval-time", type=float, metavar="TIME", help="or simulated time between them")
    drawn = out.add_mutually_exclusive_group()
    drawn.add_argument("--plot", metavar="FILE", help=f"picture: .png, .svg or .pdf ({PICTURE}; none with --json)")
    drawn.add_argument("--no-plot", action="store_true", help="no picture")
    out.add_argument("--out", metavar="FILE.npz", help="keep the result of the one algorithm that was run")
    out.add_argument("--json", action="store_true", help="print JSON, curves included")
    out.add_argument("--quiet", action="store_true", help="the table only: no progress, no remarks")


def run_defaults() -> argparse.Namespace:
    """The values of :func:`add_run`'s options where none is given."""
    parser = Parser()
    add_run(parser)
    return parser.parse_args([])


def add_many(parser: argparse.ArgumentParser) -> None:
    """Those of ``run`` alone."""
    many = parser.add_argument_group("many runs")
    many.add_argument("--seeds", type=int, default=1, metavar="N", help="so many seeds from --seed on (1)")
    many.add_argument("--jobs", type=int, default=0, metavar="N", help="runs side by side (0: one per CPU)")
    many.add_argument("--threads", type=int, help=argparse.SUPPRESS)  # the former name of --jobs
    many.add_argument("--checkpoint", metavar="DIR", help="keep results and states there; the same command goes on")
    many.add_argument("--report", metavar="FILE.html", help="a page with tables and curves")


def add_mpi(parser: argparse.ArgumentParser) -> None:
    """Those of ``mpi run`` alone."""
    parser.set_defaults(seeds=1, report=None)
    ranks = parser.add_argument_group("ranks")
    ranks.add_argument("--threads", type=int, default=0, metavar="N", help="threads per rank (1)")
    ranks.add_argument("--deadline", type=float, default=10.0, metavar="SECONDS", help="wait so long for answers (10)")
    ranks.add_argument(
        "--patience", type=float, default=120.0, metavar="SECONDS", help="limit of each stage before round 1 (120)"
    )
    ranks.add_argument("--wire", metavar="TYPE", help="float32 or float64 for what is sent (that of the run)")
    ranks.add_argument("--checkpoint", metavar="DIR", help="keep states there; the same command resumes from them")
    ranks.add_argument(
        "--live", action="store_true", help="progress five times a second on the terminal, else a line every second"
    )
    ranks.add_argument("--timeline", metavar="FILE", help="picture of who answered when: .png, .svg or .pdf")
    ranks.add_argument("--trace", metavar="FILE.npz", help="keep how long each answer took, for run --delays FILE.npz")


def add_reproduce(parser: argparse.ArgumentParser) -> None:
    """Those of ``reproduce``."""
    parser.add_argument(
        "names",
        nargs="*",
        metavar="NAME",
        help="figures (see `byzadmm list figures`), the tables peng and ios, settings files; by default all: every "
        "figure but rules and field",
    )
    parser.add_argument("--seeds", type=int, default=3, metavar="N", help="seeds to average over (3)")
    parser.add_argument("--quick", action="store_true", help="a fifth of the iterations, one seed: a first look")
    parser.add_argument("--out", default="figures", metavar="DIR", help="folder for pictures and numbers (figures)")
    parser.add_argument("--checkpoint", metavar="DIR", help="keep results and states there; the same command goes on")
    parser.add_argument("--report", metavar="DIR|FILE.html", help="pages with tables and curves, one per figure")
    parser.add_argument("--page", metavar="FILE.md", help="one page in Markdown: differences, claims, settings")
    parser.add_argument("--data-dir", metavar="DIR", help="look for data here first")
    parser.add_argument("--quiet", action="store_true", help="no progress, no remarks")
    parser.add_argument("--json", action="store_true", help="print JSON: differences, claims, final accuracies, files")


def add_settings(parser: argparse.ArgumentParser) -> None:
    """Those of ``settings``."""
    parser.add_argument("name", nargs="?", metavar="FIGURE", help="see `byzadmm list figures` (a start on digits)")
    parser.set_defaults(json=False)


def add_tune(parser: argparse.ArgumentParser) -> None:
    """Those of ``tune``."""
    parser.add_argument("name", metavar="FIGURE|FILE.toml", help="a figure, or a settings file of your own")
    parser.add_argument("--algorithms", nargs="+", metavar="NAME", help="only these")
    parser.add_argument("--blind", action="store_true", help="tune the tables NAME-blind, without attack")
    parser.add_argument("--budget", type=int, metavar="N", help="trials per setting searched (that of the file)")
    parser.add_argument("--seed", type=int, metavar="N", help="seed of the search (that of the file)")
    parser.add_argument("--data-dir", metavar="DIR", help="look for data here first")
    parser.add_argument("--out", metavar="FILE.toml", help="settings file to write")
    parser.add_argument("--check", action="store_true", help="only compare the settings with the best trials")
    parser.add_argument("--quiet", action="store_true", help="no progress")
    parser.add_argument("--json", action="store_true", help="print JSON: the best trials, and where they are kept")


def add_data(parser: argparse.ArgumentParser) -> None:
    """Those of ``data``."""
    parser.add_argument("action", metavar="list|fetch|path")
    parser.add_argument("name", nargs="?", metavar="NAME", help="data set to fetch")
    parser.add_argument("--data-dir", metavar="DIR", help="look here first")
    parser.add_argument("--json", action="store_true", help="print JSON")


def add_list(parser: argparse.ArgumentParser) -> None:
    """Those of ``list``."""
    from byzadmm.cli.lists import LISTS

    parser.add_argument("what", metavar="|".join(LISTS))
    parser.add_argument("--json", action="store_true", help="print JSON")


def add_info(parser: argparse.ArgumentParser) -> None:
    """Those of ``info``."""
    parser.add_argument("--json", action="store_true", help="print JSON")
    parser.add_argument("--data-dir", metavar="DIR", help="look for data here first")
