"""Models as rows: per-layer arrays flattened and back."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
import pytest

import byzadmm
from byzadmm import aggregate
from support.arrays import same_bits

Array = npt.NDArray[Any]
Settings = dict[str, Any]

DTYPES = ("float32", "float64")


def test_flatten_and_unflatten() -> None:
    rng = np.random.default_rng(0)
    models = [[rng.standard_normal((3, 2)), rng.standard_normal(4), np.float64(i).reshape(())] for i in range(5)]
    X, shapes = byzadmm.flatten(models)
    assert X.shape == (5, 11)
    assert shapes == ((3, 2), (4,), ())
    rows = byzadmm.unflatten(X, shapes)
    for mine, model in zip(rows, models, strict=True):
        assert all(same_bits(a, b) for a, b in zip(mine, model, strict=True))
    assert np.shares_memory(rows[1][0], X)
    layer = byzadmm.unflatten(aggregate.median(X), models[0])[0]
    np.testing.assert_array_equal(layer, np.median([m[0] for m in models], axis=0))
    small, _ = byzadmm.flatten([[np.ones(2, np.float32)], [np.ones(2, np.float32)]])
    assert small.dtype == np.float32


@pytest.mark.parametrize("place", [0, 1])
def test_an_integer_counter_does_not_widen_the_layers(place: int) -> None:
    model: list[Any] = [np.full((2, 2), 0.5, np.float32)]
    model.insert(place, np.int64(7))
    X, shapes = byzadmm.flatten([model, model])
    assert X.dtype == np.float32
    assert float(byzadmm.unflatten(X[0], shapes)[place]) == 7.0
    assert byzadmm.flatten([[*model, np.ones(1)]])[0].dtype == np.float64
    assert byzadmm.flatten([[np.int64(7)]])[0].dtype == np.float64


@pytest.mark.parametrize(
    ("models", "error", "message"),
    [
        (3, TypeError, "models: expected a list of lists of arrays, got int"),
        ("ab", TypeError, "models: expected a list of lists of arrays, got str"),
        ([None], TypeError, r"models\[0\]: expected a list of arrays, got NoneType"),
        ([[np.ones(2)], 3], TypeError, r"models\[1\]: expected a list of arrays, got int"),
        ([], ValueError, "models: expected at least one worker and one layer"),
        ([[]], ValueError, "models: expected at least one worker and one layer"),
        ([[np.ones(2)], []], ValueError, r"models\[1\]: expected 1 layers, got 0"),
        ([[np.ones(2)], [np.ones(3)]], ValueError, r"models\[1\]\[0\]: expected shape \(2,\), got \(3,\)"),
        ([[np.ones(2)], [np.ones(2, complex)]], TypeError, r"models\[1\]\[0\]: expected real numbers"),
    ],
)
def test_flatten_messages(models: Any, error: type[Exception], message: str) -> None:
    with pytest.raises(error, match=message):
        byzadmm.flatten(models)


def test_layers_may_come_one_by_one(torch: Any) -> None:
    model = torch.nn.Linear(2, 3)
    X, shapes = byzadmm.flatten([(layer.detach() for layer in model.parameters()) for _ in range(2)])
    assert isinstance(X, torch.Tensor)
    assert X.shape == (2, 9)
    assert shapes == ((3, 2), (3,))
    with pytest.raises(ValueError, match=r"^models\[0\]\[0\]: the tensor requires grad"):
        byzadmm.flatten([model.parameters()])


@pytest.mark.parametrize(
    ("shapes", "error", "message"),
    [
        ([2], TypeError, r"shapes\[0\]: expected a shape, or an array that has one, got int"),
        (2, TypeError, "shapes: expected a list of shapes, got int"),
        ([(1,), (1.5,)], TypeError, r"shapes\[1\]: expected an integer, got float"),
        ([(-1, -2)], ValueError, r"shapes\[0\]: expected an integer >= 0, got -1"),
    ],
)
def test_shapes_are_checked(shapes: Any, error: type[Exception], message: str) -> None:
    with pytest.raises(error, match=f"^{message}$"):
        byzadmm.unflatten(np.ones(2), shapes)


def test_unflatten_messages() -> None:
    with pytest.raises(ValueError, match=r"x: expected shape \(3,\) or \(n, 3\), got \(4,\)"):
        byzadmm.unflatten(np.ones(4), [(1, 2), (1,)])
