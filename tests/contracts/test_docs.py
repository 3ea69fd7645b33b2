"""The documents say what the package does: examples run, and every public name is listed."""

from __future__ import annotations

import doctest
import importlib
import importlib.util
import pkgutil
import re
import subprocess
import sys
from pathlib import Path

import pytest

import byzadmm

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
if importlib.util.find_spec("torch") is None:
    MODULES = [name for name in MODULES if not name.startswith("byzadmm.torch")]
    BLOCKS = {name: block for name, block in BLOCKS.items() if "byzadmm.torch" not in block}
PUBLIC = [name for name in MODULES if not any(part.startswith("_") for part in name.split("."))]


def test_readme_has_an_example() -> None:
    assert "README.md-0" in BLOCKS, "README.md has no block of Python"


@pytest.mark.parametrize("name", BLOCKS)
def test_blocks_run_as_printed(name: str, tmp_path: Path) -> None:
    command = [sys.executable, "-W", "error", "-c", BLOCKS[name]]
    run = subprocess.run(command, capture_output=True, text=True, cwd=tmp_path, check=False)
    assert run.returncode == 0, run.stderr


@pytest.mark.parametrize("name", MODULES)
def test_docstring_examples_run(name: str) -> None:
    module = importlib.import_module(name)
    assert doctest.testmod(module).failed == 0


@pytest.mark.parametrize("name", ["byzadmm.aggregate", "byzadmm.kernels"])
def test_public_functions_have_an_example(name: str) -> None:
    module = importlib.import_module(name)
    functions = [public for public in module.__all__ if public[0].islower()]
    assert [public for public in functions if ">>> " not in str(getattr(module, public).__doc__)] == []


@pytest.mark.parametrize("name", PUBLIC)
def test_every_public_name_is_in_the_list_of_names(name: str) -> None:
    listed = (ROOT / "docs" / "api.md").read_text("utf-8")
    module = importlib.import_module(name)
    missing = [public for public in getattr(module, "__all__", []) if f"`{public}`" not in listed]
    assert missing == [], f"{name}: not in docs/api.md"
