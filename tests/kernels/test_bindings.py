"""What passes between Python and the native module: memory, ``out=``, kinds of arrays, and inputs left alone."""

from __future__ import annotations

import sys
from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest

from byzadmm import _core, aggregate, kernels
from byzadmm._internal import arrays
from support.arrays import same_bits

Array = npt.NDArray[Any]
Z = np.zeros


class Exporter:
    """A tensor of another library: DLPack is all it has."""

    def __init__(self, array: Array, device: int = 1) -> None:
        self.array, self.device, self.exports = array, device, 0

    def __dlpack_device__(self) -> tuple[int, int]:
        return self.device, 0

    def __dlpack__(self, **options: Any) -> Any:
        self.exports += 1
        return self.array.__dlpack__(**options)


class Container:
    """What knows only ``__array__``."""

    def __init__(self, array: Array) -> None:
        self.array = array

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> Array:
        return self.array if dtype is None else self.array.astype(dtype)


class Refuser(Exporter):
    """A tensor whose dtype NumPy does not know, but which can convert itself."""

    def __dlpack__(self, **options: Any) -> Any:
        raise BufferError("no such dtype")

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> Array:
        return self.array


def rule_calls(X: Any, **options: Any) -> dict[str, Callable[[], Any]]:
    return {
        "mean": lambda: aggregate.mean(X, **options),
        "median": lambda: aggregate.median(X, **options),
        "trimmed_mean": lambda: aggregate.trimmed_mean(X, f=1, **options),
        "geometric_median": lambda: aggregate.geometric_median(X, **options),
    }


every_rule = pytest.mark.parametrize("name", list(rule_calls(None)))


def rows(dtype: str = "float64", n: int = 5, d: int = 7) -> Array:
    return np.random.default_rng(1).standard_normal((n, d)).astype(dtype)


# Kinds of arrays


@every_rule
def test_dlpack_is_read_in_place(name: str, dtype: str) -> None:
    X = rows(dtype)
    expected = rule_calls(X)[name]()
    tensor = Exporter(X)
    got = rule_calls(tensor)[name]()
    assert tensor.exports == 1
    assert type(got) is np.ndarray
    assert same_bits(got, expected)
    assert np.shares_memory(arrays.to_numpy(tensor, "X"), X)
    assert same_bits(rule_calls([Exporter(row) for row in X])[name](), expected)


def test_dlpack_arguments_of_kernels() -> None:
    rng = np.random.default_rng(2)
    W, X = rng.standard_normal((2, 3, 5)), rng.integers(0, 9, (6, 4), dtype=np.uint8)
    y, idx = rng.integers(0, 3, 6), rng.integers(0, 6, (2, 4))
    got = kernels.softmax_gradient(Exporter(W), Exporter(X), Exporter(y), Exporter(idx))
    assert same_bits(got, kernels.softmax_gradient(W, X, y, idx))


def test_dlpack_elsewhere_is_refused() -> None:
    with pytest.raises(ValueError, match=r"^X: expected an array in host memory, got DLPack device type 2$"):
        aggregate.mean(Exporter(rows(), device=2))
    with pytest.raises(ValueError, match=r"^X\[1\]: expected an array in host memory, got DLPack device type 2$"):
        aggregate.mean([Exporter(row, device=1 + i) for i, row in enumerate(rows())])


def test_other_protocols() -> None:
    X = rows()
    expected = aggregate.median(X)
    for value in (Container(X), Refuser(X), [Container(row) for row in X], X.tolist(), tuple(map(tuple, X))):
        assert same_bits(aggregate.median(value), expected)

    class Mine(np.ndarray[Any, Any]):
        pass

    got = aggregate.median(X.view(Mine))
    assert type(got) is np.ndarray
    assert same_bits(got, expected)


def test_what_requires_grad_is_refused() -> None:
    class Tracked(Container):
        requires_grad = True

    with pytest.raises(ValueError, match=r"^X: the tensor requires grad; pass X\.detach\(\)$"):
        aggregate.mean(Tracked(rows()))


def test_what_cannot_be_an_array_is_named() -> None:
    class Broken:
        def __array__(self, dtype: Any = None, copy: bool | None = None) -> Array:
            raise RuntimeError("lost")

    with pytest.raises(TypeError, match=r"^X: expected an array of real numbers, got Broken \(lost\)$"):
        aggregate.mean(Broken())


def test_jax_results_are_made_by_jax(monkeypatch: pytest.MonkeyPatch) -> None:
    """Only the lookup is tested: NumPy stands in for ``jax.numpy``, whose ``asarray`` it shares."""
    kind = type("ArrayImpl", (Container,), {"__module__": "jaxlib._jax"})
    monkeypatch.setitem(sys.modules, "jax", SimpleNamespace(numpy=SimpleNamespace(asarray=lambda a: ("jax", a))))
    package, result = aggregate.mean(kind(rows()))
    assert package == "jax"
    assert same_bits(result, aggregate.mean(rows()))


# out=


@every_rule
def test_out_is_filled_and_returned(name: str, dtype: str) -> None:
    X = rows(dtype)
    expected = rule_calls(X)[name]()
    out = np.full(7, np.nan, dtype)
    assert rule_calls(X, out=out)[name]() is out
    assert same_bits(out, expected)
    tensor = Exporter(np.full(7, np.nan, dtype))
    assert rule_calls(X, out=tensor)[name]() is tensor
    assert same_bits(tensor.array, expected)
    wide = np.empty(7)
    assert rule_calls(X.tolist(), out=wide)[name]() is wide
    assert same_bits(wide, rule_calls(X.astype(np.float64))[name]())
    both = rule_calls(X, out=out, return_info=True)[name]()
    assert both[0] is out
    assert isinstance(both[1], aggregate.Info)


READ_ONLY = np.zeros(7)
READ_ONLY.flags.writeable = False


@every_rule
@pytest.mark.parametrize(
    ("out", "error", "message"),
    [
        (Z(6), ValueError, r"out: expected shape \(7,\), got \(6,\)"),
        (Z((1, 7)), ValueError, r"out: expected shape \(7,\), got \(1, 7\)"),
        (Z(7, "float32"), TypeError, "out: expected dtype float64, got float32"),
        (Z(7, ">f8"), TypeError, "out: expected dtype float64, got >f8"),
        (Z(14)[::2], ValueError, "out: expected a C-contiguous array"),
        (Z(57, "uint8")[1:].view("float64"), ValueError, "out: expected a C-contiguous array"),
        (READ_ONLY, ValueError, "out: expected a writable array, got a read-only one"),
    ],
)
def test_out_errors(name: str, out: Any, error: type[Exception], message: str) -> None:
    before = np.array(out)
    with pytest.raises(error, match=f"^{message}$"):
        rule_calls(rows(), out=out)[name]()
    assert same_bits(np.array(out), before)


@every_rule
def test_a_list_is_no_place_for_a_result(name: str) -> None:
    """A list would be converted to a new array, and the result lost with it."""
    with pytest.raises(TypeError, match=r"^out: expected an array, got list$"):
        rule_calls(rows(), out=[0.0] * 7)[name]()


@every_rule
def test_out_must_not_overlap_an_input(name: str) -> None:
    overlap = "^out: overlaps an input; pass a separate array$"
    X = rows()
    with pytest.raises(ValueError, match=overlap):
        rule_calls(X, out=X[2])[name]()
    as_list = list(rows())
    with pytest.raises(ValueError, match=overlap):
        rule_calls(as_list, out=as_list[3])[name]()
    # Inputs that are copied first are still the caller's memory.
    square = np.asfortranarray(rows(n=7))
    with pytest.raises(ValueError, match=overlap):
        rule_calls(square, out=square[:, 0])[name]()
    wide = rows(d=14)
    with pytest.raises(ValueError, match=overlap):
        rule_calls(wide[:, ::2], out=wide[1, :7])[name]()
    beside = rule_calls(wide[:, :7], out=wide[1, 7:])[name]()  # the same block of memory, but not the same numbers
    assert same_bits(beside, rule_calls(wide[:, :7])[name]())


def test_kernels_refuse_an_overlapping_out() -> None:
    overlap = "^out: overlaps an input; pass a separate array$"
    memory = Z(100)
    x, shifted = memory[:12].reshape(3, 4), memory[1:13].reshape(3, 4)
    with pytest.raises(ValueError, match=overlap):
        kernels.admm_worker_step(x, Z((3, 4)), Z((3, 4)), Z((3, 4)), alpha=0.1, out=shifted)
    with pytest.raises(ValueError, match=overlap):
        kernels.admm_master_step(Z(4), x, Z((3, 4)), alpha=0.1, rho=0.1, out=x[0])
    W = Z((2, 3, 5))
    with pytest.raises(ValueError, match=overlap):
        kernels.softmax_gradient(W, Z((6, 4)), Z(6, int), out=W)
    y = Z(6, np.int64)
    features = Z((6, 4)).view(np.int64)
    with pytest.raises(ValueError, match=overlap):
        kernels.softmax_predict(Z((3, 5)), features.view(np.float64), out=features.reshape(-1)[:6])
    assert same_bits(y, Z(6, np.int64))
    turned = np.asfortranarray(Z((4, 4)))
    with pytest.raises(ValueError, match=overlap):
        kernels.rsa_master_step(Z(4), turned, alpha=0.1, lam=0.1, rho=0.1, out=turned[:, 1])


def test_steps_in_place_through_dlpack() -> None:
    x, x0 = rows(n=3), rows(n=1)[0]
    expected = kernels.rsa_worker_step(x, x * 2, x0, alpha=0.1, lam=0.1)
    tensor = Exporter(x)
    assert kernels.rsa_worker_step(tensor, x * 2, x0, alpha=0.1, lam=0.1, out=tensor) is tensor
    assert same_bits(x, expected)


def test_inputs_are_never_modified() -> None:
    rng = np.random.default_rng(3)
    W, X, y = rng.standard_normal((2, 3, 5)), rng.standard_normal((6, 4)), rng.integers(0, 3, 6)
    x, g, x0 = rng.standard_normal((3, 4)), rng.standard_normal((3, 4)), rng.standard_normal(4)
    idx = rng.integers(0, 6, (2, 4))
    everything = [W, X, y, x, g, x0, idx]
    before = [a.copy() for a in everything]
    for a in everything:
        a.flags.writeable = False
    kernels.softmax_gradient(W, X, y, idx)
    kernels.softmax_loss(W, X, y, idx)
    kernels.softmax_predict(W[0], X)
    kernels.softmax_accuracy(W[0], X, y)
    kernels.admm_worker_step(x, g, g, x, alpha=0.1)
    kernels.admm_dual_step(x, g, x0, beta=0.1, lam=0.1)
    kernels.admm_master_step(x0, x, g, alpha=0.1, rho=0.1)
    kernels.rsa_worker_step(x, g, x0, alpha=0.1, lam=0.1)
    kernels.rsa_master_step(x0, x, alpha=0.1, lam=0.1, rho=0.1)
    assert all(same_bits(a, b) for a, b in zip(everything, before, strict=True))


def test_unaligned_input_is_copied() -> None:
    X = rows()
    memory = np.empty(X.nbytes + 1, np.uint8)
    view = memory[1:].view(np.float64).reshape(X.shape)
    view[...] = X
    assert not view.flags.aligned
    assert same_bits(aggregate.median(view), aggregate.median(X))


# The native module checks memory by itself, for callers other than the package


UNALIGNED = np.zeros(57, np.uint8)[1:].view(np.float64)
NATIVE_ERRORS: list[tuple[Callable[[], Any], type[Exception], str]] = [
    (lambda: _core.mean(Z((3, 7), int), Z(7), None, None, 1), TypeError, "X: expected dtype float32 or .*, got int64"),
    (lambda: _core.mean(Z(7), Z(7), None, None, 1), ValueError, "X: expected 2 dimensions, got 1"),
    (lambda: _core.mean(Z((7, 3)).T, Z(7), None, None, 1), ValueError, "X: expected a C-contiguous array"),
    (lambda: _core.mean(Z((0, 7)), Z(7), None, None, 1), ValueError, r"X: expected at least one row .*, got \(0, 7\)"),
    (lambda: _core.mean([], Z(7), None, None, 1), ValueError, "X: expected at least one row, got none"),
    (lambda: _core.mean([Z((2, 7))], Z(7), None, None, 1), ValueError, "X: expected 1 dimensions, got 2"),
    (lambda: _core.mean([Z(7), Z(6)], Z(7), None, None, 1), ValueError, r"X: expected shape \(7,\), got \(6,\)"),
    (lambda: _core.mean([Z(7), Z(7, "f4")], Z(7), None, None, 1), TypeError, "X: expected dtype float64, got float32"),
    (lambda: _core.mean([Z(7), "row"], Z(7), None, None, 1), TypeError, "X: expected an array, got str"),
    (lambda: _core.mean(["row"], Z(7), None, None, 1), TypeError, "X: expected an array, got str"),
    (lambda: _core.mean((Z(7),), Z(7), None, None, 1), TypeError, "X: expected an array, got tuple"),
    (lambda: _core.mean(None, Z(7), None, None, 1), TypeError, "X: expected an array, got NoneType"),
    (lambda: _core.mean(Z((3, 7)), Z(6), None, None, 1), ValueError, r"out: expected shape \(7,\), got \(6,\)"),
    (lambda: _core.mean(Z((3, 7)), Z(7, "f4"), None, None, 1), TypeError, "out: expected dtype float64, got float32"),
    (lambda: _core.mean(Z((3, 7)), READ_ONLY, None, None, 1), ValueError, "out: expected a writable array, .*"),
    (lambda: _core.mean(Z((3, 7)), Z(14)[::2], None, None, 1), ValueError, "out: expected a C-contiguous array"),
    (lambda: _core.mean(Z((3, 7)), UNALIGNED, None, None, 1), ValueError, "out: expected an aligned array"),
    (lambda: _core.mean(Z((3, 7)), Z(7), Z(2), None, 1), ValueError, r"weights: expected shape \(3,\), got \(2,\)"),
    (lambda: _core.mean(Z((3, 7)), Z(7), [1.0] * 3, None, 1), TypeError, "weights: expected an array, got list"),
    (lambda: _core.mean(Z((3, 7)), Z(7), None, [], 1), ValueError, r"X: expected at least one row .*, got \(0, 7\)"),
    (lambda: _core.trimmed_mean(Z((3, 7)), Z(7), 2, None, 1), ValueError, "f: expected 0 <= 2f < n"),
    (lambda: _core.trimmed_mean(Z((3, 7)), Z(7), -1, None, 1), ValueError, "f: expected 0 <= 2f < n"),
    (
        lambda: _core.softmax_gradient(Z((1, 2, 4)), Z((5, 3), "i4"), Z(5, int), None, Z((1, 2, 4)), 1.0, True, 1),
        TypeError,
        "X: expected dtype uint8, float32 or float64, got int32",
    ),
    (
        lambda: _core.softmax_gradient(Z((1, 2, 4)), Z((5, 3)), Z(5, "i4"), None, Z((1, 2, 4)), 1.0, True, 1),
        TypeError,
        "y: expected dtype int64, got int32",
    ),
    (
        lambda: _core.softmax_gradient(Z((1, 2, 4)), Z((5, 3)), Z(5, int), [[0]], Z((1, 2, 4)), 1.0, True, 1),
        TypeError,
        "idx: expected an array, got list",
    ),
    (
        lambda: _core.softmax_loss(Z((2, 4)), Z((5, 3)), Z(5, int), None, 1.0, True, 1),
        ValueError,
        "W: expected 3 dimensions, got 2",
    ),
    (
        lambda: _core.softmax_predict(Z((2, 2, 4)), Z((5, 3)), Z(5, np.int64), 1.0, True, 1),
        ValueError,
        r"W: expected shape \(1, 2, 4\), got \(2, 2, 4\)",
    ),
    (
        lambda: _core.admm_dual_step(Z((2, 3)), Z(3), Z(3), Z((2, 3)), 1.0, 1.0, 1),
        ValueError,
        "x: expected 2 dimensions, got 1",
    ),
    (lambda: _core.philox_normal(Z(3, int), 1.0, 0, (0, 0, 0)), TypeError, "out: expected dtype float32 or .*"),
    (lambda: _core.philox_integers(Z(3), 5, 0, (0, 0, 0)), TypeError, "out: expected dtype int64, got float64"),
]


@pytest.mark.parametrize(("call", "error", "message"), NATIVE_ERRORS, ids=[row[2][:40] for row in NATIVE_ERRORS])
def test_native_messages(call: Callable[[], Any], error: type[Exception], message: str) -> None:
    with pytest.raises(error, match=f"^{message}$"):
        call()


def test_native_arguments_of_a_wrong_kind_are_type_errors() -> None:
    for call in (
        lambda: _core.softmax_gradient(Z((1, 2, 4)), Z((5, 3)), None, None, Z((1, 2, 4)), 1.0, True, 1),
        lambda: _core.mean(Z((3, 7)), None, None, None, 1),
        lambda: _core.mean(Z((3, 7)), Z(7), None, None, 2**40),
        lambda: _core.philox_normal(Z(3), 1.0, -1, (0, 0, 0)),
    ):
        with pytest.raises(TypeError, match="incompatible function arguments"):
            call()
    for keep in ([3], [-1]):
        with pytest.raises(IndexError):
            _core.mean(Z((3, 7)), Z(7), None, keep, 1)


def test_native_rules_tell_of_sums_that_are_not_finite(dtype: str) -> None:
    X = rows(dtype)
    out = np.empty(7, dtype)
    calls: list[Callable[[], bool]] = [
        lambda: _core.mean(X, out, None, None, 1),
        lambda: _core.median(X, out, "mid", None, 1),
        lambda: _core.trimmed_mean(X, out, 1, None, 1),
    ]
    assert [call() for call in calls] == [False] * 3
    X[2, 6] = np.nan
    assert [call() for call in calls] == [True] * 3
    assert _core.nonfinite_rows(X, 1).tolist() == [False, False, True, False, False]
    assert not _core.mean(X, out, None, [0, 1, 3, 4], 1)
    np.testing.assert_allclose(out, np.delete(X, 2, axis=0).mean(axis=0), rtol=1e-5)
