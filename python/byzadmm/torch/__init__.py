"""PyTorch modules as losses; needs the extra ``torch``, and nothing else in the package imports it."""

from __future__ import annotations

try:
    import torch as _torch  # noqa: F401
except ImportError as error:
    raise ImportError(f"byzadmm.torch needs PyTorch: pip install 'byzadmm[torch]' ({error})") from error

from byzadmm.torch.loss import ModuleLoss

__all__ = ["ModuleLoss"]
