"""An algorithm of your own: signs of momentum travel, the master takes a vote. Runs under any attack, and over MPI.

    python examples/own_algorithm.py
"""

import argparse
from dataclasses import dataclass

import numpy as np

from byzadmm import algorithms, attacks, datasets, partition, simulate


@dataclass(frozen=True)
class MajorityVote(algorithms.Algorithm):
    """``x0 <- x0 - step / sqrt(k) sgn(sum_i sgn(m_i))`` with worker momentum ``m_i``."""

    step: float = 0.05
    momentum: float = 0.9

    def bound(self):
        return 1.0  # a sign: anything larger eliminates its sender

    def worker_state(self, group):
        return {"momentum": group.zeros()}

    def answer(self, group, state, x0, k):
        memory = state["momentum"]
        memory += (1 - self.momentum) * (group.gradients(x0, k) - memory)
        return np.sign(memory)

    def sent(self, group, state, forged, x0, *, direct):
        return np.sign(forged)  # an attacker that wants to be heard keeps to the range

    def update(self, run, state, heard, k):
        votes = np.sign(heard.rows.sum(axis=0))
        state["x0"] -= self.step / np.sqrt(k) * (votes + run.rho * state["x0"])


def main(quick=False):
    data = datasets.load("digits")
    parts = partition.iid(data.train_y, 20, seed=0)
    for name, attack in {"no attack": None, "sign flip": attacks.SignFlip(), "Gaussian": attacks.Gaussian()}.items():
        run = simulate(
            data, parts, algorithm=MajorityVote(), attack=attack, n_byzantine=8, iterations=200 if quick else 1000
        )
        print(f"{name:10} accuracy {run.final_accuracy():.3f}")


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--quick", action="store_true", help="a second: fewer iterations")
    main(**vars(parser.parse_args()))
