"""If only one file of tests can be run, this one: it says whether the installation works at all."""

from __future__ import annotations

import importlib
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


def test_import_loads_numpy_and_the_native_module_only() -> None:
    code = "import sys, byzadmm; print(*sorted({name.partition('.')[0] for name in sys.modules}))"
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    loaded = set(run.stdout.split())
    assert {"numpy", "byzadmm"} <= loaded
    assert loaded.isdisjoint({"scipy", "matplotlib", "torch", "rich", "pooch", "tqdm", "mpi4py", "flwr", "pytest"})


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
