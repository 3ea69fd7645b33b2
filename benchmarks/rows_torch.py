"""Rows of the comparison for PyTorch modules: what ``ModuleLoss`` costs over a plain loop; float32."""

from __future__ import annotations

import copy
import importlib.util
from functools import partial

import numpy as np
from benchmarks.bench_torch import BATCH, NETS, M, Rounds
from measure import Call, Row

from byzadmm import ADMM, SGD, attacks, steps
from byzadmm.algorithms import Algorithm
from byzadmm.training.experiment import Experiment
from byzadmm.training.run import local

__all__ = ["rows"]


def gradients(net: str, vectorize: bool, threads: int = 1) -> tuple[Call, Call]:
    rounds = Rounds(NETS[net], threads)
    return rounds.ours(vectorize)[1], rounds.plain()


def iterations(rounds: Rounds, algorithm: Algorithm) -> Call:
    """Iterations of ``simulate``, 8 workers flipping signs, one per call."""
    loss, _ = rounds.ours(False)
    flip = attacks.SignFlip(-0.1)
    run = Experiment(None, None, loss=loss, algorithm=algorithm, attack=flip, n_byzantine=8, threads=1)
    state, advance = local(run)
    k = [0]

    def further() -> None:
        k[0] += 1
        advance(state, k[0], 1)

    return further


def admm(net: str) -> tuple[Call, Call]:
    rounds = Rounds(NETS[net])
    step = steps.constant(0.01)
    return iterations(rounds, ADMM(lam=1e-3, beta=1.0, master_step=step, worker_step=step)), rounds.plain()


def training(net: str) -> tuple[Call, Call]:
    rounds = Rounds(NETS[net])
    torch, step = rounds.torch, 0.01
    model = copy.deepcopy(rounds.net)
    held = list(model.parameters())
    parts = [torch.from_numpy(np.asarray(part)) for part in rounds.parts]
    messages = torch.empty(M, sum(parameter.numel() for parameter in held))

    def theirs() -> None:
        for row, part in enumerate(parts):
            rows = part[torch.randint(len(part), (BATCH,))]
            model.zero_grad()
            torch.nn.functional.cross_entropy(model(rounds.x[rows]), rounds.y[rows]).backward()
            messages[row] = torch.cat([parameter.grad.view(-1) for parameter in held])
        messages[-8:] *= -0.1
        moved = torch.nn.utils.parameters_to_vector(held).detach()
        torch.nn.utils.vector_to_parameters(moved - step * (messages.mean(0) + 0.01 * moved), held)

    return iterations(rounds, SGD(step=steps.constant(step))), theirs


def rows() -> list[Row]:
    if importlib.util.find_spec("torch") is None:
        return []
    area = "PyTorch modules, 20 workers x 32 images of 28 x 28, float32"
    return [
        Row(area, "CNN, one by one", "plain loop", lambda: gradients("cnn", False), at_most=1.15),
        Row(area, "784-64-10, one by one", "plain loop", lambda: gradients("dense", False), at_most=1.15),
        Row(area, "simulate, CNN, SGD", "plain loop with steps", lambda: training("cnn"), at_most=1.15),
        Row(area, "simulate, 784-64-10, SGD", "plain loop with steps", lambda: training("dense"), at_most=1.15),
        Row(area, "simulate, CNN, ADMM", "plain loop, no steps", lambda: admm("cnn"), at_most=1.15),
        *(
            Row(area, f"{label}, at once, {t} thread(s)", "plain loop", partial(gradients, net, True, t), threads=t)
            for t in (1, 2)
            for label, net in (("CNN", "cnn"), ("784-64-10", "dense"))
        ),
    ]
