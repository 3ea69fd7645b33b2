"""byzadmm: Byzantine-robust distributed learning with compiled kernels.

``simulate`` trains under attack; ``byzadmm.aggregate`` has the robust rules (also importable from here),
``byzadmm.kernels`` the kernels under both.
"""

from __future__ import annotations

import sys
from pathlib import Path

try:
    import byzadmm._isa  # noqa: F401  before _core: it refuses sub-interpreters, in which pybind11 would hang
    from byzadmm import _core
except ImportError as error:  # pragma: no cover - only without a build, or in the processes of test_isa.py
    if "BYZADMM_ISA" in str(error):
        # The command cannot catch it: the package is imported before anything of it runs.
        words = zip(sys.orig_argv, sys.orig_argv[1:], strict=False)
        if Path(sys.argv[0]).stem == "byzadmm" or ("-m", "byzadmm") in words:
            print(f"byzadmm: error: {error}", file=sys.stderr)
            sys.exit(2)
        raise
    if "interpreter" in str(error):
        raise
    raise ImportError(f"byzadmm's native module is not built; run `pip install .` in the project ({error})") from error

__version__ = _core.__version__

from byzadmm import (
    aggregate,
    aggregators,
    asynchronous,
    attacks,
    datasets,
    decentralized,
    delays,
    filters,
    graphs,
    kernels,
    losses,
    partition,
    redundancy,
    steps,
    theory,
)
from byzadmm.aggregate import *  # noqa: F403 - the rules are names of the package too
from byzadmm.algorithms import ADMM, RSA, SGD, SVRG, Newton, OneRound, PerturbedGD
from byzadmm.compare import compare
from byzadmm.layers import flatten, unflatten
from byzadmm.results import Result
from byzadmm.simulation import simulate, simulate_many
from byzadmm.study import Study

__all__ = [
    "ADMM",
    "RSA",
    "SGD",
    "SVRG",
    "Newton",
    "OneRound",
    "PerturbedGD",
    "Result",
    "Study",
    "__version__",
    "aggregate",
    "aggregators",
    "asynchronous",
    "attacks",
    "compare",
    "datasets",
    "decentralized",
    "delays",
    "filters",
    "flatten",
    "get_cmake_dir",
    "get_include",
    "graphs",
    "kernels",
    "losses",
    "partition",
    "redundancy",
    "simulate",
    "simulate_many",
    "steps",
    "theory",
    "unflatten",
]
__all__ += aggregate.__all__


def get_include() -> str:
    """The folder with the C++ headers, for ``-I``."""
    return _installed("include")


def get_cmake_dir() -> str:
    """The folder with the CMake package, for ``-Dbyzadmm_DIR=``."""
    return _installed("cmake")


def _installed(name: str) -> str:
    # Two folders in an editable install: the sources, and what was built from them.
    folders = [Path(folder, name) for folder in __path__]  # noqa: F405
    return str(next((folder for folder in folders if folder.is_dir()), folders[0]))
