"""Federated learning under attack: 40 workers with data of their own kind, 12 of them per round, five local steps each.

    python examples/federated.py
"""

import argparse

import byzadmm
from byzadmm import SGD, steps

STEP = steps.power(1.0)
TOLERATED = 4  # Byzantine workers among the twelve of a round; 6 of 40 are Byzantine, so two are expected


def main(quick=False):
    study = byzadmm.compare(
        "digits",
        "dirichlet:0.3",
        algorithms={
            "ideal": SGD(ideal=True, step=STEP),
            "mean": SGD(step=STEP),
            "trimmed mean": SGD(rule="trimmed-mean", f=TOLERATED, step=STEP),
            "geometric median": SGD(rule="geometric-median", step=STEP),
            "NNM + median": SGD(rule="nnm+median", f=TOLERATED, step=STEP),
        },
        attacks=[None, "sign-flip", "gaussian", "label-flip"],
        n_workers=40,
        n_byzantine=6,
        seeds=1 if quick else 3,
        iterations=60 if quick else 1000,
        local_steps=5,
        participation=0.3,
        progress=True,
    )
    print(study.table())
    study.plot("federated.png")


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--quick", action="store_true", help="a few seconds: fewer rounds and seeds")
    main(**vars(parser.parse_args()))
