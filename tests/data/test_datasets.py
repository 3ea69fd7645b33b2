"""Data stage: what is loaded, what is refused and how the files are found, downloaded and cached."""

from __future__ import annotations

import bz2
import gzip
import hashlib
import http.server
import importlib
import lzma
import math
import os
import socket
import threading
import tracemalloc
from collections.abc import Iterator
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from byzadmm import datasets
from byzadmm.datasets import _files, _formats, _load
from byzadmm.datasets._files import File, Source

IMAGE_FILES = (
    "train-images-idx3-ubyte.gz",
    "train-labels-idx1-ubyte.gz",
    "t10k-images-idx3-ubyte.gz",
    "t10k-labels-idx1-ubyte.gz",
)


@pytest.fixture(autouse=True)
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Keep every test off the user's own folders."""
    folder = tmp_path / "cache"
    monkeypatch.setenv("BYZADMM_CACHE", str(folder))
    monkeypatch.delenv("BYZADMM_DATA", raising=False)
    return folder


def idx_bytes(array: np.ndarray[Any, Any], magic: int | None = None) -> bytes:
    words = [0x0800 + array.ndim if magic is None else magic, *array.shape]
    return np.array(words, dtype=">u4").tobytes() + array.astype(np.uint8).tobytes()


def published(content: bytes, name: str = "blob.bin", urls: tuple[str, ...] = ()) -> File:
    return File(name, len(content), hashlib.sha256(content).hexdigest(), urls)


def files_in(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.rglob("*") if path.is_file())


# --- digits and synthetic -------------------------------------------------------------------------------------------


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
            "name: expected one of digits, synthetic, mnist, covtype, fashion_mnist; got",
        ),
        ({"name": 3}, TypeError, "name: expected a string, got int"),
        ({"data_dir": 3}, TypeError, "data_dir: expected a path, got int"),
        ({"scale": "log"}, ValueError, "scale: expected one of raw, unit, standard; got 'log'"),
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


# --- from_arrays and scaling ----------------------------------------------------------------------------------------

X = np.array([[0.0, 5.0, 2.0], [4.0, 5.0, 6.0]])
Y = np.array([0, 1])


def test_from_arrays_shares_memory_and_infers_classes() -> None:
    data = datasets.from_arrays(X, Y, X, np.array([2, 0]))
    assert data.train_x is X
    assert (data.n_classes, data.scale, data.name) == (3, 1.0, "custom")
    assert datasets.from_arrays(X, Y, X, Y, n_classes=7, name="mine", scale=0.5).n_classes == 7


@pytest.mark.parametrize(
    ("dtype", "kept"),
    [
        (np.uint8, np.uint8),
        (bool, np.uint8),
        (np.float16, np.float32),
        (np.float32, np.float32),
        (np.float64, np.float64),
        (">f4", np.float32),
        (">f8", np.float64),
        (np.int8, np.float64),
        (np.int64, np.float64),
        (np.longdouble, np.float64),
    ],
)
def test_from_arrays_dtypes(dtype: Any, kept: Any) -> None:
    x = np.array([[0, 1], [1, 0]], dtype=dtype)
    data = datasets.from_arrays(x, Y, x[:, ::-1], Y)
    assert data.train_x.dtype == data.test_x.dtype == kept
    assert data.train_x.dtype.isnative
    assert data.test_x.flags.c_contiguous
    assert np.array_equal(data.test_x, [[1, 0], [0, 1]])


def test_from_arrays_mixed_dtypes_meet_in_float64() -> None:
    data = datasets.from_arrays(X.astype(np.uint8), Y, X.astype(np.float32), Y)
    assert data.train_x.dtype == data.test_x.dtype == np.float64


def test_scale_number_and_raw_leave_the_array() -> None:
    x = X.astype(np.uint8)
    for scale, factor in ((0.25, 0.25), (2, 2.0), ("raw", 1.0)):
        data = datasets.from_arrays(x, Y, x, Y, scale=scale)
        assert data.train_x is x
        assert data.scale == factor


@pytest.mark.parametrize("dtype", [np.uint8, np.float32, np.float64])
def test_scale_unit_uses_training_range(dtype: Any) -> None:
    test = np.array([[2, 9, 0], [8, 5, 4]], dtype=dtype)
    data = datasets.from_arrays(X.astype(dtype), Y, test, Y, scale="unit")
    assert data.train_x.dtype == data.test_x.dtype == np.float32
    assert data.scale == 1.0
    assert np.array_equal(data.train_x, [[0, 0, 0], [1, 0, 1]])
    assert np.array_equal(data.test_x, [[0.5, 0, 0], [1, 0, 0.5]])  # clipped; the constant column stays 0


@pytest.mark.parametrize("dtype", [np.uint8, np.float32, np.float64])
def test_scale_standard_uses_training_statistics(dtype: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("byzadmm.datasets._dataset._BLOCK", 7)
    rng = np.random.default_rng(0)
    x, test = (rng.integers(0, 200, size=(n, 5)).astype(dtype) for n in (50, 20))
    x[:, 2] = 3
    data = datasets.from_arrays(x, np.zeros(50, int), test, np.zeros(20, int), scale="standard")
    spread = x.std(axis=0, dtype=np.float64)
    spread[2] = np.inf
    assert data.train_x.dtype == np.float32
    np.testing.assert_allclose(data.train_x, (x - x.mean(axis=0, dtype=np.float64)) / spread, rtol=1e-5, atol=1e-6)
    np.testing.assert_allclose(data.test_x, (test - x.mean(axis=0, dtype=np.float64)) / spread, rtol=1e-5, atol=1e-6)


def extreme_columns(dtype: Any) -> np.ndarray[Any, Any]:
    """Columns of the largest, the smallest and the closest numbers, of wide spread, and a constant one."""
    info, rng = np.finfo(dtype), np.random.default_rng(5)
    u = rng.uniform(-1, 1, 12).astype(dtype)
    with np.errstate(under="ignore"):
        columns = [
            u * info.max,
            np.where(u > 0, info.max, -info.max),
            u * info.smallest_normal,
            rng.integers(-3, 4, 12) * info.smallest_subnormal,
            info.max / 2 * (1 + info.eps * rng.integers(0, 3, 12)),
            1 + info.eps * rng.integers(0, 3, 12),
            np.ldexp(dtype(1), np.linspace(info.minexp, info.maxexp - 1, 12).astype(int)),
            np.where(u > 0.8, info.max, info.smallest_subnormal),
            u * np.sqrt(info.smallest_normal),
            u * np.sqrt(info.max),
            np.full(12, info.max),
        ]
    return np.stack(columns, axis=1).astype(dtype)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("scale", ["unit", "standard"])
def test_scale_of_extreme_columns_is_that_of_exact_arithmetic(dtype: Any, scale: str) -> None:
    x = extreme_columns(dtype)
    y = np.zeros(len(x), int)
    data = datasets.from_arrays(x, y, x, y, scale=scale)
    for before, after in zip(x.T, data.train_x.T, strict=True):
        values = [Fraction(float(v)) for v in before]
        mean = sum(values) / len(values)
        variance = sum((v - mean) ** 2 for v in values) / len(values)
        low, spread = min(values), max(values) - min(values)
        for v, found in zip(values, after, strict=True):
            if not spread:
                exact = 0.0
            elif scale == "unit":
                exact = float((v - low) / spread)
            else:
                exact = math.copysign(math.sqrt((v - mean) ** 2 / variance), 1 if v > mean else -1)
            assert found == pytest.approx(exact, rel=1e-6, abs=1e-7)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_test_values_far_beyond_training_stay_finite(dtype: Any) -> None:
    x = extreme_columns(dtype)
    largest = np.finfo(dtype).max
    test = np.stack([np.full(x.shape[1], value, dtype) for value in (-largest, 0.0, largest)])
    labels = np.zeros(len(x), int), np.zeros(3, int)
    unit = datasets.from_arrays(x, labels[0], test, labels[1], scale="unit").test_x
    assert ((unit >= 0) & (unit <= 1)).all()
    standard = datasets.from_arrays(x, labels[0], test, labels[1], scale="standard").test_x
    assert np.isfinite(standard).all()
    assert (np.diff(standard, axis=0) >= 0).all()
    assert standard[2, 3] == np.finfo(np.float32).max  # a column of subnormals, beyond float32
    assert not unit[:, -1].any()  # constant in training
    assert not standard[:, -1].any()


def test_scale_standard_keeps_a_constant_column_at_zero() -> None:
    x = np.full((1000, 1), 0.1)  # its computed deviation is not exactly 0
    y = np.zeros(1000, int)
    assert not datasets.from_arrays(x, y, x, y, scale="standard").train_x.any()


@pytest.mark.parametrize(
    ("changes", "error", "message"),
    [
        ({"train_x": X[0]}, ValueError, r"train_x: expected a non-empty 2-D array, got shape \(3,\)"),
        ({"test_x": X[:0]}, ValueError, r"test_x: expected a non-empty 2-D array, got shape \(0, 3\)"),
        ({"test_x": X[:, :2]}, ValueError, "test_x: expected 3 columns as in train_x, got 2"),
        ({"train_x": X.astype(str)}, TypeError, "train_x: expected real numbers, got <U"),
        ({"train_x": X.astype(complex)}, TypeError, "train_x: expected real numbers, got complex128"),
        (
            {"test_x": [[0, 0, 0], [0, np.nan, 0]]},
            ValueError,
            "test_x: expected finite numbers, got nan at row 1, column 1",
        ),
        (
            {"train_x": np.full((2, 3), np.inf)},
            ValueError,
            "train_x: expected finite numbers, got inf at row 0, column 0",
        ),
        ({"train_y": [0]}, ValueError, r"train_y: expected shape \(2,\), got \(1,\)"),
        ({"test_y": [[0], [1]]}, ValueError, r"test_y: expected shape \(2,\), got \(2, 1\)"),
        ({"test_y": [0.0, 1.0]}, TypeError, "test_y: expected integers, got float64"),
        ({"train_y": [0, -1]}, ValueError, "train_y: expected labels >= 0, got -1"),
        ({"train_y": [0, 2], "n_classes": 2}, ValueError, r"train_y: expected labels in \[0, 1\], got 2"),
        ({"n_classes": 0}, ValueError, "n_classes: expected an integer >= 1, got 0"),
        ({"name": 5}, TypeError, "name: expected a string, got int"),
        ({"scale": -1.0}, ValueError, "scale: expected a finite number > 0.0, got -1.0"),
    ],
)
def test_from_arrays_errors(changes: dict[str, Any], error: type[Exception], message: str) -> None:
    with pytest.raises(error, match=message):
        datasets.from_arrays(**{"train_x": X, "train_y": Y, "test_x": X, "test_y": Y, **changes})


# --- LIBSVM ---------------------------------------------------------------------------------------------------------

LIBSVM = b"+1 1:0.5 3:-2e-1\n\n-1 2:1. # a comment 9:9\n3\r\n+1 3:.25  \n"


@pytest.mark.parametrize(
    ("suffix", "pack"), [("", bytes), (".gz", gzip.compress), (".bz2", bz2.compress), (".xz", lzma.compress)]
)
@pytest.mark.parametrize("block", [1, 20, 1 << 22])
def test_libsvm_content(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, suffix: str, pack: Any, block: int) -> None:
    monkeypatch.setattr(_formats, "_BLOCK_BYTES", block)
    path = tmp_path / f"tiny.txt{suffix}"
    path.write_bytes(pack(LIBSVM))
    x, y = _formats.read_libsvm(path, None)
    np.testing.assert_array_equal(x, np.array([[0.5, 0, -0.2], [0, 1, 0], [0, 0, 0], [0, 0, 0.25]], dtype=np.float32))
    assert x.dtype == np.float32
    assert y.tolist() == [1, -1, 3, 1]


def test_from_libsvm_splits_and_maps_labels(tmp_path: Path) -> None:
    path = tmp_path / "tiny.scale.txt"
    path.write_text("".join(f"{(-1, 4, 7)[i % 3]} 1:{i}\n" for i in range(1, 31)))
    data = datasets.from_libsvm(path, n_features=2, test_fraction=0.3)
    assert repr(data) == "Dataset('tiny', train=21, test=9, n_features=2, n_classes=3, dtype=float32, scale=1)"
    x, y = np.concatenate([data.train_x, data.test_x]), np.concatenate([data.train_y, data.test_y])
    assert sorted(x[:, 0].tolist()) == list(range(1, 31))
    assert (y == x[:, 0] % 3).all()
    assert y.dtype == np.int64
    assert x[:, 0].tolist() != sorted(x[:, 0].tolist())
    other = datasets.from_libsvm(str(path), seed=1, scale="unit")
    assert other.train_x.max() == 1.0


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("1 1:2 3", "line 2: expected 'label index:value index:value ...', got '1 1:2 3'"),
        ("1 1:2:3", "line 2: expected 'label"),
        ("1 2: 3", "line 2: expected 'label"),
        ("1 :3", "line 2: expected 'label"),
        ("1 -1:3", "line 2: expected 'label"),
        ("1:2", "line 2: expected 'label"),
        ("one 1:2", "line 2: expected 'label"),
        ("1,2 1:2", "line 2: expected 'label"),
        ("1 1:nan", "line 2: expected 'label"),
        ("1 1:inf", "line 2: expected 'label"),
        ("1 1:" + "x" * 99, r"line 2: expected .* got '1 1:x+\.\.\.'"),
        ("\x00\xff", "line 2: expected 'label"),
        ("1 0:3", r"line 2: expected indices in \[1, 2147483648\], got '1 0:3'"),
        ("1 2:3 1:4", "line 2: expected ascending indices, got"),
        ("1 2:3 2:4", "line 2: expected ascending indices, got"),
        ("1 1:1e39", "line 2: expected values within float32, got"),
        ("1e999 1:1", "line 2: expected a finite label, got"),
        ("1 2147483648:1", "2 rows of 2147483648 features do not fit a dense array of 8 GiB"),
        ("1 2147483649:1", "line 2: expected indices in"),
        pytest.param("1 " + "9" * 400 + ":1", "line 2: expected indices in", id="index of 400 digits"),
        # For ever, if there were two ways to read a number.
        pytest.param("1" * 1_000_000 + "x", "line 2: expected 'label", id="label of a million digits"),
        pytest.param("1 1:" + "1" * 1_000_000 + "x", "line 2: expected 'label", id="value of a million digits"),
        pytest.param("1" + " 1:1" * 100_000 + "x", "line 2: expected 'label", id="many values"),
    ],
)
def test_libsvm_malformed_line(tmp_path: Path, line: str, message: str) -> None:
    path = tmp_path / "bad.txt"
    path.write_text(f"1 1:1\n{line}\n")
    with pytest.raises(ValueError, match=f"bad.txt: {message}"):
        datasets.from_libsvm(path)


def test_libsvm_line_number_counts_blocks(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(_formats, "_BLOCK_BYTES", 10)
    path = tmp_path / "bad.txt"
    path.write_text("1 1:1\n\n" * 20 + "oops\n")
    with pytest.raises(ValueError, match=r"line 41: .* got 'oops'"):
        datasets.from_libsvm(path)


def test_no_more_is_unpacked_than_makes_sense(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(_formats, "_BLOCK_BYTES", 10)
    monkeypatch.setattr(_formats, "_MAX_LINE_BYTES", 1000)
    path = tmp_path / "long.txt.gz"
    path.write_bytes(gzip.compress(b"1 1:1\n" * 3 + b" " * 10_000_000))
    tracemalloc.start()
    with pytest.raises(ValueError, match=r"long.txt.gz: line 4: expected at most 1000 bytes"):
        datasets.from_libsvm(path)
    assert tracemalloc.get_traced_memory()[1] < 1_000_000
    path.write_bytes(gzip.compress(idx_bytes(np.zeros((2, 3, 4))) + bytes(10_000_000)))
    tracemalloc.reset_peak()
    with pytest.raises(ValueError, match="expected 24 bytes after the header, got more"):
        _formats.read_idx(path, (2, 3, 4))
    assert tracemalloc.get_traced_memory()[1] < 1_000_000
    tracemalloc.stop()


@pytest.mark.parametrize(
    ("kwargs", "error", "message"),
    [
        ({"path": 5}, TypeError, "path: expected a path, got int"),
        ({"n_features": 0}, ValueError, r"n_features: expected an integer in \[1, 2147483648\], got 0"),
        ({"n_features": 1}, ValueError, r"tiny.txt: line 1: expected indices in \[1, 1\], got"),
        ({"test_fraction": 0.0}, ValueError, r"test_fraction: expected a finite number in \(0.0, 1.0\], got 0.0"),
        (
            {"test_fraction": 0.01},
            ValueError,
            "test_fraction: expected at least one training and one test row out of 4",
        ),
        ({"test_fraction": 1.0}, ValueError, "test_fraction: expected at least one training and one test row out of 4"),
        ({"seed": -1}, ValueError, "seed: expected an integer in .*, got -1"),
        ({"scale": "no"}, ValueError, "scale: expected one of"),
    ],
)
def test_from_libsvm_errors(tmp_path: Path, kwargs: dict[str, Any], error: type[Exception], message: str) -> None:
    path = tmp_path / "tiny.txt"
    path.write_bytes(LIBSVM)
    with pytest.raises(error, match=message):
        datasets.from_libsvm(**{"path": path, **kwargs})


def test_libsvm_empty_and_absent(tmp_path: Path) -> None:
    path = tmp_path / "empty.txt"
    path.write_bytes(b"\n \n")
    with pytest.raises(ValueError, match=r"empty.txt: expected lines 'label index:value ...', got 0 rows"):
        datasets.from_libsvm(path)
    path.write_bytes(b"1\n2\n")
    with pytest.raises(ValueError, match=r"empty.txt: .* got 2 rows of 0 features"):
        datasets.from_libsvm(path)
    with pytest.raises(FileNotFoundError, match=r"absent.txt"):
        datasets.from_libsvm(tmp_path / "absent.txt")


# --- file formats, broken in every way ------------------------------------------------------------------------------


@pytest.mark.parametrize(("suffix", "pack"), [(".gz", gzip.compress), (".bz2", bz2.compress), (".xz", lzma.compress)])
def test_damaged_compression_names_the_file(tmp_path: Path, suffix: str, pack: Any) -> None:
    whole = pack(os.urandom(1000) + b"\n")
    flipped = bytearray(whole)
    flipped[len(whole) // 2] ^= 0xFF
    for content in (whole[:-9], whole[:5], bytes(flipped), b"plain text, not compressed at all"):
        path = tmp_path / f"broken{suffix}"
        path.write_bytes(content)
        with pytest.raises(ValueError, match=rf"broken\{suffix}: truncated or corrupt \{suffix} file"):
            _formats.read_idx(path, (1000,))


def test_disk_errors_pass_through(tmp_path: Path) -> None:
    (tmp_path / "folder.gz").mkdir()
    with pytest.raises(IsADirectoryError):
        _formats.read_idx(tmp_path / "folder.gz", (1,))


def test_disk_error_while_reading_passes_through(tmp_path: Path) -> None:
    (tmp_path / "fine.gz").write_bytes(gzip.compress(b"1"))
    with pytest.raises(OSError, match="disk is gone"), _formats._decompressed(tmp_path / "fine.gz"):
        raise OSError(5, "disk is gone")


def test_idx_content(tmp_path: Path) -> None:
    images = np.arange(24, dtype=np.uint8).reshape(2, 3, 4)
    (tmp_path / "a.gz").write_bytes(gzip.compress(idx_bytes(images)))
    read = _formats.read_idx(tmp_path / "a.gz", (2, 3, 4))
    assert np.array_equal(read, images)
    assert read.flags.writeable


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"", "expected an idx header of 16 bytes, got 0"),
        (idx_bytes(np.zeros((2, 3, 4)))[:11], "expected an idx header of 16 bytes, got 11"),
        (idx_bytes(np.zeros((2, 3, 4)), magic=2049), "expected idx magic 2051, got 2049"),
        (idx_bytes(np.zeros((2, 4, 3))), r"expected shape \(2, 3, 4\), got \(2, 4, 3\)"),
        (idx_bytes(np.zeros((2, 3, 4)))[:-1], "expected 24 bytes after the header, got 23"),
        (idx_bytes(np.zeros((2, 3, 4))) + b"x", "expected 24 bytes after the header, got more"),
    ],
)
def test_idx_errors(tmp_path: Path, content: bytes, message: str) -> None:
    (tmp_path / "a.gz").write_bytes(gzip.compress(content))
    with pytest.raises(ValueError, match=f"a.gz: {message}"):
        _formats.read_idx(tmp_path / "a.gz", (2, 3, 4))


@pytest.mark.parametrize("block", [1, 10, 1 << 22])
@pytest.mark.parametrize("ending", ["", "\n"])
def test_csv_content(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, block: int, ending: str) -> None:
    monkeypatch.setattr(_formats, "_BLOCK_BYTES", block)
    table = [[1, -2, 3], [32767, 0, -32768], [7, 8, 9]]
    text = "\n".join(",".join(map(str, row)) for row in table) + ending
    (tmp_path / "a.gz").write_bytes(gzip.compress(text.encode()))
    read = _formats.read_csv(tmp_path / "a.gz", 3)
    assert read.dtype == np.int16
    assert read.tolist() == table


@pytest.mark.parametrize(
    "line", ["1,2", "1,2,3,4", "", "1,,3", "1,2,x", "1,2.5,3", "1,2-3,4", "1,2,3\r", "1,--2,3", "9" * 30]
)
def test_csv_malformed_line(tmp_path: Path, line: str) -> None:
    (tmp_path / "a.gz").write_bytes(gzip.compress(f"1,2,3\n4,5,6\n{line}\n7,8,9\n".encode()))
    with pytest.raises(ValueError, match=r"a.gz: line 3: expected 3 integers separated by commas, got '"):
        _formats.read_csv(tmp_path / "a.gz", 3)


def test_csv_range_and_emptiness(tmp_path: Path) -> None:
    path = tmp_path / "a.csv"
    path.write_bytes(b"1,2\n3,32768\n")
    with pytest.raises(ValueError, match=r"a.csv: line 2: expected 16-bit integers, got '3,32768'"):
        _formats.read_csv(path, 2)
    path.write_bytes(b"")
    with pytest.raises(ValueError, match=r"a.csv: expected rows of 2 integers, got an empty file"):
        _formats.read_csv(path, 2)


# --- small stand-ins for the published sets -------------------------------------------------------------------------


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
        content = gzip.compress(idx_bytes(array))
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


@pytest.fixture
def small_covtype(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    return publish_covtype(tmp_path, monkeypatch, np.arange(40) % 7 + 1)


def publish_covtype(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, labels: np.ndarray[Any, Any]) -> Path:
    rng = np.random.default_rng(1)
    features = rng.integers(-173, 7173, (len(labels), 54))
    features[:, 0] = labels  # so that a label can be told from its row
    text = "".join(",".join(map(str, row)) + "\n" for row in np.column_stack([features, labels]))
    content = gzip.compress(text.encode())
    folder = tmp_path / "covtype_data"
    folder.mkdir()
    (folder / "covtype.data.gz").write_bytes(content)
    monkeypatch.setitem(_files.SOURCES, "covtype", Source("none", (published(content, "covtype.data.gz"),)))
    monkeypatch.setattr(_load, "_COVTYPE_ROWS", 40)
    monkeypatch.setattr(_load, "_COVTYPE_TRAIN", 30)
    return folder


def test_covtype_scales(small_covtype: Path) -> None:
    raw = datasets.load("covtype", data_dir=small_covtype, scale="raw")
    assert raw.train_x.dtype == np.float32
    assert (raw.train_x.shape, raw.test_x.shape) == ((30, 54), (10, 54))
    assert np.array_equal(raw.train_x[:, 0], raw.train_y + 1)
    assert np.array_equal(raw.test_x[:, 0], raw.test_y + 1)
    standard = datasets.load("covtype", data_dir=small_covtype)
    np.testing.assert_allclose(standard.train_x.mean(axis=0, dtype=float), 0, atol=1e-6)
    np.testing.assert_allclose(standard.train_x.std(axis=0, dtype=float), 1, atol=1e-6)
    unit = datasets.load("covtype", data_dir=small_covtype, scale="unit")
    assert (unit.train_x.min(axis=0) == 0).all()
    assert (unit.train_x.max(axis=0) == 1).all()
    number = datasets.load("covtype", data_dir=small_covtype, scale=0.5)
    assert number.scale == 0.5
    assert np.array_equal(number.train_x, raw.train_x)
    assert {d.scale for d in (raw, standard, unit)} == {1.0}


def test_covtype_cache_is_used(small_covtype: Path, cache: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    first = datasets.load("covtype", data_dir=small_covtype)
    sha256 = _files.SOURCES["covtype"].files[0].sha256
    assert files_in(cache) == [f"covtype-{sha256}.npz"]
    monkeypatch.setattr(_load, "read_csv", lambda *args: pytest.fail("parsed again"))
    again = datasets.load("covtype", data_dir=small_covtype)
    assert np.array_equal(first.train_x, again.train_x)
    assert np.array_equal(first.test_y, again.test_y)


@pytest.mark.parametrize(
    "damage", ["truncated", "flipped", "empty", "text", "dtype", "shape", "labels", "key", "folder"]
)
def test_covtype_damaged_cache_is_rebuilt(small_covtype: Path, cache: Path, damage: str) -> None:
    first = datasets.load("covtype", data_dir=small_covtype)
    path = next(cache.iterdir())
    good = path.read_bytes()
    with np.load(path) as archive:
        table = archive["table"]
    flipped = bytearray(good)
    flipped[len(good) // 2] ^= 1
    contents = {"truncated": good[: len(good) // 2], "flipped": bytes(flipped), "empty": b"", "text": b"hello"}
    if damage in contents:
        path.write_bytes(contents[damage])
    elif damage == "folder":
        path.unlink()
        path.mkdir()
    else:
        arrays = {
            "dtype": {"table": table.astype(np.int32)},
            "shape": {"table": table[:-1]},
            "labels": {"table": table * 0},
            "key": {"other": table},
        }
        np.savez(path, **arrays[damage])
    again = datasets.load("covtype", data_dir=small_covtype)
    assert np.array_equal(first.train_x, again.train_x)
    if damage == "folder":  # cannot be replaced by a file; loading goes on without a cache, and nothing is left behind
        assert files_in(cache) == []
    else:
        assert hashlib.sha256(_load._read_cache(path)).digest() == hashlib.sha256(table).digest()  # type: ignore[arg-type]


@pytest.mark.slow
def test_no_flipped_byte_changes_the_cached_table(small_covtype: Path, cache: Path) -> None:
    datasets.load("covtype", data_dir=small_covtype)
    path = next(cache.iterdir())
    good, table = path.read_bytes(), _load._read_cache(path)
    assert table is not None
    # Every byte of the headers before and after the table; one in seventeen of the table, which has one checksum.
    for position in [*range(400), *range(400, len(good) - 400, 17), *range(len(good) - 400, len(good))]:
        path.write_bytes(good[:position] + bytes([good[position] ^ 0xFF]) + good[position + 1 :])
        read = _load._read_cache(path)
        assert read is None or np.array_equal(read, table), position


def test_covtype_without_a_writable_cache(small_covtype: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "file").write_text("in the way")
    monkeypatch.setenv("BYZADMM_CACHE", str(tmp_path / "file" / "cache"))
    assert len(datasets.load("covtype", data_dir=small_covtype).train_x) == 30


def test_interrupted_cache_write_leaves_nothing(
    small_covtype: Path, cache: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def interrupt(stream: Any, **arrays: Any) -> None:
        stream.write(b"half")
        raise KeyboardInterrupt

    monkeypatch.setattr(np, "savez", interrupt)
    with pytest.raises(KeyboardInterrupt):
        datasets.load("covtype", data_dir=small_covtype)
    assert files_in(cache) == []


@pytest.mark.parametrize(
    ("labels", "message"),
    [
        (np.arange(40) % 8 + 1, r"expected labels in \[1, 7\], got 8"),
        (np.arange(40) % 7, r"expected labels in \[1, 7\], got 0"),
        (np.arange(39) % 7 + 1, r"expected shape \(40, 55\), got \(39, 55\)"),
    ],
)
def test_covtype_wrong_content(
    tmp_path: Path, cache: Path, monkeypatch: pytest.MonkeyPatch, labels: Any, message: str
) -> None:
    folder = publish_covtype(tmp_path, monkeypatch, labels)
    with pytest.raises(ValueError, match=f"covtype.data.gz: {message}"):
        datasets.load("covtype", data_dir=folder)
    assert not cache.exists()


# --- search and download --------------------------------------------------------------------------------------------


def test_search_path_order(tmp_path: Path, cache: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert datasets.search_path() == [cache]
    monkeypatch.setenv("BYZADMM_DATA", "/somewhere")
    assert datasets.search_path("mine") == [Path("mine"), Path("/somewhere"), cache]
    monkeypatch.delenv("BYZADMM_CACHE")
    monkeypatch.setenv("XDG_CACHE_HOME", "/xdg")
    assert datasets.search_path()[-1] == Path("/xdg/byzadmm")
    monkeypatch.delenv("XDG_CACHE_HOME")
    monkeypatch.setenv("HOME", str(tmp_path))
    assert datasets.search_path()[-1] == tmp_path / ".cache" / "byzadmm"


def test_available_lists_every_set() -> None:
    rows = datasets.available()
    assert [row.name for row in rows] == ["digits", "synthetic", "mnist", "covtype", "fashion_mnist"]
    assert [row.where for row in rows] == ["in the package", "generated", None, None, None]
    assert [row.bytes for row in rows] == [_files.DIGITS.bytes, 0, 11_594_722, 11_240_707, 30_878_645]
    assert all(row.licence for row in rows)


def test_table_of_files_is_well_formed() -> None:
    for source in _files.SOURCES.values():
        for file in source.files:
            assert len(bytes.fromhex(file.sha256)) == 32
            assert len(file.urls) >= 2
            assert len({url.split("/")[2] for url in file.urls}) == len(file.urls)


CONTENT = bytes(range(256)) * 400


class Mirror(http.server.BaseHTTPRequestHandler):
    def do_GET(self) -> None:
        if self.path == "/missing":
            self.send_error(404)
            return
        body = CONTENT[::-1] if self.path == "/wrong" else CONTENT
        self.send_response(200)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body[: len(body) // 2] if self.path == "/truncated" else body)

    def log_message(self, *args: Any) -> None:
        """Stay quiet."""


@pytest.fixture
def server() -> Iterator[str]:
    pytest.importorskip("pooch")
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), Mirror) as httpd:
        thread = threading.Thread(target=httpd.serve_forever, kwargs={"poll_interval": 0.01})
        thread.start()
        yield f"http://127.0.0.1:{httpd.server_address[1]}"
        httpd.shutdown()
        thread.join()


def closed_port() -> str:
    with socket.socket() as sock:
        sock.bind(("127.0.0.1", 0))
        return f"http://127.0.0.1:{sock.getsockname()[1]}/refused"


def publish_at(monkeypatch: pytest.MonkeyPatch, *urls: str) -> None:
    monkeypatch.setitem(_files.SOURCES, "covtype", Source("none", (published(CONTENT, urls=urls),)))


@pytest.mark.parametrize("first", ["/good", "/missing", "/wrong", "/truncated", "refused"])
def test_download_falls_back_to_the_next_mirror(
    server: str, cache: Path, monkeypatch: pytest.MonkeyPatch, first: str
) -> None:
    publish_at(monkeypatch, closed_port() if first == "refused" else server + first, server + "/good")
    (path,) = datasets.fetch("covtype")
    assert path == cache / "covtype" / "blob.bin"
    assert path.read_bytes() == CONTENT
    assert files_in(cache) == ["blob.bin"]


def test_download_happens_once(server: str, monkeypatch: pytest.MonkeyPatch) -> None:
    publish_at(monkeypatch, server + "/good")
    (path,) = datasets.fetch("covtype")
    publish_at(monkeypatch, closed_port())
    assert datasets.fetch("covtype") == [path]


@pytest.mark.parametrize("tail", ["/missing", "/wrong", "/truncated"])
def test_failed_download_writes_nothing_and_says_what_to_do(
    server: str, cache: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, tail: str
) -> None:
    refused = closed_port()
    publish_at(monkeypatch, refused, server + tail)
    with pytest.raises(FileNotFoundError) as caught:
        datasets.load("covtype", data_dir=tmp_path / "mine")
    message = str(caught.value)
    for part in (
        "covtype: data files not found",
        refused,
        server + tail,
        f"blob.bin  {len(CONTENT)} bytes  sha256 {hashlib.sha256(CONTENT).hexdigest()}",
        str(tmp_path / "mine"),
        str(cache),
    ):
        assert part in message
    assert files_in(cache) == []


def test_download_shows_progress_on_a_terminal(
    server: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    pytest.importorskip("tqdm")
    publish_at(monkeypatch, server + "/good")
    monkeypatch.setattr("sys.stderr.isatty", lambda: True)
    datasets.fetch("covtype")
    assert "100%" in capsys.readouterr().err


def test_download_without_pooch(cache: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(name: str) -> Any:
        raise ImportError(name)

    monkeypatch.setattr(importlib, "import_module", refuse)
    with pytest.raises(FileNotFoundError, match=r"pip install 'byzadmm\[data\]'"):
        datasets.load("mnist")
    assert not cache.exists()


def test_download_to_an_unwritable_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("pooch")
    (tmp_path / "file").write_text("in the way")
    monkeypatch.setenv("BYZADMM_CACHE", str(tmp_path / "file"))
    with pytest.raises(FileNotFoundError, match=r"the cache cannot be written .* BYZADMM_CACHE chooses another folder"):
        datasets.fetch("mnist")


def test_fetch_names() -> None:
    assert datasets.fetch("digits") == datasets.fetch("synthetic") == []
    with pytest.raises(ValueError, match="name: expected one of"):
        datasets.fetch("nothing")


# --- the real files -------------------------------------------------------------------------------------------------


@pytest.mark.slow
@pytest.mark.data
@pytest.mark.slow
def test_real_mnist(data_dir: Path) -> None:
    data = datasets.load("mnist", data_dir=data_dir)
    assert data.train_x.dtype == np.uint8
    assert (data.train_x.shape, data.test_x.shape) == ((60000, 784), (10000, 784))
    assert np.bincount(data.train_y).tolist() == [5923, 6742, 5958, 6131, 5842, 5421, 5918, 6265, 5851, 5949]
    assert np.bincount(data.test_y).tolist() == [980, 1135, 1032, 1010, 982, 892, 958, 1028, 974, 1009]
    assert round(float(data.train_x.mean()) * data.scale, 4) == 0.1307
    assert round(float(data.train_x.std()) * data.scale, 4) == 0.3081


@pytest.mark.slow
@pytest.mark.data
@pytest.mark.slow
def test_real_covtype(data_dir: Path, cache: Path) -> None:
    raw = datasets.load("covtype", data_dir=data_dir, scale="raw")
    assert (raw.train_x.shape, raw.test_x.shape) == ((465264, 54), (115748, 54))
    counts = np.bincount(np.concatenate([raw.train_y, raw.test_y]))
    assert counts.tolist() == [211840, 283301, 35754, 2747, 9493, 17367, 20510]
    low, high = (f(np.stack([f(raw.train_x, 0), f(raw.test_x, 0)]), 0) for f in (np.min, np.max))
    assert low[:10].tolist() == [1859, 0, 0, 0, -173, 0, 0, 0, 0, 0]
    assert high[:10].tolist() == [3858, 360, 66, 1397, 601, 7117, 254, 254, 254, 7173]
    assert (raw.train_x[:, 10:14].sum(axis=1) == 1).all()
    # Shuffled: the class frequencies of the two halves agree, which the order of the file would not give.
    np.testing.assert_allclose(
        np.bincount(raw.train_y) / 465264, np.bincount(raw.test_y) / 115748, rtol=0.1, err_msg="not shuffled"
    )
    assert len(files_in(cache)) == 1
    standard = datasets.load("covtype", data_dir=data_dir)
    np.testing.assert_allclose(standard.train_x.mean(axis=0, dtype=float), 0, atol=1e-5)
    np.testing.assert_allclose(standard.train_x.std(axis=0, dtype=float), 1, atol=1e-4)
    assert np.array_equal(standard.train_y, raw.train_y)


@pytest.mark.slow
@pytest.mark.data
@pytest.mark.slow
def test_real_libsvm(data_dir: Path) -> None:
    data = datasets.from_libsvm(data_dir / "covtype" / "covtype.libsvm.binary.scale.bz2")
    assert (data.n_features, data.n_classes, len(data.train_x), len(data.test_x)) == (54, 2, 464810, 116202)
    assert np.bincount(np.concatenate([data.train_y, data.test_y])).tolist() == [297711, 283301]
    assert sum(np.count_nonzero(x) for x in (data.train_x, data.test_x)) == 6_940_438
    assert (data.train_x.min(), data.train_x.max()) == (0.0, 1.0)
