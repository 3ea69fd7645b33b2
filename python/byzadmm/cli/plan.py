"""What a command line of ``run`` asks for: the runs, as the plan of a study, and where their results go."""

from __future__ import annotations

import argparse
import importlib.util
import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import product
from pathlib import Path
from typing import Any

from byzadmm import catalogue
from byzadmm._internal.description import describe
from byzadmm._internal.progress import remark
from byzadmm._internal.validation import check_choice, check_int
from byzadmm.algorithms import Algorithm
from byzadmm.cli.options import PICTURE, run_defaults
from byzadmm.cli.reproduce import figures
from byzadmm.datasets import Dataset
from byzadmm.datasets._scaling import check_scale
from byzadmm.delays import Delays
from byzadmm.graphs import Flaky, Graph
from byzadmm.study import Cell, Plan, make_plan
from byzadmm.study.choices import AlgorithmChoice, choose_attacks
from byzadmm.study.network import choose_graph
from byzadmm.training.experiment import check_byzantine

_PICTURES = (".png", ".svg", ".pdf")
_USUAL_COUNT = 8  # of Byzantine workers

# Options that go with a settings file; the file has the others itself.
_BESIDE_A_FILE = {"settings", "algorithm", "seed", "seeds", "data_dir", "iterations", "eval_every", "dtype"}
_BESIDE_A_FILE |= {"plot", "no_plot", "out", "report", "json", "quiet"}


@dataclass(frozen=True)
class Request:
    """The runs of a command line, checked as far as possible without training.

    Attributes
    ----------
    plan : Plan
    about : dict
        What the JSON says about all runs.
    out, picture, report : Path or None
        Where the result of the one chosen run, the curves and the page go.
    no_picture : str
        Why there is no picture although the command line did not say so.
    heat_map : bool
        Whether the picture is a heat map, which shows the algorithms that do not tolerate so many Byzantine workers.
    """

    plan: Plan
    about: dict[str, Any]
    out: Path | None = None
    picture: Path | None = None
    report: Path | None = None
    no_picture: str = ""
    heat_map: bool = False

    @property
    def cases(self) -> list[Cell]:
        """What stands in one table: attack, number of Byzantine workers and partition; the other entries are empty."""
        axes = self.plan.axes
        places = product(axes["attack"], axes["n_byzantine"], axes["partition"])
        return [Cell("", *place, -1) for place in places]

    @property
    def chosen(self) -> list[Cell]:
        """The runs without those of the reference."""
        others = [name for name in self.plan.axes["algorithm"] if name not in self.plan.ideal]
        return [cell for cell in self.plan.runs if cell.algorithm in (others or self.plan.axes["algorithm"])]

    def words(self, cell: Cell) -> str:
        """What tells its case from the others; empty if there is one."""
        labels, axes = self.plan.labels, self.plan.axes
        words = [labels["attack"][cell.attack]] if len(axes["attack"]) > 1 else []
        words += [f"q = {cell.n_byzantine}"] if len(axes["n_byzantine"]) > 1 else []
        words += [labels["partition"][cell.partition]] if len(axes["partition"]) > 1 else []
        return ", ".join(words)

    def name(self, cell: Cell) -> str:
        """What a run is called: its algorithm, and its case if there are several."""
        return ", ".join(filter(None, [cell.algorithm, self.words(cell)]))

    def runs(self) -> dict[Cell, dict[str, Any]]:
        """Those that can run, each once: where cells share one, the first of them."""
        found = {id(run): (cell, run) for cell, run in reversed(self.plan.runs.items()) if not isinstance(run, str)}
        return dict(reversed(found.values()))


def make_request(args: argparse.Namespace) -> Request:
    """What the options ask for, or a settings file and the options beside it."""
    picture, no_picture = _picture_path(args)
    out = None if args.out is None else ending(args.out, "out", (".npz",))
    report = None if args.report is None else ending(args.report, "report", (".html",))
    request = (_of_options if args.settings is None else _of_file)(args)
    request = replace(request, out=out, picture=picture, report=report, no_picture=no_picture)
    if out is not None and len(request.chosen) > 1:
        names = dict.fromkeys(cell.algorithm for cell in request.chosen)
        if len(names) > 1:
            raise ValueError(f"out: expected one algorithm, got {len(names)}; choose it with --algorithm")
        raise ValueError(f"out: expected one run, got {len(request.chosen)}; --checkpoint keeps them all")
    return request


def _of_options(args: argparse.Namespace) -> Request:
    name = catalogue.dataset_name(args.dataset)
    preset = catalogue.PRESETS[name]
    m = check_int(args.n_workers, "n_workers", low=1)
    counts, named = _attackers(args, m)
    graph = None if args.graph is None else choose_graph(args.graph, m, check_byzantine(max(counts), named, m))
    algorithms = _algorithms(args, preset, counts, graph)
    attacks = choose_attacks(args.attack)
    extent = _extent(args, preset, m)
    seeds = _seeds(args)
    data = catalogue.load_dataset(name, data_dir=args.data_dir, scale=_scale(args.scale, preset))
    if args.scale is not None:  # the preset is for another scale
        algorithms = _algorithms(args, _preset_for(data, preset, args.quiet), counts, graph)
    plan = make_plan(
        data,
        args.partition,
        algorithms=algorithms,
        attacks=attacks,
        n_workers=m,
        n_byzantine=counts,
        seeds=seeds,
        graph=args.graph,
        byzantine=named,
        loss=args.loss,
        validation=args.validation,
        **extent,
        **{key: getattr(args, key) for key in ("batch_size", "rho", "dtype", "local_steps", "participation")},
    )
    under = f", {_one(args.attack)} attack" if len(args.attack) == 1 else ""
    who = "workers" if graph is None else "nodes"
    attacked = f", {counts[0]} of {m} {who} Byzantine" if len(counts) == 1 else ""
    about = {"dataset": name, "attack": _one(args.attack), "n_byzantine": _one(counts), "n_workers": m}
    given = {"byzantine": named, "graph": args.graph, "delays": args.delays}
    where = "".join(f", {key} {given[key]}" for key in ("graph", "delays") if given[key] is not None)
    return Request(
        plan=replace(plan, title=f"{name}{under}{attacked}{where}"),
        about=about | {key: value for key, value in given.items() if value is not None},
    )


def _attackers(args: argparse.Namespace, m: int) -> tuple[list[int], list[int] | None]:
    """The numbers of Byzantine workers, and who they are if the command line names them."""
    named = None if args.byzantine is None else check_byzantine(0, args.byzantine, m)
    if args.n_byzantine is None:
        usual = _USUAL_COUNT if args.graph is None else m // 5
        return [usual if named is None else len(named)], named
    if named is not None:
        raise ValueError("byzantine: names the Byzantine workers, and -q how many there are; give one of them")
    return [check_int(q, "n_byzantine", low=0, high=m) for q in args.n_byzantine], None


def _extent(args: argparse.Namespace, preset: catalogue.Preset, m: int) -> dict[str, Any]:
    """Delays, how long the runs are, and when they are evaluated, as arguments of ``make_plan``."""
    given = {name: getattr(args, name) for name in ("iterations", "delays", "until", "arrivals", "eval_time")}
    if args.iterations is not None:
        check_int(args.iterations, "iterations", low=1)
    if args.delays is None:
        given["iterations"] = preset.iterations if args.iterations is None else args.iterations
    elif all(given[end] is None for end in ("iterations", "until", "arrivals")):
        # At one time for all: in as many updates, one that waits for everybody takes far longer than another.
        given["until"] = preset.iterations * _usual(catalogue.make_delays(args.delays), m, args.seed)
    every = args.eval_every
    if every is None and given["until"] is None and args.eval_time is None:
        every = max(1, (given["iterations"] or preset.iterations) // 20)
    return given | {"eval_every": every}


def _usual(delays: Any, m: int, seed: int) -> float:
    """The median time of a job, to two digits."""
    drawn = Delays(delays, m, seed)
    times = sorted(drawn(worker, job, 0.0) for worker in range(m) for job in range(25))
    middle = times[len(times) // 2]
    if not math.isfinite(middle):
        raise ValueError("until: most jobs never end with these delays; say how long the runs are")
    return float(f"{middle:.2g}")


def _of_file(args: argparse.Namespace) -> Request:
    defaults = run_defaults()
    for name, value in vars(defaults).items():
        if name not in _BESIDE_A_FILE and getattr(args, name) != value:
            raise ValueError(f"{name}: is in the settings file {args.settings}")
    settings = figures().load_settings(args.settings)
    plan: Plan = figures().plan_of(settings, _seeds(args), data_dir=args.data_dir)
    if args.algorithm is not None:
        for name in args.algorithm:
            check_choice(name, "algorithm", plan.axes["algorithm"])
        plan = _only(plan, args.algorithm)
    elif settings.readings():
        plan = _first_reading(plan, settings, args.quiet)
    length = "updates" if settings.delays is not None else "iterations"
    given = {length: args.iterations, "eval_every": args.eval_every}
    changes = {name: value for name, value in given.items() if value is not None}
    if args.dtype != defaults.dtype:
        changes["dtype"] = args.dtype
    return Request(
        plan=replace(_changed(plan, changes), title=settings.title),
        about={
            "dataset": settings.dataset,
            "attack": [catalogue.describe_attack(attack) for attack in settings.attacks],
            "n_byzantine": _one(plan.axes["n_byzantine"]),
            "n_workers": settings.n_workers,
        }
        | ({} if settings.graph_name is None else {"graph": settings.graph_name})
        | ({} if settings.delays is None else {"delays": describe(settings.delays)}),
        heat_map=bool(settings.heat_map),
    )


def _first_reading(plan: Plan, settings: Any, quiet: bool) -> Plan:
    """The plan of a file with several readings: the first of them, and a remark that there are others."""
    names = [curve.name for curve in settings.read(settings.readings()[0]).values()]
    others = [name for name in plan.axes["algorithm"] if name not in names]
    remark(*([] if quiet else [f"not run: {', '.join(others)}; choose with --algorithm"]))
    return _only(plan, names)


def _one(values: Sequence[Any]) -> Any:
    """The one value, or all of several."""
    return values[0] if len(values) == 1 else list(values)


def _seeds(args: argparse.Namespace) -> list[int]:
    first, count = check_int(args.seed, "seed", low=0), check_int(args.seeds, "seeds", low=1)
    return list(range(first, first + count))


def _only(plan: Plan, names: Sequence[str]) -> Plan:
    """The plan with some of its algorithms."""
    kept = [name for name in plan.axes["algorithm"] if name in names]
    return replace(
        plan,
        axes=plan.axes | {"algorithm": kept},
        runs={cell: run for cell, run in plan.runs.items() if cell.algorithm in kept},
        ideal=tuple(name for name in plan.ideal if name in kept),
    )


def _changed(plan: Plan, changes: dict[str, Any]) -> Plan:
    """The plan with other settings for all runs; cells that share a run still do."""
    made = {id(run): run if isinstance(run, str) else run | changes for run in plan.runs.values()}
    return replace(
        plan, runs={cell: made[id(run)] for cell, run in plan.runs.items()}, settings=plan.settings | changes
    )


def _preset_for(data: Dataset, otherwise: catalogue.Preset, quiet: bool) -> catalogue.Preset:
    """Settings for the data as scaled; where none can be derived, a remark and those of the data set."""
    try:
        return catalogue.preset_for(data)
    except ValueError as error:
        remark(*([] if quiet else [str(error)]))
        return otherwise


def _algorithms(
    args: argparse.Namespace, preset: catalogue.Preset, counts: Sequence[int], graph: Graph | Flaky | None
) -> list[AlgorithmChoice]:
    """The algorithms; Ideal SGD, the reference of the others, comes first."""
    sgd, usual = ("sgd", catalogue.PAPER) if graph is None else ("dsgd", catalogue.ON_GRAPHS)
    named = args.algorithm or ([sgd] if args.rule else usual)
    wanted = list(dict.fromkeys(name.lower() for name in named))
    if args.rule and sgd not in wanted:
        raise ValueError(f"rule: is for --algorithm {sgd}, got --algorithm {' '.join(wanted)}")
    options: dict[str, Any] = {name: getattr(args, name) for name in catalogue.options()}
    for name in ("step", "master_step", "worker_step"):
        options[name] = None if options[name] is None else catalogue.make_step(options[name], name)
    sources = {"ideal": "ideal"}
    for name in wanted:
        for source in args.rule if name == sgd and args.rule else [name]:
            if name == sgd and args.rule:  # an error about the rule, not about the algorithm
                if graph is None:
                    catalogue.make_rule(source, counts[0])
                else:
                    catalogue.make_neighborhood_rule(source, args.f)
            plain = graph is None and source == "mean"
            sources["sgd" if plain else catalogue.hyphenated(source)] = source
    made = {
        name: [catalogue.make_algorithm(source, preset, q, options, graph) for q in counts]
        for name, source in sources.items()
    }
    chosen = {name: algorithms for name, algorithms in made.items() if name != "ideal" or len(made) == 1}
    every = [algorithm for algorithms in chosen.values() for algorithm in algorithms]
    known = {field for algorithm in every for field in getattr(algorithm, "__dataclass_fields__", ())}
    if not any(map(catalogue.takes_f, every)):
        known.discard("f")
    for name, value in options.items():
        if value is not None and name not in known:
            raise ValueError(f"{name}: none of {', '.join(chosen)} has it")
    _check_f(every, args.n_workers)
    return [
        AlgorithmChoice(name, catalogue.LABELS.get(name, name), dict(zip(counts, made[name], strict=True)).get, name)
        for name in sources
    ]


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
    return ending(name, what, _PICTURES)


def ending(name: str, what: str, endings: Sequence[str]) -> Path:
    path = Path(name)
    if path.suffix.lower() not in endings:
        raise ValueError(f"{what}: expected a name ending in {', '.join(endings)}; got {name!r}")
    return path
