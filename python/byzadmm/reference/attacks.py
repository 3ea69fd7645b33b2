"""Twins of the attacks: each function returns an attack with these settings."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from ._arrays import Array
from .philox import philox_normal

__all__ = [
    "alie",
    "dual_oscillation",
    "duplicate",
    "gaussian",
    "inner_product",
    "large_value",
    "min_max",
    "min_sum",
    "same_value",
    "sign_flip",
    "small_value",
]


_ATTACK = 1  # first word of the streams of attacks, as in attacks.hpp

#: (honest messages (m, d), x0, k, byzantine) -> messages of the Byzantine workers, (q, d)
Attack = Callable[[Array, Array, int, Sequence[int]], Array]


def gaussian(std: float = 100.0, mean: float = 0.0, *, seed: int = 0) -> Attack:
    """``N(mean, std^2)`` per element from stream ``(1, worker, k)``."""

    def attack(messages: Array, x0: Array, k: int, byzantine: Sequence[int]) -> Array:
        rows = [philox_normal(len(x0), seed=seed, stream=(_ATTACK, j, k), dtype=x0.dtype) for j in byzantine]
        return std * np.stack(rows) + mean

    return attack


def sign_flip(scale: float = -3.0) -> Attack:
    """``scale * own message``."""
    return lambda messages, x0, k, byzantine: scale * messages[list(byzantine)]


def duplicate(worker: int = 0) -> Attack:
    """The message of ``worker``."""
    return lambda messages, x0, k, byzantine: _all(messages[worker], byzantine)


def small_value(eps: float = 0.5) -> Attack:
    """``x0 - eps / max(k (k+1), 1)``, Example ``ex``."""
    return lambda messages, x0, k, byzantine: _all(x0 - eps / max(k * (k + 1), 1), byzantine)


def large_value(lam: float, beta: float) -> Attack:
    """``x0 - (4 lam / beta) (-1)^k``, Example ``ex``."""
    return lambda messages, x0, k, byzantine: _all(x0 - 4.0 * lam / beta * (-1.0) ** k, byzantine)


def dual_oscillation(lam: float) -> Attack:
    """``lam (-1)^k``, section 4.2; pass ``sends_dual=True`` to :func:`train_admm`."""
    return lambda messages, x0, k, byzantine: _all(np.full_like(x0, lam * (-1.0) ** k), byzantine)


def same_value(v: float) -> Attack:
    """``v`` in every element; 0 and NaN are values too."""
    return lambda messages, x0, k, byzantine: _all(np.full_like(x0, v), byzantine)


def alie(z: float) -> Attack:
    """``mean - z std`` of the regular messages."""

    def attack(messages: Array, x0: Array, k: int, byzantine: Sequence[int]) -> Array:
        regular = np.delete(messages, list(byzantine), axis=0)
        return _all(regular.mean(axis=0) - z * regular.std(axis=0), byzantine)

    return attack


def inner_product(eps: float = 1.0) -> Attack:
    """``-eps * mean`` of the regular messages."""
    return lambda messages, x0, k, byzantine: _all(
        -eps * np.delete(messages, list(byzantine), axis=0).mean(axis=0), byzantine
    )


def min_max(direction: str = "std", factor: float = 1.0) -> Attack:
    """``mean + factor gamma p``, as far from regular messages as two of them are apart; ``gamma`` by bisection."""
    return _farthest(direction, factor, lambda y, regular: max(np.linalg.norm(y - x) for x in regular))


def min_sum(direction: str = "std", factor: float = 1.0) -> Attack:
    """``mean + factor gamma p``, with squared distances to regular messages that add up to no more than theirs do."""
    return _farthest(direction, factor, lambda y, regular: np.sum((y - regular) ** 2))


def _farthest(direction: str, factor: float, reach: Callable[[Array, Array], Any]) -> Attack:
    """The largest ``gamma`` for which the forged message reaches no farther than a regular one, by bisection."""

    def attack(messages: Array, x0: Array, k: int, byzantine: Sequence[int]) -> Array:
        regular = np.delete(messages, list(byzantine), axis=0)
        mean = regular.mean(axis=0)
        p = -{"std": regular.std(axis=0), "unit": mean, "sign": np.sign(mean)}[direction]
        most = max(reach(y, regular) for y in regular)

        def fits(gamma: float) -> bool:
            return bool(reach(mean + gamma * p, regular) <= most)

        low, high = 0.0, 1.0
        while p.any() and fits(high):
            low, high = high, 2 * high
        for _ in range(100):
            middle = (low + high) / 2
            low, high = (middle, high) if fits(middle) else (low, middle)
        return _all(mean + factor * low * p, byzantine)

    return attack


def _all(row: Array, byzantine: Sequence[int]) -> Array:
    return np.repeat(row[None], len(byzantine), axis=0)
