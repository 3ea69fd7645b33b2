"""Robust rules: one vector from the vectors of n workers, of which at most ``f`` are Byzantine.

Rows are workers. A row with NaN or an infinity is Byzantine: by default it is excluded, and ``f`` is lowered by one.
Inputs are never modified. Results have the kind and dtype of the input; float16 and bfloat16 are computed in float32,
and an ``out`` for them is float32. Ties go to the lowest index. Results have the same bits for every thread count.
``docs/rules.md`` has definitions, legal ``f`` and breakdown points.
"""

from __future__ import annotations

# Every list of the rules is in the order of these lines; their names are listed once, in each module's __all__.
# isort: off
from byzadmm.aggregate.coordinatewise import *  # noqa: F403
from byzadmm.aggregate.geometric import *  # noqa: F403
from byzadmm.aggregate.selection import *  # noqa: F403
from byzadmm.aggregate.spread import *  # noqa: F403
from byzadmm.aggregate.centered import *  # noqa: F403
from byzadmm.aggregate.outliers import *  # noqa: F403
from byzadmm.aggregate.preaggregation import *  # noqa: F403

# isort: on
from byzadmm.aggregate import centered, coordinatewise, geometric, outliers, preaggregation, selection, spread
from byzadmm.aggregate._call import Info
from byzadmm.aggregate._registry import max_f
from byzadmm.aggregate._weights import cap_weights

__all__ = ["Info", "cap_weights", "max_f"]
__all__ += coordinatewise.__all__
__all__ += geometric.__all__
__all__ += selection.__all__
__all__ += spread.__all__
__all__ += centered.__all__
__all__ += outliers.__all__
__all__ += preaggregation.__all__
