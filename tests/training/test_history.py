"""Workers that remember: momentum, Byrd-SAGA and LSVRG, against twins, along every path, and for what they are good."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest

from byzadmm import SGD, Result, attacks, datasets, losses, partition, simulate, simulate_many, steps
from byzadmm import reference as ref
from byzadmm.training.master import Master, play
from byzadmm.training.workers import Workers
from support.arrays import same_bits
from support.runs import ATTACKS, BYZANTINE, M, Q, experiment, quadratic, small_data, small_parts, transcription

pytestmark = pytest.mark.slow

Array = npt.NDArray[Any]

STEP = steps.inv_sqrt(2, 1)
ALL_ATTACKS = {**ATTACKS, "label_flip": attacks.LabelFlip()}
REMEMBERING = {
    "momentum": SGD(rule="median", step=STEP, momentum=0.9),
    "ideal momentum": SGD(step=STEP, momentum=0.9, ideal=True),
    "saga": SGD(rule="geometric_median", step=STEP, variance_reduction="saga"),
    "both": SGD(rule="nnm+centered_clip", f=Q, step=STEP, momentum=0.5, variance_reduction="saga"),
    "ideal": SGD(step=STEP, momentum=0.9, variance_reduction="saga", ideal=True),
    "lsvrg": SGD(rule="geometric_median", step=STEP, momentum=0.5, variance_reduction="lsvrg"),
    "ideal lsvrg": SGD(step=STEP, variance_reduction="lsvrg", ideal=True),
}


class Diverging:
    """A custom loss, without samples, that gives infinite gradients."""

    n_workers, dim = 3, 2

    def gradient(self, x: Array, *, worker: int, k: int) -> Array:
        return np.array([np.inf, 0.0]) * (-1) ** k


def twin_of(kind: str, batch_size: int, seed: int, poisoned: Any = ()) -> Any:
    data = small_data()
    return {"saga": ref.saga_gradients, "lsvrg": ref.lsvrg_gradients}[kind](
        data.train_x,
        data.train_y,
        small_parts(),
        n_classes=3,
        batch_size=batch_size,
        scale=data.scale,
        seed=seed,
        poisoned=poisoned,
    )


# --- against the twins -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("attack", ATTACKS)
@pytest.mark.parametrize("rule", ["mean", "trimmed_mean"])
def test_momentum_follows_its_twin(rule: str, attack: str) -> None:
    loss = quadratic(noise=0.3)
    algorithm = SGD(rule=rule, f=Q, step=STEP, momentum=0.9)
    settings: dict[str, Any] = {"attack": ATTACKS[attack], "n_byzantine": Q, "iterations": 60, "eval_every": 20}
    run = simulate(None, None, loss=loss, algorithm=algorithm, seed=4, dtype="float64", record="trajectory", **settings)
    zeros = np.zeros((M, loss.dim))
    gradients = ref.quadratic_gradients(loss.a, loss.b, noise=0.3, seed=4)
    assert run.trajectory is not None
    states = transcription(algorithm, ATTACKS[attack], gradients, zeros[0], zeros, BYZANTINE, 60, seed=4)
    for t, state in enumerate(states, start=1):
        if t % 20 == 0:
            np.testing.assert_allclose(run.trajectory["x0"][t // 20], state.x0, rtol=1e-10, atol=1e-10)
    assert t == 60


@pytest.mark.parametrize("momentum", [0.0, 0.8])
@pytest.mark.parametrize("attack", ["none", "sign_flip", "gaussian", "alie", "label_flip", "non_finite"])
@pytest.mark.parametrize("kind", ["saga", "lsvrg"])
def test_variance_reduction_follows_its_twin(kind: str, attack: str, momentum: float) -> None:
    algorithm = SGD(rule="median", step=STEP, momentum=momentum, variance_reduction=kind)
    # Parts have 17 or 18 samples: batches of 9 draw some of them twice.
    run = simulate(
        small_data(),
        small_parts(),
        algorithm=algorithm,
        attack=ALL_ATTACKS[attack],
        n_byzantine=Q,
        batch_size=9,
        iterations=200,
        eval_every=50,
        seed=2**63 + 5,
        dtype="float64",
        record="trajectory",
    )
    twin = twin_of(kind, 9, 2**63 + 5, BYZANTINE if attack == "label_flip" else ())
    zeros = np.zeros((M, 18))
    states = transcription(algorithm, ALL_ATTACKS[attack], twin, zeros[0], zeros, BYZANTINE, 200, seed=2**63 + 5)
    assert run.trajectory is not None
    for t, state in enumerate(states, start=1):
        if t % 50 == 0:
            np.testing.assert_allclose(run.trajectory["x0"][t // 50], state.x0, rtol=1e-10, atol=1e-10)
    assert t == 200


def test_a_table_of_one_sample_gives_the_full_gradient() -> None:
    data = small_data()
    parts = [np.array([i]) for i in range(5)]
    settings: dict[str, Any] = {"iterations": 10, "dtype": "float64", "batch_size": 3}
    plain = simulate(data, parts, algorithm=SGD(step=STEP), **settings)
    saga = simulate(data, parts, algorithm=SGD(step=STEP, variance_reduction="saga"), **settings)
    np.testing.assert_allclose(saga.x0, plain.x0, rtol=1e-12, atol=1e-12)


def test_the_mean_stays_that_of_the_table() -> None:
    data = small_data()
    algorithm = SGD(step=STEP, variance_reduction="saga")
    setup = experiment(dataset=data, parts=small_parts(), algorithm=algorithm, batch_size=9, dtype="float32")
    workers, master = Workers(setup, range(M)), Master(setup)
    for k in range(1, 400):
        play(k, master, lambda k, x0: (workers.answer(k, x0), None))
    state = workers.state()
    assert state["saga"].shape == (120, 3)
    ends = np.cumsum([len(part) for part in small_parts()])
    inputs = np.c_[data.train_x * data.scale, np.ones(120)]
    for mean, part, residuals in zip(
        state["saga_mean"], small_parts(), np.split(state["saga"], ends[:-1]), strict=True
    ):
        exact = residuals.T.astype(float) @ inputs[part] / len(part)
        np.testing.assert_allclose(mean, exact.ravel(), atol=1e-5)


def test_saga_is_right_on_average() -> None:
    gradients = twin_of("saga", 4, 0)
    full = gradients(np.zeros(18), 1)  # where the table began, the correction is exact
    setup = experiment(
        dataset=small_data(),
        parts=small_parts(),
        algorithm=SGD(variance_reduction="saga"),
        batch_size=4,
        n_byzantine=0,
    )
    model = np.linspace(-1, 1, 18)
    sums = np.zeros((M, 18))
    for k in range(2, 1500):
        workers = Workers(setup, range(M))
        np.testing.assert_allclose(workers.answer(1, np.zeros(18)), full, atol=1e-12)
        sums += workers.answer(k, model)
    data = small_data()
    for worker, part in enumerate(small_parts()):
        exact = ref.softmax_gradient(model.reshape(3, -1), data.train_x[part], data.train_y[part], scale=data.scale)
        np.testing.assert_allclose(sums[worker] / 1498, exact.ravel(), atol=0.03)


def test_lsvrg_is_right_on_average_and_exact_at_its_snapshot() -> None:
    """Batches of one: the mean over all samples, each drawn in some round, is the full gradient, exactly."""
    data, parts = small_data(), [np.arange(5), np.arange(5, 11)]
    algorithm = SGD(variance_reduction="lsvrg")
    for attack in (None, attacks.LabelFlip()):
        setup = experiment(dataset=data, parts=parts, algorithm=algorithm, attack=attack, batch_size=1, byzantine=[1],
                           n_byzantine=1)  # fmt: skip
        at, model = np.linspace(-1, 1, 18), np.sin(np.arange(18.0))
        drawn = [[int(ref.philox_integers(1, high=n, seed=0, stream=(0, worker, k))[0]) for k in range(2, 200)]
                 for worker, n in enumerate((5, 6))]  # fmt: skip
        full = [[setup.loss.full_gradient(x, worker=worker) for worker in range(2)] for x in (at, model)]
        rows: dict[tuple[int, int], Array] = {}
        for k in range(2, 200):
            workers = Workers(setup, range(2))
            np.testing.assert_allclose(workers.answer(k + 1000, at), full[0], rtol=1e-12, atol=1e-15)
            workers.state()["snapshot"][:], workers.state()["snapshot_gradient"][:] = at, full[0]
            for worker, row in enumerate(workers.answer(k, model)):
                rows[worker, drawn[worker][k - 2]] = row
        for worker, n in enumerate((5, 6)):
            mean = np.mean([rows[worker, sample] for sample in range(n)], axis=0)
            np.testing.assert_allclose(mean, full[1][worker], rtol=1e-12, atol=1e-15)


def test_snapshots_are_renewed_with_the_chance_of_a_sample() -> None:
    for loss, chance in ((None, 9 / 17.14), (quadratic(), 0.1)):
        about = {"loss": loss} if loss else {"dataset": small_data(), "parts": small_parts()}
        setup = experiment(algorithm=SGD(variance_reduction="lsvrg"), n_byzantine=0, batch_size=9, **about)
        workers, renewed = Workers(setup, range(M)), 0
        for k in range(1, 401):
            before = workers.state()["snapshot"].copy()
            workers.answer(k, np.full(setup.d, float(k)))
            renewed += int((workers.state()["snapshot"] != before).any(axis=1).sum()) - M * (k == 1)
        assert abs(renewed / (400 * M) - chance) < 0.04, chance  # more than four deviations


# --- the same bits along every path ----------------------------------------------------------------------------------


@pytest.mark.parametrize("attack", ALL_ATTACKS)
@pytest.mark.parametrize("name", REMEMBERING)
def test_apart_resumed_and_side_by_side_give_the_same_bits(name: str, attack: str, tmp_path: Path) -> None:
    data, parts = small_data(), small_parts()
    settings: dict[str, Any] = {"algorithm": REMEMBERING[name], "attack": ALL_ATTACKS[attack], "n_byzantine": Q}
    settings |= {"batch_size": 5, "seed": 3, "dtype": "float32", "eval_every": 3}
    whole = simulate(data, parts, iterations=9, threads=1, **settings)
    path = tmp_path / "run.npz"
    simulate(data, parts, iterations=3, checkpoint=path, **settings)
    assert same_bits(whole.x0, simulate(data, parts, iterations=9, checkpoint=path, threads=2, **settings).x0)
    [beside] = simulate_many([{"dataset": data, "parts": parts, "iterations": 9, **settings}])
    assert isinstance(beside, Result)
    assert same_bits(whole.x0, beside.x0)
    del settings["eval_every"]
    setup = experiment(dataset=data, parts=parts, **settings)
    master, ranks = Master(setup), [Workers(setup, range(5)), Workers(setup, [5, 6])]
    for k in range(1, 10):
        play(k, master, lambda k, x0: (np.concatenate([rank.answer(k, x0) for rank in ranks]), None))
    assert same_bits(whole.x0, master.x0)
    assert whole.eliminated == {i: int(k) for i, k in enumerate(master.eliminated) if k >= 0}


def test_whole_pixels_are_features_too() -> None:
    rng = np.random.default_rng(0)
    x, y = rng.integers(0, 256, (40, 6), dtype=np.uint8), np.arange(40) % 2
    as_bytes = datasets.from_arrays(x, y, x, y, scale=1 / 255)
    as_reals = datasets.from_arrays(x.astype(float), y, x, y, scale=1 / 255)
    parts = partition.iid(y, 4, seed=0)
    algorithm = SGD(step=STEP, variance_reduction="saga")
    a, b = (simulate(d, parts, algorithm=algorithm, iterations=20, dtype="float64") for d in (as_bytes, as_reals))
    assert same_bits(a.x0, b.x0)


def test_ideal_remembers_the_regular_workers_only() -> None:
    setup = experiment(
        dataset=small_data(), parts=small_parts(), algorithm=REMEMBERING["ideal"], attack=ATTACKS["zero"]
    )
    workers = Workers(setup, range(M))
    workers.answer(1, np.zeros(18))
    begun = np.isfinite(workers.state()["saga_mean"]).all(axis=1)
    assert begun.tolist() == [True] * (M - Q) + [False] * Q


def test_settings_are_recorded() -> None:
    run = simulate(small_data(), small_parts(), algorithm=REMEMBERING["both"], iterations=1)
    assert run.config["algorithm"]["momentum"] == 0.5
    assert run.config["algorithm"]["variance_reduction"] == "saga"


def test_a_run_that_diverges_ends() -> None:
    data = small_data()
    for name in ("momentum", "saga"):
        algorithm = SGD(
            step=steps.constant(1e30), momentum=0.5 if name == "momentum" else 0.0,
            variance_reduction=None if name == "momentum" else "saga",
        )  # fmt: skip
        run = simulate(data, small_parts(), algorithm=algorithm, iterations=6)
        assert run.iterations[-1] == 6
    run = simulate(None, None, loss=Diverging(), algorithm=SGD(momentum=0.5), iterations=3)
    assert run.eliminated == {0: 1, 1: 1, 2: 1}


# --- what is refused -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("settings", "error", "message"),
    [
        ({"momentum": 1.0}, ValueError, r"momentum: expected a number in \[0, 1\), got 1.0"),
        ({"momentum": -0.1}, ValueError, r"momentum: expected a number in \[0, 1\), got -0.1"),
        ({"momentum": np.nan}, ValueError, "momentum: expected a finite number, got nan"),
        ({"momentum": "0.9"}, TypeError, "momentum: expected a real number, got str"),
        ({"variance_reduction": "svrg"}, ValueError, "variance_reduction: expected one of saga, lsvrg; got 'svrg'"),
        ({"variance_reduction": True}, TypeError, "variance_reduction: expected a string, got bool"),
    ],
)
def test_settings_that_are_refused(settings: dict[str, Any], error: type[Exception], message: str) -> None:
    with pytest.raises(error, match=message):
        SGD(**settings)


@pytest.mark.parametrize("loss", [quadratic(), Diverging()])
def test_variance_reduction_needs_samples(loss: Any) -> None:
    with pytest.raises(ValueError, match=f"needs one with samples; {type(loss).__name__} has none"):
        simulate(None, None, loss=loss, algorithm=SGD(variance_reduction="saga"))
    with pytest.raises(ValueError, match="needs one with full_gradient; Diverging has none"):
        simulate(None, None, loss=Diverging(), algorithm=SGD(variance_reduction="lsvrg"))


# --- what they are good for ------------------------------------------------------------------------------------------


def test_saga_ends_nearer_to_the_optimum() -> None:
    data, parts = small_data(), small_parts()
    full: dict[str, Any] = {"dataset": data, "parts": parts, "rho": 0.1, "dtype": "float64", "n_byzantine": 2}
    full |= {"attack": attacks.Gaussian(), "batch_size": 2}
    # The minimiser of what the regular workers hold.
    x = np.zeros(18)
    for _ in range(3000):
        model = x.reshape(3, -1)
        rows = [
            ref.softmax_gradient(model, data.train_x[part], data.train_y[part], scale=data.scale).ravel()
            for part in parts[:-2]
        ]
        x = x - 0.3 * (np.mean(rows, axis=0) + 0.1 * x)
    settings: dict[str, Any] = {"rule": "geometric_median", "step": steps.constant(0.2)}
    plain, saga = (
        simulate(
            algorithm=SGD(**settings, variance_reduction=kind), optimum=x, iterations=1500, eval_every=10, **full
        ).distance[-40:].mean()
        for kind in (None, "saga")
    )  # fmt: skip
    assert saga < 0.6 * plain


def test_lsvrg_ends_nearer_to_the_optimum_on_digits() -> None:
    data = datasets.load("digits")
    parts = partition.iid(data.train_y, 20, seed=0)
    loss = losses.Softmax(data, parts, batch_size=4)
    x = np.zeros(loss.dim)  # the minimiser of what the regular workers hold
    for _ in range(300):
        x -= 2.0 * (np.mean([loss.full_gradient(x, worker=worker) for worker in range(14)], axis=0) + 0.01 * x)
    found = {}
    for kind in (None, "saga", "lsvrg"):
        algorithm = SGD(rule="geometric_median", step=steps.constant(1.0), variance_reduction=kind)
        settings: dict[str, Any] = {"attack": attacks.Gaussian(), "n_byzantine": 6, "iterations": 500, "eval_every": 20}
        run = simulate(None, None, loss=loss, algorithm=algorithm, optimum=x, **settings)
        found[kind] = run.distance[-10:].mean()
    print(found)
    assert found["lsvrg"] < 0.5 * found[None]
    assert found["lsvrg"] < 1.1 * found["saga"]


def test_momentum_helps_against_a_little_is_enough() -> None:
    data = datasets.load("digits")
    parts = partition.iid(data.train_y, 20, seed=0)
    common: dict[str, Any] = {"dataset": data, "parts": parts, "attack": attacks.ALIE(1.5), "n_byzantine": 8}
    common |= {"iterations": 600, "batch_size": 4, "eval_every": 20}
    runs = simulate_many(
        [common | {"algorithm": SGD(rule="krum", f=8, step=steps.power(3.0), momentum=beta)} for beta in (0.0, 0.9)]
    )
    plain, remembering = (run.final_accuracy() for run in runs if isinstance(run, Result))
    assert remembering > plain + 0.05
