"""Flower's federated averaging with a robust rule in the place of the average."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable, Sequence
from dataclasses import fields, is_dataclass, replace
from typing import Any

import numpy as np
from flwr.app import ArrayRecord, Message, MetricRecord
from flwr.serverapp.strategy import FedAvg

from byzadmm import aggregators
from byzadmm._internal.arrays import Array, as_float
from byzadmm._internal.validation import check_int, check_real, check_threads
from byzadmm.aggregate import cap_weights
from byzadmm.aggregators import Chain
from byzadmm.flower.replies import (
    Layers,
    Reply,
    layers_of,
    median_metrics,
    read,
    record_of,
    same_metrics,
    same_structure,
)
from byzadmm.layers import flatten

__all__ = ["RobustStrategy"]

_LOG = logging.getLogger("flwr")  # Flower's own


class RobustStrategy(FedAvg):  # type: ignore[misc]
    """Federated averaging with a robust rule in the place of the average.

    The layers of every client become one row, the rule makes one vector of the rows, and that becomes layers again, in
    their dtypes. A client whose reply is malformed (no or several array records, bytes that are no array, other layers,
    shapes or dtypes than most replies have, NaN or infinities, no positive weight where weights are asked for) is
    excluded and logged. Nothing that a client sends ends the run.

    ``f`` stays as declared as long as the rule tolerates it for the replies that are left. Where it does not, ``f`` is
    lowered, by at most the number of excluded replies, which are among the ``f``. If that does not suffice either, the
    round is skipped and the model stays. Clients that do not answer lower nothing.

    Parameters
    ----------
    rule : str, object, callable, or a list of them
        Whatever :func:`byzadmm.aggregators.make` takes: ``"nnm+krum"``, ``TrMean(f=2)``, a function of the rows.
    f : int
        Number of Byzantine clients to tolerate, among those that take part in a round.
    weighted : bool
        Whether rows count by what clients report under ``weighted_by_key``. A client may report any number: see
        ``cap``. By default all rows count the same.
    cap : float, optional
        Largest number that counts, where ``weighted``.
    relative : bool
        Whether rows are the differences to the model that was sent, as rules that clip or look at lengths and signs
        need them, or the replies themselves. The result is the same up to rounding for every rule that follows a shift.
    seed : int
        Seed of rules that draw, such as bucketing: a round draws the same in every run.
    threads : int
        Threads of the rule; 0 for all.
    fedavg
        Settings of Flower's ``FedAvg``: ``fraction_train``, ``min_train_nodes`` and so on, and functions that combine
        metrics. By default ``min_train_nodes`` and ``min_available_nodes`` are the fewest among which the rule
        tolerates ``f``, and metrics are combined by :func:`median_metrics`. Such a function is called with the records
        of replies whose metrics have the names of most, and finite values.

    Attributes
    ----------
    excluded : list of (int, str)
        Numbers of the clients that were excluded in the last round of training, and why.

    Examples
    --------
    >>> from byzadmm.flower import RobustStrategy
    >>> RobustStrategy("nnm+krum", f=2).min_train_nodes
    7
    """

    def __init__(
        self,
        rule: Any,
        f: int,
        *,
        weighted: bool = False,
        cap: float | None = None,
        relative: bool = True,
        seed: int = 0,
        threads: int = 0,
        **fedavg: Any,
    ) -> None:
        self.f = check_int(f, "f", low=0)
        self.chain = aggregators.make(rule, f=self.f)
        self.weighted, self.relative = bool(weighted), bool(relative)
        last = self.chain.links[-1]
        if self.weighted and not (is_dataclass(last) and "weights" in {item.name for item in fields(last)}):
            raise ValueError("weighted: the last rule takes no weights")
        if cap is not None and not self.weighted:
            raise ValueError("cap: bounds weights, so it needs weighted=True")
        self.cap = None if cap is None else check_real(cap, "cap", low=0.0, strict=True)
        self.seed, self.threads = check_int(seed, "seed", low=0), check_threads(threads)
        self.excluded: list[tuple[int, str]] = []
        self._sent: ArrayRecord | None = None
        fewest = self._fewest()
        usual: dict[str, Any] = {"min_train_nodes": fewest, "min_available_nodes": fewest}
        usual |= {"train_metrics_aggr_fn": median_metrics, "evaluate_metrics_aggr_fn": median_metrics}
        super().__init__(**(usual | fedavg))

    def summary(self) -> None:
        """Log the settings."""
        rules = " + ".join(getattr(link, "rule", getattr(link, "__name__", "")) for link in self.chain.links)
        _LOG.info("\t├──> Robust aggregation: %s, f = %d", rules, self.f)
        super().summary()

    def configure_train(self, server_round: int, arrays: Any, config: Any, grid: Any) -> Iterable[Message]:
        """As in FedAvg; the model that is sent is remembered."""
        self._sent = arrays
        messages: Iterable[Message] = super().configure_train(server_round, arrays, config, grid)
        return messages

    def aggregate_train(
        self, server_round: int, replies: Iterable[Message]
    ) -> tuple[ArrayRecord | None, MetricRecord | None]:
        """The rule's model, and the metrics of the replies that it was made of; None if the round is skipped."""
        sent = None if self._sent is None else layers_of(self._sent)
        came = [read(message, self.weighted_by_key if self.weighted else None) for message in self._answers(replies)]
        came.sort(key=lambda reply: reply.node)  # the result does not depend on who was first
        same_structure(came, sent)
        rows, center, like = self._rows([reply for reply in came if not reply.problem], sent)
        kept = [reply for reply in came if not reply.problem]
        self.excluded = [(reply.node, reply.problem) for reply in came if reply.problem]
        for node, problem in self.excluded:
            _LOG.warning("aggregate_train: client %d is excluded: %s", node, problem)
        try:
            made = self._combined(rows, center, [reply.weight for reply in kept], server_round)
        except ValueError as error:
            _LOG.warning("aggregate_train: round %d is skipped and the model stays: %s", server_round, error)
            return None, None
        _LOG.info("aggregate_train: %d of %d replies are used", len(kept), len(came))
        return record_of(made, like), self._metrics(kept, self.train_metrics_aggr_fn)

    def aggregate_evaluate(self, server_round: int, replies: Iterable[Message]) -> MetricRecord | None:
        """The metrics of the replies; None if there are none."""
        return self._metrics(self._answers(replies), self.evaluate_metrics_aggr_fn)

    @staticmethod
    def _answers(replies: Iterable[Message]) -> list[Message]:
        answers = []
        for message in replies:
            if message.has_error():
                _LOG.warning("client %d failed: %s", message.metadata.src_node_id, message.error.reason)
            else:
                answers.append(message)
        return answers

    def _metrics(self, replies: Iterable[Any], function: Callable[..., MetricRecord]) -> MetricRecord | None:
        contents = same_metrics(reply.content for reply in replies)
        return function(contents, self.weighted_by_key) if contents else None

    def _rows(self, replies: Sequence[Reply], sent: Layers | None) -> tuple[Array, Array | None, Layers]:
        """The finite rows, the model that they are relative to, and a model like it; the other replies are marked."""
        if not replies:
            return np.empty((0, 0)), None, {}
        like = replies[0].layers
        models = [[reply.layers[name] for name in like] for reply in replies]
        if self.relative and sent is not None and Reply(0, None, sent).structure == replies[0].structure:
            like = sent
            models = [[layers[name] for name in sent] for layers in (*(reply.layers for reply in replies), sent)]
        rows = flatten(models)[0]
        rows = rows.astype(np.result_type(rows.dtype, np.float32), copy=False)  # halves are too coarse for differences
        rows, center = rows[: len(replies)], rows[len(replies)] if len(models) > len(replies) else None
        if center is not None:
            with np.errstate(all="ignore"):  # what overflows is excluded next
                rows -= center
        finite = np.isfinite(rows).all(axis=1)
        for reply, good in zip(replies, finite, strict=True):
            if not good:
                reply.problem = "NaN or infinite values"
        return rows[finite], center, like

    def _combined(self, rows: Array, center: Array | None, weights: list[float], server_round: int) -> Array:
        """What the rule makes of the rows, as a model; a ValueError says why there is none."""
        n = len(rows)
        chain = self._chain_for(n, np.array(weights))
        made = chain.in_training(
            rows,
            workers=np.arange(n),
            eliminated=0,
            rng=np.random.default_rng([self.seed, server_round]),
            center=None if center is None else np.zeros_like(center),
            threads=self.threads,
        )
        if made is None:
            raise ValueError(f"the rule makes nothing of {n} replies")
        made = as_float(made, "rule")
        if made.shape != rows.shape[1:]:
            raise ValueError(f"rule: expected shape {rows.shape[1:]}, got {made.shape}")
        with np.errstate(all="ignore"):
            model: Array = made if center is None else made + center
        if not np.isfinite(model).all():
            raise ValueError("rule: the result is not finite")
        return model

    def _chain_for(self, n: int, weights: Array) -> Chain:
        """The chain for n replies, with ``f`` lowered as far as n needs and excluded replies allow."""
        for by in range(min(len(self.excluded), self.f) + 1):
            if self._tolerates(n, weights, by):
                return self._weighing(weights, by)
        raise ValueError(f"{n} usable replies, and {len(self.excluded)} that were excluded, are too few for f={self.f}")

    def _weighing(self, weights: Array, by: int) -> Chain:
        """The chain with ``f`` lowered, and weights where they are asked for."""
        chain = self.chain.lowered(by)
        if not self.weighted:
            return chain
        capped = weights if self.cap is None else cap_weights(weights, self.cap)
        return Chain((*chain.links[:-1], replace(chain.links[-1], weights=capped)))  # type: ignore[type-var]

    def _tolerates(self, n: int, weights: Array, by: int = 0) -> bool:
        """Whether the chain is legal for n replies of which ``f - by`` are Byzantine."""
        if not 2 * (self.f - by) < n:
            return False
        try:
            self._weighing(weights, by).check(n)
        except ValueError:
            return False
        return True

    def _fewest(self) -> int:
        """The fewest clients among whom the rule tolerates ``f``."""
        least = 2 * self.f + 1
        for n in range(least, 50 * least):
            if self._tolerates(n, np.ones(n)):
                return n
        self._weighing(np.ones(least), 0).check(least)  # says why
        raise ValueError(f"f: the rule tolerates no {self.f} Byzantine clients")
