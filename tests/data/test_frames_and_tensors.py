"""Data in frames, series and tensors; nothing is imported that the user has not imported."""

from __future__ import annotations

import subprocess
import sys
from types import ModuleType
from typing import Any

import numpy as np
import pytest

from byzadmm import datasets

X = np.arange(8.0).reshape(4, 2)
Y = [0, 1, 1, 0]


def from_features(x: Any, test_x: Any = None) -> datasets.Dataset:
    return datasets.from_arrays(x, Y, x if test_x is None else test_x, Y)


def test_images_are_flattened() -> None:
    for shape in ((28, 28), (3, 32, 32), (2, 1, 3, 2)):
        x = np.random.default_rng(0).integers(0, 256, (4, *shape), np.uint8)
        data = from_features(x)
        assert data.train_x.dtype == np.uint8, shape
        assert np.array_equal(data.train_x, x.reshape(4, -1)), shape
        assert np.shares_memory(data.train_x, x), shape
    listed = from_features(list(x))
    assert np.array_equal(listed.train_x, data.train_x)


def test_refused_features() -> None:
    class Sparse:
        def toarray(self) -> Any:
            raise AssertionError("a table of zeros may not fit")

    bad = np.zeros((4, 2, 3))
    bad[2, 1, 0] = np.nan
    cases: list[tuple[Any, Any, type[Exception], str]] = [
        (
            np.zeros((4, 3, 8, 8)),
            np.zeros((4, 8, 8, 3)),
            ValueError,
            "test_x: expected samples of shape (3, 8, 8) as in",
        ),
        (
            np.zeros((4, 8, 8)),
            np.zeros((4, 64)),
            ValueError,
            "expected samples of shape (8, 8) as in train_x, got (64,)",
        ),
        (bad, None, ValueError, "train_x: expected finite numbers, got nan at row 2, position (1, 0)"),
        ([np.zeros(2), np.zeros(3)], None, ValueError, "train_x[1]: expected shape (2,) as before, got (3,)"),
        ([[1, 2], [3]], None, TypeError, "train_x: expected an array of real numbers, got list"),
        (Sparse(), None, TypeError, "train_x: expected a dense array, got Sparse; pass train_x.toarray()"),
        (np.ma.array(X, mask=X > 3), None, TypeError, "train_x: expected an array without a mask"),
        (None, None, TypeError, "train_x: expected real numbers, got NoneType"),
        ((row for row in X), None, TypeError, "train_x: expected real numbers, got generator"),
        (X.astype(object), None, TypeError, "got object; if they are numbers, pass train_x.astype(float)"),
    ]
    for train, test, error, message in cases:
        with pytest.raises(error) as caught:
            from_features(train, test)
        assert message in str(caught.value)


def test_nothing_is_imported() -> None:
    code = (
        "import sys; from byzadmm import datasets; datasets.from_arrays([[1.0], [2.0]], ['a', 'b'], [[1.0]], ['a']);"
        "datasets.from_torch([([1.0], 0), ([2.0], 1)], [([2.0], 1)]);"
        "print({'pandas', 'torch', 'torchvision', 'PIL'} & set(sys.modules))"
    )
    ended = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert ended.stdout == "set()\n"


# --- pandas ---------------------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def pandas() -> ModuleType:
    return pytest.importorskip("pandas")  # type: ignore[no-any-return]


def test_frames(pandas: Any) -> None:
    frame = pandas.DataFrame({"age": [1, 2, 3, 4], "size": [0.5, 1, 2, 3], "old": [False, False, True, True]})
    expected = [[1, 0.5, 0], [2, 1, 0], [3, 2, 1], [4, 3, 1]]
    nullable = frame.astype({"age": "Int64", "size": "Float64", "old": "boolean"})
    for x in (frame, nullable, frame.set_index(pandas.Index([9, 9, 0, -1]))):
        data = from_features(x)
        assert data.train_x.tolist() == expected
        assert data.train_x.dtype == np.float64
    assert from_features(frame, np.array(expected)).test_x.tolist() == expected
    for kind, kept in (("uint8", np.uint8), ("float32", np.float32), ("bool", np.uint8), ("int16", np.float64)):
        assert from_features(frame[["age", "old"]].astype(kind)).train_x.dtype == kept, kind
    twice = pandas.concat([frame, frame], axis=1)  # the same labels twice
    assert from_features(twice).train_x.tolist() == [row + row for row in expected]


def test_refused_frames(pandas: Any) -> None:
    frame = pandas.DataFrame({"age": [1, 2, 3, 4], "size": [0.5, 1, 2, 3]})
    cases: list[tuple[Any, type[Exception], str]] = [
        (["a", "b", "c", "d"], TypeError, "encode it, as pandas.get_dummies does, or leave it out"),
        (pandas.Series([1, "b", 2, 3], dtype=object), TypeError, "column 'new': expected real numbers, got object"),
        (pandas.Categorical([1, 2, 1, 2]), TypeError, "column 'new': expected real numbers, got category"),
        (pandas.date_range("2020", periods=4), TypeError, "column 'new': expected real numbers, got datetime64"),
        ([1.0, np.nan, 2.0, 3.0], ValueError, "column 'new': expected no missing values, got nan at row 1"),
        (
            pandas.array([1, 2, None, 4], "Int64"),
            ValueError,
            "column 'new': expected no missing values, got <NA> at row 2",
        ),
        (pandas.array([True, None, True, True], "boolean"), ValueError, "'new': expected no missing values, got <NA>"),
        ([1.0, np.inf, 2.0, 3.0], ValueError, "expected finite numbers, got inf at row 1, column 2"),
    ]
    for column, error, message in cases:
        with pytest.raises(error) as caught:
            from_features(frame.assign(new=column))
        assert message in str(caught.value), message
        assert str(caught.value).startswith("train_x: ")
    with pytest.raises(
        ValueError, match="test_x: expected the columns of train_x in their order, got 'size' for 'age'"
    ):
        from_features(frame, frame[["size", "age"]])
    with pytest.raises(ValueError, match=r"train_x: expected a non-empty array .*, got shape \(4, 0\)"):
        from_features(frame[[]])


def test_series_of_targets(pandas: Any) -> None:
    text = ["b", "a", "c", "a"]
    named = [text, pandas.Series(text, dtype=object), pandas.Series(text, dtype="string"), pandas.Index(text)]
    named += [pandas.Series(text, dtype="category", index=[5, 5, 0, 1]), pandas.Categorical(text, list("zcba"))]
    named += [pandas.DataFrame({"label": text}), pandas.array(text)]
    for y in named:
        data = datasets.from_arrays(X, y, X, y)
        assert (data.train_y.tolist(), data.classes) == ([1, 0, 2, 0], ("a", "b", "c")), type(y)
    numbers = [pandas.Series(Y), pandas.Series(Y, dtype="Int64"), pandas.Series(Y, dtype="category"), pandas.Index(Y)]
    numbers += [pandas.Series(Y, dtype=bool), pandas.Series(Y, dtype="boolean"), pandas.DataFrame({"label": Y})]
    numbers += [pandas.Series(Y, dtype=float), pandas.array(Y)]
    for y in numbers:
        data = datasets.from_arrays(X, y, X, y)
        assert (data.train_y.tolist(), data.n_classes, data.classes) == (Y, 2, None), y
    for kind in ("float32", "float64", "Float64"):
        data = datasets.from_arrays(X, pandas.Series([0.5, 1, 2, 3], dtype=kind), X, pandas.Series(Y))
        assert (data.task, data.train_y.tolist(), data.test_y.tolist()) == ("regression", [0.5, 1, 2, 3], Y), kind


def test_refused_series(pandas: Any) -> None:
    cases: list[tuple[Any, type[Exception], str]] = [
        (pandas.Series([0, None, 1, 1]), ValueError, "train_y: expected no missing values, got nan at row 1"),
        (pandas.Series([0, None, 1, 1], dtype="Int64"), ValueError, "expected no missing values, got <NA> at row 1"),
        (
            pandas.Series(["a", "b", None, "a"], dtype="category"),
            ValueError,
            "expected no missing values, got nan at row 2",
        ),
        (
            pandas.Series(["a", "b", "a", None], dtype="string"),
            ValueError,
            "expected no missing values, got <NA> at row 3",
        ),
        (
            pandas.Series([1, "b", 2, 3], dtype=object),
            TypeError,
            "expected strings only, or numbers only, got 'b' at row 1",
        ),
        (pandas.Series(pandas.date_range("2020", periods=4)), TypeError, "expected numbers or strings, got datetime64"),
        (pandas.DataFrame({"a": Y, "b": Y}), ValueError, "train_y: expected shape (4,), got (4, 2)"),
    ]
    for y, error, message in cases:
        with pytest.raises(error) as caught:
            datasets.from_arrays(X, y, X, Y)
        assert message in str(caught.value), y


# --- tensors --------------------------------------------------------------------------------------------------------


@pytest.mark.torch
def test_tensors(torch: Any) -> None:
    x = torch.arange(24.0).reshape(4, 2, 3)
    for kind, kept in (
        (torch.uint8, np.uint8),
        (torch.float16, np.float32),
        (torch.bfloat16, np.float32),
        (torch.float32, np.float32),
        (torch.float64, np.float64),
        (torch.int32, np.float64),
    ):
        data = from_features(x.to(kind))
        assert data.train_x.dtype == kept, kind
        assert data.train_x.tolist() == x.reshape(4, 6).tolist(), kind
    assert from_features(x.transpose(1, 2)).train_x.tolist() == x.transpose(1, 2).reshape(4, 6).tolist()
    assert from_features(x.clone().requires_grad_()).train_x.tolist() == x.reshape(4, 6).tolist()
    assert from_features(list(x)).train_x.tolist() == x.reshape(4, 6).tolist()
    own = x.clone()
    shared = from_features(own)
    own[1, 0, 0] = -5.0
    assert shared.train_x[1, 0] == -5.0  # the same memory
    y = torch.tensor(Y)
    for targets in (y, y[:, None], y.bool(), y.bfloat16(), list(y), y.float().requires_grad_()):
        data = datasets.from_arrays(x, targets, x, targets)
        assert (data.train_y.tolist(), data.n_classes) == (Y, 2), targets
    real = datasets.from_arrays(x, (y / 2).requires_grad_(), x, y)
    assert (real.task, real.train_y.tolist()) == ("regression", [0.0, 0.5, 0.5, 0.0])


@pytest.mark.torch
def test_refused_tensors(torch: Any) -> None:
    cases: list[tuple[Any, type[Exception], str]] = [
        (torch.zeros(4, 2, device="meta"), ValueError, "train_x: expected an array in host memory"),
        (torch.eye(4).to_sparse(), TypeError, "train_x: expected an array of real numbers, got Tensor"),
        (torch.ones(4, 2, dtype=torch.complex64), TypeError, "train_x: expected real numbers, got complex64"),
        (torch.ones(4, 2, dtype=torch.complex64).conj().imag, ValueError, "train_x.resolve_neg()"),
    ]
    for x, error, message in cases:
        with pytest.raises(error) as caught:
            from_features(x)
        assert message in str(caught.value)
