"""A filter in a run: its arrays in the master's state, its weights for a round, and a record of them."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from byzadmm import _core
from byzadmm._internal.arrays import Array, as_float
from byzadmm.filters.base import Filter

if TYPE_CHECKING:
    from byzadmm.training.experiment import Experiment

__all__ = ["Passed", "begin", "check_filter", "check_known", "frozen", "passed", "project"]

State = dict[str, Array]

_PERTURBATION = _core.PURPOSES.index("perturbation")
_PREFIX = "filter_"
#: Columns of the master's entry "weights", one row per worker: sum of its weights, rounds, rounds of positive weight.
_WEIGHT, _ROUNDS, _KEPT = range(3)


class Passed(NamedTuple):
    """What a filter leaves for the rule: rows, their weights if they differ, and how many messages were excluded.

    ``workers`` are the senders, -1 for rows that the filter adds.
    """

    rows: Array
    workers: Array
    weights: Array | None = None
    excluded: int = 0


def check_filter(value: Any) -> None:
    """Raise a TypeError for an object that lacks a method of the protocol."""
    hooks = [name for name, member in vars(Filter).items() if not name.startswith("_") and name != "describe"]
    lacking = [name for name in hooks if not hasattr(value, name)]
    if isinstance(value, type) or lacking:
        got = f"the class {value.__name__}" if isinstance(value, type) else type(value).__name__
        missing = "" if isinstance(value, type) else f", which has no {', '.join(lacking)}"
        raise TypeError(f"filter: expected None, a filters.Filter or an object with its methods, got {got}{missing}")


def begin(chosen: Any, run: Experiment) -> State:
    """The entries of the master's state that belong to a filter."""
    own = {_PREFIX + name: array for name, array in chosen.begin(run.m, run.d, run.dtype).items()}
    own.pop(f"{_PREFIX}eliminated", None)  # the master has its own
    return own | {"weights": np.zeros((run.m, 3))}


def passed(
    chosen: Any, run: Experiment, state: State, rows: Array, workers: Array, k: int, step: float
) -> Passed:
    """Filter the messages of round ``k``, write down their weights, and eliminate whom the filter eliminates."""
    eliminated = state["eliminated"]
    drawn = run.sampling.workers(k)
    gone = drawn[eliminated[drawn] >= 0]
    state["weights"][gone, _ROUNDS] += 1  # with weight zero
    if not len(rows):
        return Passed(rows, workers)
    own = _own(state)
    rng = np.random.Generator(np.random.Philox(key=run.seed, counter=[0, _PERTURBATION, 0, k]))
    shown = rows.view()
    shown.flags.writeable = False
    made = chosen.lowered(len(gone)).weigh(
        shown,
        x0=state["x0"].copy(),
        k=k,
        step=step,
        workers=workers,
        state=own,
        validation=run.validation,
        rng=rng,
    )
    weights = _checked(made, len(rows))
    for name, array in state.items():
        if name.startswith(_PREFIX) and own[name.removeprefix(_PREFIX)] is not array:
            array[...] = own[name.removeprefix(_PREFIX)]
    kept = weights > 0
    state["weights"][workers, _WEIGHT] += weights
    state["weights"][workers, _ROUNDS] += 1
    state["weights"][workers, _KEPT] += kept
    if chosen.eliminates:
        out = workers[~kept]
        eliminated[out[eliminated[out] < 0]] = k
    excluded = int(np.count_nonzero(~kept))
    if excluded:
        rows, workers, weights = np.ascontiguousarray(rows[kept]), workers[kept], weights[kept]
    rows, weights = chosen.adjusted(rows, weights, state=own, rng=rng)
    workers = np.concatenate([workers, np.full(len(rows) - len(workers), -1, workers.dtype)])
    same = not len(weights) or np.all(weights == weights[0])
    return Passed(rows, workers, None if same else weights / weights.max(), excluded)


def project(chosen: Any, state: State) -> None:
    """What the filter does to the model after the step."""
    chosen.projected(state["x0"], state=_own(state))


def check_known(chosen: Any, state: State | None) -> None:
    """Raise a ValueError if what the filter does depends on a state that is not known."""
    if state is None and chosen.begin(1, 1, np.dtype(np.float64)):
        kind = type(chosen).__name__
        raise ValueError(f"attack: it asks for the master's memory of {kind}, which other processes do not have")


def frozen(
    state: State, drawn: Array, direction: Callable[[State, Array, Array], Array]
) -> Callable[[Array], Array]:
    """``direction(state, rows, workers)`` as a function of the rows of all workers ``drawn``, without a trace."""
    kept = {name: array.copy() for name, array in state.items()}
    there = kept["eliminated"][drawn] < 0

    def defense(rows: Array) -> Array:
        held = {name: array.copy() for name, array in kept.items()}
        return direction(held, np.ascontiguousarray(rows[there]), drawn[there])

    return defense


def _own(state: State) -> State:
    """The filter's arrays by its own names, and the master's list of eliminated workers."""
    own = {name.removeprefix(_PREFIX): array for name, array in state.items() if name.startswith(_PREFIX)}
    return own | {"eliminated": state["eliminated"]}


def _checked(made: Any, n: int) -> Array:
    weights = as_float(made, "filter", np.dtype(np.float64))
    if weights.shape != (n,):
        raise ValueError(f"filter: expected weights of shape ({n},), got {weights.shape}")
    if not (np.all(np.isfinite(weights)) and np.all(weights >= 0)):
        raise ValueError(f"filter: expected finite weights >= 0, got {weights.tolist()}")
    return weights
