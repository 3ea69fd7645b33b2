"""Algorithms by name, with a master or on a graph."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from byzadmm._internal.validation import check_choice
from byzadmm.algorithms import SGD, Algorithm
from byzadmm.catalogue.entries import Entry, algorithms, codes, filters, hyphenated, links, suited_step
from byzadmm.catalogue.graph_text import make_decentralized
from byzadmm.catalogue.networks import known_on_graphs
from byzadmm.catalogue.presets import Preset
from byzadmm.catalogue.text import make_coding, make_filter, make_rule, parse
from byzadmm.graphs import Flaky, Graph

__all__ = ["make_algorithm"]


def make_algorithm(
    name: str,
    preset: Preset,
    q: int,
    options: Mapping[str, Any] | None = None,
    graph: Graph | Flaky | None = None,
) -> Algorithm:
    """An algorithm by its name on the command line: the settings of ``preset``, changed by the options that it has.

    Parameters
    ----------
    name : str
        One of :func:`algorithms`; a rule may have settings, as in ``krum:f=3``, and pre-aggregations, as in
        ``nnm+krum``; so may a filter or a code, as in ``zeno:b=8``.
    preset : Preset
    q : int
        Number of Byzantine workers, the default of a rule's ``f``.
    options : mapping, optional
        Settings by name (:func:`options`); None stands for one that is not given.
    graph : Graph or Flaky, optional
        What the name means on it: :func:`make_decentralized`.

    Returns
    -------
    Algorithm

    Examples
    --------
    >>> from byzadmm.catalogue import PRESETS, make_algorithm
    >>> make_algorithm("admm", PRESETS["digits"], 8, {"lam": 0.1}).lam
    0.1
    """
    if graph is not None:
        return make_decentralized(name, preset, graph, options)
    given = {key: value for key, value in (options or {}).items() if value is not None}
    for key, make in (("filter", make_filter), ("coding", make_coding)):
        if isinstance(given.get(key), str):
            given[key] = make(given[key], q)
    head, settings = re.match(r"\s*([^:+]*)(.*)", name, re.DOTALL).groups()  # type: ignore[union-attr]
    head = hyphenated(head.strip())
    table, chained = algorithms(), links()
    if head not in table and head not in chained and known_on_graphs(head):
        raise ValueError(f"graph: {head} is decentralized and needs one, such as 'ring:k=2'")
    check_choice(head, "algorithm", (*table, *(chained if head in chained else ())))
    if head in chained:
        rule, f = make_rule(name, given.get("f", q))
        kept = {key: given[key] for key in table["sgd"].settings if key in given and key not in ("rule", "f")}
        return SGD(**{"step": suited_step(rule, preset), "rule": rule, "f": f, **kept})
    if head in filters() or head in codes():
        setting, make = ("filter", make_filter) if head in filters() else ("coding", make_coding)
        given[setting] = make(name, q)
        settings = ""
    entry = table[head]
    if settings and not entry.own:
        raise ValueError(f"algorithm: {head} takes its settings from options such as --step; got {name!r}")
    made: Algorithm = entry.suited(preset)
    kept = {key: given[key] for key in entry.settings if key in given and key != "f"}
    if entry.own:
        own = Entry(entry.kind, {key: getattr(made, key) for key in entry.own})
        kept |= parse(name, "algorithm", {head: own})[1] if settings else {}
    made = made.changed(**kept)
    return made.declaring(given.get("f", q)) if "f" in entry.own and "f" not in kept else made
