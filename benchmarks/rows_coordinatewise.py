"""Rows of the comparison for means and trimmed means, near what the machine can do, and two threads; float32."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from measure import Call, Row
from numpy.typing import NDArray
from rows_kernels import normal

from byzadmm import aggregate

__all__ = ["rows"]

Array = NDArray[Any]
Rule = Callable[[Array, int], object]  # rows and threads

RULES: dict[str, Rule] = {
    "mean": lambda X, threads: aggregate.mean(X, threads=threads),
    "median": lambda X, threads: aggregate.median(X, threads=threads),
    "trimmed_mean": lambda X, threads: aggregate.trimmed_mean(X, f=2 * len(X) // 5, threads=threads),
    "centered_clip x3": lambda X, threads: aggregate.centered_clip(X, tau=100, n_iter=3, threads=threads),
}


def _pair(ours: Callable[[Array], object], theirs: Callable[[Array], object], n: int, d: int) -> tuple[Call, Call]:
    X = normal(n, d)
    return lambda: ours(X), lambda: theirs(X)


def _row(name: str, against: str, theirs: Callable[[Array], object], shape: tuple[int, int], at_most: float) -> Row:
    area = "column by column, near the limit, float32, one thread"
    return Row(
        area, f"{name} {shape}", against, lambda: _pair(lambda X: RULES[name](X, 1), theirs, *shape), at_most=at_most
    )


def _on_two_threads(name: str, shape: tuple[int, int]) -> Row:
    rule = RULES[name]
    return Row(
        "two threads against one, float32", f"{name} {shape}", "our own on one thread",
        lambda: _pair(lambda X: rule(X, 2), lambda X: rule(X, 1), *shape), at_least=1.85, threads=2,
    )  # fmt: skip


def rows() -> list[Row]:
    """Against NumPy's sums, against our own median, and two threads."""
    found = [
        _row("mean", "X.sum(axis=0)", lambda X: X.sum(axis=0), (20, 1_000_000), 1.15),
        _row("mean", "X.mean(axis=0)", lambda X: X.mean(axis=0), (20, 7850), 1.1),
    ]
    for shape, at_most in [((20, 7850), 1.2), ((100, 100_000), 1.4), ((1000, 10_000), 1.4)]:
        found.append(_row("trimmed_mean", "our own median", lambda X: RULES["median"](X, 1), shape, at_most))
    return [
        *found,
        _on_two_threads("mean", (20, 1_000_000)),
        _on_two_threads("median", (20, 1_000_000)),
        _on_two_threads("trimmed_mean", (100, 100_000)),
        _on_two_threads("centered_clip x3", (20, 1_000_000)),
    ]
