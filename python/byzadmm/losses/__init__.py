"""What the workers minimise: regression on a data set, quadratics, or a loss of your own."""

from __future__ import annotations

from collections.abc import Callable

from byzadmm.losses.base import Loss
from byzadmm.losses.linear import LeastSquares, Logistic
from byzadmm.losses.quadratic import Quadratic
from byzadmm.losses.softmax import Softmax

__all__ = ["LeastSquares", "Logistic", "Loss", "Quadratic", "Softmax"]

#: Those that a name stands for; they are made of a data set and its parts.
BY_NAME: dict[str, Callable[..., Loss]] = {kind.name: kind for kind in (Softmax, Logistic, LeastSquares)}
