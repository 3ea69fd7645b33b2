"""Finite rows of any size, a legal minority of them forged: every rule gives what its definition says."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import fuzz
from byzadmm import aggregate, reference
from support import judges, oracles
from support.arrays import same_bits
from support.hostile import PLANS, case
from support.judges import JUDGES
from support.oracles import Call
from support.rules import ALL_RULES, settings_for

SEED = 20275
LARGEST = float(np.finfo(np.float64).max)


@pytest.mark.parametrize("plan", PLANS, ids="+".join)
def test_hostile_rows(plan: tuple[str, ...]) -> None:
    for turn in range(24 if len(plan) == 1 else 6):
        case(SEED, PLANS.index(plan) + turn * len(PLANS)).check()


def settings_of(name: str) -> dict[str, Any]:
    return settings_for(name, 7, f=1) or {}


@pytest.mark.parametrize("name", ALL_RULES)
def test_every_rule_has_a_judge_that_tells_right_from_wrong(name: str) -> None:
    X = np.random.default_rng(0).normal(size=(7, 3))
    settings = settings_of(name)
    out, info = getattr(aggregate, name)(X, **settings, return_info=True)
    JUDGES[name](Call(X, settings, out, info))
    with pytest.raises(AssertionError):
        JUDGES[name](Call(X, settings, out + 1e-4, info))


@pytest.mark.parametrize(
    "name",
    [
        *("krum", "multi_krum", "medoid", "bulyan", "nearest_neighbor_mixing", "mda", "smea"),
        *("cge", "nearest_neighbor_average", "dnc"),
    ],
)
def test_a_wrong_choice_is_refused(name: str) -> None:
    X = np.random.default_rng(0).normal(size=(7, 3)) * [[1], [1], [1], [1], [1], [1], [10]]
    settings = settings_of(name)
    settings |= {"pivot": 0} if "pivot" in settings else {}
    _, info = getattr(aggregate, name)(X, **settings, return_info=True)
    assert info.selected is not None
    if name == "nearest_neighbor_mixing":
        info.selected[0, 1:] = [1, 2, 3, 4, 6]  # row 6 is the farthest from all
        chosen = [X[line].mean(axis=0) for line in info.selected]
    else:
        info.selected[-1 if name in ("mda", "smea") else 0] = 6  # these two select in ascending order
        chosen = X[info.selected].mean(axis=0)
    with pytest.raises(AssertionError, match=r"row \d"):
        JUDGES[name](Call(X, settings, np.array(chosen), info))


def test_the_fuzz_command_prints_what_reproduces_a_failure(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    assert fuzz.main(["--seed", "3", "--index", "1"]) == 0
    assert capsys.readouterr().out.startswith("1 inputs tried, 0 failed, seed 3")
    monkeypatch.setitem(judges.JUDGES, "median", lambda call: oracles.check(False, "as told"))
    assert fuzz.main(["--seed", "3", "--seconds", "0.3", "--rule", "median"]) == 1
    printed = capsys.readouterr().out.splitlines()
    assert printed[0].startswith("FAILED seed 3, index 1: median, shape (")
    assert "as told" in printed[1]
    assert printed[-1].endswith(" s")
    with pytest.raises(SystemExit, match="2"):
        fuzz.main(["--rule", "mode"])


# --- the top of the range, by hand ------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ALL_RULES)
@pytest.mark.parametrize("n", [7, 23, 67])
def test_equal_rows_of_the_largest_numbers_are_their_own_aggregate(name: str, n: int, dtype: str) -> None:
    row = (np.array([1.0, -1.0, 1.0]) * np.finfo(dtype).max).astype(dtype)
    settings = {**settings_of(name), **({"max_norm": 1e300} if name == "clip" else {})}
    out = getattr(aggregate, name)(np.repeat(row[None], n, axis=0), **settings)
    if name == "clip" and dtype == "float64":
        row = row / LARGEST * (1e300 / np.sqrt(3))
    if name == "sign_majority":
        row = np.sign(row)
    np.testing.assert_allclose(out, np.broadcast_to(row, out.shape), rtol=1e-15 if name == "clip" else 4e-16)
    assert np.isfinite(out).all()


@pytest.mark.parametrize("twin", [False, True])
def test_means_of_the_largest_numbers(twin: bool) -> None:
    X = np.array([[1.0], [1.0], [1.0], [-1.0], [-1.0], [0.5], [0.0]]) * LARGEST
    weights = [1.0, 2.0, 1.0, 1.0, 2.0, 1.0, 1.0]

    def rule(name: str, **settings: Any) -> float:
        module: Any = reference if twin else aggregate
        return float(getattr(module, name)(X, **settings)[0]) / LARGEST

    assert rule("mean") == pytest.approx(1.5 / 7)
    assert rule("mean", weights=weights) == pytest.approx(1.5 / 9)
    assert rule("trimmed_mean", f=1) == pytest.approx(1.5 / 5)
    assert rule("meamed", f=1) == pytest.approx(1.5 / 6 + 1 / 6)  # the median is 0.5: a -1 is the farthest
    assert rule("phocas", f=1) == pytest.approx(1.5 / 6 + 1 / 6)
    trimmed = rule("weighted_trimmed_mean" if twin else "trimmed_mean", f=2, weights=weights)
    assert trimmed == pytest.approx((-1.0 * (3 - 18 / 7) + 0.5 + 1.0 * (4 - 18 / 7)) / (9 - 36 / 7))
    X = np.array([[-LARGEST], [LARGEST], [LARGEST]])
    trimmed = rule("weighted_trimmed_mean" if twin else "trimmed_mean", f=0, weights=[0.1, 1.0, 1.0])
    assert trimmed == pytest.approx(1.9 / 2.1)


def test_mean_of_a_column_does_not_depend_on_the_other_columns() -> None:
    tiny = [5e-324, 2.5e-323, 1e-310, 3e-310]
    X = np.array([[LARGEST, value] for value in tiny])
    for out in (aggregate.mean(X)[1], aggregate.bucketing(X, s=4, rng=0)[0, 1], aggregate.multi_krum(X, f=0)[1]):
        assert out == np.mean(tiny)


@pytest.mark.parametrize("module", [aggregate, reference])
def test_subnormal_values_beside_the_largest_number_keep_their_order(module: Any) -> None:
    X = np.array([[4.0], [0.0], [0.0], [-3.0], [LARGEST]])
    X[:4] *= 5e-324
    assert module.meamed(X, f=2) == -5e-324  # of 0, 0 and -3 units


@pytest.mark.parametrize("module", [aggregate, reference])
def test_clip_of_rows_longer_than_the_largest_number(module: Any) -> None:
    X = np.array([[1.7e308, 1.7e308], [1e-320, -1e-320], [3.0, 4.0]])
    half = np.sqrt(0.5)
    np.testing.assert_allclose(module.clip(X, max_norm=1.0), [[half, half], [1e-320, -1e-320], [0.6, 0.8]])
    np.testing.assert_allclose(module.clip(X, max_norm=1.7e308)[0], [1.7e308 * half] * 2)
    shortest = module.clip(X, max_norm=1e-322)
    np.testing.assert_allclose(shortest, 1e-322 * np.array([[half, half], [half, -half], [0.6, 0.8]]), atol=1e-323)


@pytest.mark.parametrize("module", [aggregate, reference])
def test_centered_clip_of_differences_larger_than_the_largest_number(module: Any) -> None:
    X = np.array([[LARGEST], [LARGEST], [-LARGEST]])
    assert module.centered_clip(X, tau=3e-300, center=[0.0]) == pytest.approx(1e-300)
    assert module.centered_clip(X[:2], tau=LARGEST, center=[-LARGEST]) == pytest.approx(0.0, abs=1e292)
    assert module.centered_clip(X, tau=LARGEST, center=[LARGEST]) == pytest.approx(LARGEST / 3 * 2)
    assert module.centered_clip(X, tau=LARGEST, center=[0.0], n_iter=3) == pytest.approx(LARGEST / 27 * 13)


def test_weights_of_any_size_count_in_a_trimmed_mean_that_cuts_nothing() -> None:
    X, weights = np.array([[0.0], [1.0], [1e300]]), [1.0, 1.0, 1e-20]
    trimmed = aggregate.trimmed_mean(X, f=0, weights=weights)
    assert same_bits(trimmed, aggregate.mean(X, weights=weights))


@pytest.mark.parametrize("module", [aggregate, reference])
def test_subnormal_columns_keep_their_digits_under_weights(module: Any) -> None:
    X, weights = np.array([[5e-324], [1.5e-323], [1e-322], [2e-323], [5e-324]]), [0.25, 0.3, 4.0, 1e-9, 0.1]
    exact = sum(int(x / 5e-324) * w for x, w in zip(X[:, 0], weights, strict=True)) / sum(weights)
    assert module.mean(X, weights=weights) == pytest.approx(round(exact) * 5e-324, abs=0)
    trimmed = module.trimmed_mean if module is aggregate else module.weighted_trimmed_mean
    assert trimmed(X[:3], f=0, weights=[0.25, 0.25, 0.25]) == 4e-323  # (1 + 3 + 20) / 3 of the smallest number is 8
    assert trimmed(X[:3], f=1, weights=[0.25, 0.25, 0.25]) == 1.5e-323
