"""Hessians of linear models times vectors: the twins, differences of gradients, symmetry, limits, wrong calls."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
import pytest

from byzadmm import kernels, reference
from support.arrays import same_bits

Array = npt.NDArray[Any]

FAMILIES = ("softmax", "logistic", "least_squares")
#: Workers, classes, features, samples: up to several parts of a worker's samples.
SHAPES = [(1, 1, 1, 1), (2, 3, 7, 31), (3, 2, 8, 32), (2, 10, 33, 65), (2, 4, 37, 513), (1, 3, 5, 9001)]
TOLERANCE = {"float32": 2e-5, "float64": 1e-13}


def problem(family: str, shape: tuple[int, int, int, int], dtype: str, bias: bool) -> tuple[Array, Array, Array, Array]:
    m, K, D, B = shape
    rng = np.random.default_rng(sum(shape))
    size = (2, m, K, D + bias) if family == "softmax" else (2, m, D + bias)
    W, V = rng.standard_normal(size).astype(dtype)
    return W, V, rng.integers(0, 256, (70, D)).astype(rng.choice(["uint8", "float32"])), rng.integers(0, 70, (m, B))


@pytest.mark.parametrize("family", FAMILIES)
def test_the_twin(family: str, dtype: str, threads: int) -> None:
    product, exact = (getattr(module, f"{family}_hessian_product") for module in (kernels, reference))
    for shape in SHAPES:
        for bias in (True, False):
            W, V, X, idx = problem(family, shape, dtype, bias)
            for batch in (idx, None):
                case, options = f"{family} {shape} {bias} {batch is None}", {"scale": 1 / 255, "bias": bias}
                H = product(W, V, X, batch, threads=threads, **options)
                assert (H.dtype, H.shape) == (dtype, W.shape), case
                expected = exact(W.astype(float), V.astype(float), X, batch, **options)
                scale = max(1.0, float(np.abs(expected).max()))
                np.testing.assert_allclose(H, expected, atol=TOLERANCE[dtype] * scale, rtol=0, err_msg=case)
            assert same_bits(product(W[0], V[0], X, idx[0], **options), product(W, V, X, idx, **options)[0]), case
            out = np.empty_like(W)
            assert product(W, V, X, idx, out=out, **options) is out


@pytest.mark.parametrize("family", FAMILIES)
def test_differences_of_gradients_and_symmetry(family: str) -> None:
    for bias in (True, False):
        W, V, X, idx = problem(family, (2, 3, 6, 40), "float64", bias)
        y, options = np.arange(70) % 2, {"scale": 1 / 255, "bias": bias}
        product, gradient = (getattr(kernels, f"{family}_{name}") for name in ("hessian_product", "gradient"))
        h = 1e-5
        rise = gradient(W + h * V, X, y, idx, **options) - gradient(W - h * V, X, y, idx, **options)
        H = product(W, V, X, idx, **options)
        np.testing.assert_allclose(H, rise / (2 * h), atol=1e-9, err_msg=f"{family} {bias}")
        U = V[::-1] ** 2 - 1  # <U, H V> = <H U, V>, and <V, H V> >= 0
        axes = tuple(range(1, W.ndim))
        np.testing.assert_allclose((U * H).sum(axes), (product(W, U, X, idx, **options) * V).sum(axes), rtol=1e-12)
        assert np.all((V * H).sum(axes) >= 0)


def test_the_same_vector_for_every_class_is_in_the_null_space_of_softmax(dtype: str) -> None:
    W, V, X, idx = problem("softmax", (2, 5, 9, 40), dtype, True)
    V[:] = V[:, :1]
    assert np.abs(kernels.softmax_hessian_product(W, V, X, idx, scale=1 / 255)).max() < 10 * np.finfo(dtype).eps


def test_extreme_models(dtype: str) -> None:
    """Where a probability is 0 or 1 the curvature is 0; a NaN stays in its own worker."""
    X, V = np.ones((3, 1)), np.ones((2, 2), dtype)
    for value in (1e4, -1e4, float(np.finfo(dtype).max), np.inf):
        W = np.array([[value, 0.0], [0.0, 0.0]], dtype)
        np.testing.assert_array_equal(kernels.logistic_hessian_product(W, V, X), [[0, 0], [0.5, 0.5]])
    W[0, 0] = np.nan
    H = kernels.logistic_hessian_product(W, V, X)
    assert np.isnan(H[0]).all()
    assert np.isfinite(H[1]).all()
    sure = np.array([[1e4, 0.0], [-1e4, 0.0]], dtype)
    np.testing.assert_array_equal(kernels.softmax_hessian_product(sure, V, X), np.zeros((2, 2)))


def test_errors() -> None:
    W, X = np.zeros((2, 3)), np.zeros((4, 2))
    with pytest.raises(ValueError, match=r"V: expected shape \(2, 3\), got \(3,\)"):
        kernels.logistic_hessian_product(W, np.zeros(3), X)
    with pytest.raises(ValueError, match=r"W: expected shape \(m, K, D\+1\) or \(K, D\+1\), got \(3,\)"):
        kernels.softmax_hessian_product(np.zeros(3), np.zeros(3), X)
    with pytest.raises(ValueError, match=r"idx: expected indices in \[0, 4\), got 4"):
        kernels.least_squares_hessian_product(W, W, X, [[4], [0]])
    with pytest.raises(ValueError, match=r"out: "):
        kernels.logistic_hessian_product(W, W, X, out=np.zeros((2, 2)))
