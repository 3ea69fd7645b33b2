"""The instruction set that the kernels run: the best one that this CPU has.

Each has a module of compiled kernels of its own (``_kernels_baseline``, ``_kernels_avx2``), which ``byzadmm._core``
calls through a table. ``BYZADMM_ISA=baseline|avx2|avx512`` overrides the choice.
"""

from __future__ import annotations

import importlib
import importlib.util
import os

from byzadmm._kernels_baseline import supports

#: Slowest to fastest. avx512 is built only on request (CMake option BYZADMM_AVX512) and never chosen by itself.
KNOWN = ("baseline", "avx2", "avx512")
AUTOMATIC = ("avx2", "baseline")


def built() -> tuple[str, ...]:
    """The instruction sets in this installation."""
    return tuple(isa for isa in KNOWN if importlib.util.find_spec(f"byzadmm._kernels_{isa}") is not None)


def choose(wanted: str | None) -> str:
    """The instruction set to run: ``wanted`` if given (an error if it cannot run), else the best automatic one."""
    here = built()
    if not wanted:
        return next(isa for isa in AUTOMATIC if isa in here and supports(isa))
    if wanted not in KNOWN:
        raise ImportError(f"BYZADMM_ISA: expected one of {', '.join(KNOWN)}; got {wanted!r}")
    if not supports(wanted):
        raise ImportError(f"BYZADMM_ISA: this CPU does not support {wanted!r}")
    if wanted not in here:
        raise ImportError(f"BYZADMM_ISA: {wanted!r} is not in this build, which has {', '.join(here)}")
    return wanted


chosen = importlib.import_module(f"byzadmm._kernels_{choose(os.environ.get('BYZADMM_ISA'))}")
