"""A study as text: means over the seeds, and differences to a reference, paired over the seeds."""

from __future__ import annotations

import math
import textwrap
from collections.abc import Callable
from itertools import product
from typing import Any

import numpy as np

from byzadmm._internal.validation import check_choice
from byzadmm.study.study import HIGHER, Study

__all__ = ["paired_interval", "text_table"]

_WIDTH = 80
_LABEL = 26  # the longest first column

# 97.5% quantiles of Student's distribution with 1, 2, ... degrees of freedom.
_STUDENT = (
    *(12.7062, 4.3027, 3.1824, 2.7764, 2.5706, 2.4469, 2.3646, 2.3060, 2.2622, 2.2281),
    *(2.2010, 2.1788, 2.1604, 2.1448, 2.1314, 2.1199, 2.1098, 2.1009, 2.0930, 2.0860),
)
_NORMAL = 1.959964


def text_table(study: Study, reference: str | None = None, metric: str | None = None) -> str:
    """The table of :meth:`byzadmm.Study.table`."""
    name = study.metric(metric)
    if reference is None:
        reference = (*study.ideal, *study.axes["algorithm"])[0]
    check_choice(reference, "reference", study.axes["algorithm"])
    seeds = len(study.axes["seed"])
    what = "final accuracy" if name == "accuracy" else f"final {name.replace('_', ' ')}"
    over = f", mean over {seeds} seeds" if seeds > 1 else ""
    parts = []
    for q, partition in product(study.axes["n_byzantine"], study.axes["partition"]):
        where = f"{study.label('n_byzantine', q)}, {study.label('partition', partition)}"
        fixed = {"n_byzantine": q, "partition": partition}
        parts.append(_matrix(study, f"{study.title}, {where}: {what}{over}", _mean(study, name, fixed), 8))
        if seeds > 1 and len(study.axes["algorithm"]) > 1:
            head = f"difference to {study.label('algorithm', reference)}, with 95% interval over paired seeds"
            parts.append(_matrix(study, head, _difference(study, name, fixed, reference), 16, {reference}))
    return "\n\n".join(parts) + _remarks(study)


def paired_interval(differences: Any) -> tuple[float, float]:
    """Mean of differences, and half the width of its 95% confidence interval (Student's).

    Parameters
    ----------
    differences : (n,) array
        One per seed; n >= 2 for an interval, which is infinite otherwise.

    Examples
    --------
    >>> from byzadmm.study.table import paired_interval
    >>> mean, half = paired_interval([0.01, 0.02, 0.03])
    >>> round(mean, 3), round(half, 4)
    (0.02, 0.0248)
    """
    values = np.asarray(differences, np.float64)
    n = len(values)
    if n < 2 or not np.all(np.isfinite(values)):  # a run may diverge
        return (_mean_of(values) if n else math.nan), math.inf
    size = float(np.max(np.abs(values))) or 1.0  # squares of what has diverged, but is finite, must not overflow
    values = values / size
    z, degrees = _NORMAL, n - 1
    # Fisher's expansion: right to five digits from 21 degrees of freedom on.
    far = z + (z**3 + z) / (4 * degrees) + (5 * z**5 + 16 * z**3 + 3 * z) / (96 * degrees**2)
    far += (3 * z**7 + 19 * z**5 + 17 * z**3 - 15 * z) / (384 * degrees**3)
    quantile = _STUDENT[degrees - 1] if degrees <= len(_STUDENT) else far
    return size * float(values.mean()), size * float(quantile * values.std(ddof=1) / math.sqrt(n))


def _mean_of(values: Any) -> float:
    with np.errstate(over="ignore", invalid="ignore"):
        return float(np.mean(values))


def _mean(study: Study, metric: str, fixed: dict[str, Any]) -> Callable[[str, str], str]:
    def cell(algorithm: str, attack: str) -> str:
        found = study.finals(metric, algorithm=algorithm, attack=attack, **fixed)
        if len(found):
            return _number(_mean_of(found), metric)
        return _why(study, algorithm, attack, fixed)

    return cell


def _difference(study: Study, metric: str, fixed: dict[str, Any], reference: str) -> Callable[[str, str], str]:
    def cell(algorithm: str, attack: str) -> str:
        pairs = [
            study.final(one, metric) - study.final(one._replace(algorithm=reference), metric)
            for one in study.cells(algorithm=algorithm, attack=attack, **fixed)
            if one in study.results and one._replace(algorithm=reference) in study.results
        ]
        if not pairs:
            return _why(study, algorithm, attack, fixed)
        mean, half = paired_interval(pairs)
        signed = ("+" if mean >= 0 else "") + _number(mean, metric)
        return f"{signed} ±{_number(half, metric)}" if math.isfinite(half) else signed

    return cell


def _why(study: Study, algorithm: str, attack: str, fixed: dict[str, Any]) -> str:
    cells = study.cells(algorithm=algorithm, attack=attack, **fixed)
    found = [study.missing[cell].status for cell in cells if cell in study.missing]
    return {"illegal": "-", "failed": "failed"}.get(found[0], "?") if found else "-"


def _matrix(
    study: Study, head: str, cell: Callable[[str, str], str], column: int, without: set[str] | None = None
) -> str:
    """Algorithms by attacks in so many columns as fit; the others follow below."""
    names = [name for name in study.axes["algorithm"] if name not in (without or ())]
    labels = {name: _cut(study.label("algorithm", name), _LABEL) for name in names}
    width = max(map(len, labels.values())) + 1
    attacks = study.axes["attack"]
    titles = {attack: study.label("attack", attack) for attack in attacks}
    cells = {(name, attack): cell(name, attack) for name in names for attack in attacks}
    room = _WIDTH - width
    column = max(column, max(map(len, cells.values())) + 1)
    column = max(column, min(max(map(len, titles.values())) + 2, room // min(len(attacks), room // column)))
    at_once = max(1, room // column)
    lines = _wrapped(head)
    for start in range(0, len(attacks), at_once):
        shown = attacks[start : start + at_once]
        lines.append(" " * width + "".join(f"{_cut(titles[attack], column - 2):>{column}}" for attack in shown))
        for name in names:
            lines.append(f"{labels[name]:<{width}}" + "".join(f"{cells[name, attack]:>{column}}" for attack in shown))
    return "\n".join(lines)


def _remarks(study: Study) -> str:
    """Why cells have no number: each reason once."""
    reasons: dict[tuple[str, str], str] = {}
    for cell, why in study.missing.items():
        if why.reason:
            reasons.setdefault((why.status, why.reason), study.label("algorithm", cell.algorithm))
    words = {"illegal": "-", "failed": "failed"}
    lines = [f"{words.get(status, '?')}: {label}, {reason}" for (status, reason), label in reasons.items()]
    return "".join(f"\n{line}" for text in lines for line in _wrapped(text))


def _wrapped(text: str) -> list[str]:
    return textwrap.wrap(text, _WIDTH, subsequent_indent="  ", break_on_hyphens=False)


def _cut(text: str, width: int) -> str:
    line = " ".join(text.split())
    return line if len(line) <= width else line[: width - 1] + "…"


def _number(value: float, metric: str) -> str:
    """Three decimals, fewer of large numbers; of a loss, which can be small on every run, the power of ten instead."""
    size = abs(value)
    if not math.isfinite(value):
        return str(value)
    if size >= 99999.5 or (metric not in HIGHER and 0 < size < 0.001):
        return f"{value:.1e}"
    digits = 3 if size < 9.9995 else 2 if size < 99.995 else 1 if size < 999.95 else 0
    return f"{value:.{digits}f}"
