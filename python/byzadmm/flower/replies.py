"""What clients send: layers and metrics, read without trust, and layers made of a vector."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from tokenize import TokenError
from typing import Any
from zipfile import BadZipFile

import numpy as np
from flwr.app import Array as Layer
from flwr.app import ArrayRecord, Message, MetricRecord, RecordDict

from byzadmm._internal.arrays import Array
from byzadmm._internal.validation import check_real
from byzadmm.layers import unflatten

__all__ = ["Reply", "layers_of", "median_metrics", "read", "record_of", "same_metrics", "same_structure"]

Layers = dict[str, Array]

#: What reading the bytes of an array may raise: an attacker writes them.
_UNREADABLE = (
    ArithmeticError,
    AttributeError,
    BadZipFile,
    EOFError,
    LookupError,
    MemoryError,
    OSError,
    RecursionError,
    SyntaxError,
    TokenError,
    TypeError,
    ValueError,
    Warning,
)


@dataclass
class Reply:
    """A reply to a training message.

    Attributes
    ----------
    node : number of the client
    content : what it sent
    layers : arrays by name
    weight : what it reports as its weight, 1 if nobody asked
    problem : why it is excluded, empty if it is not
    """

    node: int
    content: RecordDict
    layers: Layers
    weight: float = 1.0
    problem: str = ""

    @property
    def structure(self) -> tuple[tuple[str, tuple[int, ...], str], ...]:
        """Name, shape and dtype of every layer, by name."""
        return tuple(sorted((name, array.shape, array.dtype.name) for name, array in self.layers.items()))


def read(message: Message, weighted_by: str | None) -> Reply:
    """A message's layers, and its weight if a key is given; ``problem`` says what is wrong with it."""
    reply = Reply(message.metadata.src_node_id, message.content, {})
    try:
        records = list(reply.content.array_records.values())
        if len(records) != 1:
            raise ValueError(f"expected one ArrayRecord, got {len(records)}")
        reply.layers = layers_of(records[0])
        if weighted_by is not None:
            metrics = list(reply.content.metric_records.values())
            value = metrics[0].get(weighted_by) if len(metrics) == 1 else None
            reply.weight = check_real(value, weighted_by, low=0.0, strict=True)
    except (TypeError, ValueError) as error:
        reply.problem = str(error)
    return reply


def layers_of(record: ArrayRecord) -> Layers:
    """The arrays of a record by name; a ValueError says what is wrong with it."""
    layers = {}
    for name, layer in record.items():
        try:
            array = layer.numpy()
        except _UNREADABLE as error:
            raise ValueError(f"layer {name!r} cannot be read: {type(error).__name__}") from error
        if not isinstance(array, np.ndarray) or array.dtype.kind not in "fiub" or array.dtype.itemsize > 8:
            raise ValueError(f"layer {name!r} holds no real numbers")
        layers[name] = array
    if not layers:
        raise ValueError("the ArrayRecord is empty")
    return layers


def same_structure(replies: Sequence[Reply], sent: Layers | None) -> None:
    """Mark the replies whose layers are not those of most, or, of equally many, those that were sent."""
    wanted = None if sent is None else Reply(0, None, sent).structure
    found = Counter(reply.structure for reply in replies if not reply.problem)
    usual = max(found, key=lambda structure: (found[structure], structure == wanted), default=())
    for reply in replies:
        if not reply.problem and (other := set(reply.structure) ^ set(usual)):
            name, shape, dtype = layer = min(other)
            where = "its own" if layer in reply.structure else "missing"
            reply.problem = f"other layers than most clients: {name!r}, {dtype} {shape}, is {where}"


def record_of(made: Array, like: Layers) -> ArrayRecord:
    """A vector as layers with the names, shapes and dtypes of ``like``; whole numbers are rounded."""
    record = ArrayRecord()
    for (name, wanted), layer in zip(like.items(), unflatten(made, list(like.values())), strict=True):
        dtype = wanted.dtype.newbyteorder("=")
        if dtype.kind in "iu":
            largest = float(np.iinfo(dtype).max)
            if int(largest) > np.iinfo(dtype).max:  # 2^63 - 1 is no float64
                largest = float(np.nextafter(largest, 0))
            layer = np.clip(np.rint(layer.astype(np.float64)), np.iinfo(dtype).min, largest)
        elif dtype.kind == "b":
            layer = layer >= 0.5
        record[name] = Layer(np.asarray(layer, dtype=dtype))
    return record


def same_metrics(contents: Iterable[RecordDict]) -> list[RecordDict]:
    """Those with exactly one MetricRecord, of finite numbers, whose names are those of most."""
    named = [(content, _names(content)) for content in contents]
    found = Counter(names for _, names in named if names)
    usual = max(found, key=lambda names: found[names], default=None)
    return [content for content, names in named if names and names == usual]


def _names(content: RecordDict) -> tuple[tuple[str, int], ...]:
    """Names of metrics, and the lengths of lists among them; empty without exactly one record of finite numbers."""
    records = list(content.metric_records.values())
    values = {name: np.asarray(value, np.float64) for record in records for name, value in record.items()}
    if len(records) != 1 or not all(np.isfinite(value).all() for value in values.values()):
        return ()
    return tuple(sorted((name, value.size if value.ndim else -1) for name, value in values.items()))


def median_metrics(contents: list[RecordDict], weighted_by_key: str) -> MetricRecord:
    """Median of every metric over the clients, all counting the same: no minority of them moves it far.

    Lists are combined number by number. The key of the weights is left out.
    """
    records: list[dict[str, Any]] = [dict(next(iter(content.metric_records.values()))) for content in contents]
    combined = MetricRecord()
    for name in records[0]:
        if name != weighted_by_key:
            combined[name] = np.median([record[name] for record in records], axis=0).tolist()
    return combined
