"""Twins of sampled workers and local steps, as federated learning has them."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from ._arrays import Array
from .gradients import Gradients
from .philox import philox_integers

__all__ = ["local_gradients", "participants"]

#: k -> numbers of the workers that take part in round k, ascending
Drawn = Callable[[int], Array]

_PARTICIPATION = 5  # first word of the stream, as in choices.hpp


def participants(m: int, count: int, *, seed: int = 0) -> Drawn:
    """Workers that take part in each round: ``count`` of ``m``, those with the smallest words of the round's stream.

    Parameters
    ----------
    m, count, seed : int

    Returns
    -------
    callable
        ``k -> (count,)``, ascending.

    Examples
    --------
    >>> participants(10, 3)(1).tolist()
    [4, 7, 9]
    """

    def drawn(k: int) -> Array:
        words = philox_integers(m, high=2**63, seed=seed, stream=(_PARTICIPATION, 0, k))
        return np.sort(np.argsort(words, kind="stable")[:count])

    return drawn


def local_gradients(gradients: Gradients, step: Callable[[int], float], local_steps: int) -> Gradients:
    """Sums of the gradients along ``local_steps`` steps of every worker on its own loss.

    ``(x - w_E) / a`` with ``w_0 = x``, ``w_{e+1} = w_e - a F_i'(w_e)``, on the batches ``k E + e``.

    Parameters
    ----------
    gradients : callable
        ``(models, k) -> (m, d)``.
    step : callable
        ``k -> float``.
    local_steps : int

    Examples
    --------
    >>> from byzadmm.reference import quadratic_gradients
    >>> g = local_gradients(quadratic_gradients(np.ones((1, 1)), np.ones((1, 1))), lambda k: 0.5, 2)
    >>> g(np.zeros(1), 1).tolist()
    [[-1.5]]
    """

    def summed(models: Array, k: int) -> Array:
        w = models
        for e in range(local_steps):
            w = w - step(k) * gradients(w, k * local_steps + e)
        return np.asarray((models - w) / step(k), models.dtype)

    return summed if local_steps > 1 else gradients
