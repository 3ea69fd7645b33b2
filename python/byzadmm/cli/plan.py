"""What a command line of ``run`` asks for: the runs, and where their results go."""

from __future__ import annotations

import argparse
import importlib.util
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from byzadmm import catalogue
from byzadmm._internal.progress import remark
from byzadmm._internal.validation import check_choice, check_int
from byzadmm.algorithms import Algorithm
from byzadmm.cli.options import PICTURE, run_defaults
from byzadmm.cli.reproduce import figures
from byzadmm.datasets import Dataset
from byzadmm.datasets._scaling import check_scale

#: Name -> arguments of ``simulate``.
Runs = dict[str, dict[str, Any]]

_PICTURES = (".png", ".svg", ".pdf")

# Options that go with a settings file; the file has the others itself.
_BESIDE_A_FILE = {"settings", "algorithm", "seed", "data_dir", "iterations", "eval_every", "dtype"}
_BESIDE_A_FILE |= {"plot", "no_plot", "out", "json", "quiet"}


@dataclass(frozen=True)
class Plan:
    """The runs of a command line, checked as far as possible without training.

    Attributes
    ----------
    runs : dict
    title : str
    about : dict
        What the JSON says about all runs.
    out, picture : Path or None
        Where the result of the one chosen algorithm and the curves go.
    no_picture : str
        Why there is no picture although the command line did not say so.
    """

    runs: Runs
    title: str
    about: dict[str, Any]
    out: Path | None = None
    picture: Path | None = None
    no_picture: str = ""

    @property
    def chosen(self) -> list[str]:
        """The runs without the reference."""
        return [name for name in self.runs if name != "ideal"] or ["ideal"]


def make_plan(args: argparse.Namespace) -> Plan:
    """The plan of the options, or of a settings file and the options beside it."""
    picture, no_picture = _picture_path(args)
    out = None if args.out is None else _ending(args.out, "out", (".npz",))
    plan = (_plan_of_options if args.settings is None else _plan_of_file)(args)
    plan = replace(plan, out=out, picture=picture, no_picture=no_picture)
    if out is not None and len(plan.chosen) > 1:
        raise ValueError(f"out: expected one algorithm, got {len(plan.chosen)}; choose it with --algorithm")
    return plan


def _plan_of_options(args: argparse.Namespace) -> Plan:
    name = catalogue.dataset_name(args.dataset)
    preset = catalogue.PRESETS[name]
    q = check_int(args.n_byzantine, "n_byzantine", low=0, high=check_int(args.n_workers, "n_workers", low=1))
    algorithms = _algorithms(args, preset, q)
    attack = catalogue.make_attack(args.attack)
    iterations = check_int(preset.iterations if args.iterations is None else args.iterations, "iterations", low=1)
    data = catalogue.load_dataset(name, data_dir=args.data_dir, scale=_scale(args.scale, preset))
    if args.scale is not None:  # the preset is for another scale
        algorithms = _algorithms(args, _preset_for(data, preset, args.quiet), q)
    common = {
        "dataset": data,
        "parts": _parts(args, data),
        "attack": attack,
        "n_byzantine": q,
        "iterations": iterations,
        "batch_size": args.batch_size,
        "rho": args.rho,
        "eval_every": max(1, iterations // 20) if args.eval_every is None else args.eval_every,
        "seed": args.seed,
        "dtype": args.dtype,
    }
    return Plan(
        runs={name: common | {"algorithm": algorithm} for name, algorithm in algorithms.items()},
        title=f"{name}, {args.attack} attack, {q} of {args.n_workers} workers Byzantine",
        about={"dataset": name, "attack": args.attack, "n_byzantine": q, "n_workers": args.n_workers},
    )


def _plan_of_file(args: argparse.Namespace) -> Plan:
    defaults = run_defaults()
    for name, value in vars(defaults).items():
        if name not in _BESIDE_A_FILE and getattr(args, name) != value:
            raise ValueError(f"{name}: is in the settings file {args.settings}")
    settings = figures().load_settings(args.settings)
    seed = check_int(args.seed, "seed", low=0)
    runs: Runs = figures().runs_of(settings, seed=seed, data_dir=args.data_dir)
    if args.algorithm is not None:
        for name in args.algorithm:
            check_choice(name, "algorithm", runs)
        runs = {name: run for name, run in runs.items() if name in args.algorithm}
    given = {"iterations": args.iterations, "eval_every": args.eval_every}
    changes = {name: value for name, value in given.items() if value is not None}
    if args.dtype != defaults.dtype:
        changes["dtype"] = args.dtype
    return Plan(
        runs={name: run | changes for name, run in runs.items()},
        title=settings.title,
        about={
            "dataset": settings.dataset,
            "attack": [attack and attack.describe() for attack in settings.attacks],
            "n_byzantine": settings.n_byzantine,
            "n_workers": settings.n_workers,
        },
    )


def _preset_for(data: Dataset, otherwise: catalogue.Preset, quiet: bool) -> catalogue.Preset:
    """Settings for the data as scaled; where none can be derived, a remark and those of the data set."""
    try:
        return catalogue.preset_for(data)
    except ValueError as error:
        remark(*([] if quiet else [str(error)]))
        return otherwise


def _algorithms(args: argparse.Namespace, preset: catalogue.Preset, q: int) -> dict[str, Algorithm]:
    """The algorithms by name; Ideal SGD, the reference of the others, comes first."""
    named = args.algorithm or (["sgd"] if args.rule else catalogue.PAPER)
    wanted = list(dict.fromkeys(name.lower() for name in named))
    if args.rule and "sgd" not in wanted:
        raise ValueError(f"rule: is for --algorithm sgd, got --algorithm {' '.join(wanted)}")
    options: dict[str, Any] = {name: getattr(args, name) for name in catalogue.options()}
    for name in ("step", "master_step", "worker_step"):
        options[name] = None if options[name] is None else catalogue.make_step(options[name], name)
    made: dict[str, Algorithm] = {"ideal": catalogue.make_algorithm("ideal", preset, q, options)}
    for name in wanted:
        for source in args.rule if name == "sgd" and args.rule else [name]:
            if name == "sgd" and args.rule:
                catalogue.make_rule(source, q)  # an error about the rule, not about the algorithm
            called = "sgd" if source == "mean" else catalogue.hyphenated(source)
            made[called] = catalogue.make_algorithm(source, preset, q, options)
    chosen = {name: algorithm for name, algorithm in made.items() if name != "ideal" or len(made) == 1}
    known = {field for algorithm in chosen.values() for field in getattr(algorithm, "__dataclass_fields__", ())}
    if not any(map(catalogue.takes_f, chosen.values())):
        known.discard("f")
    for name, value in options.items():
        if value is not None and name not in known:
            raise ValueError(f"{name}: none of {', '.join(chosen)} has it")
    _check_f(list(chosen.values()), args.n_workers)
    return made


def _check_f(chosen: Sequence[Algorithm], n: int) -> None:
    """If no rule tolerates its ``f``, there is nothing to compare: an error before anything runs."""
    illegal = []
    for algorithm in chosen:
        try:
            algorithm.check(n)
        except ValueError as error:
            illegal.append(error)
    if len(illegal) == len(chosen):
        raise illegal[0]


def _parts(args: argparse.Namespace, data: Dataset) -> Any:
    name, settings = catalogue.parse(args.partition, "partition", catalogue.PARTITIONS)
    # The defaults of the catalogue, under the settings of the text.
    settings = {**catalogue.PARTITIONS[name].settings, **settings}
    return catalogue.PARTITIONS[name].make(data.train_y, args.n_workers, seed=args.seed, **settings)


def _scale(text: str | None, preset: catalogue.Preset) -> Any:
    if text is None:
        return preset.scale
    try:
        return float(text)
    except ValueError:
        return check_scale(text)


def _picture_path(args: argparse.Namespace) -> tuple[Path | None, str]:
    """Where the picture goes, or None and the reason if the command line did not say so."""
    if args.no_plot or (args.plot is None and args.json):
        return None, ""
    if args.plot is not None:
        return drawable(args.plot, "plot"), ""
    if importlib.util.find_spec("matplotlib") is None:
        return None, "matplotlib is missing; pip install 'byzadmm[plot]'"
    return Path(PICTURE), ""


def drawable(name: str, what: str) -> Path:
    """The path of a picture; without matplotlib, and with another ending, a ValueError."""
    if importlib.util.find_spec("matplotlib") is None:
        raise ValueError(f"{what}: matplotlib is missing; pip install 'byzadmm[plot]'")
    return _ending(name, what, _PICTURES)


def _ending(name: str, what: str, endings: Sequence[str]) -> Path:
    path = Path(name)
    if path.suffix.lower() not in endings:
        raise ValueError(f"{what}: expected a name ending in {', '.join(endings)}; got {name!r}")
    return path
