"""The documents say what the package does: examples run, and every public name is listed."""

from __future__ import annotations

import doctest
import importlib
import pkgutil
import re
import subprocess
import sys
from collections.abc import Callable, Iterable
from importlib import resources
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest

import byzadmm
from byzadmm.figures.settings import PAPER, VARIANTS

ROOT = Path(__file__).resolve().parents[2]
BLOCKS = {
    f"{page.name}-{number}": block
    for page in [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))]
    for number, block in enumerate(
        re.findall(r"^```python\n(.*?)^```$", page.read_text("utf-8"), re.MULTILINE | re.DOTALL)
    )
}
MODULES = [
    "byzadmm",
    *sorted(
        module.name
        for module in pkgutil.walk_packages(byzadmm.__path__, "byzadmm.")
        if not re.search(r"\._c(pu|ore_\w+)$", module.name) and not module.name.endswith("__main__")
    ),
]
PUBLIC = [name for name in MODULES if not any(part.startswith("_") for part in name.split("."))]


def params(names: Iterable[str], needs: Callable[[str, str], bool]) -> list[Any]:
    """Parameters of a test, marked where it needs PyTorch or Flower and skipped where that is missing."""
    packages = {"torch": "torch", "flower": "flwr"}
    marks = {
        extra: [getattr(pytest.mark, extra), pytest.mark.skipif(find_spec(package) is None, reason=f"needs {package}")]
        for extra, package in packages.items()
    }
    return [
        pytest.param(name, marks=[m for extra in marks if needs(name, extra) for m in marks[extra]]) for name in names
    ]


def of_extra(module: str, extra: str) -> bool:
    return module.startswith(f"byzadmm.{extra}")


def test_readme_has_an_example() -> None:
    assert "README.md-0" in BLOCKS, "README.md has no block of Python"


@pytest.mark.parametrize("name", params(BLOCKS, lambda name, extra: extra in BLOCKS[name]))
def test_blocks_run_as_printed(name: str, tmp_path: Path) -> None:
    command = [sys.executable, "-W", "error", "-c", BLOCKS[name]]
    run = subprocess.run(command, capture_output=True, text=True, cwd=tmp_path, check=False)
    assert run.returncode == 0, run.stderr


@pytest.mark.parametrize("name", params(MODULES, of_extra))
def test_docstring_examples_run(name: str) -> None:
    module = importlib.import_module(name)
    assert doctest.testmod(module).failed == 0


@pytest.mark.parametrize("name", ["byzadmm.aggregate", "byzadmm.kernels"])
def test_public_functions_have_an_example(name: str) -> None:
    module = importlib.import_module(name)
    functions = [public for public in module.__all__ if public[0].islower()]
    assert [public for public in functions if ">>> " not in str(getattr(module, public).__doc__)] == []


@pytest.mark.parametrize("name", params(PUBLIC, of_extra))
def test_every_public_name_is_in_the_list_of_names(name: str) -> None:
    listed = (ROOT / "docs" / "api.md").read_text("utf-8")
    module = importlib.import_module(name)
    missing = [public for public in getattr(module, "__all__", []) if f"`{public}`" not in listed]
    assert missing == [], f"{name}: not in docs/api.md"


def test_the_page_of_the_reproduction_has_the_words_of_the_package() -> None:
    page = (ROOT / "docs" / "reproduction.md").read_text("utf-8")
    words = resources.files("byzadmm.figures").joinpath("page.md").read_text("utf-8")
    for line in words.splitlines():
        parts = [part for part in re.split(r"\{\{.+?\}\}", line) if part.strip()]
        assert all(part in page for part in parts), line
    assert "{{" not in page
    assert (ROOT / "docs" / "reproduction.png").exists()
    assert set(re.findall(r"^### (\S+): ", page, re.MULTILINE)) == {*PAPER, *VARIANTS}


def test_the_gallery_has_every_picture_and_every_example() -> None:
    gallery = (ROOT / "docs" / "gallery.md").read_text("utf-8")
    shown = set(re.findall(r"^!\[.+?\]\((.+?)\)$", gallery, re.MULTILINE))
    assert shown == {path.name for kind in ("png", "svg") for path in (ROOT / "docs").glob(f"*.{kind}")}
    listed = set(re.findall(r"^\| `(.+?)` \|", gallery, re.MULTILINE))
    files = {path.name for path in (ROOT / "examples").iterdir() if path.is_file()}
    assert files <= listed, "docs/gallery.md: a script of examples/ is missing"


def test_files_that_pages_name_or_show_are_there() -> None:
    known = {
        path.name
        for folder in ("cpp", "docs", "examples", "python", "tests", "benchmarks")
        for path in ROOT.joinpath(folder).rglob("*.*")
    }
    yours = {"my_attack.py", "FILE.py"}
    for page in [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *ROOT.joinpath("docs").glob("*.md")]:
        named = re.findall(r"`(?:[\w/]+/)?(\w+\.(?:cpp|hpp|py|sbatch|svg|toml))`", page.read_text("utf-8"))
        assert [name for name in named if name not in known | yours | {"my.toml", "pyproject.toml"}] == [], page.name
    assert (ROOT / "examples" / "mpi.sbatch").read_text("utf-8") in (ROOT / "docs" / "cluster.md").read_text("utf-8")


def test_the_pages_of_the_site_are_in_its_navigation() -> None:
    listed = set(re.findall(r"(\S+\.md)$", (ROOT / "mkdocs.yml").read_text("utf-8"), re.MULTILINE))
    assert listed == {path.relative_to(ROOT / "docs").as_posix() for path in (ROOT / "docs").rglob("*.md")}
