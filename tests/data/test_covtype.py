"""COVERTYPE: a small stand-in for its table, and the cache of the parsed one."""

from __future__ import annotations

import gzip
import hashlib
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from byzadmm import datasets
from byzadmm.datasets import _files, _load
from byzadmm.datasets._files import Source
from support.data_files import files_in, published


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
