"""Workers that the master eliminates: which, when, and what remains."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest

from byzadmm import RSA, SGD, attacks, losses, simulate, steps
from byzadmm import reference as ref
from support.arrays import same_bits
from support.runs import ALGORITHMS, BYZANTINE, M, Q, equal_runs, plain_attack, quadratic, transcription

Array = npt.NDArray[Any]
DTYPES = ("float32", "float64")


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("name", [n for n in ALGORITHMS if n != "ideal"])
def test_nan_senders_never_move_the_master(name: str, dtype: str) -> None:
    algorithm = ALGORITHMS[name]
    settings: dict[str, Any] = {"iterations": 40, "dtype": dtype, "seed": 5}
    run = simulate(
        None,
        None,
        loss=quadratic(noise=0.3),
        algorithm=algorithm,
        attack=attacks.NonFinite(),
        n_byzantine=Q,
        first_k=4,
        **settings,
    )
    assert run.eliminated == dict.fromkeys(BYZANTINE, 4)
    # An eliminated worker counts towards f, hence the mean of the others.
    silent = SGD(step=algorithm.step) if name == "trimmed_mean" else algorithm  # type: ignore[union-attr]
    without = simulate(None, None, loss=quadratic(M - Q, noise=0.3), algorithm=silent, first_k=4, **settings)
    if name == "trimmed_mean":
        np.testing.assert_allclose(run.x0, without.x0, rtol=1e-5 if dtype == "float32" else 1e-12)
    else:
        assert same_bits(run.x0, without.x0)
    assert np.all(np.isfinite(run.x0))


def at_message(index: int, what: float, sends: str = "message") -> Any:
    """Honest until message ``index``; then the first Byzantine worker sends ``what``."""

    def attack(messages: Array, *, k: int, byzantine: Sequence[int], **_: Any) -> Array:
        out = messages[list(byzantine)] if sends == "message" else np.zeros((len(byzantine), messages.shape[1]))
        if k >= index:
            out[0, -1] = what
        return out

    attack.sends = sends  # type: ignore[attr-defined]
    return attack


@pytest.mark.parametrize("what", [np.nan, np.inf, -np.inf])
@pytest.mark.parametrize(("name", "iteration"), [("admm", 6), ("rsa", 7), ("mean", 7), ("median", 7)])
def test_who_is_eliminated_and_when(name: str, iteration: int, what: float) -> None:
    loss, algorithm = quadratic(), ALGORITHMS[name]
    run = simulate(
        None,
        None,
        loss=loss,
        algorithm=algorithm,
        attack=at_message(7, what),
        byzantine=[2, 5],
        iterations=20,
        dtype="float64",
        eval_every=1,
        record="trajectory",
    )
    # An infinite u gives ADMM a dual at the end of the interval, which is a legal message.
    assert run.eliminated == ({} if name == "admm" and np.isinf(what) else {2: iteration})
    zeros = np.zeros((M, loss.dim))

    def twin(messages: Array, x0: Array, k: int, byzantine: Sequence[int]) -> Array:
        made: Array = at_message(7, what)(messages, k=k, byzantine=byzantine)
        return made

    gradients = ref.quadratic_gradients(loss.a, loss.b)
    assert run.trajectory is not None
    for t, state in enumerate(transcription(algorithm, twin, gradients, zeros[0], zeros, [2, 5], 20), start=1):
        np.testing.assert_allclose(run.trajectory["x0"][t], state.x0, rtol=1e-10, atol=1e-10)


@pytest.mark.parametrize(
    ("what", "out"), [(0.3, False), (-0.3, False), (0.3000001, True), (-9.0, True), (np.nan, True)]
)
def test_a_dual_out_of_range_eliminates_its_sender(what: float, out: bool) -> None:
    run = simulate(
        None,
        None,
        loss=quadratic(),
        algorithm=ALGORITHMS["admm"],
        attack=at_message(7, what, "dual"),
        byzantine=[1, 4],
        iterations=20,
        dtype="float64",
    )
    assert run.eliminated == ({1: 6} if out else {})


def test_all_workers_may_be_eliminated() -> None:
    run = simulate(
        None,
        None,
        loss=quadratic(),
        algorithm=SGD(step=steps.constant(0.5)),
        attack=attacks.NonFinite(),
        n_byzantine=M,
        rho=1.0,
        iterations=3,
        x0_init=np.ones(13),
        dtype="float64",
    )
    assert len(run.eliminated) == M
    np.testing.assert_array_equal(run.x0, 0.125)  # only the regulariser is left
    gradients = ref.quadratic_gradients(quadratic().a, quadratic().b)
    settings: dict[str, Any] = {"attack": ref.same_value(np.nan), "byzantine": range(M), "rho": 1.0}
    twin = ref.train_sgd(gradients, np.ones(13), M, step=lambda k: 0.5, **settings)
    np.testing.assert_array_equal([next(twin).x0.copy() for _ in range(3)][-1], 0.125)
    assert run.consensus_gap.tolist() == [0.0, 0.0]
    for name in ("admm", "rsa"):
        run = simulate(None, None, loss=quadratic(), algorithm=ALGORITHMS[name], attack=attacks.NonFinite(),
                       n_byzantine=M, iterations=3)  # fmt: skip
        assert len(run.eliminated) == M
        assert not run.x0.any()


def test_sums_beyond_the_largest_float_on_both_paths() -> None:
    settings: dict[str, Any] = {"loss": quadratic(), "algorithm": SGD(step=steps.constant(1e-3)), "iterations": 2}
    settings |= {"n_byzantine": Q, "dtype": "float64", "optimum": np.zeros(13)}
    huge = attacks.SameValue(1.7e308)
    fused = simulate(None, None, attack=huge, **settings)
    assert equal_runs(fused, simulate(None, None, attack=plain_attack(huge, 0), **settings))
    assert np.all(np.isfinite(fused.x0))
    assert np.all(fused.x0 < -1e304)
    assert np.isinf(fused.loss[-1])
    assert np.isinf(fused.distance[-1])


def test_a_regular_worker_that_diverges_is_eliminated_and_the_run_goes_on() -> None:
    loss = losses.Quadratic(np.array([1.0, 1.0, 1e30]), np.ones((3, 2)))
    run = simulate(None, None, loss=loss, algorithm=RSA(lam=0.1, step=steps.constant(0.5)), iterations=40)
    assert list(run.eliminated) == [2]
    assert np.all(np.isfinite(run.x0))
    assert run.iterations.tolist() == [0, 40]
