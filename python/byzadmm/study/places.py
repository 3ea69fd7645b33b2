"""Where the evaluations of a run are on the horizontal axis of a picture, and curves of several runs on one grid."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import numpy as np

from byzadmm._internal.arrays import Array
from byzadmm._internal.validation import check_choice
from byzadmm.results import Result
from byzadmm.training.sampling import Sampling

__all__ = ["LABELS", "as_steps", "choose_x", "one_grid", "places_of"]

#: What a horizontal axis may show -> what it is called.
LABELS = {
    "iterations": "iterations",
    "bytes": "bytes sent and received by all workers",
    "seconds": "seconds spent in iterations",
    "time": "simulated time",
    "arrivals": "messages that arrived",
}


def choose_x(given: str | None, results: Iterable[Result]) -> str:
    """``given``, checked; by default simulated time where runs have it, else iterations."""
    clocked = any(result.time is not None for result in results)
    if given is None:
        return "time" if clocked else "iterations"
    check_choice(given, "x", LABELS)
    if given in ("time", "arrivals") and not clocked:
        raise ValueError(f"x: expected runs with delays for {given!r}, got some in rounds without")
    return given


def places_of(result: Result, x: str) -> Array:
    """Where the evaluations of a run are on the axis ``x``, ascending.

    Examples
    --------
    >>> from byzadmm import SGD, asynchronous, losses, steps
    >>> from byzadmm.study.places import places_of
    >>> run = asynchronous.simulate(None, None, loss=losses.Quadratic([1.0], [[2.0]]), updates=4, eval_every=2,
    ...                             algorithm=SGD(step=steps.constant(0.5)), delays=1.5)
    >>> places_of(run, "time").tolist()
    [0.0, 3.0, 6.0]
    """
    k: Array = result.iterations.astype(np.float64)
    if x == "iterations":
        return k
    if x == "time":
        return np.asarray(result.time, np.float64)
    arrived = result.arrivals
    if arrived is not None:  # of iterations some may need many messages, and others few
        k = arrived.astype(np.float64)
    if x == "arrivals" or not len(k) or k[-1] == 0:
        return k
    config = result.config
    per_iteration = 1.0
    if "messages" in config:  # on a graph
        per_iteration = config["messages"]
    elif arrived is None:
        m = config["n_workers"]
        # Ideal SGD draws among all workers, and excludes the Byzantine ones.
        share = 1 - len(config["byzantine"]) / m if config["algorithm"].get("ideal") else 1.0
        per_iteration = share * Sampling(m, config.get("participation", 1.0), 0).count
    if x == "seconds":
        k *= result.seconds / k[-1]
    else:
        k *= 2.0 * per_iteration * config["dim"] * np.dtype(config["dtype"]).itemsize
    return k


def one_grid(places: Sequence[Array], *, to_the_last: bool = False) -> Array:
    """Places at which curves are compared: those of all, up to the end of the first one that ends, or of the last.

    Examples
    --------
    >>> import numpy as np
    >>> from byzadmm.study.places import one_grid
    >>> one_grid([np.array([0.0, 1.0, 2.0]), np.array([0.0, 1.5])]).tolist()
    [0.0, 1.0, 1.5]
    """
    every: Array = np.unique(np.concatenate(places))
    return every if to_the_last else every[every <= min(each[-1] for each in places)]


def as_steps(places: Array, values: Array, grid: Array) -> Array:
    """A curve on a grid: at each of its places, the value of the last evaluation that is not after it.

    Examples
    --------
    >>> import numpy as np
    >>> from byzadmm.study.places import as_steps
    >>> as_steps(np.array([0.0, 1.5]), np.array([0.1, 0.9]), np.array([0.0, 1.0, 1.5, 2.0])).tolist()
    [0.1, 0.1, 0.9, 0.9]
    """
    held: Array = values[np.maximum(np.searchsorted(places, grid, side="right") - 1, 0)]
    return held
