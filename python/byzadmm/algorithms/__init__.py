"""The algorithms as settings, checked when built: ADMM, RSA, SGD with any rule; and the base of your own."""

from byzadmm.algorithms.admm import ADMM
from byzadmm.algorithms.base import Algorithm, Heard, State
from byzadmm.algorithms.rsa import RSA
from byzadmm.algorithms.sgd import SGD

__all__ = ["ADMM", "RSA", "SGD", "Algorithm", "Heard", "State"]
