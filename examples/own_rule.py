"""A rule of your own in two lines, beside the built-in ones: SGD combines the gradients with it.

    python examples/own_rule.py
"""

import argparse

import numpy as np

import byzadmm
from byzadmm import SGD, datasets


def halfway(gradients):
    """The mean of the rows whose length is at most the median length."""
    lengths = np.linalg.norm(gradients, axis=1)
    return gradients[lengths <= np.median(lengths)].mean(axis=0)


def main(quick=False):
    data = datasets.load("digits")
    study = byzadmm.compare(
        data,
        algorithms={
            "ideal": "ideal",
            "halfway": halfway,
            "halfway, momentum": SGD.for_dataset(data, rule=halfway, momentum=0.9),
            "NNM, then halfway": SGD.for_dataset(data, rule=["nnm", halfway]),
            "trimmed mean": "trimmed-mean",
            "mean": "sgd",
        },
        attacks=["sign-flip", "gaussian", "alie"],
        n_byzantine=8,
        seeds=2 if quick else 5,
        iterations=200 if quick else 1000,
        progress=True,
    )
    print(study.table())
    study.heatmap("own_rule.png")


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--quick", action="store_true", help="a few seconds: fewer iterations and seeds")
    main(**vars(parser.parse_args()))
