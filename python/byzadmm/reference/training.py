"""Twin of ``simulation.hpp``: section 2 of the paper line by line, all workers at once, nothing but NumPy.

Each algorithm is a generator that yields its state after every iteration, so the caller decides what to keep and when
to stop. The arithmetic is that of the arrays' dtype, in place where that is natural: the baseline of the benchmarks.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

import numpy as np
import numpy.typing as npt

from . import rules
from ._arrays import Array
from .philox import philox_integers, philox_normal
from .softmax import softmax_gradient

__all__ = [
    "State",
    "alie",
    "dual_oscillation",
    "duplicate",
    "gaussian",
    "inner_product",
    "large_value",
    "min_max",
    "quadratic_gradients",
    "saga_gradients",
    "same_value",
    "sign_flip",
    "small_value",
    "softmax_gradients",
    "train_admm",
    "train_rsa",
    "train_sgd",
]

# First word of every stream, as in attacks.hpp.
_BATCH, _ATTACK, _NOISE = 0, 1, 3

#: (models (m, d) or (d,), k) -> stochastic gradients (m, d)
Gradients = Callable[[Array, int], Array]
#: (honest messages (m, d), x0, k, byzantine) -> what the Byzantine workers send, (q, d)
Attack = Callable[[Array, Array, int, Sequence[int]], Array]
#: (messages (n, d), f) -> (d,)
Rule = Callable[[Array, int], Array]
Step = Callable[[int], float]


class State:
    """What a run holds after an iteration; the arrays change in place as it goes on.

    Attributes
    ----------
    x0 : (d,)
        The master's model.
    x : (m, d)
        The workers' honest models; their gradients in SGD.
    sent : (m, d)
        What every worker sent last.
    eliminated : (m,) int64
        Iteration at which the master threw a worker out, or -1.
    """

    def __init__(self, x0: Array, x: Array) -> None:
        self.x0, self.x, self.sent = x0.copy(), x.copy(), np.zeros_like(x)
        self.eliminated: npt.NDArray[np.int64] = np.full(len(x), -1, np.int64)

    def screen(self, k: int, bound: float) -> npt.NDArray[np.bool_]:
        """Throw out whoever sent something not finite or beyond ``bound``; returns who is still heard."""
        fine = (np.abs(self.sent) <= bound).all(axis=1) & np.isfinite(self.sent).all(axis=1)
        self.eliminated[~fine & (self.eliminated < 0)] = k
        heard: npt.NDArray[np.bool_] = self.eliminated < 0
        return heard


# --- gradients -------------------------------------------------------------------------------------------------------


def softmax_gradients(
    X: Array,
    y: Array,
    parts: Sequence[Array],
    *,
    n_classes: int,
    batch_size: int = 32,
    scale: float = 1.0,
    seed: int = 0,
    poisoned: Sequence[int] = (),
    draw: Callable[[int], Array] | None = None,
) -> Gradients:
    """Mini-batch gradients of softmax regression, one batch per worker drawn with replacement.

    ``g_i = F'(x_i, xi_i^k)`` with ``xi_i^k = part_i[ philox_integers(high=|part_i|, stream=(0, i, k)) ]``.

    Parameters
    ----------
    X, y : (N, D) and (N,)
        Training samples and labels.
    parts : list of m index arrays
        The samples of each worker.
    n_classes, batch_size, scale, seed
        As in ``simulate``.
    poisoned : list of int
        Workers that see label ``K - 1 - y``.
    draw : callable, optional
        ``k -> (m, batch_size)`` row numbers in place of the streams above: other draws, at a batched generator's speed.

    Returns
    -------
    callable
        ``(models, k) -> (m, d)``.

    Examples
    --------
    >>> g = softmax_gradients(np.array([[2.0]]), np.array([1]), [np.array([0])], n_classes=2, batch_size=1)
    >>> g(np.zeros((1, 4)), 1)
    array([[ 1. ,  0.5, -1. , -0.5]])

    References
    ----------
    Lin, Li, Ling: ``F'(x_i, xi_i)`` in ``eqxi-update``.
    """
    m = len(parts)
    liars = np.array(sorted(poisoned), np.int64)
    honest = np.setdiff1d(np.arange(m), liars)
    flipped = n_classes - 1 - y

    def streams(k: int) -> Array:
        rows = [
            part[philox_integers(batch_size, high=len(part), seed=seed, stream=(_BATCH, worker, k))]
            for worker, part in enumerate(parts)
        ]
        return np.stack(rows)

    def gradients(models: Array, k: int) -> Array:
        W = np.broadcast_to(models, (m, models.shape[-1])).reshape(m, n_classes, -1)
        idx = streams(k) if draw is None else draw(k)
        if not len(liars):
            return softmax_gradient(W, X, y, idx, scale=scale).reshape(m, -1)
        g = np.empty_like(W)
        for group, labels in ((honest, y), (liars, flipped)):
            g[group] = softmax_gradient(W[group], X, labels, idx[group], scale=scale)
        return g.reshape(m, -1)

    return gradients


def saga_gradients(
    X: Array,
    y: Array,
    parts: Sequence[Array],
    *,
    n_classes: int,
    batch_size: int = 32,
    scale: float = 1.0,
    seed: int = 0,
    poisoned: Sequence[int] = (),
) -> Gradients:
    """Gradients of softmax regression with their variance reduced by a table of old ones, whole gradients per sample.

    ``v_i = mean_b ( F'(x, xi_b) - T_i[xi_b] ) + mean_j T_i[j]``, then ``T_i[xi_b] <- F'(x, xi_b)``. A sample drawn
    twice counts twice in the first mean, against the same old entry. The table begins with the gradients at the first
    ``x``.

    Parameters
    ----------
    X, y, parts, n_classes, batch_size, scale, seed, poisoned
        As in :func:`softmax_gradients`, and the same draws.

    Returns
    -------
    callable
        ``(model (d,), k) -> (m, d)``; it remembers, so its calls are to be in order.

    Examples
    --------
    >>> g = saga_gradients(np.array([[2.0]]), np.array([1]), [np.array([0])], n_classes=2, batch_size=1)
    >>> g(np.zeros(4), 1)
    array([[ 1. ,  0.5, -1. , -0.5]])

    References
    ----------
    Wu, Ling, Chen, Giannakis, "Federated variance-reduced stochastic gradient descent with robustness to Byzantine
    attacks", 2020, Algorithm 1.
    """
    tables: list[Array] = []

    def each(model: Array, worker: int, samples: Array) -> Array:
        """One gradient per sample, (len(samples), d)."""
        labels = n_classes - 1 - y if worker in poisoned else y
        W = np.broadcast_to(model.reshape(n_classes, -1), (len(samples), n_classes, model.size // n_classes))
        return softmax_gradient(W, X, labels, samples[:, None], scale=scale).reshape(len(samples), -1)

    def gradients(models: Array, k: int) -> Array:
        if not tables:
            tables.extend(each(models, worker, part) for worker, part in enumerate(parts))
        out = []
        for worker, (part, table) in enumerate(zip(parts, tables, strict=True)):
            drawn = philox_integers(batch_size, high=len(part), seed=seed, stream=(_BATCH, worker, k))
            new = each(models, worker, part[drawn])
            out.append((new - table[drawn]).mean(axis=0) + table.mean(axis=0))
            table[drawn] = new
        return np.stack(out)

    return gradients


def quadratic_gradients(a: Array, b: Array, *, noise: float = 0.0, seed: int = 0) -> Gradients:
    """Gradients of separable quadratics.

    ``g_i = a_i (x - b_i) + noise * z`` with ``z = philox_normal(stream=(3, i, k))``.

    Parameters
    ----------
    a, b : (m, d)
        Curvatures and centres.
    noise : float
        Deviation of the noise in every element.
    seed : int
        Of the noise.

    Returns
    -------
    callable
        ``(models, k) -> (m, d)``.

    Examples
    --------
    >>> quadratic_gradients(np.array([[0.5]]), np.array([[1.0]]))(np.zeros((1, 1)), 1)
    array([[-0.5]])

    References
    ----------
    Lin, Li, Ling: Example ``ex`` has ``F_i = (x-1)^2 / 4``.
    """

    def gradients(models: Array, k: int) -> Array:
        g: Array = a * (models - b)
        if noise:
            for worker, row in enumerate(g):
                row += noise * philox_normal(len(row), seed=seed, stream=(_NOISE, worker, k), dtype=g.dtype)
        return g

    return gradients


# --- attacks ---------------------------------------------------------------------------------------------------------


def gaussian(std: float = 100.0, *, seed: int = 0) -> Attack:
    """``N(0, std^2)`` per element from stream ``(1, worker, k)``."""

    def attack(messages: Array, x0: Array, k: int, byzantine: Sequence[int]) -> Array:
        rows = [philox_normal(len(x0), seed=seed, stream=(_ATTACK, j, k), dtype=x0.dtype) for j in byzantine]
        return std * np.stack(rows)

    return attack


def sign_flip(scale: float = -3.0) -> Attack:
    """``scale * own message``."""
    return lambda messages, x0, k, byzantine: scale * messages[list(byzantine)]


def duplicate(worker: int = 0) -> Attack:
    """The message of ``worker``."""
    return lambda messages, x0, k, byzantine: _all(messages[worker], byzantine)


def small_value(eps: float = 0.5) -> Attack:
    """``x0 - eps / max(k (k+1), 1)``, Example ``ex``."""
    return lambda messages, x0, k, byzantine: _all(x0 - eps / max(k * (k + 1), 1), byzantine)


def large_value(lam: float, beta: float) -> Attack:
    """``x0 - (4 lam / beta) (-1)^k``, Example ``ex``."""
    return lambda messages, x0, k, byzantine: _all(x0 - 4.0 * lam / beta * (-1.0) ** k, byzantine)


def dual_oscillation(lam: float) -> Attack:
    """``lam (-1)^k``, section 4.2; pass ``sends_dual=True`` to :func:`train_admm`."""
    return lambda messages, x0, k, byzantine: _all(np.full_like(x0, lam * (-1.0) ** k), byzantine)


def same_value(v: float) -> Attack:
    """``v`` in every element; 0 and NaN are values too."""
    return lambda messages, x0, k, byzantine: _all(np.full_like(x0, v), byzantine)


def alie(z: float) -> Attack:
    """``mean - z std`` of the regular messages."""

    def attack(messages: Array, x0: Array, k: int, byzantine: Sequence[int]) -> Array:
        regular = np.delete(messages, list(byzantine), axis=0)
        return _all(regular.mean(axis=0) - z * regular.std(axis=0), byzantine)

    return attack


def inner_product(eps: float = 1.0) -> Attack:
    """``-eps * mean`` of the regular messages."""
    return lambda messages, x0, k, byzantine: _all(
        -eps * np.delete(messages, list(byzantine), axis=0).mean(axis=0), byzantine
    )


def min_max(direction: str = "std", factor: float = 1.0) -> Attack:
    """``mean + factor gamma p``, as far from regular messages as two of them are apart; ``gamma`` by bisection."""

    def attack(messages: Array, x0: Array, k: int, byzantine: Sequence[int]) -> Array:
        regular = np.delete(messages, list(byzantine), axis=0)
        mean = regular.mean(axis=0)
        p = -{"std": regular.std(axis=0), "unit": mean, "sign": np.sign(mean)}[direction]
        widest = max(np.linalg.norm(x - y) for x in regular for y in regular)

        def fits(gamma: float) -> bool:
            return bool(max(np.linalg.norm(mean + gamma * p - x) for x in regular) <= widest)

        low, high = 0.0, 1.0
        while p.any() and fits(high):
            low, high = high, 2 * high
        for _ in range(100):
            middle = (low + high) / 2
            low, high = (middle, high) if fits(middle) else (low, middle)
        return _all(mean + factor * low * p, byzantine)

    return attack


def _all(row: Array, byzantine: Sequence[int]) -> Array:
    return np.repeat(row[None], len(byzantine), axis=0)


# --- algorithms ------------------------------------------------------------------------------------------------------


def train_admm(
    gradients: Gradients,
    x0: Array,
    x: Array,
    *,
    lam: float,
    beta: float,
    rho: float,
    master_step: Step,
    worker_step: Step,
    attack: Attack | None = None,
    byzantine: Sequence[int] = (),
    sends_dual: bool = False,
    first_k: int = 1,
) -> Iterator[State]:
    """Stochastic ADMM under attack, without end.

    ``x0 += -a_0 ( rho x0 - sum_j (2 eta_j - eta_j_prev) )``, ``x_i += -a_i ( g_i + 2 eta_i - eta_i_prev )``,
    ``eta_i <- proj_[-lam,lam]( eta_i + beta/2 (x_i - x0) )``.

    Parameters
    ----------
    gradients : callable
        ``(models (m, d), k) -> (m, d)``.
    x0, x : (d,) and (m, d)
        Where master and workers start; their dtype is that of the run.
    lam, beta, rho : float
        As in ``ADMM`` and ``simulate``.
    master_step, worker_step : callable
        ``k -> float``.
    attack : callable, optional
        Chooses the ``u_j`` of the Byzantine workers, or with ``sends_dual`` their duals.
    byzantine : list of int
        Who they are.
    sends_dual : bool
        See ``attack``.
    first_k : int
        Number of the first iteration.

    Yields
    ------
    State
        Its ``sent`` holds the duals the master received.

    Examples
    --------
    >>> run = train_admm(quadratic_gradients(np.ones((2, 1)), np.ones((2, 1))), np.zeros(1), np.zeros((2, 1)), lam=0.5,
    ...                  beta=1.0, rho=0.0, master_step=lambda k: 0.2, worker_step=lambda k: 0.2)
    >>> [next(run).x0.round(3).tolist() for _ in range(200)][-1]
    [1.0]

    References
    ----------
    Lin, Li, Ling: ``eqx0-update-1``, ``eqxi-update``, ``eq11``, and ``eq11c`` for the Byzantine workers.
    """
    liars = list(byzantine) if attack is not None else []
    s = State(x0, x)
    before = np.zeros_like(x)
    # What the Byzantine workers would have sent: they keep it to themselves.
    own, own_before, lies = (np.zeros_like(x[liars]) for _ in range(3))
    heard = s.eliminated < 0
    k = first_k
    with np.errstate(invalid="ignore", over="ignore"):
        while True:
            pull = 2 * s.sent - before
            s.x0 -= master_step(k) * (rho * s.x0 - (pull if heard.all() else pull[heard]).sum(axis=0))
            pull[liars] = 2 * own - own_before
            pull += gradients(s.x, k)
            pull *= worker_step(k)
            s.x -= pull
            now = s.x - s.x0
            if attack is not None and liars:
                own, own_before = np.clip(own + 0.5 * beta * now[liars], -lam, lam), own
                lies = attack(s.x, s.x0, k + 1, liars)
                now[liars] = lies - s.x0
            now *= 0.5 * beta
            now += s.sent
            np.clip(now, -lam, lam, out=now)
            if sends_dual:
                now[liars] = lies
            before, s.sent = s.sent, now
            heard = s.screen(k, lam)
            yield s
            k += 1


def train_rsa(
    gradients: Gradients,
    x0: Array,
    x: Array,
    *,
    lam: float,
    rho: float,
    master_step: Step,
    worker_step: Step,
    attack: Attack | None = None,
    byzantine: Sequence[int] = (),
    first_k: int = 1,
) -> Iterator[State]:
    """RSA under attack, without end.

    ``x0 += -a_0 ( rho x0 - lam sum_j sgn(u_j - x0) )``, ``x_i += -a_i ( g_i + lam sgn(x_i - x0) )``, both from the old
    ``x0`` and ``x_i``.

    Parameters
    ----------
    gradients, x0, x, lam, rho, master_step, worker_step, attack, byzantine, first_k
        As in :func:`train_admm`; the attack replaces the models that are sent.

    Yields
    ------
    State
        Its ``sent`` holds the models the master received.

    Examples
    --------
    >>> run = train_rsa(quadratic_gradients(np.ones((2, 1)), np.ones((2, 1))), np.zeros(1), np.zeros((2, 1)), lam=0.5,
    ...                 rho=0.0, master_step=lambda k: 1 / k, worker_step=lambda k: 1 / k)
    >>> bool(abs([next(run).x0[0] for _ in range(500)][-1] - 1.0) < 0.1)
    True

    References
    ----------
    Lin, Li, Ling: ``eq:rsa-update``.
    """
    liars = list(byzantine) if attack is not None else []
    s = State(x0, x)
    k = first_k
    with np.errstate(invalid="ignore", over="ignore"):
        while True:
            np.copyto(s.sent, s.x)
            if attack is not None and liars:
                s.sent[liars] = attack(s.x, s.x0, k, liars)
            heard = s.screen(k, np.inf)
            votes = np.sign(s.sent - s.x0)
            follow = s.x0 - master_step(k) * (rho * s.x0 - lam * (votes if heard.all() else votes[heard]).sum(axis=0))
            votes[liars] = np.sign(s.x[liars] - s.x0)
            votes *= lam
            votes += gradients(s.x, k)
            votes *= worker_step(k)
            s.x -= votes
            s.x0 = follow
            yield s
            k += 1


def train_sgd(
    gradients: Gradients,
    x0: Array,
    m: int,
    *,
    rho: float,
    step: Step,
    rule: str | Rule = "mean",
    f: int = 0,
    ideal: bool = False,
    momentum: float = 0.0,
    attack: Attack | None = None,
    byzantine: Sequence[int] = (),
    first_k: int = 1,
) -> Iterator[State]:
    """SGD with a rule under attack, without end; Ideal SGD hears the regular workers only.

    ``x0 += -a ( rule(m_1, ..., m_m) + rho x0 )`` with ``m_i <- momentum m_i + (1 - momentum) g_i``.

    Parameters
    ----------
    gradients, x0, rho, attack, byzantine, first_k
        As in :func:`train_admm`; the gradients are taken at the master's ``x0`` (d,).
    m : int
        Number of workers.
    step : callable
        ``k -> float``.
    rule : {"mean", "median", "trimmed_mean", "geometric_median"} or callable
        Of ``reference.rules``, or ``(messages, f) -> (d,)``.
    f : int
        Declared number of Byzantine workers; a worker thrown out counts towards it.
    ideal : bool
        The Byzantine workers take no part.
    momentum : float
        Of the workers; 0 sends the gradients themselves.

    Yields
    ------
    State
        Its ``x`` holds the honest messages, ``sent`` those the master received.

    Examples
    --------
    >>> run = train_sgd(quadratic_gradients(np.ones((2, 1)), np.ones((2, 1))), np.zeros(1), 2, rho=0.0,
    ...                 step=lambda k: 0.5)
    >>> [next(run).x0.tolist() for _ in range(2)]
    [[0.5], [0.75]]

    References
    ----------
    Lin, Li, Ling: section 5, the algorithms compared. Karimireddy, He, Jaggi, "Learning from history", 2021.
    """
    liars = list(byzantine) if attack is not None and not ideal else []
    s = State(x0, np.zeros((m, len(x0)), x0.dtype))
    present = np.ones(m, np.bool_)
    if ideal:
        present[list(byzantine)] = False
    k = first_k
    with np.errstate(invalid="ignore", over="ignore"):
        while True:
            # Without momentum, 0 times what a diverged worker had before must not enter.
            s.x = momentum * s.x + (1 - momentum) * gradients(s.x0, k) if momentum else gradients(s.x0, k)
            s.sent = s.x
            if attack is not None and liars:
                s.sent = s.x.copy()
                s.sent[liars] = attack(s.x, s.x0, k, liars)
            heard = s.screen(k, np.inf) & present
            messages = s.sent if heard.all() else s.sent[heard]
            if len(messages):
                direction = _combine(rule, messages, f - int((s.eliminated >= 0).sum()))
            else:
                direction = np.zeros_like(x0)
            s.x0 -= step(k) * (direction + rho * s.x0)
            yield s
            k += 1


def _combine(rule: str | Rule, messages: Array, f: int) -> Array:
    if callable(rule):
        return rule(messages, max(f, 0))
    if rule == "trimmed_mean":
        return rules.trimmed_mean(messages, f=min(max(f, 0), (len(messages) - 1) // 2))
    if rule == "median":
        return rules.median(messages)
    return rules.mean(messages) if rule == "mean" else rules.geometric_median(messages)
