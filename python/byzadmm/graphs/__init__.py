"""Graphs of a decentralized network: who hears whom, without a master.

:class:`Graph` is an undirected graph on the nodes 0..m-1, with the weights and constants that decentralized algorithms
need. Makers such as :func:`ring`, :func:`erdos_renyi` and :func:`two_castle` build those of the literature,
:class:`Flaky` one whose edges fail at random (``docs/decentralized.md``).
"""

from byzadmm.graphs.flaky import Flaky
from byzadmm.graphs.graph import Graph
from byzadmm.graphs.makers import (
    complete,
    dumbbell,
    erdos_renyi,
    octopus,
    ring,
    star,
    torus,
    two_castle,
    two_worlds,
)
from byzadmm.graphs.names import REGISTRY
from byzadmm.graphs.networks import from_networkx, to_networkx

__all__ = [
    "REGISTRY",
    "Flaky",
    "Graph",
    "complete",
    "dumbbell",
    "erdos_renyi",
    "from_networkx",
    "octopus",
    "ring",
    "star",
    "to_networkx",
    "torus",
    "two_castle",
    "two_worlds",
]
