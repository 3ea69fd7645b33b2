"""The engine over MPI: rank 0 is the master, the other ranks hold the workers; raw bytes from point to point.

On a graph the other ranks hold the nodes and speak to each other, and rank 0 collects their models for evaluations.

The master assumes nothing about what other ranks send: it looks at a message's length before it receives it, it waits
for no round beyond the deadline, and it asks no rank again that still owes an answer. ``docs/mpi.md`` lists what each
fault leads to.

================  ====================================================================================
``job``           all processes of one ``mpirun``, what a script uses
``_start``        MPI_Init under a time limit, and the end of a job that cannot start
``_launch``       the ``mpirun`` around this process and the ranks beside it on the same machine
``_channels``     the master's connections to the other ranks: sending, receiving, ranks that fail
``_master``       one run over these connections, as the protocol of ``byzadmm.engines.Engine``
``_worker``       a worker rank: answers what the master asks
``_checkpoint``   the saved state of a rank's workers or nodes
``_collector``    on a graph, rank 0: starts the others, and asks for their models at evaluations
``_node_rank``    on a graph, every other rank: its rounds
``_routes``       on a graph, which messages travel between which ranks; the nodes of one rank
``_peers``        on a graph, the connections of a rank to those of its neighbors: deadlines, ranks that fail
================  ====================================================================================
"""

from byzadmm.engines.mpi._master import share
from byzadmm.engines.mpi.job import Job

__all__ = ["Job", "share"]
