"""A study as plain values, for its page."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from byzadmm import __version__
from byzadmm._internal.description import describe
from byzadmm.study.places import choose_x

if TYPE_CHECKING:
    from byzadmm.study.plan import Cell
    from byzadmm.study.study import Study

__all__ = ["record_of"]

# matplotlib's names of lines as an SVG's stroke-dasharray, in units of the line's width.
_DASHES = {"-": "", "--": "4 2", "-.": "6 2 1 2", ":": "1 2"}


def record_of(study: Study) -> dict[str, Any]:
    """What :func:`byzadmm.study.report.write_report` takes."""
    from byzadmm.study.study import HIGHER

    metric, names = study.metric(), study.metrics()
    return {
        "title": study.title,
        "version": __version__,
        "when": study.when,
        "seconds": study.seconds,
        "settings": {name: describe(value) for name, value in study.settings.items() if name != "n_workers"},
        "algorithms": _algorithms(study),
        "axes": {axis: [_word(study, axis, value) for value in values] for axis, values in study.axes.items()},
        "metric": metric,
        "metrics": names or [metric],
        "higher_is_better": metric in HIGHER,
        "n_workers": study.settings.get("n_workers"),
        "x": choose_x(None, study.results.values()),
        "runs": [_run(study, cell, metric, names) for cell in study.cells()],
    }


def _word(study: Study, axis: str, value: Any) -> Any:
    return value if axis in ("n_byzantine", "seed") else study.label(axis, value)


def _algorithms(study: Study) -> dict[str, Any]:
    looks, shown = study.styles(), {}
    for name in study.axes["algorithm"]:
        line = looks[name].line
        dash = _DASHES[line] if isinstance(line, str) else " ".join(map(str, line[1]))
        settings = [result.config["algorithm"] for cell, result in study.results.items() if cell.algorithm == name][:1]
        words = ", ".join(f"{key}={value}" for each in settings for key, value in each.items() if key != "name")
        shown[study.label("algorithm", name)] = {"color": looks[name].color, "dash": dash, "settings": words}
    return shown


def _run(study: Study, cell: Cell, metric: str, names: list[str]) -> dict[str, Any]:
    place = {axis: _word(study, axis, value) for axis, value in cell._asdict().items()}
    result, why = study.results.get(cell), study.missing.get(cell)
    about = {"status": "done", "error": ""} if why is None else {"status": why.status, "error": why.reason}
    nothing = {"final": float("nan"), "seconds": 0.0, "byzantine": [], "eliminated": {}, "curves": {}}
    nothing |= {"iterations": [], "time": []}
    if result is None:
        return place | about | nothing
    return (
        place
        | about
        | {
            "final": study.final(cell, metric),
            "seconds": result.seconds,
            "byzantine": result.config.get("byzantine", []),
            "eliminated": {str(worker): k for worker, k in result.eliminated.items()},
            "iterations": result.iterations.tolist(),
            **({} if result.time is None else {"time": result.time.tolist()}),
            "curves": {name: values.tolist() for name, values in result.metrics.items() if name in names},
        }
    )
