"""Twin of ``simulation.hpp``: section 2 of the paper line by line, all workers at once, in NumPy alone.

Each algorithm is a generator that yields its state after every iteration, so the caller decides what to keep and when
to stop. The arithmetic is that of the arrays' dtype, in place where that is natural: the baseline of the benchmarks.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

import numpy as np
import numpy.typing as npt

from . import coordinatewise
from ._arrays import Array
from .attacks import Attack
from .geometric import geometric_median
from .gradients import Gradients
from .sampling import Drawn

__all__ = ["State", "train_admm", "train_rsa", "train_sgd"]

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
        Iteration at which the master eliminated a worker, or -1.
    """

    def __init__(self, x0: Array, x: Array) -> None:
        self.x0, self.x, self.sent = x0.copy(), x.copy(), np.zeros_like(x)
        self.eliminated: npt.NDArray[np.int64] = np.full(len(x), -1, np.int64)

    def screen(self, k: int, bound: float) -> npt.NDArray[np.bool_]:
        """Eliminate every worker whose message is not finite or exceeds ``bound``; returns which workers are left."""
        fine = (np.abs(self.sent) <= bound).all(axis=1) & np.isfinite(self.sent).all(axis=1)
        self.eliminated[~fine & (self.eliminated < 0)] = k
        heard: npt.NDArray[np.bool_] = self.eliminated < 0
        return heard

    def forge(self, attack: Attack, rows: Array, k: int, forgers: Sequence[int], here: Array) -> Array:
        """Forged messages of the workers ``forgers``, which all take part, as all workers ``here`` do."""
        if len(here) == len(rows):
            return attack(rows, self.x0, k, forgers)
        return attack(rows[here], self.x0, k, np.searchsorted(here, forgers).tolist())


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
    drawn: Drawn | None = None,
) -> Iterator[State]:
    """Stochastic ADMM under attack, as an endless generator.

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
        Numbers of the Byzantine workers.
    sends_dual : bool
        See ``attack``.
    first_k : int
        Number of the first iteration.
    drawn : callable, optional
        ``k -> (n,)``: the workers that take part in round k. The master counts the last dual of the others again, as
        this round's and the last one's; the others do not move.

    Yields
    ------
    State
        Its ``sent`` holds the duals the master received.

    Examples
    --------
    >>> from byzadmm.reference import quadratic_gradients
    >>> run = train_admm(quadratic_gradients(np.ones((2, 1)), np.ones((2, 1))), np.zeros(1), np.zeros((2, 1)), lam=0.5,
    ...                  beta=1.0, rho=0.0, master_step=lambda k: 0.2, worker_step=lambda k: 0.2)
    >>> [next(run).x0.round(3).tolist() for _ in range(200)][-1]
    [1.0]

    References
    ----------
    Lin, Li, Ling: ``eqx0-update-1``, ``eqxi-update``, ``eq11``, and ``eq11c`` for the Byzantine workers.
    """
    forgers = list(byzantine) if attack is not None else []
    s = State(x0, x)
    before = np.zeros_like(x)
    # The duals that the Byzantine workers would have sent: the master never receives them.
    own, own_before, forged = (np.zeros_like(x[forgers]) for _ in range(3))
    heard = s.eliminated < 0
    here, last = np.arange(len(x)), np.zeros_like(x)  # last: what every worker sent before that, on its own account
    k = first_k
    with np.errstate(invalid="ignore", over="ignore"):
        while True:
            pull = 2 * s.sent - before
            s.x0 -= master_step(k) * (rho * s.x0 - (pull if heard.all() else pull[heard]).sum(axis=0))
            if drawn is not None:
                here, stays = drawn(k), s.x.copy()
                pull = 2 * s.sent - last
            pull[forgers] = 2 * own - own_before
            pull += gradients(s.x, k)
            pull *= worker_step(k)
            s.x -= pull
            now = s.x - s.x0
            active = [row for row, worker in enumerate(forgers) if worker in here]
            if attack is not None and active:
                attackers = [forgers[row] for row in active]
                own_before[active], own[active] = own[active], np.clip(
                    own[active] + 0.5 * beta * now[attackers], -lam, lam
                )
                forged[active] = s.forge(attack, s.x, k + 1, attackers, here)
                now[attackers] = forged[active] - s.x0
            now *= 0.5 * beta
            now += s.sent
            np.clip(now, -lam, lam, out=now)
            if sends_dual:
                now[forgers] = forged
            if drawn is not None:
                last[here] = s.sent[here]
                away = np.delete(np.arange(len(x)), here)
                s.x[away], now[away] = stays[away], s.sent[away]
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
    drawn: Drawn | None = None,
) -> Iterator[State]:
    """RSA under attack, as an endless generator.

    ``x0 += -a_0 ( rho x0 - lam sum_j sgn(u_j - x0) )``, ``x_i += -a_i ( g_i + lam sgn(x_i - x0) )``, both from the old
    ``x0`` and ``x_i``.

    Parameters
    ----------
    gradients, x0, x, lam, rho, master_step, worker_step, attack, byzantine, first_k
        As in :func:`train_admm`; the attack replaces the models that are sent.
    drawn : callable, optional
        ``k -> (n,)``: the workers that take part in round k; the others do not count and do not move.

    Yields
    ------
    State
        Its ``sent`` holds the models the master received.

    Examples
    --------
    >>> from byzadmm.reference import quadratic_gradients
    >>> run = train_rsa(quadratic_gradients(np.ones((2, 1)), np.ones((2, 1))), np.zeros(1), np.zeros((2, 1)), lam=0.5,
    ...                 rho=0.0, master_step=lambda k: 1 / k, worker_step=lambda k: 1 / k)
    >>> bool(abs([next(run).x0[0] for _ in range(500)][-1] - 1.0) < 0.1)
    True

    References
    ----------
    Lin, Li, Ling: ``eq:rsa-update``.
    """
    forgers = list(byzantine) if attack is not None else []
    s = State(x0, x)
    k = first_k
    with np.errstate(invalid="ignore", over="ignore"):
        while True:
            here = np.arange(len(x)) if drawn is None else drawn(k)
            if drawn is None:
                np.copyto(s.sent, s.x)
            else:
                s.sent[here] = s.x[here]
            attackers = [worker for worker in forgers if worker in here]
            if attack is not None and attackers:
                s.sent[attackers] = s.forge(attack, s.x, k, attackers, here)
            heard = s.screen(k, np.inf) & np.isin(np.arange(len(x)), here)
            votes = np.sign(s.sent - s.x0)
            follow = s.x0 - master_step(k) * (rho * s.x0 - lam * (votes if heard.all() else votes[heard]).sum(axis=0))
            votes[forgers] = np.sign(s.x[forgers] - s.x0)
            votes *= lam
            votes += gradients(s.x, k)
            votes *= worker_step(k)
            if drawn is None:
                s.x -= votes
            else:
                s.x[here] -= votes[here]
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
    drawn: Drawn | None = None,
) -> Iterator[State]:
    """SGD with a rule under attack, as an endless generator; Ideal SGD uses the messages of the regular workers only.

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
        A rule of this package by name, or ``(messages, f) -> (d,)``.
    f : int
        Declared number of Byzantine workers; an eliminated worker counts towards it.
    ideal : bool
        The Byzantine workers take no part.
    momentum : float
        Of the workers; 0 sends the gradients themselves.
    drawn : callable, optional
        ``k -> (n,)``: the workers that take part in round k; the others do not count and keep their momentum.

    Yields
    ------
    State
        Its ``x`` holds the honest messages, ``sent`` those the master received.

    Examples
    --------
    >>> from byzadmm.reference import quadratic_gradients
    >>> run = train_sgd(quadratic_gradients(np.ones((2, 1)), np.ones((2, 1))), np.zeros(1), 2, rho=0.0,
    ...                 step=lambda k: 0.5)
    >>> [next(run).x0.tolist() for _ in range(2)]
    [[0.5], [0.75]]

    References
    ----------
    Lin, Li, Ling: section 5, the algorithms compared. Karimireddy, He, Jaggi, "Learning from history", 2021.
    """
    forgers = list(byzantine) if attack is not None and not ideal else []
    s = State(x0, np.zeros((m, len(x0)), x0.dtype))
    excluded = list(byzantine) if ideal else []
    k = first_k
    with np.errstate(invalid="ignore", over="ignore"):
        while True:
            # Without momentum, 0 times what a diverged worker had before must not enter.
            made = momentum * s.x + (1 - momentum) * gradients(s.x0, k) if momentum else gradients(s.x0, k)
            here = np.arange(m) if drawn is None else drawn(k)
            present = np.isin(np.arange(m), np.setdiff1d(here, excluded))
            s.x = made if drawn is None else np.where(present[:, None], made, s.x)
            s.sent = s.x
            attackers = [worker for worker in forgers if present[worker]]
            if attack is not None and attackers:
                s.sent = s.x.copy()
                s.sent[attackers] = s.forge(attack, s.x, k, attackers, here)
            heard = s.screen(k, np.inf) & present
            messages = s.sent if heard.all() else s.sent[heard]
            if len(messages):
                direction = _combine(rule, messages, f - int((s.eliminated[here] >= 0).sum()))
            else:
                direction = np.zeros_like(x0)
            s.x0 -= step(k) * (direction + rho * s.x0)
            yield s
            k += 1


def _combine(rule: str | Rule, messages: Array, f: int) -> Array:
    if callable(rule):
        return rule(messages, max(f, 0))
    if rule == "trimmed_mean":
        return coordinatewise.trimmed_mean(messages, f=min(max(f, 0), (len(messages) - 1) // 2))
    if rule == "median":
        return coordinatewise.median(messages)
    return coordinatewise.mean(messages) if rule == "mean" else geometric_median(messages)
