"""One worker is ten times slower than the others: ADMM, which waits for it in every round, and asynchronous ADMM.

    python examples/stragglers.py
"""

import argparse

import byzadmm
from byzadmm import delays


def main(quick=False):
    study = byzadmm.compare(
        "digits",
        algorithms={"in rounds": "admm", "asynchronous": "async-admm:barrier=10"},
        attacks=[None, "sign-flip"],
        delays=delays.Stragglers(workers=0, factor=10),
        until=100 if quick else 1000,
        seeds=1 if quick else 3,
        progress=True,
    )
    print(study.table(reference="in rounds"))
    study.plot("stragglers.png", x="time")


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--quick", action="store_true", help="a few seconds: a tenth of the time, one seed")
    main(**vars(parser.parse_args()))
