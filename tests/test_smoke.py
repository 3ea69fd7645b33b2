"""If only one file of tests can be run, this one: it says whether the installation works at all."""

from __future__ import annotations

import ast
import importlib
import os
import pkgutil
import re
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import byzadmm
from byzadmm import _core, aggregate, kernels, reference

PUBLIC = [
    "byzadmm",
    *sorted(
        module.name
        for module in pkgutil.walk_packages(byzadmm.__path__, "byzadmm.")
        if not any(part.startswith("_") for part in module.name.split("."))
    ),
]


@pytest.mark.parametrize("name", PUBLIC)
def test_every_name_in_all_can_be_imported(name: str) -> None:
    for extra, package in (("torch", "torch"), ("flower", "flwr")):
        if name.startswith(f"byzadmm.{extra}"):
            pytest.importorskip(package)
    module = importlib.import_module(name)
    assert module.__doc__
    missing = [public for public in getattr(module, "__all__", []) if not hasattr(module, public)]
    assert missing == []
    assert len(set(getattr(module, "__all__", []))) == len(getattr(module, "__all__", []))


def test_the_rules_are_also_names_of_the_package() -> None:
    for name in aggregate.__all__:
        assert getattr(byzadmm, name) is getattr(aggregate, name)


def test_versions_agree(root: Path) -> None:
    declared = re.search(r'^version = "(.+)"$', (root / "pyproject.toml").read_text("utf-8"), re.MULTILINE)
    heading = re.search(r"^## \[?(\d+\.\d+\.\d+)", (root / "CHANGELOG.md").read_text("utf-8"), re.MULTILINE)
    assert declared is not None
    assert heading is not None, "CHANGELOG.md has no heading with a version"
    assert byzadmm.__version__ == _core.__version__ == declared[1] == heading[1]


def test_headers_and_cmake_package_are_installed() -> None:
    include = Path(byzadmm.get_include())
    assert (include / "byzadmm" / "median.hpp").is_file()
    for name in ("byzadmmConfig.cmake", "byzadmmConfigVersion.cmake"):
        assert Path(byzadmm.get_cmake_dir(), name).is_file()
    assert Path(byzadmm.__file__).with_name("py.typed").is_file()


def _loaded_after(code: str) -> set[str]:
    run = subprocess.run(
        [sys.executable, "-c", f"import sys\n{code}\nprint('modules:', *sys.modules)"],
        env={name: value for name, value in os.environ.items() if not name.startswith("COVERAGE")},  # loads much itself
        capture_output=True,
        text=True,
        check=True,
    )
    return set(run.stdout.partition("modules:")[2].split())


def test_import_loads_the_native_module_only() -> None:
    loaded = _loaded_after("import byzadmm")
    own = {name for name in loaded if name.startswith("byzadmm.")}
    assert "byzadmm._core" in own
    assert {name for name in own if not name.startswith("byzadmm._kernels_")} == {"byzadmm._core", "byzadmm._isa"}
    slow = {
        "numpy",
        "argparse",
        "concurrent",
        "dataclasses",
        "inspect",
        "json",
        "multiprocessing",
        "pathlib",
        "zipfile",
    }
    assert loaded.isdisjoint(slow)


def test_a_rule_loads_rules_and_everything_loads_no_extra() -> None:
    loaded = _loaded_after("import byzadmm; byzadmm.median")
    assert "byzadmm.aggregate" in loaded
    assert loaded.isdisjoint({"byzadmm.datasets", "byzadmm.losses", "byzadmm.study", "byzadmm.training"})
    everything = _loaded_after("import byzadmm; [getattr(byzadmm, name) for name in byzadmm.__all__]")
    assert {"numpy", "byzadmm.study"} <= everything
    assert everything.isdisjoint({"scipy", "matplotlib", "torch", "rich", "pooch", "tqdm", "mpi4py", "flwr", "pytest"})


def test_help_of_the_command_loads_nothing_that_runs() -> None:
    code = "import contextlib, byzadmm.cli\nwith contextlib.suppress(SystemExit): byzadmm.cli.main(['--help'])"
    loaded = _loaded_after(code)
    assert loaded.isdisjoint({"numpy", "byzadmm.catalogue", "byzadmm.engines", "byzadmm.study", "byzadmm.training"})


# Each is also imported under `if TYPE_CHECKING:`, for tools that read the code and do not run it.
def test_names_of_the_package_are_imported_when_they_are_asked_for() -> None:
    tree = ast.parse(Path(byzadmm.__file__).read_text("utf-8"))
    (block,) = (node for node in tree.body if isinstance(node, ast.If) and ast.unparse(node.test) == "TYPE_CHECKING")
    read = [alias.asname for node in block.body if isinstance(node, ast.ImportFrom) for alias in node.names]
    own = {"__version__", "get_cmake_dir", "get_include"}
    assert {name for name in read if name} == set(byzadmm.__all__) - set(aggregate.__all__) - own
    assert set(byzadmm.__all__) <= set(dir(byzadmm))
    with pytest.raises(AttributeError, match="module 'byzadmm' has no attribute 'medain'"):
        _ = byzadmm.medain  # type: ignore[attr-defined]
    # The module of a function must not take its place, whatever was imported first.
    importlib.import_module("byzadmm.comparison")
    assert callable(byzadmm.compare)


@pytest.mark.slow
def test_every_part_can_be_imported_first() -> None:
    code = """
import importlib, sys, types
import byzadmm
names = [f"byzadmm.{name}" for name in sys.argv[1].split()]
for name in names:
    for loaded in [key for key in sys.modules if key.startswith("byzadmm.") and not key.startswith("byzadmm._")]:
        del sys.modules[loaded]
    importlib.import_module(name)
"""
    parts = [name.removeprefix("byzadmm.") for name in PUBLIC[1:] if name.count(".") == 1]
    parts = [name for name in parts if name not in ("torch", "flower")]
    subprocess.run([sys.executable, "-c", code, " ".join(parts)], check=True)


def test_the_stub_names_everything_the_native_module_has(root: Path) -> None:
    stub = (root / "python" / "byzadmm" / "_core.pyi").read_text("utf-8")
    promised = set(re.findall(r"^(?:def |class )?(\w+)[(:]", stub, re.MULTILINE)) - {"_Array", "_Rows"}
    own = {name for name in vars(_core) if not name.startswith("__")} | {"__version__"}
    assert own <= promised
    assert all(hasattr(_core, name) for name in promised)


def test_one_call_of_each_rule() -> None:
    X = np.array([[1.0, 0.0], [2.0, 1.0], [3.0, -1.0], [1e9, 1e9]])
    np.testing.assert_allclose(aggregate.mean(X[:3]), [2.0, 0.0])
    np.testing.assert_allclose(aggregate.median(X), [2.5, 0.5])
    np.testing.assert_allclose(aggregate.trimmed_mean(X, f=1), [2.5, 0.5])
    assert np.abs(aggregate.geometric_median(X)).max() < 10.0


def test_one_call_of_each_kernel() -> None:
    W, X, y = np.zeros((2, 3, 5)), np.arange(24.0).reshape(6, 4), np.array([0, 1, 2, 0, 1, 2])
    G = kernels.softmax_gradient(W, X, y)
    np.testing.assert_allclose(G, reference.softmax_gradient(W, X, y), atol=1e-14)
    np.testing.assert_allclose(kernels.softmax_loss(W, X, y), np.log(3.0))
    assert kernels.softmax_predict(W[0], X).tolist() == [0] * 6
    assert kernels.softmax_accuracy(W[0], X, y) == pytest.approx(1 / 3)
    x, x0 = np.ones((2, 4)), np.zeros(4)
    np.testing.assert_allclose(kernels.admm_worker_step(x, x, x, x, alpha=0.5), 0.0)
    np.testing.assert_allclose(kernels.admm_dual_step(x, x, x0, beta=1.0, lam=1.0), 1.0)
    np.testing.assert_allclose(kernels.admm_master_step(x0, x, x, alpha=0.5, rho=0.1), 1.0)
    np.testing.assert_allclose(kernels.rsa_worker_step(x, x, x0, alpha=0.5, lam=1.0), 0.0)
    np.testing.assert_allclose(kernels.rsa_master_step(x0, x, alpha=0.5, lam=1.0, rho=0.1), 1.0)
    assert kernels.philox_normal((2, 3), seed=1).shape == (2, 3)
    assert kernels.philox_integers(5, high=3, seed=1).max() < 3
