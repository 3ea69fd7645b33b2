"""The command ``byzadmm``: argument parsing and printing only; ``docs/cli.md`` shows it at work."""

from __future__ import annotations

import argparse
import contextlib
import functools
import importlib
import importlib.metadata
import importlib.util
import inspect
import io
import json
import math
import os
import platform
import re
import shutil
import sys
import tempfile
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, NoReturn

import byzadmm
from byzadmm import _comparison as comparison
from byzadmm import _core, _isa, aggregators, catalogue, datasets
from byzadmm._internal.atomic_files import prepare, prepare_folder
from byzadmm._internal.progress import remark
from byzadmm._internal.validation import check_choice, check_int
from byzadmm.algorithms import ADMM, RSA, SGD, Algorithm
from byzadmm.engines.mpi._launch import EXAMPLE as MPIRUN
from byzadmm.results import Result
from byzadmm.simulation import simulate_many

__all__ = ["main"]

Command = Callable[[argparse.Namespace], int]

BAD_INPUT, INTERRUPTED = 2, 130
PICTURE = "byzadmm-run.png"
DIRICHLET_ALPHA = 0.5
_PICTURES = (".png", ".svg", ".pdf")
_EXTRAS = {"plot": ("matplotlib",), "data": ("pooch", "tqdm"), "mpi": ("mpi4py",)}
_OPTIONS = ("lam", "beta", "step", "master_step", "worker_step", "f", "momentum", "variance_reduction")
_LONG_LINE = 1000  # characters of an error that are shown
_NAME_WIDTH = 20  # of a table's first column, as far as a name can be broken
_LIST_WORKERS = 20  # for which `list rules` says how many liars a rule bears


def main(argv: Sequence[str] | None = None) -> int:
    """Run one command and return its exit code: 0, 2 for bad input, 130 after Ctrl-C, 1 for other failures.

    Parameters
    ----------
    argv : list of str, optional
        The words after ``byzadmm``; those of the process without it.

    Examples
    --------
    >>> from byzadmm.cli import main
    >>> main(["data", "path", "--data-dir", "mydata"])  # doctest: +ELLIPSIS
    mydata
    ...
    0
    """

    def run() -> int:
        args = _parser().parse_args(argv)
        if args.json and closed:
            raise OSError("json: standard output is closed")
        code: int = args.run(args)
        return code

    closed = sys.stdout is None
    with _standard_streams():
        return _guarded(run)


def _guarded(run: Callable[[], int]) -> int:
    """The exit code of ``run``; what goes wrong becomes one line."""
    try:
        try:
            return run()
        finally:
            with _output():
                pass
    except BrokenPipeError:  # `byzadmm ... | head`: the reader has enough
        _drop_stdout()
        return 1
    except _OutputError as error:
        _drop_stdout()
        _say_error(error)
        return 1
    except (ValueError, TypeError, OSError, ImportError, MemoryError, OverflowError) as error:
        _say_error(error)
        return BAD_INPUT
    except KeyboardInterrupt:
        remark("byzadmm: interrupted")
        return INTERRUPTED


@contextlib.contextmanager
def _standard_streams() -> Iterator[None]:
    """Both of them open (Python has None for a closed one, and prints elsewhere), and able to show any character."""
    before = sys.stdout, sys.stderr
    with open(os.devnull, "w") as nowhere:
        sys.stdout, sys.stderr = (stream or nowhere for stream in before)
        errors = getattr(sys.stdout, "errors", None)
        if isinstance(sys.stdout, io.TextIOWrapper):
            sys.stdout.reconfigure(errors="backslashreplace")
        try:
            yield
        finally:
            if isinstance(sys.stdout, io.TextIOWrapper):
                sys.stdout.reconfigure(errors=errors)
            sys.stdout, sys.stderr = before


def _say_error(error: Exception, what: str = "") -> None:
    """On one line, unless it is a list of files to fetch; neither endless nor able to drive the terminal."""
    kind = "not enough memory: " if isinstance(error, MemoryError) else ""
    text = f"byzadmm: error: {what}{kind}{error}"
    for line in text.split("\n") if isinstance(error, FileNotFoundError) else [text]:
        if len(line) > _LONG_LINE:
            line = f"{line[: _LONG_LINE // 2]} ... {line[-_LONG_LINE // 2 :]}"
        remark("".join(c if c.isprintable() else ascii(c)[1:-1] for c in line))


# --- what is understood ----------------------------------------------------------------------------------------------


class _Parser(argparse.ArgumentParser):
    """Says what is wrong in one line, without the usage; that is what --help is for."""

    def error(self, message: str) -> NoReturn:
        raise ValueError(f"{message} (see {self.prog} --help)")


def _parser() -> _Parser:
    parser = _Parser(
        prog="byzadmm",
        description="Byzantine-robust learning: train under attack, reproduce the paper's figures.",
        epilog=_examples("byzadmm run", "byzadmm run --attack gaussian -q 4", "byzadmm reproduce fig1a"),
        formatter_class=argparse.RawDescriptionHelpFormatter,
        allow_abbrev=False,
    )
    parser.add_argument("--version", action="version", version=f"byzadmm {byzadmm.__version__}")
    parser.set_defaults(run=lambda args: _help(parser), json=False)
    commands = parser.add_subparsers(metavar="COMMAND", title="commands")

    def command(name: str, run: Command, text: str, *examples: str) -> argparse.ArgumentParser:
        made = commands.add_parser(
            name,
            help=text,
            description=f"{text[0].upper()}{text[1:]}.",
            epilog=_examples(*examples),
            formatter_class=argparse.RawDescriptionHelpFormatter,
            allow_abbrev=False,
        )
        made.set_defaults(run=run)
        return made

    _add_run(
        command(
            "run",
            _run,
            "train under attack, compare algorithms, draw the curves",
            "byzadmm run",
            "byzadmm run --algorithm admm median --attack gaussian:std=50 -q 6",
            "byzadmm run --dataset mnist --algorithm admm --lam 0.1 --out run.npz",
            "byzadmm run --rule krum nnm+trimmed-mean -f 8 --momentum 0.9",
            "byzadmm run --partition dirichlet:0.3 --json",
        )
    )
    _add_reproduce(
        command(
            "reproduce",
            _reproduce,
            "the paper's figures and the table of its claims",
            "byzadmm reproduce fig1a fig2a",
            "byzadmm reproduce all --seeds 3 --out figures",
            "byzadmm reproduce my.toml --quick",
        )
    )
    _add_tune(
        command(
            "tune",
            _tune,
            "search step sizes for a figure on a validation split",
            "byzadmm tune fig2a --budget 24",
            "byzadmm tune my.toml --algorithms rsa median",
            "byzadmm tune fig2a --check",
        )
    )
    data = command(
        "data",
        _data,
        "list the data sets, fetch one, show where files are looked for",
        "byzadmm data list",
        "byzadmm data fetch mnist",
        "byzadmm data path",
    )
    data.add_argument("action", metavar="list|fetch|path")
    data.add_argument("name", nargs="?", metavar="NAME", help="data set to fetch")
    data.add_argument("--data-dir", metavar="DIR", help="look here first")
    data.add_argument("--json", action="store_true", help="print JSON")
    names = command(
        "list",
        _list,
        "names of algorithms, attacks, rules or figures",
        "byzadmm list attacks",
        "byzadmm list rules --json",
    )
    names.add_argument("what", metavar="|".join(_LISTS))
    names.add_argument("--json", action="store_true", help="print JSON")
    info = command("info", _info, "version, instruction set, threads, data and extras", "byzadmm info --json")
    info.add_argument("--json", action="store_true", help="print JSON")
    info.add_argument("--data-dir", metavar="DIR", help="look for data here first")
    lines = (MPIRUN, "srun --mpi=pmix -n 21 byzadmm mpi run my.toml --checkpoint states")
    mpi = command("mpi", lambda args: _help(mpi), "the same with the workers on other processes and machines", *lines)
    train = mpi.add_subparsers(metavar="run", title="commands").add_parser(
        "run",
        help="train under attack; rank 0 is the master, the workers are spread over the others",
        description="Train under attack; rank 0 is the master, the workers are spread over the other ranks.",
        epilog=_examples(*lines),
        formatter_class=argparse.RawDescriptionHelpFormatter,
        allow_abbrev=False,
    )
    train.set_defaults(run=_mpi_run)
    _add_run(train)
    _add_mpi(train)
    return parser


def _add_run(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("settings", nargs="?", metavar="FILE.toml", help="a settings file, or a figure such as fig1a")
    what = parser.add_argument_group("experiment")
    what.add_argument("--dataset", default="digits", metavar="NAME", help="see `byzadmm data list` (digits)")
    what.add_argument(
        "--algorithm", nargs="+", metavar="NAME", help="see `byzadmm list algorithms` (the paper's five); Ideal joins"
    )
    what.add_argument(
        "--rule", nargs="+", metavar="RULE", help="sgd with these rules, as in krum, nnm+krum or trimmed-mean:f=8"
    )
    what.add_argument("-f", type=int, metavar="F", help="liars that the rules are told to bear (Q)")
    what.add_argument("--attack", default="sign-flip", help="as in gaussian:std=50; none for no attack (sign-flip)")
    what.add_argument("-q", "--n-byzantine", type=int, default=8, metavar="Q", help="Byzantine workers (8)")
    what.add_argument("--n-workers", type=int, default=20, metavar="M", help="workers in all (20)")
    what.add_argument("--partition", default="iid", help="iid, by-label or dirichlet:ALPHA (iid)")
    what.add_argument("--scale", help="a number for every feature, or raw, unit, standard")
    what.add_argument("--seed", type=int, default=0, metavar="N", help="seed of partition and run (0)")
    what.add_argument("--data-dir", metavar="DIR", help="look for data here first")
    how = parser.add_argument_group("training (without these: settings that suit the data set)")
    how.add_argument("--iterations", type=int, metavar="N", help="iterations (1000)")
    how.add_argument("--batch-size", type=int, default=32, metavar="B", help="samples per worker and iteration (32)")
    how.add_argument("--rho", type=float, default=0.01, help="weight of the master's regulariser (0.01)")
    how.add_argument("--lam", type=float, help="weight of the TV norm (ADMM, RSA)")
    how.add_argument("--beta", type=float, help="penalty parameter (ADMM)")
    how.add_argument("--step", help="step size of RSA and SGD: 0.1, power:0.5, inv-sqrt:10,1")
    how.add_argument("--master-step", metavar="STEP", help="step size of the master (ADMM, RSA)")
    how.add_argument("--worker-step", metavar="STEP", help="step size of the workers (ADMM, RSA)")
    how.add_argument("--momentum", type=float, metavar="BETA", help="workers' momentum (SGD, any rule)")
    how.add_argument("--variance-reduction", metavar="saga", help="Byrd-SAGA (SGD, any rule)")
    how.add_argument("--dtype", default="float32", help="float32 or float64 (float32)")
    how.add_argument("--threads", type=int, default=0, metavar="N", help="runs side by side (0: one per CPU)")
    out = parser.add_argument_group("output")
    out.add_argument("--eval-every", type=int, metavar="N", help="iterations between evaluations (a 20th of all)")
    drawn = out.add_mutually_exclusive_group()
    drawn.add_argument("--plot", metavar="FILE", help=f"picture: .png, .svg or .pdf ({PICTURE}; none with --json)")
    drawn.add_argument("--no-plot", action="store_true", help="no picture")
    out.add_argument("--out", metavar="FILE.npz", help="keep the result of the one algorithm that was run")
    out.add_argument("--json", action="store_true", help="print JSON, curves included")
    out.add_argument("--quiet", action="store_true", help="the table only: no progress, no remarks")


def _add_mpi(parser: argparse.ArgumentParser) -> None:
    ranks = parser.add_argument_group("ranks (--threads is their number per rank)")
    ranks.add_argument("--deadline", type=float, default=10.0, metavar="SECONDS", help="wait so long for answers (10)")
    ranks.add_argument(
        "--patience", type=float, default=120.0, metavar="SECONDS", help="limit of each stage before round 1 (120)"
    )
    ranks.add_argument("--wire", metavar="TYPE", help="float32 or float64 on the way (that of the run)")
    ranks.add_argument("--checkpoint", metavar="DIR", help="keep states there; the same command goes on from them")
    ranks.add_argument(
        "--live", action="store_true", help="progress five times a second on the terminal, else a line every second"
    )
    ranks.add_argument("--timeline", metavar="FILE", help="picture of who answered when: .png, .svg or .pdf")


def _add_reproduce(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("names", nargs="*", metavar="NAME", help="see `byzadmm list figures`, or settings files (all)")
    parser.add_argument("--seeds", type=int, default=3, metavar="N", help="seeds to average over (3)")
    parser.add_argument("--quick", action="store_true", help="fewer iterations: a look, not the paper's experiment")
    parser.add_argument("--out", default="figures", metavar="DIR", help="folder for pictures and numbers (figures)")
    parser.add_argument("--data-dir", metavar="DIR", help="look for data here first")
    parser.add_argument("--quiet", action="store_true", help="no progress, no remarks")
    parser.add_argument("--json", action="store_true", help="print JSON: claims, final accuracies, files")


def _add_tune(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("name", metavar="FIGURE|FILE.toml", help="a figure, or a settings file of your own")
    parser.add_argument("--algorithms", nargs="+", metavar="NAME", help="only these")
    parser.add_argument("--budget", type=int, metavar="N", help="trials per algorithm (that of the file)")
    parser.add_argument("--seed", type=int, metavar="N", help="seed of the search (that of the file)")
    parser.add_argument("--data-dir", metavar="DIR", help="look for data here first")
    parser.add_argument("--out", metavar="FILE.toml", help="settings file to write")
    parser.add_argument("--check", action="store_true", help="only compare the settings with the journal's best")
    parser.add_argument("--quiet", action="store_true", help="no progress")
    parser.add_argument("--json", action="store_true", help="print JSON: what was found, and where it is kept")


def _examples(*lines: str) -> str:
    return "\n".join(["examples:", *(f"  {line}" for line in lines)])


def _help(parser: argparse.ArgumentParser) -> int:
    parser.print_help()
    return 0


# --- run -------------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class _Plan:
    """What a command line asks for, checked: runs by name, and where their results go."""

    runs: dict[str, dict[str, Any]]
    title: str
    about: dict[str, Any]
    out: Path | None = None
    picture: Path | None = None
    no_picture: str = ""

    @property
    def chosen(self) -> list[str]:
        """Without the reference."""
        return [name for name in self.runs if name != "ideal"] or ["ideal"]


Many = Callable[[dict[str, dict[str, Any]], Callable[[int, Result | Exception], None]], None]


def _run(args: argparse.Namespace) -> int:
    threads = check_int(args.threads, "threads", low=0)

    def many(runs: dict[str, dict[str, Any]], keep: Callable[[int, Result | Exception], None]) -> None:
        simulate_many(list(runs.values()), threads or None, progress=None if args.quiet else True, on_result=keep)

    return _carry_out(args, _plan(args), many)


def _plan(args: argparse.Namespace) -> _Plan:
    picture, no_picture = _picture_path(args)
    out = None if args.out is None else _ending(args.out, "out", (".npz",))
    plan = (_plan_of_options if args.settings is None else _plan_of_file)(args)
    plan = replace(plan, out=out, picture=picture, no_picture=no_picture)
    if out is not None and len(plan.chosen) > 1:
        raise ValueError(f"out: expected one algorithm, got {len(plan.chosen)}; choose it with --algorithm")
    return plan


def _plan_of_options(args: argparse.Namespace) -> _Plan:
    dataset_name = check_choice(comparison.kebab(args.dataset), "dataset", catalogue.PRESETS)
    preset = catalogue.PRESETS[dataset_name]
    q = check_int(args.n_byzantine, "n_byzantine", low=0, high=check_int(args.n_workers, "n_workers", low=1))
    algorithms = _algorithms(args, preset, q)
    attack = comparison.make_attack(args.attack)
    total = check_int(preset.iterations if args.iterations is None else args.iterations, "iterations", low=1)
    data = datasets.load(dataset_name.replace("-", "_"), data_dir=args.data_dir, scale=_scale(args.scale, preset))
    if args.scale is not None:  # for which the preset is not
        algorithms = _algorithms(args, _preset_for(data, preset, args.quiet), q)
    common = {
        "dataset": data,
        "parts": _parts(args, data.train_y),
        "attack": attack,
        "n_byzantine": q,
        "iterations": total,
        "batch_size": args.batch_size,
        "rho": args.rho,
        "eval_every": max(1, total // 20) if args.eval_every is None else args.eval_every,
        "seed": args.seed,
        "dtype": args.dtype,
    }
    return _Plan(
        runs={name: common | {"algorithm": algorithm} for name, algorithm in algorithms.items()},
        title=f"{dataset_name}, {args.attack} attack, {q} of {args.n_workers} workers Byzantine",
        about={"dataset": dataset_name, "attack": args.attack, "n_byzantine": q, "n_workers": args.n_workers},
    )


#: Options that go with a settings file; it has the others itself.
_BESIDE_A_FILE = {"settings", "algorithm", "seed", "data_dir", "iterations", "eval_every", "dtype", "threads"}
_BESIDE_A_FILE |= {"plot", "no_plot", "out", "json", "quiet"}


def _plan_of_file(args: argparse.Namespace) -> _Plan:
    defaults = _Parser()
    _add_run(defaults)
    for name, value in vars(defaults.parse_args([])).items():
        if name not in _BESIDE_A_FILE and getattr(args, name) != value:
            raise ValueError(f"{name}: is in the settings file {args.settings}")
    settings = _figures().load_settings(args.settings)
    seed = check_int(args.seed, "seed", low=0)
    runs: dict[str, dict[str, Any]] = _figures().runs_of(settings, seed=seed, data_dir=args.data_dir)
    if args.algorithm is not None:
        for name in args.algorithm:
            check_choice(name, "algorithm", runs)
        runs = {name: run for name, run in runs.items() if name in args.algorithm}
    given = {"iterations": args.iterations, "eval_every": args.eval_every}
    changes = {name: value for name, value in given.items() if value is not None}
    if args.dtype != defaults.get_default("dtype"):
        changes["dtype"] = args.dtype
    return _Plan(
        runs={name: run | changes for name, run in runs.items()},
        title=settings.title,
        about={
            "dataset": settings.dataset,
            "attack": [attack and attack.describe() for attack in settings.attacks],
            "n_byzantine": settings.n_byzantine,
            "n_workers": settings.n_workers,
        },
    )


def _carry_out(args: argparse.Namespace, plan: _Plan, many: Many, more: Callable[[], dict[str, Any]] = dict) -> int:
    """Run, print, save. ``more`` gives what else belongs into the JSON."""
    plan = _tried(args, plan)
    ended: dict[str, Result | Exception] = {}
    names = list(plan.runs)

    def keep(number: int, result: Result | Exception) -> None:
        ended[names[number]] = result

    stopped = False
    try:
        many(plan.runs, keep)
    except KeyboardInterrupt:
        stopped = True
    finished = [(name, run) for name in names if isinstance(run := ended.get(name), Result)]
    failed = {name: run for name, run in ended.items() if isinstance(run, Exception)}
    if all(isinstance(failed.get(name), (TypeError, ValueError)) for name in plan.chosen):
        raise failed[plan.chosen[0]]  # a setting that none can take: said once, and Ideal alone is no comparison
    if len(failed) == len(names):
        raise next(iter(failed.values()))
    try:
        if finished and not args.json:
            _print_runs(finished, plan.title)
    finally:  # also if nobody reads the table
        saved, unsaved = _save(finished, plan)
    if args.json:
        ran = {"seed": args.seed, "interrupted": stopped, "runs": _records(finished), "saved": saved}
        _print_json(plan.about | ran | more())
    if not args.quiet:
        remark(*(f"saved {path}" for path in saved))
        if plan.no_picture:
            remark(f"no picture: {plan.no_picture}")
    if stopped:
        remark(f"byzadmm: interrupted; {len(finished)} of {len(names)} runs were finished")
        return INTERRUPTED
    for name, error in failed.items():
        _say_error(error, "" if str(error).startswith(f"{name}:") else f"{name}: ")
    return BAD_INPUT if failed else 1 if unsaved else 0


def _preset_for(data: datasets.Dataset, otherwise: catalogue.Preset, quiet: bool) -> catalogue.Preset:
    """Settings for the data as scaled; where none can be derived, a remark and those of the data set."""
    try:
        return catalogue.preset_for(data)
    except ValueError as error:
        remark(*([] if quiet else [str(error)]))
        return otherwise


def _algorithms(args: argparse.Namespace, preset: catalogue.Preset, q: int) -> dict[str, Algorithm]:
    """Ideal first, as the line that the others are measured by."""
    named = args.algorithm or (["sgd"] if args.rule else comparison.PAPER)
    wanted = list(dict.fromkeys(name.lower() for name in named))
    if args.rule and "sgd" not in wanted:
        raise ValueError(f"rule: is for --algorithm sgd, got --algorithm {' '.join(wanted)}")
    options: dict[str, Any] = {name: getattr(args, name) for name in _OPTIONS}
    for name in ("step", "master_step", "worker_step"):
        options[name] = None if options[name] is None else comparison.make_step(options[name], name)
    made: dict[str, Algorithm] = {"ideal": comparison.make_algorithm("ideal", preset, q, options)}
    for name in wanted:
        for source in args.rule if name == "sgd" and args.rule else [name]:
            if name == "sgd" and args.rule:
                comparison.make_rule(source, q)  # what is wrong with it is wrong with the rule
            made["sgd" if source == "mean" else comparison.kebab(source)] = comparison.make_algorithm(
                source, preset, q, options
            )
    chosen = {name: algorithm for name, algorithm in made.items() if name != "ideal" or len(made) == 1}
    known = {field for algorithm in chosen.values() for field in _fields(algorithm)}
    if not any(map(comparison.takes_f, chosen.values())):
        known.discard("f")
    for name in _OPTIONS:
        if options[name] is not None and name not in known:
            raise ValueError(f"{name}: none of {', '.join(chosen)} has it")
    _check_f(list(chosen.values()), args.n_workers)
    return made


def _check_f(chosen: Sequence[Algorithm], n: int) -> None:
    """If no rule bears its ``f``, there is nothing to compare: said before anything runs."""
    illegal = []
    for algorithm in chosen:
        try:
            algorithm.check(n)
        except ValueError as error:
            illegal.append(error)
    if len(illegal) == len(chosen):
        raise illegal[0]


def _fields(algorithm: Algorithm) -> Iterable[str]:
    return getattr(algorithm, "__dataclass_fields__", ())


def _parts(args: argparse.Namespace, labels: Any) -> Any:
    table = comparison.partition_table()
    given = {"y": labels, "n_workers": args.n_workers, "seed": args.seed}
    name, settings = comparison.build(
        args.partition, "partition", table, given=list(given), defaults={"alpha": DIRICHLET_ALPHA}
    )
    return table[name](**given, **settings)


def _scale(text: str | None, preset: catalogue.Preset) -> Any:
    if text is None:
        return preset.scale
    try:
        return float(text)
    except ValueError:
        return check_choice(text, "scale", ("raw", "unit", "standard"))


def _picture_path(args: argparse.Namespace) -> tuple[Path | None, str]:
    """Where the picture goes, or None and why there is none though nobody said so."""
    if args.no_plot or (args.plot is None and args.json):
        return None, ""
    if args.plot is not None:
        return _drawable(args.plot, "plot"), ""
    if importlib.util.find_spec("matplotlib") is None:
        return None, "matplotlib is missing; pip install 'byzadmm[plot]'"
    return Path(PICTURE), ""


def _drawable(name: str, what: str) -> Path:
    if importlib.util.find_spec("matplotlib") is None:
        raise ValueError(f"{what}: matplotlib is missing; pip install 'byzadmm[plot]'")
    return _ending(name, what, _PICTURES)


def _ending(name: str, what: str, endings: Sequence[str]) -> Path:
    path = Path(name)
    if path.suffix.lower() not in endings:
        raise ValueError(f"{what}: expected a name ending in {', '.join(endings)}; got {name!r}")
    return path


def _tried(args: argparse.Namespace, plan: _Plan) -> _Plan:
    """The plan, if its files can be written; without the picture that nobody asked for if that alone cannot."""
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


def _save(finished: list[tuple[str, Result]], plan: _Plan) -> tuple[list[str], list[str]]:
    """Write result and picture; returns what was written and what was not."""
    saved: list[str] = []
    unsaved: list[str] = []
    keep = dict(finished).get(plan.chosen[0])
    if plan.out is not None and keep is not None:
        (saved if _written("out", plan.out, keep.save, fallback=True) else unsaved).append(str(plan.out))
    if plan.picture is not None and finished:
        draw = functools.partial(comparison.draw, results=finished, title=plan.title)
        (saved if _written("plot", plan.picture, draw) else unsaved).append(str(plan.picture))
    return saved, unsaved


def _written(what: str, path: Path, write: Callable[[Path], None], *, fallback: bool = False) -> bool:
    """Whether ``write(path)`` succeeded; why not is said, and with ``fallback`` it is written elsewhere."""
    try:
        write(path)
    except Exception as error:  # whatever it is, the rest of what was computed is not to be lost with it
        instead = ""
        if fallback:
            folder = Path(tempfile.mkdtemp(prefix="byzadmm-"))
            try:
                write(folder / path.name)
                instead = f"; saved {folder / path.name} instead"
            except Exception:
                shutil.rmtree(folder, ignore_errors=True)
        _say_error(error, f"{what}: cannot write {str(path)!r}{instead}: ")
        return False
    return True


def _records(finished: list[tuple[str, Result]]) -> list[dict[str, Any]]:
    ideal = _ideal(finished)
    return [
        {
            "algorithm": name,
            "accuracy": run.final_accuracy(),
            "loss": run.loss[-1],
            "iterations": int(run.iterations[-1]),
            "seconds": run.seconds,
            "eliminated": run.eliminated,
            "verdict": "reference" if name == "ideal" else comparison.verdict(run.final_accuracy(), ideal),
            "settings": run.config["algorithm"],
            "curves": {"iterations": run.iterations, "accuracy": run.accuracy, "loss": run.loss},
        }
        for name, run in finished
    ]


def _ideal(finished: list[tuple[str, Result]]) -> float | None:
    return next((run.final_accuracy() for name, run in finished if name == "ideal"), None)


def _print_runs(finished: list[tuple[str, Result]], title: str) -> None:
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
    _print_table(columns, rows, title)


def _short(number: float) -> str:
    """At most six characters, so that the table fits."""
    return f"{number:.0f}" if 100 <= number < 1e6 else f"{number:.3g}" if number < 100 else f"{number:.0e}"


# --- reproduce, tune -------------------------------------------------------------------------------------------------


def _figures() -> Any:
    """Imported when asked for: the other commands do without it."""
    return importlib.import_module("byzadmm.figures")


def _reproduce(args: argparse.Namespace) -> int:
    figures = _figures()
    names = list(args.names) or ["all"]
    if "all" in names:
        names = [name for name, _ in figures.available()]
    seeds = check_int(args.seeds, "seeds", low=1)
    report = figures.reproduce(
        names, seeds=seeds, quick=args.quick, out=args.out, data_dir=args.data_dir, progress=not args.quiet
    )
    if args.json:
        claims = [claim.record() for claim in report.claims]
        about = {"seeds": report.seeds, "quick": report.quick, "seconds": report.seconds}
        files = [str(path) for path in report.paths]
        about |= {"interrupted": report.interrupted, "failed": report.failed}
        finals = [row for panel in report.panels.values() for row in panel.finals()]
        _print_json(about | {"claims": claims, "finals": finals, "files": files})
    else:
        print(report.table())
        if not args.quiet:
            remark(*(f"saved {path}" for path in report.paths))
    if report.interrupted:
        remark(f"byzadmm: interrupted; what was finished is in {args.out}")
        return INTERRUPTED
    return 1 if report.failed else 0


def _tune(args: argparse.Namespace) -> int:
    figures = _figures()
    try:
        found = figures.tune(
            args.name,
            algorithms=args.algorithms,
            budget=args.budget,
            seed=args.seed,
            data_dir=args.data_dir,
            out=args.out,
            check=args.check,
            progress=not args.quiet,
        )
    except KeyboardInterrupt:
        remark("byzadmm: interrupted; the same command goes on from the journal")
        return INTERRUPTED
    if args.json:
        files = {"settings": str(found.settings), "journal": str(found.journal)}
        _print_json(files | {"best": found.best, "differences": found.differences})
    else:
        print(found.table())
    for difference in found.differences:
        remark(f"byzadmm: differs: {difference}")
    return 1 if found.differences else 0


# --- data, list, info, mpi -------------------------------------------------------------------------------------------


def _data(args: argparse.Namespace) -> int:
    action = check_choice(args.action, "data", ("list", "fetch", "path"))
    if (action == "fetch") != (args.name is not None):
        raise ValueError("data: expected `data list`, `data fetch NAME` or `data path`")
    if action == "list":
        rows = [row._asdict() | {"name": comparison.kebab(row.name)} for row in datasets.available(args.data_dir)]
        if args.json:
            _print_json(rows)
        else:
            cells = [[row["name"], row["where"] or "not here", _size(row["bytes"]), row["licence"]] for row in rows]
            _print_table(["name", "where", ">size", "licence"], cells, "Data sets")
        return 0
    if action == "path":
        paths = datasets.search_path(args.data_dir)
    else:
        name = check_choice(comparison.kebab(args.name), "name", catalogue.PRESETS)
        paths = datasets.fetch(name.replace("-", "_"), data_dir=args.data_dir)
        if not paths:
            remark(f"{name}: nothing to fetch, it is always there")
    if args.json:
        _print_json([str(path) for path in paths])
    else:
        for path in paths:
            print(path)
    return 0


def _size(count: int) -> str:
    return "-" if count == 0 else f"{count / 1e6:.1f} MB" if count >= 1e6 else f"{count / 1e3:.0f} kB"


def _list_algorithms() -> list[dict[str, str]]:
    about = {
        "admm": ("lam, beta, master-step, worker-step", _first_line(ADMM)),
        "rsa": ("lam, step or master-step, worker-step", _first_line(RSA)),
        "sgd": ("step, rule, f, momentum, variance-reduction", _first_line(SGD)),
        "ideal": ("step", "SGD without the Byzantine workers: the reference of every comparison."),
    }
    for name, rule in comparison.rule_table().items():
        about[name] = ("those of sgd", f"SGD with this rule. {_first_line(rule)}")
    return [
        {"name": name, "settings": about[name][0], "about": about[name][1]} for name in comparison.algorithm_names()
    ]


def _list_attacks() -> list[dict[str, str]]:
    none = {"name": "none", "settings": "", "about": "The Byzantine workers are honest."}
    return [*(_described(name, cls) for name, cls in comparison.attack_table().items()), none]


def _list_rules() -> list[dict[str, Any]]:
    rows: list[dict[str, Any]] = []
    for kind, table in (("rule", aggregators.RULES), ("pre-aggregation", aggregators.PRE_AGGREGATORS)):
        for name in table:
            described = _described(comparison.kebab(name), getattr(byzadmm.aggregate, name))
            rows.append({**described, "kind": kind, "max_f": byzadmm.max_f(name, _LIST_WORKERS), "n": _LIST_WORKERS})
    return rows


def _list_figures() -> list[dict[str, str]]:
    return [{"name": name, "settings": "", "about": title} for name, title in _figures().available()]


_LISTS: dict[str, Callable[[], list[dict[str, Any]]]] = {
    "algorithms": _list_algorithms,
    "attacks": _list_attacks,
    "rules": _list_rules,
    "figures": _list_figures,
}


def _described(name: str, part: Callable[..., Any]) -> dict[str, str]:
    settings = [
        key if item.default is item.empty else f"{key}={item.default}"
        for key, item in comparison.settings_of(part).items()
    ]
    return {"name": name, "settings": ", ".join(settings), "about": _first_line(part)}


def _first_line(part: Any) -> str:
    return (inspect.getdoc(part) or "").partition("\n")[0].replace("`", "")


def _list(args: argparse.Namespace) -> int:
    what = check_choice(args.what, "list", _LISTS)
    rows = _LISTS[what]()
    if args.json:
        _print_json(rows)
        return 0
    heads = {"name": "name", "max_f": f">f of {_LIST_WORKERS}", "settings": "settings", "about": "about"}
    columns = {key: head for key, head in heads.items() if any(row.get(key) for row in rows)}
    cells = [[str(row[key]) for key in columns] for row in rows]
    _print_table(list(columns.values()), cells, what.capitalize())
    if what == "rules":
        remark("pre-aggregations, the last three, come before a rule: byzadmm run --rule nnm+krum")
    return 0


def _info(args: argparse.Namespace) -> int:
    facts: dict[str, Any] = {
        "version": byzadmm.__version__,
        "python": platform.python_version(),
        "numpy": importlib.metadata.version("numpy"),
        "machine": f"{platform.system()} {platform.machine()}",
        "instruction set": _core.isa,
        "instruction sets built": list(_isa.built()),
        "threads": _core.max_threads(),
        "openmp": _core.openmp,
        "data": {comparison.kebab(row.name): row.where for row in datasets.available(args.data_dir)},
        "extras": {extra: _versions(packages) for extra, packages in _EXTRAS.items()},
    }
    if args.json:
        _print_json(facts)
        return 0
    rows = []
    for name, value in facts.items():
        if isinstance(value, dict):
            absent = "not here" if name == "data" else "not installed"
            rows += [[f"{name}: {key}", found or absent] for key, found in value.items()]
        else:
            rows.append([name, ", ".join(value) if isinstance(value, list) else str(value)])
    _print_table(["", ""], rows, "byzadmm")
    return 0


def _versions(packages: Sequence[str]) -> str | None:
    """Names and versions, or None if one of them is missing."""
    try:
        return ", ".join(f"{package} {importlib.metadata.version(package)}" for package in packages)
    except importlib.metadata.PackageNotFoundError:
        return None


def _mpi_run(args: argparse.Namespace) -> int:
    from byzadmm.engines.mpi import Job

    os.environ["TERM"] = "dumb"  # mpirun gives every rank a terminal, whether there is one or not
    job = Job(deadline=args.deadline, patience=args.patience)
    if job.is_master:
        code = _guarded(lambda: _mpi_master(args, job))
    else:
        code = 0  # whether the run was good is the master's to say
        _guarded_silently(lambda: _mpi_worker(args, job))
    job.leave(code)
    return code


def _guarded_silently(run: Callable[[], None]) -> None:
    """The master has been told by the engine; on a cluster, one line from each rank would be a hundred."""
    with contextlib.suppress(ValueError, TypeError, OSError, ImportError, KeyboardInterrupt):
        run()


def _mpi_settings(args: argparse.Namespace, name: str) -> dict[str, Any]:
    settings: dict[str, Any] = {"wire": args.wire, "threads": check_int(args.threads, "threads", low=0) or 1}
    if args.checkpoint is not None:
        settings["checkpoint"] = Path(args.checkpoint) / f"{name.replace(os.sep, '-')}.npz"
    return settings


def _mpi_worker(args: argparse.Namespace, job: Any) -> None:
    with job:
        for name, run in _plan(args).runs.items():
            job.simulate(**{"dataset": None, "parts": None} | run | _mpi_settings(args, name))


def _mpi_master(args: argparse.Namespace, job: Any) -> int:
    from byzadmm._internal.progress import Bar
    from byzadmm.engines.report import COLUMNS, RunReport

    reports: dict[str, RunReport] = {}

    def many(runs: dict[str, dict[str, Any]], keep: Callable[[int, Result | Exception], None]) -> None:
        for number, (name, run) in enumerate(runs.items()):
            bar = None if args.quiet else Bar(name, args.live)
            told = 0

            def watch(done: int, report: RunReport, bar: Bar | None = bar, total: int = run["iterations"]) -> None:
                nonlocal told
                if bar is not None:
                    if told < len(report.events):
                        bar.clear()
                        remark(*(str(event) for event in report.events[told:]))
                        told = len(report.events)
                    bar.update(done, total, report.line)

            try:
                settings = {"dataset": None, "parts": None} | run | _mpi_settings(args, name)
                keep(number, job.simulate(**settings, watch=watch))
                reports[name] = job.report
            except (ValueError, TypeError, OSError) as error:
                keep(number, error)
            finally:
                if bar is not None:
                    bar.close()

    with job:
        with job.watched("loading its data"):
            plan = _plan(args)
        timeline = None if args.timeline is None else _drawable(args.timeline, "timeline")
        record = None if plan.out is None else plan.out.with_suffix(".mpi.json")
        for what, path in (("timeline", timeline), ("out", record)):
            if path is not None:
                prepare(path, what)
        if args.checkpoint is not None:
            prepare_folder(args.checkpoint, "checkpoint")
        if not (job.tolerant or args.quiet):
            remark("mpirun without --with-ft ulfm: a rank that dies ends the job")
        code = _carry_out(args, plan, many, lambda: {"mpi": {name: run.record() for name, run in reports.items()}})
        kept = reports.get(plan.chosen[0])
        if reports and not args.json:
            whole = RunReport.together(list(reports.values()))
            _print_table(COLUMNS, whole.rows(), f"\n{job.size - 1} worker ranks, {whole.rounds} rounds")
        if kept is not None and record is not None:
            code = max(code, _also_written(args, "out", record, kept.save))
        if kept is not None and timeline is not None:
            draw = functools.partial(kept.draw, title=f"{plan.chosen[0]}: {plan.title}")
            code = max(code, _also_written(args, "timeline", timeline, draw))
        return code


def _also_written(args: argparse.Namespace, what: str, path: Path, write: Callable[[Path], None]) -> int:
    """The exit code of writing one more file."""
    if not _written(what, path, write):
        return 1
    remark(*([] if args.quiet else [f"saved {path}"]))
    return 0


# --- printing --------------------------------------------------------------------------------------------------------


def _print_table(columns: Sequence[str], rows: Sequence[Sequence[str]], title: str) -> None:
    """A column whose name begins with ``>`` is aligned to the right."""
    from rich import box
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    headed = any(columns)
    table = Table(box=box.SIMPLE_HEAD, title=Text(title), title_justify="left", show_header=headed)
    table.padding, table.show_edge, table.pad_edge = (0, 1, 0, 0), False, False
    for number, name in enumerate(columns):
        # A name or a number that is broken over two lines is hard to read; the other text can be.
        right = name[:1] == ">"
        table.add_column(Text(name.lstrip(">")), justify="right" if right else "left", no_wrap=right or number == 0)
    for row in rows:
        table.add_row(Text(_in_lines(row[0])), *(Text(cell) for cell in row[1:]))
    with _output():
        Console(highlight=False).print(table)


def _in_lines(name: str) -> str:
    """A long chain of rules is broken after its plus signs, so that the numbers beside it keep their room."""
    lines = [""]
    for link in re.split(r"(?<=[+])", name):
        if lines[-1] and len(lines[-1] + link) > _NAME_WIDTH:
            lines.append(" ")
        lines[-1] += link
    return "\n".join(lines)


def _print_json(value: Any) -> None:
    text = json.dumps(_plain(value), indent=2, allow_nan=False)
    with _output():
        print(text)


def _plain(value: Any) -> Any:
    """JSON has no NaN and no infinity: null stands for them."""
    if isinstance(value, dict):
        return {str(key): _plain(item) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [_plain(item) for item in value]
    if hasattr(value, "tolist"):
        return _plain(value.tolist())
    return None if isinstance(value, float) and not math.isfinite(value) else value


class _OutputError(OSError):
    """Standard output cannot be written."""


@contextlib.contextmanager
def _output() -> Iterator[None]:
    """What is printed here is written at the end; that it cannot be is told apart from other errors of files."""
    try:
        yield
        sys.stdout.flush()
    except BrokenPipeError:
        raise
    except OSError as error:
        raise _OutputError(f"standard output: {error.strerror or error}") from error


def _drop_stdout() -> None:
    """Without this, Python's own flush at exit would complain about the closed pipe."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
