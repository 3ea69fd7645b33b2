"""Draw docs/weights.svg: what two filters do with messages under attack (docs/filters.md).

Run it with ``python docs/make_weights_figure.py``; it needs ``pip install 'byzadmm[plot]'``.
"""

from __future__ import annotations

from pathlib import Path

import matplotlib
import numpy as np

matplotlib.use("Agg")
import matplotlib.pyplot as plt

from byzadmm import SGD, attacks, datasets, filters, partition, simulate

data = datasets.load("digits")
rows = np.sort(np.random.default_rng(0).choice(len(data.train_y), 200, replace=False))
rest = np.setdiff1d(np.arange(len(data.train_y)), rows)
parts = [rest[part] for part in partition.iid(data.train_y[rest], 20, seed=0)]
figure, axes = plt.subplots(1, 2, figsize=(9, 3.2), sharey=True, layout="constrained")
for ax, chosen in zip(axes, (filters.FLTrust(), filters.Safeguard(windows=(20, 120))), strict=True):
    run = simulate(
        data,
        parts,
        algorithm=SGD.for_dataset(data, filter=chosen),
        attack=attacks.SignFlip(-1.0),
        n_byzantine=8,
        iterations=400,
        eval_every=10,
        validation=rows,
    )
    run.plot_weights(ax=ax)
    assert run.weights is not None
    means = {name: float(np.nanmean(run.weights[name])) for name in ("regular", "byzantine")}
    print(f"{type(chosen).__name__}: mean weights {means}, accuracy {run.final_accuracy():.3f}")
figure.savefig(Path(__file__).with_name("weights.svg"))
