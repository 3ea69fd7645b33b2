"""Asynchronous algorithms, delays and runs that the tests of tests/asynchronous share."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from byzadmm import Result, asynchronous, delays, steps
from byzadmm.algorithms import State
from byzadmm.asynchronous import (
    ASGD,
    BASGD,
    Arrival,
    AsyncADMM,
    AsyncAlgorithm,
    AsyncRSA,
    Kardam,
    ZenoPlusPlus,
)
from support.arrays import same_bits
from support.runs import M, Q, quadratic, small_data, small_parts

__all__ = ["ASYNCHRONOUS", "DELAYS", "ROBUST", "SignVote", "differences", "run", "settings_of", "softmax"]

Array = npt.NDArray[Any]

_STEP = steps.inv_sqrt(2, 1)
_ADMM = {"lam": 0.3, "beta": 0.8, "master_step": steps.inv_sqrt(6, 1), "worker_step": _STEP}
_RSA = {"lam": 0.2, "master_step": steps.inv_sqrt(5, 1), "worker_step": _STEP}


class SignVote(AsyncAlgorithm):
    """A user's own: the last sign of every worker votes. Workers keep a memory, in a new array for every job."""

    message = "sign"
    tallies = ("heard",)

    def worker_state(self, group: Any) -> State:
        return {"memory": group.zeros()}

    def answer(self, group: Any, state: State, x0: Array, k: int) -> Array:
        state["memory"] = (state["memory"] + group.gradients(x0, k)) / 2
        return np.sign(state["memory"])

    def master_state(self, run: Any) -> State:
        return {"signs": np.zeros((run.m, run.d), run.dtype), "heard": np.zeros(run.m)}

    def receive(self, run: Any, state: State, arrival: Arrival) -> bool:
        state["signs"][arrival.worker] = np.sign(arrival.message)
        state["heard"][arrival.worker] += 0.5
        return bool(np.any(arrival.message != 0))

    def ready(self, run: Any, state: State, t: int, accepted: bool) -> bool:
        return bool(state["heard"].sum() % 1 == 0)

    def move(self, run: Any, state: State, t: int) -> None:
        state["x0"] -= np.float32(0.05) / np.sqrt(run.first_k + t).astype(run.dtype) * np.sign(state["signs"].sum(0))


#: Every asynchronous algorithm, with settings under which its branches differ.
ASYNCHRONOUS: dict[str, AsyncAlgorithm] = {
    "asgd": ASGD(_STEP),
    "asgd inverse": ASGD(_STEP, dampening="inverse"),
    "asgd exponential": ASGD(_STEP, dampening="exponential", momentum=0.5),
    "asgd own": ASGD(_STEP, dampening=lambda tau: 1 / (1 + tau) ** 2),
    "kardam": Kardam(_STEP, f=1, history=3),
    "kardam momentum": Kardam(_STEP, f=0, momentum=0.5, dampening=None),
    "basgd median": BASGD(step=_STEP),
    "basgd krum": BASGD("nnm+krum", 5, _STEP, f=1, patience=4),
    "basgd clip": BASGD("centered_clip", 4, _STEP, momentum=0.9),
    "basgd draws": BASGD("bucketing+trimmed_mean", 6, _STEP, f=1, patience=2),
    "zeno++": ZenoPlusPlus(steps.constant(0.1), samples=8, renew=3),
    "zeno++ tolerant": ZenoPlusPlus(_STEP, rho=0.01, eps=0.1, samples=5, momentum=0.5),
    "rsa 1": AsyncRSA(**_RSA),
    "rsa 3": AsyncRSA(**_RSA, barrier=3, max_delay=4),
    "rsa m": AsyncRSA(**_RSA, barrier=M),
    "rsa forgets 1": AsyncRSA(**_RSA, memory=False),
    "rsa forgets 3": AsyncRSA(**_RSA, barrier=3, memory=False),
    "rsa forgets m": AsyncRSA(**_RSA, barrier=M, memory=False),
    "admm 1": AsyncADMM(**_ADMM),
    "admm 3": AsyncADMM(**_ADMM, barrier=3),
    "admm 3, 2": AsyncADMM(**_ADMM, barrier=3, max_delay=2),
    "admm m": AsyncADMM(**_ADMM, barrier=M),
    "own": SignVote(),
}

#: Those whose model stays finite whatever finite numbers a minority of workers sends, with q attackers of 7.
ROBUST: dict[str, AsyncAlgorithm] = {
    name: ASYNCHRONOUS[name] for name in ASYNCHRONOUS if name.startswith(("zeno", "rsa", "admm", "own"))
} | {
    "basgd median": BASGD("median", 7, _STEP, f=Q),
    "basgd trimmed": BASGD("trimmed_mean", 7, _STEP, f=Q, momentum=0.9),
    "basgd rfa": BASGD("geometric_median", None, _STEP, f=Q, patience=3),
}

DELAYS: dict[str, Any] = {
    "constant": delays.Constant(2.0),
    "exponential": delays.Exponential(),
    "stragglers": delays.Stragglers(delays.Uniform(), share=0.3, factor=4.0),
    # Workers meet at some instants, all or some of them with the same number of jobs.
    "replay": delays.Replay([[1.0, 1.0, 1.0, 1.0], [1.5, 0.5, 2.0, 1.0], [2.0, 2.0, 2.0, 2.0], [1.0, 1.0, 1.0, 3.0],
                             [1.0, 1.0, 1.0, 1.0], [0.5, 1.5, 1.0, 1.0], [1.0, 1.0, 2.0, 2.0]]),
    "fast": lambda worker, job, rng: rng.random() * (0.1 if worker in (0, M - 1) else 1.0) + 1e-3,
}  # fmt: skip


def softmax(algorithm: AsyncAlgorithm) -> dict[str, Any]:
    """A data set, its parts, and the master's samples for an algorithm that needs them."""
    parts = small_parts()
    if not algorithm.validates:
        return {"dataset": small_data(), "parts": parts}
    validation = [int(part[0]) for part in parts]
    return {"dataset": small_data(), "parts": [part[1:] for part in parts], "validation": validation}


def settings_of(algorithm: Any, **changes: Any) -> dict[str, Any]:
    """Of a run of this algorithm on a small problem: with samples where they are needed, on a quadratic otherwise."""
    problem: dict[str, Any] = {"dataset": None, "parts": None, "loss": quadratic(noise=0.2)}
    if algorithm.validates:
        problem = softmax(algorithm)
    return problem | {"algorithm": algorithm, "delays": DELAYS["exponential"], "seed": 3, "batch_size": 4} | changes


def run(algorithm: Any, **changes: Any) -> Result:
    return asynchronous.simulate(**settings_of(algorithm, **changes))


def differences(a: Result, b: Result, *, curves: bool = True) -> list[str]:
    """In what two runs differ by any bit; without ``curves``, only what does not depend on when they were evaluated."""
    found = [] if a.eliminated == b.eliminated else ["eliminated"]
    pairs: dict[str, tuple[Any, Any]] = {"x0": (a.x0, b.x0), "x": (a.x, b.x)}
    held = [{name: one.events[name] for name in one.events} if one.events else {} for one in (a, b)]
    if curves:
        pairs |= {name: (a.metrics.get(name), b.metrics.get(name)) for name in a.metrics | b.metrics}
        pairs["iterations"] = a.iterations, b.iterations
    else:
        held = [{name: array for name, array in one.items() if name not in ("time", "arrivals")} for one in held]
    pairs |= {name: (held[0].get(name), held[1].get(name)) for name in held[0] | held[1]}
    for name, (x, y) in pairs.items():
        if x is not y and (x is None or y is None or not same_bits(x, y)):
            found.append(name)
    return found
