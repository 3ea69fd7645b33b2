"""A neighborhood rule at every node of a graph: legal numbers of Byzantine neighbors, and one round of it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from byzadmm._internal.arrays import Array, as_float
from byzadmm._internal.validation import check_choice, check_int
from byzadmm.decentralized.network import Mail, Nodes
from byzadmm.decentralized.rules import NeighborhoodRule

if TYPE_CHECKING:
    from byzadmm.graphs import Flaky, Graph

__all__ = ["Declared", "check_declared", "combine", "declared_of"]

#: Byzantine neighbors declared: a number, one for each node, or "exact".
Declared = int | Sequence[int] | str

Rule = NeighborhoodRule | Callable[..., Any]


def check_declared(f: Any, name: str = "f") -> Any:
    """``f`` as a number, a tuple of numbers, or "exact"."""
    if isinstance(f, str):
        return check_choice(f, name, ("exact",))
    if np.ndim(f) == 1:
        return tuple(check_int(one, f"{name}[{i}]", low=0) for i, one in enumerate(f))
    return check_int(f, name, low=0)


def declared_of(graph: Graph | Flaky, attackers: Sequence[int], rule: Rule, f: Any) -> NDArray[np.int64]:
    """The number of Byzantine neighbors that each node takes into account, (m,); a ValueError if one is illegal.

    That of a Byzantine node, whose neighbors all tell it the truth, is the largest legal one if it is less.
    """
    m, degrees = graph.m, graph.degrees
    byzantine = np.zeros(m, np.bool_)
    byzantine[list(attackers)] = True
    if isinstance(f, str):
        found = np.where(byzantine, 0, graph.adjacency[:, byzantine].sum(axis=1))
    elif isinstance(f, tuple):
        if len(f) != m:
            raise ValueError(f"f: expected a number, one for each of {m} nodes, or 'exact'; got {len(f)} numbers")
        found = np.array(f)
    else:
        found = np.full(m, f)
    if not isinstance(rule, NeighborhoodRule):
        return found.astype(np.int64)
    for i in range(m):
        number, degree = rule.declared(int(found[i])), int(degrees[i])
        most = rule.max_f(degree) if degree else number
        if most < 0 and (not byzantine[i] or rule.max_f(degree) < 0):
            raise ValueError(f"f: node {i} with degree {degree} has too few neighbors for {name_of(rule)}")
        if number > most:
            if not byzantine[i]:
                raise ValueError(
                    f"f: {number} is too large for node {i} with degree {degree}: {name_of(rule)} tolerates at most "
                    f"{most} Byzantine neighbors there"
                )
            number = most
        found[i] = number
    return found.astype(np.int64)


def combine(nodes: Nodes, mail: Mail, rule: Rule, f: NDArray[np.int64], own: Array, out: Array, k: int) -> None:
    """What the rule makes of the nodes' own rows (m, n) and their mail, into ``out``.

    ``f`` is lowered by the messages that were left out, and to what is legal for those that came. A node that heard
    nothing, too little for the rule, or that is not finite itself keeps its own row.
    """
    draws = bool(getattr(rule, "draws", False))
    counts = np.maximum(f - mail.left_out, 0)
    if isinstance(rule, NeighborhoodRule):
        legal: dict[int, int] = nodes.kept.setdefault("legal", {})  # by the number of neighbors
        for n in set(mail.counts.tolist()) - legal.keys():
            legal[n] = rule.max_f(n)
        counts = np.minimum(counts, [legal[n] for n in mail.counts.tolist()])
    counts = np.where((mail.counts > 0) & mail.finite, counts, -1)
    everywhere = getattr(rule, "everywhere", None)
    if everywhere is not None:
        everywhere(own, mail, counts, out, nodes.threads)
        return
    for i, count in enumerate(counts.tolist()):
        if count < 0:
            out[i] = own[i]
            continue
        rows = mail.rows(i)
        weights, own_weight = mail.weights(i)
        more = {"rng": nodes.rng(i, k)} if draws else {}
        if isinstance(rule, NeighborhoodRule):
            made = rule.combined(own[i], rows, weights, own_weight, count, **more)
        else:
            made = as_float(rule(own[i].copy(), np.stack(rows), weights, own_weight, count, **more), "rule")
            if made.shape != own[i].shape:
                raise ValueError(f"rule: expected a result of shape {own[i].shape}, got {made.shape}")
        with np.errstate(over="ignore"):
            out[i] = made


def name_of(rule: Rule) -> str:
    """The rule in an error."""
    named = getattr(rule, "rule", None)
    return str(named) if isinstance(named, str) else type(rule).__name__
