"""Every example runs in its short form, in an empty folder, and prints what it promises."""

from __future__ import annotations

import re
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).resolve().parents[1]
EXAMPLES = sorted(path.stem for path in (ROOT / "examples").glob("*.py"))

#: Example -> the row of its table, the least and the largest number in it, and the files it writes.
EXPECTED: dict[str, list[tuple[str, float, float]]] = {
    "choosing": [("Ideal SGD", 0.9, 1.0), ("nnm+trimmed-mean", 0.9, 1.0)],
    "decentralized": [("Ideal SGD", 0.9, 1.0), ("DADMM", 0.85, 1.0), ("IOS", 0.9, 1.0)],
    "federated": [("ideal", 0.92, 1.0), ("geometric median", 0.9, 1.0)],
    "flower_server": [("fedavg", 0.0, 0.2), ("trimmed-mean", 0.85, 1.0)],
    "own_algorithm": [("sign flip", 0.8, 1.0)],
    "own_attack": [("Ideal SGD", 0.9, 1.0), ("ADMM", 0.8, 1.0)],
    "own_loss": [("ADMM", 0.2, 0.45), ("geometric median", 0.2, 0.4)],
    "own_rule": [("ideal", 0.9, 1.0), ("halfway", 0.9, 1.0)],
    "regression": [("Ideal SGD", 0.93, 0.95), ("ADMM", 0.88, 0.95), ("r2 of the least-squares solution", 0.93, 0.95)],
    "stragglers": [("in rounds", 0.1, 0.9), ("asynchronous", 0.7, 0.97)],
    "torch_cnn": [("Ideal SGD", 0.5, 1.0), ("NNM + trimmed mean", 0.5, 1.0)],
}
FILES = {
    "decentralized": ["decentralized.png", "graph.png"],
    "federated": ["federated.png"],
    "own_attack": ["own_attack.html", "own_attack.png"],
    "own_rule": ["own_rule.png"],
    "regression": ["regression.png"],
    "stragglers": ["stragglers.png"],
    "torch_cnn": ["torch_cnn.png"],
}


def marked(name: str) -> Any:
    """An example as a parameter, marked as the package that it is made of."""
    for mark, package in (("torch", "torch"), ("flower", "flwr")):
        if name.startswith(mark):
            missing = pytest.mark.skipif(find_spec(package) is None, reason=f"the example is made of {package}")
            return pytest.param(name, marks=[getattr(pytest.mark, mark), missing])
    return name


@pytest.mark.slow
@pytest.mark.parametrize("name", [marked(name) for name in EXAMPLES])
def test_example_runs_in_its_short_form(name: str, tmp_path: Path) -> None:
    of_flower = ["-W", "ignore:'click.utils:DeprecationWarning"] if name.startswith("flower") else []
    command = [sys.executable, "-W", "error", *of_flower, str(ROOT / "examples" / f"{name}.py"), "--quick"]
    run = subprocess.run(command, capture_output=True, text=True, cwd=tmp_path, check=False)
    assert run.returncode == 0, run.stderr
    assert name in EXPECTED, f"what {name} prints is not checked here"
    for row, low, high in EXPECTED[name]:
        found = re.search(rf"^{re.escape(row)}\b[^\d\n]*(.*)$", run.stdout, re.MULTILINE)
        assert found is not None, f"no row {row!r} in\n{run.stdout}"
        numbers = [float(text) for text in re.findall(r"-?\d+\.\d+", found[1])]
        assert numbers, found[0]
        assert all(low <= number <= high for number in numbers), found[0]
    assert sorted(path.name for path in tmp_path.iterdir()) == FILES.get(name, [])


@pytest.mark.parametrize("name", EXAMPLES)
def test_example_says_what_it_does_and_how_to_run_it(name: str) -> None:
    text = (ROOT / "examples" / f"{name}.py").read_text("utf-8")
    assert f"python examples/{name}.py" in text.partition('"""\n\n')[0]
    assert "--quick" in text
