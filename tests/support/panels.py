"""Settings files of the figures' tests: a panel of curves and one of heat maps, on the digits."""

from __future__ import annotations

DIGITS = """\
title = "Digits"
dataset = "digits"
n_workers = 10
n_byzantine = 3
iterations = 40
eval_every = 10

[attack]
name = "sign-flip"
scale = -3.0

[algorithms.admm]
printed = true
lam = 0.05
beta = 0.5
master_step = { inv_sqrt = [5, 1] }
worker_step = { inv_sqrt = [0.5, 1] }

[algorithms.admm-tuned]
lam = 0.1
beta = 0.5
master_step = { inv_sqrt = [5, 1] }
worker_step = { inv_sqrt = [0.5, 1] }

[algorithms.rsa]
lam = 0.05
step = { power = [0.1, 0.5] }

[algorithms.ideal]
step = { power = 1.0 }

[algorithms.sgd]
step = { constant = 0.5 }

[algorithms.geometric-median]
step = { power = 1.0 }

[algorithms.median]
step = { power = 1.0 }

[algorithms.cut]
kind = "trimmed-mean"
label = "Cut"
f = 3
step = { power = 1.0 }

[tuning]
budget = 4
seed = 1
iterations = 30
step = [0.01, 10.0]
lam = [0.01, 1.0]
beta = [0.1, 1.0]
slope = [0.5, 5.0]
"""

MAPS = """\
title = "Digits"
dataset = "digits"
n_workers = 10
iterations = 30
eval_every = 5
seeds = 2

[heat_map]
n_byzantine = [1, 3]
partition = ["iid", "by-label"]

[[attack]]
name = "none"

[[attack]]
name = "gaussian"

[[attack]]
name = "worst-case"
family = "inner-product"
grid = 3
refine = 0

[algorithms.ideal]
step = { power = 3.0 }

[algorithms.mean]
kind = "sgd"
rule = "mean"
step = { power = 3.0 }

[algorithms.bulyan]
kind = "sgd"
rule = "bulyan"
label = "Bulyan"
step = { power = 3.0 }

[algorithms.mixed]
kind = "sgd"
rule = "nnm+multi-krum:neighbors=2"
step = { power = 3.0 }

[algorithms.rsa]
lam = 0.014
step = { power = 3.0 }
"""
