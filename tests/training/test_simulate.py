"""The arguments of simulate: what is refused, what is accepted, what the result says."""

from __future__ import annotations

import dataclasses
from typing import Any

import numpy as np
import pytest

from byzadmm import ADMM, RSA, SGD, attacks, losses, simulate, steps
from byzadmm import reference as ref
from byzadmm.losses import sampled
from support.arrays import same_bits
from support.runs import M, equal_runs, quadratic, small_data, small_parts, small_run

ERRORS: list[tuple[dict[str, Any], type[Exception], str]] = [
    ({"algorithm": "admm"}, TypeError, "algorithm: expected ADMM, RSA, SGD or another algorithms.Algorithm, got str"),
    ({"attack": 3}, TypeError, "attack: expected an attack of byzadmm.attacks or a callable, got int"),
    ({"attack": attacks.Attack(), "n_byzantine": 1}, TypeError, "Attack: a base class, it has no native form"),
    ({"attack": attacks.Duplicate(9)}, ValueError, "Duplicate: worker=9 is not one of 7 workers"),
    ({"n_byzantine": 8}, ValueError, r"n_byzantine: expected an integer in \[0, 7\], got 8"),
    ({"n_byzantine": -1}, ValueError, r"n_byzantine: expected an integer in \[0, 7\], got -1"),
    ({"n_byzantine": 1.0}, TypeError, "n_byzantine: expected an integer, got float"),
    ({"byzantine": [7]}, ValueError, r"byzantine: expected an integer in \[0, 6\], got 7"),
    ({"byzantine": [1, 1]}, ValueError, r"byzantine: a worker is named twice in \[1, 1\]"),
    ({"byzantine": [1, 2], "n_byzantine": 3}, ValueError, "byzantine: names 2 workers, but n_byzantine=3"),
    ({"iterations": -1}, ValueError, r"iterations: expected an integer in \[0, .*\], got -1"),
    ({"iterations": 2.5}, TypeError, "iterations: expected an integer, got float"),
    ({"batch_size": 0}, ValueError, "batch_size: expected an integer >= 1, got 0"),
    ({"batch_size": 2**63}, ValueError, r"batch_size: expected less than 2\*\*31, got 9223372036854775808"),
    ({"rho": -0.1}, ValueError, "rho: expected a finite number >= 0.0, got -0.1"),
    ({"rho": np.nan}, ValueError, "rho: expected a finite number >= 0.0, got nan"),
    ({"rho": "x"}, TypeError, "rho: expected a real number, got str"),
    ({"eval_every": 0}, ValueError, "eval_every: expected an integer >= 1, got 0"),
    ({"seed": -1}, ValueError, "seed: expected an integer in"),
    ({"seed": 2**64}, ValueError, "seed: expected an integer in"),
    ({"seed": None}, TypeError, "seed: expected an integer, got NoneType"),
    ({"dtype": "float16"}, ValueError, "dtype: expected float32 or float64, got 'float16'"),
    ({"dtype": "wide"}, ValueError, "dtype: expected float32 or float64, got 'wide'"),
    ({"dtype": None}, ValueError, "dtype: expected float32 or float64, got None"),
    ({"threads": -1}, ValueError, r"threads: expected an integer in \[0, 4096\], got -1"),
    ({"loss": "hinge"}, ValueError, "loss: expected one of softmax, logistic, least-squares; got 'hinge'"),
    ({"loss": 3}, TypeError, "loss: expected 'softmax', 'logistic', 'least-squares', a loss of byzadmm"),
    ({"dataset": None}, TypeError, "loss: 'softmax' needs a dataset and parts"),
    ({"parts": None}, TypeError, "loss: 'softmax' needs a dataset and parts"),
    ({"parts": []}, ValueError, "parts: expected at least one worker, got none"),
    ({"parts": [[0], []]}, TypeError, r"parts\[1\]: expected integers, got dtype float64"),
    ({"parts": [[0], np.zeros(0, int)]}, ValueError, r"parts\[1\]: expected a list of at least one sample"),
    ({"parts": [[[0]]]}, ValueError, r"parts\[0\]: expected a list of at least one sample, got shape \(1, 1\)"),
    ({"parts": [[0, 120]]}, ValueError, r"parts\[0\]: expected indices in \[0, 120\), got 0 to 120"),
    ({"parts": [[-1]]}, ValueError, r"parts\[0\]: expected indices in \[0, 120\), got -1 to -1"),
    ({"parts": [[0.5]]}, TypeError, r"parts\[0\]: expected integers, got dtype float64"),
    ({"x0_init": np.zeros(3)}, ValueError, r"x0_init: expected shape \(18,\), got \(3,\)"),
    ({"x0_init": np.full(18, np.inf)}, ValueError, "x0_init: expected finite numbers"),
    ({"x_init": np.zeros((3, 18))}, ValueError, r"x_init: expected shape \(7, 18\), got \(3, 18\)"),
    ({"x_init": np.full((7, 18), np.nan)}, ValueError, "x_init: expected finite numbers"),
    ({"x_init": np.zeros((7, 18)), "algorithm": SGD()}, ValueError, "x_init: SGD's workers have no models"),
    ({"first_k": -1}, ValueError, r"first_k: expected an integer in \[0, .*\], got -1"),
    ({"first_k": 0, "algorithm": SGD()}, ValueError, "step: expected a finite number >= 0 at k=0, got"),
    ({"record": "everything"}, ValueError, "record: expected one of trajectory; got 'everything'"),
    ({"optimum": np.zeros(2)}, ValueError, r"optimum: expected shape \(18,\), got \(2,\)"),
    ({"algorithm": SGD(rule="trimmed_mean", f=4)}, ValueError, "trimmed_mean: f=4 is too large for n=7 workers"),
    (
        {"algorithm": SGD(rule="trimmed_mean", f=2, ideal=True), "n_byzantine": 3},
        ValueError,
        "trimmed_mean: f=2 is too large for n=4 workers",
    ),
    (
        {"algorithm": RSA(step=lambda k: 1.0 if k < 3 else np.nan)},
        ValueError,
        "master_step: expected a finite number >= 0 at k=3, got",
    ),
    ({"algorithm": ADMM(worker_step=lambda k: -1.0)}, ValueError, "worker_step: expected a finite number >= 0 at k=1"),
]
_ATTACKED: dict[str, Any] = {"n_byzantine": 2, "algorithm": SGD()}
#: Fine in float64, but infinite or zero in float32.
BEYOND: list[tuple[dict[str, Any], str]] = [
    ({"algorithm": ADMM(lam=1e60)}, r"lam: expected a finite number > 0.0 in float32, got 1e\+60"),
    ({"algorithm": ADMM(lam=1e-60)}, "lam: expected a finite number > 0.0 in float32, got 1e-60"),
    ({"algorithm": ADMM(beta=1e60)}, "beta: expected a finite number > 0.0 in float32"),
    ({"algorithm": RSA(lam=1e60, step=steps.constant(1e-61))}, "lam: expected a finite number > 0.0 in float32"),
    ({"rho": 1e60}, "rho: expected a finite number >= 0.0 in float32"),
    ({"algorithm": SGD(step=steps.constant(1e60))}, r"step: .* at k=1, got 1e\+60 \(infinite in float32\)"),
    ({"algorithm": SGD(rule="krum", step=steps.constant(1e60))}, r"step: .* at k=1, .* \(infinite in float32\)"),
    ({"algorithm": SGD(momentum=1 - 1e-9)}, r"momentum: expected a number in \[0, 1\) in float32, got 0.999999999"),
    (_ATTACKED | {"attack": attacks.Gaussian(std=1e60)}, "attack: std: expected a finite number in float32"),
    (_ATTACKED | {"attack": attacks.SignFlip(scale=-(10**60))}, "attack: scale: expected a finite number in float32"),
    (_ATTACKED | {"attack": attacks.MinMax(factor=1e60)}, "attack: factor: expected a finite number in float32"),
    (
        {"n_byzantine": 2, "algorithm": ADMM(lam=1e30, beta=1e-30), "attack": attacks.LargeValue()},
        "attack: strength: expected a finite number in float32",
    ),
    ({"dataset": dataclasses.replace(small_data(), scale=1e60)}, "scale: expected a finite number > 0.0 in float32"),
]


@pytest.mark.parametrize(("change", "message"), BEYOND, ids=[message[:20] for _, message in BEYOND])
def test_settings_beyond_the_dtype_of_the_run_are_refused(change: dict[str, Any], message: str) -> None:
    settings: dict[str, Any] = {"dataset": small_data(), "parts": small_parts(), "algorithm": ADMM(), "iterations": 2}
    with pytest.raises(ValueError, match=message):
        simulate(**(settings | change))
    assert simulate(**(settings | change | {"dtype": "float64"})).iterations.tolist() == [0, 2]


def test_what_may_be_zero_may_vanish_in_the_dtype_of_the_run() -> None:
    tiny = {"rho": 1e-60, "attack": attacks.Gaussian(std=1e-60), "algorithm": SGD(step=steps.power(1.0, 400))}
    none = {"rho": 0.0, "attack": attacks.Gaussian(std=0.0), "algorithm": SGD(step=steps.power(1.0, 400))}
    assert same_bits(small_run(dtype="float32", **tiny).x0, small_run(dtype="float32", **none).x0)


@pytest.mark.parametrize(("change", "error", "message"), ERRORS, ids=[message[:40] for _, _, message in ERRORS])
def test_settings_that_are_refused(change: dict[str, Any], error: type[Exception], message: str) -> None:
    settings: dict[str, Any] = {"dataset": small_data(), "parts": small_parts(), "algorithm": ADMM(), "iterations": 4}
    with pytest.raises(error, match=message):
        simulate(**(settings | change))


def test_label_flipping_needs_labels() -> None:
    with pytest.raises(ValueError, match="attack: LabelFlip needs a loss with labels"):
        simulate(None, None, loss=quadratic(), algorithm=ADMM(), attack=attacks.LabelFlip(), n_byzantine=1)


def test_label_flipping_teaches_the_mirrored_labels() -> None:
    step = steps.constant(0.5)
    data, parts = small_data(), small_parts()
    settings: dict[str, Any] = {"algorithm": SGD(step=step), "iterations": 150, "n_byzantine": M}
    honest = simulate(data, parts, **settings)
    flipped_run = simulate(data, parts, attack=attacks.LabelFlip(), **settings)
    assert honest.accuracy[-1] > 0.7
    assert flipped_run.accuracy[-1] < 0.5
    mirrored = simulate(
        type(data)("mirror", data.train_x, 2 - data.train_y, data.test_x, 2 - data.test_y, 3, data.scale),
        parts,
        **settings,
    )
    assert same_bits(flipped_run.x0, mirrored.x0)


def test_numpy_scalars_and_other_kinds_are_welcome() -> None:
    a = small_run(iterations=np.int64(20), n_byzantine=np.uint8(3), seed=np.uint32(0), rho=np.float32(0.0), dtype=float)
    b = small_run(rho=0.0, dtype="float64")
    assert equal_runs(a, b)
    assert equal_runs(b, small_run(rho=0.0, dtype=np.float64, byzantine=(6, 4, 5), n_byzantine=3))


def test_no_iterations_and_an_uneven_end() -> None:
    assert small_run(iterations=0).iterations.tolist() == [0]
    run = small_run(iterations=13, record="trajectory")
    assert run.iterations.tolist() == [0, 5, 10, 13]
    assert run.trajectory is not None
    assert {key: values.shape for key, values in run.trajectory.items()} == {"x0": (4, 13), "x": (4, M, 13)}
    assert same_bits(run.trajectory["x0"][-1], run.x0)
    sgd = small_run(algorithm=SGD(), record="trajectory")
    assert sgd.x is None
    assert list(sgd.trajectory or ()) == ["x0"]


def test_long_training_sets_have_their_loss_on_a_sample(monkeypatch: pytest.MonkeyPatch) -> None:
    data, parts = small_data(), small_parts()
    whole = simulate(data, parts, algorithm=ADMM(), iterations=5)
    monkeypatch.setattr(sampled, "LOSS_SAMPLES", 30)
    few = simulate(data, parts, algorithm=ADMM(), iterations=5)
    assert same_bits(whole.x0, few.x0)
    rows = np.linspace(0, 119, 30).astype(int)
    model = few.x0.reshape(3, -1)
    expected = ref.softmax_loss(model, data.train_x[rows], data.train_y[rows], scale=data.scale)
    assert few.loss[-1] == pytest.approx(float(expected), rel=1e-5)


def test_config_says_what_ran() -> None:
    run = simulate(small_data(), small_parts(), algorithm=ADMM(lam=0.2), attack=attacks.Gaussian(9.0), byzantine=[1])
    config = run.config
    assert (config["dataset"], config["loss"], config["n_workers"], config["dim"]) == ("small", "softmax", 7, 18)
    assert config["attack"] == {"name": "Gaussian", "std": 9.0}
    assert config["algorithm"]["name"] == "ADMM"
    assert config["algorithm"]["lam"] == 0.2
    assert config["byzantine"] == [1]
    assert {"version", "seed", "dtype", "batch_size", "rho", "first_k", "iterations", "eval_every"} <= set(config)


def test_progress(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    from byzadmm._internal import progress

    small_run(progress=True)
    assert capsys.readouterr().err == ""  # nothing yet: a line at most every ten seconds
    monkeypatch.setattr(progress.Bar, "PLAIN_INTERVAL", 0.0)
    small_run(progress=True)
    assert capsys.readouterr().err.splitlines() == [f"iterations: {done} of 20" for done in (0, 5, 10, 15, 20)]
    monkeypatch.setattr("sys.stderr.isatty", lambda: True, raising=False)
    small_run(progress=True)
    bar = progress.Bar("work")
    bar.update(1, 2)
    bar.close()
    bar.close()
    small_run(progress=False)


TOO_LARGE = np.full(13, 1e300)


@pytest.mark.parametrize(
    ("changes", "error", "message"),
    [
        ({"dataset": np.ones((3, 2))}, TypeError, "dataset: expected a Dataset of byzadmm.datasets or None, got"),
        ({"byzantine": 3, "n_byzantine": 0}, TypeError, "byzantine: expected a list of workers' numbers, got int"),
        ({"first_k": 2**63}, ValueError, rf"first_k: expected an integer in \[0, {2**62}\], got {2**63}"),
        ({"progress": "x"}, TypeError, "progress: expected None, True or a callable, got str"),
        ({"x0_init": TOO_LARGE}, ValueError, "x0_init: expected finite numbers in float32"),
        ({"x_init": np.tile(TOO_LARGE, (M, 1))}, ValueError, "x_init: expected finite numbers in float32"),
        ({"loss": losses.Quadratic(np.ones(M), np.tile(TOO_LARGE, (M, 1)))}, ValueError, "loss.b: expected finite"),
    ],
)
def test_wrong_arguments_are_named(changes: dict[str, Any], error: type[Exception], message: str) -> None:
    with pytest.raises(error, match=f"^{message}"):
        small_run(**changes)


def test_parts_are_a_list() -> None:
    with pytest.raises(TypeError, match=r"^parts: expected a list of index arrays, one per worker, got int$"):
        simulate(small_data(), 3, algorithm=ADMM())  # type: ignore[arg-type]


def test_large_starts_fit_float64() -> None:
    run = small_run(x0_init=TOO_LARGE, optimum=TOO_LARGE, dtype="float64", iterations=0)
    assert run.distance.tolist() == [0.0]
