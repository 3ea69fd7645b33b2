"""Zeno++: messages are compared with a gradient of the master's own samples."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from byzadmm import _core, steps
from byzadmm._internal.validation import check_int, check_real
from byzadmm.algorithms.base import State, preset
from byzadmm.asynchronous.base import Arrival, SendsGradients

if TYPE_CHECKING:
    from byzadmm.datasets import Dataset
    from byzadmm.training.experiment import Experiment

__all__ = ["ZenoPlusPlus"]


@dataclass(frozen=True)
class ZenoPlusPlus(SendsGradients):
    """Zeno++: a message counts if it points where a gradient of the master's own samples points.

    Every message ``g`` is scaled to the length of ``v``, a gradient of the master's, and is accepted if
    ``a <v, g> - rho ||g||^2 + a eps >= 0``: if ``cos(v, g) >= rho / a - eps / ||v||^2``. Then
    ``x0 <- x0 - a (g + rho0 x0)``, with ``rho0`` the weight of the regularizer. Any number of workers may be Byzantine.
    As steps get shorter ``rho / a`` grows: with ``a < rho`` nothing is accepted any more.

    Needs clean samples, ``simulate(validation=rows)``, of the same distribution as the workers'.

    Parameters
    ----------
    step : step size
    rho : float >= 0
        Weight of the length: the least cosine is ``rho / a``.
    eps : float
        Tolerance: positive values accept messages that point elsewhere.
    renew : int
        ``v`` is computed anew with every so many messages that arrive.
    samples : int
        In a batch of the master's own, drawn for each ``v``.
    momentum : float in [0, 1)
        Workers send ``m_i <- momentum m_i + (1 - momentum) g_i`` in place of ``g_i``.

    Examples
    --------
    >>> from byzadmm import steps
    >>> from byzadmm.asynchronous import ZenoPlusPlus
    >>> ZenoPlusPlus(step=steps.constant(0.1)).validates
    True

    References
    ----------
    Xie, Koyejo, Gupta, "Zeno++: Robust Fully Asynchronous SGD", ICML 2020. The authors' code has the length from before
    the scaling in the term with ``rho``, which makes the test depend on the length of a message.
    """

    step: steps.Step
    rho: float = 0.001
    eps: float = 0.0
    renew: int = 10
    samples: int = 128
    momentum: float = 0.0

    def __post_init__(self) -> None:
        steps.check_step(self.step, "step")
        self._side  # noqa: B018 - checks the momentum
        check_real(self.rho, "rho", low=0.0)
        check_real(self.eps, "eps")
        check_int(self.renew, "renew", low=1)
        check_int(self.samples, "samples", low=1)

    @classmethod
    def for_dataset(cls, data: Dataset, **changes: Any) -> ZenoPlusPlus:
        """Step and ``rho`` for regression on ``data``, as in :meth:`byzadmm.ADMM.for_dataset`.

        The step is constant, as published: one that gets shorter would accept less and less. ``rho`` is a hundredth of
        it, as published.
        """
        step = preset(data).constant_step
        settings: dict[str, Any] = {"step": step, "rho": step(1) / 100}
        return cls(**(settings | changes))

    @property
    def needs(self) -> tuple[str, ...]:
        return ("batch_gradient",)

    @property
    def validates(self) -> bool:
        return True

    def master_state(self, run: Experiment) -> State:
        return {"direction": np.zeros(run.d, run.dtype), "own": np.zeros(run.d), "checked": np.zeros(2, np.int64)}

    def receive(self, run: Experiment, state: State, arrival: Arrival) -> bool:
        checked = state["checked"]  # messages compared, updates made
        if checked[0] % self.renew == 0:
            assert run.validation is not None
            rows = run.validation.batch(self.samples, int(checked[0]) // self.renew)
            state["own"][:] = run.validation.gradient(state["x0"], rows)
        checked[0] += 1
        alpha = steps.at(self.step, "step", run.first_k + int(checked[1]), run.dtype)
        return _core.zeno_direction(arrival.message, state["own"], state["direction"], alpha, self.rho, self.eps)

    def move(self, run: Experiment, state: State, t: int) -> None:
        alpha = steps.at(self.step, "step", run.first_k + t, run.dtype)
        _core.sgd_step(state["x0"], state["direction"], state["x0"], alpha, run.rho, run.threads)
        state["checked"][1] += 1
