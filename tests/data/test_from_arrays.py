"""Features from arrays: types, shapes, scales, and what is refused."""

from __future__ import annotations

import math
from fractions import Fraction
from typing import Any

import numpy as np
import pytest

from byzadmm import datasets

X = np.array([[0.0, 5.0, 2.0], [4.0, 5.0, 6.0]])
Y = np.array([0, 1])


def test_from_arrays_shares_memory_and_infers_classes() -> None:
    data = datasets.from_arrays(X, Y, X, np.array([2, 0]))
    assert data.train_x is X
    assert (data.n_classes, data.scale, data.name) == (3, 1.0, "custom")
    assert datasets.from_arrays(X, Y, X, Y, n_classes=7, name="mine", scale=0.5).n_classes == 7


@pytest.mark.parametrize(
    ("dtype", "kept"),
    [
        (np.uint8, np.uint8),
        (bool, np.uint8),
        (np.float16, np.float32),
        (np.float32, np.float32),
        (np.float64, np.float64),
        (">f4", np.float32),
        (">f8", np.float64),
        (np.int8, np.float64),
        (np.int64, np.float64),
        (np.longdouble, np.float64),
    ],
)
def test_from_arrays_dtypes(dtype: Any, kept: Any) -> None:
    x = np.array([[0, 1], [1, 0]], dtype=dtype)
    data = datasets.from_arrays(x, Y, x[:, ::-1], Y)
    assert data.train_x.dtype == data.test_x.dtype == kept
    assert data.train_x.dtype.isnative
    assert data.test_x.flags.c_contiguous
    assert np.array_equal(data.test_x, [[1, 0], [0, 1]])


def test_from_arrays_mixed_dtypes_meet_in_float64() -> None:
    data = datasets.from_arrays(X.astype(np.uint8), Y, X.astype(np.float32), Y)
    assert data.train_x.dtype == data.test_x.dtype == np.float64


def test_scale_number_and_raw_leave_the_array() -> None:
    x = X.astype(np.uint8)
    for scale, factor in ((0.25, 0.25), (2, 2.0), ("raw", 1.0)):
        data = datasets.from_arrays(x, Y, x, Y, scale=scale)
        assert data.train_x is x
        assert data.scale == factor


@pytest.mark.parametrize("dtype", [np.uint8, np.float32, np.float64])
def test_scale_unit_uses_training_range(dtype: Any) -> None:
    test = np.array([[2, 9, 0], [8, 5, 4]], dtype=dtype)
    data = datasets.from_arrays(X.astype(dtype), Y, test, Y, scale="unit")
    assert data.train_x.dtype == data.test_x.dtype == np.float32
    assert data.scale == 1.0
    assert np.array_equal(data.train_x, [[0, 0, 0], [1, 0, 1]])
    assert np.array_equal(data.test_x, [[0.5, 0, 0], [1, 0, 0.5]])  # clipped; the constant column stays 0


@pytest.mark.parametrize("dtype", [np.uint8, np.float32, np.float64])
def test_scale_standard_uses_training_statistics(dtype: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("byzadmm.datasets._scaling._BLOCK", 7)
    rng = np.random.default_rng(0)
    x, test = (rng.integers(0, 200, size=(n, 5)).astype(dtype) for n in (50, 20))
    x[:, 2] = 3
    data = datasets.from_arrays(x, np.zeros(50, int), test, np.zeros(20, int), scale="standard")
    spread = x.std(axis=0, dtype=np.float64)
    spread[2] = np.inf
    assert data.train_x.dtype == np.float32
    np.testing.assert_allclose(data.train_x, (x - x.mean(axis=0, dtype=np.float64)) / spread, rtol=1e-5, atol=1e-6)
    np.testing.assert_allclose(data.test_x, (test - x.mean(axis=0, dtype=np.float64)) / spread, rtol=1e-5, atol=1e-6)


def extreme_columns(dtype: Any) -> np.ndarray[Any, Any]:
    """Columns of the largest, the smallest and the closest numbers, of wide spread, and a constant one."""
    info, rng = np.finfo(dtype), np.random.default_rng(5)
    u = rng.uniform(-1, 1, 12).astype(dtype)
    with np.errstate(under="ignore"):
        columns = [
            u * info.max,
            np.where(u > 0, info.max, -info.max),
            u * info.smallest_normal,
            rng.integers(-3, 4, 12) * info.smallest_subnormal,
            info.max / 2 * (1 + info.eps * rng.integers(0, 3, 12)),
            1 + info.eps * rng.integers(0, 3, 12),
            np.ldexp(dtype(1), np.linspace(info.minexp, info.maxexp - 1, 12).astype(int)),
            np.where(u > 0.8, info.max, info.smallest_subnormal),
            u * np.sqrt(info.smallest_normal),
            u * np.sqrt(info.max),
            np.full(12, info.max),
        ]
    return np.stack(columns, axis=1).astype(dtype)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("scale", ["unit", "standard"])
def test_scale_of_extreme_columns_is_that_of_exact_arithmetic(dtype: Any, scale: str) -> None:
    x = extreme_columns(dtype)
    y = np.zeros(len(x), int)
    data = datasets.from_arrays(x, y, x, y, scale=scale)
    for before, after in zip(x.T, data.train_x.T, strict=True):
        values = [Fraction(float(v)) for v in before]
        mean = sum(values) / len(values)
        variance = sum((v - mean) ** 2 for v in values) / len(values)
        low, spread = min(values), max(values) - min(values)
        for v, found in zip(values, after, strict=True):
            if not spread:
                exact = 0.0
            elif scale == "unit":
                exact = float((v - low) / spread)
            else:
                exact = math.copysign(math.sqrt((v - mean) ** 2 / variance), 1 if v > mean else -1)
            assert found == pytest.approx(exact, rel=1e-6, abs=1e-7)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_test_values_far_beyond_training_stay_finite(dtype: Any) -> None:
    x = extreme_columns(dtype)
    largest = np.finfo(dtype).max
    test = np.stack([np.full(x.shape[1], value, dtype) for value in (-largest, 0.0, largest)])
    labels = np.zeros(len(x), int), np.zeros(3, int)
    unit = datasets.from_arrays(x, labels[0], test, labels[1], scale="unit").test_x
    assert ((unit >= 0) & (unit <= 1)).all()
    standard = datasets.from_arrays(x, labels[0], test, labels[1], scale="standard").test_x
    assert np.isfinite(standard).all()
    assert (np.diff(standard, axis=0) >= 0).all()
    assert standard[2, 3] == np.finfo(np.float32).max  # a column of subnormals, beyond float32
    assert not unit[:, -1].any()  # constant in training
    assert not standard[:, -1].any()


def test_scale_symmetric_has_one_range_for_all_columns() -> None:
    x, test = np.array([[0, 51], [102, 255]], np.uint8), np.array([[0, 255]], np.uint8)
    data = datasets.from_arrays(x, [0, 1], test, [0], scale="symmetric")
    assert data.train_x == pytest.approx(np.array([[-1, -0.6], [-0.2, 1]]), abs=1e-7)
    assert (data.train_x.dtype, data.test_x.tolist(), data.scale) == (np.float32, [[-1, 1]], 1.0)
    far = datasets.from_arrays([[-1e308], [1e308]], [0, 1], [[-1.7e308], [1.7e308]], [0, 1], scale="symmetric")
    assert far.train_x.tolist() == far.test_x.tolist() == [[-1], [1]]
    assert not datasets.from_arrays(x * 0 + 7, [0, 1], test, [0], scale="symmetric").train_x.any()


def test_scale_standard_keeps_a_constant_column_at_zero() -> None:
    x = np.full((1000, 1), 0.1)  # its computed deviation is not exactly 0
    y = np.zeros(1000, int)
    assert not datasets.from_arrays(x, y, x, y, scale="standard").train_x.any()


@pytest.mark.parametrize(
    ("changes", "error", "message"),
    [
        ({"train_x": X[0]}, ValueError, r"train_x: expected a non-empty array \(samples, features\), got shape \(3,\)"),
        (
            {"test_x": X[:0]},
            ValueError,
            r"test_x: expected a non-empty array \(samples, features\), got shape \(0, 3\)",
        ),
        ({"test_x": X[:, :2]}, ValueError, "test_x: expected 3 columns as in train_x, got 2"),
        ({"train_x": X.astype(str)}, TypeError, "train_x: expected real numbers, got <U"),
        ({"train_x": X.astype(complex)}, TypeError, "train_x: expected real numbers, got complex128"),
        (
            {"test_x": [[0, 0, 0], [0, np.nan, 0]]},
            ValueError,
            "test_x: expected finite numbers, got nan at row 1, column 1",
        ),
        (
            {"train_x": np.full((2, 3), np.inf)},
            ValueError,
            "train_x: expected finite numbers, got inf at row 0, column 0",
        ),
        ({"train_y": [0]}, ValueError, r"train_y: expected shape \(2,\), got \(1,\)"),
        ({"train_y": [0, -1]}, ValueError, r"train_y: expected labels >= 0 \(or -1 and 1 alone\), got -1; pass task="),
        ({"train_y": [0, 2], "n_classes": 2}, ValueError, r"train_y: expected labels in \[0, 1\], got 2"),
        ({"n_classes": 0}, ValueError, "n_classes: expected an integer >= 1, got 0"),
        ({"name": 5}, TypeError, "name: expected a string, got int"),
        ({"scale": -1.0}, ValueError, "scale: expected a finite number > 0.0, got -1.0"),
    ],
)
def test_from_arrays_errors(changes: dict[str, Any], error: type[Exception], message: str) -> None:
    with pytest.raises(error, match=message):
        datasets.from_arrays(**{"train_x": X, "train_y": Y, "test_x": X, "test_y": Y, **changes})
