"""What the name of an algorithm means on a graph: class, label, settings per data set, plot style."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import fields
from typing import Any

from byzadmm import decentralized as _decentralized
from byzadmm.catalogue.entries import (
    AlgorithmEntry,
    Entry,
    Style,
    algorithms,
    first_line,
    hyphenated,
    rules,
)
from byzadmm.decentralized import DADMM, DRSA, DSGD, UBAR, ByRDiE
from byzadmm.graphs import Flaky, Graph

__all__ = [
    "INSTEAD",
    "NETWORKS",
    "ON_GRAPHS",
    "decentralized",
    "known_as",
    "known_on_graphs",
    "neighborhood_rules",
    "rule_name",
]

#: What is compared on a graph unless said otherwise, besides Ideal SGD.
ON_GRAPHS = ("dadmm", "drsa", "gossip", "trim-neighbors", "ios")

_MEMORY = ("momentum",)
_IDEAL = {"rule": "gossip", "ideal": True}


def _admm(given: Mapping[str, Any], graph: Graph | Flaky) -> dict[str, Any]:
    """The arguments of DADMM: a slope becomes the steps of the nodes."""
    made = dict(given)
    slope = made.pop("slope", None)
    if (slope is None) == ("step" not in made):
        raise ValueError(f"step: expected step or slope, got {'neither' if slope is None else 'both'}")
    return made if slope is None else made | {"step": _decentralized.degree_steps(graph, made["beta"], slope)}


#: Algorithms of ``byzadmm.decentralized``.
NETWORKS = {
    "dadmm": AlgorithmEntry(
        DADMM,
        "DADMM",
        ("lam", "beta"),
        ("slope", "step"),
        lambda preset, graph, **given: DADMM.of(preset.admm, graph, **given),
        ("lam", "beta", "slope"),
        Style("#B2182B", "-", "o"),
        about=first_line(DADMM),
        own=("lam", "beta", "slope"),
        on_graph=_admm,
    ),
    "drsa": AlgorithmEntry(
        DRSA,
        "DRSA",
        ("lam", "step"),
        (),
        lambda preset, graph, **given: DRSA.of(preset.rsa, graph, **given),
        ("lam", "step"),
        Style("#4575B4", "--", "s"),
        about="RSA on a graph: subgradients of the TV norm that couples neighbors.",
        own=("lam",),
    ),
    "dsgd": AlgorithmEntry(
        DSGD,
        "DSGD",
        ("step",),
        ("rule", "f", "order", *_MEMORY),
        lambda preset, graph, **given: DSGD(**{"step": preset.step, "f": "exact"} | given),
        style=Style("#777777", "-.", "x"),
        fixed={"f": "exact"},
        about="Decentralized SGD with a neighborhood rule; by default gossip.",
        own=("rule", "f", "order", *_MEMORY),
    ),
    "ideal": AlgorithmEntry(
        DSGD,
        "Ideal SGD",
        ("step",),
        _MEMORY,
        lambda preset, graph, **given: DSGD(**{"step": preset.step} | _IDEAL | given),
        style=Style("#000000", ":", "*"),
        fixed=_IDEAL,
        about="Gossip without the Byzantine nodes, which are cut off: the reference of every comparison.",
    ),
    "byrdie": AlgorithmEntry(
        ByRDiE,
        "ByRDiE",
        ("step",),
        (),
        lambda preset, graph, **given: ByRDiE(**{"step": preset.step, "b": "exact"} | given),
        fixed={"b": "exact"},
        about=first_line(ByRDiE),
        own=("b", "blocks", "inner", "own"),
    ),
    "ubar": AlgorithmEntry(
        UBAR,
        "UBAR",
        ("step",),
        (),
        lambda preset, graph, **given: UBAR(**{"step": preset.step} | given),
        about="Of the nearest neighbors, those with no larger loss on the node's own batch.",
        own=("rho", "alpha"),
    ),
}

# Neighborhood rules by the names of their classes: what they are called, and the look of those that have one.
_RULES: dict[str, tuple[str, str, Style | None]] = {
    "gossip": ("gossip", "Gossip", Style("#969696", (0, (5, 1)), "+")),
    "trimneighbors": ("trim-neighbors", "BRIDGE-T", Style("#66A61E", (0, (5, 2)), "v")),
    "wmsr": ("wmsr", "W-MSR", None),
    "ios": ("ios", "IOS", Style("#1B9E77", (0, (3, 1, 1, 1)), "^")),
    "faba": ("faba", "FABA", None),
    "nna": ("nna", "NNA", None),
    "selfcenteredclipping": (
        "self-centered-clipping",
        "Self-centered clipping",
        Style("#7570B3", (0, (1, 1)), "D"),
    ),
    "csplus": ("cs-plus", "CS+", None),
}

#: What to use on a graph in place of an algorithm with a master.
INSTEAD = {"admm": "dadmm", "async-admm": "dadmm", "rsa": "drsa", "async-rsa": "drsa", "sgd": "dsgd"}


def neighborhood_rules() -> dict[str, Entry]:
    """Every neighborhood rule of ``byzadmm.decentralized`` by the name that a person types.

    Examples
    --------
    >>> from byzadmm import catalogue
    >>> catalogue.neighborhood_rules()["trim-neighbors"].settings
    {'b': None, 'own': 'kept'}
    """
    return {_name(key): Entry(kind, _settings(kind), first_line(kind)) for key, kind in _decentralized.RULES.items()}


def _name(key: str) -> str:
    return _RULES[key][0] if key in _RULES else hyphenated(_decentralized.RULES[key].__name__)


def _settings(kind: type) -> dict[str, Any]:
    return {item.name: item.default for item in fields(kind)}


def decentralized() -> dict[str, AlgorithmEntry]:
    """Every algorithm on a graph: those of ``byzadmm.decentralized``, and DSGD with each rule under its name.

    A name that :func:`byzadmm.catalogue.algorithms` has too is here what it means on a graph.
    """
    looks = {name: (label, style) for name, label, style in _RULES.values()}
    near = {
        name: _with_rule(name, *looks.get(name, (name, None)), f"DSGD with this rule. {entry.about}")
        for name, entry in neighborhood_rules().items()
    }
    masters = algorithms()
    far = {
        name: _with_rule(
            name.replace("-", "_"),
            masters[name].label if name in masters else name,
            masters[name].style if name in masters else None,
            f"DSGD with this rule on a node's own model and its neighbors'. {entry.about}",
        )
        for name, entry in rules().items()
    }
    return NETWORKS | near | far


def _with_rule(rule: str, label: str, style: Style | None, about: str) -> AlgorithmEntry:
    return AlgorithmEntry(
        DSGD,
        label,
        ("step",),
        ("f", "order", *_MEMORY),
        lambda preset, graph, **given: DSGD(**{"step": preset.step, "rule": rule, "f": "exact"} | given),
        style=style,
        fixed={"rule": rule},
        about=about,
    )


def known_as(head: str, table: Mapping[str, Any]) -> str | None:
    """The name in ``table`` that is spelled like this, with hyphens or without; None if there is none."""
    plain = re.sub(r"[-_ ]", "", head).lower()
    return next((name for name in table if name.replace("-", "") == plain), None)


def rule_name(rule: Any) -> str:
    """The name of DSGD with the rule that a config describes.

    Examples
    --------
    >>> from byzadmm.catalogue.networks import rule_name
    >>> rule_name("IOS(b=2)"), rule_name("nearest_neighbor_mixing+krum")
    ('ios', 'nnm+krum')
    """
    parts = [str(part).partition("(")[0] for part in (rule if isinstance(rule, (list, tuple)) else [rule])]
    near = known_as(parts[0], neighborhood_rules())
    return near or "+".join(map(hyphenated, parts)).replace("nearest-neighbor-mixing", "nnm")


def known_on_graphs(head: str) -> bool:
    """Whether a name has a meaning on a graph."""
    return known_as(head, decentralized()) is not None
