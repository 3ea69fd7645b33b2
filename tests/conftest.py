"""How the tests share the machine, and fixtures that more than one test file asks for."""

from __future__ import annotations

import importlib.util
import os
import sys
from collections.abc import Generator
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

ROOT = Path(__file__).resolve().parents[1]
REAL_DATA = os.environ.get("BYZADMM_DATA")  # read now: some tests run without the variable
PROCESSES = int(os.environ.get("PYTEST_XDIST_WORKER_COUNT", "1"))

# Set before the first import of NumPy or byzadmm. A waiting OpenMP thread sleeps instead of spinning on a core that
# another process could use, and the processes of pytest-xdist share the cores.
os.environ.setdefault("OMP_WAIT_POLICY", "passive")
if PROCESSES > 1:
    os.environ.setdefault("OMP_NUM_THREADS", str(max(1, (os.cpu_count() or 1) // PROCESSES)))


def pytest_xdist_auto_num_workers(config: pytest.Config) -> int | None:
    """Return 0, tests in this process, if files, tests or words are selected; None, one process per core, otherwise.

    A selection is over before other processes would have started, and its output and debugger stay usable.
    """
    option = config.option
    few = option.keyword or getattr(option, "lf", False) or option.trace or option.capture == "no"
    return 0 if few or not all(Path(name).is_dir() for name in config.args) else None


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Mark tests that ask for PyTorch. Among several processes, slow tests come first.

    So none is left over at the end while the other processes wait.
    """
    for item in items:
        if "torch" in getattr(item, "fixturenames", ()):
            item.add_marker("torch")
    if PROCESSES > 1:
        items.sort(key=lambda item: item.get_closest_marker("slow") is None)


@pytest.hookimpl(wrapper=True)
def pytest_runtest_protocol(item: pytest.Item) -> Generator[None, object, object]:
    """One MPI job at a time: each is several processes."""
    if PROCESSES == 1 or not item.path.stem.startswith("test_mpi") or sys.platform == "win32":
        return (yield)
    import fcntl

    with Path(__file__).open() as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        return (yield)


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


def _loaded(name: str, data_dir: Path, cache: Path) -> Any:
    from byzadmm import datasets

    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("BYZADMM_CACHE", str(cache))  # not the user's
        return datasets.load(name, data_dir=data_dir)


@pytest.fixture(scope="session")
def mnist(data_dir: Path, tmp_path_factory: pytest.TempPathFactory) -> Any:
    """MNIST, read once per session."""
    return _loaded("mnist", data_dir, tmp_path_factory.mktemp("cache"))


@pytest.fixture(scope="session")
def covtype(data_dir: Path, tmp_path_factory: pytest.TempPathFactory) -> Any:
    """COVERTYPE, read once per session."""
    return _loaded("covtype", data_dir, tmp_path_factory.mktemp("cache"))


@pytest.fixture(scope="session")
def torch() -> ModuleType:
    """PyTorch where it is installed; the DLPack protocol itself is tested without it."""
    if importlib.util.find_spec("torch") is None:
        pytest.skip("torch is not installed")
    return importlib.import_module("torch")
