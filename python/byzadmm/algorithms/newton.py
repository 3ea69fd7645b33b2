"""Byzantine-resilient Newton's method: gradients, then Newton directions of the workers, each joined by the master."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from byzadmm import _core, aggregators, steps
from byzadmm._internal.arrays import Array, checked_vector
from byzadmm._internal.description import describe
from byzadmm._internal.lengths import lengths
from byzadmm._internal.validation import check_int, check_real
from byzadmm.algorithms.base import Algorithm, Heard, State
from byzadmm.algorithms.joining import declared, joined, rule_of

if TYPE_CHECKING:
    from byzadmm.training.experiment import Experiment
    from byzadmm.training.workers import Group

__all__ = ["Newton", "conjugate_gradients"]


@dataclass(frozen=True)
class Newton(Algorithm):
    """Newton's method with the workers' own Hessians: two exchanges in a round, each joined by a rule or by comparison.

    1. The workers send full local gradients ``g_i`` at ``x0``; ``G = join(g_1, ..., g_m) + rho x0``.
    2. The workers send ``p_i = (H_i + rho I)^{-1} G``, with the Hessians ``H_i`` of their own samples at ``x0``;
       ``P = join(p_1, ..., p_m)``, and ``x0 <- x0 - a P``.

    With the geometric median this is MNM of the paper. CNM is ``join="comparison"``: the master has samples of its own
    (``simulate(validation=rows)``), from which ``G_s`` and ``P_s`` are made as those of a worker are. It keeps
    ``||g_i - G_s|| <= c ||G_s||``, then ``||p_i - P_s|| <= c ||P_s||``, and takes the mean of the kept and its own: a
    majority may be Byzantine.

    ``p_i`` comes from conjugate gradients on ``loss.hessian_product``: the Hessian is never formed. ``rho`` is that of
    the run, and must be positive for a singular Hessian, as that of softmax regression is. Both messages can be forged:
    an attack is called twice in a round, with an ``algorithm`` whose ``message`` is "gradient", then "direction".

    Parameters
    ----------
    join : as ``rule`` of :class:`SGD`, "comparison", or an object with an attribute ``c``
    step : float > 0 or step size
    f : int
        Declared number of Byzantine workers, for every rule named that takes it.
    c : float > 0, or one for each exchange
        Of "comparison". An object has its own.
    cg_iterations : int >= 1
    cg_tol : float >= 0
        The residual, relative to ``||G||``, at which conjugate gradients end before that.

    Examples
    --------
    >>> from byzadmm import Newton, losses, simulate
    >>> loss = losses.Quadratic([[1.0, 4.0]] * 3, [[2.0, -1.0]] * 3)
    >>> run = simulate(None, None, loss=loss, algorithm=Newton(), rho=0.0, iterations=1, dtype="float64")
    >>> run.x0.round(12).tolist()
    [2.0, -1.0]

    References
    ----------
    Cao, Lai, "Distributed approximate Newton's method robust to Byzantine attackers", IEEE Trans. Signal Processing 68,
    2020.
    """

    join: Any = "geometric_median"
    step: steps.Step | float = 1.0
    f: int = 0
    c: float | tuple[float, float] = 0.75
    cg_iterations: int = 50
    cg_tol: float = 1e-8

    message: ClassVar[str] = "gradient"

    def __post_init__(self) -> None:
        if not callable(self.step):
            check_real(self.step, "step", low=0.0, strict=True)
        else:
            steps.check_step(self.step, "step")
        if isinstance(self.join, list):
            object.__setattr__(self, "join", tuple(self.join))
        if self.compares:
            for radius in self._radii:
                check_real(radius, "c", low=0.0, strict=True)
        else:
            rule_of(self.join, self.f, "join")
        check_int(self.cg_iterations, "cg_iterations", low=1)
        check_real(self.cg_tol, "cg_tol", low=0.0)

    @property
    def compares(self) -> bool:
        """Whether messages are compared with what the master's own samples give."""
        return self.join == "comparison" if isinstance(self.join, str) else hasattr(self.join, "c")

    @property
    def _radii(self) -> tuple[float, float]:
        c = self.c if isinstance(self.join, str) else self.join.c
        pair = tuple(c) if isinstance(c, (tuple, list)) else (c, c)
        if len(pair) != 2:
            raise ValueError(f"c: expected a number, or one for each exchange, got {len(pair)}")
        return pair

    @cached_property
    def _chain(self) -> aggregators.Chain:
        return aggregators.make("mean") if self.compares else rule_of(self.join, self.f, "join")

    def combination(self) -> aggregators.Chain:
        """The rule; the mean for comparisons, whose samples an adaptive attack does not know."""
        return self._chain

    @cached_property
    def second(self) -> Algorithm:
        return _Directions(self)

    @property
    def needs(self) -> tuple[str, ...]:
        own = ("batch_gradient", "batch_hessian_product") if self.compares else ()
        return ("full_gradient", "hessian_product", *own)

    @property
    def validates(self) -> bool:
        return self.compares

    def check(self, n: int, workers: int | None = None) -> None:
        self._chain.check(n, workers)

    def declaring(self, f: int) -> Newton:
        return self if self.compares else replace(self, join=declared(self.join, f), f=self.f or f)

    def answer(self, group: Group, state: State, x0: Array, k: int) -> Array:
        return group.full_gradients(x0)

    def master_state(self, run: Experiment) -> State:
        if run.rho == 0 and getattr(run.loss, "singular", False):
            kind = type(run.loss).__name__
            raise ValueError(f"rho: expected > 0 for Newton with {kind}, whose Hessian is singular; got {run.rho}")
        return {"asked": np.zeros(run.d, run.dtype)}

    def question(self, run: Experiment, state: State, heard: Heard, k: int) -> Array:
        x0, asked = state["x0"], state["asked"]
        own = None
        if self.compares:
            assert run.validation is not None
            own = run.validation.gradient(x0, run.validation.rows)
        with np.errstate(over="ignore", invalid="ignore"):
            asked[:] = self._join(run, state, heard, own, 0, k) + run.dtype.type(run.rho) * x0
        return asked

    def update(self, run: Experiment, state: State, heard: Heard, k: int) -> None:
        x0, own = state["x0"], None
        alpha = steps.at(self.step if callable(self.step) else steps.constant(self.step), "step", k, run.dtype)
        if self.compares:
            samples = run.validation
            assert samples is not None
            own = self.direction(lambda v: samples.hessian_product(x0, v, samples.rows), state["asked"], run.rho)
        _core.sgd_step(x0, self._join(run, state, heard, own, 1, k), x0, alpha, 0.0, run.threads)

    def direction(self, product: Callable[[Array], Array], asked: Array, rho: float) -> Array:
        """``(H + rho I)^{-1}`` times what the master asked, given the products of vectors with ``H``."""

        def regularised(v: Array) -> Array:
            made = product(v.astype(asked.dtype))
            return made + rho * v

        return conjugate_gradients(regularised, asked, self.cg_iterations, self.cg_tol)

    def _join(self, run: Experiment, state: State, heard: Heard, own: Array | None, exchange: int, k: int) -> Array:
        """The messages of an exchange as one vector; zero if they are too few for the rule."""
        if own is None:
            made = joined(self._chain, run, state, heard, k, exchange)
            return np.zeros(run.d, run.dtype) if made is None else made
        rows = np.concatenate([heard.rows, own[None].astype(run.dtype, copy=False)])
        near = lengths(rows[:-1], rows[-1]) <= self._radii[exchange] * lengths(rows[-1:])
        out = np.empty(run.d, run.dtype)
        _core.mean(np.ascontiguousarray(rows[np.append(near, True)]), out, None, None, run.threads)
        return out

    def describe(self) -> dict[str, Any]:
        if isinstance(self.join, aggregators.Chain):
            return super().describe() | {"join": describe(self.join.links)}
        return super().describe()


class _Directions(Algorithm):
    """The second exchange of :class:`Newton`."""

    message = "direction"

    def __init__(self, newton: Newton) -> None:
        self.newton = newton

    def answer(self, group: Group, state: State, x0: Array, k: int) -> Array:
        out, run = group.zeros(), group.run

        def product_of(worker: int) -> Callable[[Array], Array]:
            return lambda v: checked_vector(
                run.loss.hessian_product(x0.copy(), v, worker=worker), "loss.hessian_product", run.d, finite=False
            )

        for row in group.taking_part:
            out[row] = self.newton.direction(product_of(group.workers[row]), state["asked"], run.rho)
        return out

    def combination(self) -> aggregators.Chain:
        return self.newton.combination()


def conjugate_gradients(product: Callable[[Array], Array], b: Array, iterations: int, tol: float) -> Array:
    """Solution ``x`` of ``A x = b`` by conjugate gradients from zero, ``A`` symmetric and known by its products.

    It ends when ``||b - A x|| <= tol ||b||``, after ``iterations``, or where ``A`` is found not to be positive
    definite, with what it has then, at least ``b`` itself. The result is finite: zeros if ``b`` is not finite, or if
    the solution is beyond the range of its dtype. Computed in float64, with ``b`` scaled by a power of two to the size
    of one.

    Parameters
    ----------
    product : callable
        ``v -> A v`` for float64 arrays (d,).
    b : (d,) array
    iterations : int
    tol : float

    Returns
    -------
    (d,) array of the dtype of ``b``

    Examples
    --------
    >>> import numpy as np
    >>> from byzadmm.algorithms.newton import conjugate_gradients
    >>> conjugate_gradients(lambda v: np.array([2.0, 4.0]) * v, np.array([1.0, 1.0]), 10, 1e-12).round(12).tolist()
    [0.5, 0.25]
    """
    largest = float(np.max(np.abs(b), initial=0.0))
    if not 0 < largest < np.inf:
        return np.zeros_like(b)
    exponent = int(np.frexp(largest)[1])
    residual = np.ldexp(b.astype(np.float64), -exponent)
    x, along = np.zeros_like(residual), residual.copy()
    square = _dot(residual, residual)
    enough = tol * tol * square
    with np.errstate(over="ignore", invalid="ignore"):
        for iteration in range(iterations):
            image = product(along)
            curvature = _dot(along, image)
            if not 0 < curvature < np.inf:
                if iteration == 0 and curvature <= 0:
                    x = along
                break
            length = square / curvature
            x = x + length * along
            residual = residual - length * image
            before, square = square, _dot(residual, residual)
            if not enough < square < np.inf:
                break
            along = residual + (square / before) * along
        found: Array = np.ldexp(x, exponent).astype(b.dtype)
    return found if np.isfinite(found).all() else np.zeros_like(b)


def _dot(a: Array, b: Array) -> float:
    return float(np.einsum("i,i->", a, b))  # not by BLAS, whose threads change the bits
