"""Data sets by name: the bundled, the generated, and small stand-ins for the published ones."""

from __future__ import annotations

import hashlib
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from byzadmm import datasets
from byzadmm.datasets import _files, _load
from byzadmm.datasets._files import File, Source
from support.data_files import IMAGE_FILES, gzipped_idx, published


def test_digits_are_real_and_bundled() -> None:
    data = datasets.load()
    assert (data.name, data.n_classes, data.n_features, data.scale) == ("digits", 10, 64, 1 / 16)
    assert data.train_x.shape == (1437, 64)
    assert data.test_x.shape == (360, 64)
    assert data.train_x.dtype == np.uint8
    assert data.train_y.dtype == data.test_y.dtype == np.int64
    counts = np.bincount(np.concatenate([data.train_y, data.test_y]))
    assert counts.tolist() == [178, 182, 177, 183, 181, 182, 181, 179, 174, 180]
    assert np.bincount(data.train_y).min() > 120
    assert data.train_x.max() == 16
    # A nearest-mean classifier would stay at chance level if images and labels had come apart.
    means = np.stack([data.train_x[data.train_y == c].mean(axis=0) for c in range(10)])
    distances = ((data.test_x[:, None, :] - means) ** 2).sum(axis=2)
    assert (distances.argmin(axis=1) == data.test_y).mean() > 0.85


def test_digits_match_scikit_learn() -> None:
    sklearn = pytest.importorskip("sklearn.datasets")
    x, y = sklearn.load_digits(return_X_y=True)
    data = datasets.load("digits", scale="raw")
    rows = np.column_stack([np.concatenate([data.train_x, data.test_x]), np.concatenate([data.train_y, data.test_y])])
    expected = np.column_stack([x, y])
    assert np.array_equal(np.unique(rows, axis=0), np.unique(expected, axis=0))


def test_digits_file_is_small_and_has_its_licence() -> None:
    folder = Path(datasets.__file__).parent
    assert (folder / "digits.npz").stat().st_size == _files.DIGITS.bytes < 100_000
    assert "CC BY 4.0" in (folder / "digits.LICENSE.txt").read_text()


def test_damaged_digits_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(_load, "DIGITS", File("digits.npz", 1, "0" * 64, ()))
    with pytest.raises(ValueError, match=r"digits.npz: expected sha256 0+ \(1 bytes\), got 09a5557c"):
        datasets.load("digits")


def test_repr_tells_the_shape() -> None:
    assert repr(datasets.load("synthetic", n_train=7, n_test=3, n_features=4, n_classes=2)) == (
        "Dataset('synthetic', train=7, test=3, n_features=4, n_classes=2, dtype=float32, scale=1)"
    )


def test_dataset_is_frozen() -> None:
    with pytest.raises(AttributeError):
        datasets.load().scale = 1.0  # type: ignore[misc]


def test_synthetic_is_seeded_balanced_and_learnable() -> None:
    first, again, other = (datasets.load("synthetic", seed=seed) for seed in (1, 1, 2))
    assert np.array_equal(first.train_x, again.train_x)
    assert np.array_equal(first.test_y, again.test_y)
    assert not np.array_equal(first.train_x, other.train_x)
    assert np.bincount(first.train_y).tolist() == [200] * 10
    assert first.train_x.dtype == np.float32
    means = np.stack([first.train_x[first.train_y == c].mean(axis=0) for c in range(10)])
    distances = ((first.test_x[:, None, :] - means) ** 2).sum(axis=2)
    assert 0.7 < (distances.argmin(axis=1) == first.test_y).mean() < 1.0


def test_synthetic_training_set_does_not_depend_on_test_size() -> None:
    small, large = (datasets.load("synthetic", n_test=n) for n in (10, 1000))
    assert np.array_equal(small.train_x, large.train_x)
    assert not np.array_equal(small.test_x, small.train_x[:10])


@pytest.mark.parametrize(
    ("kwargs", "error", "message"),
    [
        (
            {"name": "imagenet"},
            ValueError,
            "name: expected one of digits, synthetic, mnist, covtype, fashion_mnist, cifar10; got",
        ),
        ({"name": 3}, TypeError, "name: expected a string, got int"),
        ({"data_dir": 3}, TypeError, "data_dir: expected a path, got int"),
        ({"scale": "log"}, ValueError, "scale: expected one of raw, unit, standard, symmetric; got 'log'"),
        ({"scale": 0}, ValueError, "scale: expected a finite number > 0.0, got 0.0"),
        ({"scale": float("nan")}, ValueError, "scale: expected a finite number > 0.0, got nan"),
        ({"scale": [1]}, TypeError, "scale: expected a real number, got list"),
        ({"seed": 0}, TypeError, "seed: expected no option for digits, got an unknown option"),
        (
            {"name": "synthetic", "rows": 3},
            TypeError,
            "rows: expected n_train, n_test, n_features, n_classes, seed for",
        ),
        ({"name": "synthetic", "n_train": 0}, ValueError, "n_train: expected an integer >= 1, got 0"),
        ({"name": "synthetic", "n_test": 0}, ValueError, "n_test: expected an integer >= 1, got 0"),
        ({"name": "synthetic", "n_features": 1.5}, TypeError, "n_features: expected an integer, got float"),
        ({"name": "synthetic", "n_classes": 1}, ValueError, "n_classes: expected an integer >= 2, got 1"),
        ({"name": "synthetic", "seed": -1}, ValueError, "seed: expected an integer in .*, got -1"),
    ],
)
def test_load_errors(kwargs: dict[str, Any], error: type[Exception], message: str) -> None:
    with pytest.raises(error, match=message):
        datasets.load(**kwargs)


@pytest.fixture
def small_images(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder of MNIST-like files of six and four images, published under their own checksums."""
    rng = np.random.default_rng(0)
    arrays = [
        rng.integers(0, 256, (6, 28, 28)),
        np.arange(6) % 10,
        rng.integers(0, 256, (4, 28, 28)),
        np.arange(4) + 6,
    ]
    return publish_images(tmp_path, monkeypatch, arrays)


def publish_images(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, arrays: list[np.ndarray[Any, Any]]) -> Path:
    folder = tmp_path / "data" / "mnist"
    folder.mkdir(parents=True)
    files = []
    for name, array in zip(IMAGE_FILES, arrays, strict=True):
        content = gzipped_idx(array)
        (folder / name).write_bytes(content)
        files.append(published(content, name))
    monkeypatch.setitem(_files.SOURCES, "mnist", Source("none", tuple(files)))
    monkeypatch.setattr(_load, "_IMAGES_TRAIN", 6)
    monkeypatch.setattr(_load, "_IMAGES_TEST", 4)
    return folder.parent


def test_images_stay_uint8(small_images: Path) -> None:
    data = datasets.load("mnist", data_dir=small_images)
    assert data.train_x.dtype == np.uint8
    assert (data.train_x.shape, data.scale) == ((6, 784), 1 / 255)
    assert data.test_y.tolist() == [6, 7, 8, 9]
    assert datasets.load("mnist", data_dir=small_images, scale=1.0).scale == 1.0
    assert datasets.load("mnist", data_dir=small_images, scale="unit").train_x.max() == 1.0


def test_images_labels_out_of_range(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    arrays = [np.zeros((6, 28, 28)), np.arange(6) + 5, np.zeros((4, 28, 28)), np.zeros(4)]
    folder = publish_images(tmp_path, monkeypatch, arrays)
    with pytest.raises(ValueError, match=r"train-labels-idx1-ubyte.gz: expected labels in \[0, 9\], got 10"):
        datasets.load("mnist", data_dir=folder)


@pytest.mark.parametrize("layout", ["nested", "loose"])
@pytest.mark.parametrize("how", ["data_dir", "variable", "cache"])
def test_files_are_found(
    small_images: Path, cache: Path, monkeypatch: pytest.MonkeyPatch, layout: str, how: str, tmp_path: Path
) -> None:
    folder = small_images if layout == "nested" else small_images / "mnist"
    if how == "cache":
        monkeypatch.setenv("BYZADMM_CACHE", str(folder))
    elif how == "variable":
        monkeypatch.setenv("BYZADMM_DATA", str(folder))
    data_dir = folder if how == "data_dir" else None
    assert len(datasets.load("mnist", data_dir=data_dir).train_x) == 6
    assert datasets.fetch("mnist", data_dir=data_dir) == [small_images / "mnist" / name for name in IMAGE_FILES]
    row = next(row for row in datasets.available(data_dir) if row.name == "mnist")
    assert row.where == str(small_images / "mnist")


def test_namesake_of_another_set_is_not_taken(small_images: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    # Loose MNIST files must not be reported as damaged Fashion-MNIST ones.
    rows = {row.name: row.where for row in datasets.available(small_images / "mnist")}
    assert rows["mnist"] is not None
    assert rows["fashion_mnist"] is None


def test_damaged_file_names_both_checksums(small_images: Path) -> None:
    path = small_images / "mnist" / IMAGE_FILES[2]
    good = path.read_bytes()
    for bad in (good[:-1], good + b"x", b"", b"another"):
        path.write_bytes(bad)
        with pytest.raises(ValueError, match=IMAGE_FILES[2]) as caught:
            datasets.load("mnist", data_dir=small_images)
        assert hashlib.sha256(good).hexdigest() in str(caught.value)
        assert f"got {hashlib.sha256(bad).hexdigest()} ({len(bad)} bytes)" in str(caught.value)
