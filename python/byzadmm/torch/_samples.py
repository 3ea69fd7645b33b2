"""Samples of any kind in, two tensors out: inputs and targets, one row per sample."""

from __future__ import annotations

import warnings
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch

from byzadmm._internal.arrays import to_numpy
from byzadmm.datasets import Dataset
from byzadmm.datasets._torch import read_pairs

__all__ = ["Samples", "read", "test_set"]


@dataclass(frozen=True)
class Samples:
    """Inputs (N, ...) and targets (N, ...); what a module sees is ``scale * inputs``.

    Inputs of a floating type, and those of uint8, are converted to the type of the run, batch by batch; other whole
    numbers, such as tokens, are given to the module as they are. Targets are int64, or of the type of the run.
    """

    inputs: torch.Tensor
    targets: torch.Tensor
    scale: float = 1.0

    def __len__(self) -> int:
        return len(self.inputs)

    def on(self, device: torch.device, *, real: bool = False) -> Samples:
        """The same on a device; ``real``: with targets of a floating type, whatever they were."""
        targets = self.targets.to(torch.float32) if real and not self.targets.is_floating_point() else self.targets
        return Samples(self.inputs.to(device), targets.to(device), self.scale)

    def part(self, rows: torch.Tensor) -> Samples:
        """Only these rows."""
        rows = rows.to(self.inputs.device)
        return Samples(self.inputs[rows], self.targets[rows], self.scale)

    def of(self, rows: torch.Tensor | slice, dtype: torch.dtype) -> tuple[torch.Tensor, torch.Tensor]:
        """Inputs and targets of some rows, as the module and the criterion take them."""
        x, y = self.inputs[rows], self.targets[rows]
        if x.is_floating_point() or x.dtype == torch.uint8:
            x = x.to(dtype)
            if self.scale != 1.0:
                x = x * self.scale
        return x, y.to(dtype) if y.is_floating_point() else y


def read(data: Any, name: str) -> Samples:
    """Samples of a pair (inputs, targets), a map-style torch Dataset, or the training set of a byzadmm Dataset."""
    if isinstance(data, Dataset):
        return Samples(_tensor(data.train_x, name), _targets(_tensor(data.train_y, name)), float(data.scale))
    if isinstance(data, (tuple, list)) and len(data) != 2:
        raise ValueError(f"{name}: expected a pair (inputs, targets), got {len(data)} items")
    pair = data if isinstance(data, (tuple, list)) else _stacked(data, name)
    inputs, targets = (_tensor(part, f"{name}[{i}]") for i, part in enumerate(pair))
    if inputs.ndim < 1 or len(inputs) == 0:
        raise ValueError(f"{name}[0]: expected inputs of shape (N, ...), N >= 1, got {tuple(inputs.shape)}")
    if targets.ndim < 1 or len(targets) != len(inputs):
        raise ValueError(f"{name}[1]: expected {len(inputs)} targets, one per input, got {tuple(targets.shape)}")
    return Samples(inputs, _targets(targets))


def test_set(train: Any, test: Any) -> Samples | None:
    """The samples to evaluate on: ``test``, or by default those that come with a byzadmm Dataset."""
    if test is None and not isinstance(train, Dataset):
        return None
    source = train if test is None else test
    if isinstance(source, Dataset):
        return Samples(_tensor(source.test_x, "test"), _targets(_tensor(source.test_y, "test")), float(source.scale))
    return read(source, "test")


def _stacked(data: Any, name: str) -> Any:
    """Inputs and targets of a torch Dataset, read once."""
    if not (hasattr(data, "__getitem__") and hasattr(data, "__len__")):
        raise TypeError(
            f"{name}: expected a pair (inputs, targets), a map-style torch Dataset or a Dataset of byzadmm.datasets, "
            f"got {type(data).__name__}"
        )
    inputs, targets = read_pairs(data, name, one_target=False)
    try:
        return inputs, np.asarray(targets)
    except ValueError as error:
        raise ValueError(f"{name}: expected targets of one shape ({error})") from error


def _tensor(value: Any, name: str) -> torch.Tensor:
    """A tensor that shares memory with ``value`` where its kind allows."""
    if not isinstance(value, torch.Tensor):
        array = to_numpy(value, name)
        if array.dtype.kind not in "fiub" or array.dtype.itemsize > 8:
            raise TypeError(f"{name}: expected real numbers, got dtype {array.dtype}")
        small = array.dtype.kind == "u" and array.dtype.itemsize > 1  # types that most of torch's functions lack
        array = np.asarray(array, np.int64 if small else array.dtype.newbyteorder("="), order="C")
        with warnings.catch_warnings():  # about read-only memory: it is never written to
            warnings.simplefilter("ignore", UserWarning)
            value = torch.from_numpy(array)
    if value.is_complex():
        raise TypeError(f"{name}: expected real numbers, got {value.dtype}")
    tensor = value.detach()
    if tensor.is_floating_point() and not bool(torch.isfinite(tensor).all()):
        raise ValueError(f"{name}: expected finite numbers")
    return tensor


def _targets(targets: torch.Tensor) -> torch.Tensor:
    return targets if targets.is_floating_point() else targets.to(torch.int64)
