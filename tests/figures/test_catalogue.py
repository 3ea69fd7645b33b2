"""The catalogue: settings that work on digits, under another name and at another scale; labels and styles."""

from __future__ import annotations

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


def accuracy(data: datasets.Dataset, algorithm: Any) -> float:
    parts = partition.iid(data.train_y, M, seed=0)
    given: dict[str, Any] = {"attack": attacks.SignFlip(), "n_byzantine": Q, "iterations": 500}
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
        given = {key: getattr(made, key) for key in (*entry.required, *(["step"] if name == "rsa" else []))}
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
