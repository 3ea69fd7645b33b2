"""Rules in the native loop of SGD: every rule and chain gives the bits of the same functions, called step by step."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
import pytest

from byzadmm import SGD, _core, aggregators, attacks, losses, steps
from byzadmm.aggregators import PRE_AGGREGATORS, RULES
from byzadmm.training.run import local
from support.arrays import same_bits
from support.rules import ALL_RULES, settings_for
from support.runs import experiment

Array = npt.NDArray[Any]
N, D = 11, 9
WEIGHTS = [1.0, 0.0, 2.0, 1.0, 0.5, 1.0, 3.0, 1.0, 0.0, 1.0, 7.0]

#: What settings_for leaves out: draws by the run, weights, places of workers.
FURTHER: dict[str, Any] = {
    "mean, weights": aggregators.Average(weights=WEIGHTS),
    "median, low": aggregators.Median(even="low"),
    "median, weights": aggregators.Median(weights=WEIGHTS, even="high"),
    "trimmed mean, weights": aggregators.TrMean(f=2, weights=WEIGHTS),
    "geometric median, weights": aggregators.GeometricMedian(weights=WEIGHTS, tol=1e-3),
    "krum, neighbors": aggregators.Krum(f=2, neighbors=8),
    "krum, weights": aggregators.Krum(f=2, weights=WEIGHTS),
    "multi-krum, m, weights": aggregators.MultiKrum(f=2, m=4, weights=WEIGHTS),
    "medoid, weights": aggregators.Medoid(weights=WEIGHTS),
    "centered clipping from its memory": aggregators.CenteredClipping(tau=0.5),
    "centered clipping from a point": aggregators.CenteredClipping(tau=0.5, center=np.arange(D) / 7, n_iter=2),
    "dnc, all columns": aggregators.DnC(f=2),
    "dnc, drawn": aggregators.DnC(f=2, coordinates=4, iterations=3, factor=1.5),
    "monna of the first": aggregators.MoNNA(f=2, pivot=0),  # that one is eliminated
    "bucketing+dnc": [aggregators.Bucketing(s=2), aggregators.DnC(f=1, coordinates=4)],  # one generator for both
    "bucketing, order": [aggregators.Bucketing(s=3, permutation=range(N)[::-1]), "median"],
    "resampling+krum": "resampling+krum",
    "clip+nnm+arc+bulyan": [aggregators.Clipping(max_norm=3.0), "nnm", "arc", aggregators.Bulyan(f=1)],
}


def rule_cases() -> dict[str, Any]:
    rules = {name: RULES[name](**(settings_for(name, N, 2) or {})) for name in RULES}
    before = {name: kind(**(settings_for(name, N, 2) or {})) for name, kind in PRE_AGGREGATORS.items()}
    krum = {name: RULES["krum"](f=0 if name == "bucketing" else 2) for name in before}  # of 4 rows
    mixed = {f"{name}+krum": [link, krum[name]] for name, link in before.items()}
    mixed |= {f"{name}+median": [link, "median"] for name, link in before.items()}
    return rules | mixed | FURTHER


def problem(dtype: str) -> losses.Quadratic:
    """The first worker's gradient is zero where the run starts, and soon beyond the range of ``dtype``."""
    rng = np.random.default_rng(3)
    a, b = rng.uniform(0.5, 1.5, (N, D)), rng.standard_normal((N, D)) + 9.0
    a[0, 0], b[0] = np.finfo(dtype).max / 2, 0.0
    return losses.Quadratic(a, b, noise=0.3)


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_every_rule_has_the_same_bits_in_the_native_loop(dtype: str) -> None:
    loss, together = problem(dtype), 0
    for case, rule in rule_cases().items():
        algorithm = SGD(rule=rule, f=2, step=steps.constant(0.3), momentum=0.3 * (len(case) % 2))
        settings: dict[str, Any] = {"loss": loss, "algorithm": algorithm, "attack": attacks.SignFlip(), "seed": 3}
        run, threaded = (experiment(**settings, n_byzantine=2, dtype=dtype, threads=t) for t in (1, 3))
        assert algorithm.fused(run) is not None, case
        (native, advance), (state, step), (other, further) = local(run), local(run, stepwise=True), local(threaded)
        for first, count in ((1, 7), (8, 2)):
            advance(native, first, count)
            step(state, first, count)
            further(other, first, count)
            for part in native.keys() - {"forged", "g"}:
                assert same_bits(native[part], state[part]), f"{case}: {part} after {first + count - 1} iterations"
                assert same_bits(native[part], other[part]), f"{case}: {part} with three threads"
        assert native["x0"].any(), case
        together += 1 < native["eliminated"][0] < 7
    assert together > 20, "a worker is to be eliminated in the middle of a native call"


def test_every_registered_rule_is_in_the_native_loop() -> None:
    for name in ALL_RULES:
        links = [name] if name in RULES else [PRE_AGGREGATORS[name](**(settings_for(name, N) or {})), "mean"]
        assert aggregators.make(links, f=1).planned, name
    assert not aggregators.make(lambda X: X[0]).planned
    assert not aggregators.make([lambda X: X, "median"]).planned


def test_errors_of_a_rule_are_those_of_its_function() -> None:
    """Settings that only a call checks."""
    for rule, message in [
        (aggregators.CenteredClipping(tau=-1.0), "tau: expected a finite number > 0"),
        (aggregators.GeometricMedian(tol=0.0), "tol: expected a finite number > 0"),
        ([aggregators.Clipping(max_norm=0.0), "mean"], "max_norm: expected a finite number > 0"),
        (aggregators.DnC(f=2, factor=9.0), "factor: expected floor"),
    ]:
        run = experiment(loss=problem("float64"), algorithm=SGD(rule=rule), n_byzantine=0)
        for stepwise in (False, True):
            state, advance = local(run, stepwise=stepwise)
            with pytest.raises(ValueError, match=message):
                advance(state, 1, 1)


def test_a_plan_reads_nothing_outside_of_its_rows() -> None:
    """Plans that no rule writes: an error instead of memory that is not theirs."""
    stage = _core.Stage
    assert stage("krum_scores", 3).kind == "krum_scores"
    with pytest.raises(ValueError, match="kind: expected one of"):
        stage("krums")
    run = experiment(loss=problem("float64"), n_byzantine=0)
    wrong: list[list[_core.Stage]] = [
        [stage("krum_scores", 3)],
        [stage("neighbor_means", 3)],
        [stage("best", 1)],
        [stage("lengths"), stage("best", N + 1)],
        [stage("lengths", index=[N])],
        [stage("distances", index=[D])],
        [stage("distances"), stage("bulyan_choice", N + 1)],
        [stage("distances"), stage("least_variance", f=6)],
        [stage("mean", weights=np.ones(3))],
        [stage("weigh", weights=np.zeros(N))],
        [stage("closest_mean", N + 1)],
        [stage("group_means", 2, index=[N])],
        [stage("group_means", 2, drawn=True)],
        [stage("start", weights=np.ones(D + 1))],
        [stage("median", -1)],
    ]
    for stages in wrong:
        state, _ = local(experiment(loss=problem("float64"), algorithm=SGD(), n_byzantine=0))
        settings: dict[str, Any] = {"rho": 0.0, "momentum": 0.0, "ideal": False, "steps": np.ones(1), "first": 1}
        made = _core.Plan(stages)
        with pytest.raises(ValueError, match=": expected "):
            _core.run_sgd(run.native_loss, state, run.roles(state), plan=lambda *_: made, **settings)  # noqa: B023
        assert not state["x0"].any()
