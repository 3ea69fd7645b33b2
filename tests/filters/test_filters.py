"""Every filter against what its definition says of small cases."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest

from byzadmm import SGD, _core, aggregators, attacks, filters, losses, simulate, steps
from byzadmm import reference as ref
from byzadmm._internal.lengths import lengths
from byzadmm.filters.reconstruction import reconstruction_lengths
from support.arrays import same_bits

Array = npt.NDArray[Any]
CONSTANT = steps.constant(0.1)


class Clean:
    """The master's samples of ``1/2 sum_j a_j (x_j - b_j)^2``, all alike."""

    def __init__(self, a: Any, b: Any) -> None:
        self.a, self.b = np.asarray(a, float), np.asarray(b, float)
        self.rows = np.arange(3)

    def batch(self, count: int, k: int) -> Array:
        return self.rows

    def losses(self, models: Array, rows: Array) -> Array:
        return np.asarray(0.5 * np.sum(self.a * (models - self.b) ** 2, axis=1))

    def gradient(self, x: Array, rows: Array) -> Array:
        return np.asarray(self.a * (x - self.b))


def given(messages: Any, state: dict[str, Array] | None = None, **changes: Any) -> dict[str, Any]:
    """Arguments of ``weigh`` in round 1 at zero."""
    rows = np.asarray(messages)
    about: dict[str, Any] = {"x0": np.zeros(rows.shape[1], rows.dtype), "k": 1, "step": 0.1}
    about |= {"workers": np.arange(len(rows)), "state": {} if state is None else state, "validation": None}
    return about | {"rng": np.random.default_rng(0)} | changes


# --- what they measure -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_lengths_and_sums_are_those_of_their_twins(dtype: str) -> None:
    rng = np.random.default_rng(0)
    sizes = [1e-30, 1.0, 3e37] if dtype == "float32" else [1e-300, 1e-160, 1.0, 1e160, 8e307]
    for d in (1, 3, 255, 256, 257, 2049):
        for size in sizes:
            X = (size * rng.uniform(-1, 1, (7, d))).astype(dtype)
            X[2] *= X.dtype.type(1e-7)
            for center in (None, X[3], -X[3]):
                np.testing.assert_allclose(
                    lengths(X, center), ref.lengths(X, center), rtol=1e-6 if dtype == "float32" else 1e-14
                )
                one, three = (_core.lengths(X, center, threads) for threads in (1, 3))
                assert all(map(same_bits, one, three)), (d, size)
            sums = rng.uniform(-1, 1, (9, d)) * size
            twin, other = sums.copy(), sums.copy()
            workers = np.array([8, 1, 2, 5, 4, 6, 0])
            found = _core.add_to_sums(X, workers, 0.25, sums, 5, 1)
            np.testing.assert_allclose(found, ref.add_to_sums(X, workers, 0.25, twin, 5), rtol=1e-14)
            assert same_bits(sums, twin), (d, size)
            assert same_bits(found, _core.add_to_sums(X, workers, 0.25, other, 5, 4)), (d, size)
            assert same_bits(sums, other), (d, size)


def test_what_is_not_finite_is_infinitely_far() -> None:
    X = np.array([[np.nan, 1.0], [np.inf, 1.0], [1.7e308, 1.7e308], [-1.7e308, 1.7e308], [0.0, 0.0]])
    assert lengths(X).tolist() == [math.inf, math.inf, math.inf, math.inf, 0.0]
    assert lengths(X, np.array([1.7e308, 0.0]))[4] == 1.7e308
    sums = np.zeros((2, 2))
    assert _core.add_to_sums(X[:1], np.array([0]), 1.0, sums, 1, 1).tolist() == [math.inf, 0.0]
    with pytest.raises(ValueError, match="workers: expected rows of sums"):
        _core.add_to_sums(X[:1], np.array([2]), 1.0, sums, 1, 1)
    with pytest.raises(ValueError, match="center: expected a row of sums"):
        _core.add_to_sums(X[:1], np.array([1]), 1.0, sums, 2, 1)


# --- Zeno ------------------------------------------------------------------------------------------------------------


def test_zeno_scores_are_the_closed_form() -> None:
    rng = np.random.default_rng(1)
    a, b, x0, G = rng.uniform(0.5, 2, 6), rng.standard_normal(6), rng.standard_normal(6), rng.standard_normal((8, 6))
    found = filters.Zeno(2, rho=0.3).scores(G, x0=x0, k=1, step=0.2, validation=Clean(a, b))
    # f(x) - f(x - s g) = s <a (x - b), g> - s^2/2 <a g, g>
    exact = 0.2 * G @ (a * (x0 - b)) - 0.02 * (a * G**2).sum(axis=1) - 0.3 * 0.2 * (G**2).sum(axis=1)
    np.testing.assert_allclose(found, exact, rtol=1e-12, atol=1e-13)


def test_zeno_keeps_the_regular_workers() -> None:
    a = np.array([1.0, 2.0, 0.5])
    for c in (1.0, 2.0, 50.0):
        for seed in range(20):
            rng = np.random.default_rng(seed)
            x0 = rng.standard_normal(3)
            regular = np.outer(rng.uniform(0.8, 1.2, 3), a * x0)
            G = np.concatenate([-c * regular, -c * regular, regular])  # two thirds are Byzantine
            weights = filters.Zeno(6).weigh(G, **given(G, x0=x0, step=0.4, validation=Clean(a, 0.0)))
            assert weights.tolist() == [0.0] * 6 + [1.0] * 3, (c, seed)


def test_zeno_with_a_large_penalty_keeps_the_shortest_and_ranks_any_size() -> None:
    rng = np.random.default_rng(2)
    G = rng.standard_normal((9, 4)) * rng.uniform(0.1, 3.0, (9, 1))
    weights = filters.Zeno(4, rho=1e9).weigh(G, **given(G, validation=Clean(np.ones(4), 1.0)))
    assert np.flatnonzero(weights).tolist() == sorted(np.argsort(np.linalg.norm(G, axis=1))[:5].tolist())
    for size in (1e308, -1e308, 1e200):
        for rho in (0.0, 0.1):
            wild = np.concatenate([np.full((2, 4), size), -np.ones((3, 4)), np.zeros((1, 4))])
            kept = filters.Zeno(2, rho=rho).weigh(wild, **given(wild, validation=Clean(np.ones(4), 1.0)))
            assert kept.tolist() == [0, 0, 1, 1, 1, 1], (size, rho)


def test_zeno_excludes_fewer_once_workers_are_eliminated() -> None:
    assert filters.Zeno(3).lowered(2) == filters.Zeno(1)
    assert filters.Zeno(3).lowered(5) == filters.Zeno(0)
    assert filters.Zeno().declaring(4) == filters.Zeno(4)
    assert filters.Zeno(3).declaring(4) == filters.Zeno(3)
    assert SGD(f=2, filter=filters.Zeno()).filter == filters.Zeno(2)
    assert SGD(filter=filters.Zeno()).declaring(5).filter == filters.Zeno(5)
    G = -np.ones((3, 2))
    about = given(G, validation=Clean(np.ones(2), 1.0))
    assert filters.Zeno(7).weigh(G, **about).tolist() == [1, 0, 0]  # never nobody
    with pytest.raises(ValueError, match="Zeno needs b"):
        filters.Zeno().weigh(G, **about)
    with pytest.raises(ValueError, match=r"expected b < 3, the number of messages, got 3"):
        SGD(filter=filters.Zeno(3)).check(3)


# --- FLTrust and Comparison ------------------------------------------------------------------------------------------


def test_fltrust_is_its_closed_form_for_any_size() -> None:
    rng = np.random.default_rng(3)
    v, G = rng.standard_normal(5), rng.standard_normal((12, 5))
    validation = Clean(np.ones(5), -v)  # at zero its gradient is v
    cosine = G @ v / np.linalg.norm(G, axis=1) / np.linalg.norm(v)
    sizes = 10.0 ** rng.uniform(-300, 300, (12, 1))
    for X in (G, G * sizes):
        state: dict[str, Array] = {}
        weights = filters.FLTrust(None).weigh(X, **given(X, state, validation=validation))
        np.testing.assert_allclose(weights, np.maximum(cosine, 0), rtol=1e-13)
        rows, same = filters.FLTrust(None).adjusted(X, weights, state=state, rng=np.random.default_rng(0))
        expected = G * (np.linalg.norm(v) / np.linalg.norm(G, axis=1))[:, None]
        np.testing.assert_allclose(rows, expected, rtol=1e-13)
        assert same is weights
    none = np.array([[0.0] * 5, [1.7e308] * 5])  # no direction; a length beyond float64
    assert filters.FLTrust(None).weigh(none, **given(none, validation=validation)).tolist() == [0.0, 0.0]


def test_comparison_keeps_a_ball_and_adds_its_own() -> None:
    rng = np.random.default_rng(4)
    v = rng.standard_normal(4)
    G = v + rng.standard_normal((30, 4)) * 0.7
    G[0], G[1] = 1.7e308, -1e308
    state: dict[str, Array] = {}
    near = filters.Comparison(0.6)
    weights = near.weigh(G, **given(G, state, validation=Clean(np.ones(4), -v)))
    assert 0 < weights.sum() < 28
    np.testing.assert_array_equal(weights[2:] > 0, np.linalg.norm(G[2:] - v, axis=1) <= 0.6 * np.linalg.norm(v))
    assert not weights[:2].any()
    rows, all_weights = near.adjusted(G[weights > 0], np.ones(3), state=state, rng=np.random.default_rng(0))
    np.testing.assert_array_equal(rows, np.vstack([G[weights > 0], v]))
    assert all_weights.tolist() == [1.0] * 4


# --- ByzantineSGD ----------------------------------------------------------------------------------------------------


def walk(guard: filters.Filter, rounds: Any, x0: Any = None) -> list[Array]:
    """The weights of every round, for messages (t, m, d)."""
    rounds = np.asarray(rounds)
    state = guard.begin(*rounds.shape[1:], rounds.dtype)
    at = np.zeros(rounds.shape[2]) if x0 is None else x0
    return [guard.weigh(X, **given(X, state, k=t, x0=at)) for t, X in enumerate(rounds, 1)]


def test_byzantine_sgd_eliminates_in_the_first_round_beyond_its_threshold() -> None:
    g = np.array([3.0, 4.0])  # sums of g and -g are 10 t apart
    for T_B in (9.9, 10.0, 54.0, 60.0):
        found = walk(filters.ByzantineSGD(V=1e9, T_B=T_B), [[-g, g, g, -g, g]] * 8)
        first = next(t for t in range(1, 9) if 2 * t * 5.0 > T_B)
        for t, weights in enumerate(found, 1):
            assert weights.tolist() == ([1] * 5 if t < first else [0, 1, 1, 0, 1]), (T_B, t)
    # The other two tests: a single gradient farther than 4 V, and sums of products with the way from the first model.
    assert walk(filters.ByzantineSGD(V=2.0), [[-g, g, g]])[0].tolist() == [0, 1, 1]
    assert walk(filters.ByzantineSGD(V=2.6), [[-g, g, g]])[0].tolist() == [1, 1, 1]
    guard = filters.ByzantineSGD(V=1e9, T_A=99.0)
    state = guard.begin(3, 2, np.dtype(float))
    X = np.array([g, g, -g])
    ways = [np.zeros(2), np.array([1.0, 1.0]), np.array([6.0, 0.0]), np.array([6.0, 8.0])]  # <g, way>: 0, 7, 18, 50
    weights = [guard.weigh(X, **given(X, state, k=k, x0=way)).tolist() for k, way in enumerate(ways, 1)]
    assert weights == [[1, 1, 1]] * 3 + [[1, 1, 0]]  # 2 (7 + 18 + 50) > 99


@pytest.mark.slow
def test_byzantine_sgd_keeps_regular_workers_whose_noise_is_below_v() -> None:
    for seed in range(100):
        rng = np.random.default_rng(seed)
        noise = rng.standard_normal((20, 9, 5))
        noise *= rng.uniform(0, 1, (20, 9, 1)) / np.linalg.norm(noise, axis=2, keepdims=True)
        found = walk(filters.ByzantineSGD(V=1.0, D=10.0, T=20), noise + 2.0, x0=np.ones(5))
        assert np.all(found[-1] == 1), seed


def test_byzantine_sgd_measures_its_noise() -> None:
    rng = np.random.default_rng(5)
    noise = rng.standard_normal((25, 9, 50))
    noise[:, :3] += 20.0  # three Byzantine ones, at the lowest indices
    found = walk(filters.ByzantineSGD(T=25), noise)
    assert all(weights.all() for weights in found[:20])
    assert [weights.tolist() for weights in found[20:]] == [[0] * 3 + [1] * 6] * 5


def test_byzantine_sgd_scales_and_projects() -> None:
    rows, weights = np.ones((6, 2)), np.ones(6)
    state = filters.ByzantineSGD().begin(8, 2, np.dtype(float))
    for scale, expected in (("all", 0.75), ("good", 1.0)):
        made, _ = filters.ByzantineSGD(scale=scale).adjusted(rows, weights, state=state, rng=np.random.default_rng(0))
        assert np.all(made == expected), scale
    state["first"][:] = 1.0, 1.0
    x0 = np.array([4.0, 5.0])
    filters.ByzantineSGD(D=2.5).projected(x0, state=state)
    np.testing.assert_allclose(x0, [2.5, 3.0], rtol=1e-15)
    filters.ByzantineSGD(D=2.6).projected(x0, state=state)
    np.testing.assert_allclose(x0, [2.5, 3.0], rtol=1e-15)


def test_without_a_majority_point_nobody_is_eliminated() -> None:
    apart = np.diag(np.arange(1.0, 6.0)) * 100  # everybody far from everybody
    assert np.all(walk(filters.ByzantineSGD(V=1.0, T_B=2.0), [apart] * 3)[-1] == 1)
    assert np.all(walk(filters.Safeguard(windows=2, thresholds=1.0), [apart] * 5)[-1] == 1)


def test_fewer_than_half_are_never_left() -> None:
    """The sums keep workers 2 to 4, the gradients workers 0 to 2: each a majority, but only one worker has both."""
    guard = filters.ByzantineSGD(V=2.0, T_B=12.0)
    state = guard.begin(5, 1, np.dtype(float))
    state["rounds"][:] = 1
    state["B"][:] = [[0.0], [20.0], [60.0], [50.0], [70.0]]
    X = np.array([[0.0], [0.0], [0.0], [10.0], [-10.0]])
    with pytest.warns(RuntimeWarning, match="fewer than half of the workers would remain in round 2"):
        weights = guard.weigh(X, **given(X, state, k=2))
    assert np.all(weights == 1)
    assert np.all(state["eliminated"] == -1)


def test_messages_that_are_missing_eliminate_nobody() -> None:
    """A regular worker is silent in every other round, so that its own sum would lag behind by far."""
    g = np.array([3.0, 4.0])
    X = np.array([-g, g, g, g, g])
    for guard in (filters.ByzantineSGD(V=1e9, T_B=45.0, T_A=1e9), filters.Safeguard(50, 4.0)):
        state = guard.begin(5, 2, np.dtype(float))
        for k in range(1, 31):
            there = np.arange(5) if k % 2 else np.array([0, 1, 2, 4])
            weights = guard.weigh(X[there], **given(X[there], state, k=k, workers=there, x0=np.full(2, 0.1 * k)))
        assert state["eliminated"].tolist() == [5, -1, -1, -1, -1], guard
        assert weights.tolist() == [0, 1, 1, 1], guard


def test_a_missing_message_does_not_count_with_a_forged_one() -> None:
    """A regular worker is silent in the first round, when nobody knows whom to trust, and the first is an attacker."""
    X = np.array([[1e300], [-1e300], [1.0], [1.0], [1.0], [1.0]])
    for guard in (filters.ByzantineSGD(V=math.inf, T_B=5.0), filters.Safeguard(50, 4.0)):
        state = guard.begin(6, 1, np.dtype(float))
        for k in (1, 2, 3):
            there = np.arange(6 if k > 1 else 5)
            guard.weigh(X[there], **given(X[there], state, k=k, workers=there))
        assert np.all(state["eliminated"][:2] > 0), guard
        assert np.all(state["eliminated"][2:] == -1), guard


@pytest.mark.slow
def test_a_minority_of_any_size_eliminates_no_regular_worker_and_passes_no_distance() -> None:
    rng = np.random.default_rng(9)
    for case in range(150):
        dtype = ("float32", "float64")[case % 2]
        info = np.finfo(dtype)
        m, d = int(rng.integers(5, 12)), int(rng.choice([5, 17]))
        q = (m - 1) // 2
        every: list[filters.Filter] = [
            filters.Zeno(q),
            filters.Comparison(0.9),
            filters.ByzantineSGD(V=1.0, D=3.0, T=20),
            filters.Safeguard((2, 4)),
            filters.Reconstruction(rank=2, gradients=8, power=1.5),
        ]
        chosen = every[case % 5]
        sizes = [info.max, -info.max, info.max / 3, info.tiny, info.smallest_subnormal, 0, 1, -1, 1e30, -1e-30, 2.01]
        state = chosen.begin(m, d, np.dtype(dtype))
        for k in range(1, 8):
            X = np.concatenate([rng.choice(sizes, (q, d)), rng.uniform(1.7, 2.3, (m - q, d))]).astype(dtype)
            weights = chosen.weigh(X, **given(X, state, k=k, validation=Clean(np.ones(d), -2.0)))
            assert np.all(np.isfinite(weights)), (case, chosen)
            if chosen.eliminates:
                assert np.all(state["eliminated"][q:] < 0), (case, chosen)
            else:
                far = np.abs(X[:q]).max(axis=1) > 1e3
                assert np.all(weights[:q][far] < 1e-20), (case, chosen)


# --- Safeguard -------------------------------------------------------------------------------------------------------


class Slope:
    """Every worker's gradient is (1, 0)."""

    dim, n_workers = 2, 10

    def gradient(self, x: Array, *, worker: int, k: int) -> Array:
        return np.array([1.0, 0.0])


def test_safeguard_after_eleven_gradients() -> None:
    for byzantine in ([6, 7, 8, 9], [0, 1, 2, 3]):
        run = simulate(
            None, None, loss=Slope(), attack=attacks.SignFlip(-1.0), byzantine=byzantine, iterations=14, eval_every=1,
            algorithm=SGD(step=CONSTANT, filter=filters.Safeguard(windows=50, thresholds=1.05)), rho=0.0,
            dtype="float64", record="trajectory",
        )  # fmt: skip
        assert run.eliminated == dict.fromkeys(byzantine, 11)
        moves = np.diff(run.trajectory["x0"][:, 0]) / -0.1  # type: ignore[index]
        np.testing.assert_allclose(moves, [0.2] * 11 + [1.0] * 3, rtol=1e-12)  # (6 - 4) / 10, then 6 / 6
        assert run.weights is not None
        assert run.weights["byzantine"].tolist()[1:] == [1.0] * 11 + [0.0] * 3
        assert run.weights["regular"].tolist()[1:] == [1.0] * 14
        assert run.weights["byzantine_kept"].tolist()[1:] == [4.0] * 11 + [0.0] * 3
        assert run.weights["regular_excluded"].tolist()[1:] == [0.0] * 14


def test_safeguard_sums_start_again_with_every_window() -> None:
    X = np.array([[1.0]] * 6 + [[-1.0]] * 4)
    assert np.all(walk(filters.Safeguard(windows=10, thresholds=1.05), [X] * 40)[-1] == 1)  # 2 t / 10 <= 2 < 2.1
    both = filters.Safeguard(windows=(10, 30), thresholds=(1.05, 1.05))
    found = walk(both, [X] * 12)
    assert found[10].all()
    assert found[11].tolist() == [1] * 6 + [0] * 4


def test_safeguard_learns_its_thresholds_in_the_first_window() -> None:
    rng = np.random.default_rng(6)
    noise = rng.standard_normal((40, 9, 60))
    noise[:, :4] += 1.2  # together, at the lowest indices
    noise[:8, 0] = 1e308  # somebody shouts
    found = walk(filters.Safeguard(windows=(10, 30)), noise)
    assert all(weights.all() for weights in found[:10])
    assert found[-1].tolist() == [0] * 4 + [1] * 5
    clean = walk(filters.Safeguard(windows=(10, 30)), rng.standard_normal((90, 9, 60)))
    assert np.all(clean[-1] == 1)


def test_safeguard_noise_moves_every_row_alike() -> None:
    guard, rows = filters.Safeguard(noise=0.5), np.arange(8000.0).reshape(2, 4000)
    made, _ = guard.adjusted(rows, np.ones(2), state={}, rng=np.random.default_rng(0))
    np.testing.assert_allclose(made[0] - rows[0], made[1] - rows[1], atol=1e-11)
    assert np.std(made[0] - rows[0]) == pytest.approx(0.5, rel=0.05)


# --- Reconstruction --------------------------------------------------------------------------------------------------


def test_reconstruction_errors_are_distances_to_a_subspace() -> None:
    rng = np.random.default_rng(7)
    basis = np.linalg.qr(rng.standard_normal((20, 4)))[0].T
    mean, inside = rng.standard_normal(20), rng.standard_normal((6, 4))
    assert reconstruction_lengths(mean + inside @ basis, mean, basis).max() < 1e-13
    off = rng.standard_normal((6, 20))
    off -= off @ basis.T @ basis
    found = reconstruction_lengths(mean + inside @ basis + off, mean, basis)
    np.testing.assert_allclose(found, np.linalg.norm(off, axis=1), rtol=1e-12)
    turn = np.linalg.qr(rng.standard_normal((20, 20)))[0]
    turned = reconstruction_lengths((mean + inside @ basis + off) @ turn, mean @ turn, basis @ turn)
    np.testing.assert_allclose(turned, found, rtol=1e-12)


class Ways(Clean):
    """Clean gradients along three of ten directions."""

    def batch(self, count: int, k: int) -> Array:
        return np.asarray(np.random.default_rng(k).standard_normal(3))

    def gradient(self, x: Array, rows: Array) -> Array:
        return np.concatenate([rows, np.ones(7)])


def test_reconstruction_learns_where_clean_gradients_are() -> None:
    rng = np.random.default_rng(8)
    X = np.concatenate([rng.standard_normal((6, 3)), np.ones((6, 7))], axis=1)
    X[4:] *= -1.0
    X[5] *= 1e307
    for rank in (3, 16):
        finder = filters.Reconstruction(rank=rank, gradients=20)
        state = finder.begin(6, 10, np.dtype(float))
        weights = finder.weigh(X, **given(X, state, validation=Ways(np.ones(10), 0.0)))
        assert weights.tolist() == [1, 1, 1, 1, 1, 0], rank
        soft = replace(finder, power=1.0).weigh(np.vstack([X, 1e30 * X[4:5]]), **given(np.vstack([X, X[:1]]), state))
        assert (soft[4:] < 1e-20).all(), rank  # no attacker chooses the unit in which another is measured
        alone = finder.weigh(X[:5], **given(X[:5], state))  # without the one that shouts
        assert alone.tolist() == [1, 1, 1, 1, 0], rank


def test_reconstruction_weighs_errors() -> None:
    X = np.zeros((4, 1))
    for errors, power, expected in [
        ([1.0, 1.0, 1.0, 1.0], None, [1, 1, 1, 1]),
        ([0.1, 0.1, 0.1, 0.1], None, [1, 1, 1, 1]),
        ([0.0, 0.0, 0.0, 0.0], None, [1, 1, 1, 1]),
        ([1.0, 2.0, 3.0, 10.0], None, [1, 1, 1, 0]),
        ([1.0, 2.0, 3.0, 1e308], None, [1, 1, 1, 0]),
        ([1.0, 1.5e308, 1.5e308, 1.0], None, [1, 0, 0, 1]),
        ([1.0, 2.0, math.nan, math.inf], None, [1, 1, 0, 0]),
        ([1.0, 2.0, 4.0, math.inf], 1, [1, 0.5, 0.25, 0]),
        ([1.0, 2.0, 4.0, 1e308], 2, [1, 0.25, 0.0625, 0]),
        ([0.0, 0.0, 4.0, 1.0], 1, [1, 1, 0, 0]),
        ([1e-300, 2e-300, 1.0, 1.0], 1, [1, 0.5, 1e-300, 1e-300]),
        ([math.inf] * 4, 1, [0, 0, 0, 0]),
    ]:
        found = filters.Reconstruction(power=power, score=lambda _, e=errors: np.array(e)).weigh(X, **given(X))
        np.testing.assert_allclose(found, expected, rtol=1e-12, atol=1e-320, err_msg=str((errors, power)))
    with pytest.raises(ValueError, match=r"score: expected shape \(4,\), got \(1,\)"):
        filters.Reconstruction(score=lambda _: np.zeros(1)).weigh(X, **given(X))
    with pytest.raises(ValueError, match=r"score: expected errors >= 0, got -1\.0"):
        filters.Reconstruction(score=lambda _: -np.ones(4)).weigh(X, **given(X))


# --- settings --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: filters.Zeno(-1), "b: expected an integer >= 0"),
        (lambda: filters.Zeno(rho=-1), "rho: expected a finite number >= 0"),
        (lambda: filters.Zeno(samples=0), "samples: expected an integer >= 1"),
        (lambda: filters.FLTrust(samples=0), "samples: expected an integer >= 1"),
        (lambda: filters.Comparison(0), "c: expected a finite number > 0"),
        (lambda: filters.ByzantineSGD("mean"), "V: expected one of median"),
        (lambda: filters.ByzantineSGD(0.0), "V: expected a finite number > 0"),
        (lambda: filters.ByzantineSGD(1.0, delta=1.0), r"delta: expected a number in \(0, 1\)"),
        (lambda: filters.ByzantineSGD(scale="some"), "scale: expected one of all, good"),
        (lambda: filters.Safeguard((1, 2, 3)), "windows: expected one or two lengths, got 3"),
        (lambda: filters.Safeguard(0), "windows: expected an integer >= 1"),
        (lambda: filters.Safeguard(5, (1.0, 2.0)), "thresholds: expected one per window, 1; got 2"),
        (lambda: filters.Safeguard(5, "best"), "thresholds: expected one of auto"),
        (lambda: filters.Reconstruction(rank=0), "rank: expected an integer >= 1"),
        (lambda: filters.Reconstruction(power=0), "power: expected a finite number > 0"),
        (lambda: filters.Reconstruction(score=3), "score: expected None or a callable, got int"),  # type: ignore[arg-type]
    ],
)
def test_settings_are_checked(make: Any, message: str) -> None:
    with pytest.raises((TypeError, ValueError), match=message):
        make()


def test_f_is_lowered_by_messages_that_are_absent_alone() -> None:
    """Safeguard hears those that it eliminates once more, ByzantineSGD does not: the rule tolerates those it hears."""
    loss = losses.Quadratic(np.ones(9), np.linspace(1.8, 2.2, 9)[:, None])
    strict = filters.ByzantineSGD(V=1.0, T=50, scale="good")
    for chosen, sent, gone in ((filters.Safeguard(5, 0.5), [-1e6] * 4, 4), (strict, [-1e6, -1e6, -3.5, -3.5], 2)):
        for rule in ("trimmed_mean", [aggregators.Bucketing(s=1, rng=0), aggregators.TrMean(f=4)]):
            sgd = SGD(rule=rule, f=4, filter=chosen, step=steps.constant(1.0))
            run = simulate(
                None,
                None,
                loss=loss,
                algorithm=sgd,
                attack=lambda messages, sent=sent, **_: np.array(sent)[:, None],
                byzantine=range(4),
                rho=0.0,
                iterations=1,
            )
            assert len(run.eliminated) == gone, (chosen, rule)
            assert 2.0 <= run.x0[0] <= 2.2001, (chosen, rule, run.x0)  # the models of the regular workers


class OwnRow(filters.Filter):
    """Keeps messages shorter than 5, and adds -2 as a message of the master."""

    def weigh(self, messages: Array, **_: Any) -> Array:
        return np.where(np.abs(messages[:, 0]) < 5, 1.0, 0.0)

    def adjusted(self, rows: Array, weights: Array, **_: Any) -> tuple[Array, Array]:
        return np.append(rows, [[-2.0]], axis=0), np.append(weights, 1.0)


def test_settings_of_workers_beside_a_row_that_the_filter_adds() -> None:
    loss = losses.Quadratic(np.ones(4), [[9.0], [2.0], [-9.0], [2.2]])  # workers 1 and 3 pass
    for rule, wanted in (
        ([aggregators.MoNNA(f=1, pivot=3)], 6.2 / 3),  # f is lowered to 0: the mean of 2, 2.2 and 2
        ([aggregators.MoNNA(f=1, pivot=0)], 0.0),  # it is excluded, and nothing moves
        ([aggregators.TrMean(f=0, weights=[0.0, 6.0, 0.0, 2.0])], (6 * 2.0 + 2 * 2.2 + 2 * 2.0) / 10),
        ([aggregators.Bucketing(s=2, permutation=[3, 2, 1, 0]), aggregators.TrMean(f=0)], (2.1 + 2.0) / 2),
    ):
        sgd = SGD(rule=rule, filter=OwnRow(), step=steps.constant(1.0))
        run = simulate(None, None, loss=loss, algorithm=sgd, n_byzantine=0, rho=0.0, iterations=1, dtype="float64")
        np.testing.assert_allclose(run.x0, wanted, rtol=1e-12, err_msg=str(rule))
