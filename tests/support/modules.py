"""Small PyTorch modules of every kind that a loss is made of, and the plain loop that it is compared with."""

from __future__ import annotations

import copy
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import torch
from torch import nn

from byzadmm import reference
from support.arrays import Array
from support.runs import M, small_data

__all__ = ["MODULES", "Tied", "classes", "dense", "images", "plain_gradients", "tokens"]

Pair = tuple[torch.Tensor, torch.Tensor]


def dense(dropout: float = 0.0) -> nn.Module:
    torch.manual_seed(1)
    return nn.Sequential(nn.Linear(5, 7), nn.Tanh(), nn.Dropout(dropout), nn.Linear(7, 3))


def classes() -> Pair:
    """The small data set as tensors."""
    data = small_data()
    return torch.from_numpy(data.scale * data.train_x), torch.from_numpy(data.train_y)


def images() -> Pair:
    generator = torch.Generator().manual_seed(2)
    return torch.rand((120, 1, 8, 8), generator=generator), torch.randint(0, 3, (120,), generator=generator)


def tokens() -> Pair:
    generator = torch.Generator().manual_seed(3)
    return torch.randint(0, 9, (120, 6), generator=generator), torch.randint(0, 9, (120,), generator=generator)


class Tied(nn.Module):
    """One matrix in two places, a frozen layer, a layer that is not used, a buffer that does not change."""

    def __init__(self) -> None:
        super().__init__()
        torch.manual_seed(4)
        self.embedding, self.out = nn.Embedding(9, 4), nn.Linear(4, 9)
        self.out.weight = self.embedding.weight
        self.frozen, self.unused = nn.Linear(4, 4).requires_grad_(False), nn.Linear(2, 2)
        self.register_buffer("places", torch.linspace(0.0, 1.0, 6)[:, None])

    def forward(self, x: torch.Tensor) -> Any:
        return self.out(self.frozen((self.embedding(x) + self.places).mean(1)))


def _convolutions() -> nn.Module:
    torch.manual_seed(5)
    layers = [nn.Conv2d(1, 4, 3), nn.GroupNorm(2, 4), nn.ReLU(), nn.MaxPool2d(2), nn.Conv2d(4, 3, 3), nn.Flatten()]
    return nn.Sequential(*layers)


#: Module and samples.
MODULES: dict[str, tuple[Callable[[], nn.Module], Callable[[], Pair]]] = {
    "dense": (dense, classes),
    "convolutions": (_convolutions, images),
    "tied": (Tied, tokens),
}


def plain_gradients(
    module: nn.Module,
    pair: Pair,
    parts: Sequence[Array],
    models: Array,
    k: int,
    *,
    seed: int = 0,
    batch_size: int = 4,
    criterion: Callable[..., Any] = nn.functional.cross_entropy,
) -> Array:
    """A module per worker, its own batch, autograd: what a person would write."""
    out = []
    for worker in range(M):
        net = copy.deepcopy(module).to(torch.from_numpy(models).dtype)
        trained = [parameter for parameter in net.parameters() if parameter.requires_grad]
        row = torch.from_numpy(models[worker])
        for parameter, value in zip(trained, row.split([p.numel() for p in trained]), strict=True):
            parameter.data = value.view_as(parameter).clone()
        drawn = reference.philox_integers(batch_size, high=len(parts[worker]), seed=seed, stream=(0, worker, k))
        x, y = (part[parts[worker][drawn]] for part in pair)
        x, y = (part.to(row.dtype) if part.is_floating_point() else part for part in (x, y))
        criterion(net(x), y).backward()
        made = [torch.zeros_like(p) if p.grad is None else p.grad for p in trained]
        out.append(torch.cat([gradient.flatten() for gradient in made]).numpy())
    return np.stack(out)
