"""What two papers say about their tables of learning on a graph, checked on final accuracies.

Every map of a panel has the parts of its claim, each read twice: on the published numbers, and on ours with the printed
parameters. The limits are those of the papers' words or, where they have none, round numbers that the published tables
keep.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING

import numpy as np

from byzadmm.figures.words import Part, falls

if TYPE_CHECKING:
    from byzadmm.figures.panel import Panel

__all__ = ["CLAIMS", "Finals", "check_sweep", "read"]

#: Row -> column -> final accuracy. Rows are algorithms by their names in the file, columns attacks.
Finals = Mapping[str, Mapping[str, float]]

CLOSE, EVEN = 0.01, 0.015  # "within" of Peng, Li, Ling; of all robust rules without label separation
STANDS, FAILS, ISOLATED = 0.85, 0.75, 0.87  # under sign flips, and of the others there and under isolation
WEAK, BIASED = 0.5, 0.03  # of clipping under sign flips without label separation, and what medians lose there
LOSES = (0.02, 0.10)  # of IOS where attackers imitate regular nodes
VARIANCE, PUBLISHED_VARIANCES = 1000.0, (1.6e-3, 1.4e-7)  # of regular models without penalty, and with lam = 0.001

_OTHERS = ("gossip", "bridge", "byrdie")
_ROBUST = ("median", "geometric-median", "krum", "trimmed-mean", "drsa", "clipping", "ios")
_FLIP, _ISOLATION, _DUPLICATE, _ALIE = "local-sign-flip", "isolation", "local-duplicate", "local-alie"


def _best(finals: Finals, column: str) -> list[Part]:
    """The TV-norm method is the best of the four that are published."""
    most = max(_OTHERS, key=lambda name: finals[name][column])
    gap = finals["drsa"][column] - finals[most][column]
    return [Part(f"TV norm best of four: {column}", gap > 0, f"{gap:+.3f} ({most})")]


def _within(name: str, finals: Finals, column: str, other: str, limit: float) -> Part:
    gap = finals[name][column] - finals[other][column]
    return Part(f"{name} within {limit:g} of {other}: {column}", abs(gap) <= limit, f"{gap:+.3f}")


def _peng(finals: Finals) -> list[Part]:
    gap = finals["drsa"]["none"] - finals["gossip"]["none"]
    close = Part(f"TV norm within {CLOSE} of gossip: none", abs(gap) <= CLOSE, f"{gap:+.3f}")
    return [close, *_best(finals, "same-value"), *_best(finals, "sign-flip")]


def _above(finals: Finals, name: str, column: str, limit: float) -> Part:
    final = finals[name][column]
    return Part(f"{name} above {limit:g}: {column}", final > limit, f"{final:.3f}")


def _below(finals: Finals, names: tuple[str, ...], column: str, limit: float) -> Part:
    most = max((name for name in names if name in finals), key=lambda name: finals[name][column])
    final = finals[most][column]
    return Part(f"others below {limit:g}: {column}", final < limit, f"{final:.3f} ({most})")


def _ios_iid(finals: Finals) -> list[Part]:
    parts = []
    for column in ("none", "local-gaussian", _ISOLATION):
        least = min(_ROBUST, key=lambda name: finals[name][column])
        gap = finals[least][column] - finals["gossip"]["none"]
        parts.append(Part(f"robust within {EVEN}: {column}", gap >= -EVEN - 1e-9, f"{gap:+.3f} ({least})"))
    clipping = finals["clipping"][_FLIP]
    parts.append(Part(f"clipping below {WEAK:g}: {_FLIP}", clipping < WEAK, f"{clipping:.3f}"))
    for name in ("median", "trimmed-mean"):
        gap = finals[name][_FLIP] - finals["ios"][_FLIP]
        parts.append(Part(f"{name} {BIASED:g} below ios: {_FLIP[6:]}", gap <= -BIASED, f"{gap:+.3f}"))
    return parts


def _separated(finals: Finals) -> list[Part]:
    others = ("gossip", *(name for name in _ROBUST if name != "ios"))
    return [
        _above(finals, "ios", _FLIP, STANDS),
        _below(finals, others, _FLIP, FAILS),
        _above(finals, "ios", _ISOLATION, ISOLATED),
        _below(finals, others, _ISOLATION, ISOLATED),
    ]


def _ios_labels(finals: Finals) -> list[Part]:
    parts = _separated(finals)
    for column in (_DUPLICATE, _ALIE):
        best = sorted(finals.keys() - {"faba", "dadmm"}, key=lambda name: -finals[name][column])[:2]
        parts.append(Part(f"gossip, clipping best: {column}", set(best) == {"gossip", "clipping"}, ", ".join(best)))
        gap = max(finals["gossip"][column], finals["clipping"][column]) - finals["ios"][column]
        low, high = LOSES
        parts.append(Part(f"ios loses {low:g} to {high:g}: {column}", low <= gap <= high, f"{gap:+.3f}"))
    return parts


def _octopus(finals: Finals) -> list[Part]:
    found = []
    for column in ("none", _FLIP, _ISOLATION):
        gap = finals["ios"][column] - finals["faba"][column]
        found.append(Part(f"ios better than faba: {column}", gap > 0, f"{gap:+.3f}"))
    return [*found, _below(finals, ("clipping",), _FLIP, FAILS), _below(finals, ("clipping",), _ISOLATION, FAILS)]


#: Panel -> number and text of its claim, the rows that the parts need, and the parts.
CLAIMS: dict[str, tuple[int, str, tuple[str, ...], Callable[[Finals], list[Part]]]] = {
    "peng-iid": (11, "TV norm close to gossip without attack, best under attack", ("drsa", *_OTHERS), _peng),
    "peng-labels": (
        12,
        "TV norm best where each node has one label",
        ("drsa", *_OTHERS),
        lambda finals: _best(finals, "duplicate"),
    ),
    "ios-iid": (
        14,
        "Robust rules do as well as gossip, but for sign flips, which IOS alone stands",
        ("gossip", *_ROBUST),
        _ios_iid,
    ),
    "ios-labels": (
        15,
        "With separated labels IOS stands flips and isolation; imitation costs it more than gossip",
        ("gossip", *_ROBUST),
        _ios_labels,
    ),
    "ios-apart": (15, "The same with attackers that are no neighbors", ("gossip", *_ROBUST), _separated),
    "ios-octopus": (16, "IOS better than FABA on the octopus; clipping fails", ("ios", "faba", "clipping"), _octopus),
}


def read(panel: Panel) -> list[tuple[str, dict[str, list[Part]]]]:
    """For every map of a panel its name, and reading -> parts of the claim; empty if rows are missing."""
    _, _, needed, rule = CLAIMS[panel.name]
    settings = panel.settings
    columns = panel.plots[: len(settings.attacks)]
    rows = settings.published_finals
    published = {name: dict(zip(columns, row, strict=True)) for name, row in rows.items()}
    found = []
    for number, (q, partition) in enumerate(settings.heat_map):
        finals: dict[str, dict[str, float]] = {}
        for place, column in enumerate(columns):
            for curve in panel.curves:
                key = number * len(columns) + place
                if (key, curve.name) in panel.values:
                    finals.setdefault(curve.name, {})[column] = float(np.mean(panel.ends(key, curve.name)))
        if all(len(finals.get(name, ())) == len(columns) for name in needed):
            parts = {"published": rule(published)} if set(needed) <= published.keys() else {}
            words = [f"q = {q}"] if len({q for q, _ in settings.heat_map}) > 1 else []
            words += [settings.words(partition)] if len({kind for _, kind in settings.heat_map}) > 1 else []
            found.append((", ".join([panel.name, *words]), parts | {"printed": rule(finals)}))
    return found


def check_sweep(panel: Panel) -> dict[str, list[Part]]:
    """Reading -> parts of the claim about the penalty of the TV norm: an inverted U, and nodes that agree."""
    curves = {lam_of(curve.name): curve.name for curve in panel.curves if curve.kind == "drsa"}
    ours = {lam: panel.final_of(0, name)["mean"] for lam, name in curves.items()}
    spread = [float(np.mean(panel.ends(0, curves[lam], "consensus_variance"))) for lam in sorted(curves)[:2]]
    known = {lam_of(name): curve.final for name, curve in panel.published.items() if name in curves.values()}
    found = {"published": [*falls(known), _agree(*PUBLISHED_VARIANCES)]} if known else {}
    return found | {"printed": [*falls(ours), _agree(*spread)]}


def _agree(first: float, second: float) -> Part:
    factor = first / second
    return Part(f"variance {VARIANCE:g} times less at second lam", factor >= VARIANCE, f"{factor:.2g} times")


def lam_of(name: str) -> float:
    """The ``lam`` of a curve of a sweep."""
    return float(name.rpartition("=")[2])
