"""Redundant gradients: encoding, and decoding with one forged row."""

from __future__ import annotations

from byzadmm import redundancy, reference

from .common import DTYPES, IMPLS, Benchmark, normal

#: Native code, and the twins of encoding and decoding; few workers, for the twin of the cyclic code tries every choice.
CODES = {
    "repetition": (redundancy.Repetition(3), reference.repetition_encode, reference.repetition_decode, 3),
    "cyclic": (redundancy.Cyclic(2), reference.cyclic_encode, reference.cyclic_decode, 2),
}


class Decode(Benchmark):
    """Nine workers, one of them Byzantine."""

    param_names = ("impl", "code", "d", "dtype")
    params = (IMPLS, list(CODES), [1000, 100_000], DTYPES)

    def setup(self, impl: str, code: str, d: int, dtype: str) -> None:
        native, _, decode, setting = CODES[code]
        G = normal(9, d, dtype=dtype)
        Z = redundancy.encode(G, native)
        Z[4] *= -3
        self.call = lambda: redundancy.decode(Z, native) if impl == "native" else decode(Z, setting)
        self.exact = lambda: G.astype("float64").mean(axis=0)


class Encode(Benchmark):
    """Nine workers."""

    param_names = Decode.param_names
    params = Decode.params

    def setup(self, impl: str, code: str, d: int, dtype: str) -> None:
        native, encode, _, setting = CODES[code]
        G = normal(9, d, dtype=dtype)
        self.call = lambda: redundancy.encode(G, native) if impl == "native" else encode(G, setting)
        self.exact = lambda: encode(G.astype("float64"), setting)
