"""Loss, accuracy and custom metrics of one model on many samples, a chunk at a time."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import torch

from byzadmm.torch._replica import Replica
from byzadmm.torch._samples import Samples

__all__ = ["Metric", "check_metrics", "measure"]

Metric = Callable[[torch.Tensor, torch.Tensor], Any]

_CHUNK = 1000  # samples of one forward pass
_TAKEN = ("loss", "test_loss", "consensus_gap", "distance")


def measure(
    replica: Replica, row: torch.Tensor, samples: Samples, kind: str, metrics: Mapping[str, Metric]
) -> dict[str, float]:
    """Mean loss of the model ``row`` (d,), its accuracy unless ``kind`` is "real", and the metrics.

    A metric gets all outputs and targets at once; the loss is the mean over chunks, weighted by their sizes.
    """
    total, right, count, kept = 0.0, 0, 0, []
    replica.hold(row)
    for at in range(0, len(samples), _CHUNK):
        x, y = samples.of(slice(at, at + _CHUNK), row.dtype)
        with torch.no_grad():
            loss, outputs = replica.loss(x, y)
        total += float(loss) * len(x)
        if kind != "real":
            predicted = outputs.argmax(1) if kind == "scores" else (outputs > 0).view_as(y)
            right, count = right + int((predicted == y).sum()), count + int((y >= 0).sum())
        if metrics:
            kept.append((outputs, y))
    found = {"accuracy": right / max(count, 1)} if kind != "real" else {}
    found["loss"] = total / len(samples)
    if metrics:
        outputs, targets = (torch.cat(parts) for parts in zip(*kept, strict=True))
        found |= {name: float(metric(outputs, targets)) for name, metric in metrics.items()}
    return found


def check_metrics(metrics: Mapping[str, Metric] | None) -> dict[str, Metric]:
    """A dict of names to functions; "accuracy" may be replaced, other curves may not."""
    if metrics is None:
        return {}
    if not isinstance(metrics, Mapping) or not all(isinstance(name, str) for name in metrics):
        raise TypeError(f"metrics: expected a dict of names to functions, got {type(metrics).__name__}")
    for name, metric in metrics.items():
        if name in _TAKEN:
            raise ValueError(f"metrics: {name} is the name of another curve")
        if not callable(metric):
            raise TypeError(f"metrics: {name}: expected a callable, got {type(metric).__name__}")
    return dict(metrics)
