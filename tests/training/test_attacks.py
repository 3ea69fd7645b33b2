"""Attacks: each by hand and against its NumPy twin, as the paper defines it and not as others do."""

from __future__ import annotations

from statistics import NormalDist
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest

from byzadmm import ADMM, RSA, SGD, _core, attacks, steps
from byzadmm import reference as ref
from support.arrays import same_bits

Array = npt.NDArray[Any]

MESSAGES = np.array([[1.0, 2.0], [3.0, -4.0], [5.0, 6.0], [-7.0, 8.0]])
X0 = np.array([10.0, 20.0])
ADMM_ = ADMM(lam=0.5, beta=4.0)
RSA_ = RSA(lam=0.5, step=steps.constant(1))


def forged(
    attack: attacks.Attack, k: int = 3, algorithm: Any = ADMM_, seed: int = 0, messages: Array = MESSAGES
) -> Array:
    """What workers 1 and 3 send."""
    out = np.empty((2, messages.shape[1]), messages.dtype)
    spec = attack.spec(algorithm, len(messages), 2)
    x0 = np.resize(X0, messages.shape[1]).astype(messages.dtype)
    _core.attack_messages(spec, messages, [1, 3], x0, k, seed, out, 1)
    return out


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize(
    ("attack", "expected"),
    [
        (attacks.SignFlip(), [[-9.0, 12.0], [21.0, -24.0]]),
        (attacks.SignFlip(2), [[6.0, -8.0], [-14.0, 16.0]]),
        (attacks.Duplicate(2), [[5.0, 6.0]] * 2),
        (attacks.Duplicate(), [[1.0, 2.0]] * 2),
        (attacks.SmallValue(6.0), [[9.5, 19.5]] * 2),
        (attacks.LargeValue(), [[10.5, 20.5]] * 2),
        (attacks.LargeValue(beta=1.0), [[12.0, 22.0]] * 2),
        (attacks.DualOscillation(), [[-0.5, -0.5]] * 2),
        (attacks.Zero(), [[0.0, 0.0]] * 2),
        (attacks.SameValue(7), [[7.0, 7.0]] * 2),
        (attacks.LabelFlip(), [[3.0, -4.0], [-7.0, 8.0]]),
        (attacks.ALIE(0.5), [[2.0, 3.0]] * 2),  # rows 0 and 2: mean (3, 4), population deviation (2, 2)
        (attacks.ALIE(-1.0), [[5.0, 6.0]] * 2),
        (attacks.InnerProduct(2.0), [[-6.0, -8.0]] * 2),
        (attacks.InnerProduct(), [[-3.0, -4.0]] * 2),
    ],
)
def test_by_hand(attack: attacks.Attack, expected: list[list[float]], dtype: str) -> None:
    assert forged(attack, messages=MESSAGES.astype(dtype)).tolist() == expected


def test_index_dependent_attacks() -> None:
    small = [forged(attacks.SmallValue(0.5), k)[0, 0] - 10 for k in range(4)]
    np.testing.assert_allclose(small, [-0.5, -0.25, -0.5 / 6, -0.5 / 12], rtol=1e-12)
    assert [forged(attacks.LargeValue(), k)[0, 0] for k in range(4)] == [9.5, 10.5, 9.5, 10.5]
    assert [forged(attacks.DualOscillation(), k)[1, 1] for k in range(4)] == [0.5, -0.5, 0.5, -0.5]


def test_settings_that_an_algorithm_lacks_are_one() -> None:
    assert forged(attacks.LargeValue(), 0, RSA_)[0, 0] == 10 - 4 * 0.5
    assert forged(attacks.LargeValue(), 0, SGD())[0, 0] == 10 - 4
    assert forged(attacks.DualOscillation(), 0, SGD())[0, 0] == 1.0


def test_not_finite_is_nan() -> None:
    assert np.isnan(forged(attacks.NonFinite())).all()


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_gaussian_is_the_stream_of_seed_worker_and_index(dtype: str) -> None:
    messages = np.zeros((4, 501), dtype)
    made = forged(attacks.Gaussian(30.0), 5, seed=9, messages=messages)
    tol = 1e-5 if dtype == "float32" else 1e-12
    for row, worker in zip(made, (1, 3), strict=True):
        twin = 30.0 * ref.philox_normal(501, seed=9, stream=(1, worker, 5), dtype=dtype)
        np.testing.assert_allclose(row, twin, rtol=tol, atol=tol)
    assert np.array_equal(made, forged(attacks.Gaussian(30.0), 5, seed=9, messages=messages))
    fresh = [made[0], made[1]] + [
        forged(attacks.Gaussian(30.0), *at, messages=messages)[0] for at in ((6, ADMM_, 9), (5, ADMM_, 8))
    ]
    assert len({row.tobytes() for row in fresh}) == 4
    assert not forged(attacks.Gaussian(0), messages=messages).any()


def test_gaussian_has_the_deviation_it_says() -> None:
    made = forged(attacks.Gaussian(), messages=np.zeros((4, 50_000)))
    assert made.std() == pytest.approx(100, rel=0.02)
    assert abs(made.mean()) < 1
    assert abs(np.corrcoef(made)[0, 1]) < 0.02


@pytest.mark.parametrize("threads", [1, 2, 3, 7])
@pytest.mark.parametrize("attack", [attacks.Gaussian(), attacks.SignFlip(), attacks.ALIE(), attacks.SmallValue()])
def test_threads_do_not_matter(attack: attacks.Attack, threads: int) -> None:
    messages = np.random.default_rng(0).standard_normal((9, 4099))
    outs = [np.empty((4, 4099)) for _ in range(2)]
    for out, count in zip(outs, (threads, 0), strict=True):
        _core.attack_messages(attack.spec(ADMM_, 9, 4), messages, [0, 2, 5, 8], messages[0], 3, 1, out, count)
    assert same_bits(*outs)


def test_called_as_a_users_attack() -> None:
    given: dict[str, Any] = {"x0": X0, "byzantine": [1, 3], "algorithm": ADMM_}
    made = attacks.SignFlip()(MESSAGES, k=1, rng=np.random.default_rng(0), **given)
    assert made.tolist() == [[-9.0, 12.0], [21.0, -24.0]]
    rng = np.random.default_rng(0)
    gaussian = attacks.Gaussian()
    first, second = (gaussian(MESSAGES, k=1, rng=rng, **given) for _ in range(2))
    assert not np.array_equal(first, second)
    assert np.array_equal(first, gaussian(MESSAGES, k=1, rng=np.random.default_rng(0), **given))


def test_strength_of_alie() -> None:
    # m=20, q=8: s = 11 - 8 = 3 supporters of 12 regular workers.
    assert attacks.ALIE.strength(20, 8) == pytest.approx(NormalDist().inv_cdf(9 / 12))
    by_default, given = (attacks.ALIE(*z).spec(ADMM_, 20, 8) for z in ((), (attacks.ALIE.strength(20, 8),)))
    assert by_default.value == given.value
    # A Byzantine majority needs no supporter, or no regular worker is left: bounded, not infinite.
    for m, q in ((10, 8), (5, 5), (3, 0), (1, 0)):
        assert np.isfinite(attacks.ALIE.strength(m, q))


def test_without_a_regular_worker_there_is_nothing_to_imitate() -> None:
    out = np.empty((2, 2))
    for attack in (attacks.ALIE(1.0), attacks.InnerProduct()):
        _core.attack_messages(attack.spec(ADMM_, 2, 2), MESSAGES[:2], [0, 1], X0, 1, 0, out, 1)
        assert np.isnan(out).all()


@pytest.mark.parametrize(
    ("make", "error", "message"),
    [
        (lambda: attacks.Gaussian(-1), ValueError, "std: expected a finite number >= 0.0, got -1.0"),
        (lambda: attacks.Gaussian("x"), TypeError, "std: expected a real number, got str"),  # type: ignore[arg-type]
        (lambda: attacks.SignFlip(np.nan), ValueError, "scale: expected a finite number, got nan"),
        (lambda: attacks.Duplicate(-1), ValueError, "worker: expected an integer >= 0, got -1"),
        (lambda: attacks.Duplicate(0.5), TypeError, "worker: expected an integer, got float"),  # type: ignore[arg-type]
        (lambda: attacks.SmallValue(np.inf), ValueError, "eps: expected a finite number, got inf"),
        (lambda: attacks.LargeValue(0.0), ValueError, "beta: expected a finite number > 0.0, got 0.0"),
        (lambda: attacks.SameValue(np.nan), ValueError, "v: expected a finite number, got nan"),
        (lambda: attacks.ALIE(np.inf), ValueError, "z: expected a finite number, got inf"),
        (lambda: attacks.InnerProduct(None), TypeError, "eps: expected a real number, got NoneType"),  # type: ignore[arg-type]
        (lambda: attacks.Duplicate(4).spec(ADMM_, 4, 1), ValueError, "Duplicate: worker=4 is not one of 4 workers"),
        (lambda: attacks.Attack().spec(ADMM_, 4, 1), TypeError, "Attack: a base class, it has no native form"),
    ],
)
def test_what_is_refused(make: Any, error: type[Exception], message: str) -> None:
    with pytest.raises(error, match=message):
        make()


EVERY = [attacks.SignFlip(), attacks.MinMax(), attacks.WorstCase()]


@pytest.mark.parametrize("attack", EVERY, ids=lambda attack: type(attack).__name__)
@pytest.mark.parametrize(
    ("changes", "error", "message"),
    [
        ({"byzantine": [1.5]}, TypeError, "byzantine: expected an integer, got float"),
        ({"byzantine": [99]}, ValueError, r"byzantine: expected an integer in \[0, 3\], got 99"),
        ({"byzantine": [-1]}, ValueError, r"byzantine: expected an integer in \[0, 3\], got -1"),
        ({"byzantine": 3}, TypeError, "byzantine: expected a list of workers' numbers, got int"),
        ({"byzantine": [1, 1]}, ValueError, r"byzantine: a worker is named twice in \[1, 1\]"),
        ({"x0": None}, TypeError, "x0: expected real numbers"),
        ({"x0": np.zeros(3)}, ValueError, r"x0: expected shape \(2,\), got \(3,\)"),
        ({"messages": np.ones(4)}, ValueError, r"messages: expected shape \(m, d\), one row per worker, got \(4,\)"),
        ({"messages": [["a"]]}, TypeError, "messages: expected real numbers"),
    ],
)
def test_what_an_attack_is_called_with_is_checked(
    attack: attacks.Attack, changes: dict[str, Any], error: type[Exception], message: str
) -> None:
    given: dict[str, Any] = {"messages": np.ones((4, 2)), "x0": np.zeros(2), "k": 1, "byzantine": [1]}
    given |= {"rng": np.random.default_rng(0), "algorithm": SGD()} | changes
    with pytest.raises(error, match=f"^{message}"):
        attack(given.pop("messages"), **given)


def test_attacks_take_lists_and_say_who_draws() -> None:
    given: dict[str, Any] = {"x0": [0.0], "k": 1, "byzantine": (1,), "algorithm": SGD()}
    for attack in EVERY:
        assert attack([[1], [1], [1]], rng=np.random.default_rng(0), **given).shape == (1, 1)
    for attack in (EVERY[0], EVERY[2]):
        with pytest.raises(TypeError, match=r"^rng: expected a numpy.random.Generator, got NoneType$"):
            attack([[1.0], [1.0]], rng=None, **given)  # type: ignore[arg-type]
    with pytest.raises(TypeError, match=r"^k: expected an integer, got NoneType$"):
        EVERY[0]([[1.0], [1.0]], rng=np.random.default_rng(0), **(given | {"k": None}))  # type: ignore[arg-type]
    with pytest.raises(ValueError, match=r"^byzantine: expected an integer"):
        attacks.WorstCase().harm(np.ones((2, 1)), np.ones((1, 1)), x0=np.zeros(1), byzantine=[7], algorithm=SGD())
