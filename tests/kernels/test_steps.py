"""Step sizes: their values, their limits, and what is refused."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest

from byzadmm import steps


@pytest.mark.parametrize(
    ("step", "k", "value"),
    [
        (steps.inv_sqrt(10, 10), 1, 1 / 20),
        (steps.inv_sqrt(0.5, 10), 4, 1 / 20.5),
        (steps.inv_sqrt(2, 0), 99, 0.5),
        (steps.inv_sqrt(0, 1), 0, math.inf),
        (steps.power(1e-3), 4, 5e-4),
        (steps.power(3.0, 1.0), 6, 0.5),
        (steps.power(3.0, 0), 6, 3.0),
        (steps.power(1.0), 0, math.inf),
        (steps.power(1.0, 400), 9, 0.0),
        (steps.power(2e300, 320), 10, 2e-20),
        (steps.power(1e-300, 1e300), 2, 0.0),
        (steps.constant(0.1), 12, 0.1),
        (steps.inv_linear(1 / 8, 3), 0, 1 / 3),
        (steps.inv_linear(1 / 8, 1), 8, 0.5),
        (steps.inv_linear(1, 1, cap=0.25), 1, 0.25),
        (steps.inv_linear(1, 1, cap=0.25), 7, 0.125),
        (steps.inv_linear(1, 0), 0, math.inf),
        (steps.inv_linear(0, 0, cap=0.5), 3, 0.5),
    ],
)
def test_values(step: Any, k: int, value: float) -> None:
    assert step(k) == pytest.approx(value, rel=1e-13 if isinstance(step, steps.Power) and step.p > 300 else 1e-15)


@pytest.mark.parametrize(
    ("make", "error", "message"),
    [
        (lambda: steps.inv_sqrt(0, 0), ValueError, "inv_sqrt: c0 and c1 are both 0"),
        (lambda: steps.inv_sqrt(-1, 1), ValueError, "c0: expected a finite number >= 0.0, got -1.0"),
        (lambda: steps.inv_sqrt(1, math.nan), ValueError, "c1: expected a finite number >= 0.0, got nan"),
        (lambda: steps.inv_sqrt("1", 1), TypeError, "c0: expected a real number, got str"),
        (lambda: steps.power(0), ValueError, "c: expected a finite number > 0.0, got 0.0"),
        (lambda: steps.power(1, -1), ValueError, "p: expected a finite number >= 0.0, got -1.0"),
        (lambda: steps.constant(0.0), ValueError, "a: expected a finite number > 0.0, got 0.0"),
        (lambda: steps.constant(math.inf), ValueError, "a: expected a finite number > 0.0, got inf"),
        (lambda: steps.inv_linear(-1, 1), ValueError, "c: expected a finite number >= 0.0, got -1.0"),
        (lambda: steps.inv_linear(1, -1), ValueError, "b: expected a finite number >= 0.0, got -1.0"),
        (lambda: steps.inv_linear(1, 1, 0), ValueError, "cap: expected a finite number > 0.0, got 0.0"),
        (lambda: steps.inv_linear(1, 1, math.nan), ValueError, "cap: expected a finite number > 0.0, got nan"),
        (lambda: steps.inv_linear(1, 1, "x"), TypeError, "cap: expected a real number, got str"),
        (lambda: steps.inv_linear(0, 0), ValueError, "inv_linear: c and b are both 0"),
    ],
)
def test_what_is_refused(make: Any, error: type[Exception], message: str) -> None:
    with pytest.raises(error, match=message):
        make()


def test_evaluate() -> None:
    made = steps.evaluate(steps.power(1.0, 1.0), "step", 2, 3)
    assert made.dtype == np.float64
    assert made.tolist() == [1 / 2, 1 / 3, 1 / 4]
    assert steps.evaluate(lambda k: np.float32(k), "step", 0, 2).tolist() == [0.0, 1.0]
    assert steps.evaluate(steps.constant(1), "step", 5, 0).shape == (0,)
    for wrong in (-1.0, math.nan, math.inf):
        with pytest.raises(ValueError, match="worker_step: expected a finite number >= 0 at k=7, got"):
            steps.evaluate(lambda k, wrong=wrong: wrong if k >= 7 else 1.0, "worker_step", 1, 20)  # type: ignore[misc]


def test_a_step_has_to_be_finite_in_the_dtype_of_the_run() -> None:
    assert steps.evaluate(steps.constant(1e60), "step", 1, 1).tolist() == [1e60]
    with pytest.raises(ValueError, match=r"step: expected a .* at k=3, got 1e\+60 \(infinite in float32\)"):
        steps.evaluate(lambda k: 1e60 if k == 3 else 1e-60, "step", 1, 5, np.float32)


def test_check_step() -> None:
    with pytest.raises(
        TypeError, match=r"step: expected a step size of byzadmm.steps or a callable k -> float, got 0.1"
    ):
        steps.check_step(0.1, "step")
    assert steps.check_step(math.sqrt, "step") is math.sqrt


def test_equal_settings_are_equal_and_describe_themselves() -> None:
    assert steps.inv_sqrt(1, 2) == steps.inv_sqrt(1.0, 2.0)
    assert repr(steps.power(1e-4)) == "Power(c=0.0001, p=0.5)"
