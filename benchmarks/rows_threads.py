"""Rows of the comparison for a second thread: every kernel with a millisecond of work or more, float32."""

from __future__ import annotations

from functools import partial

from every import Kernel, every
from measure import Call, Row

__all__ = ["rows"]


def _pair(kernel: Kernel) -> tuple[Call, Call]:
    return kernel.make(2), kernel.make(1)


def rows() -> list[Row]:
    """In the order of the kernels."""
    return [
        Row(f"two threads: {kernel.area}", kernel.name, "one thread", partial(_pair, kernel), at_least=1.85, threads=2)
        for kernel in every("float32")
        if kernel.long
    ]
