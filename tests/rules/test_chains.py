"""Rules by name, chains of them, and both in training: against twins, with workers eliminated or absent, resumed."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest

from byzadmm import SGD, aggregate, aggregators, attacks, datasets, partition, simulate, simulate_many, steps
from byzadmm import reference as ref
from byzadmm.aggregators import (
    NNM,
    PRE_AGGREGATORS,
    RULES,
    Average,
    Bucketing,
    CenteredClipping,
    Chain,
    Clipping,
    Krum,
    Median,
    MultiKrum,
    TrMean,
    make,
)
from byzadmm.results import Result
from byzadmm.training.master import Master
from support.arrays import same_bits
from support.runs import ATTACKS, M, Q, experiment, quadratic, small_data, small_parts, transcription

Array = npt.NDArray[Any]

STEP = steps.inv_sqrt(2, 1)
ROWS = np.random.default_rng(0).standard_normal((11, 6))
#: Name for SGD, a legal f for M=7 workers, and the twin of the chain.
TWINS: dict[str, tuple[int, Callable[[Array, int], Array]]] = {
    "krum": (2, lambda X, f: ref.krum(X, f=f)),
    "multi_krum": (2, lambda X, f: ref.multi_krum(X, f=f)),
    "bulyan": (1, lambda X, f: ref.bulyan(X, f=f)),
    "medoid": (0, lambda X, f: ref.medoid(X)),
    "meamed": (3, lambda X, f: ref.meamed(X, f=f)),
    "phocas": (3, lambda X, f: ref.phocas(X, f=f)),
    # Not nnm+krum: rows with the same neighbors are equal, and rounding decides between their scores.
    "nnm+phocas": (2, lambda X, f: ref.phocas(ref.nearest_neighbor_mixing(X, f=f), f=f)),
    "nnm+trimmed_mean": (3, lambda X, f: ref.trimmed_mean(ref.nearest_neighbor_mixing(X, f=f), f=f)),
    "nnm+nnm+median": (3, lambda X, f: ref.median(_nnm_twice(X, f))),
}


def _nnm_twice(X: Array, f: int) -> Array:
    return np.asarray(ref.nearest_neighbor_mixing(ref.nearest_neighbor_mixing(X, f=f), f=f))


# --- names and chains ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", [*RULES, "nearest_neighbor_mixing"])
def test_every_rule_has_its_names(name: str) -> None:
    kind = (RULES | PRE_AGGREGATORS)[name]
    tail = "+median" if name in PRE_AGGREGATORS else ""
    made = {make(spelling + tail, f=2) for spelling in (name, name.replace("_", "-"), kind.__name__, f" {name} ")}
    assert len(made) == 1
    link = made.pop().links[0]
    assert type(link) is kind
    assert getattr(link, "f", 2) == 2


def test_settings_of_names() -> None:
    assert make("bucketing+nnm+krum", f=3).links == (Bucketing(s=2), NNM(f=3), Krum(f=3))
    assert make("centered-clip").links == (CenteredClipping(tau=0.1),)
    assert make("nnm+trmean", f=1) == make(["nnm", "TrMean"], f=1) == make([NNM(f=1), "trimmed_mean"], f=1)
    assert make(Chain([NNM(f=1), Median()])) == make((Chain((NNM(f=1), Median())),), f=9)


def test_a_chain_is_its_links_in_order() -> None:
    chain = make("nnm+krum", f=2)
    expected = aggregate.krum(aggregate.nearest_neighbor_mixing(ROWS, f=2), f=2)
    assert same_bits(chain(ROWS), expected)
    out = np.empty(6)
    result, info = chain(ROWS, out=out, threads=2, return_info=True)
    assert result is out
    assert same_bits(out, expected)
    assert info.selected is not None
    assert same_bits(Chain([lambda X: X[:5], Median()])(ROWS, threads=1), aggregate.median(ROWS[:5]))


@pytest.mark.parametrize(
    ("rule", "error", "message"),
    [
        ("krumm", ValueError, "rule: expected one of mean, median, .*, arc, or a callable; got 'krumm'"),
        ("", ValueError, "rule: expected one of .* got ''"),
        ("nnm+", ValueError, "rule: expected one of .* got ''"),
        ("clip+median", ValueError, r"rule: clip needs max_norm; give it as aggregators.Clipping\(max_norm=...\)"),
        ("nnm", ValueError, "rule: nearest_neighbor_mixing gives rows, so a rule must follow it"),
        ("krum+nnm", ValueError, "rule: krum gives one vector, so nothing can follow it"),
        ("median+krum", ValueError, "rule: median gives one vector, so nothing can follow it"),
        ([Clipping(max_norm=1)], ValueError, "rule: clip gives rows, so a rule must follow it"),
        ([], ValueError, "rule: expected at least one rule, got none"),
        (3, TypeError, "rule: expected a name or a callable, got int"),
        (["nnm", None], TypeError, "rule: expected a name or a callable, got NoneType"),
    ],
)
def test_chains_that_are_refused(rule: Any, error: type[Exception], message: str) -> None:
    for build in (make, lambda rule: SGD(rule=rule)):
        with pytest.raises(error, match=message):
            build(rule)


def test_f_is_checked_too() -> None:
    with pytest.raises(ValueError, match="f: expected an integer >= 0, got -1"):
        make("krum", f=-1)


@pytest.mark.parametrize(
    ("rule", "n", "message"),
    [
        (make("krum", f=3), 8, "krum: f=3 is too large for n=8 workers; at most 2"),
        (make("krum"), 2, "krum: expected at least 3 workers, got n=2"),
        (make("nnm+median", f=4), 8, "nearest_neighbor_mixing: f=4 is too large for n=8 workers; at most 3"),
        (make("bucketing+krum", f=3), 11, "krum: f=3 is too large for n=6 workers; at most 1"),
        (make([Bucketing(s=0), "median"]), 11, "s: expected an integer >= 1, got 0"),
    ],
)
def test_illegal_f(rule: Chain, n: int, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        rule.check(n)


def test_legal_f() -> None:
    make("krum", f=3).check(9)
    make("bucketing+median", f=9).check(3)  # the median takes no f
    make([lambda X: X, Krum(f=99)]).check(3)  # the number of rows that the function gives is unknown


@pytest.mark.parametrize("rule", ["krum", "nnm+krum", Krum(f=3), [NNM(f=1), Krum(f=3)], [Clipping(max_norm=1), "krum"]])
def test_an_illegal_f_is_an_error_before_the_run_begins(rule: Any) -> None:
    algorithm = SGD(rule=rule, f=3, step=lambda k: pytest.fail("it began"))
    with pytest.raises(ValueError, match="krum: f=3 is too large for n=7 workers; at most 2"):
        simulate(None, None, loss=quadratic(), algorithm=algorithm)
    ideal = SGD(rule=rule, f=3, ideal=True)
    with pytest.raises(ValueError, match="f=3 is too large for n=4 workers; at most"):
        simulate(None, None, loss=quadratic(), algorithm=ideal, n_byzantine=Q)


def test_one_spelling_in_the_settings() -> None:
    rules = ["nnm+Krum", ["NNM", "krum"], ("nearest-neighbor-mixing", "krum")]
    assert {SGD(rule=rule, f=1).rule for rule in rules} == {"nearest_neighbor_mixing+krum"}
    mixed = SGD(rule=["nnm", Bucketing(s=3), aggregate.median], f=1)
    described = ["nnm", "Bucketing(nonfinite='exclude', s=3, rng=None, permutation=None)", "median"]
    assert mixed.describe()["rule"] == described
    assert hash(mixed) == hash(SGD(rule=("nnm", Bucketing(s=3), aggregate.median), f=1))


def test_a_generator_is_refused_in_training() -> None:
    with pytest.raises(ValueError, match="rule: a generator cannot be resumed; leave rng out"):
        SGD(rule=[Bucketing(s=2, rng=np.random.default_rng(0)), "median"])
    for rule in (Bucketing(s=2), aggregators.make("bucketing+median")):
        with pytest.raises(TypeError, match=r"rng: expected a seed .*, as in Bucketing\(s=2, rng=0\), got None"):
            rule(ROWS)


# --- in training -----------------------------------------------------------------------------------------------------


@pytest.mark.slow
@pytest.mark.parametrize("attack", ["none", "sign_flip", "alie", "non_finite"])
@pytest.mark.parametrize("name", TWINS)
def test_rules_in_training_follow_their_twins(name: str, attack: str) -> None:
    f, twin = TWINS[name]
    loss = quadratic(noise=0.1)
    settings: dict[str, Any] = {"attack": ATTACKS[attack], "byzantine": [6], "seed": 4}
    algorithm = SGD(rule=name, f=f, step=STEP)
    run = simulate(None, None, loss=loss, algorithm=algorithm, iterations=40, dtype="float64", **settings)
    gradients = ref.quadratic_gradients(loss.a, loss.b, noise=0.1, seed=4)
    zeros = np.zeros((M, loss.dim))
    twin_of = SGD(rule=lambda X: X[0], f=f, step=STEP)
    object.__setattr__(twin_of, "rule", twin)
    states = transcription(twin_of, ATTACKS[attack], gradients, zeros[0], zeros, [6], 40, seed=4)
    state = list(states)[-1]
    np.testing.assert_allclose(run.x0, state.x0, rtol=1e-10, atol=1e-10)
    assert run.eliminated == ({6: 1} if attack == "non_finite" else {})


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize(
    ("name", "same"),
    [
        ("krum", Krum(f=2)),
        ("krum", lambda X: aggregate.krum(X, f=2)),
        ("nnm+median", [NNM(f=2), Median()]),
        ("nnm+median", lambda X: aggregate.median(aggregate.nearest_neighbor_mixing(X, f=2))),
        ("trimmed_mean", TrMean(f=2)),
        ("mean", Average()),
    ],
)
def test_name_object_and_function_give_the_same_bits(name: str, same: Any, dtype: str) -> None:
    settings: dict[str, Any] = {"loss": quadratic(noise=0.1), "attack": attacks.SignFlip(), "n_byzantine": 2}
    settings |= {"iterations": 30, "dtype": dtype}
    runs = [simulate(None, None, algorithm=SGD(rule=r, f=2, step=STEP), **settings) for r in (name, same)]
    assert same_bits(runs[0].x0, runs[1].x0)


@pytest.mark.parametrize("threads", [1, 2, 7])
def test_threads_do_not_matter(threads: int) -> None:
    settings: dict[str, Any] = {"loss": quadratic(dim=3001, noise=1.0), "iterations": 3, "n_byzantine": 2}
    algorithm = SGD(rule="bucketing+nnm+centered-clip", f=1, step=STEP, momentum=0.5)
    runs = [simulate(None, None, algorithm=algorithm, threads=t, **settings) for t in (threads, 0)]
    assert same_bits(runs[0].x0, runs[1].x0)


def test_buckets_are_drawn_anew_in_every_round_from_the_seed() -> None:
    heard: list[Array] = []

    def spy(X: Array) -> Array:
        heard.append(X.copy())
        return X.mean(axis=0)

    algorithm = SGD(rule=["bucketing", spy], step=steps.constant(1e-9))
    settings: dict[str, Any] = {"loss": quadratic(), "algorithm": algorithm, "dtype": "float64", "iterations": 3}
    simulate(None, None, seed=5, rho=0.0, **settings)
    first = heard.copy()
    messages = quadratic().a * (0.0 - quadratic().b)
    for k, rows in enumerate(first, start=1):
        rng = np.random.Generator(np.random.Philox(key=5, counter=[0, 4, 0, k]))
        np.testing.assert_allclose(rows, ref.bucketing(messages, s=2, rng=rng), atol=1e-6)
    assert not np.allclose(first[0], first[1])
    simulate(None, None, seed=5, rho=0.0, **settings)
    assert all(same_bits(a, b) for a, b in zip(first, heard[3:], strict=True))
    simulate(None, None, seed=6, rho=0.0, **settings)
    assert not np.allclose(first[0], heard[6])


def test_a_given_seed_gives_the_same_buckets_in_every_round() -> None:
    heard: list[Array] = []

    def spy(X: Array) -> Array:
        heard.append(X.copy())
        return 0.0 * X[0]

    rule = [Bucketing(s=3, rng=1), spy]
    simulate(None, None, loss=quadratic(), algorithm=SGD(rule=rule, step=STEP), rho=0.0, iterations=3)
    assert heard[0].shape == (3, 13)
    assert all(same_bits(heard[0], rows) for rows in heard)


def test_centered_clipping_starts_where_it_ended() -> None:
    loss, tau = quadratic(), 0.7
    algorithm = SGD(rule=CenteredClipping(tau=tau, n_iter=2), step=STEP)
    run = simulate(None, None, loss=loss, algorithm=algorithm, rho=0.0, iterations=12, dtype="float64")
    x0, center = np.zeros(13), None
    for k in range(1, 13):
        g = loss.a * (x0 - loss.b)
        v = np.median(g, axis=0) if center is None else center
        for _ in range(2):
            gaps = g - v
            lengths = np.linalg.norm(gaps, axis=1, keepdims=True)
            v = v + (gaps * np.minimum(1, tau / lengths)).mean(axis=0)
        x0, center = x0 - STEP(k) * v, v
    np.testing.assert_allclose(run.x0, x0, rtol=1e-12)
    fixed = SGD(rule=CenteredClipping(tau=tau, center=np.zeros(13)), step=STEP)
    setup = experiment(loss=loss, algorithm=fixed)
    assert "center" not in Master(setup).state()


def test_the_center_stays_where_a_round_fails() -> None:
    def sometimes(X: Array) -> Array:
        return X if X[0, 0] < 5 else np.full_like(X, np.inf)

    rule = [sometimes, CenteredClipping(tau=1e300)]
    master = Master(experiment(loss=quadratic(), algorithm=SGD(rule=rule, step=STEP), n_byzantine=0))
    rows = np.ones((M, 13)) * np.arange(M)[:, None]
    master.receive(1, rows)
    master.update(1)
    np.testing.assert_allclose(master.state()["center"], 3.0)
    master.receive(2, rows + 9.0)
    with pytest.raises(ValueError, match="rows hold NaN or infinite"):
        master.update(2)
    np.testing.assert_allclose(master.state()["center"], 3.0)


# --- with workers eliminated or absent -------------------------------------------------------------------------------


def hear(rule: Any, messages: Array, lost: int, f: int = 0, missing: int = 0) -> Array:
    """Direction of the master when the last ``lost`` workers are eliminated and the first ``missing`` send nothing."""
    m = len(messages)
    loss = quadratic(m, messages.shape[1])
    algorithm = SGD(rule=rule, f=f, step=steps.constant(1.0))
    master = Master(experiment(loss=loss, algorithm=algorithm, n_byzantine=0, rho=0.0))
    sent = messages.copy()
    sent[m - lost :] = np.nan
    master.receive(1, sent, np.arange(m) >= missing)
    assert int(np.sum(master.eliminated == 1)) == lost
    return -master.update(1)


def test_f_is_lowered_by_the_eliminated_workers() -> None:
    expected = aggregate.krum(ROWS[:9], f=2)
    assert same_bits(hear("krum", ROWS, 2, f=4), expected)
    assert same_bits(hear(Krum(f=4), ROWS, 2), expected)
    assert same_bits(hear("krum", ROWS, 6, f=4), aggregate.krum(ROWS[:5], f=0))


def test_f_is_lowered_to_what_is_legal_for_the_rows() -> None:
    assert same_bits(hear("krum", ROWS, 0, f=4, missing=4), aggregate.krum(ROWS[4:], f=2))
    assert same_bits(hear("bulyan", ROWS, 0, f=2, missing=5), aggregate.bulyan(ROWS[5:], f=0))


def test_other_counts_are_lowered_as_well() -> None:
    rule = MultiKrum(f=2, m=9, neighbors=8)
    assert same_bits(hear(rule, ROWS, 0), aggregate.multi_krum(ROWS, f=2, m=9, neighbors=8))
    assert same_bits(hear(rule, ROWS, 0, missing=4), aggregate.multi_krum(ROWS[4:], f=2, m=5, neighbors=4))


def test_weights_are_those_of_the_workers_heard() -> None:
    weights = np.arange(1.0, 12.0)
    expected = aggregate.median(ROWS[3:9], weights=weights[3:9])
    assert same_bits(hear(Median(weights=weights), ROWS, 2, missing=3), expected)
    assert same_bits(hear(Median(weights=list(weights)), ROWS, 0), aggregate.median(ROWS, weights=weights))


@pytest.mark.parametrize("rule", ["krum", "multi_krum", "bulyan", "nnm+krum"])
def test_too_few_rows_for_the_rule_move_nothing(rule: str) -> None:
    assert not hear(rule, ROWS, 9).any()
    assert not hear(rule, ROWS, 11).any()
    assert hear(rule, ROWS, 8).any()


def test_links_must_return_rows_and_a_vector() -> None:
    with pytest.raises(ValueError, match=r"rule: expected rows \(n, d\) from link 0, got shape \(6,\)"):
        hear([lambda X: X[0], "median"], ROWS, 0)
    with pytest.raises(ValueError, match=r"rule: expected shape \(6,\), got \(11, 6\)"):
        hear(lambda X: X, ROWS, 0)
    assert same_bits(hear([lambda X: (2 * X[:3]).tolist(), "median"], ROWS, 0), aggregate.median(2 * ROWS[:3]))


# --- resumed, side by side, and at work ------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "rule", ["nnm+krum", "bucketing+centered_clip", [Clipping(max_norm=1.0), "bucketing", "median"]]
)
def test_a_resumed_run_has_the_same_bits(rule: Any, tmp_path: Path) -> None:
    settings: dict[str, Any] = {"algorithm": SGD(rule=rule, f=1, step=STEP), "attack": attacks.ALIE(), "n_byzantine": 1}
    settings |= {"eval_every": 4, "batch_size": 5}
    path = tmp_path / "run.npz"
    simulate(small_data(), small_parts(), iterations=8, checkpoint=path, **settings)
    resumed = simulate(small_data(), small_parts(), iterations=20, checkpoint=path, **settings)
    unbroken = simulate(small_data(), small_parts(), iterations=20, **settings)
    assert same_bits(resumed.x0, unbroken.x0)
    [beside] = simulate_many([{"dataset": small_data(), "parts": small_parts(), "iterations": 20, **settings}])
    assert isinstance(beside, Result)
    assert same_bits(beside.x0, unbroken.x0)


@pytest.mark.slow
@pytest.mark.parametrize("rule", ["krum", "multi_krum", "nnm+krum", "nnm+trimmed_mean", "nnm+geometric_median"])
def test_robust_rules_learn_the_digits_under_sign_flipping(rule: str) -> None:
    data = datasets.load("digits")
    parts = partition.iid(data.train_y, 20, seed=0)
    common: dict[str, Any] = {"dataset": data, "parts": parts, "attack": attacks.SignFlip(), "n_byzantine": 8}
    algorithms = [SGD(rule=r, f=8, step=steps.power(10.0), ideal=r == "mean") for r in ("mean", rule)]
    algorithms.append(SGD(step=steps.power(10.0)))
    runs = simulate_many([common | {"algorithm": a, "iterations": 400} for a in algorithms])
    ideal, robust, mean = (run.final_accuracy() for run in runs if isinstance(run, Result))
    assert ideal > 0.94
    assert robust > ideal - 0.03
    assert mean < 0.3


# --- weights in training ---------------------------------------------------------------------------------------------


def weighted(rule: Any, **changes: Any) -> Any:
    settings: dict[str, Any] = {"loss": quadratic(10), "iterations": 3, "algorithm": SGD(rule=rule), **changes}
    return simulate(None, None, **settings)


@pytest.mark.parametrize(
    ("rule", "message"),
    [
        (Krum(f=2, weights=np.ones(13)), r"weights: expected shape \(10,\), got \(13,\)"),
        (Krum(f=2, weights=np.ones(9)), r"weights: expected shape \(10,\), got \(9,\)"),
        (["clipping", Krum(f=2, weights=np.ones(9))], r"rule: clip needs max_norm"),
        ([NNM(f=1), Krum(f=2, weights=np.ones(9))], r"weights: expected shape \(10,\), got \(9,\)"),
        (Average(weights=-np.ones(10)), "weights: expected finite numbers >= 0, not all zero"),
        (["bucketing", Krum(f=1, weights=np.ones(5))], "weights: expected the workers' own rows at krum, got those"),
        (["bucketing", Krum(f=1, weights=np.ones(10))], "at krum, got those of bucketing"),
        ([np.copy, Average(weights=np.ones(10))], "at mean, got those of a function"),
    ],
)
def test_weights_are_checked_before_the_run(rule: Any, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        weighted(rule, attack=attacks.NonFinite(), n_byzantine=1)


def test_weights_are_those_of_all_workers() -> None:
    weights = np.arange(1.0, 11.0)
    absent = SGD(rule=Average(weights=weights), ideal=True)
    ideal = weighted("mean", algorithm=absent, n_byzantine=2)
    eliminated = weighted(Average(weights=weights), attack=attacks.NonFinite(), n_byzantine=2)
    np.testing.assert_array_equal(ideal.x0, eliminated.x0)
    assert ideal.x0.any()


def test_a_run_goes_on_when_the_only_weighted_worker_is_eliminated() -> None:
    weights = np.zeros(10)
    weights[9] = 1.0
    for rule in (Average(weights=weights), TrMean(f=1, weights=weights), Krum(f=1, weights=weights)):
        run = weighted(rule, attack=attacks.NonFinite(), n_byzantine=1)
        assert run.eliminated == {9: 1}
        assert not run.x0.any()
