"""A CNN with two convolutions on MNIST, 20 workers, 8 of them attackers: six algorithms under two attacks.

    python examples/torch_cnn.py            (MNIST from the folder BYZADMM_DATA, or downloaded)
    python examples/torch_cnn.py --tune     (searches the settings below first, on 5000 samples of the training set)
    python examples/torch_cnn.py --quick    (digits of 8 x 8 from inside the package)
"""

import argparse

import torch
from torch import nn

import byzadmm
from byzadmm import ADMM, RSA, SGD, attacks, datasets, steps
from byzadmm.torch import ModuleLoss

# Found with --tune, under sign-flip.
ALGORITHMS = {
    "Ideal SGD": SGD(ideal=True, step=steps.power(1.0)),
    "ADMM": ADMM(lam=0.004, beta=0.2, master_step=steps.inv_sqrt(4, 0.7), worker_step=steps.inv_sqrt(0.2, 0.7)),
    "RSA": RSA(lam=0.004, step=steps.power(1.0)),
    "NNM + trimmed mean": SGD(rule="nnm+trimmed_mean", momentum=0.9, step=steps.power(1.0)),
    "Geometric median": SGD(rule="geometric_median", step=steps.power(1.0)),
    "Mean": SGD(rule="mean", step=steps.power(1.0)),
}
RANGES = {"lam": (5e-4, 2e-2), "beta": (0.05, 5.0), "slope": (0.1, 3.0), "step": (0.2, 5.0)}


def network(side):
    torch.manual_seed(0)
    padding = 0 if side == 28 else 2
    width = 16 if side == 28 else (side // 4) ** 2
    return nn.Sequential(
        nn.Unflatten(1, (1, side, side)),  # the rows of a data set are flat
        *(nn.Conv2d(1, 8, 5, padding=padding), nn.ReLU(), nn.MaxPool2d(2)),
        *(nn.Conv2d(8, 16, 5, padding=padding), nn.ReLU(), nn.MaxPool2d(2)),
        *(nn.Flatten(), nn.Linear(16 * width, 10)),
    )


def main(quick=False, tune=False):
    torch.set_num_threads(1)  # the runs themselves are side by side
    data = datasets.load("digits" if quick else "mnist")
    net = network(8 if quick else 28)
    iterations = 100 if quick else 500
    study = byzadmm.compare(
        data,
        algorithms=ALGORITHMS,
        attacks=["sign-flip", attacks.ALIE()],
        n_workers=20,
        n_byzantine=8,
        seeds=1 if quick else 3,
        iterations=iterations,
        eval_every=iterations // 10,
        loss=lambda data, parts, **settings: ModuleLoss(net, data, parts, vectorize=False, **settings),
        tune={"budget": 5, "iterations": 150, "ranges": RANGES} if tune else None,
        progress=True,
    )
    for name, found in study.tuned.items():
        print(name, found)
    print(study.table())
    for name in ALGORITHMS:
        spent = [row["seconds"] / row["iterations"] for row in study.rows() if row["algorithm"] == name]
        print(f"{name}: {1e3 * sum(spent) / len(spent):.1f} ms per iteration")
    study.plot("torch_cnn.png")


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--quick", action="store_true", help="a few seconds: small digits, fewer iterations and seeds")
    parser.add_argument("--tune", action="store_true", help="search the settings first")
    main(**vars(parser.parse_args()))
