"""Byzantine-robust stochastic ADMM, the paper's algorithm: settings, worker, master, native loop."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from byzadmm import _core, steps
from byzadmm._internal.arrays import Array
from byzadmm._internal.validation import check_real
from byzadmm.algorithms.base import Algorithm, Heard, State, preset

if TYPE_CHECKING:
    from byzadmm.datasets import Dataset
    from byzadmm.training.experiment import Experiment
    from byzadmm.training.workers import Group

__all__ = ["ADMM"]

# What the paper prints for MNIST with pixels 0..255 (fig1a).
_PRINTED_MASTER, _PRINTED_WORKER = steps.inv_sqrt(10, 10), steps.inv_sqrt(0.5, 10)


@dataclass(frozen=True)
class ADMM(Algorithm):
    """Byzantine-robust stochastic ADMM (``eqxi-update``, ``eq11``, ``eqx0-update-1``).

    The defaults are what the paper prints for MNIST with pixels 0..255 under the Gaussian attack (fig1a), and suit
    hardly any other data: :meth:`for_dataset` has settings for yours.

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
    master_step: steps.Step = _PRINTED_MASTER
    worker_step: steps.Step = _PRINTED_WORKER

    message: ClassVar[str] = "dual"
    master_first: ClassVar[bool] = True
    missing: ClassVar[str] = "last"
    echoes: ClassVar[tuple[str, ...]] = ("heard", "heard_prev")

    def __post_init__(self) -> None:
        check_real(self.lam, "lam", low=0.0, strict=True)
        check_real(self.beta, "beta", low=0.0, strict=True)
        steps.check_step(self.master_step, "master_step")
        steps.check_step(self.worker_step, "worker_step")

    @classmethod
    def for_dataset(cls, data: Dataset, **changes: Any) -> ADMM:
        """Settings for regression on ``data``: the catalogue's, or derived from the scale of its gradients.

        Parameters
        ----------
        data : Dataset
            See :func:`byzadmm.catalogue.preset_for`.
        **changes
            Settings to use in place of those.

        Examples
        --------
        >>> from byzadmm import ADMM, datasets
        >>> ADMM.for_dataset(datasets.load("digits"), beta=1.0)
        ADMM(lam=0.01, beta=1.0, master_step=InvSqrt(c0=10.0, c1=0.3), worker_step=InvSqrt(c0=0.5, c1=0.3))
        """
        return replace(preset(data).admm, **changes)

    def check_dtype(self, dtype: np.dtype[Any]) -> None:
        check_real(self.lam, "lam", low=0.0, strict=True, dtype=dtype)
        check_real(self.beta, "beta", low=0.0, strict=True, dtype=dtype)

    def bound(self) -> float:
        return self.lam

    def worker_state(self, group: Group) -> State:
        return {"x": group.models(), "eta": group.zeros(), "eta_prev": group.zeros()}

    def answer(self, group: Group, state: State, x0: Array, k: int) -> Array:
        alpha = steps.at(self.worker_step, "worker_step", k, group.dtype)
        x, eta, eta_prev = state["x"], state["eta"], state["eta_prev"]
        messages = group.gradients(x, k)  # which become the duals
        _core.admm_answer(x, messages, eta, eta_prev, x0, alpha, self.beta, self.lam, group.threads)
        return messages

    def shown(self, state: State, messages: Array, k: int) -> tuple[Array, int]:
        return state["x"], k + 1  # an attacker chooses the model from which its dual is formed

    def forger_state(self, group: Group, q: int) -> State:
        return {name: np.zeros((q, group.dim), group.dtype) for name in ("sent", "sent_prev")}

    def sent(self, group: Group, state: State, forged: Array, x0: Array, *, direct: bool) -> Array:
        """``eq11c``: the dual that the forged model leads to, within the bound like any other."""
        now, before = state["sent"], state["sent_prev"]
        before[:] = now
        if direct:
            now[:] = forged
        else:
            _core.admm_dual_step(before, forged, x0, now, self.beta, self.lam, group.threads)
        return now

    def master_state(self, run: Experiment) -> State:
        return {"heard_prev": np.zeros((run.m, run.d), run.dtype)}

    def update(self, run: Experiment, state: State, heard: Heard, k: int) -> None:
        alpha = steps.at(self.master_step, "master_step", k, run.dtype)
        x0, before = state["x0"], state["heard_prev"]
        if len(heard.workers) < run.m:
            before = np.ascontiguousarray(before[heard.workers])
        _core.admm_master_step(x0, heard.rows, before, x0, alpha, run.rho, run.threads)
        state["heard_prev"] = state["heard"]

    def fused(self, run: Experiment) -> Callable[[State, int, int], None] | None:
        loss = run.native_loss
        if loss is None or run.native_attack is None:
            return None

        def advance(state: State, first: int, count: int) -> None:
            _core.run_admm(
                loss,
                state,
                run.roles(state),
                lam=self.lam,
                beta=self.beta,
                rho=run.rho,
                master_steps=steps.evaluate(self.master_step, "master_step", first, count, run.dtype),
                worker_steps=steps.evaluate(self.worker_step, "worker_step", first, count, run.dtype),
                first=first,
            )

        return advance

    def influence(self, rows: Array, x0: Array) -> Array:
        """The dual of one round from zero: one that has grown over rounds is known to its worker only."""
        with np.errstate(over="ignore"):
            return np.asarray(np.clip(self.beta / 2 * (rows - x0), -self.lam, self.lam), rows.dtype)
