"""A CNN with two convolutions on MNIST, 20 workers, 8 of them attackers: six algorithms under two attacks.

    python examples/torch_cnn.py            (MNIST from the folder BYZADMM_DATA, or downloaded)
    python examples/torch_cnn.py --tune     (the search that found the settings, on 5000 samples of the training set)
    python examples/torch_cnn.py --quick    (digits of 8 x 8 from inside the package)
"""

import argparse

import numpy as np
import torch
from torch import nn

import byzadmm
from byzadmm import ADMM, RSA, SGD, attacks, datasets
from byzadmm.steps import constant
from byzadmm.study.search import validation_split
from byzadmm.torch import ModuleLoss

ALGORITHMS = {
    "Ideal SGD": lambda step: SGD(ideal=True, step=constant(step)),
    "ADMM": lambda lam, beta, master, worker: ADMM(lam, beta, constant(master), constant(worker)),
    "RSA": lambda lam, master, worker: RSA(lam, master_step=constant(master), worker_step=constant(worker)),
    "NNM + trimmed mean": lambda step: SGD(rule="nnm+trimmed_mean", momentum=0.9, step=constant(step)),
    "Geometric median": lambda step: SGD(rule="geometric_median", step=constant(step)),
    "Mean": lambda step: SGD(step=constant(step)),
}
FOUND = {  # with --tune: 6 trials per setting, under sign-flip
    "Ideal SGD": {"step": 0.29},
    "ADMM": {"lam": 0.0023, "beta": 0.78, "master": 0.14, "worker": 0.15},
    "RSA": {"lam": 0.0018, "master": 0.25, "worker": 0.13},
    "NNM + trimmed mean": {"step": 0.47},
    "Geometric median": {"step": 0.29},
    "Mean": {"step": 0.29},  # that of Ideal SGD: under sign-flip all steps fail
}
RANGES = {"lam": (1e-3, 1e-2), "beta": (0.1, 3), "master": (0.05, 0.5), "worker": (0.05, 0.5), "step": (0.05, 1)}


def network(side):
    torch.manual_seed(0)
    padding, left = (0, 4) if side == 28 else (2, side // 4)
    return nn.Sequential(
        nn.Unflatten(1, (1, side, side)),  # the rows of a data set are flat
        *(nn.Conv2d(1, 8, 5, padding=padding), nn.ReLU(), nn.MaxPool2d(2)),
        *(nn.Conv2d(8, 16, 5, padding=padding), nn.ReLU(), nn.MaxPool2d(2)),
        *(nn.Flatten(), nn.Linear(16 * left**2, 10)),
    )


def trials(names, per_setting=6):
    """Settings spread evenly over their ranges, on a logarithmic scale."""
    count, rng = per_setting * len(names), np.random.default_rng(0)
    places = {name: (rng.permutation(count) + 0.5) / count for name in names}
    scaled = {name: RANGES[name][0] * (RANGES[name][1] / RANGES[name][0]) ** at for name, at in places.items()}
    return [{name: float(f"{scaled[name][i]:.2g}") for name in names} for i in range(count)]


def main(quick=False, tune=False):
    torch.set_num_threads(1)  # the runs themselves are side by side
    net = network(8 if quick else 28)
    data = datasets.load("digits" if quick else "mnist")
    tried = {name: trials(FOUND[name]) if tune else [FOUND[name]] for name in ALGORITHMS}
    labels = {f"{name} {values}" if tune else name: (name, values) for name in tried for values in tried[name]}
    iterations = 60 if quick else 200 if tune else 500
    study = byzadmm.compare(
        validation_split(data, 0) if tune else data,
        algorithms={label: ALGORITHMS[name](**values) for label, (name, values) in labels.items()},
        attacks=["sign-flip"] if tune else ["sign-flip", attacks.ALIE()],
        n_workers=20,
        n_byzantine=8,
        seeds=1 if quick or tune else 3,
        iterations=iterations,
        eval_every=iterations // 10,
        loss=lambda data, parts, **settings: ModuleLoss(net, data, parts, vectorize=False, **settings),
        progress=True,
    )
    if tune:
        for name in ALGORITHMS:
            best = max((study.finals(algorithm=label).mean(), label) for label in labels if labels[label][0] == name)
            print(f"{best[0]:.3f} on the validation samples: {best[1]}")
        return
    print(study.table())
    for name in ALGORITHMS:
        spent = [row["seconds"] / row["iterations"] for row in study.rows() if row["algorithm"] == name]
        print(f"{1e3 * np.mean(spent):.1f} ms per iteration: {name}")
    study.plot("torch_cnn.png")


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--quick", action="store_true", help="a few seconds: small digits, fewer iterations and seeds")
    parser.add_argument("--tune", action="store_true", help="search the settings")
    main(**vars(parser.parse_args()))
