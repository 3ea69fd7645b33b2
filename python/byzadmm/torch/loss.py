"""The loss of a PyTorch module: gradients of every worker at its own parameters, on its own batches."""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import replace
from functools import cached_property
from typing import Any

import numpy as np
import torch
from torch.nn.functional import cross_entropy

from byzadmm._internal.arrays import Array, as_float
from byzadmm._internal.description import describe
from byzadmm._internal.labels import mapped
from byzadmm._internal.validation import check_int, check_workers
from byzadmm.datasets import Dataset
from byzadmm.losses.sampled import check_parts, spread_rows
from byzadmm.torch._batches import Batches, seeding
from byzadmm.torch._choice import Choice, choose
from byzadmm.torch._evaluation import Metric, check_metrics, measure
from byzadmm.torch._examine import check_device, examine, takes_logits, trained
from byzadmm.torch._on_samples import OnSamples
from byzadmm.torch._replica import Criterion, Replica
from byzadmm.torch._samples import Samples, read, test_set

__all__ = ["ModuleLoss"]

class ModuleLoss(OnSamples):
    """Mean criterion of a PyTorch module, one batch per worker and round.

    ``F_i(x) = mean over the samples of worker i of criterion(module_x(input), target)``, where ``x`` holds all
    trainable parameters in the order of ``module.named_parameters()``, flat. A batch is drawn with replacement by
    ``seed``, the worker and the round alone: it has the samples that ``losses.Softmax`` draws. What random layers
    (dropout) draw goes by the same three.

    Parameters
    ----------
    module : torch.nn.Module
        Is copied, never changed. Gradients are computed in the mode in which it comes (train, unless ``eval()`` was
        called), evaluations in evaluation mode. Layers with running statistics (batch norm) are refused, and so is
        whatever else changes in a forward pass. Frozen parameters stay as they are.
    train : (inputs, targets), torch Dataset, or Dataset of ``byzadmm.datasets``
        Tensors or arrays (N, ...) and (N, ...); the items of a torch Dataset are fetched once. The rows of a byzadmm
        Dataset come flat, multiplied by its scale.
    parts : list of index arrays, one per worker
        Of ``byzadmm.partition``.
    test : like ``train``, optional
        Default: the test set of a byzadmm Dataset, otherwise none.
    criterion : callable
        ``criterion(outputs, targets)``, the mean over a batch: a function or module of ``torch.nn``, or your own.
    batch_size, seed : int
    metrics : dict of str to callable, optional
        ``{name: f(outputs, targets) -> float}``: further curves, on the whole test set.
    vectorize : True, False or "auto"
        How the gradients of many workers are computed: at once with ``torch.func``, one after another, or the faster of
        the two, measured once per process and kind of module. The two differ in rounding, so the choice is part of a
        run's config: a checkpoint of the one is refused by the other. Over MPI, and for random layers, "auto" is False.
    device : str or torch.device
        Only "cpu" is tested.

    Examples
    --------
    >>> import torch
    >>> from byzadmm import SGD, attacks, datasets, partition, simulate, steps
    >>> from byzadmm.torch import ModuleLoss
    >>> data = datasets.load("digits")
    >>> _ = torch.manual_seed(0)
    >>> net = torch.nn.Sequential(torch.nn.Linear(64, 16), torch.nn.ReLU(), torch.nn.Linear(16, 10))
    >>> loss = ModuleLoss(net, data, partition.iid(data.train_y, 5, seed=0), vectorize=False)
    >>> loss
    ModuleLoss(Sequential, n_workers=5, dim=1210, vectorize=False)
    >>> sgd = SGD(rule="median", step=steps.constant(0.5))
    >>> run = simulate(None, None, loss=loss, algorithm=sgd, attack=attacks.SignFlip(), n_byzantine=1, iterations=200)
    >>> bool(run.accuracy[-1] > 0.8)
    True
    >>> loss.module(run.x0)[2].out_features
    10
    """

    thread_safe = True

    def __init__(
        self,
        module: torch.nn.Module,
        train: Any,
        parts: Sequence[Any],
        *,
        test: Any = None,
        criterion: Criterion = cross_entropy,
        batch_size: int = 32,
        seed: int = 0,
        metrics: Mapping[str, Metric] | None = None,
        vectorize: bool | str = "auto",
        device: str | torch.device = "cpu",
    ) -> None:
        if not isinstance(module, torch.nn.Module):
            raise TypeError(f"module: expected a torch.nn.Module, got {type(module).__name__}")
        if not callable(criterion):
            raise TypeError(f"criterion: expected a callable, got {type(criterion).__name__}")
        if not (isinstance(vectorize, bool) or vectorize == "auto"):
            raise ValueError(f"vectorize: expected True, False or 'auto', got {vectorize!r}")
        self.batch_size = check_int(batch_size, "batch_size", low=1, high=2**31 - 1)
        self.seed = check_int(seed, "seed", low=0, high=2**64 - 1)
        self.metrics = check_metrics(metrics)
        self.criterion, self.vectorize, self.device = criterion, vectorize, check_device(device)
        real = takes_logits(criterion)
        self._train = read(train, "train").on(self.device, real=real)
        held_out = test_set(train, test)
        self._test = None if held_out is None else held_out.on(self.device, real=real)
        self.parts = check_parts(parts, len(self._train))
        held = trained(module)
        self._module, self._names = copy.deepcopy(module), list(held)
        self._initial = torch.cat([value.detach().flatten().to("cpu", torch.float64) for value in held.values()])
        self._idle: dict[tuple[torch.dtype, bool], list[Replica]] = {}
        self._batches = Batches(self._train, self.parts, self.batch_size, self.seed)
        self._found = examine(
            lambda training: self._make(torch.float32, training),
            self._initial.to(self.device, torch.float32),
            self._train.part(torch.from_numpy(self._batches.rows([0], 1)[0])),
            criterion,
        )
        self._kind = self._found.checked_kind(train=self._train, test=self._test)
        self._labels = train.n_classes if isinstance(train, Dataset) else self._found.n_classes
        if vectorize is True:
            self._check_vectorized()

    # --- what the protocol of losses asks for -------------------------------------------------------------------------

    @property
    def dim(self) -> int:
        return len(self._initial)

    @property
    def n_workers(self) -> int:
        return len(self.parts)

    def initial(self) -> Array:
        """The module's own parameters."""
        return np.array(self._initial.numpy())

    def gradient(self, x: Any, *, worker: int, k: int) -> Array:
        """The gradient of ``worker`` at ``x`` (dim,) on its batch of round ``k``."""
        model = self._checked(x)
        out: Array = np.empty((1, self.dim), model.dtype)
        workers = check_workers([worker], "worker", self.n_workers)
        self.gradients(model, workers=workers, k=check_int(k, "k", low=0), out=out)
        return out.ravel()

    def gradients(self, models: Array, *, workers: Sequence[int], k: int, out: Array) -> None:
        """The gradients of ``workers`` at their models (n, dim), or at one model (dim,), into ``out``."""
        if len(workers):
            self._gradients(self.choice.vectorized, torch.from_numpy(models), workers, k, torch.from_numpy(out))

    def value(self, x: Any) -> float:
        """Mean loss on training samples (5000 of them if there are more), in evaluation mode."""
        return self._measure(self._checked(x), self._some)["loss"]

    def evaluate(self, x: Any) -> dict[str, float]:
        """The curves of a run, in evaluation mode.

        Labels: "accuracy" and "loss" on the test set. Real targets: "loss" on training samples (5000 of them if there
        are more), "test_loss" on the test set. Without a test set: "loss" on training samples. Besides, the metrics.
        """
        model = self._checked(x)
        if self._test is None:
            return self._measure(model, self._some, self.metrics)
        found = self._measure(model, self._test, self.metrics, kind=self._kind)
        if self._kind == "real":
            found = {"loss": self.value(model), "test_loss": found.pop("loss")} | found
        return found

    def poisoned(self, workers: Iterable[int], mapping: Any = None) -> ModuleLoss:
        """The same with labels ``K - 1 - y``, or ``mapping[y]`` (K labels, or a dict), for ``workers``."""
        if self._kind == "real":
            raise ValueError("attack: label flipping needs targets that are labels; this module's targets are real")
        new = mapped(mapping, self._labels)
        flipped = frozenset(check_workers(workers, "workers", self.n_workers))
        made = copy.copy(self)
        made._batches = replace(self._batches, flipped=flipped, mapping=torch.from_numpy(new).to(self.device))
        return made

    def describe(self) -> dict[str, Any]:
        """Settings as plain values, among them whether gradients are vectorized; numbers are in the fingerprint."""
        return {
            "name": type(self).__name__,
            "module": type(self._module).__name__,
            "criterion": describe(self.criterion),
            "metrics": sorted(self.metrics),
            "seed": self.seed,
            "vectorized": self.choice.vectorized,
            "device": str(self.device),
        }

    def fingerprint(self) -> list[Any]:
        """Settings, data, the workers' shares, the module's architecture as text, all its parameters and buffers."""
        samples = [part for part in (self._train, self._test) if part is not None]
        data = [tensor.cpu() for part in samples for tensor in (part.inputs, part.targets)]
        state = [tensor.detach().cpu() for tensor in (*self._module.parameters(), *self._module.buffers())]
        modes = [layer.training for layer in self._module.modules()]
        about = [repr(self.describe()), self.batch_size, repr(self._module), repr(modes)]
        return [*about, *data, *(part.scale for part in samples), *self.parts, *state]

    # --- what it offers besides ---------------------------------------------------------------------------------------

    def module(self, x: Any) -> torch.nn.Module:
        """A new module with the parameters ``x`` (dim,), of the dtype of ``x``, on the loss's device."""
        model = torch.from_numpy(self._checked(x)).to(self.device)
        made = copy.deepcopy(self._module).to(device=self.device, dtype=model.dtype)
        held = dict(made.named_parameters())
        sizes = [held[name].numel() for name in self._names]
        with torch.no_grad():
            for name, part in zip(self._names, model.split(sizes), strict=True):
                held[name].copy_(part.view_as(held[name]))
        return made

    @cached_property
    def choice(self) -> Choice:
        """Whether gradients are computed for all workers at once, and why; "auto" measures here."""
        if isinstance(self.vectorize, bool):
            return Choice(self.vectorize)
        if self._found.draws:
            return Choice(False, "random layers draw worker by worker")
        if self.n_workers == 1:
            return Choice(False, "one worker")
        shape, criterion = tuple(self._train.inputs.shape[1:]), str(describe(self.criterion))
        key = (repr(self._module), tuple(self._names), shape, criterion, str(self.device), self.dim)
        sizes = (self.n_workers, self.batch_size, torch.get_num_threads())
        return choose((key, sizes), lambda: self._trial(False), lambda: self._trial(True))

    def __repr__(self) -> str:
        about = f"{self.vectorize!r}"
        if self.vectorize == "auto" and "choice" in vars(self):
            about = f"'auto' ({self.choice.vectorized}, {self.choice.reason})"
        kind = type(self._module).__name__
        return f"ModuleLoss({kind}, n_workers={self.n_workers}, dim={self.dim}, vectorize={about})"

    # --- gradients ----------------------------------------------------------------------------------------------------

    def _gradients(
        self, vectorized: bool, models: torch.Tensor, workers: Sequence[int], k: int, out: torch.Tensor
    ) -> None:
        here = out if self.device.type == "cpu" else torch.empty_like(out, device=self.device)
        models, dtype = models.to(self.device, out.dtype), out.dtype
        with self._replica(dtype, training=True) as replica, torch.enable_grad(), self._seeding() as seed:
            if vectorized:
                replica.all_at_once(models, *self._batches.together(workers, k, dtype), here)
            else:
                batches = self._batches.each(workers, k, dtype)
                replica.one_by_one(models, batches, here, lambda row: seed(workers[row], k))
        if here is not out:
            out.copy_(here)

    @contextmanager
    def _replica(self, dtype: torch.dtype, *, training: bool) -> Iterator[Replica]:
        """A module that no other thread uses; runs side by side may share this loss."""
        idle = self._idle.setdefault((dtype, training), [])
        try:
            replica = idle.pop()
        except IndexError:
            replica = self._make(dtype, training)
        try:
            yield replica
        finally:
            replica.release()
            idle.append(replica)

    def _make(self, dtype: torch.dtype, training: bool) -> Replica:
        return Replica(self._module, self.criterion, self._names, dtype, self.device, training=training)

    def _seeding(self) -> AbstractContextManager[Callable[[int, int], None]]:
        return seeding(self.seed, self.device) if self._found.draws else nullcontext(lambda worker, k: None)

    # --- evaluation ---------------------------------------------------------------------------------------------------

    @cached_property
    def _some(self) -> Samples:
        rows = spread_rows(len(self._train))
        return self._train if rows is None else self._train.part(torch.from_numpy(rows))

    def _measure(
        self, model: Array, samples: Samples, metrics: Mapping[str, Metric] | None = None, *, kind: str = "real"
    ) -> dict[str, float]:
        row = torch.from_numpy(model).to(self.device)
        with self._replica(row.dtype, training=False) as replica, self._seeding() as seed:
            seed(self.n_workers, 0)  # a stream that no worker has
            return measure(replica, row, samples, kind, metrics or {})

    # --- checks -------------------------------------------------------------------------------------------------------

    def _checked(self, x: Any) -> Array:
        """``x`` as an array that torch may write to."""
        model = as_float(x, "x")
        if model.shape != (self.dim,):
            raise ValueError(f"x: expected shape ({self.dim},), got {model.shape}")
        return model if model.flags.writeable else model.copy()

    def _check_vectorized(self) -> None:
        if self._found.draws:
            raise ValueError(
                "vectorize: expected False or 'auto' for a module with random layers, whose draws go by worker"
            )
        try:
            self._trial(True)
        except Exception as error:  # torch.func raises many kinds, by layer
            raise ValueError(f"vectorize: torch.func cannot vectorize this module ({error})") from error

    def _trial(self, vectorized: bool) -> torch.Tensor:
        """Gradients of all workers at the start, in float32."""
        out = torch.empty(self.n_workers, self.dim)
        models = self._initial.to(torch.float32).repeat(self.n_workers, 1)
        self._gradients(vectorized, models, range(self.n_workers), 1, out)
        return out
