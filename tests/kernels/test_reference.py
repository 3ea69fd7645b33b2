"""The NumPy twins against mathematics, SciPy and the paper, so that they can be trusted as oracles."""

from __future__ import annotations

import ast
import doctest
import importlib
import pkgutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest

import byzadmm.reference as ref
from support.arrays import POISONS, awkward, conversions, layouts, poisoned, same_bits

Array = npt.NDArray[Any]

DTYPES = ("float32", "float64")
INPUTS = [pytest.param(X, id=f"{dtype}-{label}") for dtype in DTYPES for label, X in awkward(dtype)]
MODULES = sorted(module.name for module in pkgutil.iter_modules(ref.__path__))


# The package


@pytest.mark.parametrize("name", MODULES)
def test_module_imports_only_numpy_and_its_docstrings_run(name: str) -> None:
    module = importlib.import_module(f"byzadmm.reference.{name}")
    tree = ast.parse(Path(str(module.__file__)).read_text(encoding="utf-8"))
    roots = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            roots |= {alias.name.split(".")[0] for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and node.level == 0:
            roots.add(str(node.module).split(".")[0])
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 1
    assert roots <= {"__future__", "collections", "itertools", "math", "numpy", "typing"}
    assert doctest.testmod(module).failed == 0


def test_package_exports_every_public_name() -> None:
    public = {n for m in MODULES if m[0] != "_" for n in importlib.import_module(f"byzadmm.reference.{m}").__all__}
    assert set(ref.__all__) == public
    assert all(hasattr(ref, name) for name in ref.__all__)


# The generator of awkward inputs


@pytest.mark.parametrize("dtype", DTYPES)
def test_awkward_inputs_are_finite_labelled_and_cover_the_boundaries(dtype: str) -> None:
    cases = list(awkward(dtype))
    assert len({label for label, _ in cases}) == len(cases) >= 40
    assert all(X.dtype == dtype and X.ndim == 2 and X.flags.c_contiguous and np.isfinite(X).all() for _, X in cases)
    n, d = ({X.shape[axis] for _, X in cases} for axis in (0, 1))
    assert n >= {1, 2, 3, 4, 5, 8, 16, 19, 20, 31, 32, 33, 34, 63, 64, 65, 100, 257}
    assert d >= {1, 2, 7, 8, 9, 15, 16, 17, 31, 33, 63, 64, 65, 127, 128, 129, 255, 256, 257, 521}
    assert all(same_bits(a, b) for (_, a), (_, b) in zip(cases, awkward(dtype), strict=True))


@pytest.mark.parametrize("X", INPUTS)
def test_layouts_keep_the_values(X: Array) -> None:
    seen = dict(layouts(X))
    assert all(same_bits(np.asarray(view).astype(X.dtype), X) for view in seen.values())
    assert not seen["read-only"].flags.writeable
    assert seen["big-endian"].dtype.byteorder == ">"
    assert all(stride <= 0 for stride in seen["negative strides"].strides) or 1 in X.shape


@pytest.mark.parametrize("kind", POISONS)
def test_poisoned_rows_and_only_those_are_not_finite(kind: str) -> None:
    X = poisoned(np.random.default_rng(1), 6, 4, [1, 4], kind, "float32")
    assert X.dtype == np.float32
    assert ref.finite_rows(X).tolist() == [True, False, True, True, False, True]
    with pytest.raises(ValueError, match=r"kind: expected one of nan, .*; got 'zero'"):
        poisoned(np.random.default_rng(1), 6, 4, [1], "zero")


def test_same_bits_tells_zeros_types_and_shapes_apart() -> None:
    assert same_bits([np.nan, 0.0], [np.nan, 0.0])
    assert not same_bits([0.0], [-0.0])
    assert not same_bits(np.zeros(2, np.float32), np.zeros(2))
    assert not same_bits(np.zeros((2, 1)), np.zeros((1, 2)))


# Input types


@pytest.mark.parametrize("X", [pytest.param(X, id=label) for label, X in conversions()])
def test_other_real_types_are_computed_in_float64(X: Array) -> None:
    wide = X.astype(np.float64)
    assert same_bits(ref.median(X), ref.median(wide))
    assert same_bits(ref.mean(X), ref.mean(wide))
    assert ref.mean(X).dtype == np.float64


@pytest.mark.parametrize("rule", [ref.mean, ref.median, lambda X: ref.trimmed_mean(X, f=2), ref.geometric_median])
@pytest.mark.parametrize("dtype", DTYPES)
def test_rules_do_not_see_the_layout(rule: Callable[[Any], Array], dtype: str) -> None:
    X = np.random.default_rng(2).standard_normal((9, 5)).astype(dtype)
    expected = rule(X)
    assert expected.dtype == dtype
    for label, view in layouts(X):
        got = rule(view)
        assert got.dtype == ("float64" if label == "list of lists" else dtype), label
        np.testing.assert_allclose(got, expected, rtol=8 * float(np.finfo(dtype).eps), err_msg=label)


@pytest.mark.parametrize(
    ("X", "error", "message"),
    [
        (np.zeros(3), ValueError, r"X: expected shape \(n, d\) with n >= 1, got \(3,\)"),
        (np.zeros((0, 3)), ValueError, r"X: expected shape \(n, d\) with n >= 1, got \(0, 3\)"),
        (np.zeros((2, 2), complex), TypeError, "values: expected real numbers, got complex128"),
    ],
)
def test_rules_refuse_what_is_not_rows_of_reals(X: Array, error: type[Exception], message: str) -> None:
    with pytest.raises(error, match=message):
        ref.mean(X)


# Softmax regression


def problem(m: int, B: int, *, bias: bool = True, seed: int = 3) -> tuple[Array, Array, Array, Array]:
    rng = np.random.default_rng(seed)
    K, D, N = 4, 6, 40
    W = rng.standard_normal((m, K, D + bias))
    return W, rng.integers(0, 256, (N, D), dtype=np.uint8), rng.integers(0, K, N), rng.integers(0, N, (m, B))


@pytest.mark.parametrize("bias", [True, False])
@pytest.mark.parametrize("with_idx", [True, False])
def test_softmax_gradient_matches_central_differences(bias: bool, with_idx: bool) -> None:
    W, X, y, idx = problem(3, 8, bias=bias)
    options: dict[str, Any] = {"scale": 1 / 255, "bias": bias}
    batch = idx if with_idx else None
    G = ref.softmax_gradient(W, X, y, batch, **options)
    h = 1e-5
    numeric = np.empty_like(W)
    for entry in np.ndindex(*W.shape[1:]):
        E = np.zeros(W.shape[1:])
        E[entry] = h
        rise = ref.softmax_loss(W + E, X, y, batch, **options) - ref.softmax_loss(W - E, X, y, batch, **options)
        numeric[(slice(None), *entry)] = rise / (2 * h)
    np.testing.assert_allclose(G, numeric, atol=1e-9)


def test_softmax_loss_and_gradient_of_one_sample_by_hand() -> None:
    # One sample with logits (0, log 3): probabilities 1/4 and 3/4, label 0, feature 2 * 0.5, bias feature 1.
    W = np.array([[0.0, 0.0], [0.0, np.log(3.0)]])
    np.testing.assert_allclose(ref.softmax_loss(W, [[2.0]], [0], scale=0.5), np.log(4.0))
    G = ref.softmax_gradient(W, [[2.0]], [0], scale=0.5)
    np.testing.assert_allclose(G, [[-0.75, -0.75], [0.75, 0.75]])


def test_softmax_workers_are_independent_and_two_dimensions_are_one_worker() -> None:
    W, X, y, idx = problem(5, 7)
    G, F = ref.softmax_gradient(W, X, y, idx, scale=0.01), ref.softmax_loss(W, X, y, idx, scale=0.01)
    assert F.shape == (5,)
    for i in range(5):
        g = ref.softmax_gradient(W[i], X[idx[i]], y[idx[i]], scale=0.01)
        np.testing.assert_allclose(g, G[i], rtol=1e-13, atol=1e-15)
        np.testing.assert_allclose(ref.softmax_gradient(W[i], X, y, idx[i], scale=0.01), G[i], rtol=1e-13, atol=1e-15)
        f = ref.softmax_loss(W[i], X, y, idx[i : i + 1], scale=0.01)
        assert f.shape == ()
        np.testing.assert_allclose(f, F[i], rtol=1e-13)


def test_softmax_scale_multiplies_features_but_not_the_bias() -> None:
    W, X, y, idx = problem(2, 9)
    scaled = X.astype(np.float64) * 0.125
    np.testing.assert_allclose(
        ref.softmax_gradient(W, X, y, idx, scale=0.125), ref.softmax_gradient(W, scaled, y, idx), rtol=1e-13
    )
    with_ones = np.concatenate([scaled, np.ones((len(X), 1))], axis=1)
    np.testing.assert_allclose(
        ref.softmax_gradient(W, scaled, y, idx), ref.softmax_gradient(W, with_ones, y, idx, bias=False), rtol=1e-13
    )


@pytest.mark.parametrize("dtype", DTYPES)
def test_softmax_keeps_the_dtype_and_survives_huge_logits(dtype: str) -> None:
    W, X, y, idx = problem(2, 9)
    big = (W * 1e4).astype(dtype)
    G, F = ref.softmax_gradient(big, X, y, idx), ref.softmax_loss(big, X, y, idx)
    assert G.dtype == F.dtype == dtype
    assert np.isfinite(G).all()
    assert np.isfinite(F).all()
    assert (F > 0).any()
    np.testing.assert_allclose(G.sum(axis=1), 0, atol=1e-4 * np.abs(G).max())
    W32 = W.astype(dtype)
    tolerance = 2e-5 if dtype == "float32" else 1e-12
    exact = ref.softmax_gradient(W32.astype(np.float64), X, y, idx, scale=1 / 255)
    np.testing.assert_allclose(ref.softmax_gradient(W32, X, y, idx, scale=1 / 255), exact, atol=tolerance)


def test_softmax_predict_breaks_ties_to_the_lowest_class() -> None:
    w = np.array([[0.0, 1.0], [2.0, 0.0], [2.0, 0.0]])
    got = ref.softmax_predict(w, np.array([[0], [4], [1]], np.uint8), scale=0.5)
    assert got.dtype == np.int64
    assert got.tolist() == [0, 1, 0]
    assert ref.softmax_predict(w[:, :1], [[0], [4]], bias=False).tolist() == [0, 1]
    assert ref.softmax_accuracy(w, [[0], [4], [1]], [0, 2, 0], scale=0.5) == 2 / 3


# ADMM and RSA


@pytest.mark.parametrize("dtype", DTYPES)
def test_steps_by_hand_keep_dtype_and_inputs(dtype: str) -> None:
    x, g, eta, prev = (
        np.array(v, dtype) for v in ([[1, 2], [3, 4]], [[1, 0], [0, 1]], [[1, 0], [-1, 2]], [[0, 2], [1, 1]])
    )
    x0 = np.array([1, 5], dtype)
    kept = [a.copy() for a in (x, g, eta, prev, x0)]
    results = {
        "worker": (ref.admm_worker_step(x, g, eta, prev, alpha=0.5), [[-0.5, 3], [4.5, 2]]),
        "dual": (ref.admm_dual_step(eta, x, x0, beta=2.0, lam=1.5), [[1, -1.5], [1, 1]]),
        "master": (ref.admm_master_step(x0, eta, prev, alpha=0.5, rho=0.5), [0.25, 4.25]),
        "rsa worker": (ref.rsa_worker_step(x, g, x0, alpha=0.5, lam=4.0), [[0.5, 4], [1, 5.5]]),
        "rsa master": (ref.rsa_master_step(x0, x, alpha=0.5, lam=4.0, rho=0.5), [2.75, -0.25]),
    }
    for label, (got, expected) in results.items():
        assert got.dtype == dtype, label
        np.testing.assert_array_equal(got, expected, err_msg=label)
    assert all(same_bits(a, b) for a, b in zip((x, g, eta, prev, x0), kept, strict=True))


def test_dual_step_lands_on_the_bound_of_its_type() -> None:
    eta = ref.admm_dual_step(np.zeros((1, 3), np.float32), [[1e30, -np.inf, 0.1]], [0, 0, 0], beta=1.0, lam=0.1)
    assert eta.tolist() == [[np.float32(0.1), -np.float32(0.1), np.float32(0.05)]]


def test_nan_propagates_and_overflow_is_silent() -> None:
    nan, inf = np.nan, np.inf
    assert np.isnan(ref.admm_dual_step([[nan, 0.0]], [[0.0, nan]], [0.0, 0.0], beta=1.0, lam=0.5)).all()
    assert np.isnan(ref.admm_worker_step([[0.0]], [[inf]], [[-inf]], [[0.0]], alpha=1.0)).all()
    assert np.isnan(ref.admm_master_step([0.0], [[inf], [-inf]], [[0.0], [0.0]], alpha=1.0, rho=0.0)).all()
    worker = ref.rsa_worker_step([[nan, 1.0, inf]], [[0.0] * 3], [0.0, nan, inf], alpha=1.0, lam=1.0)
    assert np.isnan(worker).all()
    master = ref.rsa_master_step([0.0, 0.0, 0.0], [[nan, inf, -inf], [1.0, 1.0, 1.0]], alpha=1.0, lam=0.5, rho=1.0)
    np.testing.assert_array_equal(master, [nan, 1.0, 0.0])
    big = np.array([[3e38]], np.float32)
    assert ref.admm_worker_step(big, -big, 0 * big, 0 * big, alpha=1.0).tolist() == [[inf]]


@pytest.mark.parametrize("seed", [0, 1, 2])
def test_simplified_admm_is_the_three_variable_admm(seed: int) -> None:
    rng = np.random.default_rng(seed)
    m, d, beta, lam, rho = 5, 7, 0.7, 0.3, 0.1
    curvature, target = rng.uniform(0.2, 2.0, (m, d)), rng.standard_normal((m, d))
    x, x0 = rng.standard_normal((m, d)), rng.standard_normal(d)
    eta = eta_prev = np.zeros((m, d))
    full = ref.ThreeVariableADMM(x, x0, beta=beta, lam=lam)
    bound, free = 0, 0
    for k in range(200):
        noise = 0.1 * rng.standard_normal((m, d))
        alpha, alpha0 = 1 / (0.1 * k + 2 + beta), 1 / (0.1 * k + m * beta)
        full.step(curvature * (full.x - target) + noise, rho * full.x0, alpha=alpha, alpha0=alpha0)
        gradient = curvature * (x - target) + noise
        x0 = ref.admm_master_step(x0, eta, eta_prev, alpha=alpha0, rho=rho)
        x = ref.admm_worker_step(x, gradient, eta, eta_prev, alpha=alpha)
        eta, eta_prev = ref.admm_dual_step(eta, x, x0, beta=beta, lam=lam), eta
        bound += int((np.abs(eta) == lam).sum())
        free += int((np.abs(eta) < lam).sum())
        for got, expected in ((full.x, x), (full.x0, x0), (full.eta_master, eta), (full.eta_worker, -eta)):
            np.testing.assert_allclose(got, expected, rtol=0, atol=1e-13)
    assert min(bound, free) > 0.1 * 200 * m * d


def test_z_update_minimizes_the_augmented_lagrangian() -> None:
    rng = np.random.default_rng(5)
    beta, lam = 0.7, 0.3
    admm = ref.ThreeVariableADMM(rng.standard_normal((3, 2)), rng.standard_normal(2), beta=beta, lam=lam)
    for _ in range(3):
        old_master, old_worker = admm.eta_master, admm.eta_worker
        admm.step(rng.standard_normal((3, 2)), rng.standard_normal(2), alpha=0.3, alpha0=0.2)

        def objective(z_master: Array, z_worker: Array, duals: tuple[Array, Array] = (old_master, old_worker)) -> float:
            gap0, gap = z_master - admm.x0, z_worker - admm.x
            smooth = duals[0] * gap0 + duals[1] * gap + beta / 2 * (gap0**2 + gap**2)
            return float((lam * np.abs(z_worker - z_master) + smooth).sum())

        best = objective(admm.z_master, admm.z_worker)
        for size in (1e-4, 1e-2, 1.0):
            for _ in range(50):
                move = size * rng.standard_normal((2, 3, 2))
                assert objective(admm.z_master + move[0], admm.z_worker + move[1]) > best
                # Along z(0,i) = z(i,0) the kink of the TV norm gives no slack, so this is the sharper test.
                assert objective(admm.z_master + move[0], admm.z_worker + move[0]) > best


@pytest.mark.slow
@pytest.mark.parametrize(
    ("method", "attack", "limit"),
    [
        ("admm", "small", 3 / 8),
        ("admm", "large", 1 / 2),
        ("rsa", "small", 1 / 4),
        ("rsa", "large", 1 / 2),
    ],
)
def test_example_of_the_paper_reaches_its_limit(method: str, attack: str, limit: float) -> None:
    """Example ``ex``: two regular workers with F' = (x - 1)/2, one Byzantine, f0 = x^2/2."""
    lam, beta, eps = 0.5, 1.0, 0.5

    def offset(k: int) -> float:
        return eps / max(k * (k + 1), 1) if attack == "small" else 4 * lam / beta * (-1) ** k

    x0, x = np.zeros(1), np.ones((2, 1))
    eta = eta_prev = np.zeros((3, 1))
    for k in range(20_000):
        alpha0, alpha = 1 / (k / 8 + 3), 1 / (k / 8 + 1)
        g = (x - 1) / 2
        if method == "admm":
            x0 = ref.admm_master_step(x0, eta, eta_prev, alpha=alpha0, rho=1.0)
            x = ref.admm_worker_step(x, g, eta[:2], eta_prev[:2], alpha=alpha)
            sent = np.concatenate([x, [x0 - offset(k + 1)]])
            eta, eta_prev = ref.admm_dual_step(eta, sent, x0, beta=beta, lam=lam), eta
        else:
            sent = np.concatenate([x, [x0 - offset(k)]])
            x = ref.rsa_worker_step(x, g, x0, alpha=alpha, lam=lam)
            x0 = ref.rsa_master_step(x0, sent, alpha=alpha0, lam=lam, rho=1.0)
    np.testing.assert_allclose(x0, limit, atol=5e-4)
    np.testing.assert_allclose(x, limit, atol=5e-4)
