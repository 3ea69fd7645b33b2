"""LSVRG at the workers: gradients corrected by the full gradient at a snapshot of the model, renewed now and then."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from byzadmm import _core
from byzadmm._internal.arrays import Array, checked_vector
from byzadmm.algorithms.base import State

if TYPE_CHECKING:
    from byzadmm.training.experiment import Experiment
    from byzadmm.training.workers import Group

__all__ = ["begin", "gradients"]

_SNAPSHOT = _core.PURPOSES.index("snapshot")
_OTHERWISE = (1, 10)  # renewed in one of ten rounds where the loss has no samples


def begin(group: Group) -> State:
    """Snapshots and their full gradients before the first round. NaN: none yet."""
    none = group.zeros()
    none[:] = np.nan
    return {"snapshot": none, "snapshot_gradient": none.copy()}


def gradients(state: State, group: Group, model: Array, k: int) -> Array:
    """Corrected gradients of those of ``group`` that take part, at ``model`` (d,) in round ``k``.

    ``v_i = F'(x, xi) - F'(w_i, xi) + full_i(w_i)`` with the same batch ``xi`` in both; then ``w_i <- x`` with
    probability b / n_i, its batch size over its number of samples. The first snapshot is the first model.
    """
    part = group.taking_part
    for row in part:
        if np.isnan(state["snapshot"][row, 0]):
            _renew(state, group, row, model)
    made: Array = group.gradients(model, k, part)
    with np.errstate(over="ignore", invalid="ignore"):  # a model may diverge; its worker is eliminated
        made -= group.gradients(np.ascontiguousarray(state["snapshot"][part]), k, part)
        made += state["snapshot_gradient"][part]
    drawn = np.empty(1, np.int64)
    for row in part:
        share, of = _chance(group.run, group.workers[row])
        _core.philox_integers(drawn, of, group.run.seed, (_SNAPSHOT, group.workers[row], k))
        if drawn[0] < share:
            _renew(state, group, row, model)
    return made


def _renew(state: State, group: Group, row: int, model: Array) -> None:
    made = group.run.loss.full_gradient(model.copy(), worker=group.workers[row])
    with np.errstate(over="ignore"):
        state["snapshot_gradient"][row] = checked_vector(made, "loss.full_gradient", group.dim, finite=False)
    state["snapshot"][row] = model


def _chance(run: Experiment, worker: int) -> tuple[int, int]:
    """The probability of a new snapshot, as a fraction."""
    if run.samples is None:
        return _OTHERWISE
    return run.samples.batch_size, len(run.samples.parts[worker])
