"""The rules as configured objects, under the class names used in the literature: ``Krum(f=2)(X)`` is ``krum(X, f=2)``.

There is one class for each function of ``byzadmm.aggregate``; its fields are the function's settings, with the same
defaults. An object holds settings only and keeps nothing from one call to the next. ``X`` is what the functions
take, and so are further keywords of the call (``out``, ``threads``, ``return_info``). :class:`Chain` puts
pre-aggregations before a rule, :func:`make` builds a chain from names.

Examples
--------
>>> from byzadmm.aggregators import NNM, Krum
>>> Krum(f=1)([[1.0], [1.25], [0.75], [1.5], [50.0]]).tolist()
[1.0]
>>> NNM(f=1)([[0.0], [2.0], [50.0]]).tolist()
[[1.0], [1.0], [26.0]]
>>> Krum(f=1)
Krum(nonfinite='exclude', f=1, neighbors=None, weights=None)
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from byzadmm.aggregate._registry import RULES as _RULES
from byzadmm.aggregators.chain import Chain, make, reach
from byzadmm.aggregators.configured import NAMED as NAMED
from byzadmm.aggregators.configured import PRE_AGGREGATORS, RULES, Aggregator, add

__all__ = ["PRE_AGGREGATORS", "RULES", "Aggregator", "Chain", "make", "reach"]

for _name in _RULES:
    _kind = add(_name)
    globals()[_kind.__name__] = _kind
    __all__.append(_kind.__name__)

if TYPE_CHECKING:

    def __getattr__(name: str) -> Any:
        """The classes made above, which a type checker cannot see."""
