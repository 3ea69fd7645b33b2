"""Codes as functions: known answers, the twin that tries every choice, hostile rows, and the kernels below."""

from __future__ import annotations

from itertools import combinations
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest

from byzadmm import _core, redundancy
from byzadmm import reference as ref
from byzadmm.redundancy._location import tables
from support.arrays import same_bits
from support.hostile import _forged_rows, _honest_rows, _Numbers

Array = npt.NDArray[Any]

SIZES = [(4, 1), (5, 1), (7, 2), (9, 1), (15, 3), (20, 4), (21, 6)]


def gradients(m: int, d: int, seed: int = 0, dtype: str = "float64") -> Array:
    return np.random.default_rng(seed).standard_normal((m, d)).astype(dtype)


def test_repetition_by_hand() -> None:
    code = redundancy.Repetition(r=3)
    G = np.array([[1.0, 0.0], [2.0, 0.0], [4.0, 0.0], [10.0, 1.0], [20.0, 1.0], [40.0, 1.0]])
    Z = redundancy.encode(G, code)
    assert (code.tolerated(6), redundancy.Cyclic(f=2).tolerated(6)) == (1, 2)
    assert {"repetition": redundancy.Repetition, "cyclic": redundancy.Cyclic} == redundancy.REGISTRY
    assert Z.tolist() == [[7.0, 0.0]] * 3 + [[70.0, 3.0]] * 3
    Z[[0, 4]] = [[1e308, np.nan], [-np.inf, 0.0]]
    assert redundancy.decode(Z, code).tolist() == [77 / 6, 0.5]
    assert redundancy.decode(Z[[1, 2, 3, 5]], code, m=6, workers=[1, 2, 3, 5]).tolist() == [77 / 6, 0.5]
    assert same_bits(redundancy.decode(Z, code), ref.repetition_decode(Z, 3))
    assert same_bits(Z[1:4], ref.repetition_encode(G, 3)[1:4])
    Z[5, 1] = np.nextafter(3.0, 4.0)  # a second one in the group
    with pytest.raises(redundancy.DecodingError, match=r"^Repetition: group 1, workers 3 to 5: no majority; 3 "):
        redundancy.decode(Z, code)
    with pytest.raises(redundancy.DecodingError, match=r"group 0, workers 0 to 2: no majority; 1 messages, none"):
        redundancy.decode(Z[2:5], code, m=6, workers=[2, 3, 4])


def test_colluders_win_only_with_a_majority_of_a_group() -> None:
    code, G = redundancy.Repetition(r=5), gradients(10, 7)
    honest = redundancy.decode(redundancy.encode(G, code), code)
    for places, wins in (([0, 4], False), ([1, 2], False), ([0, 1, 8, 9], False), ([0, 2, 4], True)):
        Z = redundancy.encode(G, code)
        Z[places] = 3.0
        assert same_bits(redundancy.decode(Z, code), honest) != wins, places


def test_the_majority_is_that_of_a_count() -> None:
    """Every sequence of three kinds of rows in a group of five, the vote against a count."""
    kinds = np.array([[0.0, 1.0, 2.0], [-0.0, 1.0, 2.0], [0.0, 1.0, 3.0]])  # equal, but not in bits, and another
    first = np.array([0, 5])
    for number in range(3**5):
        digits = [number // 3**place % 3 for place in range(5)]
        counts = np.bincount(digits, minlength=3)
        chosen = int(_core.majority_rows(kinds[digits], first, 3, 1)[0])
        assert (chosen >= 0) == (counts.max() >= 3), digits
        assert chosen < 0 or digits[chosen] == counts.argmax(), digits


@pytest.mark.parametrize(("m", "f"), SIZES)
def test_the_weights_of_the_cyclic_code(m: int, f: int) -> None:
    code, made = redundancy.Cyclic(f), tables(m, f)
    np.testing.assert_allclose(made.weights, ref.cyclic_weights(m, f), rtol=0, atol=1e-9 * np.abs(made.weights).max())
    for worker in range(m):
        assert np.flatnonzero(made.weights[worker]).tolist() == code.batches(worker, m), worker
    assert np.abs(made.checks @ made.weights).max() < 1e-15 * np.abs(made.weights).max()
    rng = np.random.default_rng(m)
    for kept in (np.arange(m), np.sort(rng.permutation(m)[: m - f]), np.arange(2 * f, m)):
        np.testing.assert_allclose(made.combination(kept) @ made.weights[kept], np.ones(m), atol=1e-9)


def test_no_rows_tell_less_of_the_others_than_consecutive_ones() -> None:
    for m, f in ((5, 1), (7, 2), (9, 1), (10, 3)):
        data = tables(m, f).data
        from_kept = [data @ np.linalg.inv(data[list(kept)]) for kept in combinations(range(m), m - 2 * f)]
        worst = max(np.abs(others).sum(axis=1).max() for others in from_kept)
        assert tables(m, f).growth == pytest.approx(worst, rel=1e-9), (m, f)


def test_the_cyclic_code_by_hand() -> None:
    """Five workers, one attacker: the messages of the definition, and any one of them replaced."""
    code, G = redundancy.Cyclic(f=1), np.array([[1.0], [2.0], [3.0], [4.0], [5.0]])
    Z = redundancy.encode(G, code)
    assert Z.shape == (5, 2)
    np.testing.assert_allclose(Z, ref.cyclic_encode(G, 1), rtol=1e-14)
    for row in range(5):
        for forged in ([0.0, 0.0], [1e308, -1e308], [1e-300, 0.0], [np.nan, 1.0], Z[(row + 1) % 5], -Z[row]):
            sent = Z.copy()
            sent[row] = forged
            assert redundancy.decode(sent, code)[0] == pytest.approx(3.0, rel=1e-13), (row, forged)
        others = np.delete(np.arange(5), row)
        assert redundancy.decode(Z[others], code, m=5, workers=others)[0] == pytest.approx(3.0, rel=1e-13)


def test_the_syndrome_is_zero_if_and_only_if_nobody_attacks() -> None:
    rng = np.random.default_rng(3)
    for m, f in SIZES:
        checks = tables(m, f).checks
        Z = redundancy.encode(gradients(m, 5, m), redundancy.Cyclic(f))
        coded = Z[:, :5] + 1j * Z[:, 5:]
        clean = np.abs(checks @ coded).max() / np.abs(coded).max()
        assert clean < 1e-13, (m, f)
        for count in range(1, f + 1):
            forged = coded.copy()
            forged[rng.permutation(m)[:count]] += 1e-6 * rng.standard_normal((count, 5))
            assert np.abs(checks @ forged).max(axis=0).min() > 1e-10, (m, f, count)


@pytest.mark.parametrize(("m", "f"), [(5, 1), (7, 2), (9, 1)])
def test_decoding_agrees_with_the_twin_that_tries_every_choice(m: int, f: int) -> None:
    rng, code = np.random.default_rng(m), redundancy.Cyclic(f)
    for trial in range(20):
        G = gradients(m, 6, trial)
        Z = redundancy.encode(G, code)
        forged = rng.permutation(m)[: int(rng.integers(f + 1))]
        Z[forged] = 10.0 ** rng.uniform(-2, 4) * rng.standard_normal((len(forged), 12))
        np.testing.assert_allclose(redundancy.decode(Z, code), ref.cyclic_decode(Z, f), rtol=1e-9, atol=1e-12)


def hostile(rng: np.random.Generator, m: int, f: int) -> tuple[str, Array, Array, float]:
    """Gradients of any size, messages of which at most f are any finite numbers, and the size of the honest ones."""
    numbers = _Numbers(rng, str(rng.choice(["float32", "float64"])))
    d = int(rng.integers(1, 30))
    kind, G = _honest_rows(numbers, m, d)
    G = (G / 2.0**12).astype(G.dtype)  # so that no regular message overflows
    code = redundancy.Cyclic(f)
    Z = redundancy.encode(G, code)
    size = float(np.abs(Z.astype(np.float64)).max())
    count = int(rng.integers(f + 1)) if rng.random() < 0.3 else f
    how, forged = _forged_rows(numbers, count, Z) if count else ("nothing", Z[:0])
    if count and rng.random() < 0.4:  # errors of all sizes beside each other
        how = "graded"
        with np.errstate(over="ignore"):
            errors = size * 2.0 ** rng.uniform(-60, 12, (count, 1)) * rng.standard_normal((count, 2 * d))
            forged = numbers.finite(Z[:count].astype(np.float64) + errors)
    place = [np.arange(count), np.sort(rng.permutation(m)[:count]), (rng.integers(m) + np.arange(count)) % m]
    Z[place[int(rng.integers(3))]] = forged
    return f"m={m}, f={f}, {Z.dtype}, gradients {kind}, forged {how}", G, Z, size


def check_hostile(seed: int, index: int) -> None:
    rng = np.random.default_rng([seed, index])
    m, f = SIZES[index % len(SIZES)]
    what, G, Z, size = hostile(rng, m, f)
    code, name = redundancy.Cyclic(f), f"seed {seed}, index {index}: {what}"
    try:
        found = redundancy.decode(Z, code, rng=index, threads=1)
    except redundancy.DecodingError as error:
        raise AssertionError(name) from error
    kind = np.finfo(G.dtype)
    rounding = float(kind.eps) * size + float(kind.smallest_subnormal)  # of the regular messages
    error = float(np.abs(found.astype(np.float64) - G.astype(np.float64).mean(axis=0)).max())
    assert error <= 1e4 * rounding, f"{name}: error {error / rounding:.1e} of rounding"


def test_no_legal_minority_wins() -> None:
    for index in range(140):
        check_hostile(1, index)


def test_more_attackers_than_declared_are_evident() -> None:
    rng = np.random.default_rng(0)
    for m, f in SIZES[2:]:
        code = redundancy.Cyclic(f)
        for size in (1e-3, 1.0, 1e6):
            Z = redundancy.encode(gradients(m, 8, 1), code)
            Z[rng.permutation(m)[: f + 1]] += size * rng.standard_normal((f + 1, 16))
            with pytest.raises(redundancy.DecodingError, match=f"^Cyclic: .*f={f}"):
                redundancy.decode(Z, code)
        Z = redundancy.encode(gradients(m, 8, 1), code)
        with pytest.raises(redundancy.DecodingError, match=rf"^Cyclic: {f + 1} of m={m} .* missing \({f + 1}\)"):
            redundancy.decode(Z[f + 1 :], code, m=m, workers=range(f + 1, m))


def test_the_same_bits_for_every_number_of_threads() -> None:
    for dtype in ("float32", "float64"):
        G = gradients(9, 5003, 2, dtype)
        for code in (redundancy.Cyclic(f=2), redundancy.Repetition(r=3)):
            Z = redundancy.encode(G, code, threads=1)
            Z[4] *= -3
            found = redundancy.decode(Z, code, rng=0, threads=1)
            for threads in (2, 3, 7):
                assert same_bits(redundancy.decode(Z, code, rng=0, threads=threads), found), (code, dtype, threads)
        inner, outer = (np.random.default_rng(size).uniform(-1, 1, size) for size in (1001, 5))
        phi = np.outer(outer, inner).ravel()[:5003]
        Z = redundancy.encode(G, redundancy.Cyclic(f=2))
        looks = _core.look_at_rows(Z, inner, outer, 0.5, 1)
        assert same_bits(looks, _core.look_at_rows(Z, inner, outer, 0.5, 3)), dtype
        re, im = 0.5 * Z[:, :5003].astype(np.float64), 0.5 * Z[:, 5003:].astype(np.float64)
        expected = np.stack([re @ phi, im @ phi, (re**2 + im**2).sum(axis=1), np.abs(np.hstack([re, im])).max(axis=1)])
        np.testing.assert_allclose(looks, expected.T, rtol=1e-11, atol=1e-11)


def test_kernels_check_memory() -> None:
    X, one = np.ones((4, 6)), np.ones(3)
    with pytest.raises(ValueError, match="X: expected rows of an even length"):
        _core.look_at_rows(np.ones((2, 3)), one, one, 1.0, 1)
    with pytest.raises(ValueError, match=r"outer: expected shape \(2,\), got \(3,\)"):
        _core.look_at_rows(X, np.ones(2), one, 1.0, 1)
    for first in ([0, 3], [1, 4], [0, 5, 4], []):
        with pytest.raises(ValueError, match="first: expected"):
            _core.majority_rows(X, np.array(first, np.int64), 2, 1)
    with pytest.raises(ValueError, match=r"weights: expected shape \(4,\), got \(3,\)"):
        _core.weighted_sum(X, np.empty(6), one, 1.0, 1)


def test_a_sum_is_finite_wherever_it_can_be() -> None:
    rows, weights = np.array([[1.5e308, 1.0], [1.5e308, 2.0], [-1.5e308, 4.0]]), np.array([1.0, 0.5, 1.0])
    out = np.empty(2)
    _core.weighted_sum(rows, out, weights, 1.0, 1)
    np.testing.assert_allclose(out, [7.5e307, 6.0], rtol=1e-15)


WRONG = {
    "r: expected an odd number, so that a group has a majority, got 2": lambda: redundancy.Repetition(r=2),
    "f: expected an integer >= 1, got 0": lambda: redundancy.Cyclic(f=0),
    "r: expected a divisor of the number of workers, m=7, got 3": lambda: encoded((7, 2), redundancy.Repetition()),
    "f: expected less than 2 for m=5 workers .m > 2f . 1., got 2": lambda: encoded((5, 2), redundancy.Cyclic(2)),
    "f: expected a code whose rounding errors grow": lambda: encoded((64, 2), redundancy.Cyclic(15)),
    "G: expected shape .m, d., one row per batch": lambda: encoded((3,), redundancy.Cyclic()),
    "code: expected a code of byzadmm.redundancy.*got the class Cyclic": lambda: encoded((3, 1), redundancy.Cyclic),
    "Z: expected rows of an even length": lambda: decoded((5, 3)),
    "workers: expected the senders of 5 rows": lambda: decoded((5, 4), m=6),
    "workers: expected 2 ascending numbers": lambda: decoded((2, 4), m=6, workers=[1, 0]),
}


def encoded(shape: tuple[int, ...], code: Any) -> Array:
    return redundancy.encode(np.ones(shape), code)


def decoded(shape: tuple[int, ...], **settings: Any) -> Array:
    return redundancy.decode(np.ones(shape), redundancy.Cyclic(), **settings)


@pytest.mark.parametrize("message", WRONG)
def test_wrong_arguments(message: str) -> None:
    with pytest.raises(TypeError if "class" in message else ValueError, match=f"^{message}"):
        WRONG[message]()
