"""Datasets of PyTorch, and what looks like them."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from byzadmm import datasets
from byzadmm.datasets import _torch

from_torch = datasets.from_torch


class Pairs:
    """A map-style dataset, without PyTorch."""

    def __init__(self, items: Any, classes: Any = None) -> None:
        self.items, self.asked = items, 0
        if classes is not None:
            self.classes = classes

    def __len__(self) -> int:
        return len(self.items)

    def __getitem__(self, i: int) -> Any:
        self.asked += 1
        return self.items[i]


def pairs(n: int = 10, target: Any = lambda i: i % 3) -> Pairs:
    return Pairs([(np.array([[i, 2 * i]], np.float32), target(i)) for i in range(n)])


def test_items_one_by_one() -> None:
    train, test = pairs(), pairs(4)
    data = from_torch(train, test)
    assert repr(data) == "Dataset('Pairs', train=10, test=4, n_features=2, n_classes=3, dtype=float32, scale=1)"
    assert data.train_x.tolist() == [[i, 2 * i] for i in range(10)]
    assert data.train_y.tolist() == [i % 3 for i in range(10)]
    assert data.test_y.tolist() == [0, 1, 2, 0]
    assert (train.asked, test.asked) == (10, 4)  # once each
    assert from_torch(train, test, name="mine", n_classes=7, scale=0.5).scale == 0.5
    for kind in (np.int64, np.float32, np.uint8, np.array, float, lambda value: np.array([value])):
        labels = from_torch(pairs(target=lambda i, kind=kind: kind(i % 3)), test)
        assert labels.train_y.tolist() == data.train_y.tolist(), kind
    real = from_torch(pairs(target=lambda i: i / 4), test)
    assert (real.task, real.train_y.tolist()) == ("regression", [i / 4 for i in range(10)])
    assert from_torch(train, test, task="regression").test_y.tolist() == [0.0, 1.0, 2.0, 0.0]


def test_without_test_a_share_is_split_off() -> None:
    data = from_torch(pairs(50))
    assert (len(data.train_x), len(data.test_x)) == (40, 10)
    x, y = np.concatenate([data.train_x, data.test_x]), np.concatenate([data.train_y, data.test_y])
    assert sorted(x[:, 0].tolist()) == list(range(50))
    assert (y == x[:, 0] % 3).all()
    other = from_torch(pairs(50), test_fraction=0.5, seed=1, scale="standard")
    assert (len(other.train_x), len(other.test_x)) == (25, 25)
    np.testing.assert_allclose(other.train_x.mean(axis=0), 0, atol=1e-6)  # of the training samples alone
    assert abs(other.test_x.mean()) > 1e-3
    # A name or a fraction that occurs once is known wherever it comes to lie.
    for seed in range(10):
        once = from_torch(pairs(target=lambda i: "rare" if i == 3 else "usual"), seed=seed)
        assert once.classes == ("rare", "usual")
        assert from_torch(pairs(target=lambda i: 0.5 if i == 3 else i), seed=seed).task == "regression"


def test_names_of_classes() -> None:
    items, names = pairs().items, ["ant", "bee", "cat", "dog"]
    named = from_torch(Pairs(items, names))
    assert (named.classes, named.n_classes) == (tuple(names), 4)
    for classes, n_classes in ((names, 3), (names[:2], None), ([0, 1, 2], None), (None, None)):
        data = from_torch(Pairs(items, classes), n_classes=n_classes)
        assert (data.classes, data.n_classes) == (None, 3), classes
    assert from_torch(Pairs(items, names), task="regression").classes is None


def test_images() -> None:
    image = pytest.importorskip("PIL.Image")
    pixels = np.random.default_rng(0).integers(0, 256, (6, 4, 5, 3), np.uint8)
    data = from_torch(Pairs([(image.fromarray(x), i % 2) for i, x in enumerate(pixels)]), pairs_of(pixels))
    assert np.array_equal(data.train_x, pixels.reshape(6, 60))
    assert data.train_x.dtype == np.uint8
    with pytest.raises(TypeError, match=r"train\[0\]: expected an image of numbers, got one with a palette"):
        from_torch(Pairs([(image.fromarray(x).convert("P"), 0) for x in pixels]))


def pairs_of(x: Any) -> Pairs:
    return Pairs([(sample, i % 2) for i, sample in enumerate(x)])


def test_progress_of_a_long_loop(monkeypatch: pytest.MonkeyPatch) -> None:
    calls: list[Any] = []

    class Recorder:
        def __init__(self, label: str) -> None:
            calls.append(label)

        def update(self, done: int, total: int) -> None:
            calls.append((done, total))

        def close(self) -> None:
            calls.append("closed")

    monkeypatch.setattr(_torch, "Bar", Recorder)
    from_torch(pairs(200), pairs(2))
    assert calls == []
    monkeypatch.setattr(_torch, "_QUIET_SECONDS", -1.0)
    from_torch(pairs(200), pairs(2))
    assert calls == ["reading train", (64, 200), (128, 200), (192, 200), "closed"]
    calls.clear()
    with pytest.raises(TypeError):
        from_torch(Pairs([*pairs(100).items, None]))
    assert calls == ["reading train", (64, 101), "closed"]


def test_refused_datasets() -> None:
    x, items = np.zeros((2, 2)), pairs(3).items
    arrays, stacked = "from_arrays takes arrays", "stack its samples and use from_arrays"
    cases: list[tuple[Any, type[Exception], str]] = [
        (None, TypeError, f"train: expected a map-style dataset with len() and [i], got NoneType; {stacked}"),
        (
            iter(items),
            TypeError,
            f"train: expected a map-style dataset with len() and [i], got list_iterator; {stacked}",
        ),
        (datasets.load(), TypeError, "train: expected a map-style dataset with len() and [i], got Dataset"),
        ((x, [0, 1]), TypeError, f"train: expected a dataset of (input, target) pairs, got tuple; {arrays}"),
        (x, TypeError, f"train: expected a dataset of (input, target) pairs, got ndarray; {arrays}"),
        ({0: (x, 1)}, TypeError, f"train: expected a dataset of (input, target) pairs, got dict; {arrays}"),
        ([], ValueError, "train: expected at least one sample, got none"),
        ([*items, {"x": 1}], TypeError, "train[3]: expected a pair (input, target), got dict"),
        ([*items, (1, 2, 3)], TypeError, "train[3]: expected a pair (input, target), got 3 items"),
        (
            [*items, (np.zeros((1, 3), np.float32), 0)],
            ValueError,
            "train[3]: expected float32 of shape (1, 2) as before, got float32 of shape (1, 3)",
        ),
        (
            [*items, (np.zeros((1, 2)), 0)],
            ValueError,
            "train[3]: expected float32 of shape (1, 2) as before, got float64",
        ),
        ([(x, np.zeros(3))], ValueError, "train[0]: expected one target, got shape (3,)"),
        (
            [*items, (items[0][0], None)],
            TypeError,
            "train_y: expected strings only, or numbers only, got None at row 3",
        ),
        ([(1.0, 0), (2.0, 1)], ValueError, "train_x: expected a non-empty array (samples, features), got shape (2,)"),
        (items[:1], ValueError, "test_fraction: expected at least one training and one test row out of 1, got 0.2"),
    ]
    for dataset, error, message in cases:
        with pytest.raises(error) as caught:
            from_torch(dataset)
        assert message in str(caught.value), message
    with pytest.raises(TypeError, match=r"test: expected a map-style dataset"):
        from_torch(items, 5)
    for settings, error in (({"test_fraction": 0}, ValueError), ({"seed": -1}, ValueError), ({"name": 3}, TypeError)):
        with pytest.raises(error, match=f"{next(iter(settings))}: expected"):
            from_torch(items, **settings)


def in_memory(getitem: Any, module: str, **members: Any) -> Any:
    """A dataset in memory whose ``[i]`` is said to be defined in ``module``."""
    getitem.__module__ = module
    return type("InMemory", (), {"__getitem__": getitem, "__len__": lambda self: len(self.data), **members})()


def test_whole_arrays_of_torchvision() -> None:
    x, y = np.random.default_rng(0).integers(0, 256, (9, 4, 4), np.uint8), [i % 3 for i in range(9)]
    asked = []

    def item(self: Any, i: int) -> Any:
        asked.append(i)
        return self.data[i], self.targets[i]

    def changed(self: Any, i: int) -> Any:
        return item(self, i)[0], 2 - self.targets[i]

    own, theirs = "mine", "torchvision.datasets.mnist"
    members = {"data": x, "targets": y, "transform": None, "target_transform": None}
    cases = [
        ("in memory", in_memory(item, theirs, **members), 1, y),
        ("a subclass's own items", in_memory(lambda self, i: item(self, i), own, **members), 9, y),
        ("a transform", in_memory(item, theirs, **members | {"transform": abs}), 9, y),
        ("other targets", in_memory(changed, theirs, **members), 10, [2 - label for label in y]),
        ("no targets", in_memory(lambda self, i: (asked.append(i), (x[i], y[i]))[1], theirs, data=x), 9, y),
    ]
    for label, dataset, count, targets in cases:
        asked.clear()
        data = from_torch(dataset, pairs_of(x))
        assert len(asked) == count, label
        assert np.array_equal(data.train_x, x.reshape(9, 16)), label
        assert data.train_y.tolist() == targets, label


@pytest.mark.torch
def test_whole_tensors(torch: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    utils = torch.utils.data
    x, y = torch.arange(60.0).reshape(12, 5), torch.arange(12) % 3
    tensors = utils.TensorDataset(x, y)
    part = utils.Subset(utils.Subset(tensors, [8, 1, 5, 2]), torch.tensor([2, 0, 1]))
    slow = utils.Subset(Pairs(list(zip(x, y, strict=True)), ["a", "b", "c"]), range(3, 6))
    data = from_torch(slow, tensors)
    assert (data.train_y.tolist(), data.classes, data.name) == ([0, 1, 2], ("a", "b", "c"), "Pairs")
    monkeypatch.setattr(_torch, "_read", lambda *args: pytest.fail("asked one by one"))
    data = from_torch(tensors, part)
    assert data.train_x.tolist() == x.tolist()
    assert data.train_y.tolist() == y.tolist()
    assert data.test_x.tolist() == x[[5, 8, 1]].tolist()
    assert data.test_y.tolist() == y[[5, 8, 1]].tolist()
    assert np.shares_memory(data.train_x, x.numpy())
    real = from_torch(utils.TensorDataset(x, (x[:, :1] / 4).requires_grad_()), tensors)
    assert real.train_y.tolist() == (x[:, 0] / 4).tolist()
    with pytest.raises(ValueError, match="train: expected a TensorDataset of two tensors, got 3"):
        from_torch(utils.TensorDataset(x, y, y))
    # A mask is no list of rows.
    with pytest.raises(TypeError, match=r"train\.indices: expected integers, got dtype bool"):
        from_torch(utils.Subset(tensors, [True, False] * 6))


@pytest.mark.torch
def test_other_datasets_of_torch(torch: Any) -> None:
    utils = torch.utils.data
    x, y = torch.arange(24.0).reshape(12, 2), torch.arange(12) % 3
    tensors = utils.TensorDataset(x, y)

    class Negated(utils.TensorDataset):  # type: ignore[misc, name-defined]
        def __getitem__(self, i: int) -> Any:
            return -x[i].requires_grad_(), y[i]

    assert from_torch(Negated(x, y), tensors).train_x.tolist() == (-x).tolist()
    x = x.detach()
    both = from_torch(utils.ConcatDataset([tensors, tensors]), tensors)
    assert both.train_x.tolist() == torch.cat([x, x]).tolist()

    class Stream(utils.IterableDataset):  # type: ignore[misc, name-defined]
        def __iter__(self) -> Any:
            return iter(tensors)

        def __len__(self) -> int:
            return 12

    for dataset, message in (
        (Stream(), "got Stream; stack its samples and use from_arrays"),
        (utils.DataLoader(tensors), "got DataLoader; pass its .dataset"),
        (x, "got Tensor; from_arrays takes arrays"),
    ):
        with pytest.raises(TypeError, match=message):
            from_torch(dataset)
