"""Payloads that producer and test both make from a few words, so that the test knows what must arrive."""

from collections.abc import Sequence
from functools import lru_cache
from math import prod

from omni_contract.wire.codec import encode
from omni_contract.wire.payload import DTYPES, Array, Payload


def filled(size_bytes: int, seed: int = 0) -> memoryview:
    """Bytes that differ from place to place, so that a slice in the wrong place is noticed."""
    pattern = _pattern(min(size_bytes, 65_521), seed)
    repeats = size_bytes // len(pattern) + 1 if pattern else 0
    return memoryview(pattern * repeats)[:size_bytes]


@lru_cache(64)
def _pattern(size_bytes: int, seed: int) -> bytes:
    return bytes((seed + i * 7 + i // 251) % 256 for i in range(size_bytes))


def raw(size_bytes: int, seed: int = 0) -> Payload:
    return {"data": filled(size_bytes, seed), "size": size_bytes}


def array(dtype: str, shape: Sequence[int], seed: int = 0) -> Array:
    return Array(dtype, tuple(shape), filled(prod(shape) * DTYPES[dtype], seed))


def every_dtype() -> Payload:
    return {dtype: array(dtype, (3, 5), seed) for seed, dtype in enumerate(DTYPES)}


def several() -> Payload:
    """Nested tensors next to scalars, an empty one, one without dimensions."""
    return {
        "hidden": {"layers": [array("bfloat16", (2, 7, 8), 1), array("float32", (0, 4)), array("int64", (), 3)]},
        "mask": array("bool", (9,), 4),
        "text": "Grüße, 世界",
        "note": None,
        "scale": 0.125,
        "ids": [1, -(2**63), 2**63 - 1],
    }


def of_encoded_size(size_bytes: int) -> Payload:
    """A payload that takes exactly so many bytes on the wire."""
    empty = encode({"data": filled(size_bytes)}).size_bytes
    return {"data": filled(2 * size_bytes - empty)}
