"""What a search keeps: the journal of its trials, and the settings file with the best ones."""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from byzadmm import catalogue
from byzadmm._internal.validation import check_real
from byzadmm.figures._files import write_text
from byzadmm.figures.settings import Curve
from byzadmm.study.search import Trial, step_settings

__all__ = ["Journal", "dimensions", "replace_number", "replace_table"]


def dimensions(curve: Curve) -> tuple[str, ...]:
    """What a search varies."""
    return catalogue.algorithms()[curve.kind].tuned


class Journal:
    """All trials of a search, written to disk after each: algorithm -> number of the trial -> parameters and accuracy.

    Parameters
    ----------
    path : Path
    curves : list of Curve
        The algorithms whose trials must have every parameter of their search.
    about : dict, optional
        What the search depends on; the journal of another search is a ValueError. By default whatever the file says.
    """

    def __init__(self, path: Path, curves: Sequence[Curve], about: dict[str, Any] | None = None) -> None:
        self.path = path
        self.trials: dict[str, dict[str, Trial]] = {}
        if about is not None and not path.exists():
            self.about = about
            return
        try:
            record = json.loads(path.read_text(encoding="utf-8"))
            self.about, self.trials = dict(record["search"]), _checked(record["trials"])
            if about is None and not {"budget", "seed", "iterations"} <= self.about.keys():
                raise ValueError("the search is not described")
        except (OSError, ValueError, KeyError, TypeError, AttributeError, RecursionError) as error:
            raise ValueError(f"{path}: not a journal of a search ({error})") from error
        if about is not None and self.about != about:
            raise ValueError(f"{path}: belongs to another search; remove it or choose another out")
        for curve in curves:
            for number, trial in self.trials.get(curve.name, {}).items():
                missing = [name for name in dimensions(curve) if name not in trial]
                if missing:
                    raise ValueError(f"{path}: trial {number} of {curve.name}: {missing[0]}: missing")

    def best(self, name: str) -> Trial:
        """The trial of an algorithm with the highest accuracy, the first of equal ones."""
        trials = self.trials[name]
        return max((trials[number] for number in sorted(trials, key=int)), key=lambda trial: trial["accuracy"])

    def add(self, name: str, number: int, trial: Trial) -> None:
        """Keep one more trial, in memory and on disk."""
        self.trials.setdefault(name, {})[str(number)] = trial
        write_text(self.path, self.text())

    def text(self) -> str:
        """The file: JSON with one line per trial."""
        lines = [
            f"  {json.dumps(name)}: {{\n"
            + ",\n".join(f'    "{n}": {json.dumps(trials[n])}' for n in sorted(trials, key=int))
            + "\n  }"
            for name, trials in sorted(self.trials.items())
        ]
        return f'{{"search": {json.dumps(self.about)},\n"trials": {{\n' + ",\n".join(lines) + "\n}}\n"


def _checked(trials: Any) -> dict[str, dict[str, Trial]]:
    """The trials of a journal; each must consist of numbers, its accuracy among them."""
    return {
        name: {
            str(int(number)): {key: check_real(trial[key], key) for key in {**trial, "accuracy": None}}
            for number, trial in numbered.items()
        }
        for name, numbered in trials.items()
    }


def replace_table(text: str, curve: Curve, trial: Trial, n_workers: int) -> str:
    """The text of a settings file with the parameters of a trial in the table of one algorithm; the rest stays."""
    new = [f"{key} = {trial[key]!r}" for key in ("lam", "beta") if key in trial]
    for key, step in step_settings(trial, n_workers).items():
        [(name, numbers)] = step.items()
        new.append(f"{key} = {{ {name} = {numbers} }}")
    new.append(f"validation = {trial['accuracy']}")

    def written(found: re.Match[str]) -> str:
        tuned = re.compile(r"(lam|beta|step|master_step|worker_step|validation) *=")
        kept = [line for line in found[0].splitlines() if not tuned.match(line)]
        return "\n".join(kept + new) + "\n"

    pattern = rf"^\[algorithms\.{re.escape(curve.name)}\]\n(?:(?!\[|\n).*\n?)*"
    text, count = re.subn(pattern, written, text, flags=re.MULTILINE)
    if count != 1:
        raise ValueError(f"algorithms.{curve.name}: expected one table written as [algorithms.{curve.name}]")
    return text


def replace_number(text: str, key: str, value: int) -> str:
    """The text of a settings file with another number for ``key`` of its table ``[tuning]``."""
    return re.sub(rf"(^\[tuning\]\n(?:(?!\[).*\n)*?{key} *= *)\d+", rf"\g<1>{value}", text, flags=re.MULTILINE)
