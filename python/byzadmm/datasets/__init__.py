"""Data stage: names, arrays or files in, a `Dataset` out."""

from __future__ import annotations

from ._arrays import from_arrays
from ._dataset import Dataset
from ._files import Available, available, fetch, search_path
from ._load import from_libsvm, load
from ._torch import from_torch

__all__ = [
    "Available",
    "Dataset",
    "available",
    "fetch",
    "from_arrays",
    "from_libsvm",
    "from_torch",
    "load",
    "search_path",
]
