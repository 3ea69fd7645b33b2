"""Federated learning under attack: 40 workers with data of their own kind, 12 of them per round, five local steps each.

    python examples/federated.py          # a few seconds
    python examples/federated.py --quick
"""

import argparse

from byzadmm import SGD, attacks, datasets, partition, simulate, steps

WORKERS, BYZANTINE = 40, 6
PARTICIPATION, LOCAL_STEPS = 0.3, 5
TOLERATED = 4  # of the twelve workers of a round


def algorithms():
    step = steps.power(1.0)
    return {
        "ideal": SGD(ideal=True, step=step),
        "mean": SGD(rule="mean", step=step),
        "trimmed mean": SGD(rule="trimmed-mean", f=TOLERATED, step=step),
        "geometric median": SGD(rule="geometric-median", step=step),
    }


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true", help="fewer rounds")
    rounds = 60 if parser.parse_args().quick else 1000
    data = datasets.load("digits")
    parts = partition.dirichlet(data.train_y, WORKERS, alpha=0.3, seed=0)
    under = {"no attack": None, "sign flip": attacks.SignFlip(), "Gaussian": attacks.Gaussian()}
    print(f"{'final accuracy':18}" + "".join(f"{name:>12}" for name in under))
    for label, algorithm in algorithms().items():
        line = f"{label:18}"
        for attack in under.values():
            run = simulate(
                data,
                parts,
                algorithm=algorithm,
                attack=attack,
                n_byzantine=BYZANTINE,
                iterations=rounds,
                local_steps=LOCAL_STEPS,
                participation=PARTICIPATION,
            )
            line += f"{run.final_accuracy():12.3f}"
        print(line, flush=True)


if __name__ == "__main__":
    main()
