"""How long a worker takes for a job: computing a message and sending it, in seconds of simulated time.

A delay is any function ``f(worker, job, rng) -> seconds``; the classes here are such functions. ``rng`` is a generator
of its own for every job of every worker, so that nothing depends on the order in which jobs are looked at; it must not
be kept. Infinity means that the message never arrives. What else a delay may have:

``for_workers(m)``
    The delay for ``m`` workers, or a ValueError; called once, before a run.
``timed = True``
    It is called as ``f(worker, job, rng, time)`` with the time at which the job is handed out.
"""

from __future__ import annotations

import math
import numbers
import os
import re
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Any, ClassVar

import numpy as np

from byzadmm import _core
from byzadmm._internal.arrays import as_float
from byzadmm._internal.npz import read_npz, write_npz
from byzadmm._internal.validation import check_int, check_real

__all__ = [
    "REGISTRY",
    "Constant",
    "Delay",
    "Delays",
    "Exponential",
    "LogNormal",
    "Outage",
    "Pareto",
    "PerWorker",
    "Replay",
    "Stragglers",
    "Uniform",
    "register",
]

#: ``f(worker, job, rng) -> seconds > 0``.
Delay = Callable[..., float]

#: Name -> class: every delay that a person can type.
REGISTRY: dict[str, type[Any]] = {}

_DELAY = _core.PURPOSES.index("delay")
_LARGEST = 709.0  # its exponential is a number


def register(kind: type[Any]) -> type[Any]:
    """Add a class to :data:`REGISTRY`, from which its name and the tests that every delay must pass follow.

    Examples
    --------
    >>> from byzadmm import delays
    >>> sorted(delays.REGISTRY)[:3]
    ['constant', 'exponential', 'log-normal']
    """
    REGISTRY[re.sub(r"(?<=[a-z])(?=[A-Z])", "-", kind.__name__).lower()] = kind
    return kind


@register
@dataclass(frozen=True)
class Constant:
    """The same time for every job. With equal workers, everything happens in rounds.

    Examples
    --------
    >>> from byzadmm import delays
    >>> delays.Constant(2.0)(0, 0, None)
    2.0
    """

    seconds: float = 1.0

    def __post_init__(self) -> None:
        check_real(self.seconds, "seconds", low=0.0, strict=True)

    def __call__(self, worker: int, job: int, rng: Any) -> float:
        return self.seconds


@register
@dataclass(frozen=True)
class Uniform:
    """Uniform between two times.

    Examples
    --------
    >>> import numpy as np
    >>> from byzadmm import delays
    >>> 0.5 <= delays.Uniform(0.5, 1.5)(0, 0, np.random.default_rng(0)) <= 1.5
    True
    """

    low: float = 0.5
    high: float = 1.5

    def __post_init__(self) -> None:
        check_real(self.low, "low", low=0.0, strict=True)
        check_real(self.high, "high", low=self.low)

    def __call__(self, worker: int, job: int, rng: Any) -> float:
        return self.low + (self.high - self.low) * float(rng.random())


@register
@dataclass(frozen=True)
class Exponential:
    """Exponential with this mean: arrivals of a worker are a Poisson process.

    Examples
    --------
    >>> import numpy as np
    >>> from byzadmm import delays
    >>> delays.Exponential(2.0)(0, 0, np.random.default_rng(0)) > 0
    True
    """

    mean: float = 1.0

    def __post_init__(self) -> None:
        check_real(self.mean, "mean", low=0.0, strict=True)

    def __call__(self, worker: int, job: int, rng: Any) -> float:
        return -self.mean * math.log1p(-_open(rng))


@register
@dataclass(frozen=True)
class LogNormal:
    """Log-normal: half of the jobs take longer than ``median``, and ``sigma`` is the spread of the logarithm.

    Examples
    --------
    >>> import numpy as np
    >>> from byzadmm import delays
    >>> delays.LogNormal(2.0, sigma=0.0)(0, 0, np.random.default_rng(0))
    2.0
    """

    median: float = 1.0
    sigma: float = 0.5

    def __post_init__(self) -> None:
        check_real(self.median, "median", low=0.0, strict=True)
        check_real(self.sigma, "sigma", low=0.0, high=50.0)

    def __call__(self, worker: int, job: int, rng: Any) -> float:
        return self.median * math.exp(self.sigma * float(rng.standard_normal()))


@register
@dataclass(frozen=True)
class Pareto:
    """Pareto: ``P(delay > t) = (scale / t)^shape`` for ``t >= scale``. Up to shape 2 its variance is infinite.

    Examples
    --------
    >>> import numpy as np
    >>> from byzadmm import delays
    >>> delays.Pareto(1.5)(0, 0, np.random.default_rng(0)) >= 1.0
    True
    """

    shape: float = 1.5
    scale: float = 1.0

    def __post_init__(self) -> None:
        check_real(self.shape, "shape", low=0.01)
        check_real(self.scale, "scale", low=0.0, strict=True)

    def __call__(self, worker: int, job: int, rng: Any) -> float:
        exponent = -math.log1p(-_open(rng)) / self.shape
        return self.scale * math.exp(exponent) if exponent < _LARGEST else math.inf


class _Wrapper:
    """A delay made of another one, ``base``."""

    base: Any
    timed: ClassVar[bool] = True

    def for_workers(self, m: int) -> Any:
        return replace(self, base=_for_workers(self.base, m))  # type: ignore[type-var]

    def _of_base(self, worker: int, job: int, rng: Any, time: float) -> float:
        return _called(self.base, worker, job, rng, time)


@register
@dataclass(frozen=True)
class Stragglers(_Wrapper):
    """Some workers take ``factor`` times as long as the others.

    Parameters
    ----------
    base : delay
        Of the others, by default one second.
    share : float in (0, 1]
        Share of the workers that are slow, rounded to whole workers, at least one: the first ones.
    factor : float
    workers : int or list of int, optional
        Exactly these are slow, whatever ``share`` is.

    Examples
    --------
    >>> from byzadmm import delays
    >>> slow = delays.Stragglers(share=0.2, factor=10).for_workers(10)
    >>> [slow(worker, 0, None, 0.0) for worker in (0, 1, 2)]
    [10.0, 10.0, 1.0]
    """

    base: Any = Constant()
    share: float = 0.2
    factor: float = 10.0
    workers: Any = None

    def __post_init__(self) -> None:
        object.__setattr__(self, "base", _delay(self.base, "base"))
        check_real(self.share, "share", low=0.0, high=1.0, strict=True)
        check_real(self.factor, "factor", low=0.0, strict=True)
        if self.workers is not None:
            named = self.workers if isinstance(self.workers, Iterable) else (self.workers,)
            object.__setattr__(self, "workers", tuple(check_int(worker, "workers", low=0) for worker in named))

    def for_workers(self, m: int) -> Stragglers:
        slow = range(max(1, round(self.share * m))) if self.workers is None else self.workers
        held = tuple(check_int(worker, "workers", low=0, high=m - 1) for worker in slow)
        return replace(self, base=_for_workers(self.base, m), workers=held)

    def __call__(self, worker: int, job: int, rng: Any, time: float) -> float:
        if self.workers is None:
            raise ValueError("workers: a share needs their number: call for_workers(m) first")
        taken = self._of_base(worker, job, rng, time)
        return taken * self.factor if worker in self.workers else taken


@register
@dataclass(frozen=True)
class Outage(_Wrapper):
    """One worker does nothing between two times: its jobs stand still and go on afterwards.

    Parameters
    ----------
    base : delay
        By default one second.
    worker : int
    start, end : float
        ``end`` may be infinite: the worker crashes, and what it was computing never arrives.

    Examples
    --------
    >>> from byzadmm import delays
    >>> down = delays.Outage(2.0, worker=3, start=5.0, end=9.0)
    >>> [down(3, 0, None, time) for time in (2.0, 4.0, 6.0)], down(1, 0, None, 4.0)
    ([2.0, 6.0, 5.0], 2.0)
    """

    base: Any = Constant()
    worker: int = 0
    start: float = 0.0
    end: float = math.inf

    def __post_init__(self) -> None:
        object.__setattr__(self, "base", _delay(self.base, "base"))
        check_int(self.worker, "worker", low=0)
        check_real(self.start, "start", low=0.0)
        if self.end != math.inf:
            check_real(self.end, "end", low=self.start)

    def for_workers(self, m: int) -> Outage:
        check_int(self.worker, "worker", low=0, high=m - 1)
        return replace(self, base=_for_workers(self.base, m))

    def __call__(self, worker: int, job: int, rng: Any, time: float) -> float:
        taken = self._of_base(worker, job, rng, time)
        if worker != self.worker or time >= self.end or time + taken <= self.start:
            return taken
        return taken + self.end - max(time, self.start)


@dataclass(frozen=True)
class PerWorker:
    """A delay for each worker: numbers, or delays.

    Examples
    --------
    >>> from byzadmm import delays
    >>> delays.PerWorker([1.0, 0.01]).for_workers(2)(1, 0, None, 0.0)
    0.01
    """

    delays: Sequence[Any]

    timed: ClassVar[bool] = True

    def __post_init__(self) -> None:
        if not isinstance(self.delays, Iterable):
            raise TypeError(f"delays: expected a list of numbers or delays, got {type(self.delays).__name__}")
        object.__setattr__(self, "delays", tuple(_delay(one, f"delays[{i}]") for i, one in enumerate(self.delays)))

    def for_workers(self, m: int) -> PerWorker:
        if len(self.delays) != m:
            raise ValueError(f"delays: expected one for each of {m} workers, got {len(self.delays)}")
        return PerWorker([_for_workers(one, m) for one in self.delays])

    def __call__(self, worker: int, job: int, rng: Any, time: float) -> float:
        return _called(self.delays[worker], worker, job, rng, time)


@dataclass(frozen=True)
class Replay:
    """Recorded times, row i those of worker i's jobs, over again from the first once they are used up.

    Parameters
    ----------
    times : (m, n) array
        Positive; infinite where no message arrived.

    Examples
    --------
    >>> from byzadmm import delays
    >>> recorded = delays.Replay([[1.0, 2.0], [3.0, 3.5]])
    >>> [recorded(0, job, None) for job in range(3)]
    [1.0, 2.0, 1.0]
    """

    times: Any

    def __post_init__(self) -> None:
        times = as_float(self.times, "times", np.dtype(np.float64)).copy()
        if times.ndim != 2 or not times.size:
            raise ValueError(f"times: expected a row per worker, (m, n), got shape {times.shape}")
        if not np.all(times > 0):
            raise ValueError("times: expected positive numbers, or infinity where no message arrived")
        times.flags.writeable = False
        object.__setattr__(self, "times", times)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Replay) and np.array_equal(self.times, other.times)

    def __hash__(self) -> int:
        return hash(self.times.tobytes())

    def for_workers(self, m: int) -> Replay:
        if len(self.times) != m:
            raise ValueError(f"times: expected a row for each of {m} workers, got {len(self.times)}")
        return self

    def __call__(self, worker: int, job: int, rng: Any) -> float:
        return float(self.times[worker, job % self.times.shape[1]])

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the times to one ``.npz`` file, whole or not at all."""
        write_npz(path, {"times": self.times}, {"byzadmm": "delays"})

    @classmethod
    def load(cls, path: str | os.PathLike[str]) -> Replay:
        """Read what :meth:`save` wrote, or ``byzadmm mpi run --trace``."""
        arrays, about = read_npz(path)
        if about.get("byzadmm") != "delays" or "times" not in arrays:
            raise ValueError(f"{os.fspath(path)}: not a record of delays")
        return cls(arrays["times"])


class Delays:
    """The delays of a run: what a user's function returns, checked, with a generator for every job.

    Parameters
    ----------
    given : delay, or a number of seconds
    m : int
        Number of workers.
    seed : int

    Examples
    --------
    >>> from byzadmm import delays
    >>> drawn = delays.Delays(delays.Exponential(), 3, seed=0)
    >>> drawn(2, 7, 0.0) == delays.Delays(delays.Exponential(), 3, seed=0)(2, 7, 5.0)
    True
    """

    def __init__(self, given: Any, m: int, seed: int) -> None:
        self._delay = _for_workers(_delay(given, "delays"), m)
        self._timed = getattr(self._delay, "timed", False)
        bits = np.random.Philox(key=seed, counter=[0, _DELAY, 0, 0])
        self._rng, self._bits = np.random.Generator(bits), bits
        # The state as plain numbers: setting it takes a quarter of the time.
        state: Any = bits.state
        self._counter: list[int] = state["state"]["counter"].tolist()
        self._state: Any = state | {"state": {"counter": self._counter, "key": state["state"]["key"].tolist()}}
        self._state["buffer"] = state["buffer"].tolist()

    def __call__(self, worker: int, job: int, time: float) -> float:
        """Seconds of a worker's job number ``job``, handed out at ``time``."""
        # One generator set to the stream of the job: making another takes ten times as long.
        self._counter[2], self._counter[3] = worker, job
        self._bits.state = self._state
        delay, rng = self._delay, self._rng
        taken: Any = delay(worker, job, rng, time) if self._timed else delay(worker, job, rng)
        if type(taken) is float and taken > 0:
            return taken
        what = f"delays: expected a positive number of seconds for job {job} of worker {worker}"
        if isinstance(taken, (bool, np.bool_)) or not isinstance(taken, numbers.Real):
            raise TypeError(f"{what}, got {type(taken).__name__}")
        try:
            seconds = float(taken)
        except OverflowError:  # an int beyond the largest float
            seconds = math.inf if abs(taken) == taken else -math.inf
        if not seconds > 0:
            raise ValueError(f"{what}, got {taken!r}")
        return seconds


def _delay(given: Any, name: str) -> Any:
    if isinstance(given, type):
        raise TypeError(f"{name}: expected a delay such as {given.__name__}(...), got the class")
    if callable(given):
        return given
    if isinstance(given, (int, float, np.number)) and not isinstance(given, bool):
        return Constant(check_real(given, name, low=0.0, strict=True))
    raise TypeError(f"{name}: expected a delay of byzadmm.delays, a function or a number, got {type(given).__name__}")


def _for_workers(delay: Any, m: int) -> Any:
    return delay.for_workers(m) if hasattr(delay, "for_workers") else delay


def _called(delay: Any, worker: int, job: int, rng: Any, time: float) -> float:
    made: float = delay(worker, job, rng, time) if getattr(delay, "timed", False) else delay(worker, job, rng)
    return made


def _open(rng: Any) -> float:
    """Uniform in (0, 1)."""
    drawn = float(rng.random())
    return drawn if drawn > 0 else 2.0**-54

