"""Instruction sets: each build gives the right numbers, and the choice between them can be told and forced."""

from __future__ import annotations

import ctypes
import importlib
import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import pytest

from byzadmm import _core, _isa, reference
from support.arrays import awkward, same_bits

RUNNABLE = [isa for isa in _isa.built() if _isa.supports(isa)]
TOLERANCE = {"float32": 3e-5, "float64": 1e-12}


@pytest.fixture
def use() -> Iterator[Callable[[str], None]]:
    """Changes the instruction set, until the test ends."""
    yield lambda isa: _core.use(importlib.import_module(f"byzadmm._kernels_{isa}").table)
    _core.use(_isa.chosen.table)


@pytest.fixture(params=RUNNABLE)
def native(request: pytest.FixtureRequest, use: Callable[[str], None]) -> ModuleType:
    use(request.param)
    assert _core.isa == request.param
    return _core


def python(code: str, **variables: str) -> subprocess.CompletedProcess[str]:
    environment = {key: value for key, value in os.environ.items() if key != "BYZADMM_ISA"} | variables
    return subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, env=environment, check=False)


def test_baseline_is_always_built() -> None:
    assert "baseline" in RUNNABLE
    assert _core.isa in RUNNABLE


def test_each_module_says_what_it_is(native: ModuleType) -> None:
    assert native.vector_bytes == {"baseline": 16, "avx2": 32, "avx512": 64}[native.isa]
    assert native.max_threads() >= 1


def test_only_a_table_of_this_version_is_taken() -> None:
    new = ctypes.pythonapi.PyCapsule_New
    new.restype, new.argtypes = ctypes.py_object, (ctypes.c_void_p, ctypes.c_char_p, ctypes.c_void_p)
    with pytest.raises(ValueError, match="PyCapsule_GetPointer called with incorrect name"):
        _core.use(new(1, b"byzadmm.kernels.0.0.1", None))
    assert _core.isa in RUNNABLE
    assert _core.max_threads() >= 1


def test_rules_on_every_instruction_set(native: ModuleType, dtype: str) -> None:
    for label, X in awkward(dtype):
        out = np.empty(X.shape[1], dtype)
        size = max(float(np.abs(X).max()), float(np.finfo(dtype).tiny))
        native.median(X, out, "mid", None, 2)
        np.testing.assert_array_equal(out, reference.median(X), err_msg=label)
        f = (len(X) - 1) // 3
        native.trimmed_mean(X, out, f, None, 2)
        expected = reference.trimmed_mean(X, f=f)
        np.testing.assert_allclose(out / size, expected / size, atol=8 * float(np.finfo(dtype).eps), err_msg=label)
        if not native.mean(X, out, None, None, 2):
            expected = reference.mean(X)
            np.testing.assert_allclose(out / size, expected / size, atol=8 * float(np.finfo(dtype).eps), err_msg=label)


def test_geometric_median_on_every_instruction_set(native: ModuleType, dtype: str) -> None:
    X = np.random.default_rng(1).standard_normal((20, 131)).astype(dtype)
    out = np.empty(131, dtype)
    _, converged, residual, shares = native.geometric_median(X, out, None, 1e-6, 1000, None, 1)
    assert converged
    assert residual <= 1e-6
    assert shares.sum() == pytest.approx(1.0)
    np.testing.assert_allclose(out, reference.geometric_median(X), atol=1e-5)


def test_losses_on_every_instruction_set(native: ModuleType, dtype: str) -> None:
    for features in (33, 54, 127, 128, 203):
        rng = np.random.default_rng(features)
        X, y = rng.integers(0, 256, (70, features), dtype=np.uint8), rng.integers(0, 7, 70)
        X[:, features // 3 :][rng.random((70, features - features // 3)) < 0.9] = 0  # blocks of zeros are skipped
        W, idx = rng.standard_normal((3, 7, features + 1)).astype(dtype), rng.integers(0, 70, (3, 33))
        case: dict[str, Any] = {"atol": 10 * TOLERANCE[dtype], "err_msg": f"{features} features"}
        exact, wide = W.astype(np.float64), {"scale": 1 / 255}
        G = np.empty_like(W)
        native.softmax_gradient(W, X, y, idx, G, 1 / 255, True, 2)
        np.testing.assert_allclose(G, reference.softmax_gradient(exact, X, y, idx, **wide), **case)
        loss = native.softmax_loss(W, X, y, idx, 1 / 255, True, 2)
        np.testing.assert_allclose(loss, reference.softmax_loss(exact, X, y, idx, **wide), rtol=1e-4)
        native.softmax_hessian_product(W, W[::-1].copy(), X, idx, G, 1 / 255, True, 2)
        expected = reference.softmax_hessian_product(exact, exact[::-1], X, idx, **wide)
        np.testing.assert_allclose(G, expected, **case)
        for name, targets in (("logistic", y % 2), ("least_squares", y / 3)):
            one = np.ascontiguousarray(W[:, :1])
            G = np.empty_like(one)
            getattr(native, f"{name}_gradient")(one, X, targets, idx, G, 1 / 255, True, 2)
            expected = getattr(reference, f"{name}_gradient")(exact[:, 0], X, targets, idx, **wide)
            np.testing.assert_allclose(G[:, 0], expected, **case)
        classes, scores = np.empty(70, np.int64), np.empty(70, dtype)
        rows = X.astype(dtype)
        for of in (X, rows):
            native.softmax_predict(W[:1], of, classes, 1 / 255, True, 2)
            assert same_bits(classes, reference.softmax_predict(exact[0], X, **wide)), case
            native.linear_predict(W[:1, :1], of, scores, 1 / 255, True, 2)
            np.testing.assert_allclose(scores, reference.linear_predict(exact[0, 0], X, **wide), **case)


def test_steps_and_numbers_on_every_instruction_set(native: ModuleType, dtype: str) -> None:
    rng = np.random.default_rng(2)
    x, g, x0 = (rng.standard_normal(shape).astype(dtype) for shape in ((4, 99), (4, 99), (99,)))
    out, master = np.empty_like(x), np.empty_like(x0)
    native.admm_dual_step(x, g, x0, out, 0.5, 0.25, 2)
    expected = reference.admm_dual_step(x, g, x0, beta=0.5, lam=0.25)
    np.testing.assert_allclose(out, expected, atol=TOLERANCE[dtype])
    native.rsa_master_step(x0, x, master, 0.1, 0.2, 0.3, 2)
    expected = reference.rsa_master_step(x0, x, alpha=0.1, lam=0.2, rho=0.3)
    np.testing.assert_allclose(master, expected, atol=TOLERANCE[dtype])
    draws, whole = np.empty(1001, dtype), np.empty(1001, np.int64)
    native.philox_normal(draws, 1.0, 3, (1, 2, 3))
    np.testing.assert_allclose(draws, reference.philox_normal(1001, seed=3, stream=(1, 2, 3), dtype=dtype), atol=2e-5)
    native.philox_integers(whole, 1000, 3, (1, 2, 3))
    assert same_bits(whole, reference.philox_integers(1001, high=1000, seed=3, stream=(1, 2, 3)))


@pytest.mark.skipif(len(RUNNABLE) < 2, reason="only one instruction set can run here")
def test_instruction_sets_agree_with_each_other(dtype: str, use: Callable[[str], None]) -> None:
    X = np.random.default_rng(4).standard_normal((33, 517)).astype(dtype)
    results = []
    for isa in RUNNABLE:
        use(isa)
        out = np.empty((3, 517), dtype)
        _core.median(X, out[0], "mid", None, 1)
        _core.trimmed_mean(X, out[1], 9, None, 1)
        _core.geometric_median(X, out[2], None, 1e-6, 1000, None, 1)
        results.append(out)
    for other in results[1:]:
        assert same_bits(other[0], results[0][0])  # comparisons only: no room for rounding
        np.testing.assert_allclose(other[1], results[0][1], atol=TOLERANCE[dtype])
        np.testing.assert_allclose(other[2], results[0][2], atol=1e-5)


@pytest.mark.parametrize("isa", RUNNABLE)
def test_the_variable_forces_an_instruction_set(isa: str) -> None:
    code = "import byzadmm, byzadmm._core as c; print(c.isa, byzadmm.median([[1.0], [3.0], [9.0]])[0])"
    run = python(code, BYZADMM_ISA=isa)
    assert run.stdout.split() == [isa, "3.0"], run.stderr


@pytest.mark.parametrize("value", [None, ""])
def test_without_the_variable_the_best_is_chosen(value: str | None) -> None:
    run = python("import byzadmm._core as c; print(c.isa)", **({} if value is None else {"BYZADMM_ISA": value}))
    suitable = [isa for isa, needed in _isa.AUTOMATIC.items() if isa in RUNNABLE and all(map(_isa.supports, needed))]
    assert run.stdout.strip() == suitable[0], run.stderr


def test_an_unknown_value_is_a_clear_error() -> None:
    run = python("import byzadmm", BYZADMM_ISA="sse9")
    assert run.returncode != 0
    last = run.stderr.strip().splitlines()[-1]
    assert last == "ImportError: BYZADMM_ISA: expected one of baseline, avx2, avx512; got 'sse9'"


@pytest.mark.parametrize("by", ["module", "script"])
def test_on_the_command_line_it_is_one_line(by: str, tmp_path: Path) -> None:
    script = tmp_path / "byzadmm"  # what an installation puts on the path
    script.write_text("import sys\nfrom byzadmm.cli import main\nsys.exit(main())\n")
    words = ["-m", "byzadmm"] if by == "module" else [str(script)]
    for value, code in (("sse9", 2), ("baseline", 0)):
        environment = os.environ | {"BYZADMM_ISA": value, "PYTHONPATH": os.pathsep.join(sys.path)}
        command = [sys.executable, "-W", "error", *words, "data", "path"]
        run = subprocess.run(command, capture_output=True, text=True, env=environment, check=False)
        assert run.returncode == code, run.stderr
        if code:
            assert run.stdout == ""
            assert run.stderr == "byzadmm: error: BYZADMM_ISA: expected one of baseline, avx2, avx512; got 'sse9'\n"


def test_a_value_that_cannot_run_is_a_clear_error() -> None:
    missing = [isa for isa in _isa.KNOWN if isa not in RUNNABLE]
    if not missing:
        pytest.skip("every known instruction set is built and runs here")
    run = python("import byzadmm", BYZADMM_ISA=missing[0])
    assert run.returncode != 0
    last = run.stderr.strip().splitlines()[-1]
    assert last.startswith(
        (
            f"ImportError: BYZADMM_ISA: this CPU does not support {missing[0]!r}",
            f"ImportError: BYZADMM_ISA: {missing[0]!r} is not in this build, which has baseline",
        )
    )


def test_choose_by_what_the_cpu_and_the_build_have(monkeypatch: pytest.MonkeyPatch) -> None:
    supported = {"baseline", "avx2", "avx512"}
    monkeypatch.setattr(_isa, "supports", lambda isa: isa in supported)
    monkeypatch.setattr(_isa, "built", lambda: ("baseline", "avx2"))
    assert _isa.choose(None) == _isa.choose("") == _isa.choose("avx2") == "avx2"
    assert _isa.choose("baseline") == "baseline"
    with pytest.raises(ImportError, match=r"^BYZADMM_ISA: 'avx512' is not in this build, which has baseline, avx2$"):
        _isa.choose("avx512")
    monkeypatch.setattr(_isa, "built", lambda: ("baseline", "avx2", "avx512"))
    assert (_isa.choose(None), _isa.choose("avx512")) == ("avx2", "avx512")  # an early one is not chosen by itself
    supported.add("avx512vbmi2")
    assert _isa.choose(None) == "avx512"
    supported -= {"avx512", "avx512vbmi2"}
    assert _isa.choose(None) == "avx2"
    monkeypatch.setattr(_isa, "built", lambda: ("baseline", "avx2"))
    supported.remove("avx2")
    assert _isa.choose(None) == "baseline"
    with pytest.raises(ImportError, match=r"^BYZADMM_ISA: this CPU does not support 'avx2'$"):
        _isa.choose("avx2")
    with pytest.raises(ImportError, match=r"^BYZADMM_ISA: expected one of baseline, avx2, avx512; got 'AVX2'$"):
        _isa.choose("AVX2")


def test_cpu_supports_nothing_it_does_not_know() -> None:
    assert _isa.supports("baseline")
    assert not _isa.supports("sse9")
