"""What things are called and how they look in pictures."""

from __future__ import annotations

import functools
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import replace
from typing import Any

from byzadmm._internal.description import describe
from byzadmm.attacks import Attack
from byzadmm.catalogue.entries import PARTITIONS, AlgorithmEntry, Style, algorithms, hyphenated
from byzadmm.catalogue.networks import decentralized, rule_name
from byzadmm.catalogue.text import parse

__all__ = [
    "LABELS",
    "STYLES",
    "attack_name",
    "attack_title",
    "describe_attack",
    "distinct_attacks",
    "label_of",
    "name_of",
    "partition_label",
    "styles",
]


def _entries() -> dict[str, AlgorithmEntry]:
    """Every algorithm, with a master and on a graph: what has one name is called and drawn the same."""
    return decentralized() | algorithms()


#: What an algorithm is called in a picture; others go by the name that was typed.
LABELS: dict[str, str] = {name: entry.label for name, entry in _entries().items() if entry.label != name}

#: Color, line and marker of an algorithm in every picture.
STYLES: dict[str, Style] = {name: entry.style for name, entry in _entries().items() if entry.style is not None}

# For algorithms without a style of their own, in this order; none of them looks like ADMM, RSA, SGD or Ideal.
_OTHERS = (
    Style("#E69F00", "-", "P"),
    Style("#56B4E9", "--", "D"),
    Style("#009E73", "-.", "^"),
    Style("#CC79A7", ":", "v"),
    Style("#332288", (0, (5, 1)), "X"),
    Style("#44AA99", (0, (3, 1, 1, 1)), "p"),
    Style("#882255", (0, (1, 1)), "h"),
    Style("#999933", (0, (5, 1, 1, 1, 1, 1)), "<"),
    Style("#661100", (0, (8, 2)), ">"),
)

# Once these are used: the same colors with other lines.
_MORE = [
    replace(style, line=_OTHERS[(place + turn) % len(_OTHERS)].line)
    for turn in range(1, len(_OTHERS))
    for place, style in enumerate(_OTHERS)
]

_ATTACK_TITLES = {
    "LargeValue": "large-value attack",
    "SignFlip": "sign-flipping attack",
    "SmallValue": "small-value attack",
}


def styles(names: Sequence[str], taken: Collection[str] = ()) -> dict[str, Style]:
    """A style for each name: its own, or one whose color is free as long as there are any.

    Parameters
    ----------
    names : list of str
        Those of :data:`STYLES` have a style of their own.
    taken : colors that are in the picture already

    Returns
    -------
    dict

    Examples
    --------
    >>> from byzadmm import catalogue
    >>> {name: style.color for name, style in catalogue.styles(["krum", "admm", "bulyan"]).items()}
    {'krum': '#E69F00', 'admm': '#D55E00', 'bulyan': '#56B4E9'}
    """
    used = [color.upper() for color in taken]
    chosen = {name: STYLES[name] for name in names if name in STYLES and STYLES[name].color not in used}
    used += [style.color for style in chosen.values()]
    for name in dict.fromkeys(names):
        if name not in chosen:
            free = [style for style in _OTHERS if style.color not in used]
            start = len(used) % len(_MORE)
            free += [style for style in _MORE[start:] + _MORE[:start] if style not in chosen.values()]
            chosen[name] = (free or _MORE)[0]
            used.append(chosen[name].color)
    return {name: chosen[name] for name in names}


def label_of(algorithm: Mapping[str, Any]) -> tuple[str, str]:
    """Name and label of the algorithm that a result's config describes.

    Parameters
    ----------
    algorithm : dict
        ``result.config["algorithm"]``.

    Returns
    -------
    name, label : str
        The name is a key of :data:`STYLES` where there is one.

    Examples
    --------
    >>> from byzadmm import SGD, catalogue
    >>> catalogue.label_of(SGD(rule="krum", f=8, momentum=0.9).describe())
    ('krum', 'krum, momentum 0.9')
    >>> catalogue.label_of(SGD(rule="median").describe())
    ('median', 'Median')
    """
    kind = str(algorithm.get("name"))
    name, rule = kind.lower(), algorithm.get("rule", "mean")
    if algorithm.get("ideal"):
        name = "ideal"
    elif name == "dsgd":
        name, rule = rule_name(rule), "mean"
    elif hyphenated(kind) in LABELS and kind != "SGD":
        return _other_label(hyphenated(kind), algorithm)
    elif rule != "mean":
        name = "+".join(map(str, rule if isinstance(rule, (list, tuple)) else [rule]))
        name = name.replace("_", "-").replace("nearest-neighbor-mixing", "nnm")
    part = _part_name(algorithm.get("filter") or algorithm.get("coding"))
    if part and rule == "mean":
        name, part = hyphenated(part), ""
    more = [part] if part else []
    more += [f"momentum {algorithm['momentum']:g}"] if algorithm.get("momentum") else []
    more += [str(algorithm["variance_reduction"])] if algorithm.get("variance_reduction") else []
    return name, ", ".join([LABELS.get(name, name), *more])


def _other_label(name: str, algorithm: Mapping[str, Any]) -> tuple[str, str]:
    """Name and label of an algorithm other than SGD, with the rule that it has in place of its usual one."""
    if algorithm.get("join") == "comparison":
        name = "cnm"
    entry = _entries()[name]
    usual = getattr(entry.kind, "__dataclass_fields__", {})
    own = {key: entry.fixed.get(key, usual[key].default) for key in ("rule", "join") if key in usual}
    more = [str(algorithm[key]).replace("_", "-") for key, default in own.items() if algorithm.get(key) != default]
    return name, ", ".join([LABELS.get(name, name), *more])


def _part_name(described: Any) -> str:
    """The class of a filter or code that a config describes; empty if there is none."""
    if isinstance(described, Mapping):
        return str(described.get("name", ""))
    return str(described).partition("(")[0] if described else ""


def partition_label(text: str) -> str:
    """What a partition is called in tables and pictures.

    Examples
    --------
    >>> from byzadmm import catalogue
    >>> catalogue.partition_label("iid"), catalogue.partition_label("dirichlet:0.3")
    ('i.i.d.', 'Dirichlet(0.3)')
    >>> catalogue.partition_label("gamma-similarity:0.5"), catalogue.partition_label("iid:among=regular")
    ('gamma-similarity(0.5)', 'i.i.d. among regular')
    """
    name, given = parse(text, "partition", PARTITIONS)
    shown = {"alpha": "Dirichlet", "gamma": name}
    settings = {**PARTITIONS[name].settings, **given}
    words = {"iid": "i.i.d.", "by-label": "data by label"}.get(name, name)
    for key in shown.keys() & settings.keys():
        words = f"{shown[key]}({settings[key]:g})"
    return words if settings["among"] == "all" else f"{words} among regular"


def attack_name(attack: Callable[..., Any] | None) -> str:
    """What an attack is called on the command line and in settings files; for your own, the function or class.

    Examples
    --------
    >>> from byzadmm import attacks, catalogue
    >>> catalogue.attack_name(attacks.SignFlip()), catalogue.attack_name(max), catalogue.attack_name(None)
    ('sign-flip', 'max', 'none')
    """
    if attack is None:
        return "none"
    return hyphenated(type(attack).__name__) if isinstance(attack, Attack) else name_of(attack)


def attack_title(attack: Callable[..., Any] | None) -> str:
    """What an attack is called above a plot.

    Examples
    --------
    >>> from byzadmm import attacks, catalogue
    >>> catalogue.attack_title(attacks.SignFlip()), catalogue.attack_title(None)
    ('sign-flipping attack', 'no attack')
    """
    if attack is None:
        return "no attack"
    name = name_of(attack)
    return _ATTACK_TITLES.get(name, f"{name} attack")


def describe_attack(attack: Callable[..., Any] | None) -> dict[str, Any] | None:
    """Name and settings of an attack; of your own, what is known of it.

    Examples
    --------
    >>> from byzadmm import attacks, catalogue
    >>> catalogue.describe_attack(attacks.SignFlip()), catalogue.describe_attack(max)
    ({'name': 'SignFlip', 'scale': -3.0}, {'name': 'max'})
    """
    if attack is None:
        return None
    return attack.describe() if isinstance(attack, Attack) else {"name": str(describe(attack))}


def distinct_attacks(attacks: Sequence[Callable[..., Any] | None], name: Callable[[Any], str]) -> list[str]:
    """The names of several attacks; those with the same name are told apart by the settings that differ, or by numbers.

    Examples
    --------
    >>> from byzadmm import attacks, catalogue
    >>> catalogue.distinct_attacks([attacks.Gaussian(10), attacks.Gaussian(50), None], catalogue.attack_name)
    ['gaussian (std=10)', 'gaussian (std=50)', 'none']
    """
    plain = [name(attack) for attack in attacks]
    about = [describe_attack(attack) or {} for attack in attacks]
    names = []
    for text, settings in zip(plain, about, strict=True):
        alike = [other for other, same in zip(about, plain, strict=True) if same == text]
        shown = [f"{key}={value}" for key, value in settings.items() if any(o.get(key) != value for o in alike)]
        names.append(f"{text} ({', '.join(shown)})" if shown else text)
    return [
        f"{text} {names[:place].count(text) + 1}" if names.count(text) > 1 else text for place, text in enumerate(names)
    ]


def name_of(part: Callable[..., Any]) -> str:
    """The name of a function, or of the class of an object.

    Examples
    --------
    >>> import functools
    >>> from byzadmm import catalogue
    >>> catalogue.name_of(max), catalogue.name_of(functools.partial(max, 0))
    ('max', 'max')
    """
    while isinstance(part, functools.partial):
        part = part.func
    return str(getattr(part, "__name__", type(part).__name__))
