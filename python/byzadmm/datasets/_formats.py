"""Readers of the file formats: bytes in, checked arrays out, and an error that names the file otherwise."""

from __future__ import annotations

import bz2
import gzip
import lzma
import math
import re
import tarfile
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, BinaryIO, cast

import numpy as np
import numpy.typing as npt

__all__ = ["MAX_FEATURES", "read_csv", "read_idx", "read_libsvm", "read_tar"]

Array = npt.NDArray[Any]

_BLOCK_BYTES = 1 << 22
_UINT8_MAGIC = 0x0800  # idx: two zero bytes, the type code of uint8, then the number of dimensions
_MAX_DENSE_BYTES = 1 << 33
_MAX_LINE_BYTES = 1 << 26
_TAR_REST_BYTES = 1 << 20  # what an archive may hold beside the files that are read: headers, padding, a readme
#: Columns of the widest table that is read: one row of it is as large as a dense array may be.
MAX_FEATURES = _MAX_DENSE_BYTES // 4
_OPENERS: dict[str, Any] = {".gz": gzip.open, ".bz2": bz2.open, ".xz": lzma.open}
# One way only to match any text: a line that does not match is known to be wrong in time linear in its length.
_NUMBER = rb"[+-]?(?:\d+(?:\.\d*)?|\.\d+)(?:[eE][+-]?\d+)?"
_LIBSVM_LINE = re.compile(rb"\s*" + _NUMBER + rb"(?:\s+\d+:" + _NUMBER + rb")*\s*")


def read_idx(path: Path, shape: tuple[int, ...]) -> npt.NDArray[np.uint8]:
    """Read a gzipped idx file of uint8 that must hold exactly ``shape``."""
    count = math.prod(shape)
    with _decompressed(path) as stream:
        data = stream.read(4 * (1 + len(shape)) + count + 1)  # one byte too many is as wrong as a billion
    magic = _UINT8_MAGIC + len(shape)
    header = np.frombuffer(data[: 4 * (1 + len(shape))], dtype=np.uint8)
    if len(header) < 4 * (1 + len(shape)):
        raise ValueError(f"{path}: expected an idx header of {4 * (1 + len(shape))} bytes, got {len(header)}")
    words = [int(word) for word in header.view(">u4")]
    if words[0] != magic:
        raise ValueError(f"{path}: expected idx magic {magic}, got {words[0]}")
    if tuple(words[1:]) != shape:
        raise ValueError(f"{path}: expected shape {shape}, got {tuple(words[1:])}")
    body = np.frombuffer(data, dtype=np.uint8, offset=len(header))
    if body.size != count:
        found = "more" if body.size > count else body.size
        raise ValueError(f"{path}: expected {count} bytes after the header, got {found}")
    # A copy, because a view of the bytes object is read-only and keeps the header's odd alignment.
    pixels: npt.NDArray[np.uint8] = body.reshape(shape).copy()
    return pixels


def read_csv(path: Path, n_columns: int) -> npt.NDArray[np.int16]:
    """Read a headerless csv of small integers, every line with ``n_columns`` of them."""
    row = re.compile(rb"-?\d{1,5}(?:,-?\d{1,5}){%d}" % (n_columns - 1))
    tables = []
    for first, block in _line_blocks(path):
        lines = block.removesuffix(b"\n").split(b"\n")
        for number, line in enumerate(lines, start=first):
            if not row.fullmatch(line):
                raise ValueError(
                    f"{path}: line {number}: expected {n_columns} integers separated by commas, got {_shown(line)}"
                )
        table = np.fromstring(b",".join(lines), dtype=np.int64, sep=",").reshape(len(lines), n_columns)
        limits = np.iinfo(np.int16)
        too_large = ((table < limits.min) | (table > limits.max)).any(axis=1)
        if too_large.any():
            bad = int(np.argmax(too_large))
            raise ValueError(f"{path}: line {first + bad}: expected 16-bit integers, got {_shown(lines[bad])}")
        tables.append(table.astype(np.int16))
    if not tables:
        raise ValueError(f"{path}: expected rows of {n_columns} integers, got an empty file")
    return np.concatenate(tables)


def read_libsvm(path: Path, n_features: int | None) -> tuple[npt.NDArray[np.float32], npt.NDArray[np.float64]]:
    """Read a LIBSVM file into dense features and the labels as written."""
    labels, rows, columns, values = [], [], [], []
    n_rows, width = 0, n_features or 0
    for first, block in _line_blocks(path):
        lines = block.split(b"\n")
        if b"#" in block:
            lines = [line.partition(b"#")[0] for line in lines]
        numbered = [(number, line) for number, line in enumerate(lines, start=first) if line.strip()]
        for number, line in numbered:
            if not _LIBSVM_LINE.fullmatch(line):
                raise ValueError(
                    f"{path}: line {number}: expected 'label index:value index:value ...', got {_shown(line)}"
                )
        pairs = np.array([line.count(b":") for _, line in numbered], dtype=np.int64)
        numbers = np.fromstring(b" ".join(line for _, line in numbered).replace(b":", b" "), sep=" ")
        starts = np.cumsum(2 * pairs + 1) - (2 * pairs + 1)
        rest = np.delete(numbers, starts)
        row, index = np.repeat(np.arange(len(pairs)), pairs), rest[0::2]
        with np.errstate(over="ignore"):
            value = rest[1::2].astype(np.float32)
        top = n_features or MAX_FEATURES
        same_row = np.diff(row, prepend=-1) == 0
        faults = {
            f"indices in [1, {top}]": (index < 1) | (index > top),
            "ascending indices": same_row & (np.diff(index, prepend=0) <= 0),
            "values within float32": ~np.isfinite(value),
        }
        for expected, fault in faults.items():
            if fault.any():
                number, line = numbered[row[int(np.argmax(fault))]]
                raise ValueError(f"{path}: line {number}: expected {expected}, got {_shown(line)}")
        if not np.isfinite(numbers[starts]).all():
            number, line = numbered[int(np.argmin(np.isfinite(numbers[starts])))]
            raise ValueError(f"{path}: line {number}: expected a finite label, got {_shown(line)}")
        width = max(width, int(index.max(initial=0)))
        if 4 * (n_rows + len(pairs)) * width > _MAX_DENSE_BYTES:
            raise ValueError(
                f"{path}: {n_rows + len(pairs)} rows of {width} features do not fit a dense array of 8 GiB"
            )
        labels.append(numbers[starts])
        rows.append(row + n_rows)
        columns.append(index.astype(np.int64) - 1)
        values.append(value)
        n_rows += len(pairs)
    if not n_rows or not width:
        raise ValueError(f"{path}: expected lines 'label index:value ...', got {n_rows} rows of {width} features")
    dense = np.zeros((n_rows, width), dtype=np.float32)
    for row, column, value in zip(rows, columns, values, strict=True):
        dense[row, column] = value
    return dense, np.concatenate(labels)


def read_tar(path: Path, sizes: dict[str, int]) -> dict[str, bytes]:
    """Read the named files, each of exactly that size, from a compressed tar archive; nothing is written to disk."""
    with _decompressed(path) as stream:
        try:
            return _tar_contents(_Bounded(stream, sum(sizes.values()) + _TAR_REST_BYTES), sizes)
        except (tarfile.TarError, ValueError, ArithmeticError, LookupError, RecursionError) as error:
            # What tarfile raises depends on the field that is wrong.
            raise ValueError(f"{path}: wrong tar archive: {error}") from error


def _tar_contents(stream: _Bounded, sizes: dict[str, int]) -> dict[str, bytes]:
    found: dict[str, bytes] = {}
    with tarfile.open(fileobj=cast(BinaryIO, stream), mode="r|") as archive:
        for member in archive:
            if member.name not in sizes:
                continue
            plain, again = member.isreg() and not member.issparse(), member.name in found
            if not plain or again or member.size != sizes[member.name]:
                raise ValueError(
                    f"{member.name}: expected one file of {sizes[member.name]} bytes, got "
                    f"{'a file' if plain else 'another kind of entry'} of {member.size}{', once more' if again else ''}"
                )
            content = archive.extractfile(member)
            assert content is not None
            found[member.name] = content.read()
    while stream.read(_BLOCK_BYTES):  # to the checksum of the compressed stream
        pass
    missing = [name for name in sizes if name not in found]
    if missing:
        raise ValueError(f"expected the files {', '.join(missing)}, got none of that name")
    return found


class _Bounded:
    """A stream that refuses to give more than so many bytes, whatever it unpacks to."""

    def __init__(self, stream: BinaryIO, limit: int) -> None:
        self.stream, self.limit, self.left = stream, limit, limit

    def read(self, size: int) -> bytes:
        data = self.stream.read(size)
        self.left -= len(data)
        if self.left < 0:
            raise ValueError(f"expected at most {self.limit} bytes unpacked, got more")
        return data


@contextmanager
def _decompressed(path: Path) -> Iterator[BinaryIO]:
    """Open by suffix; a broken stream becomes a ValueError that names the file, at whichever read finds it."""
    with _OPENERS.get(path.suffix, open)(path, "rb") as stream:
        try:
            yield cast(BinaryIO, stream)
        except (EOFError, zlib.error, lzma.LZMAError) as error:
            raise ValueError(f"{path}: truncated or corrupt {path.suffix} file ({error})") from error
        except OSError as error:
            if error.errno is not None:  # the disk's own trouble, not the content's
                raise
            raise ValueError(f"{path}: truncated or corrupt {path.suffix} file ({error})") from error


def _line_blocks(path: Path) -> Iterator[tuple[int, bytes]]:
    """Yield blocks of whole lines with the number of their first line, so that a file never sits in memory at once."""
    first = 1
    with _decompressed(path) as stream:
        while block := stream.read(_BLOCK_BYTES):
            rest = stream.readline(_MAX_LINE_BYTES)
            if len(rest) == _MAX_LINE_BYTES:
                number = first + block.count(b"\n")
                raise ValueError(f"{path}: line {number}: expected at most {len(rest)} bytes")
            block += rest
            yield first, block
            first += block.count(b"\n")


def _shown(line: bytes) -> str:
    text = line.decode("ascii", "replace")
    return repr(text if len(text) <= 60 else text[:57] + "...")
