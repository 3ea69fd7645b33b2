"""The native kernels, built for the best instruction set that this CPU runs.

``BYZADMM_ISA=baseline|avx2|avx512`` overrides the choice. Each instruction set is an extension module of its own
(``_core_baseline``, ``_core_avx2``); this module shows the chosen one under the name ``byzadmm._core``.
"""

from __future__ import annotations

import importlib
import importlib.util
import os

from byzadmm import _cpu

#: Slowest to fastest. avx512 is built only on request (CMake option BYZADMM_AVX512) and never chosen by itself.
KNOWN = ("baseline", "avx2", "avx512")
AUTOMATIC = ("avx2", "baseline")


def built() -> tuple[str, ...]:
    """The instruction sets in this installation."""
    return tuple(isa for isa in KNOWN if importlib.util.find_spec(f"byzadmm._core_{isa}") is not None)


def choose(wanted: str | None) -> str:
    """The instruction set to run: ``wanted`` if given (an error if it cannot run), else the best automatic one."""
    here = built()
    if not wanted:
        return next(isa for isa in AUTOMATIC if isa in here and _cpu.supports(isa))
    if wanted not in KNOWN:
        raise ImportError(f"BYZADMM_ISA: expected one of {', '.join(KNOWN)}; got {wanted!r}")
    if not _cpu.supports(wanted):
        raise ImportError(f"BYZADMM_ISA: this CPU does not support {wanted!r}")
    if wanted not in here:
        raise ImportError(f"BYZADMM_ISA: {wanted!r} is not in this build, which has {', '.join(here)}")
    return wanted


_native = importlib.import_module(f"byzadmm._core_{choose(os.environ.get('BYZADMM_ISA'))}")
globals().update({name: value for name, value in vars(_native).items() if not name.startswith("__")})
__version__: str = _native.__version__
