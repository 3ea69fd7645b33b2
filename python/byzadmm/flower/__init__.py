"""A strategy of Flower's ServerApp that combines the replies of clients by any rule of :mod:`byzadmm.aggregators`.

Needs the extra ``flower`` (Flower 1.41 or newer, and with it Python 3.11), and nothing else in the package imports it.
``docs/flower.md`` explains it.
"""

from __future__ import annotations

try:
    import flwr.serverapp.strategy as _flower  # noqa: F401
except ImportError as error:
    raise ImportError(
        f"byzadmm.flower needs Flower 1.41 or newer, on Python 3.11 or newer: pip install 'byzadmm[flower]' ({error})"
    ) from error

from byzadmm.flower.replies import median_metrics
from byzadmm.flower.strategy import RobustStrategy

__all__ = ["RobustStrategy", "median_metrics"]
