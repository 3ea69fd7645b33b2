"""What the paper says about its figures, checked on the curves; ``figures.words`` defines the words.

Each claim is checked with ADMM as printed in the paper and with ADMM tuned, where there are such runs. A claim that
does not hold is "not reproduced".
"""

from __future__ import annotations

import textwrap
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from byzadmm._internal.arrays import Array
from byzadmm.figures.words import FALLS, LIMIT, SIMILAR, Curves, Part

if TYPE_CHECKING:
    from byzadmm.figures.panel import Panel

__all__ = ["Claim", "check_claims", "claims_table"]

LIMITS = {("small", "admm"): 0.375, ("small", "rsa"): 0.25, ("large", "admm"): 0.5, ("large", "rsa"): 0.5}


@dataclass(frozen=True)
class Claim:
    """A claim of the paper about one figure, and whether it holds.

    Attributes
    ----------
    number : int
    figure, text : str
    printed, tuned : bool or None
        Whether it holds; None where there is no such run.
    parts : dict
        "printed" and "tuned" -> its statements, each with whether it holds.
    numbers : dict
        The numbers on which that depends.
    """

    number: int
    figure: str
    text: str
    printed: bool | None
    tuned: bool | None
    parts: dict[str, list[Part]]
    numbers: dict[str, float]

    def record(self) -> dict[str, Any]:
        """As plain values, for JSON."""
        return {
            "claim": self.number,
            "figure": self.figure,
            "text": self.text,
            "printed": verdict(self.printed),
            "tuned": verdict(self.tuned),
            "parts": {k: [{"statement": s, "holds": bool(h)} for s, h in parts] for k, parts in self.parts.items()},
            "numbers": {
                key: None if not np.isfinite(value) else round(value, 4) for key, value in self.numbers.items()
            },
        }


GM = "geometric-median"
_Rule = Callable[[Curves], list[Part]]

CLAIMS: dict[str, tuple[int, str, _Rule]] = {
    "fig1a": (
        1,
        "SGD fails; ADMM, RSA, geometric median close to Ideal; median a little worse",
        lambda c: c.fails("sgd") + c.close("admm", "rsa", GM) + c.a_little_worse("median", "admm", "rsa", GM),
    ),
    "fig1b": (
        2,
        "SGD worst; ADMM, geometric median, median close to Ideal; ADMM the fastest robust one",
        lambda c: (
            c.worst("sgd", "admm", "rsa", GM, "median", "ideal")
            + c.close("admm", GM, "median")
            + c.faster("admm", "rsa", GM, "median")
        ),
    ),
    "fig2a": (
        3,
        "SGD fails; ADMM, RSA, geometric median close to Ideal and better than median",
        lambda c: (
            c.fails("sgd")
            + c.close("admm", "rsa", GM)
            + c.better("admm", "median")
            + c.better("rsa", "median")
            + c.better(GM, "median")
        ),
    ),
    "fig2b": (
        4,
        "ADMM and RSA close to Ideal, better than geometric median and median",
        lambda c: c.close("admm", "rsa") + c.better("admm", GM, "median") + c.better("rsa", GM, "median"),
    ),
    "fig4a": (
        5,
        "ADMM, RSA, geometric median very similar to Ideal; median worse",
        lambda c: (
            c.close("admm", "rsa", GM, within=SIMILAR)
            + c.better("admm", "median")
            + c.better("rsa", "median")
            + c.better(GM, "median")
        ),
    ),
    "fig4b": (
        6,
        "ADMM best of all; RSA better than geometric median and median",
        lambda c: c.best("admm", "rsa", "ideal", "sgd", GM, "median") + c.better("rsa", GM, "median"),
    ),
    "fig3a": (
        8,
        "Median fails; ADMM close to Ideal and ahead of every other robust algorithm",
        lambda c: c.fails("median") + c.close("admm") + c.better("admm", "rsa", GM, "median"),
    ),
    "fig3b": (
        9,
        "Geometric median and median fail; ADMM and RSA work; ADMM faster than RSA",
        lambda c: c.fails(GM, "median") + c.works("admm", "rsa") + c.faster("admm", "rsa"),
    ),
}


def check_claims(panels: Mapping[str, Panel]) -> list[Claim]:
    """Check every claim about these panels, in the paper's numbering.

    Parameters
    ----------
    panels : dict
        Name -> Panel; those without a claim are ignored.

    Returns
    -------
    list of Claim

    Examples
    --------
    >>> from byzadmm.figures.claims import check_claims
    >>> check_claims({})
    []
    """
    found = []
    for name, panel in panels.items():
        if name in CLAIMS:
            values = {curve: panel.values[0, curve] for _, curve in panel.values}
            if {"rsa", "ideal", "sgd", GM, "median"} <= set(values):
                found.append(check_curves(name, panel.iterations, values))
        elif name in ("fig5a", "fig5b") and panel.settings.sweep:
            # With more than one swept algorithm the first is the paper's.
            first = list(panel.values)[: len(panel.settings.sweep)]
            found.append(check_sweep(name, [panel.final_of(*key)["mean"] for key in first], panel.settings.sweep))
        elif name == "example" and len(panel.plots) == 2:
            found.append(check_example({key: values[0] for key, values in panel.values.items()}))
    return sorted(found, key=lambda claim: (claim.number, claim.figure))


def check_curves(name: str, iterations: Array, values: Mapping[str, Array]) -> Claim:
    """One claim about accuracy curves: name -> (seeds, t)."""
    number, text, rule = CLAIMS[name]
    parts, verdicts = {}, {}
    for which, admm in (("printed", "admm"), ("tuned", "admm-tuned")):
        if admm in values:
            parts[which] = rule(Curves(iterations, values, admm))
            verdicts[which] = all(holds for _, holds in parts[which])
    curves = Curves(iterations, values)
    numbers = {f"{curve} final": curves.final(curve) for curve in values if curve != "admm"}
    numbers |= {f"{curve} iterations to 95%": curves.time(curve) for curve in values if curve != "admm"}
    if "admm" in values:
        numbers = {"admm final": curves.final("admm"), "admm iterations to 95%": curves.time("admm")} | numbers
    return Claim(number, name, text, verdicts.get("printed"), verdicts.get("tuned"), parts, numbers)


def check_sweep(name: str, finals: list[float], lams: tuple[float, ...]) -> Claim:
    """Claim 7: too small and too large a ``lam`` both cost accuracy."""
    pairs = sorted(zip(lams, finals, strict=True))
    best = max(final for _, final in pairs)
    parts = [
        (f"falls at lam = {pairs[0][0]:g}, the smallest", pairs[0][1] < best - FALLS),
        (f"falls at lam = {pairs[-1][0]:g}, the largest", pairs[-1][1] < best - FALLS),
    ]
    numbers = {f"lam={lam:g} final": final for lam, final in pairs}
    text = "Accuracy falls when lam is too small and when it is too large"
    return Claim(7, name, text, None, all(holds for _, holds in parts), {"tuned": parts}, numbers)


def check_example(values: Mapping[tuple[int, str], Array]) -> Claim:
    """Claim 10: the limits of the example, and ADMM steadier than RSA. ``values``: (plot, algorithm) -> x0 (t,)."""
    plots = {0: "small", 1: "large"}
    last = {(plots[plot], name): float(x0[-1]) for (plot, name), x0 in values.items()}
    moved = {name: float(np.sum(np.abs(np.diff(values[0, name])))) for name in ("admm", "rsa")}
    parts = [
        (f"{name} ends at {LIMITS[attack, name]:g} ({attack} value)", abs(end - LIMITS[attack, name]) < LIMIT)
        for (attack, name), end in last.items()
    ]
    parts.append(("admm steadier than rsa (small value)", moved["admm"] < moved["rsa"]))
    numbers = {f"{name} {attack} value": end for (attack, name), end in last.items()}
    numbers |= {f"{name} total variation": total for name, total in moved.items()}
    text = "The limits 3/8, 1/4 (small value), 1/2, 1/2 (large value); ADMM steadier than RSA"
    return Claim(10, "example", text, all(holds for _, holds in parts), None, {"printed": parts}, numbers)


def verdict(holds: bool | None) -> str:
    """Whether a claim holds, in words."""
    return "-" if holds is None else "holds" if holds else "not reproduced"


def claims_table(claims: list[Claim], *, markdown: bool = False) -> str:
    """The table of claims as text of at most 80 columns, or in Markdown with every number.

    Parameters
    ----------
    claims : list of Claim
    markdown : bool

    Returns
    -------
    str

    Examples
    --------
    >>> from byzadmm.figures.claims import claims_table
    >>> print(claims_table([]))
    no claims to check
    """
    if not claims:
        return "no claims to check"
    if markdown:
        lines = ["| claim | figure | what the paper says | as printed | tuned | numbers |", "|---|---|---|---|---|---|"]
        for claim in claims:
            numbers = "; ".join(f"{key} {_number(value)}" for key, value in claim.numbers.items())
            lines.append(
                f"| {claim.number} | {claim.figure} | {claim.text} | {verdict(claim.printed)} | {verdict(claim.tuned)} "
                f"| {numbers} |"
            )
        return "\n".join(lines)
    lines = [f"{'':>2} {'figure':<8} {'as printed':<15} {'tuned':<15} claim, and what does not hold"]
    for claim in claims:
        head = f"{claim.number:>2} {claim.figure:<8} {verdict(claim.printed):<15} {verdict(claim.tuned):<15} "
        lines += _wrapped(head, claim.text)
        for which, parts in claim.parts.items():
            wrong = ", ".join(statement for statement, holds in parts if not holds)
            if wrong:
                lines += _wrapped(" " * len(head), f"not ({which}): {wrong}")
    return "\n".join(lines)


def _wrapped(head: str, text: str) -> list[str]:
    first, *rest = textwrap.wrap(text, 79 - len(head))
    return [head + first, *(" " * len(head) + line for line in rest)]


def _number(value: float) -> str:
    return "never" if np.isinf(value) else f"{value:.0f}" if value >= 10 else f"{value:.4f}"
