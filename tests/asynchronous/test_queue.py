"""The event queue against a plain one: lists, a loop over all workers, and the equations as they are printed."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any, NamedTuple

import numpy as np

from byzadmm import _core, asynchronous, delays, steps
from byzadmm.asynchronous import ASGD, AsyncADMM
from support.arrays import same_bits
from support.runs import Array, quadratic

M, D, SEED, FIRST, RHO = 5, 4, 11, 3, 0.02
BYZANTINE = [1, 4]
STEP = steps.inv_sqrt(3, 1)
LOSS = quadratic(M, D)
UPDATES = 60


class Received(NamedTuple):
    worker: int
    staleness: int
    point: Array
    message: Array


def forged(x0: Array, k: int, worker: int) -> Array:
    """What the Byzantine workers send when the model is ``x0`` and update ``k`` is next; one of them breaks down."""
    if worker == 4 and k > 40:
        return np.full(D, np.nan)
    return np.clip(0.1 * x0 + 0.3 * np.sin(k + worker + np.arange(D)), -0.25, 0.25)


def attack(messages: Array, *, byzantine: list[int], x0: Array, k: int, **_: Any) -> Array:
    return np.array([forged(x0, k, worker) for worker in byzantine])


attack.sends = "dual"  # type: ignore[attr-defined]


class Plain:
    """The system: who is due when in a list, and everything that happens at one instant before anything is handed out."""

    bound, waits = np.inf, False

    def __init__(self, delay: Callable[[int, int], float]) -> None:
        self.delay, self.x0, self.t = delay, np.zeros(D), 0
        self.left = set(range(M))
        self.log: list[Received] = []
        self.models: list[Array] = []  # after each message

    def work(self, worker: int, k: int, point: Array) -> Array:
        raise NotImplementedError

    def receive(self, worker: int, staleness: int, message: Array) -> None:
        raise NotImplementedError

    def moves(self) -> bool:
        """Whether the master moves now; it has then moved."""
        raise NotImplementedError

    def play(self, messages: int) -> None:
        due, jobs, versions = [np.inf] * M, [0] * M, [0] * M
        points, sends = [self.x0] * M, [self.x0] * M
        owed, waiting, now = list(range(M)), list[int](), 0.0
        while len(self.log) < messages:
            for worker in sorted(owed):
                points[worker], versions[worker] = self.x0.copy(), self.t
                sends[worker] = self.work(worker, FIRST + jobs[worker], points[worker])
                due[worker] = now + self.delay(worker, jobs[worker])
                jobs[worker] += 1
            owed, now = [], min(due)
            here = [worker for worker in range(M) if due[worker] == now]
            for worker in here:
                if worker in BYZANTINE:
                    sends[worker] = forged(self.x0, FIRST + self.t, worker)
            for worker in here:
                due[worker] = np.inf
                staleness = self.t - versions[worker]
                self.log.append(Received(worker, staleness, points[worker], sends[worker]))
                if np.all(np.abs(sends[worker]) <= self.bound):
                    self.receive(worker, staleness, sends[worker])
                    (waiting if self.waits else owed).append(worker)
                else:
                    self.left.discard(worker)
                if self.moves():
                    owed, waiting = owed + waiting, []
                self.models.append(self.x0.copy())


class PlainASGD(Plain):
    direction: Array | None = None

    def work(self, worker: int, k: int, point: Array) -> Array:
        return np.asarray(LOSS.a[worker] * (point - LOSS.b[worker]))

    def receive(self, worker: int, staleness: int, message: Array) -> None:
        self.alpha, self.direction = STEP(FIRST + self.t) * (1 / (1 + staleness)), message

    def moves(self) -> bool:
        if self.direction is None:
            return False
        self.x0 -= self.alpha * (self.direction + RHO * self.x0)
        self.direction, self.t = None, self.t + 1
        return True


class PlainADMM(Plain):
    bound, beta, waits = 0.25, 0.8, True

    def __init__(self, delay: Callable[[int, int], float], barrier: int, oldest: int | None) -> None:
        super().__init__(delay)
        self.barrier, self.oldest = barrier, oldest
        self.t = 1  # the first update is made of zero duals
        self.x, self.eta, self.before, self.heard, self.heard_prev = np.zeros((5, M, D))
        self.fresh, self.versions = set[int](), [1] * M

    def work(self, worker: int, k: int, point: Array) -> Array:
        self.versions[worker] = self.t
        x, eta, before = self.x[worker], self.eta[worker], self.before[worker]
        x -= STEP(k) * (LOSS.a[worker] * (x - LOSS.b[worker]) + 2 * eta - before)
        before[:] = eta
        eta[:] = np.clip(eta + self.beta / 2 * (x - point), -self.bound, self.bound)
        return eta.copy()

    def receive(self, worker: int, staleness: int, message: Array) -> None:
        self.heard_prev[worker], self.heard[worker] = self.heard[worker], message
        self.fresh.add(worker)

    def moves(self) -> bool:
        missing = self.left - self.fresh
        if len(self.fresh) < min(self.barrier, len(self.left)):
            return False
        if self.oldest is not None and any(self.t - self.versions[j] >= self.oldest for j in missing):
            return False
        for j in missing:
            self.heard_prev[j] = self.heard[j]
        pull = sum((2 * self.heard[j] - self.heard_prev[j] for j in sorted(self.left)), np.zeros(D))
        self.x0 -= STEP(FIRST + self.t) * len(self.fresh) / len(self.left) * (RHO * self.x0 - pull)
        self.fresh, self.t = set(), self.t + 1
        return True


class WatchedASGD(ASGD):
    def receive(self, run: Any, state: Any, arrival: Any) -> bool:
        SEEN.append(Received(arrival.worker, arrival.staleness, arrival.point.copy(), arrival.message.copy()))
        return bool(super().receive(run, state, arrival))


class WatchedADMM(AsyncADMM):
    def receive(self, run: Any, state: Any, arrival: Any) -> bool:
        SEEN.append(Received(arrival.worker, arrival.staleness, arrival.point.copy(), arrival.message.copy()))
        return bool(super().receive(run, state, arrival))


SEEN: list[Received] = []  # what reached the algorithm


def drawn(worker: int, job: int) -> float:
    """The delay of a job, from its own stream of random numbers."""
    rng = np.random.Generator(np.random.Philox(key=SEED, counter=[0, _core.PURPOSES.index("delay"), worker, job]))
    return float(rng.exponential()) * (0.2 if worker == 1 else 1.0)


TIMES = np.random.default_rng(2).integers(1, 4, (M, 50)).astype(float)  # many messages at one instant

DELAYS: dict[str, tuple[Any, Callable[[int, int], float]]] = {
    "random": (lambda worker, job, rng: rng.exponential() * (0.2 if worker == 1 else 1.0), drawn),
    "instants": (delays.Replay(TIMES), lambda worker, job: float(TIMES[worker, job % 50])),
}


def compare(algorithm: Any, oracle: Callable[..., Plain], delay: str, tolerance: float) -> None:
    given, known = DELAYS[delay]
    case = f"{algorithm}, {delay}"
    SEEN.clear()
    run = asynchronous.simulate(
        None, None, loss=LOSS, algorithm=algorithm, delays=given, updates=UPDATES, eval_every=1, attack=attack,
        byzantine=BYZANTINE, rho=RHO, seed=SEED, first_k=FIRST, dtype="float64", record="trajectory",
    )  # fmt: skip
    assert run.arrivals is not None
    assert run.staleness is not None
    assert run.trajectory is not None
    messages = int(run.arrivals[-1])
    plain = oracle(known)
    plain.play(messages)
    wanted = plain.log[:messages]
    assert run.eliminated.keys() == {4}, case
    assert run.staleness.tolist() == np.bincount([one.staleness for one in wanted]).tolist(), case

    def equal(mine: Array, theirs: Array) -> bool:
        return np.allclose(mine, theirs, rtol=0, atol=tolerance) if tolerance else same_bits(mine, theirs)

    whole = [one for one in wanted if np.isfinite(one.message).all()]  # what is broken does not reach the algorithm
    assert [one[:2] for one in SEEN] == [one[:2] for one in whole], case
    for one, other in zip(SEEN, whole, strict=True):
        assert equal(one.point, other.point), case
        assert equal(one.message, other.message), case
    for place, number in enumerate(run.arrivals.tolist()):
        if number:
            assert equal(run.trajectory["x0"][place], plain.models[number - 1]), (case, number)


def test_asynchronous_sgd_against_a_plain_queue() -> None:
    for delay in DELAYS:
        compare(WatchedASGD(STEP, dampening="inverse"), PlainASGD, delay, 0)


def test_asynchronous_admm_against_a_plain_queue() -> None:
    for delay in DELAYS:
        for barrier, oldest in ((1, None), (2, None), (3, 1), (1, 3), (M, None), (2, 0)):
            made = WatchedADMM(0.25, 0.8, STEP, STEP, barrier=barrier, max_delay=oldest)
            compare(made, partial(PlainADMM, barrier=barrier, oldest=oldest), delay, 1e-12)
