"""Linear regression with real targets under attack: the mean fails; ADMM, RSA and the geometric median do not.

    python examples/regression.py
"""

import argparse

import numpy as np

import byzadmm
from byzadmm import datasets


def prices(n=5000, features=20, seed=0):
    """Targets around 300 with deviation 100, linear in standardized features up to noise; a fifth is the test set."""
    rng = np.random.default_rng(seed)
    x = rng.standard_normal((n, features))
    y = x @ rng.standard_normal(features) + rng.standard_normal(n)
    y = 300 + 100 * y / y.std()
    split = n * 4 // 5
    return datasets.from_arrays(x[:split], y[:split], x[split:], y[split:], name="prices")


def closed_form(data):
    """The test set's r2 of the least-squares solution on all training samples, without workers."""
    train, test = (np.c_[x, np.ones(len(x))] for x in (data.train_x, data.test_x))
    w = np.linalg.lstsq(train, data.train_y, rcond=None)[0]
    return 1 - np.mean((test @ w - data.test_y) ** 2) / np.var(data.test_y)


def main(quick=False):
    data = prices()
    study = byzadmm.compare(
        data,
        algorithms=["ideal", "admm", "rsa", "geometric-median", "sgd"],
        attacks=[None, "sign-flip", "gaussian", "alie"],
        n_byzantine=8,
        seeds=1 if quick else 5,
        iterations=200 if quick else 1000,
    )
    print(study.table(metric="r2"))
    print(f"\nr2 of the least-squares solution: {closed_form(data):.3f}")
    study.plot("regression.png", metric="r2")


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--quick", action="store_true", help="200 iterations and one seed")
    main(**vars(parser.parse_args()))
