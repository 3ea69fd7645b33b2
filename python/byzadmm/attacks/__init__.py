"""What Byzantine workers send in place of their honest messages.

An attack acts on the message of the algorithm in use: the gradient (SGD), the model (RSA), or for ADMM the model
``u_j`` from which the outgoing dual is formed (``eq11c``). Most built-in attacks run natively; :class:`MinMax`,
:class:`MinSum`, :class:`Mimic`, :class:`Fang` and :class:`WorstCase` adapt to the messages of each iteration and run
step by step. A built-in attack can be called with the honest rows alone, ``SignFlip()(X)``. A custom attack is a
function

    attack(messages, *, x0, k, byzantine, rng, algorithm) -> (q, d) array

with the honest ``messages`` (m, d) of all workers, the master's ``x0``, the message's index ``k``, the numbers of the
Byzantine workers, a ``numpy.random.Generator`` for this iteration, and the algorithm's settings. Six attributes are
optional. ``sends = "dual"``: the result is ADMM's outgoing dual itself. ``uses_x0 = True``: it compares messages with
``x0``, and is refused where they have another length (those of a cyclic code are twice as long). ``sees = "own"``: the
message of worker j depends on ``messages[j]``, ``x0`` and ``k`` alone. Where the workers are in several processes, such
an attack is called with NaN in the rows of workers that its process does not hold, and with its own workers in
``byzantine``; for any other attack the process computes the messages of all workers itself.
``asks_defense = True``: it is called with ``defense=`` too, a function of messages (m, d) to the direction (d,) that
the master would take, filter included, or None.

``begin(m, d, dtype) -> dict of arrays``: the attack keeps a state from round to round. The arrays are its first state;
it is then called with a further keyword ``state``, a dict of them, and what it writes there is in it at the next call,
also where a run goes on from a checkpoint. ``m`` counts all workers. With ``sees = "own"`` several processes have a
state each: what is kept about worker j then depends on that worker's messages alone. ``among(workers) -> attack``: the
attack for a round in which the rows are those of ``workers``, for one that goes by workers' numbers.

On a graph (``byzadmm.decentralized``) three more are read. ``per_receiver = True``: it is called once for every regular
node that has Byzantine neighbors, with these in ``byzantine``, the receiver's own message as ``x0``, and a further
keyword ``receiver``, its number. ``asks_weights = True``: also with ``weights``, (m,), those of the receiver, zero for
nodes that are no neighbors. ``view = "neighbors"``: the rows of nodes that are no neighbors of the receiver, or of any
attacker where there is no receiver, are NaN.
"""

from byzadmm.attacks import collusion, fang, mimic, neighborhood, per_receiver, simple, worst_case
from byzadmm.attacks.base import HONEST as HONEST
from byzadmm.attacks.base import REGISTRY, Attack, Searched
from byzadmm.attacks.base import Spec as Spec
from byzadmm.attacks.collusion import *  # noqa: F403
from byzadmm.attacks.fang import *  # noqa: F403
from byzadmm.attacks.mimic import *  # noqa: F403
from byzadmm.attacks.neighborhood import *  # noqa: F403
from byzadmm.attacks.per_receiver import *  # noqa: F403
from byzadmm.attacks.simple import *  # noqa: F403
from byzadmm.attacks.worst_case import *  # noqa: F403

__all__ = ["REGISTRY", "Attack", "Searched"]
__all__ += simple.__all__
__all__ += collusion.__all__
__all__ += fang.__all__
__all__ += mimic.__all__
__all__ += neighborhood.__all__
__all__ += per_receiver.__all__
__all__ += worst_case.__all__
