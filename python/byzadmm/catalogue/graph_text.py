"""Objects from text: graphs such as ``ring:k=2``, and what ``ios:b=2``, ``krum`` or ``dadmm`` mean on a graph."""

from __future__ import annotations

import inspect
import os
import re
from collections.abc import Iterable, Mapping
from typing import Any

from byzadmm._internal.validation import check_choice
from byzadmm.catalogue.entries import REQUIRED, Entry, algorithms, graphs, hyphenated, links
from byzadmm.catalogue.networks import INSTEAD, NETWORKS, decentralized, known_as, neighborhood_rules
from byzadmm.catalogue.own import own_entry, split_own
from byzadmm.catalogue.presets import Preset
from byzadmm.catalogue.text import make_rule, parse, settings_in, split_chain
from byzadmm.decentralized import DSGD, DecentralizedAlgorithm
from byzadmm.graphs import Flaky, Graph
from byzadmm.graphs.flaky import checked_graph

__all__ = ["make_decentralized", "make_graph", "make_neighborhood_rule"]


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
        try:
            made = entry.make(m, **{key: value for key, value in of_the_run.items() if key in taken} | settings)
        except ValueError as error:
            raise ValueError(f"graph: {text.strip()}: {error}") from error
    if checked_graph(made).m != m:
        raise ValueError(f"graph: expected {m} nodes, got {made.m} of {text!r}")
    found: Graph | Flaky = made
    return found


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
    near = known_as(text.partition(":")[0], neighborhood_rules())
    if near is not None:
        if ":" not in text:
            return near, declared
        entry = neighborhood_rules()[near]
        made = entry.make(**parse(f"{near}:{text.partition(':')[2]}", "rule", {near: entry})[1])
        return made, 0 if made.declared(0) else declared
    check_choice(hyphenated(re.split("[:+]", text)[0].strip()), "rule", (*neighborhood_rules(), *links()))
    # By name a rule gets the number of each node; with other settings it is one object for all nodes.
    parts = [parse(part, "rule", links(), defaults={"f": None}) for part in split_chain(text)]
    if ":" not in text:
        return "+".join(name.replace("-", "_") for name, _ in parts), declared
    lacking = [name for name, settings in parts if settings.get("f", 0) is None]
    if lacking and not isinstance(f, int):
        raise ValueError(f"rule: {lacking[0]} in {text!r} needs a number of its own on a graph, as in {lacking[0]}:f=1")
    return make_rule(text, f if isinstance(f, int) else 0)


def make_decentralized(
    name: str, preset: Preset | None, graph: Graph | Flaky, options: Mapping[str, Any] | None = None
) -> DecentralizedAlgorithm:
    """An algorithm on a graph by its name: the settings of ``preset`` there, changed by the options that it has.

    Parameters
    ----------
    name : str
        One of :func:`decentralized`, with settings if it has any, as in ``dadmm:lam=0.01,beta=0.2``,
        ``dsgd:rule=ios,order=combine-first`` or ``ios:b=2``; or a chain, ``nnm+krum``. Rules by name have
        ``f="exact"``.
    preset : Preset or None
        None: the options have whatever the algorithm requires.
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
    own = known_as(head, NETWORKS)
    if own is None:
        plain = hyphenated(head)
        masters = algorithms()
        if plain in masters and plain not in (*chained, *table) and known_as(head, table) is None:
            use = INSTEAD.get(plain, "dsgd or a rule by name")
            raise ValueError(f"algorithm: {plain} needs a master; on a graph there is {use}")
        known = known_as(head, table)
        check_choice(known or plain, "algorithm", (*table, *(chained if plain in chained else ())))
        rule, f = make_neighborhood_rule(name, given.get("f"))
        usual: dict[str, Any] = {"step": None if preset is None else preset.step, "rule": rule, "f": f}
        return DSGD(**usual | {key: given[key] for key in ("step", "order", "momentum") if key in given})
    entry = table[own]
    kept: dict[str, Any] = {key: given[key] for key in entry.settings if key in given}
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
    made: Any = entry.build(kept, graph) if preset is None else entry.suited(preset, graph, **kept)
    found: DecentralizedAlgorithm = made
    return found
