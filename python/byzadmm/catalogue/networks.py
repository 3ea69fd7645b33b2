"""Algorithms on a graph by name: what each name means there, and objects from text such as ``dadmm`` or ``ios:b=2``."""

from __future__ import annotations

import inspect
import os
import re
from collections.abc import Iterable, Mapping
from dataclasses import fields
from typing import Any

from byzadmm import decentralized as _decentralized
from byzadmm._internal.validation import check_choice
from byzadmm.catalogue.entries import (
    REQUIRED,
    AlgorithmEntry,
    Entry,
    Style,
    algorithms,
    first_line,
    graphs,
    hyphenated,
    links,
    rules,
)
from byzadmm.catalogue.own import own_entry, split_own
from byzadmm.catalogue.presets import Preset
from byzadmm.catalogue.text import make_rule, parse, settings_in, split_chain
from byzadmm.decentralized import DADMM, DRSA, DSGD, UBAR, ByRDiE, DecentralizedAlgorithm
from byzadmm.graphs import Flaky, Graph
from byzadmm.graphs.flaky import checked_graph

__all__ = [
    "ON_GRAPHS",
    "decentralized",
    "make_decentralized",
    "make_graph",
    "make_neighborhood_rule",
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


_NETWORKS = {
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

# What to use on a graph in place of an algorithm with a master.
_INSTEAD = {"admm": "dadmm", "async-admm": "dadmm", "rsa": "drsa", "async-rsa": "drsa", "sgd": "dsgd"}


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
    return _NETWORKS | near | far


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


def make_neighborhood_rule(text: str, f: Any = None) -> tuple[Any, Any]:
    """Rule and ``f`` of DSGD from text: a neighborhood rule, or a rule or chain of ``byzadmm.aggregators``.

    Parameters
    ----------
    text : str
        ``ios``, ``ios:b=2``, ``krum``, ``krum:f=2``, ``nnm+trimmed-mean``.
    f : int, list of int, "exact" or None
        For a rule that does not say its own number; None: "exact", as many Byzantine neighbors as each node has.

    Returns
    -------
    rule, f
        Arguments of ``DSGD``.

    Examples
    --------
    >>> from byzadmm.catalogue import make_neighborhood_rule
    >>> make_neighborhood_rule("ios"), make_neighborhood_rule("ios:b=2")
    (('ios', 'exact'), (IOS(b=2), 0))
    >>> make_neighborhood_rule("nnm+krum"), make_neighborhood_rule("krum:f=2")
    (('nnm+krum', 'exact'), ('krum', 2))
    """
    declared = "exact" if f is None else f
    near = _known(text.partition(":")[0], neighborhood_rules())
    if near is not None:
        if ":" not in text:
            return near, declared
        entry = neighborhood_rules()[near]
        made = entry.make(**parse(f"{near}:{text.partition(':')[2]}", "rule", {near: entry})[1])
        return made, 0 if made.declared(0) else declared
    # By name a rule gets the number of each node; with other settings it is one object for all nodes.
    parts = [parse(part, "rule", links(), defaults={"f": None}) for part in split_chain(text)]
    if ":" not in text:
        return "+".join(name.replace("-", "_") for name, _ in parts), declared
    lacking = [name for name, settings in parts if settings.get("f", 0) is None]
    if lacking and not isinstance(f, int):
        raise ValueError(f"rule: {lacking[0]} in {text!r} needs a number of its own on a graph, as in {lacking[0]}:f=1")
    return make_rule(text, f if isinstance(f, int) else 0)


def _known(head: str, table: Mapping[str, Any]) -> str | None:
    """The name in ``table`` that is spelled like this, with hyphens or without."""
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
    near = _known(parts[0], neighborhood_rules())
    return near or "+".join(map(hyphenated, parts)).replace("nearest-neighbor-mixing", "nnm")


def make_graph(
    text: str,
    m: int,
    seed: int = 0,
    connected: Iterable[int] | str | None = "all",
    folder: str | os.PathLike[str] = "",
) -> Graph | Flaky:
    """A graph on ``m`` nodes from text: the name of its maker with settings, or one in a file of yours.

    Parameters
    ----------
    text : str
        ``complete``, ``ring:k=2``, ``erdos-renyi:0.7``, ``torus:a=4``, ``two-castle`` (for an even ``m``);
        ``flaky:0.8+ring:k=2``, in which each edge is there with probability 0.8 in a round; ``my_graphs.py:NAME``, a
        graph, or a function called with ``m`` and settings.
    m : int
        Number of nodes.
    seed, connected
        Of a random graph: see ``graphs.erdos_renyi``; the text may have a ``seed`` of its own.
    folder : path
        What a file is relative to, by default the current one.

    Returns
    -------
    Graph or Flaky

    Examples
    --------
    >>> from byzadmm import catalogue
    >>> catalogue.make_graph("torus:a=3", 12)
    <Graph, 12 nodes, 24 edges>
    >>> catalogue.make_graph("flaky:0.8+ring", 12)
    Flaky(graph=<Graph, 12 nodes, 12 edges>, p=0.8)
    """
    first, plus, base = text.partition("+")
    if plus or hyphenated(first.partition(":")[0].strip()) == "flaky":
        _, settings = parse(first, "graph", {"flaky": Entry(Flaky, {"p": REQUIRED})})
        if not plus:
            raise ValueError(f"graph: flaky needs a graph after a plus, as in {text.strip()}+ring; got {text!r}")
        under = make_graph(base.strip(), m, seed, connected, folder)
        if not isinstance(under, Graph):
            raise ValueError(f"graph: flaky needs a graph that stays the same, got {base.strip()!r}")
        return Flaky(under, **settings)
    own = split_own(text)
    if own is not None:
        file, name, given = own
        entry = own_entry(file, name, folder, "graph")
        settings = settings_in(f"{file}:{name}", given or None, "graph", entry.settings)
        made = entry.make(m, **settings)
    else:
        name, settings = parse(text, "graph", graphs())
        entry = graphs()[name]
        of_the_run = {"seed": seed, "connected": connected}
        taken = inspect.signature(entry.make).parameters
        made = entry.make(m, **{key: value for key, value in of_the_run.items() if key in taken} | settings)
    if checked_graph(made).m != m:
        raise ValueError(f"graph: expected {m} nodes, got {made.m} of {text!r}")
    found: Graph | Flaky = made
    return found


def make_decentralized(
    name: str, preset: Preset, graph: Graph | Flaky, options: Mapping[str, Any] | None = None
) -> DecentralizedAlgorithm:
    """An algorithm on a graph by its name: the settings of ``preset`` there, changed by the options that it has.

    Parameters
    ----------
    name : str
        One of :func:`decentralized`, with settings if it has any, as in ``dadmm:lam=0.01,beta=0.2``,
        ``dsgd:rule=ios,order=combine-first`` or ``ios:b=2``; or a chain, ``nnm+krum``. Rules by name have
        ``f="exact"``.
    preset : Preset
    graph : Graph or Flaky
    options : mapping, optional
        Settings by name; None stands for one that is not given.

    Returns
    -------
    DecentralizedAlgorithm

    Examples
    --------
    >>> from byzadmm import catalogue, graphs
    >>> catalogue.make_decentralized("dadmm:beta=1", catalogue.PRESETS["digits"], graphs.ring(10))
    DADMM(lam=0.01, beta=1, step=InvSqrt(c0=2.0, c1=0.3))
    """
    given = {key: value for key, value in (options or {}).items() if value is not None}
    table, chained = decentralized(), links()
    head = re.split("[:+]", name, maxsplit=1)[0].strip()
    own = _known(head, _NETWORKS)
    if own is None:
        plain = hyphenated(head)
        masters = algorithms()
        if plain in masters and plain not in (*chained, *table) and _known(head, table) is None:
            use = _INSTEAD.get(plain, "dsgd or a rule by name")
            raise ValueError(f"algorithm: {plain} needs a master; on a graph there is {use}")
        known = _known(head, table)
        check_choice(known or plain, "algorithm", (*table, *(chained if plain in chained else ())))
        rule, f = make_neighborhood_rule(name, given.get("f"))
        kept = {key: given[key] for key in ("step", "order", *_MEMORY) if key in given}
        return DSGD(**{"step": preset.step} | kept | {"rule": rule, "f": f})
    entry = table[own]
    kept = {key: given[key] for key in entry.settings if key in given and key != "rule"}
    _, colon, settings = name.partition(":")
    if colon:
        if not entry.own:
            raise ValueError(f"algorithm: {own} takes its settings from options such as --step; got {name!r}")
        wanted = Entry(entry.kind, dict.fromkeys(entry.own))
        kept |= parse(f"{own}:{settings}", "algorithm", {own: wanted})[1]
    if "slope" in kept:  # said in the text, a step in an option
        kept.pop("step", None)
    if isinstance(kept.get("rule"), str):
        kept["rule"], kept["f"] = make_neighborhood_rule(kept["rule"], kept.get("f"))
    made: DecentralizedAlgorithm = entry.suited(preset, graph, **kept)
    return made
