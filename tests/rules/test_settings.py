"""Wrong settings of single rules: the error names the argument, what was expected and what came."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest

from byzadmm import aggregate, aggregators
from support.rules import apply, normal

Array = npt.NDArray[Any]
Settings = dict[str, Any]

DTYPES = ("float32", "float64")


@pytest.mark.parametrize(
    ("rule", "settings", "error", "message"),
    [
        ("krum", {"f": -1}, ValueError, "f: expected an integer >= 0, got -1"),
        ("krum", {"f": 1.0}, TypeError, "f: expected an integer, got float"),
        ("krum", {"f": 4}, ValueError, "krum: f=4 is too large for n=9 workers; at most 3"),
        ("multi_krum", {"f": 4}, ValueError, "multi_krum: f=4 is too large for n=9 workers; at most 3"),
        ("bulyan", {"f": 2}, ValueError, "bulyan: f=2 is too large for n=9 workers; at most 1"),
        ("meamed", {"f": 5}, ValueError, "meamed: f=5 is too large for n=9 workers; at most 4"),
        ("phocas", {"f": 5}, ValueError, "phocas: f=5 is too large for n=9 workers; at most 4"),
        ("nearest_neighbor_mixing", {"f": 5}, ValueError, "nearest_neighbor_mixing: f=5 is too large for n=9 workers"),
        ("krum", {"f": 2, "neighbors": 7}, ValueError, r"neighbors: expected an integer in \[1, 6\], got 7"),
        ("multi_krum", {"f": 2, "m": 8}, ValueError, r"m: expected an integer in \[1, 7\], got 8"),
        ("krum", {"f": 2, "weights": [1.0]}, ValueError, r"weights: expected shape \(9,\), got \(1,\)"),
        ("medoid", {"weights": [-1.0] * 9}, ValueError, "weights: expected finite numbers >= 0, not all zero"),
        ("centered_clip", {"tau": 0}, ValueError, "tau: expected a finite number > 0.0, got 0.0"),
        ("centered_clip", {"tau": "1"}, TypeError, "tau: expected a real number, got str"),
        ("centered_clip", {"tau": 1, "n_iter": 0}, ValueError, "n_iter: expected an integer in"),
        ("centered_clip", {"tau": 1, "center": [1.0]}, ValueError, r"center: expected shape \(4,\), got \(1,\)"),
        ("centered_clip", {"tau": 1, "center": [np.nan] * 4}, ValueError, "center: expected finite numbers"),
        ("bucketing", {"s": 0, "rng": 1}, ValueError, "s: expected an integer >= 1, got 0"),
        ("bucketing", {"s": 2, "rng": None}, TypeError, "rng: expected a seed or a numpy.random.Generator .* got None"),
        ("clip", {"max_norm": -1}, ValueError, "max_norm: expected a finite number > 0.0, got -1.0"),
        ("medoid", {"nonfinite": "drop"}, ValueError, "nonfinite: expected one of exclude, raise, propagate; got"),
        ("medoid", {"threads": -1}, ValueError, "threads: expected an integer in"),
    ],
)
def test_messages(rule: str, settings: Settings, error: type[Exception], message: str) -> None:
    with pytest.raises(error, match=message):
        apply(rule, normal(9, 4), **settings)


@pytest.mark.parametrize(
    ("call", "error", "message"),
    [
        (lambda: aggregate.max_f("krump", 4), ValueError, "rule: expected one of mean, .*; got 'krump'"),
        (lambda: aggregate.max_f(3, 4), TypeError, "rule: expected a string, got int"),
        (lambda: aggregate.max_f("mean", 0), ValueError, "n: expected an integer >= 1, got 0"),
    ],
)
def test_max_f_errors(call: Callable[[], Any], error: type[Exception], message: str) -> None:
    with pytest.raises(error, match=f"^{message}$"):
        call()


@pytest.mark.parametrize(
    ("f", "error", "message"),
    [
        (9, ValueError, "trimmed_mean: f=9 is too large for n=11 workers; at most 5"),
        (6, ValueError, "trimmed_mean: f=6 is too large for n=11 workers; at most 5"),
        (10**30, ValueError, f"trimmed_mean: f={10**30} is too large for n=11 workers; at most 5"),
        (-1, ValueError, "f: expected an integer >= 0, got -1"),
        (1.0, TypeError, "f: expected an integer, got float"),
        (True, TypeError, "f: expected an integer, got bool"),
        (None, TypeError, "f: expected an integer, got NoneType"),
        (np.array([1, 2]), TypeError, "f: expected an integer, got ndarray"),
    ],
)
def test_illegal_f(f: Any, error: type[Exception], message: str) -> None:
    with pytest.raises(error, match=f"^{message}$"):
        aggregate.trimmed_mean(np.zeros((11, 2)), f=f)


def test_median_even_errors() -> None:
    with pytest.raises(ValueError, match=r"^even: expected one of mid, low, high; got 'upper'$"):
        aggregate.median(np.zeros((2, 2)), even="upper")
    with pytest.raises(TypeError, match=r"^even: expected a string, got int$"):
        aggregate.median(np.zeros((2, 2)), even=1)


@pytest.mark.parametrize(
    ("options", "error", "message"),
    [
        ({"tol": 0.0}, ValueError, r"tol: expected a finite number > 0.0, got 0.0"),
        ({"tol": -1e-6}, ValueError, r"tol: expected a finite number > 0.0, got -1e-06"),
        ({"tol": np.nan}, ValueError, r"tol: expected a finite number > 0.0, got nan"),
        ({"tol": np.inf}, ValueError, r"tol: expected a finite number > 0.0, got inf"),
        ({"tol": "1e-6"}, TypeError, "tol: expected a real number, got str"),
        ({"tol": True}, TypeError, "tol: expected a real number, got bool"),
        ({"max_iter": 0}, ValueError, r"max_iter: expected an integer in \[1, 2147483647\], got 0"),
        ({"max_iter": 10.0}, TypeError, "max_iter: expected an integer, got float"),
    ],
)
def test_geometric_median_option_errors(options: Any, error: type[Exception], message: str) -> None:
    with pytest.raises(error, match=f"^{message}$"):
        aggregate.geometric_median(np.zeros((3, 2)), **options)


def test_max_f_knows_every_rule() -> None:
    expected = {"mean": 0, "median": 5, "trimmed_mean": 5, "geometric_median": 5}
    expected |= {"krum": 4, "multi_krum": 4, "bulyan": 2, "medoid": 5, "meamed": 5, "phocas": 5, "centered_clip": 5}
    assert {rule: aggregate.max_f(rule, 11) for rule in expected} == expected
    assert [aggregate.max_f("median", n) for n in (1, 2, 3, 12)] == [0, 0, 1, 5]
    for rule in {**aggregators.RULES, **aggregators.PRE_AGGREGATORS}:
        assert aggregate.max_f(rule, 11) >= 0
    with pytest.raises(ValueError, match="bulyan: expected at least 3 workers, got n=2"):
        aggregate.max_f("bulyan", 2)
