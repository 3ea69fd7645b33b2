"""A comparison against the same runs through ``simulate_many``: what the study itself costs; then its views."""

from __future__ import annotations

from typing import Any

import byzadmm
from byzadmm import catalogue, datasets, partition, simulate_many

NAMES = ["admm", "rsa", "sgd", "median", "geometric-median"]
ATTACKS = ["sign-flip", "gaussian"]
SHORT: dict[str, Any] = {"iterations": 100, "eval_every": 50, "n_byzantine": 8}


class Comparison:
    """Five algorithms under two attacks with two seeds, one after another."""

    param_names = ("way",)
    params = (["compare", "simulate_many"],)

    def setup(self, way: str) -> None:
        data = datasets.load("digits")
        preset = catalogue.preset_for(data)
        runs = [
            {
                "dataset": data,
                "parts": partition.iid(data.train_y, 20, seed=seed),
                "algorithm": catalogue.make_algorithm(name, preset, 8),
                "attack": catalogue.make_attack(attack),
                "seed": seed,
                **SHORT,
            }
            for name in NAMES
            for attack in ATTACKS
            for seed in range(2)
        ]
        if way == "compare":
            self.run = lambda: byzadmm.compare(data, algorithms=NAMES, attacks=ATTACKS, seeds=2, jobs=1, **SHORT)
        else:
            self.run = lambda: simulate_many(runs, 1)  # type: ignore[assignment,return-value]

    def time_runs(self, way: str) -> None:
        self.run()


class Views:
    """Table, rows and record of a study of 500 runs."""

    def setup(self) -> None:
        settings: dict[str, Any] = SHORT | {"iterations": 10, "eval_every": 1}
        self.study = byzadmm.compare("digits", algorithms=NAMES, attacks=ATTACKS, seeds=50, **settings)

    def time_table(self) -> None:
        self.study.table()

    def time_rows(self) -> None:
        self.study.rows()

    def time_record(self) -> None:
        self.study.record()
