"""Asynchronous SGD: every message is a step, shorter for older ones if wanted."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from byzadmm import _core, steps
from byzadmm._internal.validation import check_choice, check_real
from byzadmm.algorithms.base import State, preset
from byzadmm.asynchronous.base import Arrival, SendsGradients

if TYPE_CHECKING:
    from byzadmm.datasets import Dataset
    from byzadmm.training.experiment import Experiment

__all__ = ["ASGD"]

Dampening = str | Callable[[int], float] | None

_ALPHA = 0.2  # of exp(-alpha tau)

_KINDS: dict[str, Callable[[int], float]] = {
    "inverse": lambda tau: 1 / (1 + tau),
    "exponential": lambda tau: math.exp(-_ALPHA * tau),
}


@dataclass(frozen=True)
class ASGD(SendsGradients):
    """Asynchronous SGD: a step with every gradient that arrives. Not robust: the baseline of every comparison.

    ``x0 <- x0 - a L(tau) (g + rho x0)``, ``tau`` the staleness of ``g``.

    Parameters
    ----------
    step : step size
        Of ``byzadmm.steps``, by the number of the update: with m workers there are m of them in the time of one round.
    dampening : None, "inverse", "exponential" or callable
        ``L``: 1, ``1 / (1 + tau)``, ``exp(-0.2 tau)``, or your own function ``tau -> L``.
    momentum : float in [0, 1)
        Workers send ``m_i <- momentum m_i + (1 - momentum) g_i`` in place of ``g_i``.

    Examples
    --------
    >>> from byzadmm import steps
    >>> from byzadmm.asynchronous import ASGD
    >>> ASGD(step=steps.power(0.1), dampening="inverse").factor(3)
    0.25
    """

    step: steps.Step
    dampening: Dampening = None
    momentum: float = 0.0

    def __post_init__(self) -> None:
        steps.check_step(self.step, "step")
        self._side  # noqa: B018 - checks the momentum
        if not callable(self.dampening) and self.dampening is not None:
            check_choice(self.dampening, "dampening", _KINDS)

    @classmethod
    def for_dataset(cls, data: Dataset, **changes: Any) -> ASGD:
        """The step for regression on ``data``, as in :meth:`byzadmm.ADMM.for_dataset`."""
        return cls(**({"step": preset(data).async_step} | changes))

    def factor(self, tau: int) -> float:
        """``L(tau)``."""
        if self.dampening is None:
            return 1.0
        made = self.dampening(tau) if callable(self.dampening) else _KINDS[self.dampening](tau)
        return check_real(made, f"dampening: at staleness {tau}", low=0.0)

    def master_state(self, run: Experiment) -> State:
        return {"direction": np.zeros(run.d, run.dtype), "factor": np.zeros(())}

    def receive(self, run: Experiment, state: State, arrival: Arrival) -> bool:
        state["direction"][:] = arrival.message
        state["factor"][...] = self.factor(arrival.staleness)
        return True

    def move(self, run: Experiment, state: State, t: int) -> None:
        alpha = steps.at(self.step, "step", run.first_k + t, run.dtype) * float(state["factor"])
        _core.sgd_step(state["x0"], state["direction"], state["x0"], alpha, run.rho, run.threads)
