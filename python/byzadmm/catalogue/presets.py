"""Data sets by name, and the settings of every algorithm that suit them."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import numpy.typing as npt

from byzadmm import datasets, steps
from byzadmm._internal.validation import check_choice
from byzadmm.algorithms import ADMM, RSA
from byzadmm.catalogue.entries import hyphenated
from byzadmm.datasets import Dataset

__all__ = ["PRESETS", "Preset", "dataset_name", "load_dataset", "preset_for"]

Array = npt.NDArray[Any]

_MEASURED_ROWS = 5000
_ALONE = 0.999  # share of the squared length of samples: beside such a column, no other would be learned
_WORKERS = 20  # of the command line
_BATCH = 32  # for which curvature on a batch is estimated: the default of simulate


@dataclass(frozen=True)
class Preset:
    """Settings of every algorithm that suit a data set.

    Attributes
    ----------
    length : float
        Mean squared length of a sample, as the learner sees it, for which the settings are.
    admm, rsa : settings of the two
    step : of SGD with any rule, and of Ideal SGD
    scale : number or word with which the command line loads the data, None for the data set's own
    iterations : int
        How long the command line trains.
    """

    length: float
    admm: ADMM
    rsa: RSA
    step: steps.Step
    scale: float | str | None = None
    iterations: int = 1000

    @property
    def sign_step(self) -> steps.Step:
        """Of SGD with a rule that gives signs: that of other rules times RSA's ``lam``, the size of a gradient here."""
        return steps.power(self.step(1) * self.rsa.lam)

    @property
    def async_step(self) -> steps.Step:
        """Of asynchronous SGD: the m updates in the time of a round, m = 20, go as far together as one of ``step``."""
        return steps.power(self.step(1) / math.sqrt(_WORKERS))

    @property
    def constant_step(self) -> steps.Step:
        """That of :attr:`async_step` after 25 rounds, for ever."""
        return steps.constant(_rounded(self.async_step(25 * _WORKERS)))

    def ranges(self) -> dict[str, tuple[float, float]]:
        """From a tenth of these settings to ten times them: where a search looks for real targets and networks.

        For labels and linear models :meth:`byzadmm.study.boxes.Scales.ranges` has boxes in the units of the data.

        Returns
        -------
        dict
            ``lam``, ``beta``, ``step`` and ``slope`` (:class:`byzadmm.catalogue.AlgorithmEntry`) -> lowest and highest.

        Examples
        --------
        >>> from byzadmm.catalogue import PRESETS
        >>> PRESETS["mnist"].ranges()["step"]
        (1e-05, 0.01)
        """
        inverse = [1 / self.admm.worker_step(k) for k in (1, 4)]  # c0 + c1 sqrt k
        known = {
            "lam": (self.admm.lam, self.rsa.lam),
            "beta": (self.admm.beta,),
            "step": (self.step(1), self.rsa.master_step(1)),
            "slope": (inverse[1] - inverse[0],),
        }
        return {
            name: (float(f"{min(values) / 10:.6g}"), float(f"{10 * max(values):.6g}")) for name, values in known.items()
        }


def _small(length: float, curvature: float = 1.0, element: float = 1.0) -> Preset:
    """Settings for digits, chosen on a validation split under sign-flipping (docs/cli.md), carried over to other data.

    A sample ``a`` has the gradient ``(p - e_y) [a, 1]^T``. If features grow s-fold, so do gradients and what bounds
    them (``element``), models shrink s-fold, and curvature grows s^2-fold.
    """
    return Preset(
        length,
        admm=ADMM(
            lam=0.01 * element,
            beta=0.5 * curvature,
            master_step=steps.inv_sqrt(10 * curvature, 0.3 * curvature),
            worker_step=steps.inv_sqrt(0.5 * curvature, 0.3 * curvature),
        ),
        rsa=RSA(lam=0.014 * element, step=steps.power(3.0 / curvature)),
        step=steps.power(10.0 / curvature),
    )


_DIGITS, _DIGITS_FEATURES = _small(15.0), 64
_PIXELS = Preset(  # pixels 0..255 and the steps printed for the sign-flipping attack on MNIST (fig2a)
    5.7e6,
    admm=ADMM(lam=0.05, beta=0.1, master_step=steps.inv_sqrt(2, 5), worker_step=steps.inv_sqrt(0.1, 5)),
    rsa=RSA(lam=0.07, step=steps.power(1e-3)),
    step=steps.power(1e-4),
    scale=1.0,
)


def _derived(length: float, n_features: int) -> Preset:
    """Settings of digits, carried over to samples of that mean squared length."""
    element = math.sqrt(length / n_features / (_DIGITS.length / _DIGITS_FEATURES))
    return _small(length, (length + 1) / (_DIGITS.length + 1), element)


#: Settings by the data set's name on the command line.
PRESETS: dict[str, Preset] = {
    "digits": _DIGITS,
    "synthetic": replace(_DIGITS, length=29.0),
    "mnist": _PIXELS,
    "fashion-mnist": replace(_PIXELS, length=1.05e7),
    "covtype": replace(_DIGITS, length=54.0, rsa=RSA(lam=0.01, step=steps.power(1.0)), step=steps.power(3.0)),
    # Not measured: 1024 (mean^2 + deviation^2) of the colors, published as .4914 .4822 .4465 and .2470 .2435 .2616.
    "cifar10": _derived(883.0, 3072),
}


def dataset_name(text: str, what: str = "dataset") -> str:
    """The name of a data set, written with hyphens or underscores; an unknown one is a ValueError.

    Examples
    --------
    >>> from byzadmm import catalogue
    >>> catalogue.dataset_name("fashion_mnist")
    'fashion-mnist'
    """
    return check_choice(hyphenated(text) if isinstance(text, str) else text, what, PRESETS)


def load_dataset(name: str, *, data_dir: Any = None, scale: Any = None) -> Dataset:
    """:func:`byzadmm.datasets.load` by the catalogue's name."""
    return datasets.load(dataset_name(name).replace("-", "_"), data_dir=data_dir, scale=scale)


def _for_targets(rows: Array, y: Array, length: float) -> Preset:
    """Settings for linear regression with these features and targets, chosen on generated data under attack."""
    y = y.astype(np.float64)
    middle = float(np.mean(y))
    with np.errstate(over="ignore", invalid="ignore"):
        deviation = float(np.std(y))
        covariances = np.mean((rows - rows.mean(axis=0)) * (y - middle)[:, None], axis=0)
        at_zero = float(np.sqrt(np.mean(np.square(covariances))))
    if not (0 < at_zero < math.inf and deviation < math.inf):
        raise ValueError("data: expected features and targets that vary, and whose products are finite")
    if abs(middle) > 10 * deviation:
        raise ValueError(
            f"data: expected targets whose mean is at most ten times their deviation, got {middle:.3g} and "
            f"{deviation:.3g}; subtract the mean"
        )
    curvature = _rounded(_largest_eigenvalue(rows) + length / _BATCH)
    lam = _rounded(max(0.15 * at_zero, min(0.002 * abs(middle) * curvature, 0.3 * at_zero)))
    return Preset(
        length,
        admm=ADMM(
            lam=lam,
            beta=0.1 * curvature,
            master_step=steps.inv_sqrt(2 * curvature, 0.1 * curvature),
            worker_step=steps.inv_sqrt(curvature, 0.1 * curvature),
        ),
        rsa=RSA(lam=lam, step=steps.inv_sqrt(curvature, 0.25 * curvature)),
        step=steps.inv_sqrt(curvature, 0.1 * curvature),
    )


def _largest_eigenvalue(rows: Array) -> float:
    """Of ``mean a a^T`` with ``a = (row, 1)``, by powers."""
    direction = np.random.default_rng(0).standard_normal(rows.shape[1] + 1)
    size = 1.0
    for _ in range(30):
        direction /= np.linalg.norm(direction)
        outputs = rows @ direction[:-1] + direction[-1]
        direction = np.append(outputs @ rows, outputs.sum()) / len(rows)
        size = float(np.linalg.norm(direction))
    return size


def _rounded(value: float) -> float:
    """To three digits, which no order of summation changes."""
    return float(f"{value:.3g}")


def preset_for(data: Dataset) -> Preset:
    """Settings for softmax or logistic regression on a data set with labels, for linear regression on one with targets.

    Labels: those of :data:`PRESETS` for a data set of that name and of about that length of samples (within a factor of
    two); otherwise those of digits, carried over by the scale of the gradients: with ``L`` the mean squared length of a
    sample and D features, steps and ``1 / beta`` go with ``1 / (L + 1)``, ``lam`` with ``sqrt(L / D)``. Logistic
    regression takes the same: on two classes of digits and COVERTYPE, and on generated data of 5 to 200 features, its
    final accuracy under sign-flipping and Gaussian attacks by 8 of 20 workers was within 0.02 of that of softmax.

    Real targets: steps and ``1 / beta`` go with ``1 / H``, where ``H`` is the largest curvature on batches of 32 (the
    largest eigenvalue of ``mean a a^T``, plus ``L / 32``); ``lam`` with the gradients at zero, the root mean square of
    the covariances of targets and features, or is up to twice that if the bias has far to go. On generated data with
    features and targets of scales 0.001 to 1000, 20 workers with 200 samples each, 8 of them Byzantine, the test ``r2``
    of ADMM and RSA was within 0.06 of the closed form's for 5 and 30 features, and for 200 within 0.06 under Gaussian
    attacks and 0.21 under sign-flipping (``tests/figures/test_catalogue.py``). Features that are far from mean 0, or of
    different sizes, are learned slowly: ``scale="standard"`` is better.

    Parameters
    ----------
    data : Dataset
        Of ``byzadmm.datasets``.

    Returns
    -------
    Preset

    Raises
    ------
    ValueError
        If ``L < 1``: such features are learned too slowly beside the bias, whose column is 1. If one column has 999
        thousandths of ``L``: the others would be. If targets or features do
        not vary, or if the mean of the targets is more than ten times their deviation: the bias would take too long.

    Examples
    --------
    >>> from byzadmm import catalogue, datasets
    >>> catalogue.preset_for(datasets.load("digits")).admm.lam
    0.01
    >>> round(catalogue.preset_for(datasets.load("digits", scale="raw")).admm.lam, 3)
    0.16
    """
    if not isinstance(data, Dataset):
        raise TypeError(f"data: expected a Dataset of byzadmm.datasets, got {type(data).__name__}")
    measured = slice(None, None, -(-len(data.train_x) // _MEASURED_ROWS))
    rows = data.train_x[measured].astype(np.float64)
    with np.errstate(over="ignore"):
        squares = np.square(data.scale * rows)
        length, columns = float(np.mean(np.sum(squares, axis=1))), np.mean(squares, axis=0)
    known = None if data.n_classes == 0 else PRESETS.get(data.name.replace("_", "-"))
    if known is not None and 0.5 <= length / known.length <= 2.0:
        return known
    advice = "give the data another scale (scale='standard'), or search for settings as `byzadmm tune` does"
    if not 0.99 <= length < math.inf:  # standardized data with one feature has 1, up to rounding
        raise ValueError(
            f"data: expected samples of mean squared length >= 1 to derive settings from, got {length:.3g}; {advice}"
        )
    largest = int(np.argmax(columns))
    if columns[largest] > _ALONE * length and np.any(np.ptp(np.delete(rows, largest, axis=1), axis=0) > 0):
        raise ValueError(f"data: expected columns of about one size, got column {largest} far above the rest; {advice}")
    if data.n_classes == 0:
        return _for_targets(data.scale * rows, data.train_y[measured], length)
    return _derived(length, data.n_features)
