"""Adaptive attacks: MinMax against its twin and its definition, WorstCase against all that it could have done."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest
from hypothesis import given
from hypothesis import strategies as st

from byzadmm import ADMM, RSA, SGD, aggregate, aggregators, attacks, datasets, losses, partition, simulate, steps
from byzadmm import reference as ref
from byzadmm.attacks import MinMax, WorstCase
from support.runs import ALGORITHMS, M, Q, quadratic, small_data, small_parts, transcription

pytestmark = pytest.mark.slow

Array = npt.NDArray[Any]

DIRECTIONS = ("std", "unit", "sign")
FAMILIES = [name for name, attack in attacks.REGISTRY.items() if attack.searched is not None]
RULES: dict[str, Any] = {
    "mean": "mean",
    "median": "median",
    "trimmed_mean": "trimmed_mean",
    "geometric_median": "geometric_median",
    "krum": "krum",
    "multi_krum": "multi_krum",
    "medoid": "medoid",
    "bulyan": "bulyan",
    "meamed": "meamed",
    "phocas": "phocas",
    "centered_clip": aggregators.CenteredClipping(tau=1.0),
    "function": lambda X: aggregate.krum(aggregate.nearest_neighbor_mixing(X, f=2), f=2),
    "nnm+krum": "nnm+krum",
    "bucketing+median": ["bucketing", aggregators.Median()],
}
DEFENCES: dict[str, Any] = {
    **{name: (rule, SGD()) for name, rule in RULES.items()},
    "sgd": (None, SGD(rule="trimmed_mean", f=2)),
    "chain": (None, SGD(rule="nnm+trimmed_mean", f=2)),
    "admm": (None, ADMM(lam=0.3, beta=0.8)),
    "rsa": (None, RSA(lam=0.2, step=steps.constant(1.0))),
}


def normal(n: int, d: int, seed: int = 0) -> Array:
    return np.random.default_rng(seed).standard_normal((n, d)) + 0.5


def about(d: int, byzantine: Any, algorithm: Any = None, seed: int = 0) -> dict[str, Any]:
    """What an attack is told besides the messages."""
    rng = np.random.default_rng(seed)
    return {"x0": np.full(d, 0.1), "k": 3, "byzantine": byzantine, "rng": rng, "algorithm": algorithm or SGD()}


def min_max(messages: Array, byzantine: Any = (), **settings: Any) -> Array:
    return MinMax(**settings)(messages, **about(messages.shape[1], [*byzantine]))


def widest(X: Array) -> float:
    return float(np.sqrt(((X[:, None] - X[None]) ** 2).sum(axis=2).max()))


# --- MinMax ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("direction", DIRECTIONS)
@pytest.mark.parametrize(("n", "q", "d"), [(3, 1, 1), (8, 3, 5), (20, 8, 40), (12, 1, 301)])
def test_min_max_and_min_sum_are_their_twins(direction: str, n: int, q: int, d: int) -> None:
    for seed in range(5):
        X = normal(n, d, seed)
        byzantine = sorted(np.random.default_rng(seed).choice(n, q, replace=False).tolist())
        made = min_max(X, byzantine, direction=direction)
        np.testing.assert_allclose(made, ref.min_max(direction)(X, X[0], 3, byzantine), rtol=1e-9, atol=1e-12)
        added = attacks.MinSum(direction)(X, byzantine=byzantine)
        np.testing.assert_allclose(added, ref.min_sum(direction)(X, X[0], 3, byzantine), rtol=1e-9, atol=1e-12)
        assert made.shape == (q, d)
        assert (made == made[0]).all()


@given(n=st.integers(2, 12), d=st.integers(1, 8), seed=st.integers(0, 10**6), direction=st.sampled_from(DIRECTIONS))
def test_min_max_goes_as_far_as_it_may(n: int, d: int, seed: int, direction: str) -> None:
    X = normal(n, d, seed)
    mean = X.mean(axis=0)
    forged = min_max(np.vstack([X, X[:1]]), [n], direction=direction)[0]

    def reach(vector: Array) -> float:
        return float(np.linalg.norm(X - vector, axis=1).max())

    assert reach(forged) == pytest.approx(widest(X), rel=1e-12)
    assert reach(mean + 1.001 * (forged - mean)) > widest(X)
    p = {"std": X.std(axis=0), "unit": mean, "sign": np.sign(mean)}[direction]
    cosine = (forged - mean) @ -p / np.linalg.norm(forged - mean) / np.linalg.norm(p)
    assert cosine == pytest.approx(1.0)


@pytest.mark.parametrize("direction", DIRECTIONS)
def test_min_max_permutation_translation_scale(direction: str) -> None:
    X = normal(9, 6, 4)
    forged = min_max(X, [8], direction=direction)[0]
    order = np.random.default_rng(0).permutation(8)
    np.testing.assert_allclose(min_max(np.vstack([X[order], X[8:]]), [8], direction=direction)[0], forged, rtol=1e-12)
    for scale in (1e-200, 3.0, 1e200):  # no square overflows or vanishes
        np.testing.assert_allclose(min_max(scale * X, [8], direction=direction)[0], scale * forged, rtol=1e-12)
    if direction == "std":  # the others point away from the origin
        np.testing.assert_allclose(min_max(X + 7.0, [8])[0], forged + 7.0, rtol=1e-12)


def test_min_max_factor_and_types() -> None:
    X = normal(7, 5)
    mean, forged = X[:5].mean(axis=0), min_max(X, [5, 6])
    np.testing.assert_allclose(min_max(X, [5, 6], factor=0.5), mean + 0.5 * (forged - mean), rtol=1e-12)
    np.testing.assert_allclose(min_max(X, [5, 6], factor=0.0)[0], mean, rtol=1e-15)
    single = min_max(X.astype(np.float32), [5, 6])
    assert single.dtype == np.float32
    np.testing.assert_allclose(single, forged, rtol=1e-5)


def test_min_max_where_there_is_no_room_or_no_direction() -> None:
    assert min_max(np.array([[1.0, 2.0], [9.0, 9.0]]), [1]).tolist() == [[1.0, 2.0]]  # one regular message
    assert min_max(np.array([[1.0], [-1.0], [5.0]]), [2], direction="unit").tolist() == [[0.0]]
    assert min_max(np.array([[1.0], [-1.0], [5.0]]), [2], direction="sign").tolist() == [[0.0]]
    assert np.isnan(min_max(np.ones((2, 3)), [0, 1])).all()  # no message to imitate
    assert np.isnan(min_max(np.array([[np.nan], [1.0], [2.0]]), [2])).all()


@pytest.mark.parametrize("name", ["admm", "rsa", "median"])
@pytest.mark.parametrize("direction", DIRECTIONS)
def test_min_max_in_training_is_the_transcription(name: str, direction: str) -> None:
    loss, algorithm = quadratic(), ALGORITHMS[name]
    ran = simulate(
        None, None, loss=loss, algorithm=algorithm, attack=MinMax(direction), n_byzantine=Q, iterations=40,
        dtype="float64",
    )  # fmt: skip
    byzantine = range(M - Q, M)
    twin = transcription(
        algorithm,
        ref.min_max(direction),
        ref.quadratic_gradients(loss.a, loss.b),
        np.zeros(loss.dim),
        np.zeros((M, loss.dim)),
        byzantine,
        40,
    )
    *_, last = twin
    np.testing.assert_allclose(ran.x0, last.x0, rtol=1e-8, atol=1e-10)
    assert ran.config["attack"] == {"name": "MinMax", "direction": direction, "factor": 1.0}


# --- WorstCase -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("family", FAMILIES)
@pytest.mark.parametrize("defence", DEFENCES)
def test_no_strength_of_the_grid_is_worse(defence: str, family: str) -> None:
    rule, algorithm = DEFENCES[defence]
    byzantine = [4, 10]
    X = normal(11, 7, 2)
    attack = WorstCase(family, rule)
    given = about(7, byzantine, algorithm)
    strength, forged = attack.search(X, **given)
    measured = {key: given[key] for key in ("x0", "byzantine", "algorithm")}
    worst = attack.harm(X, forged, **measured)
    kind, (setting, low, high) = attacks.REGISTRY[family], attacks.REGISTRY[family].searched
    seed = int(np.random.default_rng(0).integers(2**63))
    for point in [*np.linspace(low, high, 9), strength]:
        member = kind(**{setting: float(point)})
        found = member(X, **(given | {"rng": np.random.default_rng(seed)}))
        harm = attack.harm(X, found, **measured)
        assert harm <= worst
        if harm == worst:
            assert abs(point) >= abs(strength)
    assert 1024 * low <= strength <= 1024 * high
    assert np.array_equal(found, forged)
    again = attack(X, **about(7, byzantine, algorithm))
    assert np.array_equal(again, forged)


def test_the_search_comes_close_to_the_maximum_between_two_points() -> None:
    X, byzantine = normal(11, 7, 3), [9, 10]
    given = about(7, byzantine)

    def forged(strength: float) -> Any:
        # Harm to the mean peaks at strength 3.21, which is not of the grid.
        return lambda messages, **_: np.repeat(messages[:9].mean(axis=0)[None] + 1 / (1 + (strength - 3.21) ** 2), 2, 0)

    found = [WorstCase(forged, low=0, high=10, grid=11, refine=n).search(X, **given)[0] for n in (0, 2, 12)]
    assert found[0] == 3.0
    assert abs(found[1] - 3.21) < 0.21
    assert abs(found[2] - 3.21) < 0.01


def follows_up_to(limit: float) -> Any:
    """A rule that takes the mean of the last rows if it is no farther than that, and of the others otherwise."""
    return lambda X: X[-2:].mean(axis=0) if np.abs(X[-2:]).max() <= limit else X[:-2].mean(axis=0)


@pytest.mark.parametrize(
    ("family", "limit", "ends"),
    [
        ("inner-product", 300.0, (0.0, 10.0)),  # beyond high
        ("sign-flip", 300.0, (-10.0, 0.0)),  # beyond low
        ("same-value", 3000.0, (-100.0, 100.0)),  # beyond either
    ],
)
def test_the_range_grows_while_the_harm_does(family: str, limit: float, ends: tuple[float, float]) -> None:
    X, given = np.ones((9, 4)), about(4, [7, 8])
    X[:, 0] = 1.5  # so that one end of same-value harms more than the other
    rule = follows_up_to(limit)
    free = WorstCase(family, rule, refine=30)
    measured = {key: given[key] for key in ("x0", "byzantine", "algorithm")}
    strength, forged = free.search(X, **given)
    assert np.abs(forged).max() == pytest.approx(limit, rel=1e-3)
    assert not ends[0] <= strength <= ends[1]
    bounded = WorstCase(family, rule, low=ends[0], high=ends[1], refine=30)
    inside, fewer = bounded.search(X, **given)
    assert ends[0] <= inside <= ends[1]
    assert free.harm(X, forged, **measured) > 1.7 * free.harm(X, fewer, **measured)
    # A bound at one end leaves the other one open.
    half = WorstCase(family, rule, high=ends[1], refine=30).search(X, **given)[0]
    assert half <= ends[1]
    assert (half < ends[0]) == (ends[0] < 0)
    assert free != bounded
    assert free.describe() != bounded.describe()


def test_the_range_grows_at_most_ten_times_and_no_farther_than_the_harm() -> None:
    X, given = normal(9, 4), about(4, [7, 8])
    assert WorstCase("inner-product").search(X, **given)[0] == 10240.0  # the mean follows any message
    tried: list[float] = []

    def counted(rows: Array) -> Array:
        tried.append(float(np.abs(rows[-1]).max()))
        return np.asarray(follows_up_to(15.0)(rows))

    WorstCase("same-value", counted, low=-1.0, refine=0).search(np.ones((9, 4)), **given)
    assert tried[-2:] == [100.0, 200.0]  # no harm at the end of the range, none one doubling farther


def test_harm_by_hand() -> None:
    X = np.array([[1.0, 0.0], [3.0, 2.0], [0.0, 0.0], [0.0, 0.0]])
    forged = np.array([[9.0, -5.0], [9.0, -5.0]])
    given: dict[str, Any] = {"x0": np.array([2.0, 1.0]), "byzantine": [2, 3]}
    # Mean of all (5.5, -2) against the regular (2, 1).
    assert WorstCase().harm(X, forged, **given, algorithm=SGD()) == pytest.approx(np.hypot(3.5, 3.0))
    assert WorstCase(rule="median").harm(X, forged, **given, algorithm=SGD()) == pytest.approx(np.hypot(4.0, 3.5))
    # Signs (-1, -1), (1, 1), and twice (1, -1) for the Byzantine workers: mean (1/2, -1/2) against (0, 0), times lam.
    rsa = RSA(lam=0.5, step=steps.constant(1))
    assert WorstCase().harm(X, forged, **given, algorithm=rsa) == pytest.approx(0.5 * np.hypot(0.5, 0.5))
    # Duals (x - x0) beta/2 = (-1, -1), (1, 1), clipped at 0.6; the Byzantine workers' at (0.6, -0.6).
    admm = ADMM(lam=0.6, beta=2.0)
    assert WorstCase().harm(X, forged, **given, algorithm=admm) == pytest.approx(np.hypot(0.3, 0.3))
    # A rule that is named is meant, whatever the algorithm.
    assert WorstCase(rule="mean").harm(X, forged, **given, algorithm=admm) == pytest.approx(np.hypot(3.5, 3.0))
    assert WorstCase().harm(X, forged * np.inf, **given, algorithm=admm) == -np.inf
    broken = WorstCase(rule=lambda rows: np.full(2, np.nan))
    assert broken.harm(X, forged, **given, algorithm=admm) == np.inf
    with pytest.raises(ValueError, match="byzantine: expected at least one regular worker, got none"):
        WorstCase().harm(X[:2], forged, x0=X[0], byzantine=[0, 1], algorithm=admm)


def test_a_lie_that_gives_its_sender_away_is_not_taken() -> None:
    X = normal(6, 2)

    def forged(strength: float) -> Any:
        return lambda messages, **_: np.full((2, 2), np.inf if strength > 4 else strength)

    assert WorstCase(forged, low=0, high=10, grid=11, refine=0).search(X, **about(2, [4, 5]))[0] == 4.0


def test_a_run_that_has_diverged_goes_on() -> None:
    X = normal(5, 2)
    X[0] = np.nan
    strength, forged = WorstCase().search(X, **about(2, [4]))
    assert strength == 0.0
    assert np.isnan(forged).all()
    assert np.isnan(WorstCase()(X[:2], **about(2, [0, 1]))).all()
    ran = simulate(
        None, None, loss=losses.Quadratic(np.ones((5, 1)), np.ones((5, 1))), rho=0.0,
        algorithm=SGD(step=steps.constant(5.0)), attack=WorstCase("inner-product"), n_byzantine=2, iterations=400,
    )  # fmt: skip
    assert not abs(ran.x0[0]) < 1e30


def test_a_rule_that_draws_is_not_disturbed() -> None:
    X = normal(8, 3)
    generator = np.random.default_rng(7)
    bucketing = aggregators.Bucketing(s=2, rng=generator)

    class Rule:
        def __init__(self) -> None:
            self.bucketing = bucketing

        def __call__(self, rows: Array) -> Any:
            return aggregate.median(self.bucketing(rows))

    before = generator.bit_generator.state
    WorstCase(rule=Rule())(X, **about(3, [6, 7]))
    assert generator.bit_generator.state == before


@pytest.mark.parametrize(
    ("rule", "fixed", "family"),
    [
        ("krum", attacks.SignFlip(-3.0), "sign-flip"),
        ("geometric_median", attacks.SignFlip(-3.0), "sign-flip"),
        ("multi_krum", attacks.InnerProduct(0.1), "inner-product"),
    ],
)
def test_training_suffers_more_than_under_the_fixed_strength(rule: str, fixed: attacks.Attack, family: str) -> None:
    data = datasets.load("digits")
    parts = partition.iid(data.train_y, 20, seed=0)
    accuracy = [
        simulate(
            data, parts, algorithm=SGD(rule=rule, f=8, step=steps.power(10.0)), attack=attack, n_byzantine=8,
            iterations=100, eval_every=10, threads=1,
        ).final_accuracy()
        for attack in (fixed, WorstCase(family))
    ]  # fmt: skip
    assert accuracy[0] > 0.75
    assert accuracy[1] < accuracy[0] - 0.3


@pytest.mark.parametrize("name", ["admm", "rsa", "trimmed_mean"])
def test_worst_case_in_training(name: str, tmp_path: Path) -> None:
    given: dict[str, Any] = {"algorithm": ALGORITHMS[name], "attack": WorstCase(MinMax), "n_byzantine": Q}
    run = {"eval_every": 5, "threads": 1, **given}
    whole = simulate(small_data(), small_parts(), iterations=20, **run)
    assert np.array_equal(whole.x0, simulate(small_data(), small_parts(), iterations=20, **run).x0)
    simulate(small_data(), small_parts(), iterations=10, checkpoint=tmp_path / "half.npz", **run)
    resumed = simulate(small_data(), small_parts(), iterations=20, checkpoint=tmp_path / "half.npz", **run)
    assert np.array_equal(whole.x0, resumed.x0)
    without = simulate(small_data(), small_parts(), iterations=20, **(run | {"attack": None}))
    assert not np.array_equal(whole.x0, without.x0)
    expected = {"name": "WorstCase", "family": "MinMax", "rule": None, "low": None, "high": None}
    expected |= {"grid": 9, "refine": 6}
    assert whole.config["attack"] == expected


def test_description() -> None:
    def mine(strength: float) -> attacks.Attack:
        return attacks.ALIE(strength)

    described = WorstCase(mine, aggregators.Krum(f=2), low=0, high=1, grid=3, refine=0).describe()
    assert json.loads(json.dumps(described)) == described
    assert described["family"].endswith("mine")
    assert described["rule"] == repr(aggregators.Krum(f=2))
    assert WorstCase(rule=["nnm", np.median]).describe()["rule"] == "nnm+median"
    assert WorstCase(rule=np.median).describe()["rule"] == "median"
    assert WorstCase("inner_product").describe()["rule"] is None

    @dataclass(frozen=True)
    class Family:
        z: float = 2.0

        def __call__(self, strength: float) -> attacks.Attack:
            return attacks.ALIE(self.z * strength)

    assert WorstCase(Family(), low=0, high=1).describe()["family"].endswith("Family(z=2.0)")


@pytest.mark.parametrize(
    ("make", "error", "message"),
    [
        (lambda: MinMax("up"), ValueError, "direction: expected one of std, unit, sign; got 'up'"),
        (lambda: MinMax(factor=np.nan), ValueError, "factor: expected a finite number, got nan"),
        (lambda: WorstCase("zero"), ValueError, "family: expected one of alie, inner-product, .* got 'zero'"),
        (lambda: WorstCase(3), TypeError, "family: expected a name, a class or a callable, got int"),
        (lambda: WorstCase(lambda s: 3, low=0, high=1), TypeError, "family: expected it to make attacks, got int"),
        (lambda: WorstCase(attacks.Duplicate), ValueError, "low: a family of your own needs it"),
        (lambda: WorstCase(attacks.Duplicate, low=0), ValueError, "high: a family of your own needs it"),
        (lambda: WorstCase(lambda s: attacks.LabelFlip(), low=0, high=1), ValueError, "LabelFlip changes more than"),
        (lambda: WorstCase(lambda s: attacks.DualOscillation(), low=0, high=1), ValueError, "DualOscillation changes"),
        (lambda: WorstCase(low=1.0, high=1.0), ValueError, "high: expected more than low=1.0, got 1.0"),
        (lambda: WorstCase(low="a"), TypeError, "low: expected a real number, got str"),
        (lambda: WorstCase(grid=1), ValueError, "grid: expected an integer >= 2, got 1"),
        (lambda: WorstCase(refine=-1), ValueError, "refine: expected an integer >= 0, got -1"),
        (lambda: WorstCase(rule="average-of-all"), ValueError, "rule: expected one of mean, median, "),
        (lambda: WorstCase(rule="krum+nnm"), ValueError, "rule: krum gives one vector, so nothing can follow it"),
        (lambda: WorstCase(rule=3), TypeError, "rule: expected a name or a callable, got int"),
        (lambda: WorstCase(rule="bulyan").spec(SGD(), 20, 8), ValueError, "bulyan: f=8 is too large for n=20 workers"),
        (
            lambda: WorstCase(lambda s: lambda x, **_: x, low=0, high=1)(np.ones((3, 2)), **about(2, [2])),
            ValueError,
            r"family: expected messages of shape \(1, 2\), got \(3, 2\)",
        ),
    ],
)
def test_what_is_refused(make: Any, error: type[Exception], message: str) -> None:
    with pytest.raises(error, match=message):
        make()


def test_neither_is_native() -> None:
    for attack in (MinMax(), WorstCase(), WorstCase(rule="krum"), WorstCase(rule="median")):
        assert attack.spec(SGD(), 20, 4) is None
        assert attack.sees == "all"
