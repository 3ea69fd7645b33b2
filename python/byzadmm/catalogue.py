"""What goes with a name: settings that suit a data set, labels and plot styles of the algorithms.

``ADMM.for_dataset`` and its like, the command line and every picture read this one place.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from byzadmm import steps
from byzadmm.algorithms import ADMM, RSA
from byzadmm.datasets import Dataset

__all__ = ["LABELS", "PRESETS", "STYLES", "Preset", "Style", "label_of", "preset_for", "styles"]

# --- settings --------------------------------------------------------------------------------------------------------

_MEASURED_ROWS = 5000


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

#: Settings by the data set's name on the command line.
PRESETS: dict[str, Preset] = {
    "digits": _DIGITS,
    "synthetic": replace(_DIGITS, length=29.0),
    "mnist": _PIXELS,
    "fashion-mnist": replace(_PIXELS, length=1.05e7),
    "covtype": replace(_DIGITS, length=54.0, rsa=RSA(lam=0.01, step=steps.power(1.0)), step=steps.power(3.0)),
}


def preset_for(data: Dataset) -> Preset:
    """Settings for softmax regression on a data set.

    Those of :data:`PRESETS` for a data set of that name and of about that length of samples (within a factor of two);
    otherwise those of digits, carried over by the scale of the gradients: with ``L`` the mean squared length of a
    sample and D features, steps and ``1 / beta`` go with ``1 / (L + 1)``, ``lam`` with ``sqrt(L / D)``.

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
        If ``L < 1``: beside the bias, whose column is 1, such features are learnt too slowly.

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
    rows = data.train_x[:: -(-len(data.train_x) // _MEASURED_ROWS)].astype(np.float64)
    with np.errstate(over="ignore"):
        length = float(np.mean(np.sum(np.square(data.scale * rows), axis=1)))
    known = PRESETS.get(data.name.replace("_", "-"))
    if known is not None and 0.5 <= length / known.length <= 2.0:
        return known
    if not 0.99 <= length < math.inf:  # standardised data with one feature has 1, up to rounding
        raise ValueError(
            f"data: expected samples of mean squared length >= 1 to derive settings from, got {length:.3g}; give the "
            "data another scale (scale='standard'), or search for settings as `byzadmm tune` does"
        )
    element = math.sqrt(length / data.n_features / (_DIGITS.length / _DIGITS_FEATURES))
    return _small(length, (length + 1) / (_DIGITS.length + 1), element)


# --- pictures --------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Style:
    """Color, line and marker of a curve, as matplotlib takes them."""

    color: str
    line: Any
    marker: str


#: What an algorithm is called in a picture; others go by the name that was typed.
LABELS: dict[str, str] = {
    "admm": "ADMM",
    "rsa": "RSA",
    "sgd": "SGD",
    "ideal": "Ideal SGD",
    "median": "Median",
    "geometric-median": "Geometric median",
    "trimmed-mean": "Trimmed mean",
}

#: The look of an algorithm in every picture: colors of Okabe and Ito, which color-blind readers tell apart.
STYLES: dict[str, Style] = {
    "admm": Style("#D55E00", "-", "o"),
    "rsa": Style("#0072B2", "--", "s"),
    "ideal": Style("#000000", ":", "*"),
    "sgd": Style("#999999", "-.", "x"),
    "geometric-median": Style("#009E73", (0, (5, 1)), "^"),
    "median": Style("#CC79A7", (0, (3, 1, 1, 1)), "v"),
    "trimmed-mean": Style("#56B4E9", (0, (1, 1)), "D"),
}

# For what has no look of its own, in this order; none of them looks like ADMM, RSA, SGD or Ideal.
_OTHERS = (
    Style("#E69F00", "-", "P"),
    Style("#56B4E9", "--", "D"),
    Style("#009E73", "-.", "^"),
    Style("#CC79A7", ":", "v"),
    Style("#332288", (0, (5, 1)), "X"),
    Style("#44AA99", (0, (3, 1, 1, 1)), "p"),
    Style("#882255", (0, (1, 1)), "h"),
    Style("#999933", (0, (5, 1, 1, 1, 1, 1)), "<"),
    Style("#661100", (0, (8, 2)), ">"),
)


# Once these are used: the same colors with other lines.
_MORE = [
    replace(style, line=_OTHERS[(place + turn) % len(_OTHERS)].line)
    for turn in range(1, len(_OTHERS))
    for place, style in enumerate(_OTHERS)
]


def styles(names: Sequence[str], taken: Collection[str] = ()) -> dict[str, Style]:
    """A style for each name: its own, or one whose color is free as long as there are any.

    Parameters
    ----------
    names : list of str
        Those of :data:`STYLES` have a style of their own.
    taken : colors that are in the picture already

    Returns
    -------
    dict

    Examples
    --------
    >>> from byzadmm import catalogue
    >>> {name: style.color for name, style in catalogue.styles(["krum", "admm", "bulyan"]).items()}
    {'krum': '#E69F00', 'admm': '#D55E00', 'bulyan': '#56B4E9'}
    """
    used = [color.upper() for color in taken]
    chosen = {name: STYLES[name] for name in names if name in STYLES and STYLES[name].color not in used}
    used += [style.color for style in chosen.values()]
    for name in dict.fromkeys(names):
        if name not in chosen:
            free = [style for style in _OTHERS if style.color not in used]
            start = len(used) % len(_MORE)
            free += [style for style in _MORE[start:] + _MORE[:start] if style not in chosen.values()]
            chosen[name] = (free or _MORE)[0]
            used.append(chosen[name].color)
    return {name: chosen[name] for name in names}


def label_of(algorithm: Mapping[str, Any]) -> tuple[str, str]:
    """Name and label of the algorithm that a result's config describes.

    Parameters
    ----------
    algorithm : dict
        ``result.config["algorithm"]``.

    Returns
    -------
    name, label : str
        The name is a key of :data:`STYLES` where there is one.

    Examples
    --------
    >>> from byzadmm import SGD, catalogue
    >>> catalogue.label_of(SGD(rule="krum", f=8, momentum=0.9).describe())
    ('krum', 'krum, momentum 0.9')
    >>> catalogue.label_of(SGD(rule="median").describe())
    ('median', 'Median')
    """
    name = str(algorithm.get("name")).lower()
    rule = algorithm.get("rule", "mean")
    if algorithm.get("ideal"):
        name = "ideal"
    elif rule != "mean":
        name = "+".join(map(str, rule if isinstance(rule, (list, tuple)) else [rule]))
        name = name.replace("_", "-").replace("nearest-neighbor-mixing", "nnm")
    more = [f"momentum {algorithm['momentum']:g}"] if algorithm.get("momentum") else []
    more += [str(algorithm["variance_reduction"])] if algorithm.get("variance_reduction") else []
    return name, ", ".join([LABELS.get(name, name), *more])
