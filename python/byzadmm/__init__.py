"""byzadmm: Byzantine-robust distributed learning with compiled kernels.

``byzadmm.kernels`` has the kernels, ``byzadmm.aggregate`` the robust rules (also importable from here).
"""

from __future__ import annotations

from pathlib import Path

try:
    from byzadmm import _core
except ImportError as error:  # pragma: no cover - only without a build
    if "BYZADMM_ISA" in str(error):
        raise
    raise ImportError(f"byzadmm's native module is not built; run `pip install .` in the project ({error})") from error

from byzadmm import aggregate, kernels
from byzadmm.aggregate import Info, geometric_median, max_f, mean, median, trimmed_mean

__all__ = [
    "Info",
    "__version__",
    "aggregate",
    "geometric_median",
    "get_include",
    "kernels",
    "max_f",
    "mean",
    "median",
    "trimmed_mean",
]

__version__ = _core.__version__


def get_include() -> str:
    """The folder with the C++ headers, for ``-I``; the CMake package is in ``cmake`` beside it."""
    return str(Path(__file__).parent / "include")
