"""NumPy twins of the native kernels: the independent witness of the tests and the baseline of the benchmarks.

Each function has the name and arguments of its native twin, without ``out`` and ``threads``. Arguments are taken to be
valid: the checks a user meets live in the public wrappers, and only what would pass silently is refused here.
"""

from __future__ import annotations

from .admm import ThreeVariableADMM, admm_dual_step, admm_master_step, admm_worker_step
from .philox import ndtri, philox_integers, philox_normal, philox_words
from .rsa import rsa_master_step, rsa_worker_step
from .rules import finite_rows, geometric_median, geometric_median_residual, mean, median, trimmed_mean
from .rules_selection import (
    bucketing,
    bulyan,
    centered_clip,
    clip,
    krum,
    krum_scores,
    meamed,
    medoid,
    multi_krum,
    nearest_neighbor_mixing,
    pairwise_distances,
    phocas,
    weighted_median,
    weighted_trimmed_mean,
)
from .softmax import softmax_accuracy, softmax_gradient, softmax_loss, softmax_predict
from .training import (
    State,
    alie,
    dual_oscillation,
    duplicate,
    gaussian,
    inner_product,
    large_value,
    min_max,
    quadratic_gradients,
    saga_gradients,
    same_value,
    sign_flip,
    small_value,
    softmax_gradients,
    train_admm,
    train_rsa,
    train_sgd,
)

__all__ = [
    "State",
    "ThreeVariableADMM",
    "admm_dual_step",
    "admm_master_step",
    "admm_worker_step",
    "alie",
    "bucketing",
    "bulyan",
    "centered_clip",
    "clip",
    "dual_oscillation",
    "duplicate",
    "finite_rows",
    "gaussian",
    "geometric_median",
    "geometric_median_residual",
    "inner_product",
    "krum",
    "krum_scores",
    "large_value",
    "meamed",
    "mean",
    "median",
    "medoid",
    "min_max",
    "multi_krum",
    "ndtri",
    "nearest_neighbor_mixing",
    "pairwise_distances",
    "philox_integers",
    "philox_normal",
    "philox_words",
    "phocas",
    "quadratic_gradients",
    "rsa_master_step",
    "rsa_worker_step",
    "saga_gradients",
    "same_value",
    "sign_flip",
    "small_value",
    "softmax_accuracy",
    "softmax_gradient",
    "softmax_gradients",
    "softmax_loss",
    "softmax_predict",
    "train_admm",
    "train_rsa",
    "train_sgd",
    "trimmed_mean",
    "weighted_median",
    "weighted_trimmed_mean",
]
