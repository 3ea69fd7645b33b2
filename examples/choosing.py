"""Which algorithm suits workers with different data: all tuned alike without attack, then under several attacks.

    python examples/choosing.py
"""

import argparse

import byzadmm

ATTACKS = ["none", "sign-flip", "duplicate", "alie", "label-flip"]


def main(quick=False):
    study = byzadmm.compare(
        "digits",
        partition="dirichlet:0.3",
        algorithms=["ideal", "admm", "rsa", "nnm+trimmed-mean", "nnm+krum", "geometric-median"],
        attacks=ATTACKS[:2] if quick else ATTACKS,
        n_byzantine=4,
        seeds=1 if quick else 5,
        iterations=200 if quick else 500,
        tune={"budget": 2 if quick else 8, "attack": "none"},
        progress=True,
    )
    print(study.table())


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--quick", action="store_true", help="a few seconds: two attacks, one seed, a short search")
    main(**vars(parser.parse_args()))
