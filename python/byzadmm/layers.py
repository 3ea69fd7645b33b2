"""Models as rows: per-layer arrays of every worker side by side in one array, and a row back into layers."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from byzadmm._internal.arrays import half_of, real_dtype, to_numpy, wrapper_of
from byzadmm._internal.validation import check_int

__all__ = ["flatten", "unflatten"]

Shapes = tuple[tuple[int, ...], ...]


def flatten(models: Sequence[Sequence[Any]]) -> tuple[Any, Shapes]:
    """Lists of per-layer arrays, one list per worker, as one row per worker.

    ``X_i = (vec(layer_1), ..., vec(layer_L))`` of worker i. Every number is copied once, into its place.

    Parameters
    ----------
    models : n lists of L arrays
        Or whatever gives them one by one.
        Layer l has the same shape in every list. The rows have the widest type among the floating-point layers, and
        float64 if there are none; an integer counter beside them widens float16 and bfloat16 to float32, nothing else.

    Returns
    -------
    X : (n, d) array of the kind of the first layer
    shapes : the layers' shapes, for :func:`unflatten`

    Examples
    --------
    >>> import numpy as np
    >>> from byzadmm import flatten
    >>> X, shapes = flatten([[np.ones((2, 2)), np.zeros(1)], [np.ones((2, 2)), np.ones(1)]])
    >>> X.tolist(), shapes
    ([[1.0, 1.0, 1.0, 1.0, 0.0], [1.0, 1.0, 1.0, 1.0, 1.0]], ((2, 2), (1,)))
    """
    if not isinstance(models, Sequence) or isinstance(models, (str, bytes)):
        raise TypeError(f"models: expected a list of lists of arrays, got {type(models).__name__}")
    given = [_listed(model, f"models[{i}]", "a list of arrays") for i, model in enumerate(models)]
    if not given or not given[0]:
        raise ValueError("models: expected at least one worker and one layer")
    layers = [[to_numpy(a, f"models[{i}][{k}]") for k, a in enumerate(model)] for i, model in enumerate(given)]
    shapes = tuple(array.shape for array in layers[0])
    for i, model in enumerate(layers):
        if len(model) != len(shapes):
            raise ValueError(f"models[{i}]: expected {len(shapes)} layers, got {len(model)}")
        for k, array in enumerate(model):
            if array.shape != shapes[k]:
                raise ValueError(f"models[{i}][{k}]: expected shape {shapes[k]}, got {array.shape}")
    types = [(a.dtype.kind, real_dtype(a, f"models[{i}][{k}]")) for i, m in enumerate(layers) for k, a in enumerate(m)]
    dtype = np.result_type(*([own for kind, own in types if kind == "f"] or [np.dtype(np.float64)]))
    X = np.empty((len(layers), sum(math.prod(shape) for shape in shapes)), dtype)
    for row, model in zip(X, layers, strict=True):
        for to, array in zip(_split(row, shapes), model, strict=True):
            np.copyto(to, array)
    return wrapper_of(*given)(X), shapes


def unflatten(x: Any, shapes: Sequence[Any]) -> list[Any]:
    """A row, or rows, back into layers: views of ``x``, nothing is copied.

    Parameters
    ----------
    x : (d,) or (n, d) array
    shapes : what :func:`flatten` gave, or any list of shapes or of arrays that have them

    Returns
    -------
    L arrays of the kind of ``x``; for (n, d) a list of n such lists

    Examples
    --------
    >>> import numpy as np
    >>> from byzadmm import unflatten
    >>> [layer.tolist() for layer in unflatten(np.arange(3.0), [(1, 2), (1,)])]
    [[[0.0, 1.0]], [2.0]]
    """
    array = to_numpy(x, "x")
    wanted = tuple(
        tuple(
            check_int(n, f"shapes[{i}]", low=0)
            for n in _listed(getattr(shape, "shape", shape), f"shapes[{i}]", "a shape, or an array that has one")
        )
        for i, shape in enumerate(_listed(shapes, "shapes", "a list of shapes"))
    )
    size = sum(math.prod(shape) for shape in wanted)
    if array.ndim not in (1, 2) or array.shape[-1] != size:
        raise ValueError(f"x: expected shape ({size},) or (n, {size}), got {array.shape}")
    if half_of(x) == "bfloat16":  # NumPy has no view of it: the tensor itself is cut
        rows = [_split(row, wanted) for row in (x if x.ndim == 2 else x[None])]
    else:
        wrap = wrapper_of(x)
        rows = [[wrap(layer) for layer in _split(row, wanted)] for row in np.atleast_2d(array)]
    return rows if array.ndim == 2 else rows[0]


def _listed(value: Any, name: str, expected: str) -> list[Any]:
    try:
        return list(value)
    except TypeError:
        raise TypeError(f"{name}: expected {expected}, got {type(value).__name__}") from None


def _split(row: Any, shapes: Sequence[tuple[int, ...]]) -> list[Any]:
    ends = np.cumsum([math.prod(shape) for shape in shapes]).tolist()
    return [row[end - math.prod(shape) : end].reshape(shape) for end, shape in zip(ends, shapes, strict=True)]
