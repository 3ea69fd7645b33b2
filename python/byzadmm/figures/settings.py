"""Experiments as data: a settings file in, a checked record of one panel out."""

from __future__ import annotations

import re
import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from importlib import resources
from pathlib import Path
from typing import Any

from byzadmm import attacks, losses, partition, steps
from byzadmm._comparison import make_rule
from byzadmm._internal.validation import check_choice, check_int, check_real
from byzadmm.algorithms import ADMM, RSA, SGD, Algorithm
from byzadmm.catalogue import LABELS
from byzadmm.datasets import Dataset

if sys.version_info >= (3, 11):
    import tomllib
else:  # pragma: no cover - Python 3.10
    import tomli as tomllib  # type: ignore[import-not-found, unused-ignore]

__all__ = [
    "FIGURES",
    "Case",
    "Curve",
    "Search",
    "Settings",
    "available",
    "build_algorithm",
    "load_settings",
    "make_parts",
    "settings_path",
]

#: The panels that come with the package: those of the paper in its order, and the rules under every attack.
FIGURES = ("fig1a", "fig1b", "fig2a", "fig2b", "fig3a", "fig3b", "fig4a", "fig4b", "fig5a", "fig5b", "example", "rules")

ATTACKS: dict[str, type[attacks.Attack]] = attacks.REGISTRY

#: Parameters that each kind of algorithm takes in a settings file.
KINDS: dict[str, tuple[str, ...]] = {
    "admm": ("lam", "beta", "master_step", "worker_step"),
    "rsa": ("lam", "step", "master_step", "worker_step"),
    "sgd": ("step",),
    "ideal": ("step",),
    "median": ("step",),
    "geometric-median": ("step",),
    "trimmed-mean": ("step", "f"),
}

_STEPS = {"inv_sqrt": 2, "power": 2, "constant": 1, "inv_linear": 3}  # name -> most numbers it takes
_MAX_BYTES, _MAX_PARTS = 1 << 16, 100  # of a settings file, of a key in it
_DATASETS = ("digits", "synthetic", "mnist", "covtype", "fashion_mnist", "quadratic")


@dataclass(frozen=True)
class Curve:
    """One algorithm of a panel: its name in the file, its kind, and the settings it runs with."""

    name: str
    kind: str
    label: str
    algorithm: Algorithm
    printed: bool = False
    validation: float | None = None


@dataclass(frozen=True)
class Case:
    """What the algorithms face in one plot of a panel, or in one column of a heat map."""

    attack: attacks.Attack | None
    n_byzantine: int
    partition: str


@dataclass(frozen=True)
class Search:
    """How ``tune`` looks for parameters: how many trials, how long, in which ranges."""

    budget: int
    seed: int
    iterations: int
    ranges: Mapping[str, tuple[float, float]]


@dataclass(frozen=True)
class Settings:
    """One panel, checked.

    ``attacks`` has one entry per plot of the panel; None is "no attack". ``sweep`` lists the values of ``lam`` that
    every algorithm with a ``lam`` is run with. ``heat_map`` lists the number of Byzantine workers and the partition of
    every map; a panel that has it shows final accuracies, algorithms by attacks. ``seeds`` is the most it is run with.
    """

    name: str
    title: str
    path: Path
    dataset: str
    scale: float | str | None
    partition: str
    alpha: float
    n_workers: int
    n_byzantine: int
    attacks: tuple[attacks.Attack | None, ...]
    iterations: int
    eval_every: int
    batch_size: int
    rho: float
    curves: tuple[Curve, ...]
    sweep: tuple[float, ...] = ()
    search: Search | None = None
    quadratic: dict[str, Any] = field(default_factory=dict)
    note: str = ""
    heat_map: tuple[tuple[int, str], ...] = ()
    seeds: int | None = None

    def cases(self) -> tuple[Case, ...]:
        """One per attack; in a heat map one per attack for every map."""
        maps = self.heat_map or ((self.n_byzantine, self.partition),)
        return tuple(Case(attack, q, partition) for q, partition in maps for attack in self.attacks)

    def algorithm(self, curve: Curve, case: Case) -> Algorithm | None:
        """What a curve runs with. In a heat map a rule's ``f`` is the number of liars, unless the file has one.

        None: nothing to run, as the rule does not bear that ``f``; or Ideal SGD, which no attack concerns, once more.
        """
        made = curve.algorithm
        if not self.heat_map:
            return made
        if made.ideal:
            return made if case.attack is self.attacks[0] else None
        made = made.declaring(case.n_byzantine)
        try:
            made.check(self.n_workers)
        except ValueError:
            return None
        return made

    def all_curves(self) -> tuple[Curve, ...]:
        """The curves to draw: those of the file, or one per value of the sweep."""
        if not self.sweep:
            return self.curves
        return tuple(
            replace(
                curve,
                name=f"{curve.name}:lam={lam:g}",
                label=f"{curve.kind.upper()}, λ = {lam:g}",
                algorithm=curve.algorithm.changed(lam=lam),
            )
            for curve in self.curves
            if curve.kind == "admm"
            for lam in self.sweep
        )

    def words(self, partition: str) -> str:
        """A partition by name, with ``alpha`` where it has one."""
        return f"Dirichlet({self.alpha:g})" if partition == "dirichlet" else partition

    def quick(self) -> Settings:
        """The same with a fifth of the iterations, for a first look; not the paper's."""
        iterations = max(1, self.iterations // 5)
        return replace(self, iterations=iterations, eval_every=max(1, min(self.eval_every, iterations // 10)))

    def loss(self) -> losses.Quadratic | str:
        """What the workers minimise."""
        return losses.Quadratic(self.quadratic["a"], self.quadratic["b"]) if self.quadratic else "softmax"


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


def settings_path(name_or_path: str | Path) -> Path:
    """The file behind a panel's name, or the path itself."""
    text = str(name_or_path)
    if text in FIGURES:
        return Path(str(resources.files("byzadmm.figures"))) / "settings" / f"{text}.toml"
    path = Path(text)
    if not path.is_file():
        hint = "" if path.suffix == ".toml" else f"; panels are {', '.join(FIGURES)}"
        raise ValueError(f"{text}: no such settings file{hint}")
    return path


def load_settings(name_or_path: str | Path) -> Settings:
    """Read and check a settings file: one of the package by name, or your own by path.

    Parameters
    ----------
    name_or_path : str or Path
        "fig1a" ... "fig5b", "example", or a ``.toml`` file.

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
        if any(key.count(".") > _MAX_PARTS for key in re.split("[=,{\n]", text)):  # tomllib takes their number squared
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


def make_parts(settings: Settings, dataset: Dataset, seed: int, kind: str | None = None) -> list[Any]:
    """The workers' shares of the training set, drawn anew for each seed; ``kind`` if not the partition of the file."""
    y, m = dataset.train_y, settings.n_workers
    kind = kind or settings.partition
    if kind == "by-label":
        return list(partition.by_label(y, m, per_label=max(1, m // dataset.n_classes), seed=seed))
    if kind == "dirichlet":
        return list(partition.dirichlet(y, m, settings.alpha, seed=seed))
    return list(partition.iid(y, m, seed=seed))


class _Table:
    """A table of the file whose keys are taken one by one; what is left at the end is unknown."""

    def __init__(self, values: Any, where: str) -> None:
        if not isinstance(values, dict):
            raise TypeError(f"{where.rstrip('.')}: expected a table, got {type(values).__name__}")
        self.values, self.where = dict(values), where

    def take(self, key: str, check: Callable[[Any, str], Any], *default: Any) -> Any:
        if key not in self.values:
            if default:
                return default[0]
            raise ValueError(f"{self.where}{key}: missing")
        return check(self.values.pop(key), self.where + key)

    def close(self) -> None:
        if self.values:
            raise ValueError(f"{self.where}{min(self.values)}: unknown key")


def _read(path: Path, values: dict[str, Any]) -> Settings:
    table = _Table(values, "")
    dataset = table.take("dataset", lambda v, n: check_choice(v, n, _DATASETS))
    quadratic = table.take("quadratic", _quadratic, {}) if dataset == "quadratic" else {}
    if dataset == "quadratic" and not quadratic:
        raise ValueError("quadratic: missing")
    settings = Settings(
        name=path.stem,
        title=table.take("title", _string, path.stem),
        note=table.take("note", _string, ""),
        path=path,
        dataset=dataset,
        scale=table.take("scale", _scale, None),
        partition=table.take("partition", _partition, "iid"),
        alpha=table.take("alpha", _positive, 0.5),
        n_workers=len(quadratic["a"]) if quadratic else table.take("n_workers", _count, 20),
        n_byzantine=table.take("n_byzantine", lambda v, n: check_int(v, n, low=0), 0),
        attacks=table.take("attack", _attacks, (None,)),
        iterations=table.take("iterations", _count),
        eval_every=table.take("eval_every", _count),
        batch_size=table.take("batch_size", _count, 32),
        rho=table.take("rho", lambda v, n: check_real(v, n, low=0.0), 0.01),
        curves=table.take("algorithms", _curves),
        sweep=table.take("sweep", _numbers, ()),
        heat_map=table.take("heat_map", _heat_map, ()),
        seeds=table.take("seeds", _count, None),
        search=table.take("tuning", _search, None),
        quadratic=quadratic,
    )
    table.close()
    for case in settings.cases():
        if case.n_byzantine > settings.n_workers:
            raise ValueError(f"n_byzantine: expected at most n_workers={settings.n_workers}, got {case.n_byzantine}")
    for curve in () if settings.heat_map else settings.curves:  # a heat map shows where a rule does not bear its f
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


def _string(value: Any, name: str) -> str:
    if not isinstance(value, str):
        raise TypeError(f"{name}: expected a string, got {type(value).__name__}")
    return value


def _count(value: Any, name: str) -> int:
    return check_int(value, name, low=1)


def _positive(value: Any, name: str) -> float:
    return check_real(value, name, low=0.0, strict=True)


def _flag(value: Any, name: str) -> bool:
    if not isinstance(value, bool):
        raise TypeError(f"{name}: expected true or false, got {type(value).__name__}")
    return value


def _numbers(value: Any, name: str) -> tuple[float, ...]:
    if not isinstance(value, list) or not value:
        raise TypeError(f"{name}: expected a list of numbers, got {value!r}")
    return tuple(check_real(item, name) for item in value)


def _range(value: Any, name: str) -> tuple[float, float]:
    ends = _numbers(value, name)
    if len(ends) != 2 or not 0 < ends[0] < ends[1]:
        raise ValueError(f"{name}: expected two numbers 0 < low < high, got {value!r}")
    return ends[0], ends[1]


def _scale(value: Any, name: str) -> float | str:
    return check_choice(value, name, ("raw", "unit", "standard")) if isinstance(value, str) else _positive(value, name)


def _partition(value: Any, name: str) -> str:
    return check_choice(value, name, ("iid", "by-label", "dirichlet"))


def _heat_map(value: Any, name: str) -> tuple[tuple[int, str], ...]:
    table = _Table(value, f"{name}.")
    liars = table.take("n_byzantine", lambda v, n: [check_int(q, n, low=0) for q in _list(v, n)])
    kinds = table.take("partition", lambda v, n: [_partition(kind, n) for kind in _list(v, n)], ["iid"])
    table.close()
    return tuple((q, kind) for kind in kinds for q in liars)


def _list(value: Any, name: str) -> list[Any]:
    if not isinstance(value, list) or not value:
        raise TypeError(f"{name}: expected a list, got {value!r}")
    return value


def _quadratic(value: Any, name: str) -> dict[str, Any]:
    table = _Table(value, f"{name}.")
    read = {key: list(table.take(key, _numbers)) for key in ("a", "b", "x")}
    read["x0"] = table.take("x0", check_real, 0.0)
    read["first_k"] = table.take("first_k", lambda v, n: check_int(v, n, low=0), 1)
    table.close()
    if not len(read["a"]) == len(read["b"]) == len(read["x"]):
        raise ValueError(f"{name}: expected a, b and x of one length, one number per worker")
    return read


def _attacks(value: Any, name: str) -> tuple[attacks.Attack | None, ...]:
    return tuple(_attack(item, name) for item in (value if isinstance(value, list) else [value]))


def _attack(value: Any, name: str) -> attacks.Attack | None:
    table = _Table(value, f"{name}.")
    kind = table.take("name", lambda v, n: check_choice(v, n, ("none", *ATTACKS)))
    options, table.values = table.values, {}
    if kind == "none":
        if options:
            raise ValueError(f"{name}.{min(options)}: unknown key")
        return None
    made: Any = ATTACKS[kind]
    unknown = sorted(set(options) - set(made.__dataclass_fields__))
    if unknown:
        raise ValueError(f"{name}.{unknown[0]}: unknown key")
    built: attacks.Attack = made(**options)
    return built


def _curves(value: Any, name: str) -> tuple[Curve, ...]:
    if not isinstance(value, dict) or not value:
        raise TypeError(f"{name}: expected at least one table [{name}.NAME]")
    return tuple(_curve(key, _Table(entry, f"{name}.{key}.")) for key, entry in value.items())


def _curve(name: str, table: _Table) -> Curve:
    kind = table.take("kind", lambda v, n: check_choice(v, n, KINDS), name.removesuffix("-tuned"))
    if kind not in KINDS:
        raise ValueError(f"{table.where}kind: missing (one of {', '.join(KINDS)})")
    printed = table.take("printed", _flag, False)
    added = " (printed)" if printed else " (tuned)" if name.endswith("-tuned") else ""
    rule = table.values.get("rule") if kind == "sgd" else None
    label = table.take("label", _string, rule if isinstance(rule, str) else LABELS[kind] + added)
    validation = table.take("validation", lambda v, n: check_real(v, n, low=0.0, high=1.0), None)
    given: dict[str, Any] = {}
    for key in KINDS[kind]:
        check = _step if key.endswith("step") else check_int if key == "f" else _positive
        optional = kind == "rsa" and key.endswith("step")
        item = table.take(key, check, *((None,) if optional else ()))
        if item is not None:
            given[key] = item
    if kind not in ("admm", "rsa"):
        given |= _sgd_options(kind, table)
    table.close()
    try:
        algorithm = build_algorithm(kind, given)
    except (TypeError, ValueError) as error:
        raise ValueError(f"{table.where.rstrip('.')}: {error}") from error
    return Curve(name, kind, label, algorithm, printed, validation)


def _sgd_options(kind: str, table: _Table) -> dict[str, Any]:
    """What SGD may have besides its step; a rule is written as on the command line."""
    checks: dict[str, Callable[[Any, str], Any]] = {"momentum": check_real, "variance_reduction": _string}
    if kind == "sgd":
        checks["f"] = check_int
    given = {key: table.take(key, check) for key, check in checks.items() if key in table.values}
    if kind == "sgd" and "rule" in table.values:
        given["rule"], given["f"] = table.take("rule", lambda v, n: make_rule(_string(v, n), given.get("f", 0)))
    return given


def build_algorithm(kind: str, given: dict[str, Any]) -> Algorithm:
    """The algorithm of that kind with these parameters."""
    if kind == "admm":
        return ADMM(**given)
    if kind == "rsa":
        return RSA(**given)
    rule = {"sgd": "mean", "ideal": "mean"}.get(kind, kind.replace("-", "_"))
    settings: dict[str, Any] = {"rule": rule, "ideal": kind == "ideal"} | given
    return SGD(**settings)


def _step(value: Any, name: str) -> steps.Step:
    """``{ inv_sqrt = [10, 10] }``: a function of ``byzadmm.steps`` and its numbers."""
    if not isinstance(value, dict) or len(value) != 1:
        raise TypeError(f"{name}: expected one of {', '.join(_STEPS)} with its numbers, got {value!r}")
    [(kind, numbers)] = value.items()
    check_choice(kind, name, _STEPS)
    arguments = _numbers(numbers if isinstance(numbers, list) else [numbers], name)
    if len(arguments) > _STEPS[kind] or (kind in ("inv_sqrt", "inv_linear") and len(arguments) < 2):
        raise ValueError(f"{name}: {kind} got {len(arguments)} numbers")
    built: steps.Step = getattr(steps, kind)(*arguments)
    return built


def _search(value: Any, name: str) -> Search:
    table = _Table(value, f"{name}.")
    search = Search(
        budget=table.take("budget", _count),
        seed=table.take("seed", lambda v, n: check_int(v, n, low=0), 0),
        iterations=table.take("iterations", _count),
        ranges={key: table.take(key, _range) for key in ("step", "lam", "beta", "slope") if key in table.values},
    )
    table.close()
    return search
