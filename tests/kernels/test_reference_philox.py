"""Twin of the counter-based generator against its definition, NumPy and SciPy."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest
from scipy import special, stats

import byzadmm.reference as ref

Array = npt.NDArray[Any]

DTYPES = ("float32", "float64")


def philox_block(key: int, counter: tuple[int, int, int, int]) -> list[int]:
    """Philox4x64-10 from its definition, in Python integers."""
    mask = 2**64 - 1
    c0, c1, c2, c3 = counter
    k0, k1 = key, 0
    for _ in range(10):
        p0, p1 = 0xD2E7470EE14C6C93 * c0, 0xCA5A826395121157 * c2
        c0, c1, c2, c3 = (p1 >> 64) ^ c1 ^ k0, p1 & mask, (p0 >> 64) ^ c3 ^ k1, p0 & mask
        k0, k1 = (k0 + 0x9E3779B97F4A7C15) & mask, (k1 + 0xBB67AE8584CAA73B) & mask
    return [c0, c1, c2, c3]


@pytest.mark.parametrize("seed", [0, 1, 2**64 - 1])
@pytest.mark.parametrize("stream", [0, 7, 2**64 - 1, (3,), (1, 2), (0, 0, 5), (2**64 - 1, 2**64 - 1, 2**64 - 1)])
def test_philox_words_follow_the_definition(seed: int, stream: int | tuple[int, ...]) -> None:
    parts = stream if isinstance(stream, tuple) else (stream,)
    s0, s1, s2 = (*parts, 0, 0)[:3]
    expected = [word for block in range(3) for word in philox_block(seed, (block, s0, s1, s2))]
    got = ref.philox_words(10, seed=seed, stream=stream)
    assert got.dtype == np.uint64
    assert got.tolist() == expected[:10]


def test_philox_words_are_those_of_numpy_one_block_on() -> None:
    raw = np.random.Philox(key=[12345, 0], counter=[0, 6, 7, 8]).random_raw(8)
    assert ref.philox_words(12, seed=12345, stream=(6, 7, 8)).tolist()[4:] == raw.tolist()


@pytest.mark.parametrize("high", [1, 2, 10, 60_000, 2**31, 2**32 - 1, 2**32, 2**32 + 1, 3**39, 2**63 - 1, 2**63])
def test_philox_integers_are_the_exact_upper_product(high: int) -> None:
    words = ref.philox_words(60, seed=5, stream=(1, 2)).tolist()
    got = ref.philox_integers((3, 20), high=high, seed=5, stream=(1, 2))
    assert got.dtype == np.int64
    assert got.shape == (3, 20)
    assert got.ravel().tolist() == [w * high >> 64 for w in words]


def test_philox_integers_are_uniform() -> None:
    counts = np.bincount(ref.philox_integers(20_000, high=10, seed=3), minlength=10)
    assert stats.chisquare(counts).pvalue > 1e-3


@pytest.mark.parametrize("dtype", DTYPES)
def test_philox_normal_is_built_from_its_bits(dtype: str) -> None:
    words = ref.philox_words(6, seed=9, stream=4).tolist()
    expected = []
    for e in range(5):
        if dtype == "float64":
            bits, top = words[e], 63
            p = (((bits & (2**63 - 1)) >> 11) + 0.5) * 2.0**-53
        else:
            bits, top = (words[e // 2] >> 32 * (e % 2)) & (2**32 - 1), 31
            p = ((bits & (2**31 - 1)) + 0.5) * 2.0**-32
        expected.append((-1 if bits >> top else 1) * -special.ndtri(p))
    got = ref.philox_normal(5, seed=9, stream=4, dtype=dtype)
    assert got.dtype == dtype
    np.testing.assert_allclose(got, expected, rtol=1e-14 if dtype == "float64" else 1e-7)


@pytest.mark.parametrize("dtype", DTYPES)
def test_philox_normal_is_normal(dtype: str) -> None:
    z = ref.philox_normal((200, 500), seed=2, stream=(1, 0, 3), dtype=dtype)
    assert z.shape == (200, 500)
    sample = z.ravel().astype(np.float64)
    assert stats.kstest(sample, "norm").pvalue > 1e-3
    n = sample.size
    moments = [np.mean(sample**p) for p in (1, 2, 3, 4)]
    spread = np.sqrt(np.array([1, 2, 15, 96]) / n)
    assert (np.abs(np.array(moments) - [0, 1, 0, 3]) < 4 * spread).all()
    assert abs(np.corrcoef(sample[:-1], sample[1:])[0, 1]) < 4 / np.sqrt(n)


def test_ndtri_is_that_of_scipy() -> None:
    p = np.concatenate(
        [
            np.linspace(0.001, 0.999, 4001),
            np.array([0.075, 0.925, 0.5, np.exp(-25.0)]),
            np.logspace(-300, -1, 2001),
            1 - np.logspace(-15, -1, 501),
            (np.arange(50) + 0.5) * 2.0**-53,
        ]
    )
    np.testing.assert_allclose(ref.ndtri(p), special.ndtri(p), rtol=1e-14, atol=1e-15)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: ref.philox_words(1, seed=-1), r"seed: expected an integer in \[0, 2\^64\), got -1"),
        (
            lambda: ref.philox_words(1, seed=2**64),
            r"seed: expected an integer in \[0, 2\^64\), got 18446744073709551616",
        ),
        (lambda: ref.philox_words(1, seed=0, stream=(0, -2)), r"stream: expected an integer in \[0, 2\^64\), got -2"),
        (lambda: ref.philox_words(1, seed=0, stream=(0, 0, 0, 0)), "stream: expected at most 3 words, got 4"),
        (lambda: ref.philox_integers(1, high=0, seed=0), r"high: expected an integer in \[1, 2\^63\], got 0"),
        (
            lambda: ref.philox_integers(1, high=2**63 + 1, seed=0),
            r"high: expected an integer in \[1, 2\^63\], got 9223",
        ),
        (lambda: ref.philox_normal(1, seed=0, dtype="float16"), "dtype: expected float32 or float64, got float16"),
    ],
)
def test_philox_refuses_wrong_values(call: Callable[[], Array], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        call()
