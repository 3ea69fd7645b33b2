"""The weights of one round of messages; the error is that of float32 against float64."""

from __future__ import annotations

from typing import Any

import numpy as np

from byzadmm import datasets, filters, losses, partition
from byzadmm.training.validation import Validation

from .common import PROFILE, Benchmark

HELD = 200


class Weigh(Benchmark):
    """``weigh`` of every registered filter on gradients of the digits, with a memory of one round."""

    param_names = ("filter",)
    params = (list(filters.REGISTRY),)

    def setup(self, name: str) -> None:
        data = datasets.load("digits")
        m = PROFILE.workers
        parts = [part + HELD for part in partition.iid(data.train_y[HELD:], m, seed=0)]
        loss = losses.Softmax(data, parts, batch_size=500, threads=1)
        chosen = filters.REGISTRY[name]().declaring(m // 4)

        def weigh(dtype: str) -> Any:
            x0 = np.zeros(loss.dim, dtype)
            messages = np.empty((m, loss.dim), dtype)
            loss.gradients(x0, workers=range(m), k=1, out=messages)
            state = chosen.begin(m, loss.dim, messages.dtype)
            given: dict[str, Any] = {"x0": x0, "k": 1, "step": 0.1, "workers": np.arange(m), "state": state}
            given |= {"validation": Validation(loss, np.arange(HELD), seed=0), "rng": np.random.default_rng(0)}
            chosen.weigh(messages, **given)  # what a filter learns in its first round
            return lambda: chosen.weigh(messages, **given)

        self.call, self.exact = weigh("float32"), weigh("float64")
