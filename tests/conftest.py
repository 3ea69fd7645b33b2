"""Fixtures that more than one test file asks for."""

from __future__ import annotations

import importlib.util
import os
from pathlib import Path
from types import ModuleType

import pytest

from byzadmm import datasets

ROOT = Path(__file__).resolve().parents[1]
REAL_DATA = os.environ.get("BYZADMM_DATA")  # read now: some tests run without the variable


@pytest.fixture(params=["float32", "float64"])
def dtype(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture(params=[1, 2, 3, 7], ids=lambda count: f"threads{count}")
def threads(request: pytest.FixtureRequest) -> int:
    return int(request.param)


@pytest.fixture(scope="session")
def root() -> Path:
    """The project's folder."""
    return ROOT


@pytest.fixture(scope="session")
def data_dir() -> Path:
    candidates = [Path(p) for p in (REAL_DATA, ROOT.parent / "shared" / "data") if p]
    for folder in candidates:
        if (folder / "mnist").is_dir() and (folder / "covtype").is_dir():
            return folder
    pytest.skip("no real data: set BYZADMM_DATA to a folder that holds mnist/ and covtype/")


def _loaded(name: str, data_dir: Path, cache: Path) -> datasets.Dataset:
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("BYZADMM_CACHE", str(cache))  # not the user's
        return datasets.load(name, data_dir=data_dir)


@pytest.fixture(scope="session")
def mnist(data_dir: Path, tmp_path_factory: pytest.TempPathFactory) -> datasets.Dataset:
    """MNIST, read once per session."""
    return _loaded("mnist", data_dir, tmp_path_factory.mktemp("cache"))


@pytest.fixture(scope="session")
def covtype(data_dir: Path, tmp_path_factory: pytest.TempPathFactory) -> datasets.Dataset:
    """COVERTYPE, read once per session."""
    return _loaded("covtype", data_dir, tmp_path_factory.mktemp("cache"))


@pytest.fixture(scope="session")
def torch() -> ModuleType:
    """PyTorch where it is installed; the DLPack protocol itself is tested without it."""
    if importlib.util.find_spec("torch") is None:
        pytest.skip("torch is not installed")
    return importlib.import_module("torch")
