"""What a module is like: its parameters, its outputs, whether it draws random numbers or remembers what it saw."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import torch

from byzadmm.torch._replica import Criterion, Replica
from byzadmm.torch._samples import Samples

__all__ = ["Found", "check_device", "examine", "takes_logits", "trained"]


@dataclass(frozen=True)
class Found:
    """What one pass told.

    Attributes
    ----------
    kind : "scores", "logits" or "real"
        Targets are labels and outputs are scores (B, K, ...); labels 0 and 1, and outputs are logits; anything else.
    n_classes : int
        0 for "real".
    draws : bool
        Whether a pass takes random numbers: dropout and its like.
    """

    kind: str
    n_classes: int
    draws: bool

    def checked_kind(self, **every: Samples | None) -> str:
        """The kind, given all samples: labels beyond the scores are an error, logits of other targets are "real"."""
        for name, samples in every.items():
            if samples is None or self.kind == "real":
                continue
            y = samples.targets
            if self.kind == "logits" and not bool(((y == 0) | (y == 1)).all()):
                return "real"
            if int(y.max()) >= self.n_classes:
                raise ValueError(f"{name}: expected labels in [0, {self.n_classes}), got {int(y.max())}")
        return self.kind


def takes_logits(criterion: Criterion) -> bool:
    """Whether it is torch's binary cross-entropy, whose targets are 0 and 1, of a floating type."""
    return criterion is torch.nn.functional.binary_cross_entropy_with_logits or isinstance(
        criterion, torch.nn.BCEWithLogitsLoss
    )


def trained(module: torch.nn.Module) -> dict[str, torch.nn.Parameter]:
    """The parameters that require a gradient, by name; one that is used in several places has one name."""
    for name, layer in module.named_modules():
        if getattr(layer, "track_running_stats", False) and layer.training:
            raise ValueError(
                f"module: {name or 'it'} ({type(layer).__name__}) keeps running statistics, which every worker would "
                "change for all others; use GroupNorm or LayerNorm, or track_running_stats=False"
            )
    held = dict(module.named_parameters())
    for name, parameter in held.items():
        if torch.nn.parameter.is_lazy(parameter):
            raise ValueError(f"module: {name} has no shape yet; call the module once on a batch of inputs")
        if parameter.is_complex():
            raise TypeError(f"module: {name} is complex; expected real parameters")
    found = {name: parameter for name, parameter in held.items() if parameter.requires_grad}
    if not sum(parameter.numel() for parameter in found.values()):
        raise ValueError("module: expected parameters that require a gradient, got none")
    for name, parameter in found.items():
        if not bool(torch.isfinite(parameter).all()):
            raise ValueError(f"module: {name}: expected finite numbers")
    return found


def examine(build: Callable[[bool], Replica], start: torch.Tensor, samples: Samples, criterion: Criterion) -> Found:
    """Run the module forward on a few samples, in training and in evaluation mode, and see what it does.

    Parameters
    ----------
    build : callable
        A new replica: for training (True) or for evaluation (False).
    start : (d,) tensor
    samples : Samples
        The few.
    criterion
        As it was given.
    """
    if getattr(criterion, "reduction", "mean") != "mean":
        raise ValueError(f"criterion: expected the mean over a batch, got reduction={criterion.reduction!r}")  # type: ignore[attr-defined]
    draws, outputs = False, torch.empty(0)
    x, y = samples.of(slice(None), start.dtype)
    for training in (True, False):
        replica = build(training)
        replica.hold(start.clone())
        kept = dict(replica.module.named_buffers()) | dict(replica.module.named_parameters())
        before = {name: tensor.detach().clone() for name, tensor in kept.items()}
        with torch.random.fork_rng(devices=[]), torch.no_grad():
            state = torch.get_rng_state()
            try:
                loss, outputs = replica.loss(x, y)
            except (RuntimeError, ValueError, IndexError, TypeError) as error:
                shapes = f"{tuple(x.shape)} and targets of shape {tuple(y.shape)}"
                raise ValueError(f"module: fails for inputs of shape {shapes} ({error})") from error
            draws = draws or start.device.type != "cpu" or not torch.equal(state, torch.get_rng_state())
        if not isinstance(loss, torch.Tensor) or loss.ndim != 0:
            got = tuple(loss.shape) if isinstance(loss, torch.Tensor) else type(loss).__name__
            raise ValueError(f"criterion: expected one number, the mean over a batch, got {got}")
        after = dict(replica.module.named_buffers()) | dict(replica.module.named_parameters())
        for name, old in before.items():
            if name not in after or not torch.equal(old, after[name]):
                raise ValueError(f"module: {name} changes in a forward pass, which one worker would do to all others")
    return Found(*_kind(outputs, y, criterion), draws)


def _kind(outputs: torch.Tensor, y: torch.Tensor, criterion: Criterion) -> tuple[str, int]:
    if takes_logits(criterion):
        return ("logits", 2) if outputs.numel() == y.numel() else ("real", 0)
    if not y.is_floating_point() and outputs.ndim == y.ndim + 1 and outputs.shape[1] > 1:
        return "scores", int(outputs.shape[1])
    return "real", 0


def check_device(device: str | torch.device) -> torch.device:
    """``device`` if torch can use it here."""
    try:
        checked = torch.device(device)
        torch.empty(1, device=checked)
    except (RuntimeError, AssertionError, TypeError) as error:
        raise ValueError(f"device: torch cannot use {device!r} here ({str(error).splitlines()[0]})") from error
    return checked
