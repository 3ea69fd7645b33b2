"""Clients of Flower in this process: messages of its own classes, and a grid that hands them out."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any

import numpy as np
from flwr.app import Array, ArrayRecord, Error, Message, Metadata, MetricRecord, RecordDict

#: Two layers and a counter.
SHAPES = {"weight": ((3, 2), np.float32), "bias": ((2,), np.float64), "steps": ((), np.int64)}


def model(values: Sequence[float]) -> dict[str, Any]:
    """Nine numbers as the layers of SHAPES."""
    v = np.asarray(values, np.float64)
    parts = (v[:6].reshape(3, 2), v[6:8], v[8])
    return {name: np.asarray(part, dtype) for (name, (_, dtype)), part in zip(SHAPES.items(), parts, strict=True)}


def flat(record: ArrayRecord) -> np.ndarray[Any, Any]:
    """The numbers of a record of SHAPES in their order; checks names, shapes and dtypes."""
    layers = {name: layer.numpy() for name, layer in record.items()}
    assert {name: (a.shape, a.dtype) for name, a in layers.items()} == SHAPES, layers
    return np.concatenate([layers[name].ravel() for name in SHAPES])


def record(layers: Any) -> ArrayRecord:
    """Layers by name, as arrays or as Flower's own, or a list of arrays."""
    if isinstance(layers, ArrayRecord | list):
        return ArrayRecord(layers)
    return ArrayRecord({name: a if isinstance(a, Array) else Array(np.asarray(a)) for name, a in layers.items()})


def reply(node: int, layers: Any, metrics: dict[str, Any] | None = None, content: Any = None) -> Message:
    """The answer of a client."""
    if content is None:
        metrics = {"num-examples": 10, "loss": float(node)} if metrics is None else metrics
        content = {"arrays": record(layers), "metrics": MetricRecord(metrics)}
    about = Metadata(0, "", node, 0, "", "", 0.0, 100.0, "train")
    return Message(content if isinstance(content, Error) else RecordDict(content), metadata=about)


class Clients:
    """What a strategy asks of a grid; client i answers ``answers[i](round, layers)``, a model or a whole message."""

    def __init__(self, answers: Sequence[Callable[[int, dict[str, Any]], Any]]) -> None:
        self.answers = answers

    def get_node_ids(self) -> Iterable[int]:
        return range(len(self.answers))

    def send_and_receive(self, messages: Iterable[Message], timeout: float | None = None) -> Iterator[Message]:
        for message in reversed(list(messages)):  # in another order than they were sent
            node = message.metadata.dst_node_id
            layers = {name: layer.numpy() for name, layer in message.content["arrays"].items()}
            made = self.answers[node](message.content["config"]["server-round"], layers)
            yield made if isinstance(made, Message) else reply(node, made)
