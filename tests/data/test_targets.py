"""Targets: what becomes a label, what a real number, and what is refused."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from byzadmm import datasets
from byzadmm.figures.tuning import validation_split

X = np.arange(8.0).reshape(4, 2)


def from_targets(train_y: Any, test_y: Any = None, **settings: Any) -> datasets.Dataset:
    return datasets.from_arrays(X, train_y, X, train_y if test_y is None else test_y, **settings)


def test_labels_of_every_kind() -> None:
    signs, animals = ("-1", "1"), ("cat", "dog", "eel")
    cases: list[tuple[Any, list[int], int, tuple[str, ...] | None]] = [
        ([0, 2, 1, 1], [0, 2, 1, 1], 3, None),
        (np.array([0, 2, 1, 1], np.uint8), [0, 2, 1, 1], 3, None),
        ([0.0, 2.0, -0.0, 1.0], [0, 2, 0, 1], 3, None),
        (np.array([0, 2, 1, 1], np.float16), [0, 2, 1, 1], 3, None),
        (np.array([0, 2, 1, 1], ">i4"), [0, 2, 1, 1], 3, None),
        (np.array([0, 2, 1, 1], object), [0, 2, 1, 1], 3, None),
        ([[0], [2], [1], [1]], [0, 2, 1, 1], 3, None),
        ([0, 999, 0, 0], [0, 999, 0, 0], 1000, None),
        ([True, False, True, True], [1, 0, 1, 1], 2, None),
        (np.array([True, False, True, np.False_], object), [1, 0, 1, 0], 2, None),
        ([-1, 1, 1, -1], [0, 1, 1, 0], 2, signs),
        ([-1.0, 1.0, 1.0, -1.0], [0, 1, 1, 0], 2, signs),
        (["dog", "cat", "eel", "dog"], [1, 0, 2, 1], 3, animals),
        ([["dog"], ["cat"], ["eel"], ["dog"]], [1, 0, 2, 1], 3, animals),
        (np.array(["dog", "cat", "eel", "dog"], object), [1, 0, 2, 1], 3, animals),
        (["10", "9", "10", "9"], [0, 1, 0, 1], 2, ("10", "9")),  # sorted as text
        (["a", "a\0", "a", "a\0"], [0, 1, 0, 1], 2, ("a", "a\0")),
    ]
    if hasattr(np, "dtypes") and hasattr(np.dtypes, "StringDType"):
        cases.append((np.array(["dog", "cat", "eel", "dog"], np.dtypes.StringDType()), [1, 0, 2, 1], 3, animals))
    for y, labels, n_classes, classes in cases:
        for task in (None, "classification"):
            data = from_targets(y, task=task)
            assert (data.train_y.tolist(), data.n_classes, data.classes) == (labels, n_classes, classes), y
            assert data.train_y.dtype == data.test_y.dtype == np.int64, y
            assert data.task == "classification", y


def test_real_targets_of_every_kind() -> None:
    half = [0.5, -1.0, 1.0, 3e5]
    for y in (half, np.array(half, np.float32), np.array(half, np.longdouble), np.array(half)[:, None]):
        data = from_targets(y, [1, 2, -3, 4])  # whole, but the training set decides
        assert data.train_y.tolist() == half, y
        assert data.test_y.tolist() == [1.0, 2.0, -3.0, 4.0], y
        assert data.train_y.dtype == data.test_y.dtype == np.float64, y
        assert (data.task, data.n_classes, data.classes) == ("regression", 0, None), y
    assert repr(data) == "Dataset('custom', train=4, test=4, n_features=2, targets=real, dtype=float64, scale=1)"
    for whole in ([0, 1, 2, 1], [-1, 1, -1, 1], [1990, 2000, 2010, 1991], [False, True, True, True]):
        data = from_targets(whole, task="regression")
        assert data.task == "regression", whole
        assert data.train_y.tolist() == [float(value) for value in whole], whole


def test_names_belong_to_the_training_set() -> None:
    data = from_targets(["b", "a", "c", "a"], ["c", "c", "a", "c"])
    assert data.test_y.tolist() == [2, 2, 0, 2]
    assert from_targets([-1, 1, 1, -1], [1.0] * 4).test_y.tolist() == [1, 1, 1, 1]
    assert from_targets([0, 1, 1, 0], [2, 0, 0, 0]).n_classes == 3  # a number needs no name


def test_many_classes_on_request() -> None:
    y = [0, 5000, 1, 2]
    assert from_targets(y, task="classification").n_classes == 5001
    assert from_targets(y, n_classes=6000).n_classes == 6000


def test_refused_targets() -> None:
    real = "pass task='regression' for real targets"
    late, both = "expected strings only, or numbers only, got", "expected numbers or strings, got"
    cases: list[tuple[dict[str, Any], type[Exception], str]] = [
        ({"train_y": [0, 1, np.nan, 1]}, ValueError, "train_y: expected finite numbers, got nan at row 2"),
        ({"train_y": [0.5, np.inf, 1, 1]}, ValueError, "train_y: expected finite numbers, got inf at row 1"),
        ({"test_y": [0.5, 1, 1, -np.inf]}, ValueError, "test_y: expected finite numbers, got -inf at row 3"),
        ({"test_y": [0, 0.5, 1, 1]}, ValueError, "test_y: expected whole numbers as labels, got 0.5 at row 1"),
        (
            {"train_y": [0, 1, 0.5, 1], "task": "classification"},
            ValueError,
            f"train_y: expected whole numbers as labels, got 0.5 at row 2; {real}",
        ),
        ({"train_y": [0, 1, 0.5, 1], "n_classes": 2}, ValueError, "train_y: expected whole numbers as labels, got 0.5"),
        ({"train_y": [0, 1, -2, 1]}, ValueError, "train_y: expected labels >= 0 (or -1 and 1 alone), got -2"),
        ({"train_y": [-1, -1, -1, -1]}, ValueError, f"got -1; {real}"),
        ({"train_y": [-1, 1, 0, 1]}, ValueError, f"got -1; {real}"),
        ({"train_y": [-1, 1, 1, 1]}, ValueError, "test_y: expected labels of the training set, got 0 at row 0"),
        ({"test_y": [0, 1, -2, 1]}, ValueError, "test_y: expected labels >= 0 (or -1 and 1 alone), got -2"),
        (
            {"train_y": [1990, 2000, 2010, 1991]},
            ValueError,
            f"train_y: expected labels in [0, 999], got 2010; {real}, or task='classification' for so many classes",
        ),
        ({"train_y": np.full(4, 2**64 - 1)}, ValueError, "train_y: expected labels below 2147483648, got 18446744073"),
        (
            {"train_y": [1e300] * 4, "task": "classification"},
            ValueError,
            "expected labels below 2147483648, got 1e+300",
        ),
        ({"train_y": [0, 2, 1, 1], "n_classes": 2}, ValueError, "train_y: expected labels in [0, 1], got 2"),
        ({"train_y": ["a", "b", np.nan, "a"]}, TypeError, f"train_y: {late} nan at row 2"),
        ({"train_y": ["a", None, "b", "a"]}, TypeError, f"train_y: {late} None at row 1"),
        ({"train_y": [["a"], [np.nan], ["b"], ["a"]]}, TypeError, f"train_y: {late} nan at row 1"),
        ({"train_y": [1, "a", 2, "b"]}, TypeError, f"train_y: {late} 'a' at row 1"),
        ({"train_y": [1, None, 2, 3]}, TypeError, f"train_y: {late} None at row 1"),
        ({"train_y": list("abca")}, TypeError, "test_y: expected strings as in train_y, got numbers"),
        ({"test_y": list("abca")}, TypeError, "test_y: expected numbers as in train_y, got strings"),
        ({"train_y": [b"a", b"b", b"a", b"b"]}, TypeError, f"train_y: {both} |S1"),
        ({"train_y": [1j] * 4}, TypeError, f"train_y: {both} complex128"),
        ({"train_y": np.zeros(4, "M8[D]")}, TypeError, f"train_y: {both} datetime64[D]"),
        (
            {"train_y": np.eye(4)},
            ValueError,
            "expected shape (4,), got (4, 4); of one-hot rows pass numpy.argmax(train_y, axis=1)",
        ),
        ({"train_y": X}, ValueError, "expected shape (4,), got (4, 2); one target per sample"),
        ({"train_y": [[0, 1, 1, 0]]}, ValueError, "train_y: expected shape (4,), got (1, 4)"),
        ({"train_y": None}, ValueError, "train_y: expected shape (4,), got ()"),
        ({"train_y": np.ma.array([0, 1, 1, 0], mask=[0, 0, 0, 1])}, TypeError, "expected an array without a mask"),
        ({"train_y": list("abca"), "task": "regression"}, TypeError, "expected real numbers for task='regression'"),
        ({"n_classes": 2, "task": "regression"}, ValueError, "n_classes: expected None for task='regression', got 2"),
        ({"task": "ranking"}, ValueError, "task: expected one of classification, regression; got 'ranking'"),
        ({"task": 1}, TypeError, "task: expected a string, got int"),
    ]
    for changes, error, message in cases:
        given = {"train_x": X, "train_y": [0, 1, 1, 0], "test_x": X, "test_y": [0, 1, 1, 0], **changes}
        with pytest.raises(error) as caught:
            datasets.from_arrays(**given)
        assert message in str(caught.value), changes
    with pytest.raises(ValueError, match="test_y: expected labels of the training set, got 'd' at row 3"):
        from_targets(list("abca"), list("abcd"))
    for named in ([-1, 1, 1, -1], list("abba")):
        with pytest.raises(ValueError, match="n_classes: expected 2, the number of training labels by name, got 3"):
            from_targets(named, n_classes=3)


def test_a_validation_split_keeps_task_and_names() -> None:
    x = np.arange(60.0).reshape(30, 2)
    named = datasets.from_arrays(x, ["a", "b"] * 15, x, ["b", "a"] * 15)
    held = validation_split(named, 0)
    assert (held.classes, held.task, len(held.test_y)) == (("a", "b"), "classification", 5)
    real = validation_split(datasets.from_arrays(x, x[:, 0] / 4, x, x[:, 0]), 0)
    assert (real.task, real.train_y.dtype) == ("regression", np.float64)
    assert np.array_equal(real.test_y * 4, real.test_x[:, 0])
