"""Properties of a whole run: what must not matter, and what must hold throughout."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest

from byzadmm import ADMM, RSA, attacks, losses, simulate, steps
from byzadmm.training.run import local
from support.arrays import same_bits
from support.runs import (
    ALGORITHMS,
    ATTACKS,
    BYZANTINE,
    M,
    Q,
    equal_runs,
    experiment,
    quadratic,
    small_data,
    small_parts,
)

Array = npt.NDArray[Any]
DTYPES = ("float32", "float64")


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("name", [n for n in ALGORITHMS if n != "ideal"])
def test_no_attack_and_no_byzantine_worker_are_the_same_run(name: str, dtype: str) -> None:
    settings: dict[str, Any] = {"algorithm": ALGORITHMS[name], "iterations": 25, "dtype": dtype}
    a = simulate(small_data(), small_parts(), attack=None, n_byzantine=Q, **settings)
    b = simulate(small_data(), small_parts(), attack=attacks.Gaussian(), n_byzantine=0, **settings)
    c = simulate(small_data(), small_parts(), **settings)
    assert equal_runs(a, b)
    assert equal_runs(a, c)
    assert a.config["byzantine"] == BYZANTINE


def test_ideal_leaves_out_the_byzantine_workers_whatever_they_do() -> None:
    settings: dict[str, Any] = {"iterations": 20, "dtype": "float64"}
    ideal = ALGORITHMS["ideal"]
    alone = simulate(None, None, loss=quadratic(M - Q), algorithm=ALGORITHMS["mean"], **settings)
    for attack in (None, attacks.Gaussian(), attacks.NonFinite()):
        run = simulate(None, None, loss=quadratic(), algorithm=ideal, attack=attack, n_byzantine=Q, **settings)
        assert same_bits(run.x0, alone.x0)
        assert run.eliminated == {}


@pytest.mark.parametrize("attack", ["none", "sign_flip", "alie", "small_value"])
@pytest.mark.parametrize("name", ALGORITHMS)
def test_permuting_workers_permutes_the_state(name: str, attack: str) -> None:
    loss = quadratic()
    order = np.array([3, 0, 6, 2, 5, 1, 4])
    moved = losses.Quadratic(loss.a[order], loss.b[order])
    settings: dict[str, Any] = {"algorithm": ALGORITHMS[name], "attack": ATTACKS[attack], "dtype": "float64"}
    settings |= {"iterations": 100}
    a = simulate(None, None, loss=loss, byzantine=BYZANTINE, **settings)
    b = simulate(None, None, loss=moved, byzantine=[int(np.flatnonzero(order == j)[0]) for j in BYZANTINE], **settings)
    np.testing.assert_allclose(b.x0, a.x0, rtol=1e-10, atol=1e-10)
    if a.x is not None:
        assert b.x is not None
        np.testing.assert_allclose(b.x, a.x[order], rtol=1e-10, atol=1e-10)


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("attack", [name for name in ATTACKS if name != "non_finite"])
def test_duals_never_leave_their_interval(attack: str, dtype: str) -> None:
    admm = ADMM(lam=0.1, beta=3.0, master_step=steps.constant(0.2), worker_step=steps.constant(0.3))
    setup = experiment(
        loss=quadratic(noise=2.0), algorithm=admm, attack=ATTACKS[attack], dtype=dtype, seed=1, x0_init=np.full(13, 5.0)
    )
    state, advance = local(setup)
    bound = np.dtype(dtype).type(0.1)
    reached = 0
    for k in range(1, 60):
        advance(state, k, 1)
        for name in ("eta", "eta_prev", "sent", "sent_prev"):
            assert np.all(np.abs(state[name]) <= bound), name
        reached += int(np.sum(np.abs(state["eta"]) == bound))
    assert reached > 0  # the projection had something to do
    assert np.all(state["eliminated"] == -1)


@pytest.mark.parametrize("name", ["admm", "rsa"])
def test_with_lambda_near_zero_workers_learn_alone(name: str) -> None:
    loss = quadratic()
    step = {"master_step": steps.constant(0.1), "worker_step": steps.constant(0.5)}
    algorithm = ADMM(lam=1e-12, beta=1.0, **step) if name == "admm" else RSA(lam=1e-12, **step)
    run = simulate(
        None,
        None,
        loss=loss,
        algorithm=algorithm,
        attack=attacks.Gaussian(),
        n_byzantine=Q,
        iterations=200,
        dtype="float64",
    )
    np.testing.assert_allclose(run.x, loss.b, atol=1e-9)  # the Byzantine ones too: their state is honest
    np.testing.assert_allclose(run.x0, 0.0, atol=1e-9)
    assert run.consensus_gap[-1] == pytest.approx(np.mean(np.linalg.norm(loss.b[: M - Q], axis=1)))


def test_workers_have_models_of_their_own_and_the_projection_projects() -> None:
    # The authors' script shares one model between clients and projects a loop variable.
    run = simulate(None, None, loss=quadratic(), algorithm=ALGORITHMS["admm"], iterations=3, dtype="float64")
    assert run.x is not None
    assert len({row.tobytes() for row in run.x}) == M
    far = experiment(loss=quadratic(), algorithm=ADMM(lam=1e-3, beta=9.0), n_byzantine=0, x0_init=np.full(13, 100.0))
    state, advance = local(far)
    advance(state, 1, 1)
    np.testing.assert_array_equal(state["eta"], -1e-3)


def test_each_attacker_flips_its_own_message() -> None:
    seen: list[Array] = []

    def spy(messages: Array, *, byzantine: Sequence[int], **_: Any) -> Array:
        seen.append(messages.copy())
        return -3.0 * messages[byzantine]

    settings: dict[str, Any] = {"loss": quadratic(), "byzantine": [1, 4], "iterations": 6, "dtype": "float64"}
    for name in ("admm", "rsa", "mean"):
        mine = simulate(None, None, algorithm=ALGORITHMS[name], attack=spy, **settings)
        theirs = simulate(None, None, algorithm=ALGORITHMS[name], attack=attacks.SignFlip(), **settings)
        assert equal_runs(mine, theirs)
    assert all(len({row.tobytes() for row in messages}) > 1 for messages in seen[1:6])
