"""One-round training: every worker minimizes its own loss, and the master combines the minimizers once."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from byzadmm._internal.arrays import Array, checked_vector
from byzadmm._internal.validation import check_int, check_real
from byzadmm.algorithms.base import Heard, State
from byzadmm.algorithms.joining import ByRule, joined
from byzadmm.algorithms.newton import conjugate_gradients

if TYPE_CHECKING:
    from byzadmm.training.experiment import Experiment
    from byzadmm.training.workers import Group

__all__ = ["OneRound"]

_HALVINGS = 30  # of a step that does not shorten the gradient


@dataclass(frozen=True)
class OneRound(ByRule):
    """The minimizers of the workers' own losses, combined by a rule: one exchange, and nothing is learned after it.

    ``x_i = argmin F_i(x) + rho/2 ||x||^2`` on all samples of worker i, ``x0 = rule(x_1, ..., x_m)``. The minimizers
    come from Newton's method with conjugate gradients. More iterations repeat the exchange with the same result.

    Parameters
    ----------
    rule : as in :class:`SGD`
    f : int
        Declared number of Byzantine workers, for every rule named that takes it.
    newton_steps : int >= 1
        At most so many of them at each worker.
    tol : float >= 0
        A worker ends when its gradient is so much shorter than at the start.

    Examples
    --------
    >>> from byzadmm import losses, simulate
    >>> from byzadmm.algorithms import OneRound
    >>> loss = losses.Quadratic([1.0] * 5, [[1.0], [2.0], [3.0], [4.0], [50.0]])
    >>> simulate(None, None, loss=loss, algorithm=OneRound(), rho=0.0, iterations=1).x0.tolist()
    [3.0]

    References
    ----------
    Yin, Chen, Ramchandran, Bartlett, "Byzantine-robust distributed learning: towards optimal statistical rates", ICML
    2018, section 5.
    """

    rule: str | Callable[..., Any] | Sequence[Any] = "median"
    f: int = 0
    newton_steps: int = 20
    tol: float = 1e-6

    message: ClassVar[str] = "primal"

    def __post_init__(self) -> None:
        self.check_rule()
        check_int(self.newton_steps, "newton_steps", low=1)
        check_real(self.tol, "tol", low=0.0)

    @property
    def needs(self) -> tuple[str, ...]:
        return ("full_gradient", "hessian_product")

    def worker_state(self, group: Group) -> State:
        return {"x": group.models(), "minimized": np.zeros(len(group.workers), np.bool_)}

    def answer(self, group: Group, state: State, x0: Array, k: int) -> Array:
        for row in group.taking_part:
            if not state["minimized"][row]:
                state["x"][row] = self._minimizer(group.run, group.workers[row], state["x"][row])
                state["minimized"][row] = True
        messages: Array = state["x"].copy()
        return messages

    def update(self, run: Experiment, state: State, heard: Heard, k: int) -> None:
        made = joined(self.combination(), run, state, heard, k)
        if made is not None:
            state["x0"][:] = made

    def _minimizer(self, run: Experiment, worker: int, start: Array) -> Array:
        def gradient(at: Array) -> Array:
            made = run.loss.full_gradient(at.astype(run.dtype), worker=worker)
            return checked_vector(made, "loss.full_gradient", run.d, finite=False).astype(np.float64) + run.rho * at

        def product(at: Array) -> Callable[[Array], Array]:
            return lambda v: run.rho * v + checked_vector(
                run.loss.hessian_product(at.astype(run.dtype), v.astype(run.dtype), worker=worker),
                "loss.hessian_product",
                run.d,
                finite=False,
            )

        x = start.astype(np.float64)
        with np.errstate(over="ignore", invalid="ignore"):  # a loss may have no minimum: the message says so
            g = gradient(x)
            enough = self.tol * np.linalg.norm(g)
            for _ in range(self.newton_steps):
                length = np.linalg.norm(g)
                if not length > enough:
                    break
                step = conjugate_gradients(product(x), g, 100, 1e-4)
                for _ in range(_HALVINGS):
                    moved = x - step
                    there = gradient(moved)
                    if np.linalg.norm(there) < length:
                        break
                    step /= 2
                else:
                    break  # as far as rounding allows
                x, g = moved, there
            return x.astype(run.dtype)
