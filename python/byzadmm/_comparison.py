"""The experiment behind ``byzadmm run``: settings from names and text, verdicts, the picture."""

from __future__ import annotations

import inspect
import math
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import fields, replace
from pathlib import Path
from typing import Any

from byzadmm import aggregate, aggregators, attacks, partition, steps
from byzadmm._internal.atomic_files import save_picture
from byzadmm._internal.validation import check_choice, check_real
from byzadmm.algorithms import ADMM, RSA, SGD, Algorithm
from byzadmm.attacks import Attack
from byzadmm.catalogue import LABELS, Preset, styles
from byzadmm.results import Result

__all__ = [
    "PAPER",
    "algorithm_names",
    "attack_table",
    "build",
    "draw",
    "kebab",
    "link_table",
    "make_algorithm",
    "make_attack",
    "make_rule",
    "make_step",
    "partition_table",
    "rule_table",
    "settings_of",
    "step_table",
    "takes_f",
    "verdict",
]

Table = Mapping[str, Callable[..., Any]]

#: What the paper compares, besides Ideal SGD.
PAPER = ("admm", "rsa", "sgd", "median", "geometric-median")

#: Thresholds of docs/reproduction.md: within CLOSE of Ideal's accuracy; below FAILS times it.
CLOSE, FAILS = 0.02, 0.5

_NOT_STEPS = ("Step", "at", "evaluate")
_NOT_SETTINGS = ("X", "center", "nonfinite", "out", "return_info", "rng", "threads", "weights")


def kebab(name: str) -> str:
    """The command line's spelling: ``SignFlip`` and ``geometric_median`` become ``sign-flip``, ``geometric-median``.

    Examples
    --------
    >>> from byzadmm._comparison import kebab
    >>> kebab("SignFlip"), kebab("ALIE"), kebab("geometric_median")
    ('sign-flip', 'alie', 'geometric-median')
    """
    return re.sub(r"(?<=[a-z0-9])(?=[A-Z])", "-", name).replace("_", "-").lower()


def attack_table() -> dict[str, type[Attack]]:
    """Every attack of ``byzadmm.attacks`` by its name on the command line."""
    return dict(sorted(attacks.REGISTRY.items()))


def rule_table() -> dict[str, Callable[..., Any]]:
    """Every rule of ``byzadmm.aggregate`` by its name on the command line."""
    return {kebab(name): getattr(aggregate, name) for name in aggregators.RULES}


def link_table() -> dict[str, type[aggregators.Aggregator]]:
    """Rules and pre-aggregations, the parts of a chain, by the names of function and class."""
    links = {kebab(name): kind for name, kind in (aggregators.RULES | aggregators.PRE_AGGREGATORS).items()}
    return links | {kebab(kind.__name__): kind for kind in links.values()}


def step_table() -> dict[str, Callable[..., Any]]:
    """Every step size of ``byzadmm.steps`` by its name on the command line."""
    return {kebab(name): getattr(steps, name) for name in steps.__all__ if name not in _NOT_STEPS}


def partition_table() -> dict[str, Callable[..., Any]]:
    """Every partition of ``byzadmm.partition`` by its name on the command line."""
    return {kebab(name): getattr(partition, name) for name in partition.__all__}


def algorithm_names() -> tuple[str, ...]:
    """What ``--algorithm`` takes: the three of the paper, Ideal SGD, and SGD with each rule under the rule's name."""
    return ("admm", "rsa", "sgd", "ideal", *(name for name in rule_table() if name != "mean"))


def build(
    text: str,
    what: str,
    table: Table,
    *,
    given: Sequence[str] = (),
    defaults: Mapping[str, Any] | None = None,
) -> tuple[str, dict[str, Any]]:
    """Take ``name:value,key=value`` apart and check it against what the name's function takes.

    Parameters
    ----------
    text : str
        A name of ``table``; after a colon, values in order or by key.
    what : str
        The argument's name in error messages.
    table : mapping
        Name to function or class.
    given : list of str
        Parameters that the caller supplies; not for the user to set.
    defaults : mapping, optional
        Values for parameters that the user left out, used where the function takes them.

    Returns
    -------
    name, settings : str and dict

    Examples
    --------
    >>> from byzadmm._comparison import attack_table, build
    >>> build("gaussian:std=50", "attack", attack_table())
    ('gaussian', {'std': 50})
    """
    head, colon, tail = text.partition(":")
    name = check_choice(kebab(head.strip()), what, table)
    parameters = {key: item for key, item in settings_of(table[name]).items() if key not in given}
    free = list(parameters)
    settings: dict[str, Any] = {}
    for position, item in enumerate(tail.split(",") if colon else ()):
        key, equals, value = item.rpartition("=")
        if not equals:
            key = free[position] if position < len(free) else ""
        key = key.strip().replace("-", "_")
        if key not in free:
            raise ValueError(f"{what}: {name} takes {', '.join(free) or 'no settings'}; got {item!r}")
        if key in settings:
            raise ValueError(f"{what}: {name} got {key} twice")
        settings[key] = _number(value.strip(), f"{what}: {name}: {key}")
    settings = {key: value for key, value in (defaults or {}).items() if key in free} | settings
    missing = [key for key in free if parameters[key].default is inspect.Parameter.empty and key not in settings]
    if missing:
        raise ValueError(f"{what}: {name} needs {', '.join(missing)}, as in {name}:{missing[0]}=1")
    return name, settings


def settings_of(part: Callable[..., Any]) -> dict[str, inspect.Parameter]:
    """The parameters of a function or class that are settings: not arrays, not where results go."""
    return {key: item for key, item in inspect.signature(part).parameters.items() if key not in _NOT_SETTINGS}


def _number(text: str, what: str) -> int | float | str | None:
    if text.lower() == "none":
        return None
    for kind in (int, float):
        try:
            return kind(text)
        except ValueError:
            continue
    # A choice such as even=low or family=inner-product; the function it goes to knows which are allowed.
    if re.fullmatch(r"[a-z]+([-_+][a-z]+)*", text):
        return text
    raise ValueError(f"{what}: expected a number, got {text!r}")


def make_attack(text: str) -> Attack | None:
    """``none``, or an attack with its settings.

    Examples
    --------
    >>> from byzadmm._comparison import make_attack
    >>> make_attack("gaussian:50")
    Gaussian(std=50)
    """
    table: Table = {**attack_table(), "none": lambda: None}
    name, settings = build(text, "attack", table)
    attack: Attack | None = table[name](**settings)
    return attack


def make_step(text: str, what: str = "step") -> steps.Step:
    """A number for a constant step, or one of ``byzadmm.steps`` with its settings.

    Examples
    --------
    >>> from byzadmm._comparison import make_step
    >>> make_step("0.1"), make_step("inv-sqrt:10,1")
    (Constant(a=0.1), InvSqrt(c0=10.0, c1=1.0))
    """
    try:
        number = float(text)
    except ValueError:
        table = step_table()
        name, settings = build(text, what, table)
        step: steps.Step = table[name](**settings)
        return step
    return steps.constant(check_real(number, what, low=0.0, strict=True))


def make_rule(text: str, f: int) -> tuple[Any, int]:
    """Rule and ``f`` of SGD from text: a name or a chain of names, each with settings if it has any.

    Parameters
    ----------
    text : str
        ``krum``, ``krum:f=3``, ``clip:max-norm=10+nnm+trimmed-mean``.
    f : int
        For every name that takes it and has none of its own.

    Returns
    -------
    rule, f
        A name or a chain of names with what ``SGD`` is to be told about ``f``, or objects that know it.

    Examples
    --------
    >>> from byzadmm._comparison import make_rule
    >>> make_rule("nnm+krum", 8)
    ('nnm+krum', 8)
    >>> make_rule("median:even=low", 8)
    ((Median(nonfinite='exclude', even='low', weights=None),), 0)
    """
    table = link_table()
    links: list[Any] = []
    names = []
    for part in re.split(r"\+(?=\s*[A-Za-z])", text):  # not the plus of 1e+3
        head = kebab(part.partition(":")[0].strip())
        usual = aggregators.NAMED.get(table[head].rule, {}) if head in table else {}
        name, settings = build(part, "rule", table, defaults={"f": f, **usual})
        links.append(table[name](**settings))
        names.append(name)
    told = [link.f for link in links if _has_f(link)]
    # By name where names say it all: the native loop knows rules by name, and a result's config reads better.
    if len(set(told)) <= 1 and aggregators.Chain(tuple(links)) == _as_named(names, *told[:1]):
        return "+".join(names), told[0] if told else 0
    return tuple(links), 0


def _as_named(names: Sequence[str], f: int = 0) -> aggregators.Chain | None:
    try:
        return aggregators.make("+".join(names), f=f)
    except ValueError:  # clipping has no settings that a name could stand for
        return None


def _has_f(link: Any) -> bool:
    return isinstance(link, aggregators.Aggregator) and "f" in {item.name for item in fields(link)}


def takes_f(algorithm: Algorithm) -> bool:
    """Whether a rule of the algorithm is told the number of Byzantine workers."""
    return any(map(_has_f, algorithm.combination().links))


def make_algorithm(name: str, preset: Preset, q: int, options: Mapping[str, Any] | None = None) -> Algorithm:
    """An algorithm by its name on the command line: the preset, and the user's options where the algorithm has them.

    Parameters
    ----------
    name : str
        One of :func:`algorithm_names`; a rule may bring settings, as in ``krum:f=3``, and pre-aggregations, as in
        ``nnm+krum``.
    preset : Preset
    q : int
        Number of Byzantine workers, the default of a rule's ``f``.
    options : mapping, optional
        Of ``lam``, ``beta``, ``step``, ``master_step``, ``worker_step``, ``f``, ``momentum``, ``variance_reduction``.

    Returns
    -------
    ADMM, RSA or SGD

    Examples
    --------
    >>> from byzadmm._comparison import make_algorithm
    >>> from byzadmm.catalogue import PRESETS
    >>> make_algorithm("admm", PRESETS["digits"], 8, {"lam": 0.1}).lam
    0.1
    """
    given = {key: value for key, value in (options or {}).items() if value is not None}
    head, settings = re.match(r"\s*([^:+]*)(.*)", name, re.DOTALL).groups()  # type: ignore[union-attr]
    head = kebab(head.strip())
    links = link_table()
    check_choice(head, "algorithm", (*algorithm_names(), *(links if head in links else ())))
    if settings and head not in links:
        raise ValueError(f"algorithm: {head} takes its settings from options such as --step; got {name!r}")
    if head == "admm":
        return replace(preset.admm, **{key: given[key] for key in ADMM.__dataclass_fields__ if key in given})
    if head == "rsa":
        return preset.rsa.changed(**{key: given[key] for key in RSA.__dataclass_fields__ if key in given})
    common: dict[str, Any] = {key: given[key] for key in ("momentum", "variance_reduction") if key in given}
    common["step"] = given.get("step", preset.step)
    if head in ("sgd", "ideal"):
        return SGD(ideal=head == "ideal", **common)
    rule, f = make_rule(name, given.get("f", q))
    return SGD(rule=rule, f=f, **common)


def verdict(accuracy: float, ideal: float | None) -> str:
    """How an accuracy compares with that of Ideal SGD.

    Examples
    --------
    >>> from byzadmm._comparison import verdict
    >>> verdict(0.94, 0.95), verdict(0.9, 0.95), verdict(0.1, 0.95)
    ('close', '0.050 below', 'fails')
    """
    if ideal is None:
        return ""
    if not accuracy >= FAILS * ideal:
        return "fails"
    return "close" if accuracy >= ideal - CLOSE else f"{ideal - accuracy:.3f} below"


def draw(path: str | Path, results: Sequence[tuple[str, Result]], title: str) -> None:
    """Accuracy against iterations, one curve per algorithm. Needs matplotlib; leaves no state in it."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(6.4, 4.2), layout="constrained")
    axes = figure.subplots()
    metric, label = "accuracy", "test accuracy"
    if all(math.isnan(result.accuracy[-1]) for _, result in results):  # a problem without a test set
        metric, label = "loss", "loss"
    looks = styles([name for name, _ in results])
    for name, result in results:
        axes.plot(
            result.iterations,
            getattr(result, metric),
            color=looks[name].color,
            linestyle=looks[name].line,
            linewidth=1.5 if name == "ideal" else 2,
            label=LABELS.get(name, name),
            zorder=3 if name == "ideal" else 2,  # dotted: what it coincides with stays visible
        )
    axes.set(xlabel="iterations", ylabel=label, title=title)
    if metric == "accuracy":
        axes.set_ylim(0, 1)
    axes.margins(x=0)
    axes.grid(alpha=0.3)
    legend = axes.legend(loc="center right", framealpha=0.9)
    for text in (axes.title, *legend.get_texts()):  # a user's words as they are
        text.set_parse_math(False)
    save_picture(figure, path, dpi=150)
