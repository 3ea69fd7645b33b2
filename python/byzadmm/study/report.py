"""The report of a study: one HTML page with table, curves, heat maps and eliminated workers, from a plain record.

The page is ``report_page/page.html`` with the style sheet, the scripts beside it and the record written into it. It
loads nothing, and its content security policy lets no other script run.
"""

from __future__ import annotations

import base64
import hashlib
import html
import json
import math
import os
import re
from collections.abc import Mapping
from importlib import resources
from typing import Any

from byzadmm._internal.atomic_files import replacing
from byzadmm._internal.validation import check_choice

__all__ = ["write_report"]

_SCRIPTS = ("record", "colors", "settings", "table", "axes", "panel", "curves", "heat_maps", "elimination", "page")
_DIGITS = 5  # significant digits of the runs' numbers in the file
_STATES = ("done", "failed", "illegal", "missing")
_CASE = ("algorithm", "attack", "n_byzantine", "partition", "seed")
_KEYS = ("title", "version", "when", "seconds", "settings", "algorithms", "axes", "metric", "metrics")
_RUN_KEYS = (*_CASE, "status", "error", "final", "seconds", "byzantine", "eliminated", "iterations", "curves")


def write_report(path: str | os.PathLike[str], record: Mapping[str, Any]) -> None:
    """Write the record of a study as one self-contained HTML page, whole or not at all.

    The same record gives the same bytes. Numbers of the runs are rounded to 5 significant digits; NaN and infinities
    are "not finite" on the page. Every string is shown as text.

    Parameters
    ----------
    path : path of the page
    record : dict
        What JSON can hold, with these keys:

        - "title", "version", "when": str; "seconds": float, wall time of the study; "n_workers": int
        - "settings": dict, what all runs share
        - "algorithms": label -> {"color": "#rrggbb", "dash": SVG's ``stroke-dasharray`` or "", "settings": str}
        - "axes": "algorithm", "attack", "n_byzantine", "partition", "seed" -> labels, in the order of the page
        - "metric": the metric of the final values; "metrics": every metric; "higher_is_better": bool
        - "x", optional: "iterations" or, of runs with delays, "time": what curves are drawn against
        - "runs": list of dicts with one label of every axis; "status": "done", "failed", "illegal" or "missing";
          "error": str; "final", "seconds": float; "byzantine": workers; "eliminated": worker -> iteration;
          "iterations": list, and "time": list where "x" says so; "curves": metric -> list of the same length

    Examples
    --------
    >>> import tempfile
    >>> from pathlib import Path
    >>> from byzadmm.study.report import write_report
    >>> run = {"algorithm": "SGD", "attack": "zero", "n_byzantine": 1, "partition": "iid", "seed": 0, "status": "done"}
    >>> run |= {"error": "", "final": 0.9, "seconds": 0.1, "byzantine": [4], "eliminated": {}}
    >>> run |= {"iterations": [0, 50], "curves": {"accuracy": [0.1, 0.9]}}
    >>> axes = {"algorithm": ["SGD"], "attack": ["zero"], "n_byzantine": [1], "partition": ["iid"], "seed": [0]}
    >>> record = {"title": "One run", "version": "0.2.0", "when": "2026-11-18", "seconds": 0.1, "n_workers": 5}
    >>> record |= {"settings": {"dataset": "digits"}, "axes": axes, "runs": [run], "higher_is_better": True}
    >>> record |= {"algorithms": {"SGD": {"color": "#999999", "dash": "", "settings": "SGD(step=0.1)"}}}
    >>> record |= {"metric": "accuracy", "metrics": ["accuracy"]}
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     write_report(Path(folder, "page.html"), record)
    ...     Path(folder, "page.html").read_text("utf-8").splitlines()[0]
    '<!doctype html>'
    """
    _check(record)
    folder = resources.files(__package__) / "report_page"
    style = (folder / "style.css").read_text("utf-8")
    scripts = "".join((folder / f"{name}.js").read_text("utf-8") for name in _SCRIPTS)
    script = f'"use strict";\n(() => {{\n{scripts}}})();\n'
    parts = {
        "title": html.escape(str(record["title"])),
        "version": html.escape(str(record["version"])),
        "policy": f"default-src 'none'; img-src data:; style-src {_hash(style)}; script-src {_hash(script)}",
        "style": style,
        "script": script,
        "record": _embedded(_compact(record)),
    }
    page = (folder / "page.html").read_text("utf-8")
    # In one pass: braces in a part are no placeholder.
    page = re.sub(r"\{\{(\w+)\}\}", lambda found: parts[found[1]], page)
    with replacing(path) as file:
        file.write(page.encode("utf-8"))


def _check(record: Mapping[str, Any]) -> None:
    """Refuse a record that the page would show wrongly."""
    if not isinstance(record, Mapping):
        raise TypeError(f"record: expected a dict, got {type(record).__name__}")
    _check_keys(record, "record", (*_KEYS, "higher_is_better", "n_workers", "runs"))
    axes, looks = record["axes"], record["algorithms"]
    _check_keys(axes, "record['axes']", _CASE)
    _check_keys(looks, "record['algorithms']", axes["algorithm"])
    for label, look in looks.items():
        _check_keys(look, f"record['algorithms'][{label!r}]", ("color", "dash", "settings"))
        for key, pattern in ("color", r"#[0-9a-fA-F]{6}"), ("dash", r"[0-9., ]*"):
            if not re.fullmatch(pattern, str(look[key])):
                where = f"record['algorithms'][{label!r}][{key!r}]"
                raise ValueError(f"{where}: expected {pattern}, got {look[key]!r}")
    if record["metric"] not in record["metrics"]:
        raise ValueError(f"record['metric']: expected one of {record['metrics']}, got {record['metric']!r}")
    x = check_choice(record.get("x", "iterations"), "record['x']", ("iterations", "time"))
    seen = set()
    for number, run in enumerate(record["runs"]):
        where = f"record['runs'][{number}]"
        _check_keys(run, where, (*_RUN_KEYS, x))
        check_choice(run["status"], f"{where}['status']", _STATES)
        for axis in _CASE:
            if run[axis] not in axes[axis]:
                raise ValueError(f"{where}[{axis!r}]: expected one of {axes[axis]}, got {run[axis]!r}")
        for metric, values in run["curves"].items():
            if len(values) != len(run[x]):
                expected = f"{len(run[x])} values"
                raise ValueError(f"{where}['curves'][{metric!r}]: expected {expected}, got {len(values)}")
        case = tuple(run[axis] for axis in _CASE)
        if case in seen:
            raise ValueError(f"{where}: expected one run per case, got {case} again")
        seen.add(case)


def _check_keys(part: Mapping[str, Any], name: str, keys: Any) -> None:
    missing = [key for key in keys if key not in part]
    if missing:
        raise ValueError(f"{name}: expected the keys {', '.join(map(str, keys))}; got none of the name {missing[0]!r}")


def _compact(record: Mapping[str, Any]) -> dict[str, Any]:
    """The record with rounded runs that share their lists of places on the horizontal axis."""
    x = record.get("x", "iterations")
    grids: dict[tuple[float, ...], int] = {}
    runs = []
    for run in record["runs"]:
        kept = {name: value for name, value in run.items() if name not in ("iterations", "time")}
        grid = grids.setdefault(tuple(run[x]), len(grids))
        runs.append(_finite({**kept, "places": grid}, _DIGITS))
    return {**_finite({**record, "x": x, "runs": []}, None), "grids": [list(grid) for grid in grids], "runs": runs}


def _finite(value: Any, digits: int | None) -> Any:
    """``value`` with null in the place of numbers that are not finite, the others rounded to significant digits."""
    if isinstance(value, float):
        if not math.isfinite(value):
            return None
        rounded = value if digits is None else float(f"{value:.{digits}g}")
        return rounded if math.isfinite(rounded) else value
    if isinstance(value, Mapping):
        return {str(key): _finite(item, digits) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [_finite(item, digits) for item in value]
    return value


def _embedded(value: Any) -> str:
    """JSON that can stand in a ``<script>`` element: ASCII without ``<``, ``>`` and ``&``."""
    try:
        text = json.dumps(value, ensure_ascii=True, allow_nan=False, separators=(",", ":"))
    except TypeError as error:
        raise TypeError(f"record: expected what JSON can hold ({error})") from error
    for character in "<>&":
        text = text.replace(character, f"\\u{ord(character):04x}")
    return text


def _hash(source: str) -> str:
    digest = base64.b64encode(hashlib.sha256(source.encode("utf-8")).digest()).decode("ascii")
    return f"'sha256-{digest}'"
