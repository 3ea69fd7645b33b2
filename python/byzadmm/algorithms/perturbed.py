"""Byzantine perturbed gradient descent: full local gradients, a rule, and perturbations to leave saddle points."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from byzadmm import _core, steps
from byzadmm._internal.arrays import Array
from byzadmm._internal.validation import check_int, check_real
from byzadmm.algorithms.base import Heard, State
from byzadmm.algorithms.joining import ByRule, joined

if TYPE_CHECKING:
    from byzadmm.training.experiment import Experiment
    from byzadmm.training.workers import Group

__all__ = ["PerturbedGD"]

_PERTURBATION = _core.PURPOSES.index("perturbation")
_WORDS = 2**53

#: Where the master is: it descends, tries to escape, or has ended.
DESCENT, ESCAPE, END = range(3)


@dataclass(frozen=True)
class PerturbedGD(ByRule):
    """Gradient descent with a rule, which tests every point with a small gradient for ways down around it.

    With ``g(x) = rule(full local gradients at x) + rho x``: while ``||g(x0)|| > eps``, ``x0 <- x0 - a g(x0)``. Else up
    to ``rounds`` trials: ``y`` is drawn uniformly from the ball of ``radius`` about ``x0`` and descends,
    ``y <- y - a g(y)``, at most ``length`` times; as soon as it is ``escape`` away from where it was drawn, ``x0 <- y``
    and the descent goes on. If no trial gets that far, ``x0`` stays where it is for the rest of the run.

    An iteration of the run is one exchange of gradients, at ``x0`` or at ``y``. Evaluations see ``x0``, which does not
    move during trials; workers and attacks see the point at which the gradients are wanted. A trial that returns to the
    minimum around which it was drawn may count as an escape if ``radius > escape``: the run need not come to rest.

    For losses that are not convex, where a saddle point, or one that attackers feign, is no place to stop. A convex
    loss gains nothing over SGD.

    Parameters
    ----------
    rule : as in :class:`SGD`
        It has no memory: the center of ``centered_clip``, by default, is that of its first round.
    step : step size
    eps : float >= 0
        Larger than the error of the rule's result, or the descent does not end.
    radius, escape : float > 0
    rounds, length : int >= 1
        Trials, and steps in each.
    f : int
        Declared number of Byzantine workers, for every rule named that takes it.

    Examples
    --------
    >>> from byzadmm import PerturbedGD, losses, simulate, steps
    >>> pgd = PerturbedGD("median", steps.constant(0.5), eps=1e-3, radius=0.1, escape=0.2, rounds=2, length=4)
    >>> run = simulate(None, None, loss=losses.Quadratic([1.0] * 3, [[2.0]] * 3), algorithm=pgd, rho=0.0, iterations=30)
    >>> round(float(run.x0[0]), 2)  # ten steps of descent, two trials of four, and rest
    2.0

    References
    ----------
    Yin, Chen, Ramchandran, Bartlett, "Defending against saddle point attack in Byzantine-robust distributed learning",
    ICML 2019.
    """

    rule: str | Callable[..., Any] | Sequence[Any]
    step: steps.Step
    eps: float
    radius: float
    escape: float
    rounds: int = 5
    length: int = 50
    f: int = 0

    message: ClassVar[str] = "gradient"

    def __post_init__(self) -> None:
        steps.check_step(self.step, "step")
        self.check_rule()
        check_real(self.eps, "eps", low=0.0)
        check_real(self.radius, "radius", low=0.0, strict=True)
        check_real(self.escape, "escape", low=0.0, strict=True)
        check_int(self.rounds, "rounds", low=1)
        check_int(self.length, "length", low=1)

    @property
    def needs(self) -> tuple[str, ...]:
        return ("full_gradient",)

    def check_dtype(self, dtype: np.dtype[Any]) -> None:
        check_real(self.radius, "radius", low=0.0, strict=True, dtype=dtype)

    def answer(self, group: Group, state: State, x0: Array, k: int) -> Array:
        return group.full_gradients(x0)

    def master_state(self, run: Experiment) -> State:
        # trial: y; drawn: where it began; trials: phase, number of the trial, steps in it
        return {
            "trial": np.zeros(run.d, run.dtype),
            "drawn": np.zeros(run.d, run.dtype),
            "trials": np.zeros(3, np.int64),
        }

    def point(self, state: State) -> Array:
        return state["trial"] if state["trials"][0] == ESCAPE else state["x0"]

    def update(self, run: Experiment, state: State, heard: Heard, k: int) -> None:
        phase = int(state["trials"][0])
        made = None if phase == END else joined(self.combination(), run, state, heard, k)
        if made is None:
            return
        at, alpha = self.point(state), steps.at(self.step, "step", k, run.dtype)
        if phase == DESCENT:
            with np.errstate(over="ignore", invalid="ignore"):
                slope = _norm(made.astype(np.float64) + run.rho * at.astype(np.float64))
            if slope <= self.eps:
                self._try(run, state, 1, k)
                return
        _core.sgd_step(at, made, at, alpha, run.rho, run.threads)
        if phase == ESCAPE:
            self._judge(run, state, k)

    def _judge(self, run: Experiment, state: State, k: int) -> None:
        """After a step of a trial: it has escaped, goes on, or gives way to the next trial or to rest."""
        _, trial, taken = state["trials"].tolist()
        with np.errstate(over="ignore", invalid="ignore"):
            way = _norm(state["trial"].astype(np.float64) - state["drawn"].astype(np.float64))
        if self.escape <= way < np.inf:
            state["x0"][:] = state["trial"]
            state["trials"][:] = DESCENT, 0, 0
        elif taken + 1 < self.length and np.isfinite(state["trial"]).all():  # workers cannot answer others
            state["trials"][2] += 1
        elif trial < self.rounds:
            self._try(run, state, trial + 1, k)
        else:
            state["trials"][:] = END, trial, taken + 1

    def _try(self, run: Experiment, state: State, trial: int, k: int) -> None:
        """Begin a trial: uniform in the ball, by the stream of round ``k``."""
        normal, word = np.empty(run.d), np.empty(1, np.int64)
        _core.philox_normal(normal, 1.0, run.seed, (_PERTURBATION, 0, k))
        _core.philox_integers(word, _WORDS, run.seed, (_PERTURBATION, 1, k))
        share = float((int(word[0]) + 0.5) / _WORDS) ** (1 / run.d)
        state["drawn"][:] = state["x0"].astype(np.float64) + (self.radius * share / _norm(normal)) * normal
        state["trial"][:] = state["drawn"]
        state["trials"][:] = ESCAPE, trial, 0


def _norm(v: Array) -> float:
    return float(np.sqrt(np.einsum("i,i->", v, v)))  # not by BLAS, whose threads change the bits
