"""The clock of a synchronous algorithm: every round takes as long as the slowest worker that the master waits for.

A model has the time at which the master makes it: after the round's messages, or before them where the master moves
first, as in ADMM.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from byzadmm._internal.arrays import Array
from byzadmm.algorithms.base import State
from byzadmm.asynchronous.experiment import AsyncExperiment, clock_state
from byzadmm.training.run import Advance, Pause, local

__all__ = ["rounds"]

_AT_ONCE = 10_000  # rounds that are planned ahead, at most


def rounds(run: AsyncExperiment) -> tuple[State, Advance]:
    """The first state of a run in rounds, and the function that advances it: the bits of ``simulate``, and a clock."""
    state, advance_models = local(run)
    clock = _Clock(run)

    def advance(state: State, first: int, count: int) -> Pause | None:
        made, limit = 0, run.limit(state)  # of this call: a round may end at an evaluation's time
        while made < count:
            some, pause = clock.plan(state, first + made, count - made, limit)
            if some:
                advance_models(state, first + made, some)
                clock.record(state, first + made, some)
                made += some
            elif pause is not None:
                return Pause(made, pause.over, pause.unexpected)
        return None

    return state | clock_state(run.m), advance


class _Clock:
    """Whom the master waits for before each iteration's model is made, and how long."""

    def __init__(self, run: AsyncExperiment) -> None:
        self.run = run
        self._lag = int(run.algorithm.master_first)  # the model of iteration k is made of the messages of round k - lag
        self._part = np.ones(run.m, np.bool_)
        if run.algorithm.ideal:
            self._part[run.byzantine] = False
        self._planned: tuple[Array, list[_Round]] = np.empty(0), []

    def _wait(self, state: State, k: int, time: float) -> _Round:
        """The round that leads to the model of iteration ``k``, from ``time`` on, as far as eliminations are known."""
        k -= self._lag
        if k < self.run.first_k:
            return _Round(np.empty(0, np.int64), time)
        eliminated = state["eliminated"]
        heard = self._part & ((eliminated < 0) | (eliminated >= k))
        if not self.run.sampling.complete:
            drawn = np.zeros(self.run.m, np.bool_)
            drawn[self.run.sampling.workers(k)] = True
            heard &= drawn
        workers = np.flatnonzero(heard)
        job, delays = k - self.run.first_k, self.run.delays
        return _Round(workers, time + max((delays(i, job, time) for i in workers.tolist()), default=0.0))

    def plan(self, state: State, first: int, count: int, limit: float) -> tuple[int, Pause | None]:
        """How many rounds end before a pause for sure: eliminations that are to come only shorten them."""
        run, arrivals, clock = self.run, int(state["arrivals"]), float(state["clock"])
        found: list[_Round] = []
        self._planned = state["eliminated"].copy(), found
        for k in range(first, first + min(count, _AT_ONCE)):
            if run.arrivals is not None and arrivals >= run.arrivals:
                return len(found), Pause(0, f"{run.arrivals} messages have arrived")
            one = self._wait(state, k, clock)
            if one.end == np.inf:
                why = f"a worker never answers in round {k - self._lag}, and the master waits for it"
                return len(found), Pause(0, why, unexpected=True)
            if np.all(state["eliminated"] >= 0) and run.updates is None:
                return len(found), Pause(0, "every worker is eliminated", unexpected=True)
            if one.end > limit:
                if not found:
                    run.arrive(state, limit)
                return len(found), Pause(0, f"the time {run.until:g} is over" if limit == run.until else "")
            clock, arrivals = one.end, arrivals + len(one.workers)
            found.append(one)
        return len(found), None

    def record(self, state: State, first: int, count: int) -> None:
        """Move the clock over the rounds that were planned and have been made."""
        before, found = self._planned
        eliminated = state["eliminated"]
        known = np.array_equal(eliminated, before)
        for k, planned in zip(range(first, first + count), found, strict=False):
            one = planned if known else self._wait(state, k, float(state["clock"]))
            state["clock"][...] = one.end
            state["accepted"][one.workers] += 1
            state["staleness"][0] += len(one.workers)
            state["arrivals"] += len(one.workers)
        state["now"][...] = state["clock"]
        over = first - self._lag
        new = np.flatnonzero((eliminated >= max(over, 0)) & (eliminated < over + count))
        state["accepted"][new] -= 1  # the message that eliminated its sender
        state["rejected"][new] += 1


class _Round(NamedTuple):
    workers: Array
    end: float
