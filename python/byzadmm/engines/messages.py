"""Messages between master and workers: a header of 48 bytes and ``rows * dim`` little-endian numbers.

Nothing in a message is executed or unpickled. The form of an answer is checked in this module alone: it must have the
length, and begin with the header, of the answer that is owed. :func:`take_answers` checks all answers of a round in one
native pass; :func:`validate` checks one and names the fault. Whether the numbers are acceptable (finite, a dual in
``[-lam, lam]``) is decided by one native test for every engine, ``_core.acceptable``; ``take_answers`` includes it.
"""

from __future__ import annotations

import struct
import sys
from collections.abc import Sequence
from enum import IntEnum
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from byzadmm import _core
from byzadmm._internal.arrays import Array

__all__ = [
    "FAULTS",
    "HEADER_BYTES",
    "Expected",
    "Kind",
    "on_the_wire",
    "pack",
    "peek",
    "read_notice",
    "take_answers",
    "validate",
]

Bytes = NDArray[np.uint8]

_MAGIC, _VERSION = b"BYZA", 1
# magic, version, kind, dtype, save, run, token, first worker, rows, round, dim, seconds of work
_HEADER = struct.Struct("<4sBBBBIIIIqQd")
_FIXED = struct.Struct("<4sBBBBIIIIqQ")  # the same without the last, which the sender chooses
HEADER_BYTES = _HEADER.size
_DTYPES = (np.dtype(np.uint8), np.dtype("<f4"), np.dtype("<f8"))
_CODES = {"uint8": 0, "float32": 1, "float64": 2}
NOTICE_BYTES = 200
#: The numbers of a message that has none.
EMPTY: Array = np.zeros((1, 0), np.float32)

#: The faults that :func:`validate` names, in the order in which it looks for them.
FAULTS = {
    "oversized": "longer than any answer can be",
    "garbage": "not a message: too short, or no such magic, version or kind",
    "old_round": "an answer to an earlier question",
    "wrong_round": "an answer to a question that was not asked",
    "wrong_worker": "for other workers than those of its sender",
    "wrong_dtype": "numbers of another type than expected",
    "wrong_length": "too few or too many numbers",
}


class Kind(IntEnum):
    """What a message is about; an answer carries the kind of its question."""

    START = 1  #: down: x0, load your state; up: which workers continue from their saved state
    ROUND = 2  #: down: x0; up: what the workers send
    MODELS = 3  #: down: save your state if asked to; up: the workers' models, for evaluation only
    STOP = 4  #: down: end; up: ending
    NOTICE = 5  #: up: this rank cannot continue, and why
    OVER = 6  #: down: this run is over
    GO = 7  #: on a graph, down: begin; the ranks that have begun
    EXCHANGE = 8  #: on a graph, between ranks with neighbors: their messages
    ACCOUNT = 9  #: on a graph, up: what a rank has heard from each other
    REPORT = 3  #: an older name of MODELS


#: By number: a lookup in the enumeration itself takes ten times as long, and every message needs one.
_KINDS = {int(kind): kind for kind in Kind}


class Expected(NamedTuple):
    """The answer that a rank owes; anything else is a fault.

    Attributes
    ----------
    kind : Kind
    run, round : int
        Number of the run in this job, and of the round in the run.
    first, rows : int
        First worker and number of workers that it is for; in a round, counted among the workers that take part in it.
    dim : int
    dtype : "float32" or "float64"
    """

    kind: Kind
    run: int
    round: int
    first: int
    rows: int
    dim: int
    dtype: str

    @property
    def nbytes(self) -> int:
        """Length of that answer."""
        return HEADER_BYTES + self.rows * self.dim * _DTYPES[_CODES[self.dtype]].itemsize

    def header(self) -> bytes:
        """Its first bytes, all of the header but the seconds of work."""
        kind, run, number, first, rows, dim, dtype = self
        return _FIXED.pack(_MAGIC, _VERSION, kind, _CODES[dtype], 0, run, 0, first, rows, number, dim)


def pack(
    kind: Kind,
    numbers: Array,
    *,
    run: int = 0,
    round: int = 0,
    first: int = 0,
    token: int = 0,
    save: bool = False,
    seconds: float = 0.0,
) -> Bytes:
    """A message as bytes.

    Parameters
    ----------
    kind : Kind
    numbers : (rows, dim) array
        float32, float64, or uint8 for text.
    run, round, first : int
        As in :class:`Expected`.
    token : int
        Identifies the experiment, so that a rank does not load the saved state of another.
    save : bool
        With ``MODELS``: the rank is to save its state.
    seconds : float
        Time the rank worked on this answer.

    Returns
    -------
    (n,) uint8

    Examples
    --------
    >>> import numpy as np
    >>> from byzadmm.engines.messages import Expected, Kind, pack, validate
    >>> message = pack(Kind.ROUND, np.ones((2, 3), np.float32), round=7, first=4)
    >>> len(message)
    72
    >>> validate(message, Expected(Kind.ROUND, 0, 7, 4, 2, 3, "float32"))[0] is None
    True
    """
    rows, dim = numbers.shape
    code = _DTYPES.index(numbers.dtype.newbyteorder("<"))
    body = np.ascontiguousarray(numbers, _DTYPES[code])
    message = np.empty(HEADER_BYTES + body.nbytes, np.uint8)
    _HEADER.pack_into(message.data, 0, _MAGIC, _VERSION, kind, code, save, run, token, first, rows, round, dim, seconds)
    message[HEADER_BYTES:] = body.reshape(-1).view(np.uint8)
    return message


class Header(NamedTuple):
    """The fields of a message's header."""

    kind: Kind
    dtype: int  # index into _DTYPES
    save: bool
    run: int
    token: int
    first: int
    rows: int
    round: int
    dim: int
    seconds: float


def peek(message: Bytes) -> Header | None:
    """The header; None if these bytes are not a message of this format."""
    if len(message) < HEADER_BYTES:
        return None
    magic, version, kind, code, save, run, token, first, rows, number, dim, seconds = _HEADER.unpack_from(message.data)
    if magic != _MAGIC or version != _VERSION or kind not in _KINDS or code >= len(_DTYPES):
        return None
    return Header(_KINDS[kind], code, bool(save), run, token, first, rows, number, dim, seconds)


def body(message: Bytes, header: Header) -> Array:
    """The numbers (rows, dim) after a header that is known to be right; a view."""
    return message[HEADER_BYTES:].view(_DTYPES[header.dtype]).reshape(header.rows, header.dim)


def validate(message: Bytes, expected: Expected) -> tuple[str | None, Array | None]:
    """Check whether a message is the answer that is owed.

    Parameters
    ----------
    message : (n,) uint8
        Any bytes.
    expected : Expected

    Returns
    -------
    fault : str or None
        A key of ``FAULTS``; None if the message is accepted.
    numbers : (rows, dim) array or None
        A view into ``message``; None with a fault. The numbers may be NaN or infinite.

    Examples
    --------
    >>> import numpy as np
    >>> from byzadmm.engines.messages import Expected, Kind, pack, validate
    >>> owed = Expected(Kind.ROUND, run=0, round=7, first=4, rows=2, dim=3, dtype="float32")
    >>> validate(np.zeros(60, np.uint8), owed)
    ('garbage', None)
    >>> validate(pack(Kind.ROUND, np.ones((2, 3), np.float32), round=6, first=4), owed)
    ('old_round', None)
    """
    if len(message) == expected.nbytes and message[: _FIXED.size].tobytes() == expected.header():
        numbers: Array = message[HEADER_BYTES:].view(_DTYPES[_CODES[expected.dtype]])
        return None, numbers.reshape(expected.rows, expected.dim)
    return _fault(message, expected), None


def _fault(message: Bytes, expected: Expected) -> str:
    """The fault of a message that is not the expected one."""
    if len(message) > max(expected.nbytes, HEADER_BYTES + NOTICE_BYTES):
        return "oversized"
    header = peek(message)
    if header is None:
        return "garbage"
    asked, came = (expected.run, expected.round), (header.run, header.round)
    if came < asked:
        return "old_round"
    if came > asked or header.kind != expected.kind:
        return "wrong_round"
    if (header.first, header.rows) != (expected.first, expected.rows):
        return "wrong_worker"
    if header.dtype != _CODES[expected.dtype]:
        return "wrong_dtype"
    return "wrong_length" if header.dim != expected.dim or len(message) != expected.nbytes else "garbage"


def take_answers(
    answers: Sequence[tuple[Bytes, int, Expected]], bound: float, out: Array, present: Array, good: Array
) -> list[bool]:
    """Check, copy and screen the answers of a round in one native pass.

    Parameters
    ----------
    answers : list of (buffer, number of bytes in it, Expected)
    bound : float
        What no element may exceed in size; 0: it need only be finite.
    out : (m, dim) array
        Where the numbers of valid answers go.
    present, good : (m,) bool
        Set for the workers of valid answers, and for those whose numbers are acceptable.

    Returns
    -------
    list of bool
        Which answers are valid. The others are left to :func:`validate`: they have a fault, or numbers of another type
        than ``out``.
    """
    direct = [sys.byteorder == "little" and out.dtype == owed.dtype for _, _, owed in answers]
    native = [
        (buffer, count, owed.header(), owed.first, owed.rows)
        for (buffer, count, owed), is_direct in zip(answers, direct, strict=True)
        if is_direct
    ]
    valid = iter(_core.take_messages(native, HEADER_BYTES, bound, out, present, good))
    return [is_direct and next(valid) for is_direct in direct]


def seconds_of(message: Bytes) -> float:
    """The time that its sender claims to have worked; any number, NaN too."""
    [seconds] = struct.unpack_from("<d", message.data, _FIXED.size)
    return float(seconds)


def pack_notice(text: str) -> Bytes:
    """A message that says why a rank cannot continue."""
    letters = np.frombuffer(text.encode("ascii", "replace")[:NOTICE_BYTES].ljust(1), np.uint8)
    return pack(Kind.NOTICE, letters[None])


def read_notice(message: Bytes) -> str | None:
    """The text of a notice, printable and short whatever was sent; None if the message is not a notice."""
    header = peek(message)
    if header is None or header.kind != Kind.NOTICE:
        return None
    text = message[HEADER_BYTES : HEADER_BYTES + NOTICE_BYTES].tobytes().decode("ascii", "replace")
    return "".join(letter if letter.isprintable() and letter.isascii() else "?" for letter in text).strip()


def on_the_wire(numbers: Array, wire: np.dtype[Any], shrink: bool = False) -> Array:
    """``numbers`` in the type that travels, rounded to nearest, or toward zero with ``shrink``.

    Examples
    --------
    >>> import numpy as np
    >>> from byzadmm.engines import on_the_wire
    >>> float(on_the_wire(np.array([0.3]), np.dtype("f4"))[0]) > 0.3
    True
    >>> float(on_the_wire(np.array([0.3]), np.dtype("f4"), shrink=True)[0]) > 0.3
    False
    """
    if numbers.dtype == wire:
        return numbers
    with np.errstate(over="ignore", invalid="ignore"):
        sent = numbers.astype(wire)
        if shrink and wire.itemsize < numbers.dtype.itemsize:
            beyond = np.abs(sent) > np.abs(numbers)
            sent[beyond] = np.nextafter(sent[beyond], wire.type(0))
    return sent
