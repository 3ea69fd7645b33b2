"""The kernels that other projects call: gradients of regression models, the steps of ADMM and RSA, random numbers.

Every function takes NumPy arrays or anything like them (lists, tensors through DLPack), computes in float32 or float64
as its arguments are, writes to ``out`` if given, and uses ``threads`` threads (0: choose). float16 and bfloat16 are
computed in float32 and are returned in the type they came in (``out`` is float32). Results have the same bits for every
thread count. ``docs/algorithm.md`` has the equations.
"""

from __future__ import annotations

from byzadmm.kernels import linear, philox, softmax, steps
from byzadmm.kernels.linear import *  # noqa: F403
from byzadmm.kernels.philox import *  # noqa: F403
from byzadmm.kernels.softmax import *  # noqa: F403
from byzadmm.kernels.steps import *  # noqa: F403

__all__: list[str] = []
__all__ += softmax.__all__
__all__ += linear.__all__
__all__ += steps.__all__
__all__ += philox.__all__
