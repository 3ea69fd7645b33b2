"""The algorithms of the paper as settings, checked when built: ADMM, RSA, and SGD with any rule."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from byzadmm import aggregators
from byzadmm._describe import describe, settings_of
from byzadmm._validation import check_choice, check_real
from byzadmm.steps import Step, check_step, inv_sqrt, power

if TYPE_CHECKING:
    from byzadmm.catalogue import Preset
    from byzadmm.datasets import Dataset

__all__ = ["ADMM", "RSA", "SGD"]

# What the paper prints for MNIST with pixels 0..255 (fig1a), and the step that suits SGD there.
_PRINTED_MASTER, _PRINTED_WORKER, _PRINTED_SGD = inv_sqrt(10, 10), inv_sqrt(0.5, 10), power(1e-4)

# Order of Rule in cpp/include/byzadmm/simulation.hpp.
_NATIVE_RULES = ("mean", "median", "trimmed_mean", "geometric_median")


def _preset(data: Dataset) -> Preset:
    """Imported when asked for: the catalogue is made of this module's classes."""
    from byzadmm.catalogue import preset_for

    return preset_for(data)


class _Described:
    """Settings as a plain dictionary, for a result's config."""

    message: ClassVar[str]

    def describe(self) -> dict[str, Any]:
        held = settings_of(self)
        if isinstance(held.get("rule"), aggregators.Chain):
            held["rule"] = held["rule"].links
        return {"name": type(self).__name__} | {name: describe(value) for name, value in held.items()}


@dataclass(frozen=True)
class ADMM(_Described):
    """Byzantine-robust stochastic ADMM (``eqxi-update``, ``eq11``, ``eqx0-update-1``).

    The defaults are what the paper prints for MNIST with pixels 0..255 under the Gaussian attack (fig1a), and suit
    hardly any other data: :meth:`for_dataset` has settings for yours.

    Parameters
    ----------
    lam : float > 0
        Weight of the TV norm; bounds every element of a dual.
    beta : float > 0
        Penalty parameter.
    master_step, worker_step : step sizes
        Of ``byzadmm.steps``, or any callable ``k -> float``.

    Examples
    --------
    >>> from byzadmm import ADMM, steps
    >>> ADMM(lam=0.5, beta=0.5, master_step=steps.inv_sqrt(10, 10), worker_step=steps.inv_sqrt(0.5, 10)).message
    'dual'
    """

    lam: float = 0.5
    beta: float = 0.5
    master_step: Step = _PRINTED_MASTER
    worker_step: Step = _PRINTED_WORKER

    message: ClassVar[str] = "dual"

    def __post_init__(self) -> None:
        check_real(self.lam, "lam", low=0.0, strict=True)
        check_real(self.beta, "beta", low=0.0, strict=True)
        check_step(self.master_step, "master_step")
        check_step(self.worker_step, "worker_step")

    @classmethod
    def for_dataset(cls, data: Dataset, **changes: Any) -> ADMM:
        """Settings for softmax regression on ``data``: the catalogue's, or derived from the scale of its gradients.

        Parameters
        ----------
        data : Dataset
            See :func:`byzadmm.catalogue.preset_for`.
        **changes
            Settings to use in place of those.

        Examples
        --------
        >>> from byzadmm import ADMM, datasets
        >>> ADMM.for_dataset(datasets.load("digits"), beta=1.0)
        ADMM(lam=0.01, beta=1.0, master_step=InvSqrt(c0=10.0, c1=0.3), worker_step=InvSqrt(c0=0.5, c1=0.3))
        """
        return replace(_preset(data).admm, **changes)


@dataclass(frozen=True)
class RSA(_Described):
    """RSA, the subgradient method on the same problem (``eq:rsa-update``).

    Steps have no default: :meth:`for_dataset` has settings for your data. That of ``lam`` is for MNIST with pixels
    0..255.

    Parameters
    ----------
    lam : float > 0
    step : step size of master and workers, or
    master_step, worker_step : one each

    Examples
    --------
    >>> from byzadmm import RSA, steps
    >>> RSA(lam=0.07, step=steps.power(1e-3)).worker_step(4)
    0.0005
    """

    lam: float = 0.07
    step: Step | None = None
    master_step: Step = None  # type: ignore[assignment]
    worker_step: Step = None  # type: ignore[assignment]

    message: ClassVar[str] = "primal"

    def __post_init__(self) -> None:
        check_real(self.lam, "lam", low=0.0, strict=True)
        given = (self.step is not None, self.master_step is not None, self.worker_step is not None)
        if given not in ((True, False, False), (False, True, True)):
            raise ValueError(
                "RSA: expected either step, or master_step and worker_step; "
                "RSA.for_dataset(data) has settings for your data"
            )
        if self.step is not None:
            object.__setattr__(self, "master_step", self.step)
            object.__setattr__(self, "worker_step", self.step)
        check_step(self.master_step, "master_step")
        check_step(self.worker_step, "worker_step")

    @classmethod
    def for_dataset(cls, data: Dataset, **changes: Any) -> RSA:
        """Settings for softmax regression on ``data``, as in :meth:`ADMM.for_dataset`.

        Examples
        --------
        >>> from byzadmm import RSA, datasets
        >>> RSA.for_dataset(datasets.load("digits")).step
        Power(c=3.0, p=0.5)
        """
        return _preset(data).rsa.changed(**changes)

    def changed(self, **changes: Any) -> RSA:
        """The same with other settings; ``step`` is for the ends that have none of their own among the changes.

        Examples
        --------
        >>> from byzadmm import RSA, steps
        >>> rsa = RSA(lam=0.1, step=steps.power(3.0)).changed(worker_step=steps.constant(1.0))
        >>> rsa.master_step, rsa.worker_step
        (Power(c=3.0, p=0.5), Constant(a=1.0))
        """
        step = changes.pop("step", self.step)
        if step is None or changes.keys() & {"master_step", "worker_step"}:
            held: dict[str, Any] = {"master_step": step or self.master_step, "worker_step": step or self.worker_step}
        else:
            held = {"step": step}
        return RSA(**({"lam": self.lam} | held | changes))


@dataclass(frozen=True)
class SGD(_Described):
    """Stochastic gradient descent at the master, the workers' gradients combined by a rule.

    ``x0 <- x0 - a (rule(g_1, ..., g_m) + rho x0)``

    The default step is for MNIST with pixels 0..255: :meth:`for_dataset` has one for your data.

    Parameters
    ----------
    rule : str, callable, or a list of them
        Whatever :func:`byzadmm.aggregators.make` takes: a name ("median", "krum"), a chain of names ("nnm+krum"), an
        object of ``byzadmm.aggregators``, any function (n, d) -> (d,), or a list of pre-aggregations and one rule. The
        names "mean", "median", "trimmed_mean" and "geometric_median" run natively, everything else step by step.
    step : step size
    f : int
        Declared number of Byzantine workers, for every rule named that takes it.
    ideal : bool
        The Byzantine workers take no part: the reference of every comparison.
    momentum : float in [0, 1)
        Workers send ``m_i <- momentum m_i + (1 - momentum) g_i`` in place of ``g_i``.
    variance_reduction : None or "saga"
        Byrd-SAGA: ``g_i`` is corrected by what is remembered of the worker's samples. For softmax regression.

    Examples
    --------
    >>> from byzadmm import SGD, steps
    >>> SGD(rule="nnm+krum", f=2, step=steps.power(1e-4), momentum=0.9).message
    'gradient'

    References
    ----------
    Karimireddy, He, Jaggi, "Learning from history for Byzantine robust optimization", ICML 2021 (momentum); Wu, Ling,
    Chen, Giannakis, "Federated variance-reduced stochastic gradient descent with robustness to Byzantine attacks",
    IEEE Trans. Signal Processing 68, 2020 (Byrd-SAGA).
    """

    rule: str | Callable[..., Any] | Sequence[Any] = "mean"
    step: Step = _PRINTED_SGD
    f: int = 0
    ideal: bool = False
    momentum: float = 0.0
    variance_reduction: str | None = None

    message: ClassVar[str] = "gradient"

    def __post_init__(self) -> None:
        check_step(self.step, "step")
        links = self.chain().links
        if isinstance(self.rule, (list, tuple)) and not all(isinstance(part, str) for part in self.rule):
            object.__setattr__(self, "rule", tuple(self.rule))
        elif isinstance(self.rule, (str, list, tuple)):  # one spelling for every name
            object.__setattr__(
                self, "rule", "+".join(link.rule for link in links if isinstance(link, aggregators.Aggregator))
            )
        if any(isinstance(getattr(link, "rng", None), np.random.Generator) for link in links):
            raise ValueError("rule: a generator cannot be resumed; leave rng out, and the run draws for every round")
        if not isinstance(self.ideal, (bool, np.bool_)):
            raise TypeError(f"ideal: expected True or False, got {type(self.ideal).__name__}")
        if not 0 <= check_real(self.momentum, "momentum") < 1:
            raise ValueError(f"momentum: expected a number in [0, 1), got {self.momentum!r}")
        if self.variance_reduction is not None:
            check_choice(self.variance_reduction, "variance_reduction", ("saga",))

    @classmethod
    def for_dataset(cls, data: Dataset, **changes: Any) -> SGD:
        """The step for softmax regression on ``data``, as in :meth:`ADMM.for_dataset`, with a rule of your choice.

        Examples
        --------
        >>> from byzadmm import SGD, datasets
        >>> SGD.for_dataset(datasets.load("digits"), rule="krum", f=8).step
        Power(c=10.0, p=0.5)
        """
        return SGD(**({"step": _preset(data).step} | changes))

    def chain(self) -> aggregators.Chain:
        """The rule and what comes before it, as one callable."""
        return aggregators.make(self.rule, f=self.f)

    def native_rule(self, n: int, workers: int | None = None) -> tuple[int, int, float, int] | None:
        """Rule, f, tolerance and iterations for the native loop, None if it lacks them.

        Settings that are illegal for ``n`` rows out of ``workers`` are an error.
        """
        self.chain().check(n, workers)
        if not isinstance(self.rule, str) or self.rule not in _NATIVE_RULES:
            return None
        if self.variance_reduction:
            return None
        return _NATIVE_RULES.index(self.rule), self.f, 1e-6, 1000
