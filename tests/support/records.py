"""Records of studies for the tests of the report: one of real runs, and made ones of any size."""

from __future__ import annotations

import itertools
import math
from typing import Any

from byzadmm import ADMM, RSA, SGD, attacks, catalogue, datasets, partition, simulate
from byzadmm.algorithms.base import Algorithm

#: Labels that would break a page which took them for markup, names of members, or numbers.
ODD = [
    "<img src=x onerror=alert(1)>",
    "</script><script>alert(1)</script>",
    "<!--<script>",
    "a & b \" c ' d",
    "\u2028\u2029\ud800",
    "{{script}} \\u003c",
    "__proto__",
    "constructor",
    "1",
    "0",
    "x" * 120,
    "",
]

DASHES = {"-": "", "--": "6 3", ":": "1.5 2.5", "-.": "6 2 1.5 2"}


def frame(**axes: list[Any]) -> dict[str, Any]:
    """A record without runs, with plain settings for what ``axes`` does not give."""
    names = axes.get("algorithm", ["SGD"])
    looks = catalogue.styles([name.lower() for name in names])
    return {
        "title": "digits, 20 workers",
        "version": "0.2.0",
        "when": "2026-11-18 07:00",
        "seconds": 12.3,
        "settings": {"dataset": "digits", "iterations": 1000, "batch_size": 32, "eval_every": 50, "dtype": "float32"},
        "algorithms": {
            name: {"color": look.color, "dash": _dash(look.line), "settings": f"{name}(step=0.1)"}
            for name, look in ((name, looks[name.lower()]) for name in names)
        },
        "axes": {"algorithm": names, "attack": ["zero"], "n_byzantine": [8], "partition": ["iid"], "seed": [0]} | axes,
        "metric": "accuracy",
        "metrics": ["accuracy", "loss", "consensus_gap"],
        "higher_is_better": True,
        "n_workers": 20,
        "runs": [],
    }


def _dash(line: Any) -> str:
    return DASHES[line] if isinstance(line, str) else " ".join(str(2 * length) for length in line[1])


def run_of(case: dict[str, Any], **more: Any) -> dict[str, Any]:
    """A run that failed, until ``more`` says otherwise."""
    plain = {"status": "failed", "error": "", "final": math.nan, "seconds": 0.0, "byzantine": [], "eliminated": {}}
    return {**case, **plain, "iterations": [], "curves": {}, **more}


def cases_of(record: dict[str, Any]) -> list[dict[str, Any]]:
    axes = record["axes"]
    return [dict(zip(axes, labels, strict=True)) for labels in itertools.product(*axes.values())]


def real_record(iterations: int = 1000, seeds: int = 3) -> dict[str, Any]:
    """Five algorithms under four attacks on the digits, the master's eliminations included."""
    data = datasets.load("digits")
    algorithms: dict[str, Algorithm] = {
        "Ideal": SGD.for_dataset(data, ideal=True),
        "ADMM": ADMM.for_dataset(data),
        "RSA": RSA.for_dataset(data),
        "SGD": SGD.for_dataset(data),
        "Trimmed mean": SGD.for_dataset(data, rule="trimmed_mean", f=8),
    }
    forged = {
        "no attack": None,
        "sign-flip": attacks.SignFlip(-3.0),
        "ALIE": attacks.ALIE(),
        "non-finite": attacks.NonFinite(),
    }
    record = frame(algorithm=[*algorithms], attack=[*forged], n_byzantine=[4, 8], seed=[*range(seeds)])
    for label, algorithm in algorithms.items():
        record["algorithms"][label]["settings"] = repr(algorithm)
    for case in cases_of(record):
        parts = partition.iid(data.train_y, 20, seed=case["seed"])
        result = simulate(
            data,
            parts,
            algorithm=algorithms[case["algorithm"]],
            attack=forged[case["attack"]],
            n_byzantine=case["n_byzantine"],
            iterations=iterations,
            seed=case["seed"],
        )
        curves = {name: values.tolist() for name, values in result.metrics.items() if name in record["metrics"]}
        done = run_of(case, status="done", final=result.final_accuracy(), seconds=result.seconds, curves=curves)
        done["byzantine"] = [*range(20 - case["n_byzantine"], 20)]
        done["eliminated"] = {str(worker): k for worker, k in result.eliminated.items()}
        record["runs"].append(done | {"iterations": result.iterations.tolist()})
    return record


def made_record(evaluations: int = 20, **axes: list[Any]) -> dict[str, Any]:
    """A record of finished runs whose curves are formulas: every value differs from every other."""
    record = frame(**axes)
    iterations = [50 * place for place in range(evaluations)]
    for number, case in enumerate(cases_of(record)):
        level = 0.95 - 0.9 * number / (1 + len(cases_of(record)))
        accuracy = [level * (1 - math.exp(-place / 5)) for place in range(evaluations)]
        curves = {"accuracy": accuracy, "loss": [3 / (0.1 + value) for value in accuracy]}
        done = {"status": "done", "final": accuracy[-1], "seconds": 0.1 + number, "byzantine": [18, 19]}
        record["runs"].append(run_of(case, **done, iterations=iterations, curves=curves))
    return record


def broken_record() -> dict[str, Any]:
    """Every state that a cell can have, in three algorithms under two attacks with three seeds."""
    record = made_record(algorithm=["ADMM", "Krum", "Bulyan"], attack=["sign-flip", "ALIE"], seed=[0, 1, 2])
    nan = {"accuracy": [0.1] * 10 + [math.nan] * 10, "loss": [1.0] * 10 + [math.inf] * 10}
    for run in record["runs"]:
        if run["algorithm"] == "Bulyan":
            run |= run_of({}, status="illegal", error="f: expected 4f + 3 <= 20, got f = 8")
        elif run["algorithm"] == "Krum" and run["attack"] == "ALIE":
            run |= {"final": math.nan, "curves": nan} if run["seed"] == 1 else {}
        elif run["algorithm"] == "Krum" and run["seed"] == 2:
            run |= run_of({}, status="failed", error="MemoryError: 80 GB")
    record["runs"] = [run for run in record["runs"] if run["algorithm"] != "ADMM" or run["attack"] != "ALIE"]
    return record


def odd_record() -> dict[str, Any]:
    """Odd strings in every place that holds one."""
    record = made_record(algorithm=ODD, attack=ODD[:4], partition=ODD[:2])
    for run in record["runs"][:5]:
        run |= run_of({}, error=ODD[0])
    record["metrics"] += ODD[:3]
    return record | {"title": ODD[1], "settings": {text: text for text in ODD}}
