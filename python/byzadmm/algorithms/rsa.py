"""RSA, the subgradient method on the paper's problem: settings, worker, master, native loop."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
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

__all__ = ["RSA"]


@dataclass(frozen=True)
class RSA(Algorithm):
    """RSA, the subgradient method on the same problem (``eq:rsa-update``).

    Steps have no default: :meth:`for_dataset` has settings for your data. That of ``lam`` is for MNIST with pixels
    0..255.

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
    step: steps.Step | None = None
    master_step: steps.Step = None  # type: ignore[assignment]
    worker_step: steps.Step = None  # type: ignore[assignment]

    message: ClassVar[str] = "primal"

    def __post_init__(self) -> None:
        check_real(self.lam, "lam", low=0.0, strict=True)
        given = (self.step is not None, self.master_step is not None, self.worker_step is not None)
        if given not in ((True, False, False), (False, True, True)):
            raise ValueError(
                "RSA: expected either step, or master_step and worker_step; "
                "RSA.for_dataset(data) has settings for your data"
            )
        if self.step is not None:
            object.__setattr__(self, "master_step", self.step)
            object.__setattr__(self, "worker_step", self.step)
        steps.check_step(self.master_step, "master_step")
        steps.check_step(self.worker_step, "worker_step")

    @classmethod
    def for_dataset(cls, data: Dataset, **changes: Any) -> RSA:
        """Settings for regression on ``data``, as in :meth:`ADMM.for_dataset`.

        Examples
        --------
        >>> from byzadmm import RSA, datasets
        >>> RSA.for_dataset(datasets.load("digits")).step
        Power(c=3.0, p=0.5)
        """
        return preset(data).rsa.changed(**changes)

    def changed(self, **changes: Any) -> RSA:
        """The same with other settings; ``step`` is for the ends that have none of their own among the changes.

        Examples
        --------
        >>> from byzadmm import RSA, steps
        >>> rsa = RSA(lam=0.1, step=steps.power(3.0)).changed(worker_step=steps.constant(1.0))
        >>> rsa.master_step, rsa.worker_step
        (Power(c=3.0, p=0.5), Constant(a=1.0))
        """
        step = changes.pop("step", self.step)
        if step is None or changes.keys() & {"master_step", "worker_step"}:
            held: dict[str, Any] = {"master_step": step or self.master_step, "worker_step": step or self.worker_step}
        else:
            held = {"step": step}
        return RSA(**({"lam": self.lam} | held | changes))

    def check_dtype(self, dtype: np.dtype[Any]) -> None:
        check_real(self.lam, "lam", low=0.0, strict=True, dtype=dtype)

    def worker_state(self, group: Group) -> State:
        return {"x": group.models()}

    def answer(self, group: Group, state: State, x0: Array, k: int) -> Array:
        alpha = steps.at(self.worker_step, "worker_step", k, group.dtype)
        x = state["x"]
        messages: Array = x.copy()  # from before the step
        _core.rsa_worker_step(x, group.gradients(x, k), x0, x, alpha, self.lam, group.threads)
        return messages

    def update(self, run: Experiment, state: State, heard: Heard, k: int) -> None:
        alpha = steps.at(self.master_step, "master_step", k, run.dtype)
        following = np.empty_like(state["x0"])
        _core.rsa_master_step(state["x0"], heard.rows, following, alpha, self.lam, run.rho, run.threads)
        state["x0"][:] = following

    def fused(self, run: Experiment) -> Callable[[State, int, int], None] | None:
        loss = run.native_loss
        if loss is None or run.native_attack is None:
            return None

        def advance(state: State, first: int, count: int) -> None:
            _core.run_rsa(
                loss,
                state,
                run.roles(state),
                lam=self.lam,
                rho=run.rho,
                master_steps=steps.evaluate(self.master_step, "master_step", first, count, run.dtype),
                worker_steps=steps.evaluate(self.worker_step, "worker_step", first, count, run.dtype),
                first=first,
            )

        return advance

    def influence(self, rows: Array, x0: Array) -> Array:
        with np.errstate(over="ignore"):
            return np.asarray(self.lam * np.sign(rows - x0), rows.dtype)
