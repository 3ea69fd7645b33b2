"""Neighborhood rules: worked examples, what they promise, and hostile numbers."""

from __future__ import annotations

import inspect
import json
from typing import Any

import numpy as np
import pytest

from byzadmm import aggregators, decentralized, graphs, losses, reference, steps
from byzadmm.decentralized import (
    DSGD,
    FABA,
    IOS,
    NNA,
    RULES,
    WMSR,
    Aggregated,
    CSPlus,
    Gossip,
    NeighborhoodRule,
    SelfCenteredClipping,
    TrimNeighbors,
)
from byzadmm.decentralized.network import Network
from support.arrays import same_bits
from support.graphs import experiment_on


def column(*values: float) -> Any:
    return np.array(values, np.float64)[:, None]


def test_worked_examples() -> None:
    """own, neighbors, equal weights -> result"""
    cases: list[tuple[Any, float, Any, float]] = [
        (WMSR(F=1), 5, column(1, 4, 6, 100, 7), 5.5),
        (WMSR(F=2), 5, column(6, 7), 5),
        (WMSR(F=1), 5, column(5, 5, 9), 5),  # values equal to the own one stay
        (IOS(b=1), 0, column(1, 2, 100), 1),
        (IOS(b=2), 0, column(1, -90, 100), 0.5),
        (SelfCenteredClipping(tau=2.0), 0, column(1, 10), 1),
        (TrimNeighbors(b=1), 0, column(1, 2, 3, 90), 5 / 3),
        (TrimNeighbors(b=1, own="trimmed"), 0, column(1, 2, 3, 90), 2),
        (FABA(b=1), 0, column(1, 2, 100), 1),
        (NNA(b=1), 0, column(1, 2, 100), 1),
        (CSPlus(b=1), 0, column(1, 2, 100), 0.75),
        (Gossip(), 0, column(1, 2, 3), 1.5),
        (Aggregated("median"), 0, column(1, 2), 1),
    ]
    for rule, own, rows, expected in cases:
        assert rule(np.array([own], np.float64), rows).tolist() == pytest.approx([expected]), rule
        # The signature of a rule, with the numbers of the run where the rule has none.
        n = len(rows)
        weighted = rule(np.array([own], np.float64), list(rows), np.full(n, 1 / (n + 1)), 1 / (n + 1), 0)
        assert weighted.tolist() == pytest.approx([expected]), rule
    # Adaptive clipping: beta = 1/4, tau^2 = 4 (1/4 + 4/4) = 5.
    adaptive = SelfCenteredClipping()(np.zeros(1), column(1, 2, 100), f=1)
    assert adaptive.tolist() == pytest.approx([(1 + 2 + 5**0.5) / 4])
    assert IOS()(np.zeros(1), column(1, 2, 100), f=1).tolist() == [1]


def test_rules_without_byzantine_neighbors_are_gossip() -> None:
    rng = np.random.default_rng(0)
    own, rows, weights = rng.normal(0, 1, 9), rng.normal(0, 1, (4, 9)), np.array([0.1, 0.2, 0.05, 0.25])
    mixed = Gossip()(own, rows, weights, 0.4)
    assert mixed == pytest.approx(0.4 * own + weights @ rows)
    assert same_bits(IOS(b=0)(own, rows, weights, 0.4), mixed)
    for rule in (SelfCenteredClipping(), CSPlus()):
        assert rule(own, rows, weights, 0.4) == pytest.approx(mixed)
    for rule in (FABA(), NNA(), WMSR(), TrimNeighbors(), TrimNeighbors(own="trimmed")):
        assert rule(own, rows, weights, 0.4) == pytest.approx((own + rows.sum(axis=0)) / 5), rule


def test_coordinates_stay_in_the_hull_of_the_regular_values(dtype: str) -> None:
    rng = np.random.default_rng(1)
    for rule in (WMSR(F=2), TrimNeighbors(b=2), TrimNeighbors(b=2, own="trimmed")):
        for trial in range(50):
            own, regular = rng.normal(0, 1, 30).astype(dtype), rng.normal(0, 1, (4, 30)).astype(dtype)
            forged = (rng.normal(0, 1, (2, 30)) * 10.0 ** rng.integers(-3, 30, (2, 1))).astype(dtype)
            made = rule(own, np.concatenate([regular, forged])[rng.permutation(6)])
            low, high = np.vstack([regular, own]).min(axis=0), np.vstack([regular, own]).max(axis=0)
            slack = 2 * np.finfo(dtype).eps * np.maximum(abs(low), abs(high))
            assert np.all(made >= low - slack), (rule, trial)
            assert np.all(made <= high + slack), (rule, trial)


def sizes(dtype: str) -> list[float]:
    return [1e-300, 1e-160, 1.0, 1e160, 1.7e308] if dtype == "float64" else [1e-44, 1e-20, 1.0, 1e20, 3.3e38]


@pytest.mark.parametrize("name", [*RULES, "median", "krum"])
def test_any_finite_numbers(name: str, dtype: str) -> None:
    """Whatever the neighbors say, the result is finite; and neighbors that all say the same are no reason to move."""
    rng = np.random.default_rng(2)
    rule = DSGD(rule=name, f=2, step=steps.constant(1.0))._rule
    assert isinstance(rule, NeighborhoodRule)
    described = rule.describe()
    assert json.loads(json.dumps(described)) == described
    with np.errstate(over="raise", invalid="raise"):
        for trial in range(60):
            own = (rng.choice(sizes(dtype)) * rng.uniform(-1, 1, 7)).astype(dtype)
            rows = (rng.choice(sizes(dtype), (6, 1)) * rng.uniform(-1, 1, (6, 7))).astype(dtype)
            made = rule(own, rows, f=2)
            assert made.dtype == np.dtype(dtype), (name, trial)
            assert np.isfinite(made).all(), (name, trial)
        for size in sizes(dtype):
            own = (size * np.array([1.0, -1.0, 0.5])).astype(dtype)
            assert rule(own, np.repeat(own[None], 6, axis=0), f=2) == pytest.approx(own, rel=1e-6), (name, size)


def test_far_neighbors_count_by_their_true_distance() -> None:
    """Distances beyond float64 are compared, and differences are shortened to tau whatever their length."""
    far = np.array([[1e308, 1e308], [-1e308, 1.5e308], [1.0, 0.0]])
    own = np.array([-1e308, 0.0])
    assert NNA(b=1)(own, far).tolist() == pytest.approx(((far[1] / 3 + own / 3) + far[2] / 3).tolist())
    moved = SelfCenteredClipping(tau=4.0)(np.zeros(2), np.array([[1.7e308, 0.0], [0.0, -1.7e308], [0.0, 1e-310]]))
    assert moved.tolist() == pytest.approx([1.0, -1.0])
    both = SelfCenteredClipping(tau=1e308)(np.array([-1.7e308]), np.array([[1.7e308]]))
    assert both.tolist() == pytest.approx([-1.2e308])


def test_illegal_numbers_name_the_node_and_its_degree() -> None:
    star = graphs.star(5)
    loss = losses.Quadratic(np.ones(5), np.zeros((5, 2)))

    def run(algorithm: Any, **more: Any) -> Any:
        return decentralized.simulate(None, None, loss=loss, graph=star, algorithm=algorithm, iterations=2, **more)

    step = steps.constant(0.1)
    for rule, f, message in (
        ("trim-neighbors", 1, "node 1 with degree 1: TrimNeighbors tolerates at most 0"),
        (IOS(b=2), 0, "2 is too large for node 1 with degree 1: IOS tolerates at most 1"),
        ("trimmed_mean", [2, 0, 0, 0, 1], "1 is too large for node 4 with degree 1: trimmed_mean tolerates at most 0"),
        ("krum", 0, "node 1 with degree 1 has too few neighbors for krum"),
        (aggregators.Krum(f=1), 0, "node 1 with degree 1 has too few neighbors for Aggregated"),
    ):
        with pytest.raises(ValueError, match=message):
            run(DSGD(rule=rule, f=f, step=step))
    with pytest.raises(ValueError, match="node 1 with degree 1: TrimNeighbors tolerates at most 0"):
        run(decentralized.ByRDiE(b=1, step=step))
    run(DSGD(rule="trim-neighbors", f=[1, 0, 0, 0, 0], step=step))
    # A Byzantine node's own number is none of anybody's business.
    run(DSGD(rule="trim-neighbors", f=[1, 0, 0, 0, 1], step=step), byzantine=[4], attack=lambda x, **_: x[4:])
    for wrong, error, message in (
        ({"rule": 3}, TypeError, "rule: expected a neighborhood rule"),
        ({"rule": "nonsense"}, ValueError, "neighborhood rules are"),
        ({"f": "most"}, ValueError, "f: expected one of exact"),
        ({"f": -1}, ValueError, "f: expected an integer >= 0"),
        ({"order": "first"}, ValueError, "order: expected one of adapt-first, combine-first"),
        ({"momentum": 1.0}, ValueError, r"momentum: expected a number in \[0, 1\)"),
        ({"rule": IOS(b=1), "f": 2}, ValueError, "f: the rule has a number of its own"),
        ({"step": [step]}, ValueError, "step: expected one step size, or one for each of 5 nodes, got 1"),
        ({"f": [1, 2]}, ValueError, "f: expected a number, one for each of 5 nodes"),
    ):
        with pytest.raises(error, match=message):
            run(DSGD(**({"step": step} | wrong)))


@pytest.mark.parametrize("name", ["gossip", "ios", "trimneighbors", "wmsr"])
def test_a_rule_everywhere_is_the_rule_at_each_node(name: str, dtype: str) -> None:
    """Native for all nodes at once: the same bits for every thread count, hostile numbers among the messages."""
    rng = np.random.default_rng(5)
    graph = graphs.erdos_renyi(9, 0.8, seed=1)
    rule: Any = RULES[name]()
    loss = losses.Quadratic(np.ones(9), np.zeros((9, 1100)))
    run = experiment_on(graph, DSGD(rule=name, step=steps.constant(1.0)), loss=loss, dtype=dtype)
    for trial in range(12):
        x = (rng.choice(sizes(dtype), (9, 1)) * rng.uniform(-1, 1, (9, 1100))).astype(dtype)
        x[trial % 9, 3] = [np.nan, np.inf, 1.0][trial % 3]
        mail = Network(run).exchange(x, 1)
        f = np.array([min(trial % 4, rule.max_f(int(n))) if n else -1 for n in mail.counts])
        f[~mail.finite] = -1
        expected = x.copy()
        for i in np.flatnonzero(f >= 0):
            expected[i] = rule(x[i], mail.rows(i), *mail.weights(i), int(f[i]))
        for threads in (1, 2, 3, 7):
            out = np.empty_like(x)
            rule.everywhere(x, mail, f, out, threads)
            assert same_bits(out, expected), (trial, threads)


def test_subsequences_are_their_twin(dtype: str) -> None:
    """Ties with the own value and among neighbors, more dropped than there are, several tiles of columns."""
    rng = np.random.default_rng(8)
    for n, f in ((1, 0), (1, 1), (3, 1), (6, 2), (7, 4), (9, 9), (5, 5), (40, 3)):
        own, rows = rng.integers(-3, 4, (1, 300)).astype(dtype), rng.integers(-3, 4, (n, 300)).astype(dtype)
        for scale in (1.0, sizes(dtype)[-1] / 4, sizes(dtype)[0]):
            mine, theirs = (own * np.dtype(dtype).type(scale)), [row * np.dtype(dtype).type(scale) for row in rows]
            expected = reference.subsequence_neighbors(mine, [theirs], [f])
            made = WMSR(F=f)(mine[0], theirs)
            off = 12 * np.finfo(dtype).eps * scale + np.finfo(dtype).smallest_subnormal  # of values up to 3 scale
            np.testing.assert_allclose(made, expected[0], rtol=0, atol=float(off), err_msg=f"{n} {f}")


def test_every_rule_has_the_signature() -> None:
    expected = list(inspect.signature(NeighborhoodRule.__call__).parameters)
    for name, kind in RULES.items():
        assert list(inspect.signature(kind.__call__).parameters) == expected, name
        assert kind.__name__ in decentralized.__all__
        assert kind.order == ("combine-first" if kind in (TrimNeighbors, WMSR) else "adapt-first")
    gossip = DSGD(step=steps.constant(1.0))
    assert gossip.changed(rule="wmsr").order == "combine-first"
    assert gossip.changed(order="combine-first").changed(rule="ios").order == "combine-first"
    assert gossip.declaring(2).f == "exact"
    assert DSGD(rule=IOS(b=1), step=steps.constant(1.0)).declaring(2).f == 0


def test_a_rule_of_your_own() -> None:
    seen: list[Any] = []

    def rule(own: Any, rows: Any, weights: Any, own_weight: float, f: int) -> Any:
        seen.append((rows.shape, weights.sum() + own_weight, f))
        return own_weight * own + weights @ rows

    loss, graph = losses.Quadratic(np.ones(4), np.arange(8.0).reshape(4, 2)), graphs.ring(4)
    common: dict[str, Any] = {"loss": loss, "graph": graph, "iterations": 20, "dtype": "float64"}
    step = steps.power(0.3)
    mine = decentralized.simulate(None, None, algorithm=DSGD(rule=rule, f=1, step=step), **common)
    theirs = decentralized.simulate(None, None, algorithm=DSGD(step=step), **common)
    assert mine.x == pytest.approx(theirs.x)
    assert set(seen) == {((2, 2), 1.0, 1)}
