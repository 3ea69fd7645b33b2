"""What all rules have in common: twins, kinds of input, ``out``, excluded rows, errors, classes.

Every test here runs for every registered rule, so a new one is covered as soon as it is registered.
"""

from __future__ import annotations

import pickle
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest

import byzadmm
from byzadmm import aggregate, aggregators, reference
from support.arrays import POISONS, awkward, conversions, layouts, poisoned, same_bits
from support.rules import ALL_RULES, normal, settings_for, tolerance, tolerated

Array = npt.NDArray[Any]
Settings = dict[str, Any]

DTYPES = ("float32", "float64")
INPUTS = [pytest.param(X, id=f"{dtype}-{label}") for dtype in DTYPES for label, X in awkward(dtype)]
#: Rules that test_coordinatewise.py, test_geometric_median.py and test_spread.py compare with their twins, each by
#: what rounding does to it.
ELSEWHERE = ("mean", "median", "trimmed_mean", "geometric_median", "caf")

every_rule = pytest.mark.parametrize("rule", ALL_RULES)


def call(rule: str, X: Any, f: int | None = None, **more: Any) -> Any:
    """Apply a rule with settings for as many rows as ``X`` has."""
    settings = settings_for(rule, len(X), f)
    assert settings is not None
    return getattr(aggregate, rule)(X, **settings, **more)


# --- against the twins ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("rule", [rule for rule in ALL_RULES if rule not in ELSEWHERE])
@pytest.mark.parametrize("X", INPUTS)
def test_rule_equals_its_twin(rule: str, X: Array) -> None:
    settings = settings_for(rule, len(X), f=(len(X) - 1) // 3)
    if settings is None:
        with pytest.raises(ValueError, match=f"{rule}: expected at least 3 workers, got n={len(X)}"):
            getattr(aggregate, rule)(X, f=0)
        return
    result = getattr(aggregate, rule)(X, **settings, threads=1)
    assert result.dtype == X.dtype
    expected = getattr(reference, rule)(X, **settings)
    if rule in ("krum", "medoid"):  # two rows may be equally good up to rounding: either is right
        assert any(np.array_equal(result, row) for row in X)
        assert score(rule, X, result, settings) <= score(rule, X, expected, settings) * (1 + 1e-5)
    else:
        np.testing.assert_allclose(result, expected, **tolerance(X))
    for threads in (2, 3, 7):
        assert same_bits(getattr(aggregate, rule)(X, **settings, threads=threads), result)


def score(rule: str, X: Array, row: Array, settings: Settings) -> Any:
    i = next(i for i in range(len(X)) if np.array_equal(X[i], row))
    if rule == "medoid":
        return reference.pairwise_distances(X)[i].sum()
    return reference.krum_scores(X, neighbors=len(X) - settings["f"] - 2)[i]


@pytest.mark.parametrize("rule", [rule for rule in ALL_RULES if rule not in ("geometric_median", "caf")])
@pytest.mark.parametrize(("n", "d"), [(73, 700), (150, 150)])
def test_many_rows(rule: str, n: int, d: int, dtype: str) -> None:
    """Distances are computed by products beyond 72 rows; rows of colluders must get the same ones in every way."""
    X = normal(n, d, n, dtype)
    X[n // 2 + 5 :] = X[n // 2 + 5]
    settings = settings_for(rule, n)
    assert settings is not None
    result = getattr(aggregate, rule)(X, **settings, threads=1)
    np.testing.assert_allclose(result, getattr(reference, rule)(X, **settings), **tolerance(X))
    assert same_bits(getattr(aggregate, rule)(X, **settings, threads=3), result)


# --- kinds of input ---------------------------------------------------------------------------------------------------


@every_rule
def test_rules_do_not_depend_on_the_layout(rule: str, dtype: str) -> None:
    X = normal(12, 31, 2, dtype)
    expected = call(rule, X)
    for label, view in layouts(X):
        wide = label == "list of lists"  # Python floats are float64
        assert same_bits(call(rule, view), call(rule, X.astype(np.float64)) if wide else expected), label


@every_rule
def test_results_do_not_depend_on_alignment(rule: str, dtype: str) -> None:
    X = normal(9, 131, 3, dtype)
    expected = call(rule, X)
    for offset in range(1, 9):
        memory = np.empty(X.size + offset, dtype)
        view = memory[offset:].reshape(X.shape)
        view[...] = X
        assert same_bits(call(rule, view), expected)


@every_rule
def test_other_real_types_are_computed_in_a_native_one(rule: str) -> None:
    for label, X in conversions():
        half = X.dtype == np.float16
        computed = call(rule, X.astype(np.float32 if half else np.float64))
        assert same_bits(call(rule, X), computed.astype(np.float16) if half else computed), label


@every_rule
def test_lists_of_mixed_dtypes_are_computed_in_the_wider_one(rule: str) -> None:
    X = normal(7, 5, 5, "float32")
    mixed = [row.astype(np.float64) if i % 2 else row for i, row in enumerate(X)]
    assert same_bits(call(rule, mixed), call(rule, X.astype(np.float64)))
    assert same_bits(call(rule, tuple(X)), call(rule, X))


@every_rule
def test_torch_tensors_in_torch_tensors_out(rule: str, dtype: str, torch: Any) -> None:
    X = normal(7, 5, 6, dtype)
    got = call(rule, torch.from_numpy(X))
    assert isinstance(got, torch.Tensor)
    assert same_bits(got.numpy(), call(rule, X))
    assert isinstance(call(rule, [torch.from_numpy(row) for row in X]), torch.Tensor)
    out = torch.empty(got.shape, dtype=got.dtype)
    assert call(rule, torch.from_numpy(X), out=out) is out
    assert same_bits(out.numpy(), got.numpy())
    with pytest.raises(ValueError, match=r"X: the tensor requires grad; pass X.detach\(\)"):
        call(rule, torch.from_numpy(X).requires_grad_())


def test_tensors_with_a_negative_bit_are_refused(torch: Any) -> None:
    X = torch.ones(3, 2)
    turned = torch.complex(X, X).conj().imag
    with pytest.raises(ValueError, match=r"^X: the tensor has its negative bit set; pass X.resolve_neg\(\)$"):
        aggregate.mean(turned)
    with pytest.raises(ValueError, match=r"^X\[1\]: the tensor has its negative bit set"):
        aggregate.mean([X[0], turned[0]])
    with pytest.raises(ValueError, match=r"^out: the tensor has its negative bit set"):
        aggregate.mean(X, out=turned[0])
    assert aggregate.mean(turned.resolve_neg()).tolist() == [-1.0, -1.0]


def test_a_tensor_without_memory_is_refused(torch: Any) -> None:
    with pytest.raises(ValueError, match=r"^X: expected an array in host memory, got none \(.*meta"):
        aggregate.mean(torch.empty(3, 2, device="meta"))


def test_masked_arrays_are_refused() -> None:
    masked = np.ma.masked_array(np.ones((3, 2)), mask=np.eye(3, 2))
    message = "expected an array without a mask, got a masked one"
    with pytest.raises(TypeError, match=f"^X: {message}"):
        aggregate.mean(masked)
    with pytest.raises(TypeError, match=rf"^X\[0\]: {message}"):
        aggregate.median(list(masked))
    with pytest.raises(TypeError, match=f"^weights: {message}"):
        aggregate.mean(np.ones((3, 2)), weights=masked[:, 0])


@every_rule
def test_out_is_filled_and_returned(rule: str) -> None:
    X = normal(12, 31)
    expected = call(rule, X)
    out = np.full(expected.shape, np.nan)
    assert call(rule, X, out=out) is out
    assert same_bits(out, expected)
    with pytest.raises(ValueError, match="out: expected shape"):
        call(rule, X, out=np.empty(3))
    with pytest.raises(TypeError, match="out: expected dtype float64, got float32"):
        call(rule, X, out=np.empty(expected.shape, np.float32))
    with pytest.raises(ValueError, match="out: overlaps an input"):
        call(rule, X, out=X[: len(expected)] if expected.ndim == 2 else X[0])


# --- rows that are not finite -----------------------------------------------------------------------------------------


def excludable(rule: str, n: int) -> int:
    """How many rows that are not finite a rule excludes at most, with the settings of :func:`call`."""
    takes_f = "f" in (settings_for(rule, n) or {})
    return n - 1 if rule == "mean" or (rule in aggregators.PRE_AGGREGATORS and not takes_f) else tolerated(rule, n)


@every_rule
@pytest.mark.parametrize("n", [15, 100])
def test_nonfinite_rows_are_excluded(rule: str, n: int, dtype: str) -> None:
    rng = np.random.default_rng(n)
    bad = sorted(rng.permutation(n)[: min(tolerated(rule, n), n // 5) or 2].tolist())
    for kind in POISONS:
        X = poisoned(rng, n, 33, bad, kind, dtype)
        before = X.copy()
        result, info = call(rule, X, return_info=True)
        assert same_bits(X, before)
        assert info.excluded.tolist() == bad, kind
        assert info.kept.tolist() == [i for i in range(n) if i not in bad]
        assert info.kept.dtype == info.excluded.dtype == np.int64
        clean, clean_info = call(rule, X[info.kept], tolerated(rule, n) - len(bad), return_info=True)
        assert same_bits(result, clean), kind
        if info.selected is not None:
            np.testing.assert_array_equal(info.selected, info.kept[clean_info.selected])


@every_rule
def test_nonfinite_raise_names_the_rows(rule: str) -> None:
    X = np.zeros((20, 3))
    X[[2, 7], 1] = np.nan, np.inf
    with pytest.raises(ValueError, match=rf"^{rule}: rows \[2, 7\] hold NaN or infinite values$"):
        call(rule, X, nonfinite="raise")
    X[[3, 4, 5, 6, 8]] = -np.inf
    with pytest.raises(ValueError, match=rf"^{rule}: rows \[2, 3, 4, 5, 6\] and 2 more hold NaN or infinite values$"):
        call(rule, X, nonfinite="raise")
    assert np.all(call(rule, np.ones((7, 3)), nonfinite="raise") == 1.0)


@every_rule
def test_more_nonfinite_rows_than_the_rule_tolerates(rule: str) -> None:
    most = excludable(rule, 11)
    X = np.ones((11, 3))
    X[:most] = np.nan
    assert np.all(call(rule, X) == 1.0)
    X[: most + 1] = np.inf
    message = f"^{rule}: {most + 1} of 11 rows hold NaN or infinite values; at most {most} can be excluded$"
    with pytest.raises(ValueError, match=message):
        call(rule, X)


def test_propagate() -> None:
    X = normal(9, 3)
    X[0, 1] = np.nan
    take = {"nonfinite": "propagate"}
    for rule in ("krum", "multi_krum", "bulyan", "mda", "smea"):
        result, info = getattr(aggregate, rule)(X, f=1, **take, return_info=True)
        assert np.isfinite(result).all()
        assert 0 not in info.selected
        assert info.excluded.size == 0
    assert aggregate.medoid(X, **take, return_info=True)[1].selected[0] == 1 + np.argmin(
        reference.pairwise_distances(X[1:]).sum(axis=1)
    )
    assert aggregate.medoid(np.full((3, 2), np.inf), **take).tolist() == [np.inf, np.inf]
    for rule in ("meamed", "phocas"):
        assert np.isnan(getattr(aggregate, rule)(X, f=2, **take)).tolist() == [False, True, False]
    assert np.isnan(aggregate.centered_clip(X, tau=1, **take)).all()
    assert np.isnan(aggregate.caf(X, f=1, **take)).all()
    for rule, settings in (("median", {}), ("trimmed_mean", {"f": 1})):
        assert np.isnan(getattr(aggregate, rule)(X, **settings, weights=np.ones(9), **take)).all()
    mixed = aggregate.nearest_neighbor_mixing(X, f=2, **take)
    assert np.isnan(mixed).sum() == 1
    assert np.isnan(mixed[0, 1])
    assert np.isnan(aggregate.clip(X, max_norm=1, **take)[0]).any()
    assert np.isnan(aggregate.bucketing(X, s=9, rng=0, **take)[0, 1])


# --- errors -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("X", "error", "message"),
    [
        (np.zeros(3), ValueError, r"X: expected shape \(n, d\), one row per worker, got \(3,\)"),
        (np.zeros((2, 3, 4)), ValueError, r"X: expected shape \(n, d\), one row per worker, got \(2, 3, 4\)"),
        (np.float64(3.0), ValueError, r"X: expected shape \(n, d\), one row per worker, got \(\)"),
        (np.zeros((0, 3)), ValueError, r"X: expected at least one row and one column, got shape \(0, 3\)"),
        (np.zeros((3, 0)), ValueError, r"X: expected at least one row and one column, got shape \(3, 0\)"),
        ([], ValueError, r"X: expected shape \(n, d\), one row per worker, got \(0,\)"),
        ([np.zeros(0), np.zeros(0)], ValueError, r"X: expected at least one row and one column, got shape \(2, 0\)"),
        ([np.zeros(3), np.zeros(4)], ValueError, r"X\[1\]: expected shape \(3,\), got \(4,\)"),
        ([np.zeros((2, 3))], ValueError, r"X\[0\]: expected shape \(d,\), got \(2, 3\)"),
        ([np.float64(1.0), np.float64(2.0)], ValueError, r"X\[0\]: expected shape \(d,\), got \(\)"),
        ([[1.0, 2.0], [3.0]], TypeError, r"X: expected an array of real numbers, got list \(.*\)"),
        (np.zeros((2, 2), complex), TypeError, r"X: expected real numbers \(float32 or .*\), got dtype complex128"),
        ([["a"]], TypeError, r"X: expected real numbers \(float32 or float64\), got dtype <U1"),
        (np.array([[None]]), TypeError, r"X: expected real numbers \(float32 or float64\), got dtype object"),
        ([np.zeros(2, complex)], TypeError, r"X: expected real numbers \(float32 or float64\), got dtype complex128"),
        (np.zeros((2, 2), "longdouble"), TypeError, r"X: expected real numbers .*, got dtype .*"),
        (None, TypeError, r"X: expected real numbers \(float32 or float64\), got dtype object"),
    ],
    ids=lambda value: "",
)
def test_rules_refuse_what_is_not_rows_of_reals(X: Any, error: type[Exception], message: str) -> None:
    for rule in ALL_RULES:
        with pytest.raises(error, match=f"^{message}$"):
            getattr(aggregate, rule)(X, **(settings_for(rule, 7) or {}))


@pytest.mark.parametrize(
    ("options", "error", "message"),
    [
        ({"nonfinite": "ignore"}, ValueError, "nonfinite: expected one of exclude, raise, propagate; got 'ignore'"),
        ({"nonfinite": None}, TypeError, "nonfinite: expected a string, got NoneType"),
        ({"threads": -1}, ValueError, r"threads: expected an integer in \[0, 4096\], got -1"),
        ({"threads": 5000}, ValueError, r"threads: expected an integer in \[0, 4096\], got 5000"),
        ({"threads": 1.5}, TypeError, "threads: expected an integer, got float"),
        ({"threads": True}, TypeError, "threads: expected an integer, got bool"),
    ],
)
def test_common_options_are_checked(options: Any, error: type[Exception], message: str) -> None:
    for rule in ALL_RULES:
        with pytest.raises(error, match=f"^{message}$"):
            call(rule, np.zeros((5, 2)), **options)


@pytest.mark.parametrize("rule", [rule for rule in ALL_RULES if "f" in (settings_for(rule, 11) or {})])
def test_an_illegal_f_is_an_error(rule: str) -> None:
    settings = settings_for(rule, 11)
    assert settings is not None
    most = settings["f"]
    assert most == aggregate.max_f(rule, 11)
    with pytest.raises(ValueError, match=f"^{rule}: f={most + 1} is too large for n=11 workers; at most {most}$"):
        getattr(aggregate, rule)(np.zeros((11, 2)), **{**settings, "f": most + 1})
    with pytest.raises(ValueError, match=r"^f: expected an integer >= 0, got -1$"):
        getattr(aggregate, rule)(np.zeros((11, 2)), **{**settings, "f": -1})


@every_rule
def test_options_are_keyword_only(rule: str) -> None:
    with pytest.raises(TypeError, match="positional argument"):
        getattr(byzadmm, rule)(np.zeros((3, 2)), 1)


# --- classes ----------------------------------------------------------------------------------------------------------


@every_rule
def test_objects_call_the_functions(rule: str) -> None:
    X = normal(12, 5)
    settings = settings_for(rule, 12)
    assert settings is not None
    configured = ALL_RULES[rule](**settings)
    result, info = configured(X, return_info=True, threads=1)
    assert same_bits(result, getattr(aggregate, rule)(X, **settings))
    assert isinstance(info, aggregate.Info)
    assert pickle.loads(pickle.dumps(configured)) == configured
    X[0] = np.nan
    with pytest.raises(ValueError, match="hold NaN"):
        type(configured)(**settings, nonfinite="raise")(X)
    with pytest.raises(AttributeError):
        configured.f = 9  # type: ignore[attr-defined]


@every_rule
def test_nothing_is_computed_for_an_info_that_is_not_asked_for(rule: str, monkeypatch: pytest.MonkeyPatch) -> None:
    X = normal(12, 5)
    expected = call(rule, X)
    monkeypatch.setattr("byzadmm.aggregate._call.Info", lambda *_, **__: pytest.fail("an Info was built"))
    monkeypatch.setattr("byzadmm.aggregate.selection.Wide.as_float", lambda self: pytest.fail("it was converted"))
    assert same_bits(call(rule, X), expected)
