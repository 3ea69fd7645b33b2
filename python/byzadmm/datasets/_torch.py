"""Data stage: datasets of PyTorch, torchvision and whatever else has ``len`` and ``[i]`` in, a `Dataset` out."""

from __future__ import annotations

import time
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import numpy as np
import numpy.typing as npt

from byzadmm._internal.arrays import as_index, is_array
from byzadmm._internal.progress import Bar

from ._arrays import from_arrays
from ._dataset import Dataset, check_split, make_dataset, split
from ._inputs import as_array
from ._scaling import Scale, check_scale

__all__ = ["from_torch", "read_pairs"]

Array = npt.NDArray[Any]

_QUIET_SECONDS = 1.0  # a loop that is over sooner shows no progress
_EVERY = 64


def from_torch(
    train: Any,
    test: Any = None,
    *,
    scale: Scale = 1.0,
    name: str | None = None,
    n_classes: int | None = None,
    task: str | None = None,
    test_fraction: float = 0.2,
    seed: int = 0,
) -> Dataset:
    """Make a `Dataset` from datasets of PyTorch or torchvision, or from anything with ``len`` and ``[i]`` like theirs.

    Every sample is read once, so a random transform is applied once. The whole arrays of a ``TensorDataset``, of
    torchvision's datasets in memory without a transform, and of a ``Subset`` of these are taken at once.

    Parameters
    ----------
    train, test : map-style datasets
        ``train[i]`` is a pair of input (tensor, array or image, all of one shape) and target (number, string or 0-d
        tensor). Without ``test``, a share of ``train`` is split off at random.
    scale, n_classes, task
        As in `from_arrays`; images of torchvision without a transform are uint8, for which ``scale=1/255`` is usual.
        By default there are as many classes as ``train.classes`` has names, if it has any.
    name : str, optional
        Shown in results; default: the class of ``train``.
    test_fraction : float
        Share of the samples that go to the test set, between 0 and 1, if ``test`` is not given.
    seed : int
        Seed of that split.

    Returns
    -------
    Dataset
        Inputs flattened to (N, features).

    Examples
    --------
    >>> from byzadmm import datasets
    >>> pairs = [([0.0, i], i % 2) for i in range(10)]  # any sequence of pairs looks like a dataset
    >>> datasets.from_torch(pairs, name="pairs")
    Dataset('pairs', train=8, test=2, n_features=2, n_classes=2, dtype=float64, scale=1)
    """
    fraction, seed = check_split(test_fraction, seed)
    scale = check_scale(scale)
    base = _base(train)
    name = type(base).__name__ if name is None else name
    x, y = read_pairs(train, "train")
    x_test, y_test = (x, y) if test is None else read_pairs(test, "test")
    data = from_arrays(
        x, y, x_test, y_test, n_classes=n_classes, scale="raw" if test is None else scale, name=name, task=task
    )
    if test is None:  # split now that the targets of all samples have decided on task and classes
        x, y = data.train_x, data.train_y
        head, tail = split(len(x), fraction, seed)
        data = make_dataset(name, x[head], y[head], x[tail], y[tail], data.n_classes, scale, data.classes)
    return _with_names(data, getattr(base, "classes", None), n_classes)


def read_pairs(dataset: Any, name: str, *, one_target: bool = True) -> tuple[Array, Any]:
    """Return all inputs, stacked, and all targets: of one number each, or arrays of any shape."""
    _check_kind(dataset, name)
    whole = _whole(dataset, name)
    return _read(dataset, name, one_target) if whole is None else whole


def _check_kind(dataset: Any, name: str) -> None:
    kind = type(dataset).__name__
    if is_array(dataset) or isinstance(dataset, (tuple, str, bytes, Mapping)):
        raise TypeError(f"{name}: expected a dataset of (input, target) pairs, got {kind}; from_arrays takes arrays")
    iterable = any(base.__name__ == "IterableDataset" for base in type(dataset).__mro__)
    if iterable or not (hasattr(dataset, "__len__") and hasattr(dataset, "__getitem__")):
        hint = "pass its .dataset" if hasattr(dataset, "dataset") else "stack its samples and use from_arrays"
        raise TypeError(f"{name}: expected a map-style dataset with len() and [i], got {kind}; {hint}")
    if not len(dataset):
        raise ValueError(f"{name}: expected at least one sample, got none")


def _base(dataset: Any) -> Any:
    """Return what a ``Subset``, of a ``Subset``, is of."""
    while _is_torch(dataset, "Subset"):
        dataset = dataset.dataset
    return dataset


def _is_torch(dataset: Any, kind: str) -> bool:
    """Return whether this is the class of PyTorch itself: a subclass may change what ``[i]`` gives."""
    return type(dataset).__name__ == kind and type(dataset).__module__.startswith("torch.utils.data")


def _whole(dataset: Any, name: str) -> tuple[Array, Array] | None:
    """Return all samples of a dataset that is known to hold them as two arrays, None of any other."""
    if _is_torch(dataset, "Subset"):
        whole = _whole(dataset.dataset, name)
        if whole is None:
            return None
        rows = as_index(as_array(dataset.indices, f"{name}.indices"), f"{name}.indices")
        return whole[0][rows], whole[1][rows]
    if _is_torch(dataset, "TensorDataset"):
        if len(dataset.tensors) != 2:
            raise ValueError(f"{name}: expected a TensorDataset of two tensors, got {len(dataset.tensors)}")
        inputs, targets = dataset.tensors
        return as_array(inputs, f"{name}.tensors[0]"), as_array(targets, f"{name}.tensors[1]")
    if not getattr(type(dataset).__getitem__, "__module__", "").startswith("torchvision.datasets"):
        return None
    if any(getattr(dataset, part, None) is not None for part in ("transform", "target_transform", "transforms")):
        return None
    if not (hasattr(dataset, "data") and hasattr(dataset, "targets")):
        return None
    x, y = as_array(dataset.data, f"{name}.data"), as_array(dataset.targets, f"{name}.targets")
    first, target = _item(dataset, 0, name)
    same = x.dtype == first.dtype and np.array_equal(x[0], first) and np.array_equal(y[0], target)
    return (x, y) if same and len(x) == len(y) == len(dataset) else None


def _read(dataset: Any, name: str, one_target: bool) -> tuple[Array, list[Any]]:
    """Return all samples, asked for one by one."""
    n = len(dataset)
    first, target = _item(dataset, 0, name, one_target)
    x = np.empty((n, *first.shape), first.dtype)
    x[0], y = first, [target]
    bar, start = None, time.monotonic()
    try:
        for i in range(1, n):
            sample, target = _item(dataset, i, name, one_target)
            if sample.shape != first.shape or sample.dtype != first.dtype:
                expected, got = f"{first.dtype} of shape {first.shape}", f"{sample.dtype} of shape {sample.shape}"
                raise ValueError(f"{name}[{i}]: expected {expected} as before, got {got}")
            x[i] = sample
            y.append(target)
            if i % _EVERY == 0 and time.monotonic() - start > _QUIET_SECONDS:
                bar = bar or Bar(f"reading {name}")
                bar.update(i, n)
    finally:
        if bar is not None:
            bar.close()
    return x, y


def _item(dataset: Any, i: int, name: str, one_target: bool = True) -> tuple[Array, Any]:
    """Return sample ``i`` as an array and a Python number or string, or an array if there may be more than one."""
    item = dataset[i]
    if not isinstance(item, (tuple, list)) or len(item) != 2:
        got = f"{len(item)} items" if isinstance(item, (tuple, list)) else type(item).__name__
        raise TypeError(f"{name}[{i}]: expected a pair (input, target), got {got}")
    sample, target = item
    if getattr(sample, "mode", None) == "P":  # of Pillow: its numbers are places in a table of colors
        raise TypeError(f"{name}[{i}]: expected an image of numbers, got one with a palette; convert it to RGB")
    if is_array(target) and not one_target:
        target = as_array(target, f"{name}[{i}]")
    elif hasattr(target, "item"):
        try:
            target = target.item()
        except (ValueError, RuntimeError) as error:
            raise ValueError(f"{name}[{i}]: expected one target, got shape {tuple(target.shape)}") from error
    return as_array(sample, f"{name}[{i}]"), target


def _with_names(data: Dataset, classes: Any, n_classes: int | None) -> Dataset:
    """Return ``data`` with the names that the dataset has for its labels, if they fit."""
    named = isinstance(classes, (list, tuple)) and all(isinstance(label, str) for label in classes)
    if not named or data.classes is not None or data.task == "regression":
        return data
    fits = len(classes) == n_classes if n_classes else len(classes) >= data.n_classes
    return replace(data, n_classes=len(classes), classes=tuple(classes)) if fits else data
