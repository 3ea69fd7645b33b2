"""The results of ``byzadmm run`` as tables, one per attack, number of Byzantine workers and partition, and as JSON."""

from __future__ import annotations

import math
import textwrap
from typing import Any

import numpy as np

from byzadmm.cli.output import print_table
from byzadmm.cli.plan import Request
from byzadmm.results import Result, versus_ideal
from byzadmm.study import Cell, Study

_WIDTH = 80


def records(study: Study, request: Request) -> list[dict[str, Any]]:
    """One record per finished run, with its curves."""
    found = []
    for case in request.cases:
        for cell in _of_case(study, case):
            result = study.results[cell]
            place = {axis: value for axis, value in cell._asdict().items() if axis != "algorithm"}
            found.append(
                {
                    "algorithm": request.name(cell),
                    **place,
                    "accuracy": result.final_accuracy(),
                    "loss": result.loss[-1],
                    "iterations": int(result.iterations[-1]),
                    **_clock(result),
                    "seconds": result.seconds,
                    "eliminated": result.eliminated,
                    "verdict": _verdict(study, cell.algorithm, study.final(cell), _ideal(study, case, cell.seed)),
                    "settings": result.config["algorithm"],
                    "curves": {"iterations": result.iterations} | _clocked(result) | _curves(result.metrics),
                }
            )
    return found


def _clocked(result: Result) -> dict[str, Any]:
    """Simulated time and arrivals at the evaluations of a run with delays."""
    return {} if result.time is None else {"time": result.time, "arrivals": result.arrivals}


def _clock(result: Result) -> dict[str, Any]:
    """The same at its end, and the shares of the messages that the master rejected."""
    ends = {name: values[-1].item() for name, values in _clocked(result).items()}
    return ends | {"rejected": result.rejection_rates()} if ends else {}


def print_tables(study: Study, request: Request) -> None:
    """Print a table for every case, under one heading if there are several."""
    seeds = len(study.axes["seed"])
    title = f"{study.title}, mean over {seeds} seeds" if seeds > 1 else study.title
    if len(request.cases) == 1:
        return _print_case(study, _of_case(study, request.cases[0]), title)
    print(textwrap.fill(title, _WIDTH))
    for case in request.cases:
        cells = _of_case(study, case)
        if cells:
            print()
            _print_case(study, cells, request.words(case))


def _print_case(study: Study, cells: list[Cell], title: str) -> None:
    metric = study.metric()
    several = len(study.axes["seed"]) > 1
    clocked = any(study.results[cell].time is not None for cell in cells)
    curves = {name for cell in cells for name in study.results[cell].metrics}
    on_graph, worst = "consensus_error" in curves, "worst_accuracy" in curves
    eliminated = not (several or clocked or on_graph) or any(study.results[cell].eliminated for cell in cells)
    columns = ["algorithm", f">{metric.replace('_', ' ')}", *([">lowest", ">highest"] if several else [])]
    columns += [">worst node"] if worst else []
    columns += [">loss"] if metric != "loss" else []
    length = [">updates", ">messages", ">time"] if clocked else [">iterations"]
    seconds = [] if clocked else [">seconds"]
    columns += [*([] if several else length), *seconds, *([">eliminated"] if eliminated else [])]
    columns += ["vs Ideal"] if study.ideal else []
    rows = []
    ideal = _ideal(study, cells[0]._replace(algorithm="", seed=-1))
    for name in dict.fromkeys(cell.algorithm for cell in cells):
        results = [study.results[cell] for cell in cells if cell.algorithm == name]
        finals = np.array([study.final(cell, metric) for cell in cells if cell.algorithm == name])
        final = float(np.mean(finals))
        row = [name, *map(_final, [final, *([finals.min(), finals.max()] if several else [])])]
        if worst:
            least = [study.final(cell, "worst_accuracy") for cell in cells if cell.algorithm == name]
            row += [_final(float(np.mean(least)))]
        row += [_short(float(np.mean([result.loss[-1] for result in results])))] if metric != "loss" else []
        ends = {name: values[-1] for name, values in _clocked(results[0]).items()}
        clock = [str(ends["arrivals"]), _time(ends["time"])] if ends else []
        row += [] if several else [str(int(results[0].iterations[-1])), *clock]
        row += [f"{np.mean([result.seconds for result in results]):.2f}"] if seconds else []
        row += [str(max(len(result.eliminated) for result in results) or "-")] if eliminated else []
        rows.append([*row, *([_verdict(study, name, final, ideal)] if study.ideal else [])])
    print_table(columns, rows, title)


def _of_case(study: Study, case: Cell) -> list[Cell]:
    """The finished cells of a case, algorithm by algorithm."""
    place = {axis: getattr(case, axis) for axis in ("attack", "n_byzantine", "partition")}
    return [cell for cell in study.cells(**place) if cell in study.results]


def _ideal(study: Study, case: Cell, seed: int | None = None) -> float | None:
    """Final value of the reference in a case, for one seed or the mean over all of them."""
    found = [
        study.final(cell)
        for cell in _of_case(study, case)
        if cell.algorithm in study.ideal and (seed is None or cell.seed == seed)
    ]
    return float(np.mean(found)) if found else None


def _verdict(study: Study, algorithm: str, final: float, ideal: float | None) -> str:
    """The comparison with the reference, in words; a difference where there is no accuracy."""
    if algorithm in study.ideal:
        return "reference"
    if study.metric() == "accuracy" or ideal is None:
        return versus_ideal(final, ideal)
    return f"{final - ideal:+.3g}"


def _curves(metrics: dict[str, Any]) -> dict[str, Any]:
    """Accuracy and loss, and whatever other curves the runs have beyond those of every run."""
    usual = ("consensus_gap", "distance")
    return {name: values for name, values in metrics.items() if name not in usual}


def _final(number: float) -> str:
    return f"{number:.3f}" if abs(number) < 100 or math.isnan(number) else _short(number)


def _time(number: float) -> str:
    return f"{number:.0f}" if 1e4 <= number < 1e7 else f"{number:.4g}"


def _short(number: float) -> str:
    """A number in at most six characters."""
    return f"{number:.0f}" if 100 <= number < 1e6 else f"{number:.3g}" if number < 100 else f"{number:.0e}"
