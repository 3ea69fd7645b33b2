"""The published files themselves."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from byzadmm import datasets
from support.data_files import files_in


@pytest.mark.slow
@pytest.mark.data
def test_real_mnist(data_dir: Path) -> None:
    data = datasets.load("mnist", data_dir=data_dir)
    assert data.train_x.dtype == np.uint8
    assert (data.train_x.shape, data.test_x.shape) == ((60000, 784), (10000, 784))
    assert np.bincount(data.train_y).tolist() == [5923, 6742, 5958, 6131, 5842, 5421, 5918, 6265, 5851, 5949]
    assert np.bincount(data.test_y).tolist() == [980, 1135, 1032, 1010, 982, 892, 958, 1028, 974, 1009]
    assert round(float(data.train_x.mean()) * data.scale, 4) == 0.1307
    assert round(float(data.train_x.std()) * data.scale, 4) == 0.3081


@pytest.mark.slow
@pytest.mark.data
def test_real_covtype(data_dir: Path, cache: Path) -> None:
    raw = datasets.load("covtype", data_dir=data_dir, scale="raw")
    assert (raw.train_x.shape, raw.test_x.shape) == ((465264, 54), (115748, 54))
    counts = np.bincount(np.concatenate([raw.train_y, raw.test_y]))
    assert counts.tolist() == [211840, 283301, 35754, 2747, 9493, 17367, 20510]
    low, high = (f(np.stack([f(raw.train_x, 0), f(raw.test_x, 0)]), 0) for f in (np.min, np.max))
    assert low[:10].tolist() == [1859, 0, 0, 0, -173, 0, 0, 0, 0, 0]
    assert high[:10].tolist() == [3858, 360, 66, 1397, 601, 7117, 254, 254, 254, 7173]
    assert (raw.train_x[:, 10:14].sum(axis=1) == 1).all()
    # Shuffled: the class frequencies of the two halves agree, which the order of the file would not give.
    np.testing.assert_allclose(
        np.bincount(raw.train_y) / 465264, np.bincount(raw.test_y) / 115748, rtol=0.1, err_msg="not shuffled"
    )
    assert len(files_in(cache)) == 1
    standard = datasets.load("covtype", data_dir=data_dir)
    np.testing.assert_allclose(standard.train_x.mean(axis=0, dtype=float), 0, atol=1e-5)
    np.testing.assert_allclose(standard.train_x.std(axis=0, dtype=float), 1, atol=1e-4)
    assert np.array_equal(standard.train_y, raw.train_y)


@pytest.mark.slow
@pytest.mark.data
def test_real_libsvm(data_dir: Path) -> None:
    data = datasets.from_libsvm(data_dir / "covtype" / "covtype.libsvm.binary.scale.bz2")
    assert (data.n_features, data.n_classes, len(data.train_x), len(data.test_x)) == (54, 2, 464810, 116202)
    assert np.bincount(np.concatenate([data.train_y, data.test_y])).tolist() == [297711, 283301]
    assert sum(np.count_nonzero(x) for x in (data.train_x, data.test_x)) == 6_940_438
    assert (data.train_x.min(), data.train_x.max()) == (0.0, 1.0)
