"""What a master does with messages before it combines them: a weight per message, zero for those that it excludes.

``SGD(rule="mean", filter=Zeno(b=8))`` filters first, then applies the rule to the messages of positive weight. Filters
have a memory of earlier rounds (:class:`ByzantineSGD`, :class:`Safeguard`), clean samples of the master's own
(``simulate(validation=)``: :class:`Zeno`, :class:`FLTrust`, :class:`Comparison`), or both (:class:`Reconstruction`).
Your own is a subclass of :class:`Filter`, or any object with its methods (``docs/filters.md``).
"""

from byzadmm.filters import byzantine_sgd, clean, reconstruction, safeguard, zeno
from byzadmm.filters.base import REGISTRY, Filter
from byzadmm.filters.byzantine_sgd import *  # noqa: F403
from byzadmm.filters.clean import *  # noqa: F403
from byzadmm.filters.reconstruction import *  # noqa: F403
from byzadmm.filters.safeguard import *  # noqa: F403
from byzadmm.filters.zeno import *  # noqa: F403

__all__ = ["REGISTRY", "Filter"]
__all__ += zeno.__all__
__all__ += clean.__all__
__all__ += byzantine_sgd.__all__
__all__ += safeguard.__all__
__all__ += reconstruction.__all__
