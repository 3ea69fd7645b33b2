"""The event queue: who is due when, what is on its way, and what the master makes of each arrival.

All that happens at one instant is one batch. Its forged messages are made first, then the master receives the messages
in the order of the workers' numbers, and only then are new jobs handed out. The honest message of a job is computed
when the job is handed out, so that an attack sees what everybody is about to send; its draws go by the worker and the
number of its job. Nothing depends on the order in which events are looked at.
"""

from __future__ import annotations

import heapq
import math
from collections.abc import Iterable

import numpy as np

from byzadmm import _core
from byzadmm.algorithms.base import State
from byzadmm.asynchronous.base import Arrival, AsyncAlgorithm
from byzadmm.asynchronous.experiment import AsyncExperiment, clock_state
from byzadmm.training.master import message_bound
from byzadmm.training.run import Advance, Pause
from byzadmm.training.workers import Workers, taken

__all__ = ["events"]

#: A run that only updates end is over after so many messages of everybody without one.
_PATIENCE = 1000


def events(run: AsyncExperiment) -> tuple[State, Advance]:
    """The first state of a run, and the function that advances it by updates of the model."""
    queue = _Queue(run)
    return queue.state(), queue.advance


class _Queue:
    """The state of the simulated system, in arrays that a checkpoint holds; while it moves, queues are lists.

    ``due``: when each worker's message arrives, infinite where none is on its way. ``jobs``: jobs handed out to it.
    ``points``, ``versions``: the model it was given last, and how many updates that had. ``pending``: its honest
    message.
    ``outgoing``: what the Byzantine workers of this instant send. ``owed``: who gets a job once this instant is over;
    ``waiting``: who gets one after the next update. ``since``: messages of each worker since the last update.
    """

    def __init__(self, run: AsyncExperiment) -> None:
        algorithm = run.algorithm
        assert isinstance(algorithm, AsyncAlgorithm)
        self.run, self.algorithm = run, algorithm
        m, d = run.m, run.d
        self._bound = message_bound(run)
        self._state: State = {"x0": run.x0_init.copy(), "eliminated": np.full(m, -1, np.int64), "left": np.array(m)}
        own = algorithm.master_state(run)
        self._state |= {
            "due": np.full(m, np.inf),
            "jobs": np.zeros(m, np.int64),
            "versions": np.zeros(m, np.int64),
            "points": np.zeros((m, d), run.dtype),
            "pending": np.zeros((m, run.length), run.dtype),
            "outgoing": np.zeros((len(run.byzantine), run.length), run.dtype),
            "owed": np.ones(m, np.bool_),
            "waiting": np.zeros(m, np.bool_),
            "since": np.zeros(m, np.int64),
            "updates": np.zeros((), np.int64),
        }
        self._state |= clock_state(m)
        self.workers = Workers(run, range(m), lambda: self._state)
        for name in own:
            if name in self._state or name in self.workers.state():
                kind = type(algorithm).__name__
                raise ValueError(f"{kind}.master_state: {name!r} is an entry of the queue or of the workers")
        self._state |= own
        self._slot = {worker: slot for slot, worker in enumerate(run.byzantine)}

    def state(self) -> State:
        """The arrays themselves."""
        return self._state | self.workers.state()

    def advance(self, state: State, first: int, count: int) -> Pause | None:
        """``count`` updates, as far as the run goes; ``first`` says that of the updates before."""
        self._state = {name: taken(state, name, old) for name, old in self._state.items()}
        self.workers.restore(state)
        self._unpack()
        began = first - self.run.first_k
        pause = self._go(began, began + count)
        self._pack()
        state |= self.state()
        return pause

    def _unpack(self) -> None:
        state = self._state
        self._points, self._pending, self._outgoing = (list(state[name]) for name in ("points", "pending", "outgoing"))
        self._due = [(time, worker) for worker, time in enumerate(state["due"].tolist()) if time < np.inf]
        heapq.heapify(self._due)
        self._owed = np.flatnonzero(state["owed"]).tolist()
        self._waiting = np.flatnonzero(state["waiting"]).tolist()
        self._jobs = state["jobs"].tolist()
        self._clock = float(state["clock"])
        self._updates, self._arrivals = int(state["updates"]), int(state["arrivals"])
        self._quiet = int(state["since"].sum())  # messages since the last update

    def _pack(self) -> None:
        state = self._state
        state["due"][:] = np.inf
        for time, worker in self._due:
            state["due"][worker] = time
        for name, workers in (("owed", self._owed), ("waiting", self._waiting)):
            state[name][:] = False
            state[name][workers] = True
        state["jobs"][:] = self._jobs
        state["clock"][...], state["now"][...] = self._clock, max(self._clock, float(state["now"]))
        state["updates"][...], state["arrivals"][...] = self._updates, self._arrivals

    def _go(self, began: int, target: int) -> Pause | None:
        run, first, due = self.run, self.algorithm.master_first, self._due
        limit, most = run.limit(self._state), np.inf if run.arrivals is None else run.arrivals
        endless = run.arrivals is None and run.until is None
        if first and not self._updates:
            self._move()
        while True:
            over = not due or due[0][0] > self._clock  # nobody else is due at this instant
            # A round ends with the workers' step where the master moves first, with the master's otherwise.
            if over and self._owed and (first or self._updates < target):
                self._hand_out()
            if self._updates >= target:
                return None
            if self._arrivals >= most:
                return Pause(self._updates - began, f"{run.arrivals} messages have arrived")
            if endless and self._quiet and self._quiet % _PATIENCE == 0 and self._stands_still():
                why = f"no update in {_PATIENCE} messages of every worker"
                return Pause(self._updates - began, why, unexpected=True)
            if over:
                if not due:
                    return Pause(self._updates - began, self._silence(), unexpected=True)
                if due[0][0] > limit:
                    run.arrive(self._state, limit)
                    return Pause(self._updates - began, f"the time {run.until:g} is over" if limit == run.until else "")
                self._clock = due[0][0]
                if self._slot:
                    self._forge()
            self._receive(heapq.heappop(due)[1])

    def _stands_still(self) -> bool:
        """Whether everybody that still answers has sent many messages since the last update."""
        answering = [worker for _, worker in self._due] + self._owed
        return bool(answering) and bool(np.all(self._state["since"][answering] >= _PATIENCE))

    def _silence(self) -> str:
        """Why no message is on its way."""
        if np.all(self._state["eliminated"] >= 0):
            return "every worker is eliminated"
        short = f", and those of {len(self._waiting)} workers do not suffice for an update" if self._waiting else ""
        return f"no message is on its way{short}"

    def _hand_out(self) -> None:
        """Give the model to all that are owed a job, and compute what they will send."""
        state, x0 = self._state, self._state["x0"]
        for job, workers in self._by_job(sorted(self._owed)):
            messages = self.workers.compute(workers, self.run.first_k + job, x0)
            for worker, message in zip(workers, messages, strict=True):
                np.copyto(self._points[worker], x0)
                np.copyto(self._pending[worker], message)
                state["versions"][worker] = self._updates
                self._jobs[worker] = job + 1
                due = self._clock + self.run.delays(worker, job, self._clock)
                if due < math.inf:
                    if due == self._clock:  # at the next instant at the earliest, so that time moves on
                        due = math.nextafter(due, math.inf)
                    heapq.heappush(self._due, (due, worker))
        self._owed = []

    def _forge(self) -> None:
        """What the Byzantine workers that are due at this instant send."""
        run, state, due, now = self.run, self._state, self._due, self._clock
        if len(due) > 1 and (due[1][0] == now or due[-1 if len(due) == 2 else 2][0] == now):
            attackers = sorted(worker for time, worker in due if time == now and worker in self._slot)
        else:  # the usual case: neither child of the heap's first is due now, so that it is alone
            attackers = [due[0][1]] if due[0][1] in self._slot else []
        for job, workers in self._by_job(attackers):
            sent = self.workers.forge(workers, state["pending"], state["x0"], self._round(), run.first_k + job - 1)
            for worker, message in zip(workers, sent, strict=True):
                np.copyto(self._outgoing[self._slot[worker]], message)

    def _by_job(self, workers: list[int]) -> Iterable[tuple[int, list[int]]]:
        """The workers by the number of jobs that each was handed out."""
        if len(workers) == 1:
            return [(self._jobs[workers[0]], workers)]
        found: dict[int, list[int]] = {}
        for worker in workers:
            found.setdefault(self._jobs[worker], []).append(worker)
        return list(found.items())

    def _round(self) -> int:
        """The iteration of a synchronous run whose messages arrive now."""
        return self.run.first_k + self._updates - self.algorithm.master_first

    def _receive(self, worker: int) -> None:
        run, state, algorithm = self.run, self._state, self.algorithm
        slot = self._slot.get(worker)
        row = state["pending"][worker : worker + 1] if slot is None else state["outgoing"][slot : slot + 1]
        t, histogram = self._updates, state["staleness"]
        staleness = t - int(state["versions"][worker])
        histogram[min(staleness, len(histogram) - 1)] += 1
        state["since"][worker] += 1
        self._quiet += 1
        accepted = False
        if _core.acceptable(row, self._bound)[0]:
            arrival = Arrival(worker, row[0], state["points"][worker], staleness, self._arrivals)
            accepted = bool(algorithm.receive(run, state, arrival))
            (self._waiting if algorithm.waits else self._owed).append(worker)
        else:
            state["eliminated"][worker] = self._round()
            state["left"] -= 1
        self._arrivals += 1
        state["accepted" if accepted else "rejected"][worker] += 1
        if algorithm.ready(run, state, t, accepted):
            self._move()

    def _move(self) -> None:
        self.algorithm.move(self.run, self._state, self._updates)
        self._updates += 1
        self._state["since"][:] = 0
        self._quiet = 0
        self._owed += self._waiting
        self._waiting = []
