"""Runs with PyTorch modules: known answers, every path to the same bits, checkpoints, threads, MPI."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

torch = pytest.importorskip("torch")

from torch import nn  # noqa: E402

from byzadmm import SGD, attacks, engines, simulate, simulate_many, steps  # noqa: E402
from byzadmm.torch import ModuleLoss  # noqa: E402
from support.arrays import same_bits  # noqa: E402
from support.modules import dense  # noqa: E402
from support.mpi_torch import cases, module_loss  # noqa: E402
from support.mpirun import SCRIPTS, mpirun, needs_mpi, read  # noqa: E402
from support.runs import ALGORITHMS, Q, equal_runs, small_data, small_parts  # noqa: E402

pytestmark = pytest.mark.torch

SETTINGS: dict[str, Any] = {"n_byzantine": Q, "iterations": 9, "eval_every": 4}


def test_linear_regression_finds_the_least_squares_solution() -> None:
    """A worker per sample, so that every gradient is exact and their mean is that of the whole problem."""
    rng = np.random.default_rng(0)
    x, y = rng.standard_normal((30, 4)), rng.standard_normal(30)
    loss = ModuleLoss(nn.Linear(4, 1), (x, y), [[i] for i in range(30)], batch_size=1, criterion=nn.MSELoss())
    sgd = SGD(step=steps.constant(0.2))
    run = simulate(None, None, loss=loss, algorithm=sgd, rho=0.0, dtype="float64", iterations=400, eval_every=100)
    design = np.c_[x, np.ones(30)]
    exact, (residual,), *_ = np.linalg.lstsq(design, y, rcond=None)
    np.testing.assert_allclose(run.x0, exact, rtol=1e-10)
    assert run.loss[-1] == pytest.approx(residual / 30, rel=1e-10)
    fitted = loss.module(run.x0)(torch.from_numpy(x)).detach().numpy().ravel()
    np.testing.assert_allclose(fitted, design @ exact, rtol=1e-9)


def test_a_run_is_the_plain_loop() -> None:
    """Ideal SGD by hand: autograd, a mean, a step."""
    data, parts = small_data(), small_parts()
    run = simulate(None, None, loss=module_loss(), algorithm=ALGORITHMS["mean"], iterations=6, dtype="float64", rho=0.0)
    loss = ModuleLoss(dense(), data, parts, batch_size=4, vectorize=False)
    x = loss.initial()
    for k in range(1, 7):
        gradients = [loss.gradient(x, worker=worker, k=k) for worker in range(len(parts))]
        x = x - ALGORITHMS["mean"].step(k) * np.mean(gradients, axis=0)  # type: ignore[attr-defined]
    np.testing.assert_allclose(run.x0, x, rtol=1e-12)
    assert run.accuracy[0] == loss.evaluate(loss.initial())["accuracy"], "starts at the module's own parameters"
    assert run.config["loss"]["name"] == "ModuleLoss"
    assert run.config["batch_size"] == 4


@pytest.mark.parametrize("name", cases())
def test_every_path_has_the_same_bits(name: str, tmp_path: Path) -> None:
    case = cases()[name]
    base = simulate(None, None, **SETTINGS | case)
    assert base.metrics.keys() >= {"accuracy", "loss"}
    assert not same_bits(base.x0, np.asarray(module_loss().initial(), base.x0.dtype))
    assert equal_runs(base, engines.simulate(None, None, **SETTINGS | case))
    kept = tmp_path / "checkpoint.npz"
    simulate(None, None, checkpoint=kept, **SETTINGS | case | {"iterations": 4})
    assert equal_runs(base, simulate(None, None, checkpoint=kept, **SETTINGS | case))
    shared = [SETTINGS | case | {"seed": seed} for seed in (0, 1, 0, 1)]  # one loss for all threads
    together = simulate_many(shared, jobs=4)
    for run, config in zip(together, shared, strict=True):
        assert equal_runs(run, simulate(None, None, **config))  # type: ignore[arg-type]


def test_a_checkpoint_of_the_other_way_is_refused(tmp_path: Path) -> None:
    kept = tmp_path / "checkpoint.npz"
    settings = SETTINGS | {"algorithm": ALGORITHMS["admm"]}
    simulate(None, None, loss=module_loss(vectorize=True), checkpoint=kept, **settings | {"iterations": 4})
    for other in (module_loss(vectorize=False), module_loss(vectorize=True, seed=1)):
        with pytest.raises(ValueError, match="belongs to another run"):
            simulate(None, None, loss=other, checkpoint=kept, **settings)


def test_a_small_network_learns_under_attack() -> None:
    data, parts = small_data(), small_parts()
    settings = {"attack": attacks.SignFlip(-10.0), "n_byzantine": 2, "iterations": 150}
    settings["loss"] = ModuleLoss(dense(), data, parts, vectorize=False)
    final = {}
    for rule in ("median", "mean"):
        sgd = SGD(rule=rule, step=steps.constant(0.5))
        final[rule] = simulate(None, None, algorithm=sgd, **settings).final_accuracy()
    assert final["median"] > 0.8
    assert final["mean"] < 0.6, final


def test_threads_and_random_layers() -> None:
    """Dropout in several threads at once: torch has one generator for all of them."""
    config = SETTINGS | {"loss": module_loss(dropout=0.5), "algorithm": ALGORITHMS["median"], "iterations": 30}
    alone = simulate(None, None, **config)
    for run in simulate_many([config] * 6, jobs=3):
        assert equal_runs(alone, run)  # type: ignore[arg-type]


@needs_mpi
@pytest.mark.slow
def test_over_mpi(tmp_path: Path) -> None:
    run = mpirun(3, SCRIPTS / "mpi_torch.py", tmp_path)
    assert run.returncode == 0, run.stderr
    assert read(tmp_path / "torch.json") == {"different": {}, "count": len(cases()), "auto": False}
