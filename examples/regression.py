"""Linear regression with real targets under attack: the mean fails; ADMM, RSA and the geometric median do not.

    python examples/regression.py            # 20 workers, 8 of them Byzantine, 1000 iterations
    python examples/regression.py --quick    # 200 iterations
"""

import argparse

import numpy as np

from byzadmm import ADMM, RSA, SGD, attacks, datasets, partition, simulate


def prices(n=5000, features=20, seed=0):
    """Targets around 300 with deviation 100, linear in standardized features up to noise; a fifth is the test set."""
    rng = np.random.default_rng(seed)
    x = rng.standard_normal((n, features))
    y = x @ rng.standard_normal(features) + rng.standard_normal(n)
    y = 300 + 100 * y / y.std()
    split = n * 4 // 5
    return datasets.Dataset("prices", x[:split], y[:split], x[split:], y[split:], n_classes=0, scale=1.0)


def closed_form(data):
    """The test set's r2 of the least-squares solution on all training samples, without workers."""
    train, test = (np.c_[x, np.ones(len(x))] for x in (data.train_x, data.test_x))
    w = np.linalg.lstsq(train, data.train_y, rcond=None)[0]
    return 1 - np.mean((test @ w - data.test_y) ** 2) / np.var(data.test_y)


def main():
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--quick", action="store_true", help="200 iterations in place of 1000")
    iterations = 200 if parser.parse_args().quick else 1000
    data = prices()
    parts = partition.iid(np.arange(len(data.train_x)), 20, seed=0)
    algorithms = {
        "Ideal SGD": SGD.for_dataset(data, ideal=True),
        "ADMM": ADMM.for_dataset(data),
        "RSA": RSA.for_dataset(data),
        "geometric median": SGD.for_dataset(data, rule="geometric_median"),
        "mean": SGD.for_dataset(data),
    }
    under = {"no attack": None, "sign flip": attacks.SignFlip(), "Gaussian": attacks.Gaussian(), "ALIE": attacks.ALIE()}
    print(f"r2 on the test set, 8 of 20 workers Byzantine; closed form {closed_form(data):.3f}")
    print(" " * 16, *(f"{name:>12}" for name in under))
    for label, algorithm in algorithms.items():
        found = [
            simulate(
                data, parts, loss="least-squares", algorithm=algorithm, attack=attack, n_byzantine=8,
                iterations=iterations,
            ).metrics["r2"][-1]
            for attack in under.values()
        ]  # fmt: skip
        print(f"{label:16}", *(f"{r2:12.3f}" if r2 > -10 else f"{'failed':>12}" for r2 in found))


if __name__ == "__main__":
    main()
