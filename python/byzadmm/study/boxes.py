"""Where a search looks: boxes in the units of the data, from the scale of its gradients."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

__all__ = ["MULTIPLES", "Scales", "measure", "merge", "near_ends"]

#: Range of a search -> its lowest and highest multiple of the unit that :meth:`Scales.ranges` gives it. "slope/lam" is
#: the range of slope for lam = 1, "beta/slope" that of beta for slope = 1.
MULTIPLES = {
    "step": (0.04, 100.0),
    "lam": (0.002, 2.0),
    "slope/lam": (0.004, 400.0),
    "beta/slope": (0.002, 2.0),
}

_ROUNDS = 4  # of batches over which gradients are averaged
_SAMPLES = 5000  # of which the squared length is averaged
_GIVE = "give step, lam, beta and slope ([tuning] of a settings file; tune={'ranges': ...} of compare)"


@dataclass(frozen=True)
class Scales:
    """The units in which the settings for softmax or logistic regression on some data are found.

    Attributes
    ----------
    gradient : float
        ``G``: root mean square of an element of the workers' batch gradients at the initial model, without elements
        that are always 0 (a feature that is).
    weight : float
        ``X = 1/sqrt(L)``, with ``L`` the mean squared length of a sample and its 1 for the bias: a model with elements
        of this size has outputs of size 1.
    """

    gradient: float
    weight: float

    def ranges(self) -> dict[str, tuple[float, float]]:
        """The box of every setting: :data:`MULTIPLES` times ``X/G`` for step, ``G`` for lam, ``1/X`` for slope/lam.

        If all features grow s-fold, gradients and what bounds them (lam) grow s-fold, useful weights shrink s-fold,
        and curvatures (slope, beta) grow s^2-fold; the boxes move along, and so they do if workers have few labels and
        hence larger gradients. A step of ``X/G`` moves the model by about one useful weight. ADMM's slope goes with
        ``lam/X``: a dual at its bound moves a worker's model by ``lam/slope``, which is 1/400 to 250 useful weights;
        its beta goes with the slope, for the two are summed in the step. Data with columns of very different sizes
        (raw COVERTYPE), and the coordinate-wise median of workers with few labels, have good settings near one end of
        the boxes, hence their three decades and more.

        Returns
        -------
        dict
            "step", "lam", "slope/lam" and "beta/slope" -> lowest and highest, to three digits.

        Examples
        --------
        >>> from byzadmm.study.boxes import Scales
        >>> Scales(gradient=6.2, weight=0.00042).ranges()["step"]
        (2.71e-06, 0.00677)
        """
        units = {
            "step": self.weight / self.gradient,
            "lam": self.gradient,
            "slope/lam": 1 / self.weight,
            "beta/slope": 1.0,
        }
        return {
            name: (_rounded(low * units[name]), _rounded(high * units[name])) for name, (low, high) in MULTIPLES.items()
        }


def measure(loss: Any) -> Scales:
    """The scales of a loss on samples with labels: softmax or logistic regression.

    Parameters
    ----------
    loss : Loss
        Of ``byzadmm.losses``, or your own with ``samples``.

    Returns
    -------
    Scales
        To three digits, which no order of summation changes.

    Raises
    ------
    ValueError
        If the loss has no samples, or its gradients at the initial model are 0 or not finite.

    Examples
    --------
    >>> from byzadmm import datasets, losses, partition
    >>> from byzadmm.study.boxes import measure
    >>> data = datasets.load("digits")
    >>> measure(losses.Softmax(data, partition.iid(data.train_y, 20)))
    Scales(gradient=0.0369, weight=0.25)
    """
    samples = getattr(loss, "samples", None)
    if samples is None:
        raise ValueError(f"ranges: cannot be derived from a loss without samples ({type(loss).__name__}); {_GIVE}")
    rows = samples.x[:: -(-len(samples.x) // _SAMPLES)].astype(np.float64) * samples.scale
    start = np.asarray(loss.initial() if hasattr(loss, "initial") else np.zeros(loss.dim), np.float32)
    with np.errstate(all="ignore"):
        length = float(np.mean(np.sum(np.square(rows), axis=1))) + 1
        squares = np.zeros(loss.dim)
        for k in range(1, _ROUNDS + 1):
            for worker in range(loss.n_workers):
                squares += np.square(loss.gradient(start, worker=worker, k=k), dtype=np.float64)
        squares /= _ROUNDS * loss.n_workers
        size = math.sqrt(np.mean(squares[squares != 0])) if np.any(squares) else 0.0
    if not (0 < size < math.inf and length < math.inf):
        raise ValueError(f"ranges: cannot be derived from gradients of size {size:g} at the initial model; {_GIVE}")
    return Scales(_rounded(size), _rounded(1 / math.sqrt(length)))


def merge(derived: Mapping[str, Any], given: Mapping[str, Any]) -> dict[str, Any]:
    """The given ranges, and the derived ones of settings that are not among them ("slope/lam" is one of slope).

    Examples
    --------
    >>> from byzadmm.study.boxes import merge
    >>> merge({"lam": (1, 2), "slope/lam": (3, 4)}, {"slope": (5, 6)})
    {'lam': (1, 2), 'slope': (5, 6)}
    """
    return {name: ends for name, ends in derived.items() if name.partition("/")[0] not in given} | dict(given)


def near_ends(trial: Mapping[str, float], ranges: Mapping[str, Any], share: float = 0.05) -> list[str]:
    """The ranges of a search in whose outer ``share``, on a logarithmic scale, a trial lies: they may be too narrow.

    Examples
    --------
    >>> from byzadmm.study.boxes import near_ends
    >>> near_ends({"lam": 0.5, "slope": 490.0}, {"lam": (0.01, 10.0), "slope/lam": (1.0, 1000.0), "step": (1.0, 2.0)})
    ['slope/lam']
    """
    found = []
    for name, (low, high) in ranges.items():
        over, _, under = name.partition("/")
        if over in trial and (not under or under in trial):
            value = trial[over] / (trial[under] if under else 1.0)
            place = math.log(value / low) / math.log(high / low)
            if not share <= place <= 1 - share:
                found.append(name)
    return found


def _rounded(value: float) -> float:
    return float(f"{value:.3g}")
