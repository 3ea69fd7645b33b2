"""How long the runs of a study are: so many iterations, or with delays until one of several ends."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from byzadmm import catalogue
from byzadmm._internal.validation import check_int, check_real
from byzadmm.asynchronous.experiment import UPDATES, extent_of
from byzadmm.delays import Delays
from byzadmm.training.experiment import DEFAULTS, MAX_ITERATIONS

__all__ = ["make_extent", "progress_of"]

_EVALUATIONS = 20  # of a run that ends at a time


def make_extent(
    m: int,
    *,
    delays: Any = None,
    iterations: int | None = None,
    until: float | None = None,
    arrivals: int | None = None,
    eval_every: int | None = None,
    eval_time: float | None = None,
) -> dict[str, Any]:
    """Delays, ends and evaluations of all runs, as arguments of ``simulate``, or of ``asynchronous.simulate``.

    Parameters
    ----------
    m : int
        Number of workers.
    delays, iterations, until, arrivals, eval_every, eval_time
        As in :func:`byzadmm.compare`.

    Examples
    --------
    >>> from byzadmm.study.extent import make_extent
    >>> make_extent(20, iterations=100)
    {'iterations': 100, 'eval_every': 50}
    >>> make_extent(20, delays=2.0, until=100)
    {'delays': 2.0, 'updates': None, 'until': 100.0, 'arrivals': None, 'eval_time': 5.0}
    """
    if iterations is not None:
        check_int(iterations, "iterations", low=0, high=MAX_ITERATIONS)
    if eval_every is not None:
        check_int(eval_every, "eval_every", low=1)
    if delays is None:
        for name, value in (("until", until), ("arrivals", arrivals), ("eval_time", eval_time)):
            if value is not None:
                raise ValueError(f"{name}: needs delays, which say how long workers take; got {value!r} without")
        given = {"iterations": iterations, "eval_every": eval_every}
        return {name: DEFAULTS[name] if value is None else value for name, value in given.items()}
    made = catalogue.make_delays(delays) if isinstance(delays, str) else delays
    Delays(made, m, 0)  # an error about them now, not in every run
    if arrivals is not None:
        check_int(arrivals, "arrivals", low=0, high=MAX_ITERATIONS)
    if until is not None:
        until = check_real(until, "until", low=0.0, strict=True)
    if eval_time is not None:
        eval_time = check_real(eval_time, "eval_time", low=0.0, strict=True)
    elif until is not None and eval_every is None:
        eval_time = until / _EVALUATIONS
    if iterations is None and until is None and arrivals is None:
        iterations = UPDATES
    found = {"delays": made, "updates": iterations, "until": until, "arrivals": arrivals}
    if eval_time is not None:
        return found | {"eval_time": eval_time}
    return found | {"eval_every": DEFAULTS["eval_every"] if eval_every is None else eval_every}


def progress_of(arguments: Mapping[str, Any]) -> tuple[int, str]:
    """What the progress of a run with these arguments counts up to, and what it counts.

    Examples
    --------
    >>> from byzadmm.study.extent import progress_of
    >>> progress_of({"iterations": 500}), progress_of({"delays": 1.0, "updates": None, "until": 20.0})
    ((500, 'iterations'), (100, '% of the simulated time'))
    """
    if "delays" not in arguments:
        return int(arguments.get("iterations", DEFAULTS["iterations"])), "iterations"
    return extent_of(arguments.get("updates"), arguments.get("arrivals"))
