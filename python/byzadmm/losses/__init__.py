"""What the workers minimise: regression on a data set, quadratics, or a loss of your own."""

from byzadmm.losses.base import Loss
from byzadmm.losses.linear import LeastSquares, Logistic
from byzadmm.losses.quadratic import Quadratic
from byzadmm.losses.softmax import Softmax

__all__ = ["LeastSquares", "Logistic", "Loss", "Quadratic", "Softmax"]
