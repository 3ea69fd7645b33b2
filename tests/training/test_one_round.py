"""One exchange of local minimizers."""

from __future__ import annotations

import numpy as np
import pytest

from byzadmm import OneRound, attacks, datasets, losses, partition, simulate
from support.runs import M, quadratic, small_data, small_parts


def test_minimizers_of_quadratics_are_exact_and_a_minority_moves_no_median():
    loss, rho = quadratic(5), 0.3
    expected = loss.a * loss.b / (loss.a + rho)

    def huge(messages, *, byzantine, **_):
        return np.full((len(byzantine), messages.shape[1]), 1e308)

    settings = {"loss": loss, "algorithm": OneRound(tol=0.0), "rho": rho, "iterations": 1, "dtype": "float64"}
    run = simulate(None, None, **settings)
    np.testing.assert_allclose(run.x, expected, rtol=1e-12)
    np.testing.assert_allclose(run.x0, np.median(expected, axis=0), rtol=1e-12)
    run = simulate(None, None, attack=huge, byzantine=[0, 1], **settings)
    regular = run.x[2:]
    assert np.all(run.x0 >= regular.min(axis=0))
    assert np.all(run.x0 <= regular.max(axis=0))


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_local_gradients_vanish(dtype):
    loss = losses.Softmax(small_data(), small_parts())
    rho = 0.05
    run = simulate(None, None, loss=loss, algorithm=OneRound(), rho=rho, iterations=1, dtype=dtype)
    for worker in range(M):
        start = np.linalg.norm(loss.full_gradient(np.zeros(loss.dim), worker=worker))
        x = run.x[worker].astype(np.float64)
        left = np.linalg.norm(loss.full_gradient(x, worker=worker) + rho * x)
        assert left < (1e-5 if dtype == "float32" else 1e-6) * start, worker


def test_further_rounds_change_nothing_and_a_worker_is_minimized_once(tmp_path):
    calls = []

    class Counted(losses.Quadratic):
        def full_gradient(self, x, *, worker):
            calls.append(worker)
            return super().full_gradient(x, worker=worker)

    loss = Counted(np.ones(4), np.arange(8.0).reshape(4, 2))
    settings = {"loss": loss, "algorithm": OneRound("trimmed_mean", f=1), "checkpoint": tmp_path / "run.npz"}
    once = simulate(None, None, iterations=1, eval_every=1, **settings)
    before = len(calls)
    again = simulate(None, None, iterations=3, eval_every=1, **settings)
    assert len(calls) == before > 0
    np.testing.assert_array_equal(once.x0, again.x0)


def test_medians_of_minimizers_learn_the_digits_under_attack():
    data = datasets.load("digits")
    settings = {"attack": attacks.SignFlip(), "n_byzantine": 3, "iterations": 1}
    parts = partition.iid(data.train_y, 10, seed=0)
    found = {
        rule: simulate(data, parts, algorithm=OneRound(rule), **settings).accuracy[-1] for rule in ("median", "mean")
    }
    honest = simulate(data, parts, algorithm=OneRound("mean"), iterations=1).accuracy[-1]
    assert honest > 0.92
    assert found["median"] > honest - 0.05
    assert found["mean"] < found["median"] - 0.02


def test_what_it_refuses():
    with pytest.raises(ValueError, match="newton_steps"):
        OneRound(newton_steps=0)
    with pytest.raises(ValueError, match="trimmed_mean: f=2 is too large for n=4"):
        simulate(None, None, loss=quadratic(4), algorithm=OneRound("trimmed_mean", f=2), iterations=1)
