"""Runs with PyTorch modules that every engine must repeat to the bit; under mpirun, those of 3 processes.

``python mpi_torch.py FOLDER`` writes what differs from one process into FOLDER.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import torch

import byzadmm
from byzadmm import SGD, attacks
from byzadmm.torch import ModuleLoss
from support.modules import dense
from support.runs import ALGORITHMS, Q, small_data, small_parts

__all__ = ["cases", "module_loss"]


def module_loss(dropout: float = 0.0, **settings: Any) -> ModuleLoss:
    shared: dict[str, Any] = {"batch_size": 4, "vectorize": False}
    return ModuleLoss(dense(dropout), small_data(), small_parts(), **shared | settings)


def cases() -> dict[str, dict[str, Any]]:
    """Algorithms, attacks, types and ways to the gradients, each at least once."""
    chain = SGD(rule="nnm+trimmed_mean", f=Q, step=ALGORITHMS["mean"].step, momentum=0.9)  # type: ignore[attr-defined]
    admm, rsa, median, ideal = (ALGORITHMS[name] for name in ("admm", "rsa", "median", "ideal"))
    flip = attacks.LabelFlip()
    sampled = {"local_steps": 2, "participation": 0.6, "attack": attacks.SignFlip()}
    return {
        "admm": {"algorithm": admm, "attack": attacks.SignFlip(), "loss": module_loss()},
        "admm, at once": {"algorithm": admm, "attack": attacks.ALIE(), "loss": module_loss(vectorize=True)},
        "rsa, dropout": {"algorithm": rsa, "attack": flip, "loss": module_loss(0.5), "dtype": "float64"},
        "median, at once": {"algorithm": median, "attack": flip, "loss": module_loss(vectorize=True)},
        "chain, momentum": {"algorithm": chain, "attack": attacks.ALIE(), "loss": module_loss(seed=4)},
        "local steps": {"algorithm": median, "loss": module_loss(0.5), **sampled},
        "ideal": {"algorithm": ideal, "attack": attacks.SignFlip(), "loss": module_loss(), "dtype": "float64"},
    }


def main(folder: Path) -> None:
    from byzadmm.engines.mpi import Job
    from support.mpi_runs import differences

    with Job(deadline=120.0) as job:
        found, count = {}, 0
        for name, case in cases().items():
            settings = case | {"n_byzantine": Q, "iterations": 5, "eval_every": 2}
            ours = job.simulate(None, None, **settings)
            if ours is not None:
                count += 1
                if different := differences(ours, byzadmm.simulate(None, None, **settings)):
                    found[name] = different
        if job.is_master:
            record = {"different": found, "count": count, "auto": module_loss(vectorize="auto").choice.vectorized}
            (folder / "torch.json").write_text(json.dumps(record))
    job.leave(0)


if __name__ == "__main__":
    torch.set_num_threads(1)
    main(Path(sys.argv[1]))
