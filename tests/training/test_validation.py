"""Losses and gradients on given samples, and the master's own samples."""

from __future__ import annotations

import numpy as np
import pytest

from byzadmm import SGD, losses, simulate
from byzadmm.training.validation import Validation
from support.runs import data_for, quadratic, small_parts

LOSSES = {"softmax": losses.Softmax, "logistic": losses.Logistic, "least-squares": losses.LeastSquares}


@pytest.mark.parametrize("name", LOSSES)
def test_losses_and_gradients_of_rows_are_those_of_the_definition(name):
    data = data_for(name)
    loss = LOSSES[name](data, small_parts(), batch_size=4, seed=9)
    rng = np.random.default_rng(1)
    models = rng.standard_normal((3, loss.dim))
    every = np.arange(len(data.train_x))
    np.testing.assert_allclose(loss.batch_losses(models, every), [loss.value(x) for x in models], rtol=1e-13)
    x, h = models[0], 1e-6
    steps = h * np.eye(loss.dim)
    rows = [5, 5, 60]
    slope = (loss.batch_losses(x + steps, rows) - loss.batch_losses(x - steps, rows)) / (2 * h)
    np.testing.assert_allclose(loss.batch_gradient(x, rows), slope, atol=1e-8)
    # A worker's batch is what its gradient of that round is made of; all of its samples make the full gradient.
    slope = [np.subtract(*loss.batch_losses(np.stack([x + s, x - s]), worker=2, k=7)) / (2 * h) for s in steps]
    np.testing.assert_allclose(loss.gradient(x, worker=2, k=7), slope, atol=1e-8)
    np.testing.assert_allclose(
        loss.full_gradient(x, worker=2), loss.batch_gradient(x, loss.parts[2]), rtol=0, atol=0
    )


def test_only_poisoned_workers_see_flipped_labels():
    data, parts = data_for("softmax"), small_parts()
    clean = losses.Softmax(data, parts)
    flipped = clean.poisoned([1])
    x = np.random.default_rng(0).standard_normal(clean.dim)
    assert not np.allclose(flipped.full_gradient(x, worker=1), clean.full_gradient(x, worker=1))
    np.testing.assert_array_equal(flipped.full_gradient(x, worker=0), clean.full_gradient(x, worker=0))
    np.testing.assert_array_equal(flipped.batch_gradient(x, parts[1]), clean.batch_gradient(x, parts[1]))
    assert flipped.batch_losses(x[None], worker=1, k=1) != clean.batch_losses(x[None], worker=1, k=1)


def test_rows_of_the_master_belong_to_no_worker():
    data, parts = data_for("softmax"), small_parts()
    loss = losses.Softmax(data, parts[1:])
    held = Validation(loss, parts[0], seed=4)
    assert set(held.batch(50, k=1)) <= set(parts[0].tolist())
    assert held.batch(8, k=1).tolist() == held.batch(8, k=1).tolist() != held.batch(8, k=2).tolist()
    with pytest.raises(ValueError, match=r"validation: expected rows that no worker holds, but 1 of them"):
        Validation(loss, [parts[1][0]], seed=0)
    with pytest.raises(ValueError, match="at least one row"):
        simulate(data, parts[1:], algorithm=SGD(), iterations=1, validation=[])
    with pytest.raises(ValueError, match=r"rows: expected indices in \[0, 120\)"):
        loss.batch_losses(np.zeros((1, loss.dim)), [120])
    with pytest.raises(TypeError, match="either rows, or worker and k"):
        loss.batch_losses(np.zeros((1, loss.dim)), [1], worker=1)


def test_a_run_with_other_rows_has_another_checkpoint(tmp_path):
    data, parts = data_for("softmax"), small_parts()
    run = {"algorithm": SGD(), "iterations": 2, "checkpoint": tmp_path / "run.npz"}
    first = simulate(data, parts[1:], validation=parts[0], **run)
    assert first.config["validation"] is not None
    simulate(data, parts[1:], validation=parts[0], **run)
    with pytest.raises(ValueError, match="belongs to another run"):
        simulate(data, parts[1:], **run)


def test_the_quadratic_has_its_derivatives():
    loss = quadratic()
    x, v = np.random.default_rng(2).standard_normal((2, loss.dim))
    difference = loss.full_gradient(x + v, worker=3) - loss.full_gradient(x, worker=3)
    np.testing.assert_allclose(loss.hessian_product(x, v, worker=3), difference, rtol=1e-12)
