"""The saved state of the workers of one rank, beside the checkpoint of the master."""

from __future__ import annotations

import glob
import os
from pathlib import Path
from typing import Protocol

from byzadmm._internal.atomic_files import prepare
from byzadmm._internal.npz import read_npz, write_npz
from byzadmm.algorithms.base import State

__all__ = ["Held", "RankCheckpoint"]


class Held(Protocol):
    """What a rank holds: workers, or nodes of a graph."""

    def state(self) -> State:
        """Its arrays."""

    def restore(self, state: State) -> None:
        """Continue from them."""


class RankCheckpoint:
    """Files ``<checkpoint>.<iterations>.w<first>-<last>.npz``.

    Two of them are kept, the newest and the one before: the master may die before it has saved its own state, and then
    continues from the evaluation before.

    Parameters
    ----------
    base : path
        The master's checkpoint.
    workers : range
        The workers of this rank.
    token : int
        Identifies the experiment; a state saved under another is not loaded.
    done : int
        Iterations of the master's checkpoint, 0 if there is none.
    """

    def __init__(self, base: str | os.PathLike[str], workers: range, token: int, done: int) -> None:
        prepare(base, "checkpoint")
        self._base, self._token, self._last = Path(base), token, done
        self._ending = f".w{workers.start}-{workers.stop - 1}.npz"

    def _path(self, done: int) -> Path:
        return Path(f"{self._base}.{done}{self._ending}")

    def save(self, workers: Held, done: int) -> None:
        """Write the state after ``done`` iterations, and remove all but the one before."""
        write_npz(self._path(done), workers.state(), {"token": self._token})
        keep, self._last = {self._path(self._last), self._path(done)}, done
        for old in self._base.parent.glob(f"{glob.escape(self._base.name)}.*{self._ending}"):
            if old not in keep:
                old.unlink(missing_ok=True)

    def load(self, workers: Held) -> bool:
        """Restore the state that belongs to the master's checkpoint; whether there is one."""
        try:
            arrays, about = read_npz(self._path(self._last))
            if about.get("token") != self._token:
                return False
            workers.restore(arrays)
        except (OSError, ValueError):
            return False
        return True
