"""byzadmm: Byzantine-robust distributed learning with compiled kernels.

``simulate`` trains under attack; ``byzadmm.aggregate`` has the robust rules (also importable from here),
``byzadmm.kernels`` the kernels under both.
"""

from __future__ import annotations

from pathlib import Path

try:
    from byzadmm import _core
except ImportError as error:  # pragma: no cover - only without a build
    if "BYZADMM_ISA" in str(error):
        raise
    raise ImportError(f"byzadmm's native module is not built; run `pip install .` in the project ({error})") from error

from byzadmm import aggregate, attacks, datasets, kernels, losses, partition, steps, theory
from byzadmm.aggregate import Info, geometric_median, max_f, mean, median, trimmed_mean
from byzadmm.algorithms import ADMM, RSA, SGD
from byzadmm.results import Result
from byzadmm.simulation import simulate, simulate_many

__all__ = [
    "ADMM",
    "RSA",
    "SGD",
    "Info",
    "Result",
    "__version__",
    "aggregate",
    "attacks",
    "datasets",
    "geometric_median",
    "get_include",
    "kernels",
    "losses",
    "max_f",
    "mean",
    "median",
    "partition",
    "simulate",
    "simulate_many",
    "steps",
    "theory",
    "trimmed_mean",
]

__version__ = _core.__version__


def get_include() -> str:
    """The folder with the C++ headers, for ``-I``; the CMake package is in ``cmake`` beside it."""
    return str(Path(__file__).parent / "include")
