"""The checks of scalar arguments: what passes, and the words for what does not."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from byzadmm._internal.validation import check_choice, check_int, check_real, check_threads, check_workers


def test_integers_of_every_kind_pass() -> None:
    for value in (3, np.int8(3), np.uint64(3), np.array(3)):
        number = check_int(value, "n", low=3, high=3)
        assert number == 3
        assert type(number) is int


def test_real_numbers_of_every_kind_pass() -> None:
    for value in (2, 2.0, np.float32(2.0), np.int64(2)):
        number = check_real(value, "x", low=2.0, high=2.0)
        assert number == 2.0
        assert type(number) is float
    assert check_choice("a", "c", ["a", "b"]) == "a"


@pytest.mark.parametrize(
    ("value", "limits", "message"),
    [
        (5, {"high": 3}, "n: expected an integer <= 3, got 5"),
        (1, {"low": 2}, "n: expected an integer >= 2, got 1"),
        (1, {"low": 2, "high": 3}, r"n: expected an integer in \[2, 3\], got 1"),
    ],
)
def test_integers_out_of_range(value: int, limits: dict[str, int], message: str) -> None:
    with pytest.raises(ValueError, match=f"^{message}$"):
        check_int(value, "n", **limits)


@pytest.mark.parametrize(
    ("value", "limits", "message"),
    [
        (np.nan, {}, "x: expected a finite number, got nan"),
        (-(10**400), {}, "x: expected a finite number, got -inf"),
        (5.0, {"high": 3.0}, "x: expected a finite number <= 3.0, got 5.0"),
        (2.0, {"low": 2.0, "strict": True}, "x: expected a finite number > 2.0, got 2.0"),
        (2.0, {"low": 2.0, "high": 3.0, "strict": True}, r"x: expected a finite number in \(2.0, 3.0\], got 2.0"),
    ],
)
def test_real_numbers_out_of_range(value: float, limits: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=f"^{message}$"):
        check_real(value, "x", **limits)


@pytest.mark.parametrize(
    ("value", "limits", "fits"),
    [
        (float(np.nextafter(2.0**128 - 2.0**103, 0.0)), {}, True),
        (2.0**103 - 2.0**128, {}, False),
        (float(np.nextafter(2.0**-150, 1.0)), {"low": 0.0, "strict": True}, True),
        (2.0**-150, {"low": 0.0, "strict": True}, False),
        (1e-60, {"low": 0.0}, True),
        (0.0, {"low": 0.0}, True),
    ],
)
def test_real_numbers_as_float32_rounds_them(value: float, limits: dict[str, Any], fits: bool) -> None:
    with np.errstate(over="ignore"):
        rounded = np.float32(value)
    assert fits == (np.isfinite(rounded) and (rounded > 0 or not limits.get("strict")))
    assert check_real(value, "x", dtype=np.dtype(np.float64), **limits) == value
    if fits:
        assert check_real(value, "x", dtype=np.dtype(np.float32), **limits) == value
    else:
        with pytest.raises(ValueError, match=r"x: expected a finite number.* in float32, got"):
            check_real(value, "x", dtype=np.dtype(np.float32), **limits)


@pytest.mark.parametrize("value", [True, 1.0, "1", None, [1], np.array([1, 2]), np.bool_(True), 1j])
def test_not_an_integer(value: Any) -> None:
    with pytest.raises(TypeError, match=f"^n: expected an integer, got {type(value).__name__}$"):
        check_int(value, "n")


@pytest.mark.parametrize("value", [True, "1", None, [1.0], np.array([1.0]), np.bool_(True), 1j])
def test_not_a_real_number(value: Any) -> None:
    with pytest.raises(TypeError, match=f"^x: expected a real number, got {type(value).__name__}$"):
        check_real(value, "x")


def test_threads_and_workers() -> None:
    assert check_threads(0) == 0
    assert check_threads(np.int64(4096)) == 4096
    with pytest.raises(ValueError, match=r"^threads: expected an integer in \[0, 4096\], got 4097$"):
        check_threads(4097)
    assert check_workers(np.array([2, 0]), "byzantine", 3) == [2, 0]
    with pytest.raises(TypeError, match=r"^byzantine: expected a list of workers' numbers, got NoneType$"):
        check_workers(None, "byzantine", 3)
    with pytest.raises(ValueError, match=r"^byzantine: a worker is named twice in \[0, 1, 1\]$"):
        check_workers([1, 0, 1], "byzantine", 3)
