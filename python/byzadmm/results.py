"""What a run leaves behind: its settings, its curves, its last state; saved, loaded, tabulated and plotted."""

from __future__ import annotations

import io
import json
import os
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from byzadmm._arrays import Array
from byzadmm._atomic import replacing
from byzadmm._validation import check_int

__all__ = ["Result"]

_CURVES = ("iterations", "accuracy", "loss", "consensus_gap", "distance")


@dataclass
class Result:
    """A finished run.

    Attributes
    ----------
    config : dict
        Every setting of the run, and the version that ran it.
    iterations : (t,) int64
        Iterations done at each evaluation; the first is 0.
    accuracy, loss, consensus_gap, distance : (t,) float64
        Accuracy on the test set and mean loss on training samples of the master's model, mean distance of the regular
        workers to the master, distance of the master to a given optimum; NaN where a run has no such thing.
    x0 : (d,) array
        The master's model.
    x : (m, d) array or None
        The workers' models, where the algorithm has them.
    eliminated : dict
        Worker -> iteration at which the master threw it out.
    trajectory : dict or None
        With ``record="trajectory"``: "x0" (t, d) and, where there are workers' models, "x" (t, m, d).
    seconds : float
        Time spent in iterations, without evaluation.
    metrics : dict
        All curves by name: the four above, and whatever else the loss's ``evaluate`` gave.
    """

    config: dict[str, Any]
    iterations: NDArray[np.int64]
    accuracy: NDArray[np.float64]
    loss: NDArray[np.float64]
    consensus_gap: NDArray[np.float64]
    distance: NDArray[np.float64]
    x0: Array
    x: Array | None = None
    eliminated: dict[int, int] = field(default_factory=dict)
    trajectory: dict[str, Array] | None = None
    seconds: float = 0.0
    metrics: dict[str, NDArray[np.float64]] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.metrics = {name: getattr(self, name) for name in _CURVES[1:]} | self.metrics

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write everything to one ``.npz`` file, whole or not at all."""
        arrays: dict[str, Array] = {name: getattr(self, name) for name in _CURVES} | {"x0": self.x0}
        if self.x is not None:
            arrays["x"] = self.x
        for name, values in (self.trajectory or {}).items():
            arrays[f"trajectory_{name}"] = values
        for name in self.metrics.keys() - set(_CURVES):
            arrays[f"metric_{name}"] = self.metrics[name]
        about = {"config": self.config, "eliminated": self.eliminated, "seconds": self.seconds}
        write_npz(path, arrays, about)

    @classmethod
    def load(cls, path: str | os.PathLike[str]) -> Result:
        """Read what :meth:`save` wrote."""
        arrays, about = read_npz(path)
        missing = [name for name in (*_CURVES, "x0") if name not in arrays]
        if missing or "config" not in about:
            raise ValueError(f"{os.fspath(path)}: not a result of byzadmm (no {', '.join(missing) or 'config'})")
        trajectory = {n.removeprefix("trajectory_"): v for n, v in arrays.items() if n.startswith("trajectory_")}
        return cls(
            config=about["config"],
            **{name: arrays[name] for name in _CURVES},
            x0=arrays["x0"],
            x=arrays.get("x"),
            eliminated={int(worker): int(k) for worker, k in about["eliminated"].items()},
            trajectory=trajectory or None,
            seconds=float(about["seconds"]),
            metrics={n.removeprefix("metric_"): v for n, v in arrays.items() if n.startswith("metric_")},
        )

    def table(self) -> list[dict[str, float]]:
        """One row per evaluation, the columns that the run has."""
        columns = {"iterations": self.iterations} | self.metrics
        kept = {name: values for name, values in columns.items() if not np.all(np.isnan(values.astype(float)))}
        return [{name: values[t].item() for name, values in kept.items()} for t in range(len(self.iterations))]

    def final_accuracy(self, last: int = 3) -> float:
        """Mean accuracy of the last evaluations."""
        return float(np.mean(self.accuracy[-check_int(last, "last", low=1) :]))

    def plot(self, ax: Any = None, *, metric: str = "accuracy", label: str | None = None) -> Any:
        """Draw one curve against iterations on ``ax``, by default a new one, and return the axes. Needs matplotlib.

        The label says which algorithm and rule it is by default. Color and line are those of the algorithm in every
        picture of byzadmm; if the axes have a curve of that color already, another one.
        """
        if metric not in self.metrics:
            raise ValueError(f"metric: expected one of {', '.join(self.metrics)}; got {metric!r}")
        if ax is None:
            from matplotlib import pyplot

            _, ax = pyplot.subplots()
        from matplotlib.colors import to_hex

        from byzadmm.catalogue import label_of, styles

        name, usual = label_of(self.config["algorithm"])
        look = styles([name], [to_hex(line.get_color()) for line in ax.get_lines()])[name]
        given = usual if label is None else label
        ax.plot(self.iterations, self.metrics[metric], label=given, color=look.color, linestyle=look.line)
        ax.set_xlabel("iterations")
        ax.set_ylabel(metric.replace("_", " "))
        ax.legend()
        return ax

    def __repr__(self) -> str:
        last = self.accuracy[-1] if len(self.accuracy) else float("nan")
        from byzadmm.catalogue import label_of

        name = label_of(self.config["algorithm"])[1]
        return f"<Result {name}, {self.iterations[-1]} iterations, accuracy {last:.3f}>"


def write_npz(path: str | os.PathLike[str], arrays: dict[str, Array], about: dict[str, Any]) -> None:
    """Arrays and a JSON record in one file; a reader sees the old file or the new one, never a part."""
    whole = about | {"arrays": sorted(arrays)}
    named: dict[str, Any] = arrays | {"about": np.array(json.dumps(whole, default=_plain))}
    with replacing(path) as file:
        np.savez(file, **named)


def read_npz(path: str | os.PathLike[str]) -> tuple[dict[str, Array], dict[str, Any]]:
    """What :func:`write_npz` wrote; a file that is not whole is a ValueError naming it."""
    content = Path(path).read_bytes()
    try:
        with np.load(io.BytesIO(content), allow_pickle=False) as file:
            arrays = {name: file[name] for name in file.files}
        about: dict[str, Any] = json.loads(str(arrays.pop("about")))
        if about.pop("arrays") != sorted(arrays):  # a damaged directory of the archive can hide an entry
            raise ValueError("some arrays are missing")
    except Exception as error:  # zipfile alone raises half a dozen kinds for a damaged header
        raise ValueError(f"{os.fspath(path)}: not a whole file of byzadmm ({error})") from error
    return arrays, about


def _plain(value: Any) -> Any:
    if isinstance(value, np.generic):
        return value.item()
    if isinstance(value, np.ndarray):
        return value.tolist()
    return repr(value)
