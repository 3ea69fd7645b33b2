"""The curves of a run. Nothing here changes the state."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from byzadmm._internal.arrays import Array
from byzadmm._internal.npz import Found, under
from byzadmm.algorithms.base import State
from byzadmm.results import Result

if TYPE_CHECKING:
    from byzadmm.training.experiment import Experiment

__all__ = ["History"]


class History:
    """The results of all evaluations: the loss's metrics, the consensus gap, the distance to a given optimum.

    Where the master weighs messages (its entry "weights", ``byzadmm.filters.applied``), also the sums of those weights.
    """

    def __init__(self, run: Experiment) -> None:
        self.run = run
        self.iterations: list[int] = []
        self.curves: dict[str, list[float]] = {"accuracy": [], "loss": [], "consensus_gap": [], "distance": []}
        self.trajectory: dict[str, list[Array]] = {}
        self.weights: list[Array] = []  # of all rounds up to each evaluation, (2, 3): regular and Byzantine workers
        self._regular = run.regular

    def evaluate(self, done: int, state: State) -> dict[str, float]:
        """Measure the run after ``done`` iterations, and return what was found."""
        x0 = state["x0"]
        with np.errstate(over="ignore", invalid="ignore"):  # a run may diverge: its curves say so
            found = self._metrics(x0)
            found["consensus_gap"] = 0.0
            if "x" in state and self._regular:
                found["consensus_gap"] = float(np.mean(_distances(state["x"], self._regular, x0)))
            if self.run.optimum is not None:
                found["distance"] = _distances([x0], [0], self.run.optimum)[0]
        for name in [name for name in found if name not in self.curves]:
            self.curves[name] = [np.nan] * len(self.iterations)
        self.iterations.append(done)
        for name, values in self.curves.items():
            values.append(found.get(name, np.nan))
        if "weights" in state:
            groups = (self._regular, self.run.byzantine)
            self.weights.append(np.array([state["weights"][group].sum(axis=0) for group in groups]))
        if self.run.record is not None:
            for name in ("x0", "x"):
                if name in state:
                    self.trajectory.setdefault(name, []).append(state[name].copy())
        return found

    def has(self, done: int, state: State) -> bool:
        """Whether the last evaluation was of this very state."""
        return bool(self.iterations) and self.iterations[-1] == done

    def _metrics(self, x0: Array) -> dict[str, float]:
        loss = self.run.loss
        if hasattr(loss, "evaluate"):
            found = loss.evaluate(x0.copy())
            if not isinstance(found, Mapping):
                raise TypeError(f"loss.evaluate: expected a dict of numbers by name, got {type(found).__name__}")
            if "iterations" in found:
                raise ValueError("loss.evaluate: 'iterations' is the place of an evaluation, not a metric")
            try:
                return {str(name): float(value) for name, value in found.items()}
            except (TypeError, ValueError) as error:
                raise TypeError(f"loss.evaluate: expected a dict of numbers by name, got {found!r}") from error
        return {"loss": float(loss.value(x0.copy()))} if hasattr(loss, "value") else {}

    def arrays(self) -> dict[str, Array]:
        """For a checkpoint."""
        arrays = {"iterations": np.array(self.iterations, np.int64)}
        arrays |= {f"curve_{name}": np.array(values) for name, values in self.curves.items()}
        arrays |= {"weights": np.array(self.weights)} if self.weights else {}
        return arrays | {f"trajectory_{name}": np.array(values) for name, values in self.trajectory.items()}

    def layout(self, found: dict[str, Found], state: State) -> dict[str, Found]:
        """Shape and dtype of :meth:`arrays`, given how many evaluations a checkpoint has and of what."""
        t = next(iter(found["iterations"][0]), 0) if "iterations" in found else 0
        curves = {f"curve_{name}" for name in self.curves} | {name for name in found if name.startswith("curve_")}
        wanted: dict[str, Found] = {name: ((t,), np.dtype(np.float64)) for name in curves}
        wanted["iterations"] = (t,), np.dtype(np.int64)
        if "weights" in state:
            wanted["weights"] = (t, 2, 3), np.dtype(np.float64)
        for name in ("x0", "x") if self.run.record is not None else ():
            if name in state:
                wanted[f"trajectory_{name}"] = (t, *state[name].shape), state[name].dtype
        return wanted

    def restore(self, arrays: dict[str, Array]) -> None:
        """Continue from the arrays of a checkpoint."""
        self.iterations = arrays["iterations"].tolist()
        self.curves = {name: values.tolist() for name, values in under("curve_", arrays).items()}
        self.weights = list(arrays.get("weights", ()))
        self.trajectory = {name: list(values) for name, values in under("trajectory_", arrays).items()}

    def keep_regular(self) -> None:
        """Remove evaluations where this run has none: the end of a shorter one."""
        kept = [t for t in range(len(self.iterations)) if self._is_regular(t)]
        for values in self._series():
            values[:] = [values[t] for t in kept if t < len(values)]

    def _is_regular(self, t: int) -> bool:
        k = self.iterations[t]
        return k % self.run.eval_every == 0 or k == self.run.iterations

    def _series(self) -> list[list[Any]]:
        """Whatever has an item per evaluation."""
        return [self.iterations, *self.curves.values(), *self.trajectory.values(), self.weights]

    def result(self, config: dict[str, Any], state: State, seconds: float) -> Result:
        """The finished run."""
        named = ("accuracy", "loss", "consensus_gap", "distance")
        curves: dict[str, Any] = {name: np.array(self.curves[name]) for name in named}
        return Result(
            config=config,
            iterations=np.array(self.iterations, np.int64),
            **curves,
            metrics={name: np.array(values) for name, values in self.curves.items() if name not in named},
            x0=state["x0"],
            x=state.get("x"),
            eliminated={int(i): int(state["eliminated"][i]) for i in np.flatnonzero(state["eliminated"] >= 0)},
            trajectory={name: np.array(values) for name, values in self.trajectory.items()} or None,
            seconds=seconds,
            weights=self._mean_weights() if self.weights else None,
        )

    def _mean_weights(self) -> dict[str, Array]:
        """``Result.weights`` from the sums: what each evaluation adds to those of the one before."""
        totals = np.array(self.weights)
        added = np.concatenate([np.full((1, 2, 3), np.nan), np.diff(totals, axis=0)])
        with np.errstate(invalid="ignore", divide="ignore"):
            means = added[:, :, 0] / added[:, :, 1]
        return {
            "byzantine": means[:, 1],
            "regular": means[:, 0],
            "regular_excluded": added[:, 0, 1] - added[:, 0, 2],
            "byzantine_kept": added[:, 1, 2],
        }


def _distances(rows: Array | Sequence[Array], chosen: Sequence[int], center: Array) -> list[float]:
    """Euclidean distances of the chosen rows from ``center``, in double: row by row, not a copy of them all."""
    center = center.astype(np.float64, copy=False)
    apart = np.empty_like(center)
    distances = []
    for i in chosen:
        np.subtract(rows[i], center, out=apart)
        distances.append(float(np.sqrt(apart @ apart)))
    return distances
