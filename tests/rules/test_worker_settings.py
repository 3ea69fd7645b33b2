"""Chains whose links count or address workers: the f after resampling, pivots and given orders, also in training."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
import pytest

from byzadmm import SGD, PerturbedGD, aggregate, attacks, datasets, partition, simulate, simulate_many, steps
from byzadmm.aggregators import ARC, NNM, Bucketing, Chain, DnC, Krum, MoNNA, Resampling, TrMean, make
from byzadmm.algorithms import OneRound
from byzadmm.catalogue import PRESETS, make_algorithm, make_rule
from byzadmm.results import Result
from byzadmm.training.master import Master
from support.arrays import same_bits
from support.runs import experiment, quadratic, small_data, small_parts

Array = npt.NDArray[Any]

ROWS = np.random.default_rng(0).standard_normal((11, 6))


def hear(rule: Any, lost: int = 0, missing: int = 0, seed: int = 0) -> Array:
    """Direction of the master when the last ``lost`` of 11 workers are eliminated and the first ``missing`` absent."""
    algorithm = SGD(rule=rule, step=steps.constant(1.0))
    run = experiment(loss=quadratic(11, 6), algorithm=algorithm, n_byzantine=0, rho=0.0, seed=seed)
    master = Master(run)
    sent = ROWS.copy()
    sent[11 - lost :] = np.nan
    master.receive(1, sent, np.arange(11) >= missing)
    return -master.update(1)


def drawn(seed: int = 0) -> np.random.Generator:
    """What a rule draws from in the first iteration."""
    return np.random.Generator(np.random.Philox(key=seed, counter=[0, 4, 0, 1]))


# --- f after resampling -----------------------------------------------------------------------------------------------


def test_a_name_after_resampling_gets_s_times_f() -> None:
    assert make("resampling+krum", f=2).links == (Resampling(s=2), Krum(f=4))
    assert make("nnm+resampling+arc+trimmed_mean", f=1).links == (NNM(f=1), Resampling(s=2), ARC(f=2), TrMean(f=2))
    assert make([Resampling(s=3), "resampling", "krum"], f=1).links[-1] == Krum(f=6)
    assert make([Resampling(s=3), Krum(f=1)], f=2).links[-1] == Krum(f=1)  # an object states its own
    assert make("bucketing+krum", f=2).links[-1] == Krum(f=2)


def test_an_f_that_is_too_large_after_resampling_is_refused() -> None:
    make("resampling+krum", f=2).check(11)
    with pytest.raises(ValueError, match=r"^krum: f=6 is too large for n=11 workers; at most 4$"):
        make("resampling+krum", f=3).check(11)
    with pytest.raises(ValueError, match=r"^s: expected an integer >= 1, got 0$"):
        make([Resampling(s=0), "krum"])
    with pytest.raises(ValueError, match=r"^weights: expected the workers' own rows at trimmed_mean, got those of"):
        make([Resampling(s=2), TrMean(f=1, weights=np.ones(11))]).check(11)


def test_an_eliminated_worker_lowers_f_by_s_after_resampling() -> None:
    rows = ROWS[:9]
    mixed = aggregate.resampling(rows, s=2, rng=drawn())
    assert same_bits(hear("resampling+trimmed_mean", lost=2), aggregate.trimmed_mean(mixed, f=0))
    rule = [Resampling(s=2), TrMean(f=5)]
    assert same_bits(hear(rule, lost=2), aggregate.trimmed_mean(mixed, f=1))
    assert same_bits(hear([Bucketing(s=1, rng=3), TrMean(f=4)], lost=2), aggregate.trimmed_mean(rows, f=2))


def test_rules_of_the_command_line_know_what_resampling_does_to_f() -> None:
    assert make_rule("resampling+krum", 2) == ("resampling+krum", 2)
    assert make_rule("resampling:s=3+krum", 2) == ((Resampling(s=3), Krum(f=6)), 0)
    assert make_rule("resampling:s=3+krum:f=2", 1) == ((Resampling(s=3), Krum(f=2)), 0)
    made = make_algorithm("resampling:s=3+nnm+median", PRESETS["digits"], 2)
    assert made.combination().links[1] == NNM(f=6)
    pgd = PerturbedGD("median", steps.constant(1.0), eps=0.1, radius=0.1, escape=0.1)
    for algorithm in (SGD(), OneRound(), pgd):
        for rule in ([Resampling(s=2), Krum(f=0)], ["resampling", Krum(f=0)], Chain([Resampling(s=2), Krum(f=0)])):
            undeclared = algorithm.changed(rule=rule).declaring(2)
            assert undeclared.combination().links == (Resampling(s=2), Krum(f=4)), (algorithm, rule)
        assert algorithm.changed(rule=Krum(f=0)).declaring(2).combination().links == (Krum(f=2),), algorithm


# --- the pivot --------------------------------------------------------------------------------------------------------


def test_the_pivot_is_a_worker() -> None:
    rule = MoNNA(f=4, pivot=5)
    assert same_bits(hear(rule), aggregate.nearest_neighbor_average(ROWS, f=4, pivot=5))
    expected = aggregate.nearest_neighbor_average(ROWS[3:9], f=2, pivot=2)
    assert same_bits(hear(rule, lost=2, missing=3), expected)
    assert not hear(rule, missing=6).any()  # absent
    assert not hear(rule, lost=6).any()  # eliminated


@pytest.mark.parametrize(
    ("rule", "message"),
    [
        (MoNNA(f=1, pivot=11), r"pivot: expected an integer in \[0, 10\], got 11"),
        ([Bucketing(s=2), MoNNA(f=1)], "pivot: expected the workers' own rows at nearest_neighbor_average, got"),
        ([Bucketing(s=2, permutation=range(10)), "median"], "permutation: expected each of 0, ..., 10 once"),
        ([Resampling(s=2), Bucketing(s=2, permutation=range(11)), "median"], "at bucketing, got those of resampling"),
    ],
)
def test_settings_that_do_not_fit_the_workers_are_refused_before_a_run(rule: Any, message: str) -> None:
    algorithm = SGD(rule=rule, step=lambda k: pytest.fail("it began"))
    with pytest.raises(ValueError, match=message):
        simulate(None, None, loss=quadratic(11, 6), algorithm=algorithm)


# --- orders of the workers --------------------------------------------------------------------------------------------


def test_a_given_order_is_one_of_workers() -> None:
    order = np.random.default_rng(1).permutation(11)
    rule = Chain([Bucketing(s=2, permutation=order), lambda X: X[0]])
    present = [worker for worker in order.tolist() if 3 <= worker < 9]
    np.testing.assert_allclose(hear(rule, lost=2, missing=3), ROWS[present[:2]].mean(axis=0), rtol=1e-14)
    np.testing.assert_allclose(hear(rule), ROWS[order[:2]].mean(axis=0), rtol=1e-14)


# --- draws of a run ---------------------------------------------------------------------------------------------------


def test_a_run_draws_for_resampling_and_columns() -> None:
    rule = [Resampling(s=2), DnC(f=2, iterations=2, coordinates=2)]
    rng = drawn(7)
    mixed = aggregate.resampling(ROWS, s=2, rng=rng)
    expected = aggregate.dnc(mixed, f=2, iterations=2, coordinates=2, rng=rng)
    assert same_bits(hear(rule, seed=7), expected)
    with pytest.raises(ValueError, match="rule: a generator cannot be resumed"):
        SGD(rule=DnC(f=1, rng=np.random.default_rng(0)))


def test_a_resumed_run_has_the_same_bits(tmp_path: Any) -> None:
    algorithm = SGD(rule="resampling+dnc", f=1, step=steps.inv_sqrt(2, 1))
    settings: dict[str, Any] = {"algorithm": algorithm, "attack": attacks.ALIE(), "n_byzantine": 1, "batch_size": 5}
    path = tmp_path / "run.npz"
    simulate(small_data(), small_parts(), iterations=6, checkpoint=path, **settings)
    resumed = simulate(small_data(), small_parts(), iterations=12, checkpoint=path, **settings)
    unbroken = simulate(small_data(), small_parts(), iterations=12, **settings)
    assert same_bits(resumed.x0, unbroken.x0)


@pytest.mark.slow
def test_new_rules_learn_the_digits_under_sign_flipping() -> None:
    """Resampling with Byrd-SAGA and the geometric median (Peng, Wu, Ling, Chen 2020), and the other rules beside it."""
    data = datasets.load("digits")
    parts = partition.iid(data.train_y, 20, seed=0)
    common: dict[str, Any] = {"dataset": data, "parts": parts, "attack": attacks.SignFlip(), "n_byzantine": 4}
    step = steps.power(10.0)
    cases: dict[str, Any] = {
        "mean": SGD(step=step),
        "resampling": SGD(rule=[Resampling(s=2), "geometric_median"], step=step, variance_reduction="saga"),
        "monna": SGD(rule=MoNNA(f=4, pivot=3), step=step),
        "dnc": SGD(rule="dnc", f=4, step=step),
        "arc": SGD(rule="arc+trimmed_mean", f=4, step=step),
        "cge": SGD(rule="cge", f=4, step=step),
        "sign_majority": SGD(rule="sign_majority", step=steps.power(0.2)),
    }
    runs = simulate_many([common | {"algorithm": algorithm, "iterations": 300} for algorithm in cases.values()])
    found = {name: run.final_accuracy() for name, run in zip(cases, runs, strict=True) if isinstance(run, Result)}
    ideal = simulate(**common, algorithm=SGD(step=step, ideal=True), iterations=300).final_accuracy()
    assert ideal > 0.94
    worse = {name: accuracy for name, accuracy in found.items() if accuracy < ideal - 0.04}
    assert set(worse) == {"mean"}, (ideal, found)
