"""Rows of the comparison for asynchronous training: one arrival, with everything that it sets off; float32.

The shapes are MNIST's: 20 workers, of which 8 flip signs, with 32 samples a job.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from measure import Call, Row
from rows_training import M, Q, mnist

from byzadmm import asynchronous, attacks, delays, partition, steps
from byzadmm.asynchronous.events import events
from byzadmm.asynchronous.experiment import AsyncExperiment

__all__ = ["rows"]

TURN = 200  # arrivals per call


def arrivals(algorithm: Any) -> tuple[Call, Call]:
    """So many arrivals, and as many gradients of single workers by the kernel that they use."""
    data = mnist()
    parts = partition.iid(data.train_y, M, seed=0)
    given: dict[str, Any] = {"attack": attacks.SignFlip(), "n_byzantine": Q, "delays": delays.Exponential()}
    run = AsyncExperiment(data, parts, algorithm=algorithm, updates=2**40, threads=1, **given)
    state, advance = events(run)
    heard = int(state["arrivals"])

    def ours() -> None:
        nonlocal heard
        heard += TURN
        run.arrivals = heard
        advance(state, run.first_k + int(state["updates"]), 2**40 - int(state["updates"]))

    native, out = run.native_loss, np.empty((1, run.d), np.float32)
    assert native is not None
    job = 0

    def gradients() -> None:
        nonlocal job
        for _ in range(TURN):
            job += 1
            native.gradients(state["x0"], [job % M], job, out, 1)

    return ours, gradients


def rows() -> list[Row]:
    area = "an arrival of asynchronous training, MNIST, 20 workers, 8 flip signs, float32"
    step = steps.power(1e-5)
    kinds: dict[str, Any] = {
        "ASGD": asynchronous.ASGD(step=step),
        "BASGD, median, 20 buffers": asynchronous.BASGD(step=step, buffers=M, f=Q),
        "Kardam": asynchronous.Kardam(step=step, f=6),
        "AsyncRSA": asynchronous.AsyncRSA(step=step),
        "AsyncADMM": asynchronous.AsyncADMM(),
        "AsyncADMM, barrier 10": asynchronous.AsyncADMM(barrier=10),
    }
    return [
        Row(area, name, "the gradient alone", lambda algorithm=algorithm: arrivals(algorithm), at_most=4.0)  # type: ignore[misc]
        for name, algorithm in kinds.items()
    ]
