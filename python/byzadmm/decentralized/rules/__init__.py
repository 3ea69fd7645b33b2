"""Neighborhood rules: how a node combines its own model with its neighbors'."""

from byzadmm.decentralized.rules.aggregated import Aggregated, make_rule
from byzadmm.decentralized.rules.base import REGISTRY, NeighborhoodRule
from byzadmm.decentralized.rules.clipping import CSPlus, SelfCenteredClipping
from byzadmm.decentralized.rules.excluding import FABA, IOS, NNA
from byzadmm.decentralized.rules.gossip import Gossip
from byzadmm.decentralized.rules.trimming import WMSR, TrimNeighbors

__all__ = [
    "FABA",
    "IOS",
    "NNA",
    "REGISTRY",
    "WMSR",
    "Aggregated",
    "CSPlus",
    "Gossip",
    "NeighborhoodRule",
    "SelfCenteredClipping",
    "TrimNeighbors",
    "make_rule",
]
