"""SGD with redundant gradients: the workers' messages by a code of ``byzadmm.redundancy``, and the decoded mean."""

from __future__ import annotations

import warnings
from typing import TYPE_CHECKING

import numpy as np

from byzadmm._internal.arrays import Array
from byzadmm.algorithms.base import Heard
from byzadmm.redundancy.base import Code, DecodingError, combined

if TYPE_CHECKING:
    from byzadmm.training.experiment import Experiment
    from byzadmm.training.workers import Group

__all__ = ["coded_messages", "decoded_mean"]


def coded_messages(code: Code, group: Group, x0: Array, k: int) -> Array:
    """The messages (n, length) of the workers of ``group``; the gradient of each batch is computed once.

    Batch j is what worker j draws in round ``k``. A Byzantine worker whose labels are flipped computes all of its
    batches with flipped labels; a regular one none of them, whoever's part they are from.
    """
    run = group.run
    flipping = set(run.byzantine) if run.flipped is not None else set()
    out = np.empty((len(group.workers), run.length), run.dtype)
    for flipped in (False, True):
        rows = [row for row, worker in enumerate(group.workers) if (worker in flipping) == flipped]
        workers = [group.workers[row] for row in rows]
        batches = sorted({batch for worker in workers for batch in code.batches(worker, run.m)})
        if batches:
            made = group.batch_gradients(x0, k, batches, flipped=flipped)
            out[rows] = combined(code, dict(zip(batches, made, strict=True)), workers, run.m, run.threads)
    return out


def decoded_mean(code: Code, run: Experiment, heard: Heard, rng: np.random.Generator) -> Array:
    """The mean gradient (d,); zero, with a warning, if the messages cannot be decoded."""
    precision = min(run.dtype, run.wire, key=lambda kind: kind.itemsize)
    try:
        return code.decode(heard.rows, heard.workers, run.m, rng=rng, precision=precision, threads=run.threads)
    except DecodingError as error:
        warnings.warn(f"a gradient counts as zero: {error}", RuntimeWarning, stacklevel=2)
        return np.zeros(run.d, run.dtype)
