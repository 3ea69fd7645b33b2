"""Rows of the comparison for redundant gradients: decoding against the mean of the same rows, one thread."""

from __future__ import annotations

from measure import Call, Row
from rows_kernels import normal

from byzadmm import aggregate, redundancy

__all__ = ["rows"]


def _pair(code: redundancy.Code, m: int, d: int, dtype: str) -> tuple[Call, Call]:
    Z = redundancy.encode(normal(m, d).astype(dtype), code, threads=1)
    Z[1] *= -3  # one attacker
    return lambda: redundancy.decode(Z, code, threads=1), lambda: aggregate.mean(Z, threads=1)


def _row(code: redundancy.Code, m: int, d: int, dtype: str) -> Row:
    name = f"{type(code).__name__}({', '.join(map(str, vars(code).values()))}) of {m}, {dtype}"
    area = f"redundant gradients, d = {d}, one thread"
    return Row(area, name, "mean of the rows", lambda: _pair(code, m, d, dtype), None, 4)


def rows() -> list[Row]:
    """Both codes, with few workers and more, in both types."""
    codes = [(redundancy.Cyclic(2), 7), (redundancy.Cyclic(3), 15), (redundancy.Repetition(3), 15)]
    return [_row(code, m, 100_000, dtype) for code, m in codes for dtype in ("float32", "float64")]
