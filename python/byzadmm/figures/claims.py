"""What the paper says about its figures, checked part by part on the curves; ``figures.words`` defines the words.

Each part is read four times: on the published curves, and on ours with the printed parameters, tuned without attack,
and tuned under attack, as far as there are such curves.
"""

from __future__ import annotations

import textwrap
from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from byzadmm._internal.arrays import Array
from byzadmm.figures import tables
from byzadmm.figures.settings import READINGS, VARIANTS, Published
from byzadmm.figures.words import CALIBRATED, LIMIT, STRICT, Curves, Part, falls

if TYPE_CHECKING:
    from byzadmm.figures.panel import Panel

__all__ = ["COLUMNS", "VERDICTS", "Claim", "check_claims", "claims_table", "count_parts"]

LIMITS = {("small", "admm"): 0.375, ("small", "rsa"): 0.25, ("large", "admm"): 0.5, ("large", "rsa"): 0.5}

#: The readings of a claim, in the order of the tables.
COLUMNS = {"published": "published", **READINGS}

REPRODUCED, TUNED, UNSUPPORTED, FAILED = "reproduced", "only when tuned", "unsupported", "not reproduced"
#: Verdict on a part -> what it means.
VERDICTS = {
    REPRODUCED: "holds with the printed parameters",
    TUNED: "holds only with tuned parameters",
    UNSUPPORTED: "not supported by the published figure",
    FAILED: "holds in none of our readings",
}


@dataclass(frozen=True)
class Claim:
    """A claim of the paper about one figure, and which of its parts hold.

    Attributes
    ----------
    number : int
    figure, text : str
    parts : dict
        Reading, of COLUMNS -> the parts of the claim by the calibrated words, in one order.
    strict : dict
        The same by the strict words.
    """

    number: int
    figure: str
    text: str
    parts: dict[str, list[Part]]
    strict: dict[str, list[Part]]

    def holds(self, reading: str) -> bool | None:
        """Whether all parts hold in a reading; None where there is no such curve."""
        return all(part.holds for part in self.parts[reading]) if reading in self.parts else None

    @property
    def printed(self) -> bool | None:
        return self.holds("printed")

    @property
    def tuned(self) -> bool | None:
        return self.holds("tuned")

    @property
    def statements(self) -> list[str]:
        """What the parts say."""
        return [part.statement for part in next(iter(self.parts.values()))]

    def verdict(self, number: int, *, strict: bool = False) -> str:
        """The verdict on one part, of VERDICTS, by the calibrated or the strict words."""
        judged = self.strict if strict else self.parts
        held = {reading: parts[number].holds for reading, parts in judged.items()}
        if held.pop("published", True) is False:
            return UNSUPPORTED
        if held.get("printed"):
            return REPRODUCED
        return TUNED if any(held.values()) else FAILED

    def cell(self, reading: str, number: int) -> str:
        """Whether a part holds in a reading, as text; a star where the strict words say otherwise."""
        if reading not in self.parts:
            return "-"
        holds = self.parts[reading][number].holds
        return ("yes" if holds else "no") + ("*" if self.strict[reading][number].holds != holds else "")

    def record(self) -> dict[str, Any]:
        """As plain values, for JSON."""
        return {
            "claim": self.number,
            "figure": self.figure,
            "text": self.text,
            "parts": [
                {
                    "statement": statement,
                    "verdict": self.verdict(number),
                    **{
                        reading: {
                            "holds": bool(parts[number].holds),
                            "strict": bool(self.strict[reading][number].holds),
                            "numbers": parts[number].numbers,
                        }
                        for reading, parts in self.parts.items()
                    },
                }
                for number, statement in enumerate(self.statements)
            ],
        }


GM = "geometric-median"
_NEEDED = {"ideal", "admm", "rsa", GM, "median"}
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
            c.similar("admm", "rsa", GM)
            + c.better("admm", "median")
            + c.better("rsa", "median")
            + c.better(GM, "median")
        ),
    ),
    "fig4b": (
        6,
        "ADMM best of all; RSA better than geometric median and median",
        lambda c: c.best("admm", "rsa", "ideal", GM, "median") + c.better("rsa", GM, "median"),
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
    """Check every claim about these panels, in the paper's numbering, those about variants of the figures last.

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
        figure = panel.settings.figure
        if figure in tables.CLAIMS and panel.settings.heat_map:
            number, text, *_ = tables.CLAIMS[figure]
            found += [Claim(number, title, text, parts, parts) for title, parts in tables.read(panel)]
        elif figure == "peng-lam" and panel.settings.sweep:
            parts = tables.check_sweep(panel)
            text = "Too small and too large a lam cost accuracy; any lam lets nodes agree"
            found.append(Claim(13, name, text, parts, parts))
        elif figure in CLAIMS:
            columns = {column: curves for column, curves in _columns(panel).items() if _complete(figure, curves)}
            if columns.keys() - {"published"}:  # ours are there, not the published ones alone
                found.append(check_curves(figure, columns, name))
        elif figure in ("fig5a", "fig5b") and panel.settings.sweep:
            found.append(check_sweep(name, _swept(panel)))
        elif name == "example" and len(panel.plots) == 2:
            found.append(check_example({key: values[0] for key, values in panel.values.items()}))
    return sorted(found, key=lambda claim: (claim.figure in VARIANTS, claim.number, claim.figure))


def _columns(panel: Panel) -> dict[str, Curves]:
    """The curves of every reading."""
    found = {"published": _of_published(panel.published)} if panel.published else {}
    for reading in READINGS:
        values = {name: panel.values[0, curve.name] for name, curve in panel.settings.read(reading).items()}
        if values:
            found[reading] = Curves(panel.iterations, values)
    return found


def _complete(figure: str, curves: Curves) -> bool:
    needed = _NEEDED | ({"sgd"} if "SGD" in CLAIMS[figure][1] else set())
    return needed <= set(curves.values)


def _of_published(known: Mapping[str, Published]) -> Curves:
    """Published curves on one axis; the one that is called SGD where there is no Ideal stands for it.

    Their first point is left out: it is that of the start here, of the first iteration there.
    """
    k = np.array(max((curve.iterations for curve in known.values()), key=len))
    k = k[k > 0]
    values = {name: np.interp(k, curve.iterations, curve.accuracy)[None] for name, curve in known.items()}
    finals = {name: curve.final for name, curve in known.items()}
    if "ideal" not in values and "sgd" in values:
        values["ideal"], finals["ideal"] = values["sgd"], finals["sgd"]
    return Curves(k, values, finals=finals)


def check_curves(figure: str, columns: Mapping[str, Curves], name: str | None = None) -> Claim:
    """The claim about ``figure``; ``columns``: reading -> its curves; ``name``: that of the panel."""
    number, text, rule = CLAIMS[figure]
    parts, strict = (
        {reading: rule(curves.under(thresholds)) for reading, curves in columns.items()}
        for thresholds in (CALIBRATED, STRICT)
    )
    return Claim(number, name or figure, text, parts, strict)


def _swept(panel: Panel) -> dict[str, dict[float, float]]:
    """Reading -> ``lam`` -> final accuracy. With several swept algorithms the first of a reading is the paper's."""
    found: dict[str, dict[float, float]] = {}
    if panel.published:
        found["published"] = {float(name.rpartition("=")[2]): curve.final for name, curve in panel.published.items()}
    for curve in panel.curves:
        finals = found.setdefault(curve.reading, {})
        finals.setdefault(float(curve.name.rpartition("=")[2]), panel.final_of(0, curve.name)["mean"])
    return found


def check_sweep(name: str, finals: Mapping[str, Mapping[float, float]]) -> Claim:
    """Claim 7: too small and too large a ``lam`` both cost accuracy. ``finals``: reading -> ``lam`` -> accuracy."""
    parts = {reading: falls(found) for reading, found in finals.items()}
    return Claim(7, name, "Accuracy falls when lam is too small and when it is too large", parts, parts)


def check_example(values: Mapping[tuple[int, str], Array]) -> Claim:
    """Claim 10: the limits of the example, and ADMM steadier than RSA. ``values``: (plot, algorithm) -> x0 (t,)."""
    plots = {0: "small", 1: "large"}
    last = {(plots[plot], name): float(x0[-1]) for (plot, name), x0 in values.items()}
    moved = {name: float(np.sum(np.abs(np.diff(values[0, name])))) for name in ("admm", "rsa")}
    parts = [
        Part(
            f"{name} ends at {LIMITS[attack, name]:g} ({attack} value)",
            abs(end - LIMITS[attack, name]) < LIMIT,
            f"{end:.4f}",
        )
        for (attack, name), end in last.items()
    ]
    way = f"moves {moved['admm']:.2f} against {moved['rsa']:.2f}"
    parts.append(Part("admm steadier than rsa (small value)", moved["admm"] < moved["rsa"], way))
    text = "The limits 3/8, 1/4 (small value), 1/2, 1/2 (large value); ADMM steadier than RSA"
    return Claim(10, "example", text, {"printed": parts}, {"printed": parts})


def count_parts(claims: list[Claim], *, strict: bool = False) -> dict[str, int]:
    """How many parts of the claims have each verdict, those that none has left out, and variants of the figures."""
    counted = Counter(
        claim.verdict(number, strict=strict)
        for claim in claims
        if claim.figure not in VARIANTS
        for number in range(len(claim.statements))
    )
    return {verdict: counted[verdict] for verdict in VERDICTS if counted[verdict]}


def claims_table(claims: list[Claim], *, markdown: bool = False) -> str:
    """The parts of the claims as text of at most 80 columns, or in Markdown with their numbers.

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
    return _markdown(claims) if markdown else _plain(claims)


def _plain(claims: list[Claim]) -> str:
    titles = {"published": "publ.", "printed": "print", "blind": "blind", "tuned": "tuned"}
    lines = []
    for claim in claims:
        lines += textwrap.wrap(f"{claim.number:>2} {claim.figure}: {claim.text}", 79, subsequent_indent="   ")
        lines.append(f"   {'':<38}" + "".join(f"{title:>7}" for title in titles.values()))
        for number, statement in enumerate(claim.statements):
            cells = "".join(f"{claim.cell(reading, number):>7}" for reading in titles)
            lines.append(f"   {statement:<38}{cells}  {_SHORT[claim.verdict(number)]}")
        lines.append("")
    counted = ", ".join(f"{count} {verdict}" for verdict, count in count_parts(claims).items())
    lines += [f"parts: {counted}"] if counted else []
    strict = ", ".join(f"{count} {verdict}" for verdict, count in count_parts(claims, strict=True).items())
    lines += [f"by the strict words: {strict}"] if strict != counted else []
    given = {claim.verdict(number) for claim in claims for number in range(len(claim.statements))} - {REPRODUCED}
    lines += [f"{_SHORT[verdict]}: {meaning}" for verdict, meaning in VERDICTS.items() if verdict in given]
    if any(claim.strict is not claim.parts for claim in claims):
        lines.append("yes/no by the calibrated words; *: the strict words say otherwise (docs/reproduction.md)")
    return "\n".join(text for line in lines for text in (textwrap.wrap(line, 79) if len(line) > 79 else [line]))


_SHORT = {REPRODUCED: "ok", TUNED: "tuned", UNSUPPORTED: "unsupp.", FAILED: "failed"}


def _markdown(claims: list[Claim]) -> str:
    lines = [f"| claim | {' | '.join(COLUMNS.values())} | verdict |", "|---|" + "---|" * (len(COLUMNS) + 1)]
    for claim in claims:
        lines.append(f"| **{claim.number}, {claim.figure}: {claim.text}** |" + " |" * (len(COLUMNS) + 1))
        for number, statement in enumerate(claim.statements):
            cells = [
                f"{claim.cell(reading, number)}, {claim.parts[reading][number].numbers}"
                if reading in claim.parts
                else "-"
                for reading in COLUMNS
            ]
            lines.append(f"| {statement} | {' | '.join(cells)} | {claim.verdict(number)} |")
    return "\n".join(lines)
