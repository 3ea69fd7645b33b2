"""Settings files: TOML to the checked record of one panel."""

from __future__ import annotations

import re
import sys
from collections.abc import Callable, Sequence
from itertools import product
from pathlib import Path
from typing import Any

from byzadmm import catalogue
from byzadmm._internal.validation import check_choice
from byzadmm.delays import Delays
from byzadmm.figures._curves import read_curves
from byzadmm.figures._toml import Table
from byzadmm.figures._values import QUADRATIC, check_share
from byzadmm.figures.keys import CLOCK, SECTIONS, TRAINING
from byzadmm.figures.settings import (
    FIGURES,
    READINGS,
    TABLES,
    Published,
    Search,
    Settings,
    settings_path,
)
from byzadmm.study.network import check_beside, choose_graph
from byzadmm.training.experiment import check_byzantine

if sys.version_info >= (3, 11):
    import tomllib
else:  # pragma: no cover - Python 3.10
    import tomli as tomllib  # type: ignore[import-not-found, unused-ignore]

__all__ = ["available", "load_settings"]

_MAX_BYTES, _MAX_PARTS = 1 << 16, 100  # of a settings file, of a key in it

#: What a Byzantine worker does: an attack of the package or a function; None is honest.
_Attack = Callable[..., Any] | None


def available() -> list[tuple[str, str]]:
    """Names and titles of the panels that come with the package, then of tables that are several of them.

    Returns
    -------
    list of (str, str)

    Examples
    --------
    >>> from byzadmm import figures
    >>> figures.available()[0]
    ('fig1a', 'MNIST, Gaussian attack, q = 8')
    """
    together = [(name, f"together {', '.join(panels)}") for name, panels in TABLES.items()]
    return [*((name, load_settings(name).title) for name in FIGURES), *together]


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
    table = Table(values, "", SECTIONS[""])
    dataset = table.take("dataset")
    quadratic = _quadratic(table) if dataset == QUADRATIC else {}
    alpha = table.take("alpha")
    m = len(quadratic["a"]) if quadratic else table.take("n_workers")
    partitions, heat_map = _with_alpha(table.take("partition"), alpha), _heat_map(table.take("heat_map"), alpha)
    written = table.take("attack")
    attacks = _attacks(written, path.parent)
    network = _network(table, m, heat_map, path.parent)
    called = _called(written if isinstance(written, list) else [written], attacks)
    settings = Settings(
        name=path.stem,
        title=table.take("title") or path.stem,
        note=table.take("note"),
        cause=table.take("cause"),
        **_published(table.take("published"), len(attacks) if heat_map else None),
        path=path,
        dataset=dataset,
        scale=table.take("scale"),
        loss_name=table.take("loss"),
        partitions=partitions,
        alpha=alpha,
        n_workers=m,
        attacks=attacks,
        **network,
        **{name: table.take(name) for name in TRAINING},
        **_clock(table, path.parent),
        curves=read_curves(
            table.take("algorithms"), network["graph"], called, [kind for _, kind in heat_map] or partitions
        ),
        sweep=table.take("sweep") or (),
        heat_map=heat_map,
        seeds=table.take("seeds"),
        validation=table.take("validation"),
        search=_search(table.take("tuning")),
        quadratic=quadratic,
    )
    table.close()
    _check_clock(settings)
    _check_graph(settings)
    if settings.search and any(curve.variants for curve in settings.curves):
        raise ValueError("tuning: not with settings for some attacks or partitions (where)")
    for case in settings.cases():
        settings.attackers(case)
    # A heat map shows which rules do not tolerate their f.
    for curve, case in () if settings.heat_map else product(settings.curves, settings.cases()):
        try:
            settings.check(settings.made(curve, case), case)
        except ValueError as error:
            raise ValueError(f"algorithms.{curve.name}: {error}") from error
    if settings.heat_map and (settings.sweep or settings.quadratic):
        raise ValueError("heat_map: not with a sweep or the quadratic example")
    if settings.quadratic and (settings.loss_name or len(settings.partitions) > 1):
        raise ValueError("quadratic: has its own loss, and no samples to divide")
    if settings.sweep and not settings.all_curves():
        raise ValueError("sweep: needs an algorithm of kind admm")
    if settings.readings():
        tables: dict[tuple[str, str], str] = {}
        for curve in settings.curves:
            other = tables.setdefault((curve.algorithm_name, curve.reading), curve.name)
            if other != curve.name:
                raise ValueError(f"algorithms.{curve.name}: is {READINGS[curve.reading]}, as is algorithms.{other}")
    if not settings.heat_map and any(curve.iterations for curve in settings.curves):
        raise ValueError("iterations: of an algorithm, only in a heat map")
    if settings.published and (settings.quadratic or len(settings.cases()) > 1):
        raise ValueError("published: curves only with one attack and one partition, and not with quadratic")
    for name in (*settings.published, *settings.published_finals):
        check_choice(name, "published", dict.fromkeys(curve.algorithm_name for curve in settings.all_curves()))
    return settings


def _clock(table: Table, folder: Path) -> dict[str, Any]:
    """Delays, and the ends and evaluations that go with them."""
    delays = table.take("delays")
    if isinstance(delays, str):
        delays = catalogue.make_delays(delays, folder)
    return {"delays": delays} | {name: table.take(name) for name in CLOCK if name != "delays"}


def _check_clock(settings: Settings) -> None:
    """Runs have an end and evaluations; what needs delays has them."""
    if settings.iterations is None and settings.until is None and settings.arrivals is None:
        raise ValueError("iterations: missing")
    if settings.eval_every is None and settings.until is None and settings.eval_time is None:
        raise ValueError("eval_every: missing")
    if settings.delays is not None:
        Delays(settings.delays, settings.n_workers, 0)
        for name in ("quadratic", "published", "search"):
            if getattr(settings, name):
                raise ValueError(f"delays: not with {'tuning' if name == 'search' else name}")
        return
    for name in CLOCK:
        if getattr(settings, name) is not None:
            raise ValueError(f"{name}: needs delays")
    for curve in settings.curves:
        if curve.algorithm.schedule == "events":
            raise ValueError(f"delays: missing, and algorithms.{curve.name} is asynchronous")


def _network(table: Table, m: int, heat_map: Any, folder: Path) -> dict[str, Any]:
    """Who is Byzantine, the graph, and where its nodes start."""
    named = table.take("byzantine")
    said = named is None or heat_map or "n_byzantine" in table.values
    count = table.take("n_byzantine") if said else len(named)
    name, start = table.take("graph"), table.take("x_init")
    found = {"n_byzantine": count, "byzantine": named, "graph_name": name, "graph": None, "x_init": start}
    if name is None:
        if start is not None:
            raise ValueError("x_init: needs a graph")
        return found
    most = max([q for q, _ in heat_map], default=count)
    return found | {"graph": choose_graph(name, m, check_byzantine(most, named, m), folder)}


def _check_graph(settings: Settings) -> None:
    """Nothing that a run on a graph cannot have."""
    if settings.graph is None:
        if isinstance(settings.rho, tuple):
            raise ValueError("rho: one for each node needs a graph")
        return
    for name in ("quadratic", "search"):
        if getattr(settings, name):
            raise ValueError(f"graph: not with {'tuning' if name == 'search' else name}")
    check_beside({name: getattr(settings, name) for name in (*CLOCK, "validation", "local_steps", "participation")})


def _called(written: Sequence[Any], attacks: Sequence[_Attack]) -> dict[str, list[int]]:
    """What a file may call its attacks, as it has them or by their names alone -> their places in its list."""
    found: dict[str, list[int]] = {}
    for place, (value, attack) in enumerate(zip(written, attacks, strict=True)):
        for name in {value.strip() if isinstance(value, str) else "", catalogue.attack_name(attack)} - {""}:
            found.setdefault(name, []).append(place)
    return found


def _with_alpha(partitions: tuple[str, ...], alpha: float) -> tuple[str, ...]:
    return tuple(f"{kind}:{alpha!r}" if kind == "dirichlet" else kind for kind in partitions)


def _heat_map(value: Any, alpha: float) -> tuple[tuple[int, str], ...]:
    if value is None:
        return ()
    table = Table(value, "heat_map.", SECTIONS["heat_map"])
    counts, kinds = table.take("n_byzantine"), _with_alpha(table.take("partition"), alpha)
    table.close()
    return tuple((q, kind) for kind in kinds for q in counts)


def _quadratic(whole: Table) -> dict[str, Any]:
    value = whole.take("quadratic")
    if value is None:
        raise ValueError("quadratic: missing")
    table = Table(value, "quadratic.", SECTIONS["quadratic"])
    read = {key: list(table.take(key)) for key in ("a", "b", "x")}
    read |= {key: table.take(key) for key in ("x0", "first_k")}
    table.close()
    if not len(read["a"]) == len(read["b"]) == len(read["x"]):
        raise ValueError("quadratic: expected a, b and x of one length, one number per worker")
    return read


def _attacks(value: Any, folder: Path) -> tuple[_Attack, ...]:
    return tuple(_attack(item, folder) for item in (value if isinstance(value, list) else [value]))


def _attack(value: Any, folder: Path) -> _Attack:
    """An attack written as on the command line, or as a table of its name and settings."""
    if isinstance(value, str):
        return catalogue.make_attack(value, folder)
    if not isinstance(value, dict):
        raise TypeError(f"attack: expected a string or a table, got {type(value).__name__}")
    table = Table(value, "attack.", SECTIONS["attack"])
    name = table.take("name")
    own = catalogue.split_own(name)
    if own is not None and not own[2]:
        entry = catalogue.own_entry(own[0], own[1], folder)
    else:
        entries = {"none": catalogue.Entry(lambda: None), **catalogue.attacks()}
        entry = entries[check_choice(name, "attack.name", entries)]
    unknown = sorted(table.values.keys() - entry.settings.keys())
    if unknown:
        raise ValueError(f"attack.{unknown[0]}: unknown key")
    made: _Attack = entry.make(**table.values)
    return made


def _published(value: Any, columns: int | None) -> dict[str, Any]:
    """Published curves, or the published numbers of a heat map with so many columns."""
    if value is not None and not isinstance(value, dict):
        raise TypeError("published: expected tables [published.NAME]")
    if columns is None:
        return {"published": {name: _published_curve(name, entry) for name, entry in (value or {}).items()}}
    return {"published_finals": {name: _published_row(name, entry, columns) for name, entry in (value or {}).items()}}


def _published_row(name: str, entry: Any, columns: int) -> tuple[float, ...]:
    table = Table(entry, f"published.{name}.", SECTIONS["published.NAME"])
    finals: tuple[float, ...] = table.take("finals") or ()
    table.close()
    if len(finals) != columns:
        raise ValueError(f"{table.where}finals: expected {columns} numbers, one per attack, got {len(finals)}")
    return finals


def _published_curve(name: str, entry: Any) -> Published:
    table = Table(entry, f"published.{name}.", SECTIONS["published.NAME"])
    final, at, accuracy, why = (table.take(key) for key in ("final", "at", "accuracy", "why"))
    table.close()
    if len(at) != len(accuracy) or list(at) != sorted(set(at)) or at[-1] == 0:
        raise ValueError(f"{table.where}at: expected ascending iterations, one for each of accuracy; got {at}")
    for value in accuracy:
        check_share(value, f"{table.where}accuracy")
    return Published(final, tuple(at), accuracy, why)


def _search(value: Any) -> Search | None:
    if value is None:
        return None
    table = Table(value, "tuning.", SECTIONS["tuning"])
    every = dict.fromkeys(key for entry in catalogue.algorithms().values() for key in entry.tuned)
    search = Search(
        budget=table.take("budget"),
        seed=table.take("seed"),
        iterations=table.take("iterations"),
        ranges=table.take_given(*every),
    )
    table.close()
    return search
