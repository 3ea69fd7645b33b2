"""One round of gradients of a PyTorch module, 20 workers x 32 images of 28 x 28: our two ways, and a plain loop."""

from __future__ import annotations

import importlib.util
from collections.abc import Callable
from typing import Any

import numpy as np

from .common import Array, Benchmark, normal

M, BATCH, SAMPLES = 20, 32, 2000
WAYS = ["plain loop", "one by one", "at once"]


def dense() -> Any:
    from torch import nn

    return nn.Sequential(nn.Linear(784, 64), nn.ReLU(), nn.Linear(64, 10))


def cnn() -> Any:
    from torch import nn

    first = [nn.Unflatten(1, (1, 28, 28)), nn.Conv2d(1, 8, 5), nn.ReLU(), nn.MaxPool2d(2)]
    return nn.Sequential(*first, nn.Conv2d(8, 16, 5), nn.ReLU(), nn.MaxPool2d(2), nn.Flatten(), nn.Linear(256, 10))


NETS = {"dense": dense, "cnn": cnn}


class Rounds:
    """The samples, the workers' parts, and both contenders for one net."""

    def __init__(self, net: Callable[[], Any], threads: int = 1) -> None:
        import torch

        torch.set_num_threads(threads)
        torch.manual_seed(0)
        self.torch, self.net = torch, net()
        self.x = torch.from_numpy(normal(SAMPLES, 784))
        self.y = torch.from_numpy(np.random.default_rng(0).integers(0, 10, SAMPLES))
        self.parts = np.array_split(np.arange(SAMPLES), M)

    def ours(self, vectorize: bool) -> tuple[Any, Callable[[], Array]]:
        """The loss, and a call that gives the gradients of the next round at a model per worker."""
        from byzadmm.torch import ModuleLoss

        loss = ModuleLoss(self.net, (self.x, self.y), self.parts, vectorize=vectorize)
        models = np.repeat(loss.initial().astype(np.float32)[None], M, axis=0)
        out, k = np.empty_like(models), [0]

        def advance() -> Array:
            k[0] += 1
            loss.gradients(models, workers=range(M), k=k[0], out=out)
            return out

        return loss, advance

    def plain(self) -> Callable[[], Any]:
        """A module per worker and autograd, as a person would write it."""
        import copy

        torch, x, y = self.torch, self.x, self.y
        models = [copy.deepcopy(self.net) for _ in range(M)]
        parts = [torch.from_numpy(part) for part in self.parts]

        def advance() -> Any:
            for model, part in zip(models, parts, strict=True):
                rows = part[torch.randint(len(part), (BATCH,))]
                model.zero_grad()
                torch.nn.functional.cross_entropy(model(x[rows]), y[rows]).backward()
            return models

        return advance


class Modules(Benchmark):
    """``ModuleLoss.gradients`` beside a plain loop; the error is that of float32 against float64."""

    param_names = ("net", "way")
    params = (list(NETS), WAYS)

    def setup(self, net: str, way: str) -> None:
        if importlib.util.find_spec("torch") is None:
            raise NotImplementedError("needs PyTorch")
        rounds = Rounds(NETS[net])
        if way == "plain loop":
            self.call = rounds.plain()
            return
        loss, self.call = rounds.ours(way == "at once")

        def both() -> list[Array]:
            x = loss.initial()
            return [loss.gradient(x.astype(dtype), worker=0, k=1) for dtype in (np.float32, np.float64)]

        self.both = both

    def track_error(self, net: str, way: str) -> float:
        if way == "plain loop":
            return 0.0
        single, double = self.both()
        return float(np.max(np.abs(single - double)) / np.max(np.abs(double)))

    track_error.unit = "relative error"  # type: ignore[attr-defined]
