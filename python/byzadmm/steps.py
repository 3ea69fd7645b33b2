"""Step sizes: small objects that turn an iteration number into a number.

``k`` counts from ``first_k`` of a run, 1 unless told otherwise. Any callable ``k -> float`` works in their place.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from byzadmm._internal.validation import check_real

__all__ = ["Step", "at", "constant", "evaluate", "inv_linear", "inv_sqrt", "power"]

Step = Callable[[int], float]


@dataclass(frozen=True)
class InvSqrt:
    """``1 / (c0 + c1 sqrt(k))``"""

    c0: float
    c1: float

    def __call__(self, k: int) -> float:
        below = self.c0 + self.c1 * math.sqrt(k)
        return 1.0 / below if below > 0 else math.inf


@dataclass(frozen=True)
class Power:
    """``c / k^p``"""

    c: float
    p: float

    def __call__(self, k: int) -> float:
        if k <= 0:
            return math.inf
        try:
            return float(self.c / k**self.p)
        except OverflowError:  # of k^p alone
            return math.exp(math.log(self.c) - self.p * math.log(k))


@dataclass(frozen=True)
class Constant:
    """``a``"""

    a: float

    def __call__(self, k: int) -> float:
        return self.a


@dataclass(frozen=True)
class InvLinear:
    """``min(1 / (c k + b), cap)``"""

    c: float
    b: float
    cap: float

    def __call__(self, k: int) -> float:
        below = self.c * k + self.b
        return min(1.0 / below if below > 0 else math.inf, self.cap)


def inv_sqrt(c0: float, c1: float) -> InvSqrt:
    """``1 / (c0 + c1 sqrt(k))``: the steps of the paper's experiments.

    Examples
    --------
    >>> from byzadmm import steps
    >>> steps.inv_sqrt(10, 10)(4)
    0.03333333333333333
    """
    step = InvSqrt(check_real(c0, "c0", low=0.0), check_real(c1, "c1", low=0.0))
    if step.c0 == step.c1 == 0:
        raise ValueError("inv_sqrt: c0 and c1 are both 0")
    return step


def power(c: float, p: float = 0.5) -> Power:
    """``c / k^p``.

    Examples
    --------
    >>> from byzadmm import steps
    >>> steps.power(1.0)(4)
    0.5
    """
    return Power(check_real(c, "c", low=0.0, strict=True), check_real(p, "p", low=0.0))


def constant(a: float) -> Constant:
    """``a`` at every iteration.

    Examples
    --------
    >>> from byzadmm import steps
    >>> steps.constant(0.1)(7)
    0.1
    """
    return Constant(check_real(a, "a", low=0.0, strict=True))


def inv_linear(c: float, b: float, cap: float = math.inf) -> InvLinear:
    """``min(1 / (c k + b), cap)``: the steps of Theorem ``thm:conv``.

    Examples
    --------
    >>> from byzadmm import steps
    >>> steps.inv_linear(1 / 8, 3)(8)
    0.25
    """
    most = math.inf if cap == math.inf else check_real(cap, "cap", low=0.0, strict=True)
    step = InvLinear(check_real(c, "c", low=0.0), check_real(b, "b", low=0.0), most)
    if step.c == step.b == 0 and math.isinf(step.cap):
        raise ValueError("inv_linear: c and b are both 0")
    return step


def check_step(step: Any, name: str) -> Step:
    """``step`` itself if it can be called."""
    if not callable(step):
        raise TypeError(f"{name}: expected a step size of byzadmm.steps or a callable k -> float, got {step!r}")
    checked: Step = step
    return checked


def evaluate(step: Step, name: str, first: int, count: int, dtype: Any = np.float64) -> NDArray[np.float64]:
    """Step sizes of iterations ``first .. first+count-1``; each must be finite in ``dtype`` and not negative."""
    values = np.array([float(step(k)) for k in range(first, first + count)], np.float64)
    with np.errstate(over="ignore"):
        wrong = np.flatnonzero(~(np.isfinite(values.astype(dtype)) & (values >= 0)))
    if wrong.size:
        value = float(values[wrong[0]])
        beyond = f" (infinite in {np.dtype(dtype).name})" if 0 <= value < math.inf else ""
        raise ValueError(f"{name}: expected a finite number >= 0 at k={first + wrong[0]}, got {value!r}{beyond}")
    return values


def at(step: Step, name: str, k: int, dtype: Any = np.float64) -> float:
    """The step size of iteration ``k``, checked like those of :func:`evaluate`."""
    value = step(k)
    if type(value) is float and 0 <= value < 1e38:  # finite in every dtype
        return value
    return float(evaluate(step, name, k, 1, dtype)[0])
