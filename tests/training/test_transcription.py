"""Runs against their NumPy twins, and the paper's example against its limits."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
import pytest

from byzadmm import ADMM, RSA, SGD, attacks, losses, simulate, steps
from byzadmm import reference as ref
from support.runs import (
    ALGORITHMS,
    ATTACKS,
    BYZANTINE,
    SOFTMAX_ATTACKS,
    M,
    Q,
    data_for,
    quadratic,
    small_data,
    small_parts,
    transcription,
)

Array = npt.NDArray[Any]
# The geometric median is iterated to 1e-6 on both sides, not to the last bit.
TOLERANCE = {"geometric_median": 1e-5}


@pytest.mark.parametrize("attack", ATTACKS)
@pytest.mark.parametrize("name", ALGORITHMS)
def test_quadratics_follow_the_transcription(name: str, attack: str) -> None:
    loss, algorithm = quadratic(), ALGORITHMS[name]
    rng = np.random.default_rng(9)
    x0, x = rng.standard_normal(loss.dim), rng.standard_normal((M, loss.dim))
    run = simulate(
        None,
        None,
        loss=loss,
        algorithm=algorithm,
        attack=ATTACKS[attack],
        n_byzantine=Q,
        iterations=30,
        eval_every=1,
        seed=4,
        dtype="float64",
        record="trajectory",
        x0_init=x0,
        x_init=None if isinstance(algorithm, SGD) else x,
    )
    gradients = ref.quadratic_gradients(loss.a, loss.b)
    assert run.trajectory is not None
    tol = TOLERANCE.get(name, 1e-10)
    states = transcription(algorithm, ATTACKS[attack], gradients, x0, x, BYZANTINE, 30, seed=4)
    for t, state in enumerate(states, start=1):
        np.testing.assert_allclose(run.trajectory["x0"][t], state.x0, rtol=tol, atol=tol, err_msg=f"x0 at {t}")
        if run.x is not None:
            np.testing.assert_allclose(run.trajectory["x"][t], state.x, rtol=tol, atol=tol, err_msg=f"x at {t}")
    assert t == 30
    assert run.eliminated == {i: int(k) for i, k in enumerate(state.eliminated) if k >= 0}
    eliminates = attack == "non_finite" or (attack == "infinite" and name != "admm")  # its dual is legal
    assert bool(run.eliminated) == (eliminates and name != "ideal")


@pytest.mark.parametrize("attack", SOFTMAX_ATTACKS)
@pytest.mark.parametrize("name", ALGORITHMS)
def test_softmax_follows_the_transcription(name: str, attack: str) -> None:
    data, parts, algorithm = small_data(), small_parts(), ALGORITHMS[name]
    # Not from zero: there RSA compares numbers that are equal up to rounding, and their signs decide where it goes.
    start = np.random.default_rng(8).normal(0, 0.1, (M + 1, 18))
    run = simulate(
        data,
        parts,
        algorithm=algorithm,
        attack=SOFTMAX_ATTACKS[attack],
        n_byzantine=Q,
        iterations=20,
        batch_size=6,
        eval_every=20,
        seed=2**63 + 11,
        dtype="float64",
        x0_init=start[0],
        x_init=None if isinstance(algorithm, SGD) else start[1:],
    )
    poisoned = BYZANTINE if attack == "label_flip" else ()
    gradients = ref.softmax_gradients(
        data.train_x,
        data.train_y,
        parts,
        n_classes=3,
        batch_size=6,
        scale=data.scale,
        seed=2**63 + 11,
        poisoned=poisoned,
    )
    states = transcription(
        algorithm, SOFTMAX_ATTACKS[attack], gradients, start[0], start[1:], BYZANTINE, 20, seed=2**63 + 11
    )
    state = list(states)[-1]
    tol = TOLERANCE.get(name, 1e-9)
    np.testing.assert_allclose(run.x0, state.x0, rtol=tol, atol=tol)
    if run.x is not None:
        np.testing.assert_allclose(run.x, state.x, rtol=tol, atol=tol)
    model = run.x0.reshape(3, -1)
    assert run.accuracy[-1] == ref.softmax_accuracy(model, data.test_x, data.test_y, scale=data.scale)
    assert run.loss[-1] == pytest.approx(ref.softmax_loss(model, data.train_x, data.train_y, scale=data.scale))
    first = start[0].reshape(3, -1)
    assert run.loss[0] == pytest.approx(ref.softmax_loss(first, data.train_x, data.train_y, scale=data.scale))


@pytest.mark.parametrize("loss", ["logistic", "least-squares"])
def test_linear_models_follow_the_transcription(loss: str) -> None:
    data, parts, seed = data_for(loss), small_parts(), 2**63 + 11
    start = np.random.default_rng(8).normal(0, 0.1, (M + 1, 6))
    for name, algorithm in ALGORITHMS.items():
        for attack in ("none", "sign_flip", "gaussian", "alie", *(["label_flip"] if loss == "logistic" else [])):
            run = simulate(
                data,
                parts,
                loss=loss,
                algorithm=algorithm,
                attack=SOFTMAX_ATTACKS[attack],
                n_byzantine=Q,
                iterations=20,
                batch_size=6,
                eval_every=20,
                seed=seed,
                dtype="float64",
                x0_init=start[0],
                x_init=None if isinstance(algorithm, SGD) else start[1:],
            )
            given: dict[str, Any] = {"batch_size": 6, "scale": data.scale, "seed": seed}
            if attack == "label_flip":
                given["poisoned"] = BYZANTINE
            twin = ref.logistic_gradients if loss == "logistic" else ref.least_squares_gradients
            gradients = twin(data.train_x, data.train_y, parts, **given)
            states = transcription(
                algorithm, SOFTMAX_ATTACKS[attack], gradients, start[0], start[1:], BYZANTINE, 20, seed=seed
            )
            state, tol = list(states)[-1], TOLERANCE.get(name, 1e-9)
            np.testing.assert_allclose(run.x0, state.x0, rtol=tol, atol=tol, err_msg=f"{name} {attack}")
            if run.x is not None:
                np.testing.assert_allclose(run.x, state.x, rtol=tol, atol=tol, err_msg=f"{name} {attack}")


def test_noise_of_quadratics_and_drawn_rows_are_those_of_the_streams() -> None:
    loss = quadratic(noise=0.4)
    admm = ALGORITHMS["admm"]
    run = simulate(None, None, loss=loss, algorithm=admm, iterations=30, seed=8, dtype="float64")
    gradients = ref.quadratic_gradients(loss.a, loss.b, noise=0.4, seed=8)
    zeros = np.zeros((M, loss.dim))
    state = list(transcription(admm, None, gradients, zeros[0], zeros, (), 30))[-1]
    np.testing.assert_allclose(run.x0, state.x0, rtol=1e-10, atol=1e-10)
    data, parts = small_data(), small_parts()
    drawn: list[int] = []

    def draw(k: int) -> Array:
        drawn.append(k)
        return np.stack([part[:4] for part in parts])

    other = ref.softmax_gradients(data.train_x, data.train_y, parts, n_classes=3, draw=draw)
    assert np.array_equal(other(np.zeros(18), 1), other(np.zeros((M, 18)), 2))
    assert drawn == [1, 2]


@pytest.mark.parametrize(
    ("algorithm", "attack", "limit"),
    [
        ("admm", attacks.SmallValue(0.5), 3 / 8),
        ("admm", attacks.LargeValue(), 1 / 2),
        ("rsa", attacks.SmallValue(0.5), 1 / 4),
        ("rsa", attacks.LargeValue(), 1 / 2),
    ],
)
def test_example_of_the_paper_has_its_limits(algorithm: str, attack: attacks.Attack, limit: float) -> None:
    settings = {"master_step": steps.inv_linear(1 / 8, 3), "worker_step": steps.inv_linear(1 / 8, 1)}
    run = simulate(
        None,
        None,
        loss=losses.Quadratic([0.5, 0.5, 0.5], [1.0, 1.0, 1.0]),
        algorithm=ADMM(lam=0.5, beta=1.0, **settings) if algorithm == "admm" else RSA(lam=0.5, **settings),
        attack=attack,
        n_byzantine=1,
        rho=1.0,
        x_init=np.ones((3, 1)),
        first_k=0,
        iterations=20_000,
        eval_every=20_000,
        dtype="float64",
        optimum=[0.5],
    )
    assert run.x is not None
    assert float(run.x0[0]) == pytest.approx(limit, abs=5e-4)
    np.testing.assert_allclose(run.x[:2, 0], limit, atol=1e-3)
    assert run.distance[-1] == pytest.approx(abs(run.x0[0] - 0.5))
    assert run.distance[0] == 0.5
