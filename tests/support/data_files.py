"""Small files in the formats of the published data sets."""

from __future__ import annotations

import gzip
import hashlib
from pathlib import Path
from typing import Any

import numpy as np

from byzadmm.datasets._files import File

IMAGE_FILES = (
    "train-images-idx3-ubyte.gz",
    "train-labels-idx1-ubyte.gz",
    "t10k-images-idx3-ubyte.gz",
    "t10k-labels-idx1-ubyte.gz",
)


def idx_bytes(array: np.ndarray[Any, Any], magic: int | None = None) -> bytes:
    words = [0x0800 + array.ndim if magic is None else magic, *array.shape]
    return np.array(words, dtype=">u4").tobytes() + array.astype(np.uint8).tobytes()


def gzipped_idx(array: np.ndarray[Any, Any]) -> bytes:
    return gzip.compress(idx_bytes(array))


def published(content: bytes, name: str = "blob.bin", urls: tuple[str, ...] = ()) -> File:
    """The entry of the table of files under which ``content`` is the right one."""
    return File(name, len(content), hashlib.sha256(content).hexdigest(), urls)


def files_in(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.rglob("*") if path.is_file())
