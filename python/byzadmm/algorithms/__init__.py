"""The algorithms as settings, checked when built: ADMM, RSA, SGD with any rule, others; and the base of your own."""

from byzadmm.algorithms.admm import ADMM
from byzadmm.algorithms.base import Algorithm, Heard, State
from byzadmm.algorithms.newton import Newton
from byzadmm.algorithms.one_round import OneRound
from byzadmm.algorithms.perturbed import PerturbedGD
from byzadmm.algorithms.rsa import RSA
from byzadmm.algorithms.sgd import SGD
from byzadmm.algorithms.svrg import SVRG

__all__ = ["ADMM", "RSA", "SGD", "SVRG", "Algorithm", "Heard", "Newton", "OneRound", "PerturbedGD", "State"]
