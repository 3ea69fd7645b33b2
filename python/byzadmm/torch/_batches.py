"""What a worker draws in a round: its samples, with the labels that it sees, and the numbers of random layers."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from threading import Lock

import numpy as np
import torch

from byzadmm import _core
from byzadmm._internal.arrays import Array
from byzadmm.torch._samples import Samples

__all__ = ["Batches", "seeding"]

_BATCH, _LAYERS = (_core.PURPOSES.index(purpose) for purpose in ("batch", "layers"))
_drawing = Lock()  # torch's generator is one for all threads

Batch = tuple[torch.Tensor, torch.Tensor]


@dataclass(frozen=True)
class Batches:
    """Batches drawn with replacement by seed, worker and round alone.

    Attributes
    ----------
    samples : Samples
    parts : list of index arrays, one per worker
    size, seed : int
    flipped : set of int
        Workers that see ``mapping[y]`` in the place of the label ``y``; negative labels, which a criterion ignores,
        stay.
    mapping : (K,) int64 tensor
    """

    samples: Samples
    parts: list[Array]
    size: int
    seed: int
    flipped: frozenset[int] = frozenset()
    mapping: torch.Tensor | None = None

    def rows(self, workers: Sequence[int], k: int) -> Array:
        """The samples of the workers' batches of round ``k``, (n, size)."""
        rows = np.empty((len(workers), self.size), np.int64)
        for row, worker in zip(rows, workers, strict=True):
            part = self.parts[worker]
            _core.philox_integers(row, len(part), self.seed, (_BATCH, worker, k))
            row[:] = part[row]
        return rows

    def each(self, workers: Sequence[int], k: int, dtype: torch.dtype) -> Iterator[Batch]:
        """Inputs (size, ...) and targets (size, ...) of one worker after another."""
        for rows, worker in zip(self.rows(workers, k), workers, strict=True):
            x, y = self.samples.of(torch.from_numpy(rows), dtype)
            yield x, self.seen(y, worker)

    def together(self, workers: Sequence[int], k: int, dtype: torch.dtype) -> Batch:
        """The same of all workers, (n, size, ...)."""
        rows = self.rows(workers, k)
        x, y = self.samples.of(torch.from_numpy(rows.ravel()), dtype)
        x, y = (part.view(*rows.shape, *part.shape[1:]) for part in (x, y))
        if not self.flipped.isdisjoint(workers):
            y = torch.stack([self.seen(part, worker) for part, worker in zip(y, workers, strict=True)])
        return x, y

    def seen(self, y: torch.Tensor, worker: int) -> torch.Tensor:
        """The targets as a worker sees them."""
        if worker not in self.flipped:
            return y
        assert self.mapping is not None
        labels = y.to(torch.int64)
        return torch.where(labels < 0, labels, self.mapping[labels.clamp(min=0)]).to(y.dtype)


@contextmanager
def seeding(seed: int, device: torch.device) -> Iterator[Callable[[int, int], None]]:
    """A function that seeds torch's generators by worker and round; their state is put back in the end.

    One thread at a time: the others wait.
    """
    word = np.empty(1, np.int64)

    def by(worker: int, k: int) -> None:
        _core.philox_integers(word, 2**63, seed, (_LAYERS, worker, k))
        torch.manual_seed(int(word[0]))

    with _drawing, torch.random.fork_rng(devices=[device] if device.type == "cuda" else []):
        yield by
