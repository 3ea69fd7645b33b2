"""What the kernels of linear models share: the checked arguments, and the calls of a gradient, a loss, a Hessian."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from byzadmm._internal.arrays import Array, as_float, as_index, as_samples, prepare_out
from byzadmm._internal.validation import check_real, check_threads
from byzadmm.kernels._checks import require_shape, returned


class Model(NamedTuple):
    """A kind of linear model: its native functions, and the arguments that it takes.

    Attributes
    ----------
    gradient, loss, hessian_product : functions of ``_core``
    targets : callable
        ``(y, "y") -> (N,)`` array.
    classes : bool
        Whether W has an axis of classes.
    """

    gradient: Callable[..., None]
    loss: Callable[..., Array]
    hessian_product: Callable[..., None]
    targets: Callable[[Any, str], Array]
    classes: bool


def as_real(y: Any, name: str) -> Array:
    """Real targets, in float64."""
    return as_float(y, name, np.dtype(np.float64))


def check_bias(bias: Any) -> bool:
    if not isinstance(bias, (bool, np.bool_)):
        raise TypeError(f"bias: expected True or False, got {type(bias).__name__}")
    return bool(bias)


def check_samples(X: Any) -> Array:
    samples = as_samples(X)
    if samples.ndim != 2:
        raise ValueError(f"X: expected shape (N, D), got {samples.shape}")
    return samples


def with_output(models: Array, samples: Array, bias: bool) -> Array:
    """Models (m, D+1) as the native functions take them, (m, 1, D+1)."""
    require_shape(models, "W", (len(models), samples.shape[1] + bias))
    return models[:, None]


def _inputs(model: Model, W: Any, X: Any, idx: Any, bias: bool) -> tuple[Array, Array, Array | None, bool]:
    models = as_float(W, "W")
    single = models.ndim == 1 + model.classes
    models = models[None] if single else models
    if models.ndim != 2 + model.classes:
        expected = "(m, K, D+1) or (K, D+1)" if model.classes else "(m, D+1) or (D+1,)"
        raise ValueError(f"W: expected shape {expected}, got {models.shape}")
    samples = check_samples(X)
    rows = None
    if idx is not None:
        rows = as_index(idx, "idx")
        rows = rows[None] if single and rows.ndim == 1 else rows
        if rows.ndim != 2 or len(rows) != len(models):
            raise ValueError(f"idx: expected shape ({len(models)}, B), got {rows.shape}")
    has_bias = check_bias(bias)
    return models if model.classes else with_output(models, samples, has_bias), samples, rows, single


def _targets(model: Model, y: Any, samples: Array) -> Array:
    targets = model.targets(y, "y")
    require_shape(targets, "y", (len(samples),))
    return targets


def gradient(
    model: Model, W: Any, X: Any, y: Any, idx: Any, *, scale: float, bias: bool, out: Any, threads: int
) -> Any:
    """Gradients of all workers, of the shape of W."""
    models, samples, rows, single = _inputs(model, W, X, idx, bias)
    targets = _targets(model, y, samples)
    inputs = [models, samples, targets] + ([] if rows is None else [rows])
    shape = models.shape if model.classes else (len(models), models.shape[2])
    sources = [W, X, y] + ([] if idx is None else [idx])
    result = prepare_out(out, shape[1:] if single else shape, models.dtype, inputs, sources)
    factor = check_real(scale, "scale", dtype=models.dtype)
    model.gradient(
        models, samples, targets, rows, result.reshape(models.shape), factor, bool(bias), check_threads(threads)
    )
    return returned(result, out, W)


def loss(model: Model, W: Any, X: Any, y: Any, idx: Any, *, scale: float, bias: bool, threads: int) -> Any:
    """Mean loss of every worker (m,), or a float."""
    models, samples, rows, single = _inputs(model, W, X, idx, bias)
    targets = _targets(model, y, samples)
    factor = check_real(scale, "scale", dtype=models.dtype)
    mean = model.loss(models, samples, targets, rows, factor, bool(bias), check_threads(threads))
    return float(mean[0]) if single else mean


def hessian_product(
    model: Model, W: Any, V: Any, X: Any, idx: Any, *, scale: float, bias: bool, out: Any, threads: int
) -> Any:
    """Hessians of all workers times their vectors, of the shape of W."""
    models, samples, rows, single = _inputs(model, W, X, idx, bias)
    shape = models.shape if model.classes else (len(models), models.shape[2])
    shape = shape[1:] if single else shape
    along = as_float(V, "V", models.dtype)
    require_shape(along, "V", shape)
    inputs = [models, along, samples] + ([] if rows is None else [rows])
    result = prepare_out(out, shape, models.dtype, inputs, [W, V, X] + ([] if idx is None else [idx]))
    factor = check_real(scale, "scale", dtype=models.dtype)
    to, along = result.reshape(models.shape), along.reshape(models.shape)
    model.hessian_product(models, along, samples, rows, to, factor, bool(bias), check_threads(threads))
    return returned(result, out, W)
