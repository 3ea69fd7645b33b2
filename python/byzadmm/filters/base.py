"""What every filter is: its protocol, and the registry of the built-in ones."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any, ClassVar, TypeVar

import numpy as np

from byzadmm._internal.arrays import Array
from byzadmm._internal.description import describe, settings_of

if TYPE_CHECKING:
    from byzadmm.training.validation import Validation

__all__ = ["REGISTRY", "Filter"]


class Filter:
    """Base of the filters: a weight for every message of a round, from the messages, a memory and clean samples.

    ``weigh`` is all that a filter must have. Settings live on the object and do not change; what changes from round to
    round is in the arrays of ``begin``, which the master keeps, so that checkpoints and runs over MPI have them.

    Attributes
    ----------
    eliminates : bool
        Whether weight zero means that the master ignores the sender for the rest of the run.

    Examples
    --------
    >>> import numpy as np
    >>> from byzadmm import SGD, attacks, filters, losses, simulate, steps
    >>> class Shortest(filters.Filter):
    ...     def weigh(self, messages, *, x0, k, step, workers, state, validation, rng):
    ...         norms = np.linalg.norm(messages, axis=1)
    ...         return (norms <= 2 * np.median(norms)) * 1.0
    >>> loss = losses.Quadratic(np.ones(5), np.full((5, 2), 3.0))
    >>> sgd = SGD(filter=Shortest(), step=steps.constant(0.5))
    >>> run = simulate(None, None, loss=loss, algorithm=sgd, attack=attacks.SignFlip(-4), n_byzantine=2, rho=0)
    >>> bool(np.all(np.abs(run.x0 - 3.0) < 0.01))
    True
    """

    eliminates: ClassVar[bool] = False

    @property
    def validates(self) -> bool:
        """Whether it needs clean samples of the master's own, ``simulate(validation=)``."""
        return False

    @property
    def needs(self) -> tuple[str, ...]:
        """Optional members of the loss that it requires (``byzadmm.losses.base``)."""
        return ()

    def begin(self, m: int, d: int, dtype: np.dtype[Any]) -> dict[str, Array]:
        """What is kept from round to round about ``m`` workers and messages of length ``d``: arrays by name.

        None: the filter has no memory. An entry "eliminated", (m,) int64 with -1 for every worker, is the master's own
        list in a run: the round in which a worker was eliminated.
        """
        return {}

    def weigh(
        self,
        messages: Array,
        *,
        x0: Array,
        k: int,
        step: float,
        workers: Array,
        state: dict[str, Array],
        validation: Validation | None,
        rng: np.random.Generator,
    ) -> Array:
        """A weight >= 0 for each message of round ``k``; zero excludes it from this round.

        Parameters
        ----------
        messages : (n, d) array
            Finite; not to be changed.
        x0 : (d,) array
            The master's model, to which the messages are the answer.
        k : int
        step : float
            The step that the master is about to take.
        workers : (n,) int array
            The senders, ascending.
        state : dict
            The arrays of :meth:`begin`, to be changed in place. Other entries last until the end of the round.
        validation : Validation or None
            The master's own samples.
        rng : numpy.random.Generator
            For this round.

        Returns
        -------
        (n,) array
        """
        raise NotImplementedError(f"{type(self).__name__} has no weigh")

    def adjusted(
        self, rows: Array, weights: Array, *, state: dict[str, Array], rng: np.random.Generator
    ) -> tuple[Array, Array]:
        """What the rule gets in place of the messages of positive weight: rows, perhaps more of them, and weights."""
        return rows, weights

    def projected(self, x0: Array, *, state: dict[str, Array]) -> None:
        """Change ``x0`` in place after the step."""

    def check(self, n: int, workers: int | None = None) -> None:
        """Raise a ValueError for settings that are illegal for ``n`` messages out of ``workers`` workers."""

    def lowered(self, eliminated: int) -> Filter:
        """The same in a round in which so many of the workers asked are eliminated already."""
        return self

    def declaring(self, f: int) -> Filter:
        """The same with ``f`` Byzantine workers declared, if it takes their number and it is not set."""
        return self

    def describe(self) -> dict[str, Any]:
        """Name and settings, for a result's config."""
        return {"name": type(self).__name__} | {name: describe(value) for name, value in settings_of(self).items()}


#: The built-in filters by the name that command line and settings files use: "byzantine-sgd" is ``ByzantineSGD``.
REGISTRY: dict[str, type[Filter]] = {}
_Class = TypeVar("_Class", bound=type[Filter])


def register(kind: _Class) -> _Class:
    """Add a class to :data:`REGISTRY`, from which its name and the tests that every filter must pass follow."""
    REGISTRY[re.sub(r"(?<=[a-z])(?=[A-Z])", "-", kind.__name__).lower()] = kind
    return kind
