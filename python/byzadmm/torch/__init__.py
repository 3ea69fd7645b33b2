"""PyTorch modules as losses; needs the extra ``torch``, and nothing else in the package imports it."""

from __future__ import annotations

import importlib.util

if importlib.util.find_spec("torch") is None:
    raise ImportError("byzadmm.torch needs PyTorch: pip install 'byzadmm[torch]'")

from byzadmm.torch.loss import ModuleLoss

__all__ = ["ModuleLoss"]
