"""Data stage: names, arrays or files in, a `Dataset` out."""

from __future__ import annotations

from ._dataset import Dataset, from_arrays
from ._files import Available, available, fetch, search_path
from ._load import from_libsvm, load

__all__ = ["Available", "Dataset", "available", "fetch", "from_arrays", "from_libsvm", "load", "search_path"]
