"""Settings files: TOML to the checked record of one panel."""

from __future__ import annotations

import re
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

from byzadmm import catalogue, steps
from byzadmm._internal.validation import check_choice, check_int, check_real
from byzadmm.attacks import Attack
from byzadmm.datasets._scaling import check_scale
from byzadmm.figures._toml import (
    Table,
    check_count,
    check_flag,
    check_list,
    check_numbers,
    check_positive,
    check_range,
    check_string,
)
from byzadmm.figures.settings import FIGURES, TRAINING, Curve, Search, Settings, build_algorithm, settings_path
from byzadmm.training.experiment import check_byzantine, check_settings

if sys.version_info >= (3, 11):
    import tomllib
else:  # pragma: no cover - Python 3.10
    import tomli as tomllib  # type: ignore[import-not-found, unused-ignore]

__all__ = ["available", "load_settings"]

_MAX_BYTES, _MAX_PARTS = 1 << 16, 100  # of a settings file, of a key in it
_QUADRATIC = "quadratic"  # in the place of a data set: the workers' losses are in the file


def available() -> list[tuple[str, str]]:
    """Names and titles of the panels that come with the package.

    Returns
    -------
    list of (str, str)

    Examples
    --------
    >>> from byzadmm import figures
    >>> figures.available()[0]
    ('fig1a', 'MNIST, Gaussian attack, q = 8')
    """
    return [(name, load_settings(name).title) for name in FIGURES]


def load_settings(name_or_path: str | Path) -> Settings:
    """Read and check a settings file: one of the package by name, or your own by path.

    Parameters
    ----------
    name_or_path : str or Path
        "fig1a" ... "fig5b", "example", "rules", or a ``.toml`` file.

    Returns
    -------
    Settings

    Raises
    ------
    ValueError
        One line that names the file and the key.

    Examples
    --------
    >>> from byzadmm import figures
    >>> settings = figures.load_settings("fig1a")
    >>> settings.n_workers, settings.n_byzantine, settings.curves[0].algorithm.lam
    (20, 8, 0.5)
    """
    path = settings_path(name_or_path)
    if path.stat().st_size > _MAX_BYTES:
        raise ValueError(f"{path}: expected at most {_MAX_BYTES} bytes of settings, got {path.stat().st_size}")
    try:
        text = path.read_text(encoding="utf-8")
        # tomllib takes time and memory with the square of their number.
        if any(key.count(".") > _MAX_PARTS for key in re.split("[=,{\n]", text)):
            raise ValueError(f"expected keys of at most {_MAX_PARTS} parts")
        table = tomllib.loads(text)
    except RecursionError as error:
        raise ValueError(f"{path}: nested too deeply") from error
    except ValueError as error:
        raise ValueError(f"{path}: not a TOML file: {error}") from error
    try:
        return _read(path, table)
    except (TypeError, ValueError) as error:
        message = str(error).replace("\n", "\\n")  # a key may hold one
        raise ValueError(f"{path}: {message}") from error


def _read(path: Path, values: dict[str, Any]) -> Settings:
    table = Table(values, "")
    dataset = table.take("dataset", _dataset)
    quadratic = table.take("quadratic", _quadratic) if dataset == _QUADRATIC else {}
    settings = Settings(
        name=path.stem,
        title=table.take("title", check_string, path.stem),
        note=table.take("note", check_string, ""),
        path=path,
        dataset=dataset,
        scale=table.take("scale", lambda value, _: check_scale(value), None),
        partition=table.take("partition", _partition, "iid"),
        alpha=table.take("alpha", check_positive, catalogue.PARTITIONS["dirichlet"].settings["alpha"]),
        n_workers=len(quadratic["a"]) if quadratic else table.take("n_workers", check_count, 20),
        n_byzantine=table.take("n_byzantine", check_int, 0),
        attacks=table.take("attack", _attacks, (None,)),
        **_training(table),
        curves=table.take("algorithms", _curves),
        sweep=table.take("sweep", check_numbers, ()),
        heat_map=table.take("heat_map", _heat_map, ()),
        seeds=table.take("seeds", check_count, None),
        search=table.take("tuning", _search, None),
        quadratic=quadratic,
    )
    table.close()
    for case in settings.cases():
        check_byzantine(case.n_byzantine, None, settings.n_workers)
    for curve in () if settings.heat_map else settings.curves:  # a heat map shows which rules do not tolerate their f
        absent = settings.n_byzantine if curve.algorithm.ideal else 0
        try:
            curve.algorithm.check(settings.n_workers - absent)
        except ValueError as error:
            raise ValueError(f"algorithms.{curve.name}: {error}") from error
    if settings.heat_map and (settings.sweep or settings.quadratic):
        raise ValueError("heat_map: not with a sweep or the quadratic example")
    if settings.sweep and not settings.all_curves():
        raise ValueError("sweep: needs an algorithm of kind admm")
    return settings


def _training(table: Table) -> dict[str, Any]:
    """The settings of the experiment, checked as ``simulate`` does; a panel has at least one iteration."""
    given = {"iterations": table.take("iterations", check_count)}
    given["eval_every"] = table.take("eval_every", lambda value, _: value)
    given |= {name: table.values.pop(name) for name in TRAINING if name in table.values}
    checked = check_settings(**given)
    return {name: checked[name] for name in TRAINING}


def _dataset(value: Any, name: str) -> str:
    return _QUADRATIC if value == _QUADRATIC else catalogue.dataset_name(value, name)


def _partition(value: Any, name: str) -> str:
    return check_choice(value, name, catalogue.PARTITIONS)


def _heat_map(value: Any, name: str) -> tuple[tuple[int, str], ...]:
    table = Table(value, f"{name}.")
    counts = table.take("n_byzantine", lambda v, n: [check_int(q, n, low=0) for q in check_list(v, n)])
    kinds = table.take("partition", lambda v, n: [_partition(kind, n) for kind in check_list(v, n)], ["iid"])
    table.close()
    return tuple((q, kind) for kind in kinds for q in counts)


def _quadratic(value: Any, name: str) -> dict[str, Any]:
    table = Table(value, f"{name}.")
    read = {key: list(table.take(key, check_numbers)) for key in ("a", "b", "x")}
    read["x0"] = table.take("x0", check_real, 0.0)
    read["first_k"] = table.take("first_k", lambda v, n: check_int(v, n, low=0), 1)
    table.close()
    if not len(read["a"]) == len(read["b"]) == len(read["x"]):
        raise ValueError(f"{name}: expected a, b and x of one length, one number per worker")
    return read


def _attacks(value: Any, name: str) -> tuple[Attack | None, ...]:
    return tuple(_attack(item, name) for item in (value if isinstance(value, list) else [value]))


def _attack(value: Any, name: str) -> Attack | None:
    table = Table(value, f"{name}.")
    entries = {"none": catalogue.Entry(lambda: None), **catalogue.attacks()}
    entry = entries[table.take("name", lambda v, n: check_choice(v, n, entries))]
    unknown = sorted(table.values.keys() - entry.settings.keys())
    if unknown:
        raise ValueError(f"{name}.{unknown[0]}: unknown key")
    made: Attack | None = entry.make(**table.values)
    return made


def _curves(value: Any, name: str) -> tuple[Curve, ...]:
    if not isinstance(value, dict) or not value:
        raise TypeError(f"{name}: expected at least one table [{name}.NAME]")
    return tuple(_curve(key, Table(entry, f"{name}.{key}.")) for key, entry in value.items())


def _curve(name: str, table: Table) -> Curve:
    entries = catalogue.algorithms()
    kind = table.take("kind", lambda v, n: check_choice(v, n, entries), name.removesuffix("-tuned"))
    if kind not in entries:
        raise ValueError(f"{table.where}kind: missing (one of {', '.join(entries)})")
    entry = entries[kind]
    printed = table.take("printed", check_flag, False)
    added = " (printed)" if printed else " (tuned)" if name.endswith("-tuned") else ""
    rule = table.values.get("rule") if "rule" in entry.settings else None
    label = table.take("label", check_string, rule if isinstance(rule, str) else entry.label + added)
    validation = table.take("validation", lambda v, n: check_real(v, n, low=0.0, high=1.0), None)
    given = {
        key: table.take(key, _SETTINGS[key])
        for key in entry.settings
        if key in table.values or key in entry.required  # of the required ones a missing key is an error
    }
    table.close()
    try:
        if "rule" in given:
            given["rule"], given["f"] = catalogue.make_rule(given["rule"], given.get("f", 0))
        algorithm = build_algorithm(kind, given)
    except (TypeError, ValueError) as error:
        raise ValueError(f"{table.where.rstrip('.')}: {error}") from error
    return Curve(name, kind, label, algorithm, printed, validation)


def _step(value: Any, name: str) -> steps.Step:
    """``{ inv_sqrt = [10, 10] }``: the name of a step size and its numbers."""
    known = {key.replace("-", "_"): entry for key, entry in catalogue.STEPS.items()}
    if not isinstance(value, dict) or len(value) != 1:
        raise TypeError(f"{name}: expected one of {', '.join(known)} with its numbers, got {value!r}")
    [(kind, numbers)] = value.items()
    entry = known[check_choice(kind, name, known)]
    given = check_numbers(numbers if isinstance(numbers, list) else [numbers], name)
    needed = sum(default is catalogue.REQUIRED for default in entry.settings.values())
    if not needed <= len(given) <= len(entry.settings):
        raise ValueError(f"{name}: {kind} got {len(given)} numbers")
    made: steps.Step = entry.make(*given)
    return made


#: How the settings of an algorithm are written in a file.
_SETTINGS: dict[str, Callable[[Any, str], Any]] = {
    "lam": check_positive,
    "beta": check_positive,
    "step": _step,
    "master_step": _step,
    "worker_step": _step,
    "rule": check_string,
    "f": check_int,
    "momentum": check_real,
    "variance_reduction": check_string,
}


def _search(value: Any, name: str) -> Search:
    table = Table(value, f"{name}.")
    every = dict.fromkeys(key for entry in catalogue.algorithms().values() for key in entry.tuned)
    search = Search(
        budget=table.take("budget", check_count),
        seed=table.take("seed", lambda v, n: check_int(v, n, low=0), 0),
        iterations=table.take("iterations", check_count),
        ranges={key: table.take(key, check_range) for key in every if key in table.values},
    )
    table.close()
    return search
