"""Byzantine-resilient SVRG: workers send one gradient per round, the master takes the steps on samples of its own."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from byzadmm import _core, aggregators, steps
from byzadmm._internal.arrays import Array
from byzadmm._internal.validation import check_int, check_real
from byzadmm.algorithms.base import Algorithm, Heard, State

if TYPE_CHECKING:
    from byzadmm.training.experiment import Experiment
    from byzadmm.training.workers import Group

__all__ = ["SVRG"]

_SNAPSHOT = _core.PURPOSES.index("snapshot")
_WORDS = 2**53


@dataclass(frozen=True)
class SVRG(Algorithm):
    """Variance-reduced steps of the master on its own samples, corrected by the workers' gradients at a snapshot.

    In every round the workers send batch gradients ``mu_i`` at the snapshot ``w = x0``. The master keeps those near a
    majority, and takes N steps with samples ``xi`` of its own, ``mu`` being the mean of the kept:

    ``x0 <- x0 - a ( F'(x0, xi) - F'(w, xi) + mu + rho x0 )``

    A majority point is a ``mu_i`` with more than half of the n gradients received, its own among them, within ``2T``;
    of several the one with the most, of equals that of the lowest worker. Kept are those within ``4T`` of it, and all
    if there is no such point.

    It needs ``simulate(validation=rows)``. An iteration of the run is one such round.

    Parameters
    ----------
    step : step size, of round k, for all steps of the master in it
    inner : "geometric" or int >= 1
        Number N of the master's steps in a round: geometric with mean ``B / batch`` on 0, 1, 2, ... (``B`` the workers'
        batch size), or fixed.
    batch : int
        Samples of the master in each of its steps.
    threshold : "auto" or float > 0
        ``T``. "auto" takes it from the distances of the round: ``2T`` is the median, over the gradients, of the radius
        around each that has more than half of all in it. The paper has no such choice; it is ours.
    V : float > 0, optional
        In place of ``threshold``: a bound on the deviation of one sample's gradient,
        ``T = V sqrt(2 log(2n / delta) / B)``.
    delta : float in (0, 1)
        Probability of failure, in that formula alone.

    Examples
    --------
    >>> import numpy as np
    >>> from byzadmm import SVRG, steps
    >>> svrg = SVRG(step=steps.constant(0.1), threshold=0.5)
    >>> svrg.kept(np.array([[9.0], [0.0], [0.5], [2.5], [1.0]])).tolist()  # around 0: three within 1; kept within 2
    [False, True, True, False, True]

    References
    ----------
    Khanduri, Bulusu, Sharma, Varshney, "Byzantine resilient non-convex SVRG with distributed batch gradient
    computations", 2019.
    """

    step: steps.Step
    inner: int | str = "geometric"
    batch: int = 1
    threshold: float | str = "auto"
    V: float | None = None
    delta: float = 0.01

    message: ClassVar[str] = "gradient"

    def __post_init__(self) -> None:
        steps.check_step(self.step, "step")
        if isinstance(self.inner, str):
            if self.inner != "geometric":
                raise ValueError(f"inner: expected 'geometric' or an integer, got {self.inner!r}")
        else:
            check_int(self.inner, "inner", low=1)
        check_int(self.batch, "batch", low=1)
        if isinstance(self.threshold, str):
            if self.threshold != "auto":
                raise ValueError(f"threshold: expected 'auto' or a number, got {self.threshold!r}")
        else:
            check_real(self.threshold, "threshold", low=0.0, strict=True)
            if self.V is not None:
                raise ValueError("SVRG: expected either threshold or V, got both")
        if self.V is not None:
            check_real(self.V, "V", low=0.0, strict=True)
        if not 0 < check_real(self.delta, "delta") < 1:
            raise ValueError(f"delta: expected a number in (0, 1), got {self.delta!r}")

    @property
    def needs(self) -> tuple[str, ...]:
        return ("batch_gradient",)

    @property
    def validates(self) -> bool:
        return True

    def answer(self, group: Group, state: State, x0: Array, k: int) -> Array:
        return group.gradients(x0, k)

    def update(self, run: Experiment, state: State, heard: Heard, k: int) -> None:
        assert run.validation is not None
        alpha = steps.at(self.step, "step", k, run.dtype)
        size = _batch_size(run)
        count = self._inner(size, run.seed, k)
        if not len(heard.rows) or not count:
            return
        rows = heard.rows[self.kept(heard.rows, size, threads=run.threads)]
        x0, mu = state["x0"], np.empty(run.d, run.dtype)
        _core.mean(np.ascontiguousarray(rows), mu, None, None, run.threads)
        snapshot, direction = x0.copy(), np.empty(run.d, run.dtype)
        for drawn in run.validation.batch(count * self.batch, k).reshape(count, self.batch):
            with np.errstate(over="ignore", invalid="ignore"):  # the run may diverge: its curves say so
                at, before = (run.validation.gradient(x, drawn) for x in (x0, snapshot))
                direction[:] = at - before + mu
            _core.sgd_step(x0, direction, x0, alpha, run.rho, run.threads)

    def kept(self, messages: Array, batch_size: int = 1, *, threads: int = 0) -> NDArray[np.bool_]:
        """Which of some messages (n, d) the master keeps, for workers' batches of ``batch_size``; True: kept."""
        n, distance = len(messages), _distances(messages, threads)
        radius = np.sort(distance, axis=1)[:, n // 2]  # of the ball around each that has more than half of them
        if self.V is not None:
            near = 2 * self.V * math.sqrt(2 * math.log(2 * n / self.delta) / batch_size)
        elif isinstance(self.threshold, str):
            near = float(np.sort(radius)[(n - 1) // 2])
        else:
            near = 2 * self.threshold
        if not np.any(radius <= near):
            return np.ones(n, np.bool_)
        middle = int(np.argmax(np.sum(distance <= near, axis=1)))
        kept: NDArray[np.bool_] = distance[middle] <= 2 * near
        return kept

    def _inner(self, batch_size: int, seed: int, k: int) -> int:
        """The number of the master's steps in round ``k``."""
        if not isinstance(self.inner, str):
            return self.inner
        drawn = np.empty(1, np.int64)
        _core.philox_integers(drawn, _WORDS, seed, (_SNAPSHOT, 0, k))
        # P(N >= n) = (B / (B + b))^n
        return int(math.log((int(drawn[0]) + 1) / _WORDS) / -math.log1p(self.batch / batch_size))

    def combination(self) -> aggregators.Chain:
        """The mean of the kept; an adaptive attack does not know the batch size, and meets "auto" in place of ``V``."""
        known = self if self.V is None else SVRG(step=self.step)

        def mean_of_kept(rows: Array) -> Array:
            out = np.empty(rows.shape[1], rows.dtype)
            _core.mean(np.ascontiguousarray(rows[known.kept(rows)]), out, None, None, 1)
            return out

        return aggregators.make(mean_of_kept)


def _batch_size(run: Experiment) -> int:
    size: Any = getattr(run.loss, "batch_size", run.batch_size)
    return int(size)


def _distances(rows: Array, threads: int) -> NDArray[np.float64]:
    """Distances (n, n); infinite beyond the range of float64, which no threshold is."""
    squared, exponent, _ = _core.squared_distances(rows, threads)
    if exponent is None:
        return np.sqrt(squared)
    with np.errstate(over="ignore", under="ignore"):
        distances: NDArray[np.float64] = np.ldexp(np.sqrt(np.ldexp(squared, exponent % 2)), exponent // 2)
    return distances
