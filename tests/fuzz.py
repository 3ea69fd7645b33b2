"""Hostile inputs for every rule, for as long as one likes: python tests/fuzz.py --seconds 600

Prints a line every few seconds, every failure in a form that reproduces it, and at the end the number of inputs tried.
The exit code is 1 if an input failed.
"""

from __future__ import annotations

import argparse
import sys
import time
from collections import Counter
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))

from support.hostile import PLANS, case

_EXAMPLES = """examples:
  python tests/fuzz.py --seconds 600                    ten minutes of every rule and chain
  python tests/fuzz.py --seconds 60 --rule krum         every chain in which krum takes part
  python tests/fuzz.py --seconds 60 --rule bucketing+median --seed 7
  python tests/fuzz.py --seed 0 --index 1234            one input again, as a failure names it
"""


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(
        description="Send hostile finite rows through every rule and chain, and judge the results in exact arithmetic.",
        epilog=_EXAMPLES,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--seconds", type=float, default=60.0, help="how long to go on (default: 60)")
    parser.add_argument("--seed", type=int, default=None, help="of the stream of inputs (default: from the clock)")
    parser.add_argument(
        "--rule", nargs="+", metavar="NAME", help="rules, pre-aggregations, chains such as clip+median (default: all)"
    )
    parser.add_argument("--index", type=int, help="only the input with this number of the stream")
    parser.add_argument("--show", type=int, default=20, metavar="N", help="failures printed in full (default: 20)")
    given = parser.parse_args(arguments)
    known = {name for plan in PLANS for name in (*plan, "+".join(plan))}
    for name in given.rule or []:
        if name not in known:
            parser.error(f"argument --rule: expected one of {', '.join(sorted(known))}; got {name}")
    wanted = set(given.rule or known)
    chosen = [plan for plan in PLANS if wanted & {*plan, "+".join(plan)}]
    seed = int(time.time()) if given.seed is None else given.seed
    start = said = time.monotonic()
    tried, failures = 0, Counter[str]()
    index = given.index or 0
    while given.index is None or not tried:
        if PLANS[index % len(PLANS)] in chosen or given.index is not None:
            tried += 1
            input_ = case(seed, index)
            try:
                input_.check()
            except AssertionError as error:
                failures[input_.links[-1].rule] += 1
                if failures.total() <= given.show:
                    print(f"FAILED {error}", flush=True)
        index += 1
        now = time.monotonic()
        if now - said >= 5:
            said = now
            print(f"{now - start:6.0f} s: {tried} inputs, {failures.total()} failed", flush=True)
        if now - start >= given.seconds:
            break
    for name, count in failures.most_common():
        print(f"{count:6d} failed in {name}")
    print(f"{tried} inputs tried, {failures.total()} failed, seed {seed}, {time.monotonic() - start:.0f} s")
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
