"""Data stage: a name in, a `Dataset` out."""

from __future__ import annotations

import contextlib
import io
import math
import os
from dataclasses import replace
from importlib import resources
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from byzadmm._internal.atomic_files import replacing
from byzadmm._internal.validation import check_choice, check_int

from ._dataset import Dataset, check_split, make_dataset, split
from ._files import DIGITS, NAMES, SOURCES, cache_dir, fetch, verify
from ._formats import MAX_FEATURES, read_csv, read_idx, read_libsvm, read_tar
from ._scaling import Scale, check_scale
from ._targets import check_task, numbered

__all__ = ["from_libsvm", "load"]

Array = npt.NDArray[Any]

_SPLIT_SEED = 0  # of the fixed splits; changing it changes every published number
_MAX_SEED = 2**64 - 1
_DIGITS_TRAIN = 1437
_COVTYPE_ROWS, _COVTYPE_COLUMNS, _COVTYPE_TRAIN = 581_012, 55, 465_264
_COVTYPE_CLASSES = 7
_IMAGE, _IMAGES_TRAIN, _IMAGES_TEST = (28, 28), 60_000, 10_000
_IMAGE_CLASSES = 10
_CIFAR_RECORDS, _CIFAR_PIXELS = 10_000, 3 * 32 * 32
_CIFAR_BATCHES = (
    *(f"cifar-10-batches-bin/data_batch_{i}.bin" for i in range(1, 6)),
    "cifar-10-batches-bin/test_batch.bin",
)
_CIFAR_CLASSES = ("airplane", "automobile", "bird", "cat", "deer", "dog", "frog", "horse", "ship", "truck")
_DEFAULT_SCALE: dict[str, Scale] = {
    "digits": 1 / 16,
    "synthetic": 1.0,
    "mnist": 1 / 255,
    "covtype": "standard",
    "fashion_mnist": 1 / 255,
    "cifar10": 1 / 255,
}
_SYNTHETIC_DEFAULTS = {"n_train": 2000, "n_test": 500, "n_features": 20, "n_classes": 10, "seed": 0}
_SEPARATION = 3.0  # length of a class centre in units of the noise: about nine in ten samples can be told apart


def load(
    name: str = "digits",
    *,
    data_dir: str | os.PathLike[str] | None = None,
    scale: Scale | None = None,
    **options: int,
) -> Dataset:
    """Load a data set by name, from the package, from disk, or by a verified download.

    The value a learner sees is ``scale * x``, or the columns brought to 0..1 (``"unit"``) or to mean 0 and deviation 1
    (``"standard"``), or all of them together to -1..1 (``"symmetric"``), by training statistics. A column constant in
    training becomes 0 under the first two; ``"unit"`` and ``"symmetric"`` clip the test values.

    Parameters
    ----------
    name : {"digits", "synthetic", "mnist", "covtype", "fashion_mnist", "cifar10"}
        ``digits`` is inside the package; ``synthetic`` is generated.
    data_dir : path, optional
        Folder to look in first; then ``$BYZADMM_DATA`` and the user's cache.
    scale : float or {"raw", "unit", "standard", "symmetric"}, optional
        Default: 1/255 for images (1/16 for digits), ``"standard"`` for covtype, 1.0 for synthetic. A number or
        ``"raw"`` leaves the arrays as they are; the others make them float32.
    **options : int
        For ``synthetic`` only: ``n_train=2000, n_test=500, n_features=20, n_classes=10, seed=0``.

    Returns
    -------
    Dataset
        uint8 features for images, float32 otherwise.

    Raises
    ------
    FileNotFoundError
        The files are absent and cannot be downloaded; the message says which, and where to put them.
    ValueError
        A file is truncated, corrupt or wrong; the message names it.

    Examples
    --------
    >>> from byzadmm import datasets
    >>> data = datasets.load("digits")
    >>> data.train_x.shape, data.test_x.shape
    ((1437, 64), (360, 64))

    References
    ----------
    Section "Numerical Experiments" of the paper; sources and citations of the data in ``docs/data.md``.
    """
    check_choice(name, "name", NAMES)
    chosen = _DEFAULT_SCALE[name] if scale is None else check_scale(scale)
    known = _SYNTHETIC_DEFAULTS if name == "synthetic" else {}
    for option in options:
        if option not in known:
            raise TypeError(f"{option}: expected {', '.join(known) or 'no option'} for {name}, got an unknown option")
    paths = fetch(name, data_dir=data_dir)
    if name == "digits":
        return _load_digits(chosen)
    if name == "synthetic":
        return _make_synthetic(chosen, **{**known, **options})
    if name == "covtype":
        return _load_covtype(paths[0], chosen)
    if name == "cifar10":
        return _load_cifar(paths[0], chosen)
    return _load_images(name, paths, chosen)


def from_libsvm(
    path: str | os.PathLike[str],
    *,
    n_features: int | None = None,
    test_fraction: float = 0.2,
    seed: int = 0,
    scale: Scale = 1.0,
    task: str | None = None,
) -> Dataset:
    """Read a LIBSVM file and split it at random.

    Each line is ``label index:value index:value ...`` with ascending indices from 1. Whole numbers as labels become
    ``0..K-1`` in increasing order, and their own values the ``classes``; if one has a fraction, all are real targets.

    Parameters
    ----------
    path : path
        Plain text, or compressed if the name ends in ``.gz``, ``.bz2`` or ``.xz``.
    n_features : int, optional
        Number of columns; default: the largest index.
    test_fraction : float
        Share of the rows that go to the test set, between 0 and 1.
    seed : int
        Seed of the split.
    scale : float or {"raw", "unit", "standard", "symmetric"}
        As in `load`.
    task : {"classification", "regression"}, optional
        ``"regression"`` takes whole numbers as real targets, ``"classification"`` refuses fractions, and takes more
        than 1000 different labels.

    Returns
    -------
    Dataset
        Dense float32 features, named after the file.

    Examples
    --------
    >>> import pathlib, tempfile
    >>> from byzadmm import datasets
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = pathlib.Path(folder, "tiny.txt")
    ...     _ = path.write_text("-1 1:0.5 3:2\\n+1 2:1\\n")
    ...     datasets.from_libsvm(path, test_fraction=0.5).n_features
    3

    References
    ----------
    C.-C. Chang, C.-J. Lin, "LIBSVM: a library for support vector machines", ACM TIST 2(3), 2011.
    """
    if not isinstance(path, str | os.PathLike):
        raise TypeError(f"path: expected a path, got {type(path).__name__}")
    path = Path(path)
    if n_features is not None:
        n_features = check_int(n_features, "n_features", low=1, high=MAX_FEATURES)
    fraction, seed = check_split(test_fraction, seed)
    scale, task = check_scale(scale), check_task(task)
    x, written = read_libsvm(path, n_features)
    y, n_classes, classes = numbered(written, str(path), task)
    return _split(path.name.split(".")[0], x, y, fraction, n_classes, scale, seed, classes)


def _load_digits(scale: Scale) -> Dataset:
    data = resources.files(__package__).joinpath(DIGITS.name).read_bytes()
    verify(DIGITS.name, data, DIGITS)
    with np.load(io.BytesIO(data)) as archive:
        x, y = archive["x"], archive["y"]
    return _split("digits", x, y, len(x) - _DIGITS_TRAIN, _IMAGE_CLASSES, scale, _SPLIT_SEED)


def _make_synthetic(scale: Scale, *, n_train: int, n_test: int, n_features: int, n_classes: int, seed: int) -> Dataset:
    """Gaussian clouds of unit noise around random centres, the classes equally frequent."""
    sizes = (check_int(n_train, "n_train", low=1), check_int(n_test, "n_test", low=1))
    n_features = check_int(n_features, "n_features", low=1)
    n_classes = check_int(n_classes, "n_classes", low=2)
    seed = check_int(seed, "seed", low=0, high=_MAX_SEED)
    # One stream each, so that asking for more test samples leaves the training set as it was.
    centres, *samples = (np.random.default_rng([seed, stream]) for stream in range(3))
    directions = centres.standard_normal((n_classes, n_features))
    directions *= _SEPARATION / np.linalg.norm(directions, axis=1, keepdims=True)

    def draw(size: int, rng: np.random.Generator) -> tuple[Array, Array]:
        y = rng.permutation(np.arange(size, dtype=np.int64) % n_classes)
        return (directions[y] + rng.standard_normal((size, n_features))).astype(np.float32), y

    (x, y), (x_test, y_test) = (draw(size, rng) for size, rng in zip(sizes, samples, strict=True))
    return make_dataset("synthetic", x, y, x_test, y_test, n_classes, scale)


def _load_images(name: str, paths: list[Path], scale: Scale) -> Dataset:
    x, y = _read_images(paths[0], paths[1], _IMAGES_TRAIN)
    x_test, y_test = _read_images(paths[2], paths[3], _IMAGES_TEST)
    return make_dataset(name, x, y, x_test, y_test, _IMAGE_CLASSES, scale)


def _read_images(images: Path, labels: Path, count: int) -> tuple[Array, Array]:
    x, y = read_idx(images, (count, *_IMAGE)), read_idx(labels, (count,))
    if y.max() >= _IMAGE_CLASSES:
        raise ValueError(f"{labels}: expected labels in [0, {_IMAGE_CLASSES - 1}], got {y.max()}")
    return x.reshape(count, -1), y.astype(np.int64)


def _load_cifar(path: Path, scale: Scale) -> Dataset:
    """Images in the published order: all of red, of green, of blue, each row by row."""
    shape = (_CIFAR_RECORDS, 1 + _CIFAR_PIXELS)
    batches = read_tar(path, dict.fromkeys(_CIFAR_BATCHES, math.prod(shape)))
    x = np.empty((len(batches) * _CIFAR_RECORDS, _CIFAR_PIXELS), np.uint8)
    y = np.empty(len(x), np.int64)
    for i, batch in enumerate(_CIFAR_BATCHES):
        records = np.frombuffer(batches.pop(batch), np.uint8).reshape(shape)
        rows = slice(i * _CIFAR_RECORDS, (i + 1) * _CIFAR_RECORDS)
        y[rows], x[rows] = records[:, 0], records[:, 1:]
        if y[rows].max() >= len(_CIFAR_CLASSES):
            raise ValueError(f"{path}: {batch}: expected labels in [0, {len(_CIFAR_CLASSES) - 1}], got {y[rows].max()}")
    n_train = len(x) - _CIFAR_RECORDS
    arrays = (x[:n_train], y[:n_train], x[n_train:], y[n_train:])
    return make_dataset("cifar10", *arrays, len(_CIFAR_CLASSES), scale, _CIFAR_CLASSES)


def _load_covtype(path: Path, scale: Scale) -> Dataset:
    cached = cache_dir() / f"covtype-{SOURCES['covtype'].files[0].sha256}.npz"
    table = _read_cache(cached)
    if table is None:
        table = read_csv(path, _COVTYPE_COLUMNS)
        _check_covtype(path, table)
        _write_cache(cached, table)
    # The table is int16, which no kernel reads; raw values are small integers and exact in float32.
    x, y = table[:, :-1], table[:, -1] - 1
    data = _split("covtype", x, y, len(x) - _COVTYPE_TRAIN, _COVTYPE_CLASSES, scale, _SPLIT_SEED)
    train_x, test_x = (each.astype(np.float32, copy=False) for each in (data.train_x, data.test_x))
    return replace(data, train_x=train_x, test_x=test_x)


def _check_covtype(path: Path, table: Array) -> None:
    if table.shape != (_COVTYPE_ROWS, _COVTYPE_COLUMNS):
        raise ValueError(f"{path}: expected shape {(_COVTYPE_ROWS, _COVTYPE_COLUMNS)}, got {table.shape}")
    low, high = table[:, -1].min(), table[:, -1].max()
    if low < 1 or high > _COVTYPE_CLASSES:
        raise ValueError(f"{path}: expected labels in [1, {_COVTYPE_CLASSES}], got {low if low < 1 else high}")


def _read_cache(path: Path) -> Array | None:
    """Return the parsed table, or None if it is absent or damaged in any way (a zip carries a CRC of its content)."""
    try:
        # Opened here, because np.load leaves a file that it cannot read open.
        with path.open("rb") as stream, np.load(stream) as archive:
            table: Array = archive["table"]
        _check_covtype(path, table)
    except Exception:  # a flipped byte in a zip header can surface as nearly any type, and all mean the same here
        return None
    return table if table.dtype == np.int16 else None


def _write_cache(path: Path, table: Array) -> None:
    """Write beside the target and rename; a cache that cannot be written is no reason to fail."""
    with contextlib.suppress(OSError):
        path.parent.mkdir(parents=True, exist_ok=True)
        with replacing(path) as stream:
            np.savez(stream, table=table)


def _split(
    name: str,
    x: Array,
    y: Array,
    n_test: int | float,
    n_classes: int,
    scale: Scale,
    seed: int,
    classes: tuple[str, ...] | None = None,
) -> Dataset:
    head, tail = split(len(x), n_test, seed)
    y = y.astype(np.int64 if n_classes else np.float64)
    return make_dataset(name, x[head], y[head], x[tail], y[tail], n_classes, scale, classes)
