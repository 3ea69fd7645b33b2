"""The record of an asynchronous experiment, and its curves: those of any run, and the clock of the simulated system."""

from __future__ import annotations

import math
from typing import Any, ClassVar

import numpy as np

from byzadmm._internal.arrays import Array
from byzadmm._internal.description import describe
from byzadmm._internal.npz import Found
from byzadmm._internal.validation import check_int, check_real
from byzadmm.algorithms.base import State
from byzadmm.delays import Delays
from byzadmm.results import Result
from byzadmm.training.experiment import MAX_ITERATIONS, Experiment
from byzadmm.training.history import History

__all__ = ["UPDATES", "AsyncExperiment", "clock_state", "extent_of"]

#: Updates of a run that has no other end.
UPDATES = 1000
_ENDLESS = 2**40  # updates of a run that ends otherwise
_STALENESS = 1024  # entries of the histogram


class AsyncExperiment(Experiment):
    """The arguments of :func:`byzadmm.asynchronous.simulate`, checked.

    Attributes
    ----------
    delays : Delays
    updates, arrivals, until : the ends of the run, None or a number each
    eval_time : float or None
        Simulated time between evaluations; None: they go by updates.
    """

    schedules: ClassVar[tuple[str, ...]] = ("rounds", "events")
    _open: ClassVar[tuple[str, ...]] = ("iterations", "updates", "arrivals", "until")

    def __init__(
        self,
        dataset: Any,
        parts: Any,
        *,
        delays: Any,
        updates: int | None = None,
        arrivals: int | None = None,
        until: float | None = None,
        eval_time: float | None = None,
        **settings: Any,
    ) -> None:
        for name, value in (("updates", updates), ("arrivals", arrivals)):
            if value is not None:
                check_int(value, name, low=0, high=MAX_ITERATIONS)
        for name, number in (("until", until), ("eval_time", eval_time)):
            if number is not None:
                check_real(number, name, low=0.0, strict=True)
        if updates is None and arrivals is None and until is None:
            updates = UPDATES
        self.updates, self.arrivals, self.until, self.eval_time = updates, arrivals, until, eval_time
        super().__init__(dataset, parts, iterations=_ENDLESS if updates is None else updates, **settings)
        if self.participation != 1 and self.algorithm.schedule == "events":
            kind = type(self.algorithm).__name__
            raise ValueError(f"participation: expected 1 for {kind}, which has no rounds, got {self.participation}")
        self.given_delays, self.delays = delays, Delays(delays, self.m, self.seed)

    @property
    def unit(self) -> str:
        """What the progress bar counts."""
        return extent_of(self.updates, self.arrivals)[1]

    def progress(self, done: int, state: State) -> tuple[int, int]:
        total, _ = extent_of(self.updates, self.arrivals)
        if self.updates is not None:
            return done, total
        if self.arrivals is not None:
            return int(state["arrivals"]), total
        assert self.until is not None
        return int(total * min(float(state["now"]) / self.until, 1)), total

    def span(self, done: int) -> int:
        return self.iterations - done if self.eval_time is not None else super().span(done)

    def limit(self, state: State) -> float:
        """The time at which a run pauses at the latest, for an evaluation or because it is over."""
        end = math.inf if self.until is None else self.until
        place = self._place(state)
        return end if place >= end or math.isclose(place, end) else place  # not twice where a multiple is the end

    def arrive(self, state: State, time: float) -> None:
        """The run is at its limit."""
        state["now"][...] = time
        state["places"] += time == self._place(state)

    def _place(self, state: State) -> float:
        """The next multiple of ``eval_time``."""
        return math.inf if self.eval_time is None else (int(state["places"]) + 1) * self.eval_time

    def history(self) -> AsyncHistory:
        return AsyncHistory(self)

    def describe(self) -> dict[str, Any]:
        more = {"updates": self.updates, "arrivals": self.arrivals, "until": self.until, "eval_time": self.eval_time}
        return super().describe() | {"iterations": self.updates} | more | {"delays": describe(self.given_delays)}


def extent_of(updates: int | None, arrivals: int | None) -> tuple[int, str]:
    """What the progress of a run with these ends counts up to, and what it counts; with neither, it ends at a time."""
    if updates is not None:
        return updates, "updates"
    return (arrivals, "arrivals") if arrivals is not None else (100, "% of the simulated time")


def clock_state(m: int) -> State:
    """What every asynchronous run keeps about itself, whatever its algorithm.

    "clock" is the time of the last event, "now" the time that the run has reached, which may be later, "places" how
    many multiples of ``eval_time`` it has reached with everything that happened up to there.
    """
    return {
        "clock": np.zeros(()),
        "now": np.zeros(()),
        "places": np.zeros((), np.int64),
        "arrivals": np.zeros((), np.int64),
        "staleness": np.zeros(_STALENESS, np.int64),
        "accepted": np.zeros(m, np.int64),
        "rejected": np.zeros(m, np.int64),
    }


class AsyncHistory(History):
    """The curves of a run with delays: simulated time and arrivals at each evaluation beside the others."""

    run: AsyncExperiment

    def __init__(self, run: AsyncExperiment) -> None:
        super().__init__(run)
        self._places = 0
        self.time: list[float] = []
        self.arrivals: list[int] = []

    def evaluate(self, done: int, state: State) -> dict[str, float]:
        found = super().evaluate(done, state)
        for name in ("time", "arrivals"):
            if name in found:
                raise ValueError(f"loss.evaluate: {name!r} is the clock of the run, not a metric")
        self.time.append(float(state["now"]))
        self.arrivals.append(int(state["arrivals"]))
        return found | {"time": self.time[-1], "arrivals": self.arrivals[-1]}

    def has(self, done: int, state: State) -> bool:
        return super().has(done, state) and (self.run.eval_time is None or self.time[-1] == float(state["now"]))

    def _is_regular(self, t: int) -> bool:
        if self.run.eval_time is None:
            return super()._is_regular(t)
        return t <= self._places or self.iterations[t] == self.run.iterations

    def _series(self) -> list[list[Any]]:
        return [*super()._series(), self.time, self.arrivals]

    def arrays(self) -> dict[str, Array]:
        return super().arrays() | {"time": np.array(self.time), "arrivals": np.array(self.arrivals, np.int64)}

    def layout(self, found: dict[str, Found], state: State) -> dict[str, Found]:
        wanted = super().layout(found, state)
        shape, whole = wanted["iterations"]
        return wanted | {"time": (shape, np.dtype(np.float64)), "arrivals": (shape, whole)}

    def restore(self, arrays: dict[str, Array]) -> None:
        super().restore(arrays)
        self.time, self.arrivals = arrays["time"].tolist(), arrays["arrivals"].tolist()
        self._places = int(arrays["state_places"])

    def result(self, config: dict[str, Any], state: State, seconds: float) -> Result:
        result = super().result(config, state, seconds)
        most = int(np.max(np.flatnonzero(state["staleness"]), initial=0))
        result.events = {"time": np.array(self.time), "arrivals": np.array(self.arrivals, np.int64)}
        result.events |= {"staleness": state["staleness"][: most + 1]}
        named = ("accepted", "rejected", *self.run.algorithm.tallies)
        for name in named:
            result.events[name] = state[name].astype(np.float64 if state[name].dtype.kind == "f" else np.int64)
        return result
