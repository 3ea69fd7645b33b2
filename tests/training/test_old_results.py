"""Results that version 0.1.0 wrote (``old_results/``) are read, and the same settings still give them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import byzadmm
from byzadmm import ADMM, RSA, SGD, Result, attacks, datasets, losses, partition, simulate, steps

STEP = steps.inv_sqrt(10.0, 1.0)
QUADRATIC = losses.Quadratic(
    [1.0, 0.5, 2.0, 1.0, 1.0], [[0.0, 1.0], [1.0, 2.0], [0.5, 0.5], [2.0, 0.0], [1.0, 1.0]], noise=0.1
)
#: File -> the arguments of ``simulate`` that 0.1.0 was given.
RUNS: dict[str, dict[str, Any]] = {
    "admm": {
        "algorithm": ADMM(lam=0.05, beta=0.1, master_step=STEP, worker_step=STEP),
        "attack": attacks.Gaussian(2.0),
        "n_byzantine": 1,
        "iterations": 60,
        "seed": 5,
    },
    "rsa": {"algorithm": RSA(lam=0.2, step=steps.power(0.5)), "attack": attacks.SignFlip(-3.0)},
    "sgd": {"algorithm": SGD(rule="geometric-median", step=steps.power(0.5)), "attack": attacks.ALIE(z=1.0)},
}


@pytest.mark.parametrize("name", RUNS)
def test_a_result_of_0_1_0_is_read_and_given_again(name: str, tmp_path: Path) -> None:
    old = Result.load(Path(__file__).parent / "old_results" / f"{name}.npz")
    assert old.config["version"] == "0.1.0"
    settings = {"n_byzantine": 2, "iterations": 40, "seed": 7, "eval_every": 20} | RUNS[name]
    if name == "admm":
        data = datasets.load("digits")
        new = simulate(data, partition.dirichlet(data.train_y, 5, alpha=1.0, seed=3), **settings)
    else:
        new = simulate(None, None, loss=QUADRATIC, **settings)
    assert new.config["version"] == byzadmm.__version__
    assert {key: new.config[key] for key in old.config if key != "version"} == {
        key: value for key, value in old.config.items() if key != "version"
    }
    assert (new.iterations == old.iterations).all()
    assert set(old.metrics) <= set(new.metrics)
    for curve, values in old.metrics.items():  # other instruction sets round otherwise
        np.testing.assert_allclose(new.metrics[curve], values, rtol=1e-3, atol=0.01, err_msg=curve)
    np.testing.assert_allclose(new.x0, old.x0, rtol=1e-3, atol=1e-4)

    old.save(tmp_path / "again.npz")
    again = Result.load(tmp_path / "again.npz")
    assert again.config == old.config
    for curve, values in old.metrics.items():
        np.testing.assert_array_equal(again.metrics[curve], values, err_msg=curve)
