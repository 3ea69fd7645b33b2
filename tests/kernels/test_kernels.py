"""The kernels against their NumPy twin and the paper, then every way to call them wrongly."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest
from scipy import special

from byzadmm import kernels, reference
from support.arrays import layouts, same_bits
from support.kernel_calls import STEPS, call_step, step_arrays

Array = npt.NDArray[Any]

FEATURES = ("uint8", "float32", "float64")
TOLERANCE = {"float32": 2e-5, "float64": 1e-13}


def problem(
    m: int, K: int, D: int, B: int, *, dtype: str = "float64", feature: str = "uint8", bias: bool = True, seed: int = 1
) -> tuple[Array, Array, Array, Array]:
    rng = np.random.default_rng(seed)
    N = 70
    X = rng.integers(0, 256, (N, D)).astype(feature)
    W = rng.standard_normal((m, K, D + bias)).astype(dtype)
    return W, X, rng.integers(0, K, N), rng.integers(0, N, (m, B))


IN_PLACE = {
    "admm_worker_step": ("x", "g", "eta", "eta_prev"),
    "admm_dual_step": ("eta", "x"),
    "admm_master_step": ("x0",),
    "rsa_worker_step": ("x", "g"),
    "rsa_master_step": ("x0",),
}
every_step = pytest.mark.parametrize("name", list(STEPS))


# Softmax regression


@pytest.mark.parametrize("feature", FEATURES)
@pytest.mark.parametrize("bias", [True, False])
@pytest.mark.parametrize(
    ("m", "K", "D", "B"),
    [(1, 1, 1, 1), (2, 2, 3, 2), (3, 5, 7, 31), (2, 6, 8, 32), (3, 10, 9, 33), (2, 4, 33, 64), (2, 11, 64, 65)],
)
def test_softmax_matches_the_twin(
    m: int, K: int, D: int, B: int, bias: bool, feature: str, dtype: str, threads: int
) -> None:
    W, X, y, idx = problem(m, K, D, B, dtype=dtype, feature=feature, bias=bias)
    options: dict[str, Any] = {"scale": 1 / 255, "bias": bias}
    for batch in (idx, None):
        G = kernels.softmax_gradient(W, X, y, batch, threads=threads, **options)
        F = kernels.softmax_loss(W, X, y, batch, threads=threads, **options)
        wide = W.astype(np.float64)
        assert G.dtype == dtype
        assert G.shape == W.shape
        np.testing.assert_allclose(
            G, reference.softmax_gradient(wide, X, y, batch, **options), atol=TOLERANCE[dtype], rtol=0
        )
        assert F.dtype == np.float64
        np.testing.assert_allclose(
            F, reference.softmax_loss(wide, X, y, batch, **options), rtol=10 * TOLERANCE[dtype], atol=TOLERANCE[dtype]
        )


@pytest.mark.parametrize("bias", [True, False])
@pytest.mark.parametrize("with_idx", [True, False])
def test_softmax_gradient_matches_central_differences(bias: bool, with_idx: bool) -> None:
    W, X, y, idx = problem(3, 4, 6, 8, bias=bias)
    batch = idx if with_idx else None
    options: dict[str, Any] = {"scale": 1 / 255, "bias": bias}
    G = kernels.softmax_gradient(W, X, y, batch, **options)
    h = 1e-5
    for entry in np.ndindex(*W.shape[1:]):
        E = np.zeros(W.shape[1:])
        E[entry] = h
        rise = kernels.softmax_loss(W + E, X, y, batch, **options) - kernels.softmax_loss(W - E, X, y, batch, **options)
        np.testing.assert_allclose(G[(slice(None), *entry)], rise / (2 * h), atol=1e-9)


def test_softmax_workers_are_independent_and_two_dimensions_are_one_worker(dtype: str) -> None:
    W, X, y, idx = problem(5, 3, 17, 9, dtype=dtype)
    G, F = kernels.softmax_gradient(W, X, y, idx), kernels.softmax_loss(W, X, y, idx)
    for i in range(5):
        assert same_bits(kernels.softmax_gradient(W[i], X, y, idx[i]), G[i])
        assert same_bits(kernels.softmax_gradient(W[i], X, y, idx[i : i + 1]), G[i])
        loss = kernels.softmax_loss(W[i], X, y, idx[i])
        assert isinstance(loss, float)
        assert loss == F[i]
    out = np.empty_like(W[0])
    assert kernels.softmax_gradient(W[0], X, y, idx[0], out=out) is out
    assert same_bits(out, G[0])


def test_softmax_survives_huge_logits(dtype: str) -> None:
    W, X, y, idx = problem(2, 4, 6, 9, dtype=dtype)
    big = W * np.asarray(1e4, dtype)
    G, F = kernels.softmax_gradient(big, X, y, idx), kernels.softmax_loss(big, X, y, idx)
    assert np.isfinite(G).all()
    assert np.isfinite(F).all()
    np.testing.assert_allclose(F, reference.softmax_loss(big.astype(np.float64), X, y, idx), rtol=1e-4)


def test_softmax_passes_nan_on_in_its_own_worker_only() -> None:
    W, X, y, idx = problem(3, 4, 6, 9)
    clean = kernels.softmax_gradient(W, X, y, idx)
    W[1, 2, 3] = np.nan
    G, F = kernels.softmax_gradient(W, X, y, idx), kernels.softmax_loss(W, X, y, idx)
    assert np.isnan(G[1]).all()
    assert np.isnan(F).tolist() == [False, True, False]
    assert same_bits(G[[0, 2]], clean[[0, 2]])


def test_softmax_predict_and_accuracy(dtype: str, threads: int) -> None:
    for feature in FEATURES:
        W, X, y, _ = problem(1, 7, 33, 1, dtype=dtype, feature=feature)
        got = kernels.softmax_predict(W[0], X, scale=0.01, threads=threads)
        assert got.dtype == np.int64
        expected = reference.softmax_predict(W[0].astype(np.float64), X, scale=0.01)
        np.testing.assert_array_equal(got, expected)
        assert kernels.softmax_accuracy(W[0], X, y, scale=0.01) == np.mean(expected == y)
        assert kernels.softmax_accuracy(W[0], X, got, scale=0.01) == 1.0
        np.testing.assert_array_equal(
            kernels.softmax_predict(W[0, :, :-1], X, bias=False),
            reference.softmax_predict(W[0, :, :-1].astype(np.float64), X, bias=False),
        )


def sparse_pixels(D: int) -> Array:
    """Pixels (70, D), two in three of every eight in a row all zero."""
    rng = np.random.default_rng(3)
    kept = np.repeat(rng.integers(0, 3, (70, -(-D // 8))) == 0, 8, axis=1)[:, :D]
    return (rng.integers(0, 256, (70, D)) * kept).astype(np.uint8)


def test_evaluations_skip_zero_pixels_and_keep_the_bits(dtype: str) -> None:
    for K, D in [(1, 8), (2, 63), (3, 64), (4, 511), (5, 512), (7, 513), (10, 784), (12, 1029), (13, 200), (25, 65)]:
        W, _, y, idx = problem(1, K, D, 37, dtype=dtype)
        X, w = sparse_pixels(D), W[0].astype(np.float64)
        for bias in (True, False):
            options: dict[str, Any] = {"scale": 1 / 255, "bias": bias}
            model, wide = (W, w) if bias else (W[:, :, 1:], w[:, 1:])
            losses = [kernels.softmax_loss(model, X, y, idx, threads=t, **options) for t in (1, 2, 3, 7)]
            np.testing.assert_allclose(
                losses[0], reference.softmax_loss(wide[None], X, y, idx, **options), rtol=10 * TOLERANCE[dtype]
            )
            predicted = [kernels.softmax_predict(model[0], X, threads=t, **options) for t in (1, 2, 3, 7)]
            np.testing.assert_array_equal(predicted[0], reference.softmax_predict(wide, X, **options))
            dense = X.astype(dtype)
            losses.append(kernels.softmax_loss(model, dense, y, idx, **options))
            predicted.append(kernels.softmax_predict(model[0], dense, **options))
            assert all(same_bits(loss, losses[0]) for loss in losses), (K, D, bias)
            assert all(same_bits(each, predicted[0]) for each in predicted), (K, D, bias)


def test_a_weight_that_is_not_finite_counts_at_zero_pixels_too(dtype: str) -> None:
    X, y = np.zeros((40, 784), np.uint8), np.zeros(40, int)
    for weight in (np.nan, np.inf, -np.inf):
        W = np.zeros((10, 785), dtype)
        W[6, 300] = weight
        assert kernels.softmax_predict(W, X).tolist() == [6] * 40, weight
        assert np.isnan(kernels.softmax_loss(W, X, y)), weight


def test_softmax_predict_breaks_ties_to_the_lowest_class_and_picks_nan_like_numpy() -> None:
    w = np.array([[0.0, 1.0], [2.0, 0.0], [2.0, 0.0]])
    assert kernels.softmax_predict(w, np.array([[0], [4], [1]], np.uint8), scale=0.5).tolist() == [0, 1, 0]
    w[2, 1] = np.nan
    assert kernels.softmax_predict(w, [[1.0]]).tolist() == [2]


def test_softmax_does_not_see_the_layout(dtype: str) -> None:
    W, X, y, idx = problem(2, 3, 9, 5, dtype=dtype, feature=dtype)
    expected = kernels.softmax_gradient(W, X, y, idx)
    for label, view in layouts(X):
        if label != "list of lists":
            got = kernels.softmax_gradient(W, np.stack(view) if isinstance(view, list) else view, y, idx)
            assert same_bits(got, expected), label
    for label, view in layouts(W.reshape(2, -1)):
        if not label.startswith("list"):
            assert same_bits(kernels.softmax_gradient(view.reshape(W.shape), X, y, idx), expected), label
    for kind in ("int8", "int32", "uint64", ">i4"):
        assert same_bits(kernels.softmax_gradient(W, X, y.astype(kind), idx.astype(kind)), expected), kind
    integers = X.astype(np.int16)
    got = kernels.softmax_gradient(W, integers, y.tolist(), idx.tolist())
    np.testing.assert_allclose(got, expected, atol=TOLERANCE[dtype] * 300)


# ADMM and RSA


@every_step
@pytest.mark.parametrize(("m", "d"), [(1, 1), (2, 7), (3, 511), (5, 512), (4, 513), (2, 8191), (3, 8193), (20, 127)])
def test_steps_match_the_twin(name: str, m: int, d: int, dtype: str, threads: int) -> None:
    arrays = step_arrays(m, d, dtype)
    names, settings = STEPS[name]
    got = call_step(name, arrays, threads=threads)
    expected = getattr(reference, name)(*(arrays[key] for key in names), **settings)
    assert got.dtype == dtype
    assert got.shape == expected.shape
    np.testing.assert_allclose(got, expected, rtol=0, atol=8 * m * float(np.finfo(dtype).eps))


@every_step
def test_steps_may_write_over_the_inputs_they_name(name: str, dtype: str, threads: int) -> None:
    arrays = step_arrays(3, 8200, dtype)
    arrays["messages"] = arrays["x"].copy()
    expected = call_step(name, arrays)
    for target in IN_PLACE[name]:
        fresh = {key: value.copy() for key, value in arrays.items()}
        assert call_step(name, fresh, out=fresh[target], threads=threads) is fresh[target]
        assert same_bits(fresh[target], expected)
        assert all(same_bits(fresh[key], arrays[key]) for key in STEPS[name][0] if key != target)
    for key in STEPS[name][0]:
        if key not in IN_PLACE[name] and arrays[key].shape == expected.shape:
            with pytest.raises(ValueError, match=r"^out: overlaps an input; pass a separate array$"):
                call_step(name, arrays, out=arrays[key])


@every_step
def test_steps_do_not_see_the_layout(name: str, dtype: str) -> None:
    arrays = step_arrays(4, 33, dtype)
    expected = call_step(name, arrays)
    for key in STEPS[name][0]:
        if arrays[key].ndim == 2:
            for label, view in layouts(arrays[key]):
                got = call_step(name, arrays | {key: view})
                if label == "list of lists" and dtype == "float32":
                    assert got.dtype == np.float64
                else:
                    assert same_bits(got, expected), f"{key} {label}"


@every_step
def test_steps_keep_nan_in_its_place(name: str, dtype: str) -> None:
    arrays = step_arrays(4, 33, dtype)
    clean = call_step(name, arrays)
    for key in STEPS[name][0]:
        dirty = {k: v.copy() for k, v in arrays.items()}
        dirty[key][..., 5] = np.nan
        got = call_step(name, dirty)
        assert np.isnan(got[..., 5]).any()
        assert same_bits(np.delete(got, 5, axis=-1), np.delete(clean, 5, axis=-1))


def test_infinite_messages_move_the_master_no_further_than_any_other() -> None:
    x0 = np.zeros(3)
    messages = np.array([[np.inf, -np.inf, 1e300], [5e-324, -5e-324, 0.0]])
    got = kernels.rsa_master_step(x0, messages, alpha=1.0, lam=0.5, rho=0.0)
    assert got.tolist() == [1.0, -1.0, 0.5]
    eta = np.zeros((2, 3))
    duals = kernels.admm_dual_step(eta, messages, x0, beta=1.0, lam=0.5)
    assert duals[0].tolist() == [0.5, -0.5, 0.5]


def test_simplified_admm_is_the_three_variable_form(dtype: str) -> None:
    """Proposition lem:simp: both forms give the same primal variables, iteration by iteration, to rounding."""
    rng = np.random.default_rng(7)
    m, d, beta, lam, rho = 6, 11, 0.8, 0.3, 0.05
    x, x0 = rng.standard_normal((m, d)).astype(dtype), rng.standard_normal(d).astype(dtype)
    eta = np.zeros((m, d), dtype)
    eta_prev = eta.copy()
    full = reference.ThreeVariableADMM(x, x0, beta=beta, lam=lam)
    tolerance = 2e-3 if dtype == "float32" else 1e-12
    touched = False
    for k in range(1, 201):
        g = rng.standard_normal((m, d)).astype(dtype)
        alpha, alpha0 = 1 / (1 + k**0.5), 1 / (m + k**0.5)
        g0 = rho * full.x0
        full.step(g, g0, alpha=alpha, alpha0=alpha0)
        x = kernels.admm_worker_step(x, g, eta, eta_prev, alpha=alpha)
        x0 = kernels.admm_master_step(x0, eta, eta_prev, alpha=alpha0, rho=rho)
        eta_prev, eta = eta, kernels.admm_dual_step(eta, x, x0, beta=beta, lam=lam)
        np.testing.assert_allclose(x, full.x, atol=tolerance, err_msg=f"x at k={k}")
        np.testing.assert_allclose(x0, full.x0, atol=tolerance, err_msg=f"x0 at k={k}")
        np.testing.assert_allclose(eta, full.eta_master, atol=tolerance, err_msg=f"eta at k={k}")
        np.testing.assert_allclose(-eta, full.eta_worker, atol=tolerance)
        touched = touched or bool((np.abs(eta) == np.asarray(lam, dtype)).any())
    assert touched, "the projection was never active: the test would not see it"


def test_kernels_return_tensors_for_tensors(torch: Any, dtype: str) -> None:
    arrays = step_arrays(3, 5, dtype)
    tensors = {key: torch.from_numpy(value) for key, value in arrays.items()}
    for name in STEPS:
        got = call_step(name, tensors)
        assert isinstance(got, torch.Tensor)
        assert same_bits(got.numpy(), call_step(name, arrays))
    W, X, y, idx = problem(2, 3, 4, 5, dtype=dtype)
    got = kernels.softmax_gradient(*(torch.from_numpy(a) for a in (W, X, y, idx)))
    assert isinstance(got, torch.Tensor)
    assert same_bits(got.numpy(), kernels.softmax_gradient(W, X, y, idx))


# Random numbers


@pytest.mark.parametrize("size", [0, 1, 3, 4, 5, 63, 64, 65, 1001])
def test_philox_matches_the_twin(size: int, dtype: str) -> None:
    key: dict[str, Any] = {"seed": 2**64 - 1, "stream": (3, 2**63, 7)}
    got = kernels.philox_normal(size, dtype=dtype, **key)
    assert got.dtype == dtype
    tolerance = 4e-6 if dtype == "float32" else 1e-14
    np.testing.assert_allclose(got, reference.philox_normal(size, dtype=dtype, **key), rtol=tolerance, atol=tolerance)
    for high in (1, 2, 10, 60_000, 2**32 + 1, 2**63):
        got = kernels.philox_integers(size, high=high, **key)
        assert same_bits(got, reference.philox_integers(size, high=high, **key))


def test_philox_is_numpys_generator() -> None:
    raw = np.random.Philox(key=9, counter=2**256 - 1).random_raw(8)  # NumPy counts up before its first block
    assert kernels.philox_integers(8, high=2**63, seed=9).tolist() == [int(word) // 2 for word in raw]


def test_philox_streams_are_addressed_not_consumed() -> None:
    long = kernels.philox_normal(100, seed=5, stream=(1, 2, 3))
    assert same_bits(kernels.philox_normal((4, 5), seed=5, stream=(1, 2, 3)), long[:20].reshape(4, 5))
    assert same_bits(kernels.philox_normal(9, seed=5, stream=4), kernels.philox_normal(9, seed=5, stream=[4, 0]))
    a = kernels.philox_normal(9, seed=np.int64(5), stream=np.uint64(4))
    assert same_bits(a, kernels.philox_normal([9], seed=5, stream=(4, 0, 0)))
    seen = {
        kernels.philox_normal(1, seed=seed, stream=stream)[0]
        for seed in (0, 1)
        for stream in ((0, 0, 0), (1, 0, 0), (0, 1, 0), (0, 0, 1))
    }
    assert len(seen) == 8


def test_philox_normal_is_normal(dtype: str) -> None:
    draws = kernels.philox_normal(200_000, seed=11, dtype=dtype).astype(np.float64)
    assert abs(draws.mean()) < 0.01
    assert abs(draws.std() - 1.0) < 0.01
    grid = np.linspace(-3.0, 3.0, 13)
    np.testing.assert_allclose((draws[:, None] < grid).mean(axis=0), special.ndtr(grid), atol=0.005)
    counts = np.bincount(kernels.philox_integers(60_000, high=6, seed=11), minlength=6)
    assert np.abs(counts - 10_000).max() < 500


def test_philox_writes_to_out() -> None:
    out = np.empty((3, 4), np.float32)
    assert kernels.philox_normal((3, 4), seed=1, dtype="float32", out=out) is out
    assert same_bits(out, kernels.philox_normal((3, 4), seed=1, dtype=np.float32))
    with pytest.raises(ValueError, match=r"^out: expected shape \(3,\), got \(3, 4\)$"):
        kernels.philox_normal(3, seed=1, dtype="float32", out=out)
    whole = np.empty(5, np.int64)
    assert kernels.philox_integers(5, high=7, seed=1, out=whole) is whole
    assert same_bits(whole, kernels.philox_integers(5, high=7, seed=1))


# Errors: every message names the argument, what was expected and what came


def softmax_call(kernel: Callable[..., Any] = kernels.softmax_gradient, **changes: Any) -> Callable[[], Any]:
    W, X, y, idx = problem(2, 3, 4, 5)
    arguments: dict[str, Any] = {"W": W, "X": X, "y": y, "idx": idx} | changes
    return lambda: kernel(**arguments)


def predict_call(**changes: Any) -> Callable[[], Any]:
    arguments: dict[str, Any] = {"w": np.zeros((3, 5)), "X": np.zeros((6, 4))} | changes
    return lambda: kernels.softmax_predict(**arguments)


def accuracy_call(y: Array) -> Callable[[], Any]:
    return lambda: kernels.softmax_accuracy(np.zeros((3, 5)), np.zeros((6, 4)), y)


def step_call(name: str, **changes: Any) -> Callable[[], Any]:
    arrays = step_arrays(3, 4, "float64")
    given = {key: changes.pop(key) for key in list(changes) if key in arrays}
    return lambda: call_step(name, arrays | given, **changes)


Z = np.zeros
SOFTMAX_ERRORS: list[tuple[Callable[[], Any], type[Exception], str]] = [
    (accuracy_call(np.array([0, 1, 2, 7, -3, 0])), ValueError, r"y: expected labels in \[0, 3\), got 7 at row 3"),
    (accuracy_call(np.array([0, 1, 2, -3, 7, 0])), ValueError, r"y: expected labels in \[0, 3\), got -3 at row 3"),
    (softmax_call(W=Z((2, 3, 4))), ValueError, r"W: expected shape \(2, 3, 5\), got \(2, 3, 4\)"),
    (softmax_call(W=Z((2, 3, 5)), bias=False), ValueError, r"W: expected shape \(2, 3, 4\), got \(2, 3, 5\)"),
    (softmax_call(W=Z(5)), ValueError, r"W: expected shape \(m, K, D\+1\) or \(K, D\+1\), got \(5,\)"),
    (softmax_call(W=Z((2, 0, 5))), ValueError, r"W: expected at least one worker and one class, got shape \(2, 0, 5\)"),
    (softmax_call(W=Z((0, 3, 5)), idx=Z((0, 5), int)), ValueError, r"W: expected at least one worker .*\(0, 3, 5\)"),
    (softmax_call(W="x"), TypeError, r"W: expected real numbers \(float32 or float64\), got dtype <U1"),
    (softmax_call(X=Z(4)), ValueError, r"X: expected shape \(N, D\), got \(4,\)"),
    (softmax_call(X=Z((0, 4)), y=Z(0, int)), ValueError, r"X: expected at least one row .*\(0, 4\)"),
    (softmax_call(X=Z((70, 0))), ValueError, r"X: expected at least one row and one column, got shape \(70, 0\)"),
    (softmax_call(X=Z((70, 4), complex)), TypeError, r"X: expected real numbers .*, got dtype complex128"),
    (softmax_call(y=Z(69, int)), ValueError, r"y: expected shape \(70,\), got \(69,\)"),
    (softmax_call(y=Z(70)), TypeError, "y: expected integers, got dtype float64"),
    (softmax_call(y=Z(70, bool)), TypeError, "y: expected integers, got dtype bool"),
    (softmax_call(y=np.full(70, 3)), ValueError, r"y: expected labels in \[0, 3\), got 3 at row \d+"),
    (softmax_call(y=np.full(70, -1), idx=None), ValueError, r"y: expected labels in \[0, 3\), got -1 at row 0"),
    (softmax_call(y=np.full(70, 2**64 - 1, np.uint64)), ValueError, r"y: expected integers below 2\*\*63"),
    (softmax_call(idx=Z((3, 5), int)), ValueError, r"idx: expected shape \(2, B\), got \(3, 5\)"),
    (softmax_call(idx=Z(5, int)), ValueError, r"idx: expected shape \(2, B\), got \(5,\)"),
    (softmax_call(idx=Z((2, 0), int)), ValueError, "idx: expected at least one sample per worker, got none"),
    (softmax_call(idx=np.full((2, 5), 70)), ValueError, r"idx: expected indices in \[0, 70\), got 70"),
    (softmax_call(idx=np.full((2, 5), -1)), ValueError, r"idx: expected indices in \[0, 70\), got -1"),
    (softmax_call(idx=Z((2, 5))), TypeError, "idx: expected integers, got dtype float64"),
    (softmax_call(scale=np.nan), ValueError, "scale: expected a finite number, got nan"),
    (softmax_call(scale="1"), TypeError, "scale: expected a real number, got str"),
    (softmax_call(scale=10**400), ValueError, "scale: expected a finite number, got inf"),
    (softmax_call(bias=1), TypeError, "bias: expected True or False, got int"),
    (softmax_call(threads=-1), ValueError, r"threads: expected an integer in \[0, 4096\], got -1"),
    (predict_call(w=Z((3, 4))), ValueError, r"W: expected shape \(1, 3, 5\), got \(1, 3, 4\)"),
    (predict_call(w=Z((1, 3, 5))), ValueError, r"w: expected shape \(K, D\+1\), got \(1, 3, 5\)"),
    (predict_call(X=Z(4)), ValueError, r"X: expected shape \(N, D\), got \(4,\)"),
    (predict_call(scale=None), TypeError, "scale: expected a real number, got NoneType"),
    (predict_call(bias="yes"), TypeError, "bias: expected True or False, got str"),
    (accuracy_call(y=Z(5, int)), ValueError, r"y: expected shape \(6,\), got \(5,\)"),
    (accuracy_call(y=Z(6)), TypeError, "y: expected integers, got dtype float64"),
    (softmax_call(kernels.softmax_loss, y=np.full(70, 9)), ValueError, r"y: expected labels in \[0, 3\), got 9 .*"),
]


@pytest.mark.parametrize(("call", "error", "message"), SOFTMAX_ERRORS, ids=[row[2][:40] for row in SOFTMAX_ERRORS])
def test_softmax_errors(call: Callable[[], Any], error: type[Exception], message: str) -> None:
    with pytest.raises(error, match=f"^{message}$"):
        call()


@pytest.mark.parametrize(
    ("name", "option"),
    [(name, option) for name, (_, options) in STEPS.items() for option in options],
)
def test_a_number_that_is_infinite_in_the_arrays_dtype_is_refused(name: str, option: str) -> None:
    with pytest.raises(ValueError, match=rf"^{option}: expected a finite number >=? 0.0 in float32, got 1e\+60$"):
        call_step(name, step_arrays(3, 4, "float32"), **{option: 1e60})
    call_step(name, step_arrays(3, 4, "float64"), **{option: 1e60})


STEP_ERRORS: list[tuple[Callable[[], Any], type[Exception], str]] = [
    (step_call("admm_worker_step", g=Z((3, 5))), ValueError, r"g: expected shape \(3, 4\), got \(3, 5\)"),
    (step_call("admm_worker_step", eta=Z((2, 4))), ValueError, r"eta: expected shape \(3, 4\), got \(2, 4\)"),
    (step_call("admm_worker_step", eta_prev=Z(4)), ValueError, r"eta_prev: expected shape \(3, 4\), got \(4,\)"),
    (step_call("admm_worker_step", x="x"), TypeError, r"x: expected real numbers .*, got dtype <U1"),
    (step_call("admm_worker_step", alpha=-1.0), ValueError, r"alpha: expected a finite number >= 0.0, got -1.0"),
    (step_call("admm_worker_step", alpha=np.nan), ValueError, r"alpha: expected a finite number >= 0.0, got nan"),
    (step_call("admm_worker_step", alpha=None), TypeError, "alpha: expected a real number, got NoneType"),
    (step_call("admm_worker_step", threads=2.0), TypeError, "threads: expected an integer, got float"),
    (step_call("admm_dual_step", x=Z(4)), ValueError, r"x: expected shape \(m, d\), one row per worker, got \(4,\)"),
    (step_call("admm_dual_step", eta=Z((3, 5))), ValueError, r"eta: expected shape \(3, 4\), got \(3, 5\)"),
    (step_call("admm_dual_step", x0=Z(5)), ValueError, r"x0: expected shape \(4,\), got \(5,\)"),
    (step_call("admm_dual_step", beta=0.0), ValueError, r"beta: expected a finite number > 0.0, got 0.0"),
    (step_call("admm_dual_step", lam=0.0), ValueError, r"lam: expected a finite number > 0.0, got 0.0"),
    (step_call("admm_dual_step", lam=-1), ValueError, r"lam: expected a finite number > 0.0, got -1.0"),
    (step_call("admm_dual_step", lam=np.inf), ValueError, r"lam: expected a finite number > 0.0, got inf"),
    (step_call("admm_master_step", eta=Z(4)), ValueError, r"eta: expected shape \(m, d\), one row .*, got \(4,\)"),
    (step_call("admm_master_step", eta_prev=Z((2, 4))), ValueError, r"eta_prev: expected shape \(3, 4\), got \(2, 4\)"),
    (step_call("admm_master_step", x0=Z((1, 4))), ValueError, r"x0: expected shape \(4,\), got \(1, 4\)"),
    (step_call("admm_master_step", alpha=-0.1), ValueError, r"alpha: expected a finite number >= 0.0, got -0.1"),
    (step_call("admm_master_step", rho=-0.1), ValueError, r"rho: expected a finite number >= 0.0, got -0.1"),
    (step_call("rsa_worker_step", x=Z(4)), ValueError, r"x: expected shape \(m, d\), one row per worker, got \(4,\)"),
    (step_call("rsa_worker_step", g=Z((1, 4))), ValueError, r"g: expected shape \(3, 4\), got \(1, 4\)"),
    (step_call("rsa_worker_step", x0=Z(3)), ValueError, r"x0: expected shape \(4,\), got \(3,\)"),
    (step_call("rsa_worker_step", lam=0), ValueError, r"lam: expected a finite number > 0.0, got 0.0"),
    (step_call("rsa_worker_step", alpha=True), TypeError, "alpha: expected a real number, got bool"),
    (step_call("rsa_master_step", messages=Z(4)), ValueError, r"messages: expected shape \(m, d\), .*, got \(4,\)"),
    (step_call("rsa_master_step", x0=Z(9)), ValueError, r"x0: expected shape \(4,\), got \(9,\)"),
    (step_call("rsa_master_step", lam=np.nan), ValueError, r"lam: expected a finite number > 0.0, got nan"),
    (step_call("rsa_master_step", rho="a"), TypeError, "rho: expected a real number, got str"),
    (
        step_call("admm_master_step", eta=Z((0, 4)), eta_prev=Z((0, 4))),
        ValueError,
        r"eta: expected at least one row and one column, got shape \(0, 4\)",
    ),
    (
        step_call("rsa_master_step", messages=Z((3, 0)), x0=Z(0)),
        ValueError,
        r"messages: expected at least one row and one column, got shape \(3, 0\)",
    ),
    (
        step_call("admm_worker_step", x=Z((0, 4)), g=Z((0, 4)), eta=Z((0, 4)), eta_prev=Z((0, 4))),
        ValueError,
        r"x: expected at least one number, got shape \(0, 4\)",
    ),
]


@pytest.mark.parametrize(("call", "error", "message"), STEP_ERRORS, ids=[row[2][:40] for row in STEP_ERRORS])
def test_step_errors(call: Callable[[], Any], error: type[Exception], message: str) -> None:
    with pytest.raises(error, match=f"^{message}$"):
        call()


@pytest.mark.parametrize(
    ("options", "error", "message"),
    [
        ({"seed": -1}, ValueError, r"seed: expected an integer in \[0, 18446744073709551615\], got -1"),
        ({"seed": 2**64}, ValueError, r"seed: expected an integer in \[0, .*\], got 18446744073709551616"),
        ({"seed": 1.0}, TypeError, "seed: expected an integer, got float"),
        ({"stream": -1}, ValueError, r"stream: expected an integer in \[0, .*\], got -1"),
        ({"stream": (1, 2, 3, 4)}, ValueError, "stream: expected an integer or up to three, got 4"),
        ({"stream": ()}, ValueError, "stream: expected an integer or up to three, got 0"),
        ({"stream": "a"}, TypeError, "stream: expected an integer, got str"),
        ({"shape": -1}, ValueError, "shape: expected an integer >= 0, got -1"),
        ({"shape": (2, 1.5)}, TypeError, "shape: expected an integer, got float"),
        ({"threads": -1}, ValueError, r"threads: expected an integer in \[0, 4096\], got -1"),
        ({"out": Z(3, "float16")}, TypeError, "out: expected dtype .*64, got float16"),
    ],
)
def test_philox_errors(options: dict[str, Any], error: type[Exception], message: str) -> None:
    arguments: dict[str, Any] = {"shape": 3, "seed": 1} | options
    with pytest.raises(error, match=f"^{message}$"):
        kernels.philox_normal(**arguments)
    with pytest.raises(error, match=f"^{message}$"):
        kernels.philox_integers(high=5, **arguments)


@pytest.mark.parametrize(
    ("high", "error", "message"),
    [
        (0, ValueError, r"high: expected an integer in \[1, 9223372036854775808\], got 0"),
        (2**63 + 1, ValueError, r"high: expected an integer in \[1, .*\], got 9223372036854775809"),
        (1.5, TypeError, "high: expected an integer, got float"),
    ],
)
def test_philox_integers_high_errors(high: Any, error: type[Exception], message: str) -> None:
    with pytest.raises(error, match=f"^{message}$"):
        kernels.philox_integers(3, high=high, seed=1)


def test_philox_normal_dtype_error() -> None:
    with pytest.raises(TypeError, match=r"^dtype: expected float32 or float64, got float16$"):
        kernels.philox_normal(3, seed=1, dtype="float16")
