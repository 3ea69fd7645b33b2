"""Attacks: each by hand and against its NumPy twin, as the paper defines it and not as others do."""

from __future__ import annotations

from statistics import NormalDist
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest

from byzadmm import ADMM, RSA, SGD, _core, aggregate, attacks, steps
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
        (attacks.Infinite(), [[np.inf, np.inf]] * 2),
        (attacks.Infinite(-1), [[-np.inf, -np.inf]] * 2),
        (attacks.Gaussian(0, mean=-2.5), [[-2.5, -2.5]] * 2),
        (attacks.Mimic(worker=2), [[5.0, 6.0]] * 2),
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


def test_attacks_on_one_receiver_by_hand() -> None:
    """Workers 1 and 3 send the same: rows 0 and 2 are (-9, -18) and (-5, -14) away from x0, together (-14, -32)."""
    given: dict[str, Any] = {"x0": X0, "byzantine": [1, 3]}
    assert attacks.Isolation()(MESSAGES, **given).tolist() == [[17.0, 36.0]] * 2
    assert attacks.Dissensus(eps=2.0)(MESSAGES, **given).tolist() == [[24.0, 52.0]] * 2
    weights = [0.4, 0.1, 0.2, 0.3]  # -4.6 and -10 from 10 and 20, over 0.4
    assert attacks.Isolation()(MESSAGES, weights=weights, **given)[0] == pytest.approx([21.5, 45.0])


def test_attacks_on_a_neighborhood_by_hand() -> None:
    """Workers 1 and 3 attack; node 0 hears 1, 2, 3 and 4, the others on a graph are no neighbors of it."""
    rows = np.vstack([MESSAGES, [[9.0, 6.0], [100.0, 100.0]]])
    given: dict[str, Any] = {"byzantine": [1, 3], "receiver": 0, "weights": [0.2, 0.2, 0.2, 0.2, 0.2, 0.0]}
    alone = {"byzantine": [1, 3], "receiver": 5, "weights": [0.0, 0.4, 0.0, 0.0, 0.0, 0.6]}
    ample = {"byzantine": [1], "receiver": 0, "weights": [0.5, 0.5, 0.0, 0.0, 0.0, 0.0]}
    everybody = {"byzantine": [3]}  # with a master: rows 0, 1, 2, and mean (3, 4/3)
    cases: list[tuple[attacks.Attack, dict[str, Any], Any]] = [
        (attacks.LocalGaussian(std=0.0), given, [7.0, 6.0]),
        (attacks.LocalSignFlip(), given, [-5.0, -14 / 3]),  # rows 0, 2 and 4
        (attacks.LocalSignFlip(scale=-3.0), alone, [-300.0, -300.0]),
        (attacks.LocalDuplicate(), alone, [100.0, 100.0]),
        (attacks.LocalALIE(z=0.5), given, [7.0 + 0.5 * 8**0.5, 6.0]),  # deviation of the sample 5, 9
        (attacks.LocalALIE(z=9.0), ample, [1.0, 2.0]),  # of one message there is none
        (attacks.LocalGaussian(std=0.0), everybody, [3.0, 4 / 3]),
        (attacks.LocalSignFlip(), everybody, [-3.0, -4 / 3]),
    ]
    for attack, about, expected in cases:
        messages = MESSAGES if about is everybody else rows
        made = attack(messages, **about)
        assert made == pytest.approx(np.array([expected] * len(about["byzantine"]))), attack
    # Four neighbors, one or two of them Byzantine: Phi^-1(3/4), Phi^-1(1/2); none but attackers left: capped.
    assert attacks.LocalALIE.strength(4, 1) == pytest.approx(NormalDist().inv_cdf(0.75))
    assert [attacks.LocalALIE.strength(10, b) for b in (1, 2)] == pytest.approx([0.2533471, 0.5244005])
    assert attacks.LocalALIE.strength(2, 1) == NormalDist().inv_cdf(1 - 1e-9)
    # Drawn anew for each receiver and round, one for all attackers; noise is each attacker's own.
    copied = [attacks.LocalDuplicate()(rows, rng=np.random.default_rng(i), **given) for i in range(20)]
    assert {tuple(made[0]) for made in copied} == {(5.0, 6.0), (9.0, 6.0)}
    assert all(made[0].tolist() == made[1].tolist() for made in copied)
    noisy = attacks.LocalGaussian(std=2.0)(np.zeros((4, 4000)), byzantine=[2, 3])
    assert noisy.std() == pytest.approx(2.0, rel=0.05)
    assert not np.any(noisy[0] == noisy[1])


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
    shifted = forged(attacks.Gaussian(30.0, mean=7.0), 5, seed=9, messages=messages)
    assert same_bits(shifted, made + messages.dtype.type(7.0))
    np.testing.assert_allclose(ref.gaussian(30.0, 7.0, seed=9)(messages, messages[0], 5, [1, 3]), shifted, rtol=tol,
                               atol=tol)  # fmt: skip
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
        (lambda: attacks.Gaussian(1, mean=np.inf), ValueError, "mean: expected a finite number, got inf"),
        (lambda: attacks.Infinite(0), ValueError, "sign: expected 1 or -1, got 0"),
        (lambda: attacks.Infinite(1.0), TypeError, "sign: expected an integer, got float"),  # type: ignore[arg-type]
        (lambda: attacks.Mimic(0), ValueError, "warmup: expected an integer >= 1, got 0"),
        (lambda: attacks.Mimic(worker=4)(MESSAGES), ValueError, "Duplicate: worker=4 is not one of 4 workers"),
        (lambda: attacks.Fang("median"), ValueError, "defense: "),
        (lambda: attacks.Fang("krum", "partial"), ValueError, "knowledge: expected 'full' for krum, got 'partial'"),
        (lambda: attacks.Fang(b=1.0), ValueError, "b: expected a finite number > 1.0, got 1.0"),
        (lambda: attacks.LabelFlip("10"), TypeError, "mapping: expected a sequence of labels, a dict or None, got str"),
        (lambda: attacks.LabelFlip([0.5]), TypeError, "mapping: expected an integer, got float"),  # type: ignore[list-item]
        (lambda: attacks.LabelFlip({0: -1}), ValueError, "mapping: expected an integer >= 0, got -1"),
        (lambda: attacks.LabelFlip()(MESSAGES), TypeError, "LabelFlip: changes the labels of workers in training, not"),
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
        ({"x0": "origin"}, TypeError, "x0: expected real numbers"),
        ({"rng": 0}, TypeError, "rng: expected a numpy.random.Generator, got int"),
        ({"state": {}}, TypeError, "state: [A-Za-z]+ keeps none"),
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
    with pytest.raises(TypeError, match=r"^k: expected an integer, got NoneType$"):
        EVERY[0]([[1.0], [1.0]], rng=np.random.default_rng(0), **(given | {"k": None}))  # type: ignore[arg-type]
    with pytest.raises(ValueError, match=r"^byzantine: expected an integer"):
        attacks.WorstCase().harm(np.ones((2, 1)), np.ones((1, 1)), x0=np.zeros(1), byzantine=[7], algorithm=SGD())


def test_honest_rows_alone() -> None:
    rows = MESSAGES[[0, 2]]  # mean (3, 4), population deviation (2, 2)
    for attack, expected in (
        (attacks.SignFlip(), [[-3.0, -6.0], [-15.0, -18.0]]),
        (attacks.InnerProduct(), [[-3.0, -4.0]]),
        (attacks.ALIE(0.5), [[2.0, 3.0]]),
        (attacks.Duplicate(1), [[5.0, 6.0]]),
        (attacks.LargeValue(), [[4.0, 4.0]] * 2),  # lam = beta = 1, x0 = 0, k = 1
        (attacks.DualOscillation(), [[-1.0, -1.0]] * 2),
        (attacks.WorstCase("sign-flip", high=0.0, low=-2.0), [[-6.0, -8.0]]),  # the mean, of the rows' mean
    ):
        assert attack(rows).tolist() == expected, attack
    assert attacks.SmallValue()(rows, x0=[1.0, 2.0], k=0).tolist() == [[0.5, 1.5]] * 2
    with pytest.raises(ValueError, match=r"^Duplicate: worker=2 is not one of 2 workers$"):
        attacks.Duplicate(2)(rows)
    with pytest.raises(ValueError, match=r"^messages: expected at least one row, got none$"):
        attacks.InnerProduct()(rows[:0])


def test_what_others_call_by_the_same_names() -> None:
    """The table of docs/attacks.md, by the results that ByzFL prints in its documentation."""
    X = np.arange(1.0, 10.0).reshape(3, 3)
    for attack, expected in (
        (attacks.InnerProduct(1.0), [-4.0, -5.0, -6.0]),  # SignFlipping()
        (attacks.InnerProduct(3.0 - 1.0), [-8.0, -10.0, -12.0]),  # FallOfEmpires(3)
        (attacks.ALIE(-1.5 * (3 / 2) ** 0.5), [8.5, 9.5, 10.5]),  # ALittleIsEnough(1.5)
        (attacks.Mimic(worker=0), [1.0, 2.0, 3.0]),  # Mimic(0)
        (attacks.Infinite(), [np.inf] * 3),  # Inf()
    ):
        np.testing.assert_allclose(attack(X)[0], expected, rtol=1e-15, err_msg=str(attack))


def test_min_sum_by_hand() -> None:
    regular = np.array([[1.0, 0.0], [3.0, 0.0], [8.0, 0.0]])  # mean 4, the farthest 4 away: back to the origin
    for direction in ("std", "unit", "sign"):
        made = attacks.MinSum(direction)(regular)
        np.testing.assert_allclose(made, [[0.0, 0.0]], atol=1e-12)
        total = np.sum((made - regular) ** 2)
        assert total == pytest.approx(max(np.sum((row - regular) ** 2) for row in regular), rel=1e-12), direction
    for scale in (1e-200, 1e200):  # no square overflows or vanishes
        np.testing.assert_allclose(attacks.MinSum("unit", factor=0.5)(scale * regular), [[2 * scale, 0.0]], rtol=1e-12)


def test_mimic_by_hand() -> None:
    """One direction in which messages differ: z is its sign, and the worker at that end is copied."""
    attack, rng = attacks.Mimic(warmup=2), np.random.default_rng(0)
    state = attack.begin(4, 2, np.dtype(np.float64))
    first = np.array([[1.0, 0.0], [2.0, 0.0], [6.0, 0.0], [9.0, 9.0]])
    given: dict[str, Any] = {"byzantine": [3], "rng": rng, "state": state}
    sign = np.sign(np.random.default_rng(0).standard_normal(2)[0])
    end = 2 if sign > 0 else 0
    assert attack(first, **given).tolist() == [first[end].tolist()]
    assert state["mu"].tolist() == [3.0, 0.0]
    assert state["z"].tolist() == [sign, 0.0]
    # mu = ((3, 0) + (1, 2)) / 2 = (2, 1); u = sum <g - mu, z>(g - mu) = sign (14, 10); z is between both.
    second = np.array([[-2.0, 0.0], [0.0, 0.0], [5.0, 6.0], [9.0, 9.0]])
    spread = second[:3] - [2.0, 1.0]
    u = sign * spread[:, 0] @ spread
    z = np.array([sign, 0.0]) + u / np.linalg.norm(u)
    z /= np.linalg.norm(z)
    target = int(np.argmax(second[:3] @ z))
    assert attack(second, **given).tolist() == [second[target].tolist()]
    np.testing.assert_allclose(state["mu"], [2.0, 1.0], rtol=1e-15)
    np.testing.assert_allclose(state["z"], z, rtol=1e-14)
    assert attack(-second, **given).tolist() == [(-second[target]).tolist()]  # for ever
    assert state["rounds"].tolist() == [3]
    # Where worker t takes no part, the next regular one that does.
    some = attack.among([worker for worker in range(4) if worker != target])
    left = np.array([[1.0, 1.0], [2.0, 2.0], [3.0, 3.0]])
    assert some(left, byzantine=[2], rng=rng, state=state).tolist() == [left[target % 2].tolist()]


def test_mimic_where_messages_are_equal_or_not_finite() -> None:
    attack, rng = attacks.Mimic(), np.random.default_rng(1)
    state = attack.begin(3, 2, np.dtype(np.float64))
    assert attack(np.ones((3, 2)), byzantine=[2], rng=rng, state=state).tolist() == [[1.0, 1.0]]
    assert np.linalg.norm(state["z"]) == pytest.approx(1.0)
    huge = attack([[1e308, 0.0], [-1e308, 0.0], [0.0, 0.0]], byzantine=[2], rng=rng, state=state)
    assert np.isfinite(huge).all()
    assert attack([[np.nan, 1.0], [2.0, 1.0]], rng=rng).tolist() == [[2.0, 1.0]]
    assert np.isnan(attack(np.ones((2, 2)), byzantine=[0, 1])).all()


def test_fang_against_the_trimmed_mean() -> None:
    regular = np.array([[1.0, -4.0, -1.0, 2.0, -1.0], [3.0, -2.0, 5.0, -6.0, 1.0]])
    messages = np.vstack([regular, np.zeros((300, 5))])
    made = attacks.Fang()(messages, byzantine=range(2, 302), rng=np.random.default_rng(0))
    low, high = np.array([[0.5, -2.0, -2.0, 2.0, 0.0], [1.0, -1.0, -1.0, 4.0, 0.0]])
    assert ((made >= low) & (made <= high)).all()
    spread = high - low
    assert (np.abs(made.mean(axis=0) - (low + high) / 2) <= 0.1 * spread).all()  # uniform, drawn by each attacker
    assert (made.min(axis=0) <= low + 0.02 * spread).all()
    assert (made.max(axis=0) >= high - 0.02 * spread).all()
    partial = attacks.Fang(knowledge="partial")(np.vstack([regular[:1], regular]), byzantine=[1, 2])
    away = (partial - regular.mean(axis=0)) / regular.std(axis=0) * -np.sign(regular.mean(axis=0))
    assert ((away[:, :4] >= 3) & (away[:, :4] <= 4)).all()
    assert (partial[:, 4] == 0).all()
    models = attacks.Fang()(messages, x0=np.full(5, 10.0), byzantine=[300, 301], algorithm=RSA_)
    assert (models[:, :3] >= [3.0, -2.0, 5.0]).all()  # below x0: regular models move down, forged ones up


def test_fang_against_krum() -> None:
    regular = np.array([[5.0, 1.0], [1.0, 5.0], [-3.0, 1.0], [1.0, -3.0], [5.0, 5.0]])
    messages = np.vstack([[[7.0, 7.0]], regular, [[8.0, 8.0]]])
    # Least sum of 3 distances 4 + 8 sqrt 2, divided by m - 2q - 1 = 2; farthest from 0 5 sqrt 2; all divided by sqrt d.
    bound = 9 + np.sqrt(2)
    made = attacks.Fang("krum")(messages, byzantine=[0, 6])
    np.testing.assert_allclose(made, np.full((2, 2), -bound / 4), rtol=1e-14)
    for lam, selected in ((bound / 4, True), (bound / 2, False)):
        sent = messages.copy()
        sent[[0, 6]] = -lam
        assert (aggregate.krum(sent, f=2).tolist() == [-lam, -lam]) is selected, lam
    shifted = attacks.Fang("krum")(messages + 10.0, x0=[10.0, 10.0], byzantine=[0, 6], algorithm=ADMM_)
    np.testing.assert_allclose(shifted, made + 10.0, rtol=1e-12)  # models: the same around x0
    for scale in (1e-3, 1e150):
        np.testing.assert_allclose(attacks.Fang("krum")(scale * messages, byzantine=[0, 6]), scale * made, rtol=1e-12)
    near = np.array([[1.0], [1.1], [1.2], [1.1], [1.0], [0.9]])  # Krum takes nothing as far away as 0
    for unmoved in (near, messages[:2], np.full((4, 1), np.nan)):
        assert same_bits(attacks.Fang("krum")(unmoved, byzantine=[1]), unmoved[[1]])


def test_a_description_has_what_is_not_as_it_was() -> None:
    assert attacks.Gaussian(5.0).describe() == {"name": "Gaussian", "std": 5.0}  # as earlier records have it
    assert attacks.Gaussian(5.0, mean=1.0).describe() == {"name": "Gaussian", "std": 5.0, "mean": 1.0}
    assert attacks.LabelFlip().describe() == {"name": "LabelFlip"}
    many = [attacks.LabelFlip([label] * 20).describe()["mapping"] for label in (1, 2)]
    assert many[0] != many[1]
