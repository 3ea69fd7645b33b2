"""LIBSVM files: what is read, how it is split, and what is refused."""

from __future__ import annotations

import bz2
import gzip
import lzma
import tracemalloc
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from byzadmm import datasets
from byzadmm.datasets import _formats
from support.data_files import idx_bytes

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
    assert data.classes == ("-1", "4", "7")
    assert y.dtype == np.int64
    assert x[:, 0].tolist() != sorted(x[:, 0].tolist())
    other = datasets.from_libsvm(str(path), seed=1, scale="unit")
    assert other.train_x.max() == 1.0


def test_from_libsvm_real_targets(tmp_path: Path) -> None:
    path = tmp_path / "real.txt"
    path.write_text("".join(f"{i / 2} 1:{i}\n" for i in range(1, 31)))
    data = datasets.from_libsvm(path)
    assert (data.task, data.n_classes, data.classes, data.train_y.dtype) == ("regression", 0, None, np.float64)
    assert np.array_equal(data.train_y, data.train_x[:, 0] / 2)
    assert np.array_equal(data.test_y, data.test_x[:, 0] / 2)
    with pytest.raises(ValueError, match=r"real.txt: expected whole numbers as labels, got 0.5 at row 0; pass task="):
        datasets.from_libsvm(path, task="classification")
    path.write_text("".join(f"{7 * i} 1:{i}\n" for i in range(1, 1102)))
    with pytest.raises(ValueError, match=r"real.txt: expected at most 1000 different labels, got 1101; pass task="):
        datasets.from_libsvm(path)
    data = datasets.from_libsvm(path, task="regression")
    assert np.array_equal(data.train_y, 7.0 * data.train_x[:, 0])
    data = datasets.from_libsvm(path, task="classification")
    assert (data.n_classes, data.train_y.dtype) == (1101, np.int64)
    assert np.array_equal(data.train_y, data.train_x[:, 0] - 1)


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
        ({"task": "no"}, ValueError, "task: expected one of classification, regression; got 'no'"),
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
