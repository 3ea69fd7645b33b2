"""The NumPy twins against mathematics, SciPy and the paper, so that they can be trusted as oracles."""

from __future__ import annotations

import ast
import doctest
import importlib
import pkgutil
from collections.abc import Callable
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest
from scipy import optimize, special, stats

import byzadmm.reference as ref
from byzadmm.reference import geometric
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
    assert roots <= {"__future__", "collections", "math", "numpy", "typing"}
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


def test_z_update_minimises_the_augmented_lagrangian() -> None:
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


# Rules


def exact_mean(X: Array, weights: Array | None = None) -> Array:
    w = [Fraction(1)] * len(X) if weights is None else [Fraction(float(v)) for v in weights]
    columns = [sum(a * Fraction(float(v)) for a, v in zip(w, column, strict=True)) / sum(w) for column in X.T]
    return np.array([float(c) for c in columns])


def headroom(X: Array) -> int:
    """Bits to take off so that the sums of NumPy and SciPy stay finite; none where they could vanish."""
    return 10 if np.abs(X).max() > 1 else 0


@pytest.mark.parametrize("X", INPUTS)
def test_mean_matches_exact_arithmetic(X: Array) -> None:
    columns = slice(0, 9)
    weights = np.random.default_rng(6).integers(1, 5, len(X)).astype(np.float64)
    for w in (None, weights):
        got = ref.mean(X, weights=w)
        assert got.dtype == X.dtype
        assert got.shape == X.shape[1:]
        scale = np.abs(X[:, columns].astype(np.float64)).max(axis=0)
        info = np.finfo(X.dtype)
        # float64 may be a rounding per row away, float32 is rounded once.
        slack = (2 * len(X) * np.finfo(np.float64).eps + info.eps) * scale + float(info.smallest_subnormal)
        assert (np.abs(got[columns].astype(np.float64) - exact_mean(X[:, columns], w)) <= slack).all()


@pytest.mark.parametrize("X", INPUTS)
def test_median_is_that_of_numpy(X: Array) -> None:
    ordered = np.sort(X, axis=0)
    low, high = ordered[(len(X) - 1) // 2], ordered[len(X) // 2]
    got = ref.median(X)
    bits = headroom(X)
    expected = np.ldexp(np.median(np.ldexp(X.astype(np.float64), -bits), axis=0), bits)
    np.testing.assert_allclose(got, expected.astype(X.dtype), rtol=2 * np.finfo(X.dtype).eps, atol=0)
    assert ((low <= got) & (got <= high)).all()
    np.testing.assert_array_equal(ref.median(X, even="low"), low)
    np.testing.assert_array_equal(ref.median(X, even="high"), high)
    assert got.dtype == X.dtype


@pytest.mark.parametrize("X", INPUTS)
def test_trimmed_mean_is_that_of_scipy(X: Array) -> None:
    n, bits = len(X), headroom(X)
    for f in sorted({0, min(1, (n - 1) // 2), (n - 1) // 2}):
        got = ref.trimmed_mean(X, f=f)
        # The excess keeps int(f/n * n) from falling to f - 1.
        expected = stats.trim_mean(np.ldexp(X.astype(np.float64), -bits), (f + 0.25) / n, axis=0)
        kept = np.sort(np.abs(X.astype(np.float64)), axis=0)[n - 1 - f]
        slack = (2 * n * np.finfo(np.float64).eps + np.finfo(X.dtype).eps) * kept + float(
            np.finfo(X.dtype).smallest_subnormal
        )
        assert (np.abs(got.astype(np.float64) - np.ldexp(expected, bits)) <= slack).all()
        assert got.dtype == X.dtype


def test_rules_near_the_largest_float() -> None:
    X = np.array([[1.7e308, -1.7e308], [1.6e308, 1.7e308]])
    for rule in (ref.mean, ref.median, lambda a: ref.trimmed_mean(a, f=0), ref.geometric_median):
        np.testing.assert_allclose(rule(X), [1.65e308, 0.0], rtol=1e-15)
    single = np.full((3, 2), 3.4e38, np.float32)
    assert same_bits(ref.mean(single), single[0])
    assert same_bits(ref.geometric_median(single), single[0])


def test_median_of_two_subnormals_is_not_halved_to_nothing() -> None:
    tiny = np.finfo(np.float64).smallest_subnormal
    assert ref.median([[tiny], [tiny]]).tolist() == [tiny]
    assert ref.median([[tiny], [3 * tiny]]).tolist() == [2 * tiny]


def test_trimmed_mean_is_not_a_sum_less_its_extremes() -> None:
    assert ref.trimmed_mean([[1e30], [1.0], [2.0], [3.0], [-1e20]], f=1).tolist() == [2.0]


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda X: ref.median(X, even="both"), "even: expected one of mid, low, high; got 'both'"),
        (lambda X: ref.trimmed_mean(X, f=2), r"f: expected an integer in \[0, 1\], got 2"),
        (lambda X: ref.trimmed_mean(X, f=-1), r"f: expected an integer in \[0, 1\], got -1"),
        (lambda X: ref.mean(X, weights=[1.0]), r"weights: expected shape \(4,\), got \(1,\)"),
        (lambda X: ref.mean(X, weights=[0.0] * 4), "weights: expected finite numbers >= 0 with a positive sum, got"),
        (lambda X: ref.mean(X, weights=[1.0, 1.0, 1.0, -1.0]), "weights: expected finite numbers >= 0"),
        (lambda X: ref.geometric_median(X, weights=[1.0, 1.0, 1.0, np.inf]), "weights: expected finite numbers >= 0"),
    ],
)
def test_rules_refuse_wrong_values(call: Callable[[Array], Array], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        call(np.zeros((4, 2)))


# Geometric median


def objective(X: Array, z: Array, w: Array | None = None) -> float:
    distance = np.linalg.norm(X - z, axis=1)
    return float(distance.sum() if w is None else w @ distance)


@pytest.mark.parametrize("X", INPUTS)
def test_geometric_median_meets_its_optimality_condition(X: Array) -> None:
    z = ref.geometric_median(X)
    assert z.dtype == X.dtype
    # Rounding z itself moves every unit vector by about eps |z| / distance, which no algorithm can undo.
    wide, point = X.astype(np.float64), z.astype(np.float64)
    exponent = -int(np.frexp(np.abs(wide).max())[1])
    rows, centre = np.ldexp(wide, exponent), np.ldexp(point, exponent)
    distance = np.linalg.norm(rows - centre, axis=1)
    nearest = distance[distance > 0].min(initial=np.inf)
    smallest = np.ldexp(float(np.finfo(X.dtype).smallest_subnormal), exponent) * np.sqrt(X.shape[1])
    rounding = np.finfo(X.dtype).eps * np.linalg.norm(centre) + smallest
    assert ref.geometric_median_residual(X, z) <= 1.01e-6 + 2 * rounding / nearest


@pytest.mark.parametrize("seed", range(12))
def test_geometric_median_is_the_minimiser_scipy_finds(seed: int) -> None:
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((int(rng.integers(3, 12)), int(rng.integers(2, 5))))
    w = rng.uniform(0.5, 2.0, len(X)) if seed % 2 else None
    z = ref.geometric_median(X, weights=w, tol=1e-12)
    found = optimize.minimize(
        lambda p: objective(X, p, w),
        X.mean(axis=0),
        method="Nelder-Mead",
        options={"xatol": 1e-9, "fatol": 1e-13, "maxiter": 20_000, "maxfev": 20_000},
    )
    assert objective(X, z, w) <= found.fun * (1 + 1e-14)
    np.testing.assert_allclose(z, found.x, atol=1e-6)


@pytest.mark.parametrize("scale", [1e-12, 1e-6, 1.0, 1e6, 1e12])
def test_geometric_median_has_no_scale_and_follows_shifts(scale: float) -> None:
    X = np.random.default_rng(8).standard_normal((9, 4))
    z = ref.geometric_median(X, tol=1e-13)
    np.testing.assert_allclose(ref.geometric_median(X * scale, tol=1e-13), z * scale, rtol=1e-11)
    np.testing.assert_allclose(ref.geometric_median(X + 5.0, tol=1e-13), z + 5.0, rtol=1e-11)
    # Trap 9: an outlier moves the mean by scale * 1e5 and the geometric median by little.
    spoiled = np.concatenate([X, np.full((1, 4), 1e6)]) * scale
    assert np.linalg.norm(ref.geometric_median(spoiled) - z * scale) < 1.0 * scale


@pytest.mark.parametrize("scale", [1e-300, 1e-12, 1.0, 1e12, 1e300])
def test_geometric_median_is_exact_at_rows(scale: float) -> None:
    line = np.array([[1.0, 2.0, 3.0], [4.0, 5.0, 6.0], [7.0, 8.0, 9.0]]) * scale
    assert same_bits(ref.geometric_median(line), line[1])
    cross = np.array([[1.0, 0.0], [-1.0, 0.0], [0.1, 0.2], [0.1, 3.0], [0.1, -2.0]]) * scale
    X = np.concatenate([cross, cross[2:3]])
    assert same_bits(ref.geometric_median(X), cross[2])
    assert ref.geometric_median_residual(X, cross[2]) == 0.0
    majority = np.random.default_rng(9).standard_normal((7, 5)) * scale
    majority[3:] = majority[3]
    assert same_bits(ref.geometric_median(majority), majority[3])


def test_geometric_median_where_it_is_not_unique_is_the_midpoint() -> None:
    np.testing.assert_array_equal(ref.geometric_median([[0.0, 2.0], [1.0, 4.0]]), [0.5, 3.0])
    np.testing.assert_array_equal(ref.geometric_median([[0.0, 2.0], [1.0, 4.0]], weights=[2.0, 1.0]), [0.0, 2.0])
    np.testing.assert_array_equal(
        ref.geometric_median([[0.0, 2.0], [9.0, 9.0], [1.0, 4.0]], weights=[1, 0, 1]), [0.5, 3.0]
    )
    np.testing.assert_array_equal(ref.geometric_median([[0.0], [3.0], [10.0], [4.0]]), [3.5])
    np.testing.assert_array_equal(ref.geometric_median([[0.0], [0.0], [3.0], [3.0]]), [1.5])


def test_geometric_median_weights_are_repetitions() -> None:
    rng = np.random.default_rng(10)
    X, w = rng.standard_normal((6, 3)), np.array([1, 2, 0, 1, 1, 2])
    got = ref.geometric_median(X, weights=w, tol=1e-13)
    np.testing.assert_allclose(got, ref.geometric_median(np.repeat(X, w, axis=0), tol=1e-13), atol=1e-11)
    np.testing.assert_allclose(got, ref.geometric_median(X, weights=w * 1e307, tol=1e-13), atol=1e-11)


@pytest.mark.parametrize("gap", [1e-2, 1e-4])
def test_geometric_median_close_to_a_row_is_reached(gap: float) -> None:
    # Weiszfeld's map alone contracts by about 1 - gap here.
    angle = np.deg2rad([0.0, 120.0, 240.0])
    X = np.concatenate([np.stack([np.cos(angle), np.sin(angle)], axis=1) * [1.0, 1.0], [[2.0, 0.0]], [[0.0, 0.0]]])
    w = np.array([1.0, 1.0, 1.0, 1.0 + gap, 1.0])
    z = ref.geometric_median(X, weights=w, tol=1e-13)
    assert 0.1 * gap < np.linalg.norm(z) < 10 * gap
    assert ref.geometric_median_residual(X, z, w) < 1e-12


def test_geometric_median_of_nearly_collinear_rows_and_of_a_far_tight_group() -> None:
    rng = np.random.default_rng(11)
    X = rng.standard_normal((8, 6)) * 10.0 ** np.array([8, 3, 0, -2, -5, -8])
    assert ref.geometric_median_residual(X, ref.geometric_median(X)) <= 1e-6
    far = 1.0 + np.ldexp(rng.integers(-99, 100, (7, 3)).astype(np.float64), -40)
    z = ref.geometric_median(far, tol=1e-10)
    near = ref.geometric_median(far - 1.0, tol=1e-10)
    np.testing.assert_allclose(z - 1.0, near, rtol=0, atol=1.2e-16)


def test_geometric_median_stops_at_max_iter_and_at_rounding() -> None:
    X = np.random.default_rng(12).standard_normal((9, 4))
    start = ref.geometric_median(X, max_iter=0)
    assert any(same_bits(start, row) for row in X)
    residuals = [ref.geometric_median_residual(X, ref.geometric_median(X, max_iter=k, tol=0.0)) for k in (0, 1, 40)]
    assert residuals[0] > residuals[1] > residuals[2]
    assert residuals[2] < 1e-14


@pytest.mark.parametrize("line", [[-1.0, 1.0], [-1.0, 1.0, 2.0], [-3.0, -1.0, 1.0, 5.0, 9.0], [1e-9, 1.0, -7.0]])
def test_newton_step_without_curvature_is_none_or_goes_down(line: list[float]) -> None:
    X, w, z = np.array(line)[:, None], np.ones(len(line)), np.zeros(1)
    step = geometric._newton_step(X, z, w, geometric._Pull(X, z, w))
    assert step is None or objective(X, z + step) <= objective(X, z)


def test_newton_step_is_none_where_it_is_not_finite(monkeypatch: pytest.MonkeyPatch) -> None:
    X, w, z = np.array([[1.0, 0.0], [0.0, 1.0], [-2.0, 1.0]]), np.ones(3), np.zeros(2)
    here = geometric._Pull(X, z, w)
    assert geometric._newton_step(X, z, w, here) is not None
    monkeypatch.setattr(np.linalg, "solve", lambda a, b: np.full_like(b, np.inf))
    with np.errstate(invalid="ignore"):
        assert geometric._newton_step(X, z, w, here) is None


def test_geometric_median_residual_by_hand() -> None:
    X = [[0.0, 0.0], [3.0, 4.0], [-3.0, 4.0]]
    # Unit vectors (0.6, 0.8) and (-0.6, 0.8) add up to 1.6, the row itself bears 1.
    assert ref.geometric_median_residual(X, [0.0, 0.0]) == pytest.approx(0.6 / 3, rel=1e-15)
    assert ref.geometric_median_residual(X, [0.0, 0.0], [2.0, 1.0, 1.0]) == 0.0
    assert ref.geometric_median_residual(X, [0.0, 4.0]) == pytest.approx(1 / 3, rel=1e-15)


# Philox


def philox_block(key: int, counter: tuple[int, int, int, int]) -> list[int]:
    """Philox4x64-10 from its definition, in Python integers."""
    mask = 2**64 - 1
    c0, c1, c2, c3 = counter
    k0, k1 = key, 0
    for _ in range(10):
        p0, p1 = 0xD2E7470EE14C6C93 * c0, 0xCA5A826395121157 * c2
        c0, c1, c2, c3 = (p1 >> 64) ^ c1 ^ k0, p1 & mask, (p0 >> 64) ^ c3 ^ k1, p0 & mask
        k0, k1 = (k0 + 0x9E3779B97F4A7C15) & mask, (k1 + 0xBB67AE8584CAA73B) & mask
    return [c0, c1, c2, c3]


@pytest.mark.parametrize("seed", [0, 1, 2**64 - 1])
@pytest.mark.parametrize("stream", [0, 7, 2**64 - 1, (3,), (1, 2), (0, 0, 5), (2**64 - 1, 2**64 - 1, 2**64 - 1)])
def test_philox_words_follow_the_definition(seed: int, stream: int | tuple[int, ...]) -> None:
    parts = stream if isinstance(stream, tuple) else (stream,)
    s0, s1, s2 = (*parts, 0, 0)[:3]
    expected = [word for block in range(3) for word in philox_block(seed, (block, s0, s1, s2))]
    got = ref.philox_words(10, seed=seed, stream=stream)
    assert got.dtype == np.uint64
    assert got.tolist() == expected[:10]


def test_philox_words_are_those_of_numpy_one_block_on() -> None:
    raw = np.random.Philox(key=[12345, 0], counter=[0, 6, 7, 8]).random_raw(8)
    assert ref.philox_words(12, seed=12345, stream=(6, 7, 8)).tolist()[4:] == raw.tolist()


@pytest.mark.parametrize("high", [1, 2, 10, 60_000, 2**31, 2**32 - 1, 2**32, 2**32 + 1, 3**39, 2**63 - 1, 2**63])
def test_philox_integers_are_the_exact_upper_product(high: int) -> None:
    words = ref.philox_words(60, seed=5, stream=(1, 2)).tolist()
    got = ref.philox_integers((3, 20), high=high, seed=5, stream=(1, 2))
    assert got.dtype == np.int64
    assert got.shape == (3, 20)
    assert got.ravel().tolist() == [w * high >> 64 for w in words]


def test_philox_integers_are_uniform() -> None:
    counts = np.bincount(ref.philox_integers(20_000, high=10, seed=3), minlength=10)
    assert stats.chisquare(counts).pvalue > 1e-3


@pytest.mark.parametrize("dtype", DTYPES)
def test_philox_normal_is_built_from_its_bits(dtype: str) -> None:
    words = ref.philox_words(6, seed=9, stream=4).tolist()
    expected = []
    for e in range(5):
        if dtype == "float64":
            bits, top = words[e], 63
            p = (((bits & (2**63 - 1)) >> 11) + 0.5) * 2.0**-53
        else:
            bits, top = (words[e // 2] >> 32 * (e % 2)) & (2**32 - 1), 31
            p = ((bits & (2**31 - 1)) + 0.5) * 2.0**-32
        expected.append((-1 if bits >> top else 1) * -special.ndtri(p))
    got = ref.philox_normal(5, seed=9, stream=4, dtype=dtype)
    assert got.dtype == dtype
    np.testing.assert_allclose(got, expected, rtol=1e-14 if dtype == "float64" else 1e-7)


@pytest.mark.parametrize("dtype", DTYPES)
def test_philox_normal_is_normal(dtype: str) -> None:
    z = ref.philox_normal((200, 500), seed=2, stream=(1, 0, 3), dtype=dtype)
    assert z.shape == (200, 500)
    sample = z.ravel().astype(np.float64)
    assert stats.kstest(sample, "norm").pvalue > 1e-3
    n = sample.size
    moments = [np.mean(sample**p) for p in (1, 2, 3, 4)]
    spread = np.sqrt(np.array([1, 2, 15, 96]) / n)
    assert (np.abs(np.array(moments) - [0, 1, 0, 3]) < 4 * spread).all()
    assert abs(np.corrcoef(sample[:-1], sample[1:])[0, 1]) < 4 / np.sqrt(n)


def test_ndtri_is_that_of_scipy() -> None:
    p = np.concatenate(
        [
            np.linspace(0.001, 0.999, 4001),
            np.array([0.075, 0.925, 0.5, np.exp(-25.0)]),
            np.logspace(-300, -1, 2001),
            1 - np.logspace(-15, -1, 501),
            (np.arange(50) + 0.5) * 2.0**-53,
        ]
    )
    np.testing.assert_allclose(ref.ndtri(p), special.ndtri(p), rtol=1e-14, atol=1e-15)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: ref.philox_words(1, seed=-1), r"seed: expected an integer in \[0, 2\^64\), got -1"),
        (
            lambda: ref.philox_words(1, seed=2**64),
            r"seed: expected an integer in \[0, 2\^64\), got 18446744073709551616",
        ),
        (lambda: ref.philox_words(1, seed=0, stream=(0, -2)), r"stream: expected an integer in \[0, 2\^64\), got -2"),
        (lambda: ref.philox_words(1, seed=0, stream=(0, 0, 0, 0)), "stream: expected at most 3 words, got 4"),
        (lambda: ref.philox_integers(1, high=0, seed=0), r"high: expected an integer in \[1, 2\^63\], got 0"),
        (
            lambda: ref.philox_integers(1, high=2**63 + 1, seed=0),
            r"high: expected an integer in \[1, 2\^63\], got 9223",
        ),
        (lambda: ref.philox_normal(1, seed=0, dtype="float16"), "dtype: expected float32 or float64, got float16"),
    ],
)
def test_philox_refuses_wrong_values(call: Callable[[], Array], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        call()
