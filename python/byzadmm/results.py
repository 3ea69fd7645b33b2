"""The result of a run: its settings, its curves, its last state; saved, loaded, tabulated and plotted."""

from __future__ import annotations

import os
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from byzadmm._internal.arrays import Array
from byzadmm._internal.frames import data_frame
from byzadmm._internal.npz import Found, check_layout, read_npz, under, write_npz
from byzadmm._internal.validation import check_int

__all__ = ["CLOSE", "FAILS", "Result", "final_accuracy", "versus_ideal"]

#: Final accuracies in words: "close" is at most CLOSE below that of Ideal SGD, "fails" is below FAILS times it.
CLOSE, FAILS = 0.02, 0.5

_CURVES = ("iterations", "accuracy", "loss", "consensus_gap", "distance")
_COUNTS = ("staleness", "accepted", "rejected")  # whole numbers
_KINDS = dict.fromkeys(_CURVES, np.dtype(np.float64)) | {"iterations": np.dtype(np.int64)}


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
        workers to the master, distance of the master to a given optimum; NaN where a run has none.
    x0 : (d,) array
        The master's model.
    x : (m, d) array or None
        The workers' models, where the algorithm has them.
    eliminated : dict
        Worker -> iteration at which the master eliminated it.
    trajectory : dict or None
        With ``record="trajectory"``: "x0" (t, d) and, where there are workers' models, "x" (t, m, d).
    seconds : float
        Time spent in iterations, without evaluation.
    metrics : dict
        All curves by name: the four above, and whatever else the loss's ``evaluate`` gave.
    weights : dict or None
        Where the master has a filter, what it did with the messages since the evaluation before, (t,) each: mean weight
        of those of "byzantine" and of "regular" workers, and how often it was wrong, "regular_excluded" and
        "byzantine_kept". A worker that is eliminated has weight zero. NaN at the first evaluation, and for the mean of
        nobody.
    events : dict or None
        Of a run with delays (``byzadmm.asynchronous``), the arrays of the five attributes below, and what the algorithm
        counts besides for each worker.
    time, arrivals : (t,) float64 and int64, or None
        Simulated time, and messages received, at each evaluation.
    staleness : (n,) int64 or None
        How many messages arrived with staleness 0, 1, ...: updates of the model while they were computed. The last of
        1024 entries has those of 1023 and more.
    accepted, rejected : (m,) int64 or None
        Messages of each worker that the master used, and that it did not.
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
    weights: dict[str, NDArray[np.float64]] | None = None
    events: dict[str, Array] | None = None

    def __post_init__(self) -> None:
        self.metrics = {name: getattr(self, name) for name in _CURVES[1:]} | self.metrics

    @property
    def time(self) -> Array | None:
        return (self.events or {}).get("time")

    @property
    def arrivals(self) -> Array | None:
        return (self.events or {}).get("arrivals")

    @property
    def staleness(self) -> Array | None:
        return (self.events or {}).get("staleness")

    @property
    def accepted(self) -> Array | None:
        return (self.events or {}).get("accepted")

    @property
    def rejected(self) -> Array | None:
        return (self.events or {}).get("rejected")

    def rejection_rates(self) -> dict[str, float]:
        """The share of messages that the master rejected, of "regular" and of "byzantine" workers; NaN of none.

        For asynchronous runs. The Byzantine workers are those named in the config, with an attack or without.

        Examples
        --------
        >>> from byzadmm import asynchronous, delays, losses, steps
        >>> run = asynchronous.simulate(None, None, loss=losses.Quadratic([1.0, 1.0], [[1.0], [3.0]]), updates=50,
        ...                             algorithm=asynchronous.ASGD(step=steps.constant(0.1)), delays=delays.Constant())
        >>> run.rejection_rates()
        {'regular': 0.0, 'byzantine': nan}
        """
        if self.accepted is None or self.rejected is None:
            raise ValueError("rejection_rates: expected an asynchronous run, got one in rounds")
        byzantine = np.isin(np.arange(len(self.accepted)), self.config["byzantine"])
        rates = {}
        for name, who in (("regular", ~byzantine), ("byzantine", byzantine)):
            taken, refused = int(self.accepted[who].sum()), int(self.rejected[who].sum())
            rates[name] = refused / (taken + refused) if taken + refused else float("nan")
        return rates

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write everything to one ``.npz`` file, whole or not at all."""
        arrays: dict[str, Array] = {name: np.asarray(getattr(self, name), _KINDS[name]) for name in _CURVES}
        arrays["x0"] = self.x0
        if self.x is not None:
            arrays["x"] = self.x
        for name, values in (self.trajectory or {}).items():
            arrays[f"trajectory_{name}"] = values
        for name in self.metrics.keys() - set(_CURVES):
            arrays[f"metric_{name}"] = np.asarray(self.metrics[name], np.float64)
        for name, values in (self.weights or {}).items():
            arrays[f"weights_{name}"] = np.asarray(values, np.float64)
        for name, values in (self.events or {}).items():
            arrays[f"events_{name}"] = values
        about = {"config": self.config, "eliminated": self.eliminated, "seconds": self.seconds}
        write_npz(path, arrays, about)

    @classmethod
    def load(cls, path: str | os.PathLike[str]) -> Result:
        """Read what :meth:`save` wrote."""

        def check(about: dict[str, Any], found: dict[str, Found]) -> None:
            missing = [name for name in (*_CURVES, "x0") if name not in found]
            missing += [name for name in ("config", "eliminated", "seconds") if name not in about]
            if missing:
                raise ValueError(f"not a result of byzadmm (no {', '.join(missing)})")
            check_layout(found, _layout(found))

        arrays, about = read_npz(path, check)
        try:
            return cls(
                config=dict(about["config"]),
                **{name: arrays[name] for name in _CURVES},
                x0=arrays["x0"],
                x=arrays.get("x"),
                eliminated={int(worker): int(k) for worker, k in about["eliminated"].items()},
                trajectory=under("trajectory_", arrays) or None,
                seconds=float(about["seconds"]),
                metrics=under("metric_", arrays),
                weights=under("weights_", arrays) or None,
                events=under("events_", arrays) or None,
            )
        except (AttributeError, OverflowError, TypeError, ValueError) as error:
            raise ValueError(f"{os.fspath(path)}: not a result of byzadmm ({error})") from error

    def table(self) -> list[dict[str, float]]:
        """One row per evaluation, the columns that the run has."""
        kept = self._columns()
        return [{name: values[t].item() for name, values in kept.items()} for t in range(len(self.iterations))]

    def frame(self) -> Any:
        """The rows and columns of :meth:`table` as a ``pandas.DataFrame``. Needs pandas.

        Examples
        --------
        >>> from byzadmm import SGD, losses, simulate, steps
        >>> run = simulate(None, None, loss=losses.Quadratic([1.0], [[2.0]]), algorithm=SGD(step=steps.constant(0.5)),
        ...                iterations=2, eval_every=1, rho=0.0)
        >>> print(run.frame().to_string(index=False))
         iterations  loss  consensus_gap
                  0 2.000            0.0
                  1 0.500            0.0
                  2 0.125            0.0
        """
        return data_frame(self._columns())

    def _columns(self) -> dict[str, Array]:
        clock = {name: (self.events or {})[name] for name in ("time", "arrivals") if self.events}
        columns: dict[str, Array] = {"iterations": self.iterations} | clock | self.metrics
        return {name: values for name, values in columns.items() if not np.all(np.isnan(values.astype(float)))}

    def final_accuracy(self, last: int | None = None) -> float:
        """Mean accuracy over the last fifth of the run (:func:`final_accuracy`), or over the ``last`` evaluations."""
        if last is None:
            return self.final(self.accuracy)
        return float(np.mean(self.accuracy[-check_int(last, "last", low=1) :]))

    def final(self, curve: Array) -> float:
        """Mean of one of its curves over the last fifth of the run, by simulated time if evaluations go by that."""
        by_time = self.time is not None and self.config.get("eval_time") is not None
        return float(final_accuracy(self.time if by_time else self.iterations, curve))

    def plot(self, ax: Any = None, *, metric: str = "accuracy", label: str | None = None, x: str | None = None) -> Any:
        """Draw one curve on ``ax``, by default new axes, and return the axes. Needs matplotlib.

        ``x`` is what it is drawn against, as in :meth:`byzadmm.Study.plot`: "iterations", "bytes", "seconds", or with
        delays "time", which is then the default, and "arrivals". The default label names algorithm and rule. Color and
        line are those of the algorithm in every picture of byzadmm, or others if the axes have a curve of that color
        already.
        """
        if metric not in self.metrics:
            raise ValueError(f"metric: expected one of {', '.join(self.metrics)}; got {metric!r}")
        if ax is None:
            from matplotlib import pyplot

            _, ax = pyplot.subplots()
        elif not hasattr(ax, "get_lines"):
            raise TypeError(f"ax: expected matplotlib axes, got {type(ax).__name__}; plot().figure.savefig(path) saves")
        from matplotlib.colors import to_hex

        from byzadmm.catalogue import label_of, styles
        from byzadmm.study.places import LABELS, choose_x, places_of

        name, usual = label_of(self.config["algorithm"])
        look = styles([name], [to_hex(line.get_color()) for line in ax.get_lines()])[name]
        given = usual if label is None else label
        axis = choose_x(x, [self])
        ax.plot(places_of(self, axis), self.metrics[metric], label=given, color=look.color, linestyle=look.line)
        ax.set_xlabel(LABELS[axis])
        ax.set_ylabel(metric.replace("_", " "))
        ax.legend()
        return ax

    def plot_weights(self, path: str | os.PathLike[str] | None = None, *, ax: Any = None) -> Any:
        """Draw the mean weights that a filter gave to regular and to Byzantine workers, and return the axes.

        Needs matplotlib. A perfect filter has the regular workers at their full weight and the Byzantine ones at zero.

        Parameters
        ----------
        path : path, optional
            Write the picture there: PNG, PDF or SVG.
        ax : axes, optional
            Draw there; by default on a new figure.
        """
        if self.weights is None:
            raise ValueError("weights: expected a run with a filter, got one without")
        from byzadmm.catalogue import label_of
        from byzadmm.study.plots import draw_weights

        return draw_weights(self.iterations, self.weights, label_of(self.config["algorithm"])[1], path, ax)

    def __repr__(self) -> str:
        last = self.accuracy[-1] if len(self.accuracy) else float("nan")
        from byzadmm.catalogue import label_of

        name = label_of(self.config["algorithm"])[1]
        return f"<Result {name}, {self.iterations[-1]} iterations, accuracy {last:.3f}>"


def final_accuracy(iterations: Any, accuracy: Any) -> Any:
    """Mean accuracy over the evaluations at ``k >= 0.8 K`` of a run of ``K`` iterations.

    This is what "final accuracy" means everywhere: in tables, searches, claims, heat maps and legends.

    Parameters
    ----------
    iterations : (t,) array
        Iterations done at each evaluation, or the simulated time then; ascending.
    accuracy : (..., t) array
        One curve, or several along the other axes.

    Returns
    -------
    (...) array, or a number for one curve

    Examples
    --------
    >>> from byzadmm.results import final_accuracy
    >>> float(final_accuracy([0, 50, 80, 100], [0.1, 0.5, 0.8, 1.0]))
    0.9
    """
    k = np.asarray(iterations)
    end = k[-1] if k.dtype.kind in "iu" else k[-1] * (1 - 1e-9)  # multiples of a time are rounded
    return np.mean(np.asarray(accuracy)[..., 5 * k >= 4 * end], axis=-1)


def versus_ideal(accuracy: float, ideal: float | None) -> str:
    """A final accuracy compared with that of Ideal SGD, in words.

    Examples
    --------
    >>> from byzadmm.results import versus_ideal
    >>> versus_ideal(0.94, 0.95), versus_ideal(0.9, 0.95), versus_ideal(0.1, 0.95)
    ('close', '0.050 below', 'fails')
    """
    if ideal is None:
        return ""
    if not accuracy >= FAILS * ideal:
        return "fails"
    return "close" if accuracy >= ideal - CLOSE else f"{ideal - accuracy:.3f} below"


def _layout(found: dict[str, Found]) -> dict[str, Found]:
    """Shape and dtype of every array of a result, given the lengths of its iterations, ``x0`` and ``x``."""
    t, d, m = (next(iter(found[name][0]), 0) if name in found else 0 for name in ("iterations", "x0", "x"))
    if "x" not in found and "trajectory_x" in found:  # a study keeps the trajectory without the last models
        m = (*found["trajectory_x"][0], 0, 0)[1]
    kind = found["x0"][1] if found["x0"][1] in (np.float32, np.float64) else np.dtype(np.float64)
    wanted: dict[str, Found] = {name: ((max(t, 1),), _KINDS[name]) for name in _CURVES}
    wanted["x0"] = (d,), kind
    if "x" in found:
        wanted["x"] = (m, d), kind
    for name, shape in (("x0", (d,)), ("x", (m, d))):
        if f"trajectory_{name}" in found:
            wanted[f"trajectory_{name}"] = (t, *shape), kind
    whole = np.dtype(np.int64)
    events = {name: about for name, about in found.items() if name.startswith("events_")}
    for name, (extent, given) in events.items():  # an algorithm may count in fractions
        own = given == np.float64 and name.removeprefix("events_") not in _COUNTS
        wanted[name] = (next(iter(extent), 0),), given if own else whole
    wanted |= {"events_time": wanted["loss"], "events_arrivals": (wanted["loss"][0], whole)} if events else {}
    return wanted | {name: wanted["loss"] for name in found if name.startswith(("metric_", "weights_"))}
