"""The tables ``[algorithms.NAME]`` of a settings file: one curve each, with other settings where the file says so."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import product
from typing import Any

from byzadmm import catalogue
from byzadmm.algorithms import Algorithm
from byzadmm.catalogue import AlgorithmEntry
from byzadmm.figures._toml import Table
from byzadmm.figures.keys import SECTIONS
from byzadmm.figures.settings import Curve, build_algorithm, without_reading

__all__ = ["read_curves"]

_KEYS = SECTIONS["algorithms.NAME"]
_INSTEAD = {"step": "slope", "slope": "step"}  # of which one takes the place of the other


def read_curves(
    value: Any, graph: Any, attacks: Mapping[str, Sequence[int]], partitions: Sequence[str]
) -> tuple[Curve, ...]:
    """The curves of a file.

    Parameters
    ----------
    value : dict
        The table ``algorithms``.
    graph : Graph, Flaky or None
        Names mean on it what :func:`byzadmm.catalogue.decentralized` says.
    attacks : dict
        What the file may call an attack -> the places of those in its list.
    partitions : list of str
        Those of the file.
    """
    if not isinstance(value, dict) or not value:
        raise TypeError("algorithms: expected at least one table [algorithms.NAME]")
    called: dict[str, list[str]] = {}
    for each in dict.fromkeys(partitions):
        for word in dict.fromkeys((each, each.partition(":")[0])):
            called.setdefault(word, []).append(each)
    return tuple(
        _curve(name, Table(entry, f"algorithms.{name}.", _KEYS), graph, attacks, called)
        for name, entry in value.items()
    )


def _curve(
    name: str, table: Table, graph: Any, attacks: Mapping[str, Sequence[int]], partitions: Mapping[str, Sequence[str]]
) -> Curve:
    typed = table.take("kind")
    text, entry, own = _kind(without_reading(name) if typed is None else typed, typed is None, table, graph)
    printed, label, validation, where = (table.take(key) for key in ("printed", "label", "validation", "where"))
    iterations = table.take("iterations")
    given = table.take_given(*entry.optional) | {key: table.take(key) for key in entry.required}
    table.close()
    algorithm = _made(table.where, text, entry, given | own, graph)
    variants: dict[tuple[int, str], Algorithm] = {}
    for number, one in enumerate(where or ()):
        other = Table(one, f"{table.where}where[{number}].", _KEYS | SECTIONS["algorithms.NAME.where"])
        cases = product(_places(other, "attack", attacks), _places(other, "partition", partitions))
        changes = other.take_given(*entry.settings)
        again, same, more = text, entry, own
        if "kind" in other.values:  # other settings after its name
            again, same, more = _kind(other.take("kind"), False, other, graph)
            if (same.kind, same.fixed) != (entry.kind, entry.fixed):
                wanted = text.partition(":")[0]
                raise ValueError(f"{other.where}kind: expected {wanted} with other settings, got {again!r}")
        other.close()
        dropped = [old for new, old in _INSTEAD.items() if new in changes and old not in changes]
        kept = {key: value for key, value in given.items() if key not in dropped}
        variants |= dict.fromkeys(cases, _made(other.where, again, entry, kept | changes | more, graph))
    kind, usual = text, None if "rule" in entry.own else given.get("rule")
    if graph is not None:
        found, usual = catalogue.label_of(algorithm.describe())
        kind = found if found in catalogue.decentralized() else text
    ending = name.removeprefix(without_reading(name)).removeprefix("-")
    added = " (printed)" if printed else f" ({ending})" if ending else ""
    label = label or (usual if usual and graph is None else (usual or entry.label) + added)
    return Curve(name, kind, label, algorithm, printed, validation, tuple(variants.items()), iterations)


def _kind(text: str, by_name: bool, table: Table, graph: Any) -> tuple[str, AlgorithmEntry, dict[str, Any]]:
    """Name and entry of the algorithm, and the settings after its name."""
    entries = catalogue.algorithms() if graph is None else catalogue.decentralized()
    if graph is not None:
        head = catalogue.known_as(text.partition(":")[0], entries)
        if head is None and not by_name:
            catalogue.make_decentralized(text, None, graph)  # its error says what there is in its place
        if head is None:
            raise ValueError(f"{table.where}kind: missing (one of {', '.join(entries)})")
        return text, entries[head], {}
    if by_name and text not in entries:
        if text in catalogue.decentralized():
            raise ValueError(f"graph: missing, and {table.where.rstrip('.')} is decentralized")
        raise ValueError(f"{table.where}kind: missing (one of {', '.join(entries)})")
    known = {head: catalogue.Entry(entry.kind, dict.fromkeys(entry.own)) for head, entry in entries.items()}
    kind, own = catalogue.parse(text, f"{table.where}kind", known)
    return kind, entries[kind], own


def _made(where: str, kind: str, entry: AlgorithmEntry, given: Mapping[str, Any], graph: Any) -> Algorithm:
    """The algorithm with these settings; an error names the table."""
    made = dict(given)
    try:
        if graph is not None:
            return catalogue.make_decentralized(kind, None, graph, made)
        if not isinstance(made.get("f", 0), int):
            raise ValueError(f"f: expected a number without a graph, got {made['f']!r}")
        if "rule" in made:
            f = made.get("f", 0)
            made["rule"], made["f"] = catalogue.make_rule(made["rule"], f)
            if "f" in entry.own:  # which counts there also for a rule without
                made["f"] = f
        if "filter" in made:
            made["filter"] = catalogue.make_filter(made["filter"])
        if "coding" in made:
            made["coding"] = catalogue.make_coding(made["coding"])
        return build_algorithm(kind, made)
    except (TypeError, ValueError) as error:
        raise ValueError(f"{where.rstrip('.')}: {error}") from error


def _places(table: Table, key: str, known: Mapping[str, Sequence[Any]]) -> list[Any]:
    """What the names under ``key`` stand for; all of ``known`` if there are none."""
    names = table.take(key)
    if names is None:
        return [place for places in known.values() for place in places]
    for name in names:
        if name not in known:
            raise ValueError(f"{table.where}{key}: expected one of {', '.join(known)}; got {name!r}")
    return [place for name in names for place in known[name]]
