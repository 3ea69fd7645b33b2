"""Training without rounds: workers take their time, and the master acts on each message as it arrives.

``simulate`` runs an event queue of simulated time; the delays are those of ``byzadmm.delays``.
"""

from byzadmm.asynchronous.admm import AsyncADMM
from byzadmm.asynchronous.asgd import ASGD
from byzadmm.asynchronous.base import Arrival, AsyncAlgorithm
from byzadmm.asynchronous.basgd import BASGD
from byzadmm.asynchronous.kardam import Kardam
from byzadmm.asynchronous.rsa import AsyncRSA
from byzadmm.asynchronous.simulation import simulate
from byzadmm.asynchronous.zeno import ZenoPlusPlus

__all__ = [
    "ASGD",
    "BASGD",
    "Arrival",
    "AsyncADMM",
    "AsyncAlgorithm",
    "AsyncRSA",
    "Kardam",
    "ZenoPlusPlus",
    "simulate",
]
