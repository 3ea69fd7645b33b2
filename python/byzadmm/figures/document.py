"""A reproduction as a page of the documentation: the words of ``page.md``, the numbers of a run."""

from __future__ import annotations

import os
import re
import shutil
from collections.abc import Callable, Iterable
from importlib import resources
from pathlib import Path
from typing import Any

import numpy as np

from byzadmm import __version__, catalogue
from byzadmm.figures import words
from byzadmm.figures._files import write_text
from byzadmm.figures.claims import FAILED, REPRODUCED, UNSUPPORTED, VERDICTS, Claim, claims_table, count_parts
from byzadmm.figures.panel import HeatMap, Panel
from byzadmm.figures.published import Difference, differences_table
from byzadmm.figures.run import QUICK, Report
from byzadmm.figures.settings import PAPER, VARIANTS
from byzadmm.figures.tuning import tune
from byzadmm.results import final_accuracy

__all__ = ["write_report"]

#: Final accuracies that differ by more are explained one by one.
FAR = 0.02

_OWN_PAGE = """\
# Reproduction

{{about}}

{{differences}}

{{claims}}

{{maps}}

## Panels

{{panels}}
"""


def write_report(report: Report, path: str | os.PathLike[str], *, command: str | None = None) -> Path:
    """Write a reproduction as Markdown.

    With all figures of the paper it is the page ``docs/reproduction.md``, whose words are in ``figures/page.md`` of the
    package, with the overview of the figures beside it, a PNG of the same name; otherwise the same tables alone.

    Parameters
    ----------
    report : Report
    path : path
        The file to write.
    command : str, optional
        The command that repeats it; by default that of these panels and seeds.

    Returns
    -------
    Path

    Examples
    --------
    >>> import tempfile
    >>> from byzadmm import figures
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     report = figures.reproduce(["example"], quick=True, out=folder, progress=False)
    ...     figures.write_report(report, folder + "/page.md").read_text().splitlines()[0]
    '# Reproduction'
    """
    whole = set(PAPER) <= set(report.panels)
    names = "all" if whole else " ".join(report.panels)
    command = command or f"byzadmm reproduce {names} " + ("--quick" if report.quick else f"--seeds {report.seeds}")
    text = resources.files("byzadmm.figures").joinpath("page.md").read_text("utf-8") if whole else _OWN_PAGE
    target = Path(path)
    places = {"picture": target.with_suffix(".png").name, "about": _about(report, command)}
    filled = re.sub(r"\{\{(.+?)\}\}", lambda found: places.get(found[1]) or _fill(report, found[1]), text)
    written = write_text(target, re.sub(r"\n{3,}", "\n\n", filled).rstrip() + "\n")
    for picture in (drawn for drawn in report.paths if whole and drawn.name == "overview.png"):
        shutil.copyfile(picture, target.with_suffix(".png"))
    return written


def _fill(report: Report, wanted: str) -> str:
    """The text for a place of the page: the name of a table, or ``final PANEL CURVE [K]`` for one number."""
    name, *arguments = wanted.split()
    if name == "final":
        return _final(report, *arguments)
    blocks: dict[str, Callable[[], str]] = {
        "summary": lambda: _summary(report),
        "verdicts": lambda: _verdicts(report.claims),
        "failures": lambda: _failures(report),
        "differences": lambda: differences_table(report.differences, markdown=True) if report.differences else "",
        "largest": lambda: _largest(report),
        "admm": lambda: f"{max(abs(row.final) for row in report.differences if row.algorithm == 'admm'):.3f}",
        "causes": lambda: _causes(report),
        "claims": lambda: claims_table([c for c in report.claims if c.figure not in VARIANTS], markdown=True),
        "variants": lambda: claims_table([c for c in report.claims if c.figure in VARIANTS], markdown=True),
        "words": _words,
        "edges": lambda: _edges(report),
        "maps": lambda: "\n\n".join(_map(panel) for panel in report.panels.values() if isinstance(panel, HeatMap)),
        "panels": lambda: "\n\n".join(_panel(panel) for panel in report.panels.values()),
    }
    return blocks[name]()


def _about(report: Report, command: str) -> str:
    quick = f"**{QUICK}.** " if report.quick else ""
    lines = [
        f"{quick}`{command}` with byzadmm {__version__}: {report.seeds} seed(s), {report.seconds / 60:.1f} minutes on "
        f"{os.cpu_count()} CPUs."
    ]
    lines += [f"- {name}: not finished: {why}" for name, why in report.failed.items()]
    return "\n".join(lines)


def _final(report: Report, panel: str, curve: str, at: str = "") -> str:
    """Final accuracy of a curve averaged over the seeds, or that of the run as far as iteration ``at``."""
    if panel not in report.panels:
        return "?"
    found = report.panels[panel]
    kept = found.iterations <= (int(at) if at else found.iterations[-1])
    return f"{np.mean(final_accuracy(found.iterations[kept], found.values[0, curve][:, kept])):.4f}"


def _summary(report: Report) -> str:
    """A row per figure: ADMM beside the published one, the curve that differs most, the parts of its claim."""
    lines = ["| figure | ADMM, ours | published | largest difference of a curve | parts of the claim that hold |"]
    lines.append("|---|---:|---:|---|---|")
    for claim in sorted((c for c in report.claims if c.figure in PAPER), key=lambda c: PAPER.index(c.figure)):
        rows = [row for row in report.differences if row.figure == claim.figure]
        admm = next((row for row in rows if row.algorithm == "admm"), None)
        numbers = [f"{admm.ours:.4f}", f"{admm.published:.4f}"] if admm else ["-", "-"]
        most = max(rows, key=lambda row: abs(row.final), default=None)
        worst = f"{most.final:+.3f} ({most.label})" if most else "-"
        title = report.panels[claim.figure].settings.title
        lines.append(f"| {claim.figure}: {title} | {' | '.join(numbers)} | {worst} | {_tally(claim)} |")
    return "\n".join(lines)


def _tally(claim: Claim) -> str:
    """How many parts of a claim have each verdict."""
    counted = count_parts([claim])
    total = sum(counted.values())
    rest = ", ".join(f"{count} {verdict}" for verdict, count in counted.items() if verdict != REPRODUCED)
    return f"{counted.get(REPRODUCED, 0)} of {total}" + (f"; {rest}" if rest else "")


def _verdicts(claims: list[Claim]) -> str:
    counted = count_parts(claims)
    lines = [f"- {count} **{verdict}**: {VERDICTS[verdict]}." for verdict, count in counted.items()]
    strict = ", ".join(f"{count} {verdict}" for verdict, count in count_parts(claims, strict=True).items())
    by = f"By the strict thresholds, those of version 0.1.0: {strict}."
    head = f"Of {sum(counted.values())} parts of the paper's claims, by thresholds calibrated after the fact:"
    return "\n".join([head, "", *lines, "", by])


def _failures(report: Report) -> str:
    """The parts that do not hold on the published curves, and those that hold in none of our readings."""
    lines = []
    for claim in (claim for claim in report.claims if claim.figure in PAPER):
        for verdict in (UNSUPPORTED, FAILED):
            wrong = [s for number, s in enumerate(claim.statements) if claim.verdict(number) == verdict]
            if wrong:
                lines.append(f"- Claim {claim.number}, {claim.figure}, {verdict}: {', '.join(wrong)}.")
    return "\n".join(lines) or "Everything holds."


def _far(report: Report) -> list[Difference]:
    """Curves that end more than FAR from the published ones, the farthest first."""
    return sorted((row for row in report.differences if abs(row.final) > FAR), key=lambda row: -abs(row.final))


def _largest(report: Report) -> str:
    total = len(report.differences)
    close = total - len(_far(report))
    where = "the others are [below](#ours-minus-published)"
    return f"{close} of {total} curves end within {FAR} of the published one; {where}."


def _causes(report: Report) -> str:
    return "\n".join(
        f"- **{row.figure}, {row.label}** ({row.ours:.3f}, published {row.published:.3f}): {row.why or 'not explained'}"
        for row in _far(report)
    )


def _edges(report: Report) -> str:
    """The best trials that lie near the end of their box."""
    searched = [name for name, panel in report.panels.items() if panel.settings.search]
    found = {name: tune(name, check=True).edges for name in searched}
    return ", ".join(f"{name} {curve} ({', '.join(ranges)})" for name, edges in found.items()
                     for curve, ranges in edges.items()) or "none"  # fmt: skip


def _words() -> str:
    text = words.__doc__ or ""
    return text[text.index("==") : text.rindex("==") + 2]


def _map(panel: HeatMap) -> str:
    return f"## {panel.name}: {panel.settings.title}\n\n{panel.table(markdown=True)}"


def _panel(panel: Panel) -> str:
    """Facts, cause, final accuracies and settings of one panel."""
    settings = panel.settings
    counts = " and ".join(str(q) for q in dict.fromkeys(case.n_byzantine for case in settings.cases()))
    ends = {"iterations": settings.iterations, "arrivals": settings.arrivals, "seconds of delays": settings.until}
    length = " or ".join(f"{number:g} {what}" for what, number in ends.items() if number is not None)
    facts = f"{panel.seeds} seed(s), {length}, q = {counts} of {settings.n_workers}"
    if not settings.quadratic:
        parts = " and ".join(dict.fromkeys(case.partition for case in settings.cases()))
        facts += f", {settings.dataset}, scale {settings.scale}, {parts}, batch {settings.batch_size}"
    named = (catalogue.describe_attack(attack) or {"name": "none"} for attack in settings.attacks)
    facts += "; attack " + ", ".join(_attack(described) for described in named)
    facts += f"; {settings.note}" if settings.note else ""
    lines = [f"### {panel.name}: {settings.title}", "", f"{facts}. {panel.seconds:.0f} s in iterations.", ""]
    lines += [f"What drives it: {settings.cause}", ""] if settings.cause else []
    if settings.readings() and len(panel.plots) == 1:
        lines += [panel.table(markdown=True), ""]
    elif not settings.heat_map:
        lines += ["```", panel.table(), "```", ""]
    lines += ["| algorithm | parameters | validation |", "|---|---|---|"]
    lines += [
        f"| {curve.label} | {_parameters(curve.algorithm.describe())} | {_or_dash(curve.validation)} |"
        for curve in _without_sweep(panel)
    ]
    return "\n".join(lines)


def _without_sweep(panel: Panel) -> Iterable[Any]:
    return panel.settings.curves if panel.settings.sweep else panel.curves


def _attack(described: dict[str, Any]) -> str:
    given = ", ".join(f"{key}={value}" for key, value in described.items() if key != "name" and value is not None)
    return f"{described['name']}({given})" if given else str(described["name"])


def _parameters(described: dict[str, Any]) -> str:
    if "step" in described and described["step"] is not None:
        described = {key: value for key, value in described.items() if key not in ("master_step", "worker_step")}
    kept = {k: v for k, v in described.items() if k not in ("name", "rule", "ideal") and v is not None and v != 0}
    return ", ".join(f"{key} = {value}" for key, value in kept.items())


def _or_dash(value: float | None) -> str:
    return "-" if value is None else f"{value:.4f}"
