"""Arrays and a record of plain values in one file, written whole and read with suspicion: results, checkpoints."""

from __future__ import annotations

import json
import math
import os
import stat
import zipfile
from collections.abc import Callable
from typing import Any, BinaryIO

import numpy as np
from numpy.lib import format as npy

from byzadmm._internal.arrays import Array
from byzadmm._internal.atomic_files import replacing

__all__ = ["Found", "check_layout", "read_npz", "under", "write_npz"]

Found = tuple[tuple[int, ...], np.dtype[Any]]  # shape and dtype
Check = Callable[[dict[str, Any], dict[str, Found]], None]
Contents = tuple[dict[str, Array], dict[str, Any]]


def under(prefix: str, arrays: dict[str, Array]) -> dict[str, Array]:
    """The arrays whose names begin with ``prefix``, by the rest of their names."""
    return {name.removeprefix(prefix): values for name, values in arrays.items() if name.startswith(prefix)}


def check_layout(found: dict[str, Found], wanted: dict[str, Found]) -> None:
    """Raise a ValueError for the first array that a file has not as wanted, or has beside the wanted ones."""

    def shown(one: Found | None) -> str:
        return "nothing" if one is None else f"{one[1]} of shape {one[0]}"

    for name in sorted(found.keys() | wanted.keys()):
        if found.get(name) != wanted.get(name):
            raise ValueError(f"{name}: expected {shown(wanted.get(name))}, got {shown(found.get(name))}")


def write_npz(path: str | os.PathLike[str], arrays: dict[str, Array], about: dict[str, Any]) -> None:
    """Arrays and a JSON record in one file; a reader sees the old file or the new one, never a part."""
    whole = about | {"arrays": sorted(arrays)}
    named: dict[str, Any] = arrays | {"about": np.array(json.dumps(whole, default=_plain))}
    with replacing(path) as file:
        np.savez(file, **named)


def read_npz(path: str | os.PathLike[str], check: Check = lambda about, found: None) -> Contents:
    """What :func:`write_npz` wrote; a file that is not whole is a ValueError naming it.

    No array is larger than its entry in the file. ``check(about, found)`` sees the record, and shape and dtype of
    every array, before any of them is read; its errors get the file's name.
    """
    if not stat.S_ISREG(os.stat(path).st_mode):
        raise ValueError(f"{os.fspath(path)}: expected a regular file")
    with open(path, "rb") as file:
        try:
            archive, found = _directory(file)
            with archive.open("about.npy") as entry:
                about = json.loads(str(npy.read_array(entry, allow_pickle=False)))
            # A damaged directory of the archive can hide an entry.
            if not isinstance(about, dict) or about.pop("arrays") != sorted(found):
                raise ValueError("some arrays are missing")
        except Exception as error:  # zipfile alone raises half a dozen kinds for a damaged header
            raise _damaged(path, error) from error
        try:
            check(about, found)
        except (TypeError, ValueError) as error:
            raise ValueError(f"{os.fspath(path)}: {error}") from error
        try:
            return {name: _array(archive, name) for name in found}, about
        except Exception as error:
            raise _damaged(path, error) from error


def _directory(file: BinaryIO) -> tuple[zipfile.ZipFile, dict[str, Found]]:
    """The archive in ``file`` with shape and dtype of its arrays, whose sizes are those of its entries."""
    archive = zipfile.ZipFile(file)
    entries = archive.infolist()
    names = [entry.filename.removesuffix(".npy") for entry in entries]
    if len(set(names)) != len(names):
        raise ValueError("an array is there twice")
    size = file.seek(0, os.SEEK_END)
    if sum(entry.file_size for entry in entries) > size:  # entries that overlap, or are compressed
        raise ValueError(f"the arrays are larger than the {size} bytes of the file")
    found = {name: _header(archive, entry) for name, entry in zip(names, entries, strict=True)}
    shape, dtype = found.pop("about")
    if shape != () or dtype.kind != "U":
        raise ValueError(f"about: expected text, got {dtype} of shape {shape}")
    wrong = next((name for name, (_, dtype) in found.items() if dtype.kind not in "biuf"), None)
    if wrong is not None:
        raise ValueError(f"{wrong}: expected numbers, got {found[wrong][1]}")
    return archive, found


def _header(archive: zipfile.ZipFile, entry: zipfile.ZipInfo) -> Found:
    with archive.open(entry) as stream:
        version = npy.read_magic(stream)
        if version not in ((1, 0), (2, 0)):
            raise ValueError(f"{entry.filename}: expected format 1.0 or 2.0, got {version}")
        read = npy.read_array_header_1_0 if version == (1, 0) else npy.read_array_header_2_0
        shape, _, dtype = read(stream)
        if min(shape, default=0) < 0 or math.prod(shape) * dtype.itemsize != entry.file_size - stream.tell():
            raise ValueError(f"{entry.filename}: {dtype} of shape {shape} is not of that entry's size")
    return shape, dtype


def _array(archive: zipfile.ZipFile, name: str) -> Array:
    with archive.open(f"{name}.npy") as entry:
        array: Array = npy.read_array(entry, allow_pickle=False)
    return array


def _damaged(path: str | os.PathLike[str], error: Exception) -> ValueError:
    return ValueError(f"{os.fspath(path)}: not a whole file of byzadmm ({error})")


def _plain(value: Any) -> Any:
    if isinstance(value, np.generic):
        return value.item()
    if isinstance(value, np.ndarray):
        return value.tolist()
    return repr(value)
