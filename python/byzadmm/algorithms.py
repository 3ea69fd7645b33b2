"""The algorithms of the paper as settings, checked when built: ADMM, RSA, and SGD with any rule."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, fields
from typing import Any, ClassVar

from byzadmm import aggregate
from byzadmm._validation import check_int, check_real
from byzadmm.steps import Step, check_step, inv_sqrt, power

__all__ = ["ADMM", "RSA", "SGD"]

# What the paper prints for MNIST with pixels 0..255 (fig1a), and the step that suits SGD there.
_PRINTED_MASTER, _PRINTED_WORKER, _PRINTED_SGD = inv_sqrt(10, 10), inv_sqrt(0.5, 10), power(1e-4)

# Order of Rule in cpp/include/byzadmm/simulation.hpp.
_NATIVE_RULES = ("mean", "median", "trimmed_mean", "geometric_median")


class _Described:
    """Settings as a plain dictionary, for a result's config."""

    message: ClassVar[str]

    def describe(self) -> dict[str, Any]:
        settings: dict[str, Any] = {"name": type(self).__name__}
        for item in fields(self):  # type: ignore[arg-type]
            value = getattr(self, item.name)
            plain = value is None or isinstance(value, (bool, int, float, str))
            settings[item.name] = value if plain else repr(value)
        return settings


@dataclass(frozen=True)
class ADMM(_Described):
    """Byzantine-robust stochastic ADMM (``eqxi-update``, ``eq11``, ``eqx0-update-1``).

    Parameters
    ----------
    lam : float > 0
        Weight of the TV norm; bounds every element of a dual.
    beta : float > 0
        Penalty parameter.
    master_step, worker_step : step sizes
        Of ``byzadmm.steps``, or any callable ``k -> float``.

    Examples
    --------
    >>> from byzadmm import ADMM, steps
    >>> ADMM(lam=0.5, beta=0.5, master_step=steps.inv_sqrt(10, 10), worker_step=steps.inv_sqrt(0.5, 10)).message
    'dual'
    """

    lam: float = 0.5
    beta: float = 0.5
    master_step: Step = _PRINTED_MASTER
    worker_step: Step = _PRINTED_WORKER

    message: ClassVar[str] = "dual"

    def __post_init__(self) -> None:
        check_real(self.lam, "lam", low=0.0, strict=True)
        check_real(self.beta, "beta", low=0.0, strict=True)
        check_step(self.master_step, "master_step")
        check_step(self.worker_step, "worker_step")


@dataclass(frozen=True)
class RSA(_Described):
    """RSA, the subgradient method on the same problem (``eq:rsa-update``).

    Parameters
    ----------
    lam : float > 0
    step : step size of master and workers, or
    master_step, worker_step : one each

    Examples
    --------
    >>> from byzadmm import RSA, steps
    >>> RSA(lam=0.07, step=steps.power(1e-3)).worker_step(4)
    0.0005
    """

    lam: float = 0.07
    step: Step | None = None
    master_step: Step = None  # type: ignore[assignment]
    worker_step: Step = None  # type: ignore[assignment]

    message: ClassVar[str] = "primal"

    def __post_init__(self) -> None:
        check_real(self.lam, "lam", low=0.0, strict=True)
        given = (self.step is not None, self.master_step is not None, self.worker_step is not None)
        if given not in ((True, False, False), (False, True, True)):
            raise ValueError("RSA: expected either step, or master_step and worker_step")
        if self.step is not None:
            object.__setattr__(self, "master_step", self.step)
            object.__setattr__(self, "worker_step", self.step)
        check_step(self.master_step, "master_step")
        check_step(self.worker_step, "worker_step")


@dataclass(frozen=True)
class SGD(_Described):
    """Stochastic gradient descent at the master, the workers' gradients combined by a rule.

    ``x0 <- x0 - a (rule(g_1, ..., g_m) + rho x0)``

    Parameters
    ----------
    rule : str or callable
        "mean", "median", "trimmed_mean", "geometric_median", an object of ``byzadmm.aggregators``, or any function
        (n, d) -> (d,).
    step : step size
    f : int
        For "trimmed_mean": declared number of Byzantine workers.
    ideal : bool
        The Byzantine workers take no part: the reference of every comparison.

    Examples
    --------
    >>> from byzadmm import SGD, steps
    >>> SGD(rule="median", step=steps.power(1e-4)).message
    'gradient'
    """

    rule: str | Callable[..., Any] = "mean"
    step: Step = _PRINTED_SGD
    f: int = 0
    ideal: bool = False

    message: ClassVar[str] = "gradient"

    def __post_init__(self) -> None:
        check_step(self.step, "step")
        check_int(self.f, "f", low=0)
        if isinstance(self.rule, str) and self.rule not in _NATIVE_RULES:
            raise ValueError(f"rule: expected one of {', '.join(_NATIVE_RULES)}, or a callable; got {self.rule!r}")
        if not isinstance(self.rule, str) and not callable(self.rule):
            raise TypeError(f"rule: expected a name or a callable, got {type(self.rule).__name__}")

    def native_rule(self, n: int) -> tuple[int, int, float, int] | None:
        """Rule, f, tolerance and iterations for the native loop; None if the rule is a Python callable."""
        if not isinstance(self.rule, str):
            return None
        if self.rule == "trimmed_mean":
            aggregate.check_f("trimmed_mean", self.f, n)
        return _NATIVE_RULES.index(self.rule), self.f, 1e-6, 1000
