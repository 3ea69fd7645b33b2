"""Redundant gradients (DRACO): every batch is computed by several workers, so that forged messages can be corrected.

``m`` workers, ``m`` batches. A code says which batches a worker computes and how it combines their gradients into one
message; the master recovers the mean of all m gradients exactly, whatever a few workers send. Robust rules bound the
harm of forged messages; a code removes it, for several times the work.

:class:`Repetition` and :class:`Cyclic` are codes for ``SGD(coding=)``; :func:`encode` and :func:`decode` are for other
projects.
"""

from byzadmm.redundancy.base import REGISTRY, Code, DecodingError, decode, encode, register
from byzadmm.redundancy.cyclic import Cyclic
from byzadmm.redundancy.repetition import Repetition

__all__ = ["REGISTRY", "Code", "Cyclic", "DecodingError", "Repetition", "decode", "encode", "register"]
