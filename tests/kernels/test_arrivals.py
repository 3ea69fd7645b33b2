"""What the master of an asynchronous run makes of one message: the kernels against their twins."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
import pytest

import byzadmm.reference as ref
from byzadmm import _core
from support.arrays import same_bits

Array = npt.NDArray[Any]

SIZES = (1, 2, 7, 8, 9, 31, 1000, 8193)


def normal(*shape: int, dtype: str, seed: int = 0) -> Array:
    return np.random.default_rng(seed).standard_normal(shape).astype(dtype)


def test_the_answer_of_admm_is_both_steps_in_turn(dtype: str) -> None:
    settings = {"alpha": 0.3, "beta": 0.8, "lam": 0.4}
    for m, d in ((1, 1), (1, 8193), (3, 7), (5, 1000)):
        x, g, eta, before = normal(4, m, d, dtype=dtype)
        x0 = normal(d, dtype=dtype, seed=1)
        x[0, 0] = np.nan  # a worker that has diverged says so
        moved, dual = np.empty_like(x), np.empty_like(x)
        _core.admm_worker_step(x, g, eta, before, moved, settings["alpha"], 1)
        _core.admm_dual_step(eta, moved, x0, dual, settings["beta"], settings["lam"], 1)
        twin = ref.admm_answer(x, g, eta, before, x0, **settings)
        for threads in (1, 3, 8):
            x_, message, now, last = (array.copy() for array in (x, g, eta, before))
            _core.admm_answer(x_, message, now, last, x0, *settings.values(), threads)
            for made, expected in ((x_, moved), (message, dual), (now, dual), (last, eta)):
                assert same_bits(made, expected), (m, d, threads)
        for made, expected in zip((moved, dual), twin, strict=True):
            np.testing.assert_allclose(made, expected, rtol=0, atol=16 * np.finfo(dtype).eps)
    with pytest.raises(ValueError, match="eta: expected shape"):
        _core.admm_answer(x_, message, now[:1], last, x0, 1.0, 1.0, 1.0, 1)


def test_distances(dtype: str) -> None:
    largest = float(np.finfo(dtype).max)
    for d in SIZES:
        x, y = normal(2, d, dtype=dtype)
        for size in (1.0, float(np.finfo(dtype).tiny), largest / 8):
            a, b = (np.asarray(size * v, dtype) for v in (x, y))
            exact = float(ref.lengths(a[None], b)[0])
            assert _core.distance(a, b) == pytest.approx(exact, rel=1e-5 if dtype == "float32" else 1e-13), (d, size)
            assert _core.distance(a, b, take=True) == _core.distance(a, np.asarray(size * y, dtype)), (d, size)
            assert same_bits(a, b), (d, size)
            assert _core.distance(a, b) == 0.0, (d, size)
    far = np.full(9, largest, dtype)
    apart = _core.distance(far, -far)
    assert apart == (np.inf if dtype == "float64" else pytest.approx(6 * largest))
    for odd in (np.nan, np.inf):
        assert _core.distance(np.array([odd, 1.0], dtype), np.zeros(2, dtype)) == np.inf
    fixed = np.zeros(9, dtype)
    fixed.flags.writeable = False
    assert _core.distance(far, fixed) > 0
    with pytest.raises(ValueError, match="y: expected a writable array"):
        _core.distance(far, fixed, take=True)
    with pytest.raises(ValueError, match="y: expected shape"):
        _core.distance(far, fixed[:3])


def test_the_mean_of_a_buffer(dtype: str) -> None:
    largest = np.finfo(dtype).max
    for d in SIZES:
        for rows in (normal(6, d, dtype=dtype), np.full((6, d), largest), np.full((6, d), -0.0, dtype)):
            mean, twin = np.full(d, np.nan, dtype), np.full(d, np.nan, dtype)
            for n, row in enumerate(rows, start=1):
                _core.add_to_mean(mean, row, n)
                twin = ref.add_to_mean(twin, row, n)
                assert same_bits(mean, twin), (d, n)
                assert np.isfinite(mean).all(), (d, n)
    with pytest.raises(ValueError, match="n: expected at least 1"):
        _core.add_to_mean(mean, row, 0)


def test_the_direction_of_zeno(dtype: str) -> None:
    taken = turns = 0
    rng = np.random.default_rng(0)
    low, high = (-35, 36) if dtype == "float32" else (-150, 150)
    for d in SIZES:
        for turn in range(40):
            about, size = 10.0 ** rng.integers(low, high, 2)
            v = about * rng.standard_normal(d)
            g = np.asarray(size * (rng.standard_normal(d) + rng.choice([-0.1, 0.1, 3.0]) * v / about), dtype)
            settings = {"alpha": 0.1, "rho": rng.choice([0.0, 1e-3]), "eps": rng.choice([0.0, 0.05, -0.05]) * about**2}
            out = np.zeros(d, dtype)
            accepted = _core.zeno_direction(g, v, out, *settings.values())
            twin = ref.zeno_direction(g, v, **settings)
            assert accepted == (twin is not None), (d, turn)
            if twin is None:
                assert not out.any(), (d, turn)
            else:
                length = max(float(np.abs(twin).max()), float(np.finfo(dtype).tiny))
                np.testing.assert_allclose(out / length, twin / length, rtol=0, atol=16 * np.finfo(dtype).eps)
            taken, turns = taken + accepted, turns + 1
    assert 0.2 < taken / turns < 0.8
    out, one = np.zeros(2, dtype), np.ones(2, dtype)
    for wrong in (np.nan, np.inf):
        assert not _core.zeno_direction(one, np.array([1.0, wrong]), out, 1.0, 0.0, 1.0)
    zero = np.zeros(2, dtype)
    assert not _core.zeno_direction(zero, np.ones(2), out, 1.0, 0.1, 0.0)  # as if at right angles
    assert _core.zeno_direction(zero, np.ones(2), out, 1.0, 0.1, 0.2)
    assert not out.any()
    assert ref.zeno_direction(zero, np.ones(2), alpha=1.0, rho=0.1, eps=0.0) is None


def test_the_sums_of_admm_follow_what_is_heard(dtype: str) -> None:
    for d in SIZES:
        message, eta = normal(2, d, dtype=dtype)
        total, change = normal(2, d, dtype="float64", seed=1)
        x0 = normal(d, dtype=dtype, seed=2)
        twin = ref.admm_hear(message, eta, total, change)
        before = np.empty_like(eta)
        _core.admm_hear(message, eta, before, total, change)
        for made, expected in zip((eta, before, total, change), twin, strict=True):
            assert same_bits(made, expected), d
        expected = ref.admm_master_step_of_sums(x0, total, change, alpha=0.3, rho=0.1)
        _core.admm_master_step_of_sums(x0, total, change, 0.3, 0.1)
        assert same_bits(x0, expected), d
        assert not change.any(), d
