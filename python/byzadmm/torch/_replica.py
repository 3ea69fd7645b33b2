"""A copy of a module whose parameters are views of rows: gradients of many workers through one module."""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterable, Sequence
from typing import Any

import torch
from torch.func import functional_call, grad, vmap

__all__ = ["Criterion", "Replica"]

Criterion = Callable[[torch.Tensor, torch.Tensor], torch.Tensor]


class Replica:
    """A module of one dtype, for one thread at a time.

    A worker's model is a row of the models (n, d), and its gradient one of the gradients (n, d): the module's
    parameters and their ``grad`` are set to views of these rows, so that no parameter and no gradient is held twice.

    Parameters
    ----------
    module, criterion
        Copied.
    names : list of str
        The parameters that are trained, in the order of their places in a row.
    dtype, device
        Of parameters, buffers and inputs.
    training : bool
        False: evaluation mode, without gradients; True: the mode in which the module came.
    """

    def __init__(
        self,
        module: torch.nn.Module,
        criterion: Criterion,
        names: Sequence[str],
        dtype: torch.dtype,
        device: torch.device,
        *,
        training: bool,
    ) -> None:
        self.module = copy.deepcopy(module).to(device=device, dtype=dtype)
        self.criterion = criterion
        if isinstance(criterion, torch.nn.Module):  # weights of classes
            self.criterion = copy.deepcopy(criterion).to(device=device, dtype=dtype)
        if not training:
            self.module.eval().requires_grad_(False)
        self.names = list(names)
        held = dict(self.module.named_parameters())
        self.parameters = [held[name] for name in names]
        self.shapes = [parameter.shape for parameter in self.parameters]
        self.sizes = [parameter.numel() for parameter in self.parameters]
        self._empty = torch.empty(0, dtype=dtype, device=device)
        self.release()

    def views(self, rows: torch.Tensor) -> list[torch.Tensor]:
        """The parameters in rows (..., d), each (..., *shape)."""
        lead = rows.shape[:-1]
        return [
            part.view(*lead, *shape) for part, shape in zip(rows.split(self.sizes, dim=-1), self.shapes, strict=True)
        ]

    def hold(self, row: torch.Tensor) -> None:
        """Let the parameters be views of ``row`` (d,)."""
        for parameter, value in zip(self.parameters, self.views(row), strict=True):
            parameter.data = value

    def release(self) -> None:
        """Hold nothing, so that the arrays of a run are free when it ends."""
        for parameter in self.parameters:
            parameter.data, parameter.grad = self._empty, None

    def loss(self, x: torch.Tensor, y: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        """The criterion's value, and the outputs it is made of."""
        outputs = self.module(x)
        return self._judged(outputs, y), outputs

    def _judged(self, outputs: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
        if y.is_floating_point() and y.shape != outputs.shape and y.numel() == outputs.numel():
            y = y.reshape(outputs.shape)  # (B,) for outputs (B, 1): torch would form all B^2 differences
        return self.criterion(outputs, y)

    def one_by_one(
        self,
        models: torch.Tensor,
        batches: Iterable[tuple[torch.Tensor, torch.Tensor]],
        out: torch.Tensor,
        before: Callable[[int], None],
    ) -> None:
        """Gradients at models (n, d), or at one (d,), into ``out`` (n, d), each by its own backward pass.

        ``before(row)`` is called before the forward pass of that row.
        """
        out.zero_()  # a backward pass adds to what is there
        gradients = zip(*(part.unbind(0) for part in self.views(out)), strict=True)
        values = zip(*(part.unbind(0) for part in self.views(models.expand(len(out), -1))), strict=True)
        for row, ((x, y), at, into) in enumerate(zip(batches, values, gradients, strict=True)):
            for parameter, value, gradient in zip(self.parameters, at, into, strict=True):
                parameter.data, parameter.grad = value, gradient
            before(row)
            self.loss(x, y)[0].backward()

    def all_at_once(self, models: torch.Tensor, x: torch.Tensor, y: torch.Tensor, out: torch.Tensor) -> None:
        """The same by one vectorized pass: x (n, B, ...), y (n, B, ...).

        A worker's gradient must not depend, in its last bits, on how many others are computed with it. Products of one
        matrix, and of one model with all batches, take other paths than those of many: one model is repeated (its
        memory is not), and a single row is computed twice.
        """
        alone = len(x) == 1
        if alone:
            x, y = (part.expand(2, *part.shape[1:]) for part in (x, y))
        values = dict(zip(self.names, self.views(models.expand(len(x), -1)), strict=True))
        made = vmap(grad(self._functional))(values, x, y)
        for name, into in zip(self.names, self.views(out), strict=True):
            into.copy_(made[name][:1] if alone else made[name])

    def _functional(self, values: dict[str, Any], x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
        return self._judged(functional_call(self.module, values, (x,)), y)
