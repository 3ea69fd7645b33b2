"""The progress bar of a notebook, with a stand-in for IPython: the kernel's messages are what it would send."""

from __future__ import annotations

import sys
from types import ModuleType, SimpleNamespace
from typing import Any

import pytest

from byzadmm import simulate_many
from byzadmm._internal.notebook import CellBar
from support.runs import ALGORITHMS, quadratic, small_run


class Kernel:
    """Keeps what is displayed: the first content of every output, and what it was replaced by."""

    def __init__(self) -> None:
        self.outputs: list[list[dict[str, str]]] = []

    def display(self, content: dict[str, str], *, raw: bool, display_id: bool) -> Any:
        assert raw
        assert display_id
        output = [content]
        self.outputs.append(output)
        return SimpleNamespace(update=lambda content, raw: output.append(content))


@pytest.fixture
def kernel(monkeypatch: pytest.MonkeyPatch) -> Kernel:
    made = Kernel()
    ipython: Any = ModuleType("IPython")
    ipython.get_ipython = lambda: SimpleNamespace(kernel=made)
    display: Any = ModuleType("IPython.display")
    display.display = made.display
    monkeypatch.setitem(sys.modules, "IPython", ipython)
    monkeypatch.setitem(sys.modules, "IPython.display", display)
    return made


def test_a_run_has_one_output_that_ends_at_its_last_iteration(kernel: Kernel, capsys: Any) -> None:
    small_run(progress=True)
    [output] = kernel.outputs
    assert output[0]["text/plain"].startswith("iterations: 0 of 20, 0:00 elapsed")
    assert output[-1]["text/plain"].startswith("iterations: 20 of 20, 0:00 elapsed")
    assert '<progress value="20" max="20"' in output[-1]["text/html"]
    assert capsys.readouterr() == ("", "")


def test_many_runs_have_one_output(kernel: Kernel) -> None:
    config: dict[str, Any] = {"dataset": None, "parts": None, "loss": quadratic(), "algorithm": ALGORITHMS["admm"]}
    simulate_many([config | {"iterations": 7}] * 3, progress=True)
    [output] = kernel.outputs
    assert output[-1]["text/plain"].startswith("iterations: 21 of 21, ")


def test_a_run_that_fails_leaves_what_it_reached(kernel: Kernel) -> None:
    def fails(k: int, metrics: dict[str, float]) -> None:
        if k == 10:
            raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        small_run(progress=True, on_evaluation=fails)
    assert kernel.outputs[0][-1]["text/plain"].startswith("iterations: 10 of 20, ")


def test_updates_are_rare_and_the_last_one_is_kept(kernel: Kernel, monkeypatch: pytest.MonkeyPatch) -> None:
    now = [100.0]
    monkeypatch.setattr("byzadmm._internal.notebook.time", SimpleNamespace(monotonic=lambda: now[0]))
    bar = CellBar(kernel.display, "rows")
    assert kernel.outputs == []
    for done in range(10, 111):  # resumed at ten
        bar.show(done, 110, "<note>")
        now[0] += 0.0625
    bar.close()
    [output] = kernel.outputs
    assert len(output) == 1 + 25
    assert output[1]["text/plain"] == "rows: 14 of 110, 0:00 elapsed, 0:06 left, <note>"
    assert output[-1]["text/plain"] == "rows: 110 of 110, 0:06 elapsed, <note>"
    assert output[-1]["text/html"].endswith("rows: 110 of 110, 0:06 elapsed, &lt;note&gt;")
    bar.close()
    assert len(output) == 26  # nothing new to show
    now[0] += 3700
    bar.show(110, 110)
    assert output[-1]["text/plain"] == "rows: 110 of 110, 1:01:46 elapsed"


@pytest.mark.parametrize("shell", [None, SimpleNamespace()])
def test_ipython_on_a_terminal_is_no_notebook(kernel: Kernel, shell: Any, capsys: Any) -> None:
    sys.modules["IPython"].get_ipython = lambda: shell  # type: ignore[attr-defined]
    small_run(progress=True)
    assert kernel.outputs == []
