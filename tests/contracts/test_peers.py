"""The traps that other packages fall into, one test for each, by the number under which they were collected."""

from __future__ import annotations

import subprocess
import sys
from statistics import NormalDist
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest

from byzadmm import ADMM, SGD, aggregate, aggregators, attacks, kernels
from byzadmm import reference as ref
from support.arrays import same_bits
from support.kernel_calls import call_step, step_arrays
from support.rules import ALL_RULES, settings_for

Array = npt.NDArray[Any]


def squared(X: Array) -> Array:
    """Squared distances by differences."""
    return np.stack([((X - row) ** 2).sum(axis=1) for row in X])


def published_krum(X: Array, f: int, neighbors: int, m: int = 1) -> Array:
    """Scores as published: the ``neighbors`` smallest squared distances to others; the mean of the m best rows."""
    D = squared(X)
    np.fill_diagonal(D, np.inf)
    scores = np.sort(D, axis=1)[:, :neighbors].sum(axis=1)
    mean: Array = X[np.argsort(scores, kind="stable")[:m]].mean(axis=0)
    return mean


def published_bulyan(X: Array, f: int) -> Array:
    """Repeated Krum, then the values closest to the median of the selected rows."""
    left, chosen = list(range(len(X))), []
    for _ in range(len(X) - 2 * f):
        D = squared(X[left])
        np.fill_diagonal(D, np.inf)
        scores = np.sort(D, axis=1)[:, : max(1, len(left) - f - 2)].sum(axis=1)
        chosen.append(left.pop(int(scores.argmin())))
    S = X[chosen]
    near = np.argsort(np.abs(S - np.median(S, axis=0)), axis=0, kind="stable")[: len(X) - 4 * f]
    mean: Array = np.take_along_axis(S, near, axis=0).mean(axis=0)
    return mean


def test_trap_01_neighbors_are_others_and_distances_are_squared() -> None:
    rng = np.random.default_rng(1)
    differ = 0
    for _ in range(400):
        X = rng.standard_normal((11, 5))
        paper, byzfl = aggregate.krum(X, f=2), aggregate.krum(X, f=2, neighbors=8)
        assert np.array_equal(paper, published_krum(X, 2, 7))
        assert np.array_equal(byzfl, published_krum(X, 2, 8))
        differ += not np.array_equal(paper, byzfl)
    assert differ > 10


def test_trap_02_a_row_is_excluded_by_its_index() -> None:
    # Row 4 has three twins: were "itself" found by sorting, its own zero might be counted instead of theirs.
    X = np.array([[0.0], [1.0], [2.0], [7.0], [7.0], [7.0], [7.0]])
    _, info = aggregate.krum(X, f=1, return_info=True)
    assert info.scores.tolist() == [1 + 4 + 49 + 49, 1 + 1 + 36 + 36, 1 + 4 + 25 + 25, 25.0, 25.0, 25.0, 25.0]
    assert info.selected.tolist() == [3]


@pytest.mark.parametrize("norm", [45.0, 1e4])
@pytest.mark.parametrize("n", [30, 90])  # below and above the size where products replace differences
def test_trap_03_large_vectors_close_together(norm: float, n: int) -> None:
    rng = np.random.default_rng(3)
    spread = 1e-3 * norm / 45
    for _ in range(30 if n == 30 else 4):
        center = rng.standard_normal(2000)
        X = (center * norm / np.linalg.norm(center) + spread * rng.standard_normal((n, 2000))).astype(np.float32)
        _, info = aggregate.krum(X, f=10, return_info=True)
        assert same_bits(X[info.selected[0]].astype(np.float64), published_krum(X.astype(np.float64), 10, n - 12))
        assert info.distances.min() == 0


def test_trap_03_outliers_do_not_spoil_the_others() -> None:
    rng = np.random.default_rng(4)
    for n in (30, 100):
        X = rng.standard_normal((n, 300)).astype(np.float32)
        X[n - 8 :] *= 1e6
        _, info = aggregate.krum(X, f=8, return_info=True)
        np.testing.assert_allclose(info.distances, squared(X.astype(np.float64)), rtol=1e-6)


@pytest.mark.parametrize("m", [None, 4, 7, 1])
def test_trap_04_multi_krum_means_m_rows(m: int | None) -> None:
    rng = np.random.default_rng(4)
    X = rng.standard_normal((11, 6))
    expected = published_krum(X, 2, 7, 9 if m is None else m)
    np.testing.assert_allclose(aggregate.multi_krum(X, f=2, m=m), expected, rtol=1e-14)
    byzfl = aggregate.multi_krum(X, f=2, neighbors=8)
    np.testing.assert_allclose(byzfl, published_krum(X, 2, 8, 9), rtol=1e-14)


def test_trap_05_an_illegal_f_is_an_error() -> None:
    X = np.zeros((5, 2))
    with pytest.raises(ValueError, match=r"^krum: f=10 is too large for n=5 workers; at most 1$"):
        aggregate.krum(X, f=10)
    with pytest.raises(ValueError, match=r"^krum: f=9 is too large for n=11 workers; at most 4$"):
        aggregate.krum(np.zeros((11, 2)), f=9)


def test_trap_06_bulyan_selects_row_by_row() -> None:
    rng = np.random.default_rng(6)
    differ = 0
    for _ in range(50):
        X = rng.standard_normal((15, 7))
        before = X.copy()
        np.testing.assert_allclose(aggregate.bulyan(X, f=3), published_bulyan(X, 3), rtol=1e-13, atol=1e-15)
        assert np.array_equal(X, before)
        _, info = aggregate.bulyan(X, f=3, return_info=True)
        once = np.argsort(ref.krum_scores(X, neighbors=10), kind="stable")[:9]
        differ += set(info.selected.tolist()) != set(once.tolist())
    assert differ > 10
    with pytest.raises(ValueError, match="at most 2"):
        aggregate.bulyan(np.zeros((14, 2)), f=3)


def test_trap_07_trimming_is_not_subtracting() -> None:
    X = np.array([[1.0], [2.0], [3.0], [1e9], [-1e9]], np.float32)
    assert aggregate.trimmed_mean(X, f=1).tolist() == [2.0]
    X[3] = 1e30
    assert aggregate.trimmed_mean(X, f=1).tolist() == [2.0]
    X[3] = np.inf
    assert aggregate.trimmed_mean(X, f=1).tolist() == [np.float32((1 + 2 + 3 - 1e9) / 4)]  # f is 0 once it is excluded
    assert aggregate.max_f("trimmed_mean", 100) == 49
    with pytest.raises(TypeError, match="f: expected an integer, got float"):
        aggregate.trimmed_mean(X, f=0.29)


def test_trap_07_trimmed_mean_averages_the_rest(dtype: str) -> None:
    X = np.array([[1.0], [2.0], [3.0], [1e9], [-1e9]], dtype)
    assert aggregate.trimmed_mean(X, f=1).tolist() == [2.0]
    X[3:] = [[np.inf], [-np.inf]]
    assert aggregate.trimmed_mean(X, f=2).tolist() == [2.0]
    assert aggregate.trimmed_mean(X, f=1, nonfinite="propagate").tolist() == [2.0]
    # 29 of 100 by number, not by a fraction that rounds to 28.
    X = np.arange(100.0)[:, None] ** 2
    assert aggregate.trimmed_mean(X, f=29).tolist() == [(np.arange(29.0, 71.0) ** 2).mean()]


def test_trap_08_the_even_median_is_a_choice() -> None:
    X = [[1.0], [2.0], [4.0], [9.0]]
    assert [aggregate.median(X, even=e).tolist() for e in ("mid", "low", "high")] == [[3.0], [2.0], [4.0]]


def test_trap_09_the_geometric_median_has_no_absolute_scale() -> None:
    X = np.concatenate([np.random.default_rng(9).standard_normal((9, 4)), np.full((3, 4), 1e4)])
    at_one = aggregate.geometric_median(X)
    assert np.linalg.norm(at_one) < 5
    np.testing.assert_allclose(aggregate.geometric_median(X * 2.0**-60) * 2.0**60, at_one, rtol=1e-5, atol=1e-6)
    assert aggregate.geometric_median([[1.0, 2, 3], [4.0, 5, 6], [7.0, 8, 9]]).tolist() == [4.0, 5.0, 6.0]
    doubled = aggregate.geometric_median([[0.0], [1.0], [5.0]], weights=[1.0, 1.0, 1.0])
    assert doubled.tolist() == [1.0]


@pytest.mark.parametrize("scale", [1e-9, 1e-3, 1.0, 1e6])
def test_trap_09_geometric_median_is_not_smoothed(scale: float) -> None:
    rng = np.random.default_rng(19)
    X = rng.standard_normal((10, 20)) * scale
    X[0] = 1e4 * scale
    z = aggregate.geometric_median(X)
    assert np.linalg.norm(z) < 10 * scale
    assert np.linalg.norm(X.mean(axis=0)) > 1e3 * scale
    line = np.array([[1.0, 2.0, 3.0], [4.0, 5.0, 6.0], [7.0, 8.0, 9.0]])
    assert aggregate.geometric_median(line).tolist() == [4.0, 5.0, 6.0]
    # Equal weights do not collapse into one.
    assert aggregate.geometric_median(line, weights=[1.0, 1.0, 1.0]).tolist() == [4.0, 5.0, 6.0]


every_rule = pytest.mark.parametrize("rule", ALL_RULES)


def settings_of(rule: str) -> dict[str, Any]:
    settings = settings_for(rule, 12, f=2)
    assert settings is not None
    return settings


@every_rule
@pytest.mark.parametrize("poison", [np.nan, np.inf, -np.inf])
def test_trap_10_one_poisoned_row_poisons_nothing(rule: str, poison: float) -> None:
    settings = settings_of(rule)
    X = np.random.default_rng(10).standard_normal((12, 5))
    X[3, 2] = poison
    result, info = getattr(aggregate, rule)(X, **settings, return_info=True)
    assert np.isfinite(result).all()
    assert info.excluded.tolist() == [3]
    fewer = {key: value - 1 if key in ("f", "pivot") else value for key, value in settings.items()}
    assert np.array_equal(result, getattr(aggregate, rule)(np.delete(X, 3, axis=0), **fewer))


def test_trap_11_ties_go_to_the_lowest_index() -> None:
    X = np.array([[5.0], [1.0], [1.0], [1.0], [1.0], [9.0], [1.0]])
    for rule in (aggregate.krum, aggregate.multi_krum):
        _, info = rule(X, f=1, return_info=True)
        assert info.selected[0] == 1
    assert aggregate.medoid(X, return_info=True)[1].selected.tolist() == [1]
    assert aggregate.multi_krum(X, f=1, m=3, return_info=True)[1].selected.tolist() == [1, 2, 3]
    assert aggregate.bulyan(X, f=1, return_info=True)[1].selected.tolist()[:4] == [1, 2, 3, 4]
    # 1 and 3 are equally far from the median 2: the row that comes first stays.
    assert aggregate.meamed([[3.0], [2.0], [1.0]], f=1).tolist() == [2.5]
    assert aggregate.meamed([[1.0], [2.0], [3.0]], f=1).tolist() == [1.5]


@pytest.mark.parametrize("name", ["median", "trimmed_mean", "geometric_median"])
def test_trap_11_ties_of_colluders(name: str, dtype: str) -> None:
    X = np.random.default_rng(21).standard_normal((20, 9)).astype(dtype)
    X[12:] = 7.0
    f = {"f": 8} if name == "trimmed_mean" else {}
    got = getattr(aggregate, name)(X, **f)
    assert (np.abs(got) < 4.0).all()
    for seed in range(5):
        order = np.random.default_rng(seed).permutation(20)
        np.testing.assert_allclose(getattr(aggregate, name)(X[order], **f), got, atol=1e-5)


@every_rule
def test_trap_12_nothing_is_kept_between_calls(rule: str) -> None:
    settings = settings_of(rule)
    rng = np.random.default_rng(12)
    X, Y = rng.standard_normal((2, 12, 5))
    configured = ALL_RULES[rule](**settings)
    first = configured(X)
    configured(Y)
    assert np.array_equal(first, configured(X))


@every_rule
def test_trap_13_inputs_are_not_modified(rule: str) -> None:
    settings = settings_of(rule)
    X = np.random.default_rng(13).standard_normal((12, 5)) * 10
    X[3, 2] = np.nan
    rows = [row.copy() for row in X]
    before = X.copy()
    X.flags.writeable = False
    getattr(aggregate, rule)(X, **settings)
    getattr(aggregate, rule)(rows, **settings)
    assert len(rows) == 12
    assert all(same_bits(row, was) for row, was in zip(rows, before, strict=True))


@every_rule
@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_trap_14_precision_is_kept(rule: str, dtype: str) -> None:
    settings = settings_of(rule)
    X = np.random.default_rng(14).standard_normal((12, 5)).astype(dtype)
    assert getattr(aggregate, rule)(X, **settings).dtype == dtype


@pytest.mark.parametrize("rule", ["mean", "median", "trimmed_mean", "geometric_median"])
def test_trap_14_float64_keeps_its_digits(rule: str) -> None:
    X = 1.0 + 1e-12 * np.arange(1.0, 8.0)[:, None] * np.ones((7, 3))
    got = getattr(aggregate, rule)(X, **(settings_for(rule, 7) or {}))
    assert got.dtype == np.float64
    np.testing.assert_allclose(got - 1.0, 4e-12, rtol=1e-3)


def test_trap_14_mixed_precision_is_computed_in_the_wider_type() -> None:
    arrays = step_arrays(3, 4, "float32")
    arrays["x0"] = arrays["x0"].astype(np.float64) + 1e-10
    got = call_step("rsa_worker_step", arrays)
    assert got.dtype == np.float64
    wide = {key: value.astype(np.float64) for key, value in arrays.items()}
    assert same_bits(got, call_step("rsa_worker_step", wide))


def test_trap_15_no_global_random_state() -> None:
    X = np.random.default_rng(15).standard_normal((12, 5))
    drawing: list[tuple[str, dict[str, Any]]] = [("bucketing", {"s": 2}), ("resampling", {"s": 2})]
    drawing += [("dnc", {"f": 5, "coordinates": 2})]
    for name, settings in drawing:
        rule, generator = getattr(aggregate, name), np.random.default_rng(3)
        assert np.array_equal(rule(X, rng=3, **settings), rule(X, rng=generator, **settings)), name
        assert not np.array_equal(rule(X, rng=3, **settings), rule(X, rng=generator, **settings)), name
    np.random.seed(1)  # noqa: NPY002
    before = np.random.get_state()[1].copy()  # noqa: NPY002
    for rule in ALL_RULES:
        settings = settings_of(rule)
        once = getattr(aggregate, rule)(X, **settings)
        assert np.array_equal(once, getattr(aggregate, rule)(X, **settings))
    assert np.array_equal(before, np.random.get_state()[1])  # noqa: NPY002


def told(byzantine: list[int]) -> dict[str, Any]:
    given: dict[str, Any] = {"x0": np.zeros(2), "k": 1, "rng": np.random.default_rng(0), "algorithm": SGD()}
    return given | {"byzantine": byzantine}


# Workers 2 and 3 are Byzantine. The regular ones have mean (3, 4) and population deviations (2, 1); sample deviations
# are sqrt(2) times as large.
SENT = np.array([[1.0, 3.0], [5.0, 5.0], [7.0, -2.0], [-1.0, 9.0]])


def test_trap_16_the_sign_flip_multiplies_the_own_message() -> None:
    assert attacks.SignFlip()(SENT, **told([2, 3])).tolist() == [[-21.0, 6.0], [3.0, -27.0]]  # not -3 (3, 4)
    assert attacks.SignFlip(-1.0)(SENT, **told([2, 3])).tolist() == [[-7.0, 2.0], [1.0, -9.0]]  # not -(3, 4)


def test_trap_16_alie_subtracts_population_deviations_of_the_regular() -> None:
    assert attacks.ALIE(1.0)(SENT, **told([2, 3])).tolist() == [[1.0, 3.0]] * 2
    assert attacks.ALIE(-2.0)(SENT, **told([2, 3])).tolist() == [[7.0, 6.0]] * 2
    # m = 50, q = 24 of the paper: s = 26 - 24 = 2 supporters, and z from the share 24/26 of the regular workers.
    assert attacks.ALIE.strength(50, 24) == pytest.approx(NormalDist().inv_cdf(24 / 26), rel=1e-12)
    assert attacks.ALIE.strength(50, 24) == pytest.approx(1.4261, abs=1e-4)


def test_trap_16_the_inner_product_takes_the_mean_of_the_regular() -> None:
    assert attacks.InnerProduct(2.0)(SENT, **told([2, 3])).tolist() == [[-6.0, -8.0]] * 2
    assert attacks.InnerProduct(2.0)(SENT, **told([0, 1])).tolist() == [[-6.0, -7.0]] * 2


def test_trap_16_min_max_does_not_depend_on_the_length_of_its_direction() -> None:
    # Whether deviations are of a population or a sample changes the length of the direction, not the forged message.
    forged = attacks.MinMax()(SENT, **told([2, 3]))[0]
    deviation = SENT[:2].std(axis=0, ddof=1)
    gamma = np.linalg.norm([3.0, 4.0] - forged) / np.linalg.norm(deviation)
    np.testing.assert_allclose(forged, [3.0, 4.0] - gamma * deviation, rtol=1e-12)
    widest = np.linalg.norm(SENT[0] - SENT[1])
    assert max(np.linalg.norm(SENT[:2] - forged, axis=1)) == pytest.approx(widest, rel=1e-12)


def test_trap_17_mixing_needs_little_memory() -> None:
    script = """
import resource, sys
import numpy as np
from byzadmm import aggregate
X = np.ones((64, 65536), np.float32) * np.arange(64, dtype=np.float32)[:, None]
aggregate.nearest_neighbor_mixing(X[:, :64], f=8, threads=1)
before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
Y = aggregate.nearest_neighbor_mixing(X, f=8, threads=1)
unit = 1 if sys.platform == "darwin" else 1024
print((resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before) * unit / X.nbytes)
"""
    pytest.importorskip("resource")
    ran = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert float(ran.stdout) <= 1.2


def test_trap_18_claimed_weights_can_be_capped() -> None:
    X = [[0.0], [1.0], [2.0], [3.0], [100.0]]
    claimed = [10, 10, 10, 10, 1e9]
    assert aggregate.mean(X, weights=claimed)[0] > 99
    capped = aggregate.cap_weights(claimed, 10)
    assert capped.tolist() == [10.0] * 5
    assert aggregate.median(X, weights=claimed).tolist() == [100.0]
    assert aggregate.median(X, weights=capped).tolist() == [2.0]
    assert aggregate.multi_krum(X, f=1).tolist() == [1.5]  # no weights unless they are passed


def test_trap_19_numpy_integers_and_plain_ones_are_numbers() -> None:
    X = np.random.default_rng(19).standard_normal((9, 3))
    assert np.array_equal(aggregate.krum(X, f=np.int64(2)), aggregate.krum(X, f=2))
    assert np.array_equal(aggregate.centered_clip(X, tau=1), aggregate.centered_clip(X, tau=1.0))
    assert np.array_equal(aggregate.clip(X, max_norm=np.float32(1)), aggregate.clip(X, max_norm=1))
    assert np.array_equal(aggregators.TrMean(f=np.uint8(2))(X), aggregate.trimmed_mean(X, f=2))


def test_trap_19_integers_of_every_kind_are_numbers() -> None:
    X = np.random.default_rng(23).standard_normal((7, 3))
    expected = aggregate.trimmed_mean(X, f=2)
    for f in (np.int64(2), np.int32(2), np.uint8(2), np.array(2)):
        assert same_bits(aggregate.trimmed_mean(X, f=f), expected)
    assert same_bits(aggregate.geometric_median(X, tol=1), aggregate.geometric_median(X, tol=1.0))
    assert aggregate.max_f("median", np.int64(7)) == 3


def test_trap_19_whole_numbers_are_step_sizes() -> None:
    arrays = step_arrays(3, 4, "float64")
    for value in (1, np.int64(1), np.float32(1.0), np.float64(1.0)):
        for name, option in (("admm_worker_step", "alpha"), ("rsa_worker_step", "lam")):
            expected = call_step(name, arrays, **{option: 1.0})
            assert same_bits(call_step(name, arrays, **{option: value}), expected)


def test_trap_20_the_projection_projects() -> None:
    eta = kernels.admm_dual_step(np.zeros((2, 3)), np.full((2, 3), 9.0), np.zeros(3), beta=1.0, lam=0.25)
    assert np.abs(eta).max() == 0.25
    assert ADMM(lam=0.5, beta=0.5, master_step=lambda k: 0.1, worker_step=lambda k: 0.1).lam == 0.5


def test_trap_20_the_projection_projects_and_workers_do_not_share(dtype: str) -> None:
    arrays = step_arrays(5, 40, dtype)
    lam = np.asarray(0.25, dtype)
    eta = kernels.admm_dual_step(arrays["eta"], 100 * arrays["x"], arrays["x0"], beta=1.0, lam=0.25)
    assert np.abs(eta).max() == lam
    assert same_bits(kernels.admm_dual_step(eta, 0 * eta, 0 * arrays["x0"], beta=1.0, lam=0.25), eta)
    in_place = arrays["eta"].copy()
    kernels.admm_dual_step(in_place, 100 * arrays["x"], arrays["x0"], beta=1.0, lam=0.25, out=in_place)
    assert same_bits(in_place, eta)
    for name in ("admm_worker_step", "rsa_worker_step"):
        before = call_step(name, arrays)
        changed = {key: value.copy() for key, value in arrays.items()}
        changed["g"][2] += 1.0
        after = call_step(name, changed)
        assert [same_bits(a, b) for a, b in zip(before, after, strict=True)] == [True, True, False, True, True]
