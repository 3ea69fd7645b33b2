"""The words of the paper's claims, as predicates on accuracy curves with stated thresholds.

==================  =============================================================================================
word                meaning; "final" is the final accuracy (k >= 0.8 of the run), averaged over all seeds
==================  =============================================================================================
close to Ideal      final >= Ideal's final - 0.02
very similar        final >= Ideal's final - 0.01
fails               final < half of Ideal's final
works               final >= 0.9 of Ideal's final
a little worse      final lower, by more than 0.002 and by no more than 0.1
better, worse       final higher (lower) by more than 0.002
worst, best         final lowest (highest) of all that are compared, by any margin
faster              fewer iterations until the mean curve reaches 95% of Ideal's final, linear in between
falls               final lower than the best of the sweep by more than 0.02
steadier            smaller total variation of x0 over the whole run
limit               x0 at the end within 0.001 of the limit that follows from the fixed-point equations
==================  =============================================================================================
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from byzadmm._internal.arrays import Array
from byzadmm.results import CLOSE, FAILS, final_accuracy

__all__ = ["Curves", "Part"]

SIMILAR, LITTLE, MARGIN, FALLS, WORKS, LIMIT = 0.01, 0.1, 0.002, 0.02, 0.9, 0.001

#: A statement, and whether it holds.
Part = tuple[str, bool]


class Curves:
    """The curves of one panel, with a method for each word of the table above.

    Parameters
    ----------
    iterations : (t,) array
    values : dict
        Name -> (seeds, t) accuracies.
    admm : str
        Name of the run that "admm" stands for in the claims.
    """

    def __init__(self, iterations: Array, values: Mapping[str, Array], admm: str = "admm") -> None:
        self.iterations, self.values, self.admm = np.asarray(iterations, float), values, admm

    def of(self, name: str) -> Array:
        """The curves of an algorithm, (seeds, t)."""
        return self.values[self.admm if name == "admm" else name]

    def final(self, name: str) -> float:
        """Final accuracy of an algorithm, averaged over the seeds."""
        return float(np.mean(final_accuracy(self.iterations, self.of(name))))

    def time(self, name: str) -> float:
        """Iterations to 95% of Ideal's final accuracy; infinite if it is never reached."""
        mean, goal = self.of(name).mean(axis=0), 0.95 * self.final("ideal")
        reached = np.flatnonzero(mean >= goal)
        if reached.size == 0:
            return float("inf")
        i = int(reached[0])
        if i == 0:
            return float(self.iterations[0])
        part = (goal - mean[i - 1]) / (mean[i] - mean[i - 1])
        return float(self.iterations[i - 1] + part * (self.iterations[i] - self.iterations[i - 1]))

    def close(self, *names: str, within: float = CLOSE) -> list[Part]:
        word = "close" if within == CLOSE else "very similar"
        return [(f"{n} {word} to ideal", self.final(n) >= self.final("ideal") - within) for n in names]

    def fails(self, *names: str) -> list[Part]:
        return [(f"{n} fails", self.final(n) < FAILS * self.final("ideal")) for n in names]

    def works(self, *names: str) -> list[Part]:
        return [(f"{n} works", self.final(n) >= WORKS * self.final("ideal")) for n in names]

    def better(self, name: str, *others: str) -> list[Part]:
        return [(f"{name} better than {o}", self.final(name) > self.final(o) + MARGIN) for o in others]

    def a_little_worse(self, name: str, *others: str) -> list[Part]:
        lowest = min(self.final(other) for other in others)
        return [(f"{name} a little worse", MARGIN < lowest - self.final(name) <= LITTLE)]

    def worst(self, name: str, *others: str) -> list[Part]:
        return [(f"{name} worst", all(self.final(name) < self.final(other) for other in others))]

    def best(self, name: str, *others: str) -> list[Part]:
        return [(f"{name} best", all(self.final(name) > self.final(other) for other in others))]

    def faster(self, name: str, *others: str) -> list[Part]:
        return [(f"{name} faster than {o}", self.time(name) < self.time(o)) for o in others]
