"""The catalogue: settings that work on digits, under another name and at another scale; labels and styles."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from byzadmm import ADMM, RSA, SGD, attacks, catalogue, datasets, partition, simulate, steps

M, Q = 20, 8
#: What each reaches under sign-flipping on digits in 500 iterations, less 0.02 to 0.03.
ALGORITHMS: dict[str, tuple[Any, float]] = {
    "ideal": (lambda data: SGD.for_dataset(data, ideal=True), 0.94),
    "admm": (ADMM.for_dataset, 0.89),
    "rsa": (RSA.for_dataset, 0.88),
    "krum": (lambda data: SGD.for_dataset(data, rule="krum", f=Q), 0.91),
    "median": (lambda data: SGD.for_dataset(data, rule="median"), 0.85),
    "nnm+trimmed-mean": (lambda data: SGD.for_dataset(data, rule="nnm+trimmed-mean", f=Q), 0.93),
}


def accuracy(data: datasets.Dataset, algorithm: Any, loss: str = "softmax") -> float:
    parts = partition.iid(data.train_y, M, seed=0)
    given: dict[str, Any] = {"attack": attacks.SignFlip(), "n_byzantine": Q, "iterations": 500, "loss": loss}
    return simulate(data, parts, algorithm=algorithm, **given).final_accuracy()


def digits(factor: float = 1.0, **more: Any) -> datasets.Dataset:
    data = datasets.load("digits")
    x, x_test = (factor * part.astype(np.float32) * data.scale for part in (data.train_x, data.test_x))
    return datasets.from_arrays(x, data.train_y, x_test, data.test_y, **more)


@pytest.mark.parametrize("name", ALGORITHMS)
def test_the_settings_work_on_digits(name: str) -> None:
    make, least = ALGORITHMS[name]
    data = datasets.load("digits")
    assert accuracy(data, make(data)) > least


def test_the_attack_of_these_tests_is_one() -> None:
    data = datasets.load("digits")
    assert accuracy(data, SGD.for_dataset(data)) < 0.2


@pytest.mark.parametrize("data", [digits(), digits(0.5), digits(16.0), digits(1000.0), digits(scale="standard")])
@pytest.mark.parametrize("name", ["admm", "rsa", "krum"])
def test_the_settings_work_on_arrays_of_any_scale(name: str, data: datasets.Dataset) -> None:
    make, least = ALGORITHMS[name]
    assert data.name == "custom"
    assert accuracy(data, make(data)) > least - 0.02


def test_the_settings_work_for_logistic_regression() -> None:
    """Two classes of digits, at two scales: about what softmax reaches with the same settings."""
    for factor in (1.0, 100.0):
        data = digits(factor)
        odd = datasets.from_arrays(data.train_x, data.train_y % 2, data.test_x, data.test_y % 2)
        for name, least in (("admm", 0.88), ("rsa", 0.88), ("ideal", 0.89)):
            found, softmax = (accuracy(odd, ALGORITHMS[name][0](odd), loss=loss) for loss in ("logistic", "softmax"))
            assert found > max(least, softmax - 0.02), f"{name} at {factor}: {found}, softmax {softmax}"


def regression(features: int, size: float = 1.0, deviation: float = 1.0, offset: float = 0.0) -> datasets.Dataset:
    rng = np.random.default_rng(features)
    x = rng.standard_normal((5000, features))
    y = x @ rng.standard_normal(features) / np.sqrt(features) + 0.3 * rng.standard_normal(5000)
    y = deviation * (y / y.std() + offset)
    return datasets.Dataset("line", size * x[:4000], y[:4000], size * x[4000:], y[4000:], 0, 1.0)


@pytest.mark.parametrize(
    "data",
    [
        regression(5),
        regression(30),
        regression(30, size=100.0),
        regression(30, deviation=1e3),
        regression(30, deviation=1e-3),
        regression(30, offset=3.0),
        regression(200),
    ],
    ids=["5", "30", "size 100", "deviation 1e3", "deviation 1e-3", "offset 3", "200"],
)
def test_the_settings_work_for_real_targets(data: datasets.Dataset) -> None:
    """ADMM, RSA and Ideal SGD under attack beside the closed form; the mean breaks. 200 samples per worker."""
    A, B = (np.c_[x, np.ones(len(x))] for x in (data.train_x, data.test_x))
    exact = np.linalg.lstsq(A, data.train_y, rcond=None)[0]
    best = 1 - np.mean((B @ exact - data.test_y) ** 2) / np.var(data.test_y)
    parts = np.array_split(np.arange(4000), M)
    less = {"sign-flip": 0.25 if data.n_features == 200 else 0.06, "gaussian": 0.06}
    for attack in (attacks.SignFlip(), attacks.Gaussian()):
        name = "sign-flip" if attack == attacks.SignFlip() else "gaussian"
        for algorithm in (ADMM.for_dataset(data), RSA.for_dataset(data), SGD.for_dataset(data, ideal=True)):
            run = simulate(data, parts, loss="least-squares", algorithm=algorithm, attack=attack, n_byzantine=Q)
            r2 = run.metrics["r2"][-1]
            assert r2 > best - less[name], f"{algorithm} {name}: {r2} of {best}"
    broken = simulate(data, parts, loss="least-squares", algorithm=SGD.for_dataset(data), n_byzantine=Q,
                      attack=attacks.SignFlip())  # fmt: skip
    assert not broken.metrics["r2"][-1] > 0


def test_named_data_sets_have_the_catalogues_settings() -> None:
    preset = catalogue.PRESETS["digits"]
    data = datasets.load("digits")
    assert catalogue.preset_for(data) is preset
    assert (ADMM.for_dataset(data), RSA.for_dataset(data)) == (preset.admm, preset.rsa)
    assert SGD.for_dataset(data, rule="krum", f=8) == SGD(rule="krum", f=8, step=preset.step)
    assert catalogue.preset_for(datasets.load("synthetic")) is catalogue.PRESETS["synthetic"]
    # The name alone does not do: these have another scale.
    assert ADMM.for_dataset(datasets.load("digits", scale="raw")).lam == pytest.approx(0.16, rel=0.01)
    assert catalogue.preset_for(datasets.load("synthetic", n_features=400)).length > 100


def test_settings_follow_the_scale_of_the_gradients() -> None:
    small, large = (catalogue.preset_for(digits(factor)) for factor in (10.0, 1000.0))
    assert large.length == pytest.approx(1e4 * small.length)
    assert large.admm.lam == pytest.approx(100 * small.admm.lam)
    assert large.rsa.lam == pytest.approx(100 * small.rsa.lam)
    for now, before in ((large.admm, small.admm), (large.rsa, small.rsa)):
        for end in ("master_step", "worker_step"):
            assert getattr(now, end)(9) == pytest.approx(1e-4 * getattr(before, end)(9), rel=1e-3)
    assert large.admm.beta == pytest.approx(1e4 * small.admm.beta, rel=1e-3)
    assert large.step(9) == pytest.approx(1e-4 * small.step(9), rel=1e-3)


def test_settings_for_real_targets_follow_both_scales() -> None:
    one = catalogue.preset_for(regression(30))
    targets = catalogue.preset_for(regression(30, deviation=100.0))
    assert targets.admm == replace(one.admm, lam=targets.admm.lam)
    assert (targets.rsa.lam, targets.admm.lam) == pytest.approx((100 * one.rsa.lam, 100 * one.admm.lam), rel=0.01)
    assert targets.step == one.step
    features = catalogue.preset_for(regression(30, size=100.0))
    assert features.admm.lam == pytest.approx(100 * one.admm.lam, rel=0.01)
    for k in (1, 900):
        assert features.step(k) == pytest.approx(1e-4 * one.step(k), rel=0.1)  # the bias column does not grow
    assert all(low < high for low, high in one.ranges().values())
    named = replace(regression(30), name="synthetic", scale=float(np.sqrt(29 / one.length)))  # as long as those
    assert catalogue.preset_for(named).admm.lam == pytest.approx(one.admm.lam * named.scale, rel=0.01)


def test_one_column_far_above_the_rest_is_refused() -> None:
    """A date in seconds beside ages: with steps for the one, nothing is learned of the others."""
    rng = np.random.default_rng(0)
    x = np.c_[rng.uniform(18, 90, 200), rng.uniform(1.6e9, 1.7e9, 200), np.ones(200)]
    for y in (x[:, 0] > 50, x[:, 0] + 0.5):
        with pytest.raises(ValueError, match="expected columns of about one size, got column 1 far above the rest"):
            catalogue.preset_for(datasets.from_arrays(x, y, x, y))
        scaled = catalogue.preset_for(datasets.from_arrays(x, y, x, y, scale="standard"))
        assert scaled.length == pytest.approx(2.0)
        alone = datasets.from_arrays(x[:, 1:] / 1e8, y, x[:, 1:] / 1e8, y)  # the others are constant
        assert catalogue.preset_for(alone).length > 200


def test_changes() -> None:
    data, one, two = datasets.load("digits"), steps.constant(1.0), steps.constant(2.0)
    assert ADMM.for_dataset(data, lam=0.5).lam == 0.5
    rsa = RSA.for_dataset(data)
    assert RSA.for_dataset(data, lam=0.5) == RSA(lam=0.5, step=rsa.step)
    assert RSA.for_dataset(data, step=one) == RSA(lam=rsa.lam, step=one)
    assert RSA.for_dataset(data, worker_step=two) == RSA(lam=rsa.lam, master_step=rsa.master_step, worker_step=two)
    assert rsa.changed(step=one, worker_step=two) == RSA(lam=rsa.lam, master_step=one, worker_step=two)
    both = RSA(master_step=one, worker_step=two)
    assert both.changed(lam=0.5) == RSA(lam=0.5, master_step=one, worker_step=two)
    assert SGD.for_dataset(data, step=one).step is one
    for kind in (ADMM, RSA, SGD):
        with pytest.raises(TypeError, match="speed"):
            kind.for_dataset(data, speed=3)


@pytest.mark.parametrize(
    ("data", "error", "message"),
    [
        (np.ones((3, 2)), TypeError, "data: expected a Dataset of byzadmm.datasets, got ndarray"),
        (digits(0.1), ValueError, r"data: expected samples of mean squared length >= 1 .* got 0.15; .*`byzadmm tune`"),
        (digits(0.0), ValueError, "got 0; give the data another scale"),
        (datasets.from_arrays([[1e200], [0.0]], [0, 1], [[0.0]], [0]), ValueError, "got inf; give the data another"),
        (regression(3, deviation=0.0), ValueError, "data: expected features and targets that vary"),
        (regression(3, deviation=1e305), ValueError, "data: expected features and targets that vary"),
        (regression(3, size=0.1), ValueError, "data: expected samples of mean squared length >= 1"),
        (regression(3, offset=11.0), ValueError, "targets whose mean .* got 11 and 1; subtract the mean"),
    ],
)
def test_what_is_refused(data: Any, error: type[Exception], message: str) -> None:
    for kind in (ADMM, RSA, SGD):
        with pytest.raises(error, match=message):
            kind.for_dataset(data)


def test_every_algorithm_has_what_the_command_line_settings_files_and_searches_need() -> None:
    preset = catalogue.PRESETS["digits"]
    for name, entry in catalogue.algorithms().items():
        made = entry.suited(preset)
        assert isinstance(made, entry.kind), name
        assert set(entry.tuned) <= set(preset.ranges()), name
        step = ["step"] if name in ("rsa", "async-rsa") else []
        given = {key: getattr(made, key) for key in (*entry.required, *step)}
        assert entry.build(given) == made.changed(**given), name
    assert all(low < high for preset in catalogue.PRESETS.values() for low, high in preset.ranges().values())


def test_data_sets_have_one_spelling() -> None:
    assert catalogue.load_dataset("digits", scale="raw").scale == 1.0
    assert catalogue.dataset_name("Fashion_MNIST".lower()) == "fashion-mnist"
    for wrong, error in (("cifar", ValueError), (3, TypeError)):
        with pytest.raises(error, match="dataset: expected"):
            catalogue.dataset_name(wrong)  # type: ignore[arg-type]


def test_styles_are_distinct() -> None:
    names = [*catalogue.STYLES, *(f"rule {i}" for i in range(20))]
    looks = catalogue.styles(names)
    assert list(looks) == names
    assert {name: looks[name] for name in catalogue.STYLES} == catalogue.STYLES
    assert len({(look.color, str(look.line)) for look in looks.values()}) == len(names)
    fixed = {catalogue.STYLES[name].color for name in ("admm", "rsa", "sgd", "ideal")}
    assert not fixed & {looks[name].color for name in names if name not in catalogue.STYLES}
    # A color that is in the picture already is not used again while there are others.
    [again] = catalogue.styles(["admm"], [catalogue.STYLES["admm"].color.lower()]).values()
    assert again.color not in fixed
