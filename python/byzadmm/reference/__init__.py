"""NumPy twins of the native kernels: the independent witness of the tests and the baseline of the benchmarks.

Each function has the name and arguments of its native twin, without ``out`` and ``threads``. Arguments are taken to be
valid: the checks a user meets live in the public wrappers, and only what would pass silently is refused here.
"""

from __future__ import annotations

from .admm import ThreeVariableADMM, admm_dual_step, admm_master_step, admm_worker_step
from .philox import ndtri, philox_integers, philox_normal, philox_words
from .rsa import rsa_master_step, rsa_worker_step
from .rules import finite_rows, geometric_median, geometric_median_residual, mean, median, trimmed_mean
from .softmax import softmax_accuracy, softmax_gradient, softmax_loss, softmax_predict

__all__ = [
    "ThreeVariableADMM",
    "admm_dual_step",
    "admm_master_step",
    "admm_worker_step",
    "finite_rows",
    "geometric_median",
    "geometric_median_residual",
    "mean",
    "median",
    "ndtri",
    "philox_integers",
    "philox_normal",
    "philox_words",
    "rsa_master_step",
    "rsa_worker_step",
    "softmax_accuracy",
    "softmax_gradient",
    "softmax_loss",
    "softmax_predict",
    "trimmed_mean",
]
