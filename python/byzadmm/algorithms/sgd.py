"""SGD at the master with any robust rule, momentum, Byrd-SAGA, LSVRG or a code: settings, both sides, native loop."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property, lru_cache, partial
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from byzadmm import _core, aggregators, steps
from byzadmm._internal.arrays import Array
from byzadmm._internal.description import describe
from byzadmm._internal.validation import check_choice, check_real
from byzadmm.aggregate._registry import Size
from byzadmm.algorithms import lsvrg
from byzadmm.algorithms.base import Algorithm, Heard, State, preset
from byzadmm.algorithms.coded import coded_messages, decoded_mean
from byzadmm.algorithms.joining import declared, draws, eliminated, joined, rule_of
from byzadmm.algorithms.saga import Saga
from byzadmm.filters import applied
from byzadmm.redundancy.base import Code, check_code

if TYPE_CHECKING:
    from byzadmm.datasets import Dataset
    from byzadmm.training.experiment import Experiment
    from byzadmm.training.workers import Group

__all__ = ["SGD"]

# The step that suits MNIST with pixels 0..255.
_PIXELS = steps.power(1e-4)


@dataclass(frozen=True)
class SGD(Algorithm):
    """Stochastic gradient descent at the master, the workers' gradients combined by a rule.

    ``x0 <- x0 - a (rule(g_1, ..., g_m) + rho x0)``

    The default step is for MNIST with pixels 0..255: :meth:`for_dataset` has one for your data.

    Parameters
    ----------
    rule : str, callable, or a list of them
        Whatever :func:`byzadmm.aggregators.make` takes: a name ("median", "krum"), a chain of names ("nnm+krum"), an
        object of ``byzadmm.aggregators``, any function (n, d) -> (d,), or a list of pre-aggregations and one rule. A
        chain with a function of your own runs step by step.
    step : step size
    f : int
        Declared number of Byzantine workers, for every rule named that takes it.
    ideal : bool
        The Byzantine workers are excluded: the reference of every comparison.
    momentum : float in [0, 1)
        Workers send ``m_i <- momentum m_i + (1 - momentum) g_i`` in place of ``g_i``.
    variance_reduction : None, "saga" or "lsvrg"
        Byrd-SAGA: ``g_i`` is corrected by a table of past gradients of the worker's samples. For the losses of
        ``byzadmm.losses`` on a data set. LSVRG: by the full gradient at a snapshot of the model, which a worker renews
        with probability ``b / n_i`` in a round (one in ten for a loss without samples). For losses with
        ``full_gradient``.
    filter : None, a filter of ``byzadmm.filters``, or an object with its methods
        It weighs the messages before the rule: those of weight zero are excluded and lower ``f`` by their number. The
        rule "mean" uses the weights, other rules use the rows alone.
    coding : Code of ``byzadmm.redundancy``, optional
        Every batch is computed by several workers, and the master decodes the mean of all batches whatever a few
        workers send. With the rule "mean" alone; momentum then acts on the decoded mean, at the master.

    Examples
    --------
    >>> from byzadmm import SGD, steps
    >>> SGD(rule="nnm+krum", f=2, step=steps.power(1e-4), momentum=0.9).message
    'gradient'

    References
    ----------
    Karimireddy, He, Jaggi, "Learning from history for Byzantine robust optimization", ICML 2021 (momentum); Wu, Ling,
    Chen, Giannakis, "Federated variance-reduced stochastic gradient descent with robustness to Byzantine attacks",
    IEEE Trans. Signal Processing 68, 2020 (Byrd-SAGA); Kovalev, Horvath, Richtarik, "Don't jump through hoops and
    remove those loops", ALT 2020 (LSVRG); Chen, Wang, Charles, Papailiopoulos, "DRACO", ICML 2018 (coding).
    """

    rule: str | Callable[..., Any] | Sequence[Any] = "mean"
    step: steps.Step = _PIXELS
    f: int = 0
    ideal: bool = False
    momentum: float = 0.0
    variance_reduction: str | None = None
    filter: Any = None
    coding: Code | None = None

    message: ClassVar[str] = "gradient"
    whole: ClassVar[tuple[str, ...]] = ("saga", "saga_mean")

    def __post_init__(self) -> None:
        steps.check_step(self.step, "step")
        links = self.chain().links
        if isinstance(self.rule, (list, tuple)) and not all(isinstance(part, str) for part in self.rule):
            object.__setattr__(self, "rule", tuple(self.rule))
        elif isinstance(self.rule, (str, list, tuple)):  # one spelling for every name
            object.__setattr__(
                self, "rule", "+".join(link.rule for link in links if isinstance(link, aggregators.Aggregator))
            )
        if not isinstance(self.ideal, (bool, np.bool_)):
            raise TypeError(f"ideal: expected True or False, got {type(self.ideal).__name__}")
        if not 0 <= check_real(self.momentum, "momentum") < 1:
            raise ValueError(f"momentum: expected a number in [0, 1), got {self.momentum!r}")
        if self.variance_reduction is not None:
            check_choice(self.variance_reduction, "variance_reduction", ("saga", "lsvrg"))
        if self.filter is not None:
            applied.check_filter(self.filter)
            if self.f:
                object.__setattr__(self, "filter", self.filter.declaring(self.f))
        if self.coding is not None:
            self._check_coding()

    def _check_coding(self) -> None:
        check_code(self.coding, "coding")
        if self.rule != "mean":
            raise ValueError(f'rule: expected "mean" with coding, which recovers the mean exactly, got {self.rule!r}')
        for name in ("variance_reduction", "filter"):
            if getattr(self, name) is not None:
                raise ValueError(f"{name}: expected None with coding, got {getattr(self, name)!r}")
        if self.ideal:
            raise ValueError("ideal: expected False with coding, which needs the messages of all workers, got True")

    @classmethod
    def for_dataset(cls, data: Dataset, **changes: Any) -> SGD:
        """The step for regression on ``data``, as in :meth:`ADMM.for_dataset`, with a rule of your choice.

        Examples
        --------
        >>> from byzadmm import SGD, datasets
        >>> SGD.for_dataset(datasets.load("digits"), rule="krum", f=8).step
        Power(c=10.0, p=0.5)
        """
        return SGD(**({"step": preset(data).step} | changes))

    @cached_property
    def _chain(self) -> aggregators.Chain:
        return rule_of(self.rule, self.f)

    def chain(self) -> aggregators.Chain:
        """The rule and what comes before it, as one callable."""
        return self._chain

    combination = chain

    @property
    def needs(self) -> tuple[str, ...]:
        kinds = {"saga": ("samples",), "lsvrg": ("full_gradient",)}
        wanted = () if self.variance_reduction is None else kinds[self.variance_reduction]
        return wanted if self.filter is None else (*wanted, *self.filter.needs)

    @property
    def validates(self) -> bool:
        return self.filter is not None and bool(self.filter.validates)

    @property
    def redundant(self) -> bool:
        return self.coding is not None

    def message_length(self, d: int) -> int:
        return d if self.coding is None else self.coding.length(d)

    def check(self, n: int, workers: int | None = None) -> None:
        self.chain().check(n, workers)
        if self.filter is not None:
            self.filter.check(n, workers)
        if self.coding is None:
            return
        if workers is not None and n != workers:
            raise ValueError(f"coding: expected the messages of all {workers} workers in every round, got {n}")
        self.coding.check(n)

    def declaring(self, f: int) -> SGD:
        return replace(self, rule=declared(self.rule, f), f=self.f or f)  # which declares it to the filter too

    def check_dtype(self, dtype: np.dtype[Any]) -> None:
        if dtype.type(self.momentum) >= 1:
            raise ValueError(f"momentum: expected a number in [0, 1) in {dtype}, got {self.momentum!r}")

    def local_step(self, k: int) -> float | None:
        return None if self.variance_reduction is not None or self.redundant else self.step(k)

    def worker_state(self, group: Group) -> State:
        if self.redundant:
            return {}
        state = {"g": group.zeros()}
        if self.momentum:
            state["momentum"] = group.zeros()
        if self.variance_reduction is not None:
            state |= lsvrg.begin(group) if self.variance_reduction == "lsvrg" else self._saga(group).begin()
        return state

    def answer(self, group: Group, state: State, x0: Array, k: int) -> Array:
        if self.coding is not None:
            return coded_messages(self.coding, group, x0, k)
        g = state["g"]
        part = group.taking_part
        if self.variance_reduction is None:
            made = group.gradients(x0, k, part)
        elif self.variance_reduction == "lsvrg":
            made = lsvrg.gradients(state, group, x0, k)
        else:
            made = self._saga(group).gradients(state, x0, [group.workers[row] for row in part], k)
        g[part] = made
        if self.momentum:
            _core.momentum_step(state["momentum"], g, self.momentum, group.threads)
            g = state["momentum"]
        messages: Array = g.copy()
        return messages

    def _saga(self, group: Group) -> Saga:
        held = group.held  # the tables of all, whoever takes part in a round
        made: Saga | None = held.kept.get("saga")
        if made is None:
            run = group.run
            assert run.samples is not None
            made = held.kept["saga"] = Saga(run.samples, held.workers, run.dtype)
        return made

    def master_state(self, run: Experiment) -> State:
        if self.redundant and self.momentum:
            return {"momentum": np.zeros(run.d, run.dtype)}
        state: State = {} if self.filter is None else applied.begin(self.filter, run)
        last = self.chain().links[-1]
        if isinstance(last, aggregators.CenteredClipping) and last.center is None:
            state["center"] = np.full(run.d, np.nan, run.dtype)
        return state

    def update(self, run: Experiment, state: State, heard: Heard, k: int) -> None:
        alpha = steps.at(self.step, "step", k, run.dtype)
        x0 = state["x0"]
        made = self._decoded if self.redundant else self._direction
        _core.sgd_step(x0, made(run, state, heard, k, alpha), x0, alpha, run.rho, run.threads)
        if self.filter is not None:
            applied.project(self.filter, state)

    def _decoded(self, run: Experiment, state: State, heard: Heard, k: int, alpha: float) -> Array:
        """The decoded mean, or its momentum; zero if the messages cannot be decoded."""
        assert self.coding is not None
        mean = decoded_mean(self.coding, run, heard, draws(run, k))
        if not self.momentum:
            return mean
        _core.momentum_step(state["momentum"], mean, self.momentum, run.threads)
        return state["momentum"]

    def _direction(self, run: Experiment, state: State, heard: Heard, k: int, alpha: float) -> Array:
        """The rule's result for the gradients that pass the filter; zero if they are too few for the rule."""
        weights, absent = None, eliminated(run, state, k)  # whom the filter eliminates now may still be heard now
        if self.filter is not None:
            rows, workers, weights, excluded = applied.passed(self.filter, run, state, *heard, k, alpha)
            heard, absent = Heard(rows, workers), absent + excluded
        out = np.zeros(run.d, run.dtype)
        if weights is not None and len(heard.rows) and self.rule == "mean":
            _core.mean(heard.rows, out, weights, None, run.threads)
            return out
        made = joined(self.chain(), run, state, heard, k, absent=absent)
        return out if made is None else made

    def fused(self, run: Experiment) -> Callable[[State, int, int], None] | None:
        loss, chain = run.native_loss, self.chain()
        plain = self.variance_reduction is None and self.filter is None and self.coding is None
        if loss is None or run.native_attack is None or not plain or not chain.planned:
            return None

        @lru_cache(maxsize=1)
        def plan_for(workers: tuple[int, ...], eliminated: int) -> _core.Plan | None:
            size = Size(len(workers), run.d, run.dtype)
            return chain.plan(size, workers=np.array(workers), eliminated=eliminated, rng=partial(draws, run))

        def advance(state: State, first: int, count: int) -> None:
            _core.run_sgd(
                loss,
                state,
                run.roles(state),
                plan=lambda workers, eliminated: plan_for(tuple(workers), eliminated),
                rho=run.rho,
                momentum=self.momentum,
                ideal=self.ideal,
                steps=steps.evaluate(self.step, "step", first, count, run.dtype),
                first=first,
            )

        return advance

    def defense(self, run: Experiment, state: State | None, x0: Array, k: int) -> Callable[[Array], Array] | None:
        if self.filter is None:
            return None
        alpha = steps.at(self.step, "step", k, run.dtype)
        held = self.master_state(run) | {"x0": x0, "eliminated": np.full(run.m, -1, np.int64)} | (state or {})
        applied.check_known(self.filter, state)

        def direction(held: State, rows: Array, workers: Array) -> Array:
            return self._direction(run, held, Heard(rows, workers), k, alpha)

        return applied.frozen(held, run.sampling.workers(k), direction)

    def describe(self) -> dict[str, Any]:
        settings = super().describe()
        for name in ("filter", "coding"):  # as results and checkpoints of before have it
            if settings[name] is None:
                settings.pop(name)
        if hasattr(self.filter, "describe"):
            settings["filter"] = self.filter.describe()
        return settings | ({"rule": describe(self.rule.links)} if isinstance(self.rule, aggregators.Chain) else {})
