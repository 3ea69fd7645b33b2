"""Rows of the comparison for asynchronous training: one arrival, with everything that it sets off; float32.

The shapes are MNIST's: 20 workers, of which 8 flip signs, with 32 samples a job.
``python benchmarks/rows_asynchronous.py`` prints arrivals per second, by the clock on the wall and by that of the
processor, which other programs slow down less.
"""

from __future__ import annotations

import os
import time
from typing import Any

if __name__ == "__main__":  # as compare.py does, before NumPy is imported
    os.environ |= dict.fromkeys(("OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"), "1")

import numpy as np
from measure import Call, Row, best_of
from rows_training import M, Q, mnist

from byzadmm import asynchronous, attacks, delays, partition, steps
from byzadmm.asynchronous.events import events
from byzadmm.asynchronous.experiment import AsyncExperiment

__all__ = ["rows"]

TURN = 200  # arrivals per call
HELD = 500  # samples of the master's own


def arrivals(algorithm: Any) -> tuple[Call, Call]:
    """So many arrivals, and as many gradients of single workers by the kernel that they use."""
    data = mnist()
    parts = [HELD + part for part in partition.iid(data.train_y[HELD:], M, seed=0)]
    given: dict[str, Any] = {"attack": attacks.SignFlip(), "n_byzantine": Q, "delays": delays.Exponential()}
    given["validation"] = range(HELD) if algorithm.validates else None
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


def algorithms() -> dict[str, Any]:
    step = steps.power(1e-5)
    return {
        "ASGD": asynchronous.ASGD(step=step),
        "BASGD, median, 20 buffers": asynchronous.BASGD(step=step, buffers=M, f=Q),
        "Kardam": asynchronous.Kardam(step=step, f=6),
        "Zeno++": asynchronous.ZenoPlusPlus(step=steps.constant(1e-5), rho=1e-7),
        "AsyncRSA": asynchronous.AsyncRSA(step=step),
        "AsyncADMM": asynchronous.AsyncADMM(),
        "AsyncADMM, barrier 10": asynchronous.AsyncADMM(barrier=10),
    }


def rows() -> list[Row]:
    area = "an arrival of asynchronous training, MNIST, 20 workers, 8 flip signs, float32"
    return [
        Row(area, name, "the gradient alone", lambda algorithm=algorithm: arrivals(algorithm), at_most=4.0)  # type: ignore[misc]
        for name, algorithm in algorithms().items()
    ]


def main() -> None:
    """Print arrivals per second, and the gradients per second of one worker at a time beside them."""
    print(f"{'per second, best of 3 s, one thread':<36}{'wall':>9}{'processor':>11}")
    calls = {name: arrivals(algorithm) for name, algorithm in algorithms().items()}
    timed = {name: ours for name, (ours, _) in calls.items()} | {"the gradient alone": calls["ASGD"][1]}
    for name, call in timed.items():
        wall, processor = (TURN / best_of(call, 3.0, clock) for clock in (time.perf_counter, time.thread_time))
        print(f"{name:<36}{wall:>9.0f}{processor:>11.0f}", flush=True)


if __name__ == "__main__":
    main()
