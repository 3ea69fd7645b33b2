"""The instruction set that the kernels run: the best one that this CPU has.

Each has a module of compiled kernels of its own (``_kernels_baseline``, ``_kernels_avx2``, ``_kernels_avx512``), which
``byzadmm._core`` calls through a table; that of AVX-512 has the kernels that gain by it, and the others from AVX2.
``BYZADMM_ISA=baseline|avx2|avx512`` overrides the choice.
"""

from __future__ import annotations

import importlib
import importlib.util
import os

from byzadmm._kernels_baseline import supports

#: Slowest to fastest.
KNOWN = ("baseline", "avx2", "avx512")
#: The first that is built and runs is chosen. avx512 by itself only on CPUs that have a later part of it too: the first
#: CPUs with AVX-512 lower their clock for it.
AUTOMATIC = {"avx512": ("avx512", "avx512vbmi2"), "avx2": ("avx2",), "baseline": ("baseline",)}
#: The module that another one needs.
NEEDED = {"avx512": "avx2"}


def built() -> tuple[str, ...]:
    """The instruction sets in this installation."""
    found = {isa for isa in KNOWN if importlib.util.find_spec(f"byzadmm._kernels_{isa}") is not None}
    return tuple(isa for isa in KNOWN if isa in found and NEEDED.get(isa, isa) in found)


def choose(wanted: str | None) -> str:
    """The instruction set to run: ``wanted`` if given (an error if it cannot run), else the best automatic one."""
    here = built()
    if not wanted:
        return next(isa for isa, needed in AUTOMATIC.items() if isa in here and all(map(supports, needed)))
    if wanted not in KNOWN:
        raise ImportError(f"BYZADMM_ISA: expected one of {', '.join(KNOWN)}; got {wanted!r}")
    if not supports(wanted):
        raise ImportError(f"BYZADMM_ISA: this CPU does not support {wanted!r}")
    if wanted not in here:
        raise ImportError(f"BYZADMM_ISA: {wanted!r} is not in this build, which has {', '.join(here)}")
    return wanted


chosen = importlib.import_module(f"byzadmm._kernels_{choose(os.environ.get('BYZADMM_ISA'))}")
