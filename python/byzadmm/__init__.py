"""byzadmm: Byzantine-robust distributed learning with compiled kernels.

``simulate`` trains under attack; ``byzadmm.aggregate`` has the robust rules (also importable from here),
``byzadmm.kernels`` the kernels under both.
"""

from __future__ import annotations

import sys
from importlib import import_module
from typing import TYPE_CHECKING

try:
    import byzadmm._isa  # noqa: F401  before _core: it refuses sub-interpreters, in which pybind11 would hang
    from byzadmm import _core
except ImportError as error:  # pragma: no cover - only without a build, or in the processes of test_isa.py
    if "BYZADMM_ISA" in str(error):
        # The command cannot catch it: the package is imported before anything of it runs.
        from pathlib import Path

        words = zip(sys.orig_argv, sys.orig_argv[1:], strict=False)
        if Path(sys.argv[0]).stem == "byzadmm" or ("-m", "byzadmm") in words:
            print(f"byzadmm: error: {error}", file=sys.stderr)
            sys.exit(2)
        raise
    if "interpreter" in str(error):
        raise
    raise ImportError(f"byzadmm's native module is not built; run `pip install .` in the project ({error})") from error

__version__ = _core.__version__

if TYPE_CHECKING:  # the names below, for what reads the code and does not run it
    from byzadmm import aggregate as aggregate
    from byzadmm import aggregators as aggregators
    from byzadmm import asynchronous as asynchronous
    from byzadmm import attacks as attacks
    from byzadmm import datasets as datasets
    from byzadmm import decentralized as decentralized
    from byzadmm import delays as delays
    from byzadmm import filters as filters
    from byzadmm import graphs as graphs
    from byzadmm import kernels as kernels
    from byzadmm import losses as losses
    from byzadmm import partition as partition
    from byzadmm import redundancy as redundancy
    from byzadmm import steps as steps
    from byzadmm import theory as theory
    from byzadmm.aggregate import *  # noqa: F403 - the rules are names of the package too
    from byzadmm.algorithms import ADMM as ADMM
    from byzadmm.algorithms import RSA as RSA
    from byzadmm.algorithms import SGD as SGD
    from byzadmm.algorithms import SVRG as SVRG
    from byzadmm.algorithms import Newton as Newton
    from byzadmm.algorithms import OneRound as OneRound
    from byzadmm.algorithms import PerturbedGD as PerturbedGD
    from byzadmm.comparison import compare as compare
    from byzadmm.layers import flatten as flatten
    from byzadmm.layers import unflatten as unflatten
    from byzadmm.results import Result as Result
    from byzadmm.simulation import simulate as simulate
    from byzadmm.simulation import simulate_many as simulate_many
    from byzadmm.study import Study as Study
else:
    # Imported when they are first asked for, so that a program waits for what it uses, and the command for no more.
    _MODULES = ["aggregate", "aggregators", "asynchronous", "attacks", "datasets", "decentralized", "delays", "filters"]
    _MODULES += ["graphs", "kernels", "losses", "partition", "redundancy", "steps", "theory"]
    _INNER = ["algorithms", "catalogue", "comparison", "layers", "results", "simulation", "study", "training"]
    _HOMES = dict.fromkeys(["ADMM", "RSA", "SGD", "SVRG", "Newton", "OneRound", "PerturbedGD"], "algorithms")
    _HOMES |= {"Result": "results", "Study": "study", "compare": "comparison"}
    _HOMES |= dict.fromkeys(["flatten", "unflatten"], "layers")
    _HOMES |= dict.fromkeys(["simulate", "simulate_many"], "simulation")

    def __getattr__(name: str) -> object:
        if name in _MODULES or name in _INNER:
            return import_module(f"byzadmm.{name}")
        if name == "__all__":
            return sorted([*_MODULES, *_HOMES, "__version__", "get_cmake_dir", "get_include", *_rules()])
        home = _HOMES.get(name) or (not name.startswith("_") and name in _rules() and "aggregate")
        if not home:
            raise AttributeError(f"module 'byzadmm' has no attribute {name!r}")
        value = globals()[name] = getattr(import_module(f"byzadmm.{home}"), name)
        return value

    def __dir__() -> list[str]:
        return sorted({*globals(), *__getattr__("__all__")})

    def _rules() -> list[str]:
        return import_module("byzadmm.aggregate").__all__


def get_include() -> str:
    """The folder with the C++ headers, for ``-I``."""
    return _installed("include")


def get_cmake_dir() -> str:
    """The folder with the CMake package, for ``-Dbyzadmm_DIR=``."""
    return _installed("cmake")


def _installed(name: str) -> str:
    from pathlib import Path

    # Two folders in an editable install: the sources, and what was built from them.
    folders = [Path(folder, name) for folder in __path__]  # noqa: F405
    return str(next((folder for folder in folders if folder.is_dir()), folders[0]))
