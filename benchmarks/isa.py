"""Every kernel on one instruction set against another, in one run: a table of how many times faster the first is."""

from __future__ import annotations

import argparse
import importlib
import os
import sys
import time
from collections.abc import Callable, Sequence
from functools import partial

from compare import ONE_THREAD
from measure import Call, Row, measure


def main(arguments: Sequence[str] | None = None) -> int:
    """Print the table; 2 if no row was selected."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("sets", nargs="*", default=["avx512", "avx2"], help="two that are built and run here")
    parser.add_argument("--dtype", nargs="+", default=["float32", "float64"])
    parser.add_argument("--only", metavar="TEXT", default="", help="only rows with this text in 'area: name'")
    parser.add_argument("--seconds", type=float, default=0.5, metavar="T", help="for each row (0.5)")
    options = parser.parse_args(arguments)
    os.environ.update(dict.fromkeys(ONE_THREAD, "1"))
    from every import every

    from byzadmm import _core

    tables = [importlib.import_module(f"byzadmm._kernels_{isa}").table for isa in options.sets]

    def on(table: object, make: Callable[[int], Call]) -> Call:
        _core.use(table)  # a loss keeps the kernels of the set in which it was made
        call = make(1)

        def used() -> None:
            _core.use(table)
            call()

        return used

    found = 0
    for dtype in options.dtype:
        area = ""
        for kernel in every(dtype):
            if options.only.lower() not in f"{kernel.area}: {kernel.name}".lower():
                continue
            if kernel.area != area:
                area = kernel.area
                print(f"\n{area}, {dtype}\n{'kernel':<34}{'ms':>9}  {options.sets[0]} against {options.sets[1]}")
            pair = tuple(partial(on, table, kernel.make) for table in tables)
            row = Row(area, kernel.name, "", lambda pair=pair: (pair[0](), pair[1]()))
            measured = measure(row, seconds=options.seconds, rounds=5, clock=time.thread_time)
            print(f"{kernel.name:<34.33}{1e3 * measured.ours:>9.3f}  {measured.ratio:.2f}x", flush=True)
            found += 1
    return 0 if found else 2


if __name__ == "__main__":
    sys.exit(main())
