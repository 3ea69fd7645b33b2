"""Which of the two ways to the workers' gradients is the faster one, measured once."""

from __future__ import annotations

import sys
import threading
import time
import warnings
from collections.abc import Callable, Hashable

import torch

__all__ = ["Choice", "choose"]

#: How many times faster the vectorized way must be: a repeated measurement seldom gives another answer.
MARGIN = 1.25
#: Each way runs for so many seconds at most, but once in any case.
_SECONDS, _TURNS = 0.2, 5

_known: dict[Hashable, Choice] = {}
_lock = threading.Lock()


class Choice:
    """Whether gradients are vectorized over workers, and why."""

    def __init__(self, vectorized: bool, reason: str = "as given") -> None:
        self.vectorized, self.reason = vectorized, reason


def choose(key: Hashable, one_by_one: Callable[[], torch.Tensor], at_once: Callable[[], torch.Tensor]) -> Choice:
    """The faster of two functions that give the same gradients (n, d).

    One after another over MPI, where every process would measure for itself; and where the vectorized way fails,
    warns, or gives other gradients. The answer for a ``key`` is kept for the life of the process.
    """
    if _over_mpi():
        return Choice(False, "over MPI every process has to take the same way")
    with _lock:
        if key not in _known:
            _known[key] = _measured(one_by_one, at_once)
        return _known[key]


def _measured(one_by_one: Callable[[], torch.Tensor], at_once: Callable[[], torch.Tensor]) -> Choice:
    expected = one_by_one()
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            found = at_once()
    except Exception as error:  # torch.func raises many kinds, by layer
        return Choice(False, f"torch.func cannot: {str(error).splitlines()[0] if str(error) else type(error).__name__}")
    if not torch.allclose(found, expected, rtol=1e-3, atol=1e-4 * float(expected.abs().max())):
        return Choice(False, "torch.func gives other gradients")
    times = [_best(way) for way in (one_by_one, at_once)]
    spent = f"{1e3 * times[0]:.3g} ms one by one, {1e3 * times[1]:.3g} ms at once"
    return Choice(times[0] > MARGIN * times[1], f"measured: {spent}")


def _best(way: Callable[[], torch.Tensor]) -> float:
    best, begin = float("inf"), time.perf_counter()
    for _ in range(_TURNS):
        start = time.perf_counter()
        way()
        end = time.perf_counter()
        best = min(best, end - start)
        if end - begin > _SECONDS:
            break
    return best


def _over_mpi() -> bool:
    mpi = sys.modules.get("mpi4py.MPI")
    return mpi is not None and mpi.Is_initialized() and not mpi.Is_finalized() and mpi.COMM_WORLD.Get_size() > 1
