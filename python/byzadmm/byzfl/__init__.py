"""ByzFL's class names, argument names and conventions on the kernels of this package.

``import byzadmm.byzfl as byzfl`` in the place of ``import byzfl``: the aggregators, pre-aggregators and attacks of
ByzFL 0.0.11, with its arguments and defaults. Rows are NumPy arrays, tensors in host memory, or lists of them, and the
result is of the same kind and dtype. ``docs/byzfl.md`` says where a definition differs. The classes that train are not
rebuilt: asking for one names what takes its place.

Examples
--------
>>> import byzadmm.byzfl as byzfl
>>> honest = [[1.0, 2.0], [4.0, 5.0], [7.0, 8.0]]
>>> forged = byzfl.SignFlipping()(honest)
>>> byzfl.TrMean(f=1)([*honest, forged]).tolist()
[2.5, 3.5]
"""

from __future__ import annotations

from typing import Any

from byzadmm.byzfl import aggregators, attacks
from byzadmm.byzfl.aggregators import *  # noqa: F403
from byzadmm.byzfl.attacks import *  # noqa: F403

__all__ = [*aggregators.__all__, *attacks.__all__]

_TRAINING = "byzadmm.simulate trains with workers, master and attack in one call (docs/training.md)"
_NETWORK = "any torch.nn.Module of yours trains with byzadmm.torch.ModuleLoss (docs/torch.md)"
_PICTURE = "byzadmm.compare(...) returns a Study with plot, heatmap and table (docs/compare.md)"

#: What ByzFL has besides -> what takes its place here.
_ELSEWHERE = {
    **dict.fromkeys(("Client", "Server", "ModelBaseInterface"), _TRAINING),
    "ByzantineClient": "call an attack, which gives one vector, and append it f times; " + _TRAINING,
    "DataDistributor": "byzadmm.partition has iid, by_label, dirichlet and gamma_similarity (docs/data.md)",
    "RobustAggregator": "byzadmm.aggregators.Chain([Clipping(c), NNM(f), TrMean(f)]) with the classes of this module",
    "run_benchmark": "byzadmm.compare(...) and `byzadmm run FILE` run grids of experiments (docs/compare.md)",
    **dict.fromkeys(("test_accuracy_curve", "loss_heatmap", "test_heatmap", "aggregated_test_heatmap"), _PICTURE),
    **dict.fromkeys(("fc_mnist", "cnn_mnist", "logreg_mnist", "cnn_cifar"), _NETWORK),
    **dict.fromkeys(("ResNet18", "ResNet34", "ResNet50", "ResNet101", "ResNet152"), _NETWORK),
    "utils": "seeds are arguments: seed= of byzadmm.simulate, seeds= of byzadmm.compare, rng= of the classes here",
}


def __getattr__(name: str) -> Any:
    """An error that names what takes the place of a class of ByzFL."""
    hint = f": {_ELSEWHERE[name]}" if name in _ELSEWHERE else ""
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}{hint}")
