"""File formats, broken in every way."""

from __future__ import annotations

import bz2
import gzip
import lzma
import os
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from byzadmm.datasets import _formats
from support.data_files import idx_bytes


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
