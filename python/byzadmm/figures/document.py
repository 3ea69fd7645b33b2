"""A reproduction as a page of the documentation."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

from byzadmm import __version__, catalogue
from byzadmm.figures import words
from byzadmm.figures._files import write_text
from byzadmm.figures.claims import Claim, claims_table, verdict
from byzadmm.figures.panel import HeatMap, Panel
from byzadmm.figures.run import QUICK, Report

__all__ = ["write_report"]

DEVIATIONS = """\
- **Feature scale.** The paper does not state it. The i.i.d. MNIST panels use pixels 0..255, where the printed steps
  work; the others use 0..1 pixels, because with 0..255 `lam` is far below `lambda_0` and nothing moves. COVERTYPE's
  columns are standardized by training statistics.
- **Step sizes of the compared algorithms** are "hand-tuned to the best" in the paper, without numbers. Here they come
  from `byzadmm tune`: the same number of trials for each, on samples cut from the training set, never on the test set.
- **SGD is tuned as well.** Under the Gaussian attack on 0..255 pixels the noise in the mean, `100 sqrt(8)/20 = 14` per
  element, is no larger than the gradients, and a small step averages it away.
- **ADMM twice.** "As printed" has the paper's parameters, "tuned" those of the same search that the others had.
- **Shorter searches than runs.** A trial has the `iterations` of the `[tuning]` table, fewer than the panel's.
- **Lengths of runs** are not stated in the paper; they are in the settings files.
"""

MAPS = """\
[Final accuracy](cli.md#byzadmm-run) on the test set in percent. Rows are SGD with a rule, then RSA and ADMM;
columns are attacks. A dash: the rule does not tolerate so many Byzantine workers. Ideal SGD runs without the Byzantine
workers; under "none" they are honest, so that a row may be better than Ideal there. `worst-case` takes the strength
that does most harm in each iteration ([rules.md](rules.md#adaptive-attacks)), which is not always the one that lowers
the final accuracy most. All rules have one step size; no setting was searched for this picture, and another step, `lam`
or batch would give other numbers."""


def write_report(
    report: Report, path: str | os.PathLike[str], *, command: str = "byzadmm reproduce all --seeds 3"
) -> Path:
    """Write a reproduction as Markdown: table of claims, what does not hold, settings, deviations, time.

    Parameters
    ----------
    report : Report
    path : path
        The file to write.
    command : str
        The command that repeats it.

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
    '# Reproduction of the paper'
    """
    held = sum(bool(claim.printed or claim.tuned) for claim in report.claims)
    lines = [
        "# Reproduction of the paper",
        "",
        "Written by `figures.write_report` from the last full run; do not edit by hand.",
        *([f"**{QUICK}.**"] if report.quick else []),
        "",
        "```",
        command,
        "```",
        "",
        f"byzadmm {__version__}, {report.seeds} seed(s), {os.cpu_count()} CPUs: {report.seconds / 60:.1f} minutes. "
        f"{held} of {len(report.claims)} rows hold with the printed or the tuned ADMM.",
        "",
        "## Claims",
        "",
        "| claim | figure | what the paper says | as printed | tuned |",
        "|---|---|---|---|---|",
    ]
    for claim in report.claims:
        row = (claim.number, claim.figure, claim.text, verdict(claim.printed), verdict(claim.tuned))
        lines.append("| " + " | ".join(map(str, row)) + " |")
    lines += ["", *_failures(report.claims), "", "### Meaning of the words", "", "```", _words(), "```", ""]
    if report.failed:
        lines += ["## Not finished", "", *(f"- {name}: {why}" for name, why in report.failed.items()), ""]
    lines += ["## Deviations, and why", "", DEVIATIONS]
    for panel in report.panels.values():
        if isinstance(panel, HeatMap):
            lines += [f"## {panel.name}: {panel.settings.title}", "", MAPS, "", panel.table(markdown=True), ""]
    lines += ["## Numbers", "", claims_table(report.claims, markdown=True), "", "## Settings", ""]
    for panel in report.panels.values():
        lines += _settings(panel)
    return write_text(Path(path), "\n".join(lines).rstrip() + "\n")


def _failures(claims: list[Claim]) -> list[str]:
    lines = []
    for claim in claims:
        for which, parts in claim.parts.items():
            wrong = ", ".join(statement for statement, holds in parts if not holds)
            if wrong:
                lines.append(f"- Claim {claim.number}, {claim.figure}, {which}: does not hold that {wrong}.")
    return ["### What does not hold", "", *lines] if lines else ["Everything holds."]


def _words() -> str:
    text = words.__doc__ or ""
    return text[text.index("==") : text.rindex("==") + 2]


def _settings(panel: Panel) -> list[str]:
    settings = panel.settings
    counts = " and ".join(str(q) for q in dict.fromkeys(case.n_byzantine for case in settings.cases()))
    facts = f"{panel.seeds} seed(s), {settings.iterations} iterations, q = {counts} of {settings.n_workers}"
    if not settings.quadratic:
        parts = " and ".join(dict.fromkeys(case.partition for case in settings.cases()))
        facts += f", {settings.dataset}, scale {settings.scale}, {parts}, batch {settings.batch_size}"
    if settings.heat_map:
        named = (catalogue.describe_attack(attack) or {"name": "none"} for attack in settings.attacks)
        facts += "; attacks " + ", ".join(_attack(described) for described in named)
    facts += f"; {settings.note}" if settings.note else ""
    lines = [f"### {panel.name}: {settings.title}", "", f"{facts}. {panel.seconds:.0f} s in iterations.", ""]
    lines += ["| algorithm | parameters | validation |", "|---|---|---|"]
    for curve in panel.curves:
        lines.append(f"| {curve.label} | {_parameters(curve.algorithm.describe())} | {_or_dash(curve.validation)} |")
    return [*lines, ""]


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
