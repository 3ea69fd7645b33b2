"""Logistic and linear regression as losses: closed forms, the relation to softmax, metrics, and what is refused."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest

from byzadmm import ADMM, SGD, attacks, datasets, losses, reference, simulate, steps
from byzadmm.losses import sampled
from support.arrays import same_bits
from support.runs import ALGORITHMS, M, Q, data_for, small_data, small_parts

Array = npt.NDArray[Any]


def line(n: int = 12, features: int = 3, noise: float = 0.5) -> datasets.Dataset:
    rng = np.random.default_rng(4)
    x = rng.standard_normal((n + 5, features))
    y = x @ np.arange(1.0, features + 1) + 2.0 + noise * rng.standard_normal(n + 5)
    return datasets.Dataset("line", x[:n], y[:n], x[n:], y[n:], 0, 0.5)


def inputs(data: datasets.Dataset) -> Array:
    return np.c_[data.scale * data.train_x, np.ones(len(data.train_x))]


# --- least squares ---------------------------------------------------------------------------------------------------


def test_sgd_and_admm_reach_the_closed_form() -> None:
    """With one sample per worker every gradient is exact, and the mean is the full gradient."""
    data = line()
    A, y = inputs(data), data.train_y
    loss = losses.LeastSquares(data, [[i] for i in range(12)], batch_size=1)
    settings: dict[str, Any] = {"loss": loss, "iterations": 6000, "eval_every": 6000, "dtype": "float64"}
    for rho in (0.0, 0.1):
        run = simulate(None, None, algorithm=SGD(step=steps.constant(0.4)), rho=rho, **settings)
        ridge = np.linalg.solve(A.T @ A / 12 + rho * np.eye(4), A.T @ y / 12)
        np.testing.assert_allclose(run.x0, ridge, atol=1e-9, err_msg=f"SGD, rho={rho}")
        admm = ADMM(lam=20.0, beta=1.0, master_step=steps.constant(0.08), worker_step=steps.constant(0.2))
        run = simulate(None, None, algorithm=admm, rho=rho, **settings)
        ridge = np.linalg.solve(A.T @ A + rho * np.eye(4), A.T @ y)
        np.testing.assert_allclose(run.x0, ridge, atol=1e-6, err_msg=f"ADMM, rho={rho}")
    exact = np.linalg.lstsq(A, y, rcond=None)[0]
    plain = simulate(None, None, algorithm=SGD(step=steps.constant(0.4)), rho=0.0, optimum=exact, **settings)
    assert plain.distance[-1] < 1e-9
    assert plain.loss[-1] == pytest.approx(0.5 * np.mean((A @ exact - y) ** 2))


def test_saga_reaches_the_optimum_with_batches() -> None:
    """Variance reduction: a constant step, batches of 3, and no noise in the end, where SGD has some."""
    for loss in ("least-squares", "logistic"):
        data, parts = data_for(loss), small_parts()
        settings: dict[str, Any] = {"loss": loss, "iterations": 1500, "eval_every": 1500, "dtype": "float64"}
        slopes = []
        for kind in ("saga", None):
            algorithm = SGD(step=steps.constant(0.1), variance_reduction=kind)
            x = simulate(data, parts, algorithm=algorithm, batch_size=3, rho=0.2, **settings).x0
            z = inputs(data) @ x
            residuals = z - data.train_y if loss == "least-squares" else 1 / (1 + np.exp(-z)) - data.train_y
            each = [residuals[part] @ inputs(data)[part] / len(part) for part in parts]
            slopes.append(np.abs(np.mean(each, axis=0) + 0.2 * x).max())
        assert slopes[0] < 1e-9, loss
        assert slopes[1] > 1e-3, loss


def test_saga_begins_with_the_full_gradient() -> None:
    for loss in ("softmax", "logistic", "least-squares"):
        data, parts = data_for(loss), small_parts()
        algorithm = SGD(step=steps.constant(1.0), variance_reduction="saga")
        run = simulate(data, parts, loss=loss, algorithm=algorithm, iterations=1, rho=0.0, dtype="float64")
        full = -np.mean([run_full(loss, data, part) for part in parts], axis=0)
        np.testing.assert_allclose(run.x0, full, atol=1e-12, err_msg=loss)


def run_full(loss: str, data: datasets.Dataset, part: Array) -> Array:
    """The whole gradient at zero of a worker, by the twin."""
    name = loss.replace("-", "_")
    shape = (3, 6) if loss == "softmax" else (6,)
    gradient: Callable[..., Array] = getattr(reference, f"{name}_gradient")
    return gradient(np.zeros(shape), data.train_x[part], data.train_y[part], scale=data.scale).ravel()


def test_metrics_of_least_squares() -> None:
    data = data_for("least-squares")
    loss = losses.LeastSquares(data, small_parts())
    x = np.random.default_rng(0).standard_normal(6)
    found = loss.evaluate(x)
    r, r_test = (
        data.scale * a @ x[:-1] + x[-1] - y for a, y in ((data.train_x, data.train_y), (data.test_x, data.test_y))
    )
    assert list(found) == ["loss", "test_loss", "r2"]
    assert found["loss"] == pytest.approx(0.5 * np.mean(r**2)) == loss.value(x)
    assert found["test_loss"] == pytest.approx(0.5 * np.mean(r_test**2))
    assert found["r2"] == pytest.approx(1 - np.sum(r_test**2) / np.sum((data.test_y - data.test_y.mean()) ** 2))
    run = simulate(data, small_parts(), loss="least-squares", algorithm=ALGORITHMS["ideal"], iterations=30)
    assert run.metrics["r2"][-1] > 0.8
    assert run.config["loss"] == "least-squares"
    assert np.isnan(run.accuracy).all()
    constant = losses.LeastSquares(replace(data, test_y=np.full(30, 2.0)), small_parts())
    assert np.isnan(constant.evaluate(x)["r2"])
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert loss.evaluate(np.full(6, 1e200))["r2"] == -np.inf


def test_whole_numbers_are_targets_too() -> None:
    data = data_for("least-squares")
    y, y_test = np.round(data.train_y).astype(np.int64), np.round(data.test_y).astype(np.int32)
    whole = replace(data, train_y=y, test_y=y_test)
    as_float = replace(whole, train_y=whole.train_y.astype(float), test_y=whole.test_y.astype(np.float32))
    x = np.linspace(-1, 1, 6)
    a, b = (losses.LeastSquares(one, small_parts()) for one in (whole, as_float))
    assert same_bits(a.gradient(x, worker=2, k=3), b.gradient(x, worker=2, k=3))
    assert a.evaluate(x) == b.evaluate(x)


def test_a_diverging_run_ends() -> None:
    data = data_for("least-squares")
    settings: dict[str, Any] = {"loss": "least-squares", "iterations": 200, "eval_every": 50}
    for name in ("admm", "rsa", "mean", "median"):
        algorithm = ALGORITHMS[name].changed(
            **{key: steps.constant(50.0) for key in vars(ALGORITHMS[name]) if key.endswith("step")}
        )
        run = simulate(data, small_parts(), algorithm=algorithm, **settings)
        assert len(run.loss) == 5, name
        assert run.eliminated or not run.loss[-1] < 1e6, name  # and the result says so


# --- logistic --------------------------------------------------------------------------------------------------------


def test_logistic_is_softmax_with_two_classes() -> None:
    """From zero, ``V[1] - V[0]`` of softmax moves as logistic regression does with twice the step."""
    data, parts = data_for("logistic"), small_parts()
    settings: dict[str, Any] = {"rho": 0.0, "iterations": 40, "batch_size": 5, "dtype": "float64", "n_byzantine": Q}
    for attack in (None, attacks.SignFlip(), attacks.LabelFlip()):
        for rule in ("mean", "median"):
            wide = simulate(data, parts, algorithm=SGD(rule=rule, step=steps.power(0.5)), attack=attack, **settings)
            one = simulate(
                data, parts, loss="logistic", algorithm=SGD(rule=rule, step=steps.power(1.0)), attack=attack, **settings
            )
            V = wide.x0.reshape(2, -1)
            np.testing.assert_allclose(one.x0, V[1] - V[0], atol=1e-12, err_msg=f"{attack} {rule}")
            np.testing.assert_allclose(one.loss, wide.loss, rtol=1e-12, err_msg=f"{attack} {rule}")
            np.testing.assert_array_equal(one.accuracy, wide.accuracy, err_msg=f"{attack} {rule}")


def test_separable_data_is_separated_under_attack() -> None:
    rng = np.random.default_rng(0)
    x = rng.standard_normal((1200, 4))
    x = x[np.abs(x[:, 0] + x[:, 1]) > 0.4]  # a margin
    y = (x[:, 0] + x[:, 1] > 0).astype(np.int64)
    data = datasets.from_arrays(x[:600], y[:600], x[600:], y[600:])
    parts = np.array_split(np.arange(600), 20)
    for algorithm in (ADMM.for_dataset(data), SGD.for_dataset(data, rule="geometric_median")):
        for attack in (attacks.SignFlip(), attacks.Gaussian(), attacks.LabelFlip()):
            run = simulate(data, parts, loss="logistic", algorithm=algorithm, attack=attack, n_byzantine=8)
            assert run.final_accuracy() > 0.98, f"{algorithm} {attack}: {run.final_accuracy()}"
    broken = simulate(data, parts, loss="logistic", algorithm=SGD.for_dataset(data), attack=attacks.SignFlip(),
                      n_byzantine=8)  # fmt: skip
    assert broken.final_accuracy() < 0.2


def test_label_flipping_flips_zero_and_one() -> None:
    data, parts = data_for("logistic"), small_parts()
    loss = losses.Logistic(data, parts, batch_size=7, seed=2)
    flipped = losses.Logistic(replace(data, train_y=1 - data.train_y), parts, batch_size=7, seed=2)
    poisoned = loss.poisoned([1, 4], None)
    x = np.random.default_rng(1).standard_normal(6)
    for worker in range(M):
        expected = (flipped if worker in (1, 4) else loss).gradient(x, worker=worker, k=3)
        assert same_bits(poisoned.gradient(x, worker=worker, k=3), expected)
    assert poisoned.evaluate(x) == loss.evaluate(x)


def test_logistic_by_hand() -> None:
    data = datasets.from_arrays([[-2.0], [2.0]], [0, 1], [[3.0], [-1.0], [0.5]], [1, 1, 0], scale=0.5)
    loss = losses.Logistic(data, [[0], [1]], batch_size=1)
    assert (loss.dim, loss.n_workers, loss.describe()) == (2, 2, "logistic")
    assert repr(loss) == "Logistic('custom', n_workers=2, dim=2)"
    assert loss.initial().tolist() == [0.0, 0.0]
    assert loss.gradient([0.0, 0.0], worker=1, k=1).tolist() == [-0.5, -0.5]
    assert loss.gradient([0.0, 0.0], worker=0, k=1).tolist() == [-0.5, 0.5]
    assert loss.evaluate([2.0, 0.0]) == {"accuracy": 1 / 3, "loss": pytest.approx(np.log1p(np.exp(-2.0)))}


# --- all of them -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("loss", ["softmax", "logistic", "least-squares"])
def test_long_training_sets_have_their_loss_on_a_sample(loss: str, monkeypatch: pytest.MonkeyPatch) -> None:
    kinds: dict[str, Any] = {
        "softmax": losses.Softmax, "logistic": losses.Logistic, "least-squares": losses.LeastSquares
    }  # fmt: skip
    data = data_for(loss)
    monkeypatch.setattr(sampled, "LOSS_SAMPLES", 30)
    made = kinds[loss](data, small_parts())
    rows = np.linspace(0, 119, 30).astype(int)
    few = kinds[loss](replace(data, train_x=data.train_x[rows], train_y=data.train_y[rows]), [[0]])
    x = np.random.default_rng(2).standard_normal(made.dim)
    assert made.evaluate(x)["loss"] == few.value(x) != made.value(x)
    gradients = [made.gradient(x, worker=i, k=1) for i in range(M)]
    out = np.empty((M, made.dim))
    made.gradients(x, workers=range(M), k=1, out=out)
    assert same_bits(out, np.stack(gradients))


def test_other_targets_are_another_run(tmp_path: Path) -> None:
    data = data_for("least-squares")
    settings: dict[str, Any] = {"loss": "least-squares", "algorithm": ALGORITHMS["mean"], "eval_every": 2}
    simulate(data, small_parts(), checkpoint=tmp_path / "run.npz", iterations=4, **settings)
    other = replace(data, train_y=data.train_y + 1)
    with pytest.raises(ValueError, match="checkpoint"):
        simulate(other, small_parts(), checkpoint=tmp_path / "run.npz", iterations=4, **settings)


def targets(y: Any, y_test: Any = None) -> datasets.Dataset:
    data = data_for("least-squares")
    return replace(data, train_y=y, test_y=data.test_y if y_test is None else y_test)


def run(loss: str, data: datasets.Dataset, **changes: Any) -> Callable[[], Any]:
    settings: dict[str, Any] = {"algorithm": ALGORITHMS["mean"], "iterations": 2} | changes
    return lambda: simulate(data, small_parts(), loss=loss, **settings)


@pytest.mark.parametrize(
    ("call", "error", "message"),
    [
        (run("logistic", small_data()), ValueError, "dataset: expected two classes .*got n_classes=3; loss='softmax'"),
        (run("logistic", data_for("least-squares")), ValueError, "got n_classes=0; loss='least-squares' takes such"),
        (run("softmax", data_for("least-squares")), ValueError, "expected labels .*n_classes=0.*; loss='least-sq"),
        (run("least-squares", small_data()), ValueError, r"real targets .*\(n_classes=3\); from_arrays\(task='regress"),
        (run("least-squares", targets(np.full(120, np.nan))), ValueError, "train_y: expected finite numbers"),
        (run("least-squares", targets(np.zeros(120), np.full(30, np.inf))), ValueError, "test_y: expected finite"),
        (run("least-squares", targets(["a"] * 120)), TypeError, "train_y: expected real numbers"),
        (run("least-squares", targets(np.full(120, 1e300))), ValueError, "train_y: expected finite numbers in float32"),
        (
            run("least-squares", data_for("least-squares"), attack=attacks.LabelFlip(), n_byzantine=1),
            ValueError,
            "attack: LabelFlip needs a loss with labels, such as softmax and logistic; got LeastSquares",
        ),
        (lambda: losses.Logistic("x", []), TypeError, "dataset: expected a Dataset of byzadmm.datasets, got str"),
        (lambda: losses.LeastSquares(line(), []), ValueError, "parts: expected at least one worker, got none"),
        (lambda: losses.LeastSquares(line(), [[12]]), ValueError, r"parts\[0\]: expected indices in \[0, 12\)"),
        (
            lambda: losses.LeastSquares(line(), [[0]]).gradient([1.0], worker=0, k=1),
            ValueError,
            r"x: expected shape \(4,\), got \(1,\)",
        ),
        (lambda: losses.LeastSquares(line(), [[0]]).evaluate(np.zeros(3)), ValueError, r"x: expected shape \(4,\)"),
    ],
)
def test_what_is_refused(call: Callable[[], Any], error: type[Exception], message: str) -> None:
    with pytest.raises(error, match=message):
        call()


def test_a_test_set_that_does_not_fit_is_refused_before_the_run() -> None:
    """A Dataset can be made by hand, past the checks of from_arrays; a wrong accuracy would look like one."""
    for loss in ("softmax", "logistic", "least-squares"):
        data = data_for(loss)
        shapes = "test_x, test_y: expected at least one row of"
        wrong = [
            (replace(data, test_y=data.test_y[:1]), shapes),
            (replace(data, test_x=data.test_x[:, :1]), shapes),
            (replace(data, test_x=data.test_x[:0], test_y=data.test_y[:0]), shapes),
        ]
        if data.n_classes:
            labels = r"expected labels in \[0, \d\), got"
            wrong += [(replace(data, test_y=data.test_y + 1), rf"test_y: {labels} {data.n_classes} at row \d")]
            wrong += [(replace(data, train_y=data.train_y - 1), rf"train_y: {labels} -1 at row \d")]
        for bad, message in wrong:
            with pytest.raises(ValueError, match=message):
                run(loss, bad)()
