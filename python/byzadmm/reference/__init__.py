"""NumPy twins of the native kernels: the independent oracle of the tests and the baseline of the benchmarks.

Each function has the name and arguments of its native twin, without ``out`` and ``threads``. Arguments are taken to be
valid: the public functions check them. Only errors that would pass silently are checked here.
"""

from __future__ import annotations

from . import (
    admm,
    arrivals,
    attacks,
    centered,
    coordinatewise,
    decentralized,
    filters,
    geometric,
    gradients,
    linear,
    outliers,
    philox,
    preaggregation,
    redundancy,
    rsa,
    sampling,
    selection,
    softmax,
    spread,
    training,
)
from .admm import *  # noqa: F403
from .arrivals import *  # noqa: F403
from .attacks import *  # noqa: F403
from .centered import *  # noqa: F403
from .coordinatewise import *  # noqa: F403
from .decentralized import *  # noqa: F403
from .filters import *  # noqa: F403
from .geometric import *  # noqa: F403
from .gradients import *  # noqa: F403
from .linear import *  # noqa: F403
from .outliers import *  # noqa: F403
from .philox import *  # noqa: F403
from .preaggregation import *  # noqa: F403
from .redundancy import *  # noqa: F403
from .rsa import *  # noqa: F403
from .sampling import *  # noqa: F403
from .selection import *  # noqa: F403
from .softmax import *  # noqa: F403
from .spread import *  # noqa: F403
from .training import *  # noqa: F403

__all__: list[str] = []
__all__ += admm.__all__
__all__ += arrivals.__all__
__all__ += attacks.__all__
__all__ += centered.__all__
__all__ += coordinatewise.__all__
__all__ += decentralized.__all__
__all__ += filters.__all__
__all__ += geometric.__all__
__all__ += gradients.__all__
__all__ += linear.__all__
__all__ += outliers.__all__
__all__ += philox.__all__
__all__ += preaggregation.__all__
__all__ += redundancy.__all__
__all__ += rsa.__all__
__all__ += sampling.__all__
__all__ += selection.__all__
__all__ += softmax.__all__
__all__ += spread.__all__
__all__ += training.__all__
