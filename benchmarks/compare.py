"""Our kernels against NumPy, both timed in this one run: a table of ratios, and the same as JSON.

Other groups of rows are added in ``ROWS``; what calls need in memory is in ``memory.py``.
"""

from __future__ import annotations

import argparse
import importlib
import json
import os
import platform
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from measure import Measured, Row, measure

if TYPE_CHECKING:
    from memory import MemoryRow

#: Modules with a function ``rows()``, in the order of the table.
ROWS = ["rows_kernels", "rows_regression", "rows_training", "rows_rules", "rows_filters", "rows_redundancy"]
ROWS += ["rows_asynchronous", "rows_torch"]

# The baselines run on one thread; a BLAS reads this when NumPy is imported, so nothing above imports it.
ONE_THREAD = ["OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "BLIS_NUM_THREADS", "VECLIB_MAXIMUM_THREADS"]

MEMORY = "memory beyond the arguments, at the peak"
HEADING = f"{'ours':<34}{'against':<23}{'ratio':>7}  {'target':<7}{'':<7}"


def _line(measured: Measured) -> str:
    row = measured.row
    ratio = f"{measured.ratio:.3g}x" if measured.ratio < 100 else f"{measured.ratio:.0f}x"
    return f"{row.what:<34.33}{row.against:<23.22}{ratio:>7}  {row.target:<8}{measured.verdict:<7}".rstrip()


def _record(measured: Measured) -> dict[str, object]:
    row = measured.row
    return {
        "area": row.area,
        "ours": row.what,
        "against": row.against,
        "seconds_ours": measured.ours,
        "seconds_against": measured.theirs,
        "ratio": measured.ratio,
        "target": row.target,
        "verdict": measured.verdict,
    }


def _selected(rows: Sequence[Row], pattern: str | None) -> list[Row]:
    return [row for row in rows if pattern is None or pattern.lower() in row.name.lower()]


def _memory(pattern: str | None) -> list[MemoryRow]:
    import memory

    chosen = [row for row in memory.rows() if pattern is None or pattern.lower() in f"{MEMORY}: {row.what}".lower()]
    return chosen if memory.available() else []


def _print_memory(rows: Sequence[MemoryRow]) -> list[dict[str, object]]:
    import memory

    found: list[dict[str, object]] = []
    if rows:
        print(f"\n{MEMORY}\n{'ours':<37}{'unit':<20}{'units':>7}  target\n{'-' * 80}")
    for row in rows:
        units = memory.measure(row)
        verdict = "reached" if units <= row.at_most else "MISSED"
        print(f"{row.what:<37}{row.unit:<20}{units:>7.3g}  {row.target:<8}{verdict}", flush=True)
        found.append({"ours": row.what, "unit": row.unit, "units": units, "target": row.target, "verdict": verdict})
    return found


def main(arguments: Sequence[str] | None = None) -> int:
    """Print the table; 1 if a target was missed, 2 if no row was selected."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0], epilog="Exit code 1: some target was missed.")
    parser.add_argument("--json", type=Path, metavar="FILE", help="also write the figures there")
    parser.add_argument("--plot", type=Path, metavar="FILE.png", help="also draw the ratios and a roofline there")
    parser.add_argument("--quick", action="store_true", help="fewer repetitions: a look, not a measurement")
    parser.add_argument("--only", metavar="TEXT", help="only rows with this text in 'area: ours / against'")
    parser.add_argument(
        "--cpu", action="store_true", help="processor time, for a busy machine; leaves out rows with several threads"
    )
    options = parser.parse_args(arguments)

    os.environ.update(dict.fromkeys(ONE_THREAD, "1"))
    rows = _selected([row for module in ROWS for row in importlib.import_module(module).rows()], options.only)
    rows = [row for row in rows if row.threads == 1 or not options.cpu]
    clock = time.thread_time if options.cpu else time.perf_counter
    memory_rows = _memory(options.only)
    if not rows and not memory_rows:
        print(f"--only: no row has {options.only!r} in its name", file=sys.stderr)
        return 2
    import numpy as np

    import byzadmm
    from byzadmm import _core

    about = {
        "byzadmm": byzadmm.__version__,
        "isa": _core.isa,
        "numpy": np.__version__,
        "python": platform.python_version(),
        "machine": platform.machine(),
        "cores": os.cpu_count(),
        "clock": "processor time" if options.cpu else "wall",
    }
    print(", ".join(f"{key} {value}" for key, value in about.items()))
    print("Best of repeated timings, the two contenders in turn; the baselines have one thread.")
    print("Ratio: how many times faster ours is; where the target is '<=', how many times longer it takes.\n")
    done: list[Measured] = []
    seconds, rounds = (0.1, 2) if options.quick else (1.0, 7)
    for row in rows:
        if not done or done[-1].row.area != row.area:
            print(f"{'' if not done else chr(10)}{row.area}\n{HEADING}\n{'-' * 80}")
        done.append(measure(row, seconds=seconds, rounds=rounds, clock=clock))
        print(_line(done[-1]), flush=True)
    needs = _print_memory(memory_rows)
    missed = [m.verdict for m in done if m.verdict == "MISSED"] + [n for n in needs if n["verdict"] == "MISSED"]
    slower = [m for m in done if m.verdict == "slower"]
    targets = sum(1 for m in done if m.row.target) + len(needs)
    print(f"\n{targets - len(missed)} of {targets} targets reached; the other is faster in {len(slower)} ('slower').")
    if options.json:
        figures = {"about": about, "rows": [_record(m) for m in done], "memory": needs}
        options.json.write_text(json.dumps(figures, indent=1) + "\n")
    if options.plot:
        import plot

        plot.draw(done, options.plot, ", ".join(f"{key} {value}" for key, value in about.items()), seconds=seconds)
    return 1 if missed else 0


if __name__ == "__main__":
    sys.exit(main())
