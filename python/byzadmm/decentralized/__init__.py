"""Training on a graph, without a master: every node has a model of its own and hears its neighbors.

``simulate`` trains, ``consensus`` runs a neighborhood rule without learning; the graphs are those of
``byzadmm.graphs`` (``docs/decentralized.md``).
"""

from byzadmm.decentralized.base import DecentralizedAlgorithm
from byzadmm.decentralized.byrdie import ByRDiE
from byzadmm.decentralized.consensus import consensus
from byzadmm.decentralized.dadmm import DADMM, degree_steps
from byzadmm.decentralized.drsa import DRSA
from byzadmm.decentralized.dsgd import DSGD
from byzadmm.decentralized.rsgp import RSGP
from byzadmm.decentralized.rules import (
    FABA,
    IOS,
    NNA,
    WMSR,
    Aggregated,
    CSPlus,
    Gossip,
    NeighborhoodRule,
    SelfCenteredClipping,
    TrimNeighbors,
)
from byzadmm.decentralized.rules import REGISTRY as RULES
from byzadmm.decentralized.simulation import simulate
from byzadmm.decentralized.ubar import UBAR

__all__ = [
    "DADMM",
    "DRSA",
    "DSGD",
    "FABA",
    "IOS",
    "NNA",
    "RSGP",
    "RULES",
    "UBAR",
    "WMSR",
    "Aggregated",
    "ByRDiE",
    "CSPlus",
    "DecentralizedAlgorithm",
    "Gossip",
    "NeighborhoodRule",
    "SelfCenteredClipping",
    "TrimNeighbors",
    "consensus",
    "degree_steps",
    "simulate",
]
