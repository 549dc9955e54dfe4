"""Where in shared memory a handle's payload lies. First fit gives the same few places again and again."""

import struct
from functools import lru_cache
from typing import NamedTuple

from omni_contract.wire.errors import TransferError
from omni_contract.wire.stage_pb2 import Handle

FIXED = struct.Struct("<Q43s")
"""Offset and the arena's name; the locality follows."""
MOST_KNOWN, MOST_BYTES = 256, 1024
"""Of locators that are remembered, and of one: they come from the network."""


class Locator(NamedTuple):
    """`arena` is a file in a folder that those know who share the memory; `locality` is what they are called."""

    arena: str
    offset: int
    locality: str


@lru_cache(MOST_KNOWN)
def written(locator: Locator) -> bytes:
    """As a handle carries it."""
    return FIXED.pack(locator.offset, locator.arena.encode()) + locator.locality.encode()


def locator_of(handle: Handle) -> Locator:
    """Raises TransferError if the handle, which comes from the network, has none."""
    locator = handle.locator
    if not FIXED.size <= len(locator) <= MOST_BYTES:
        raise TransferError(handle.edge, handle.request_id, "the handle names no place in shared memory")
    return _read(locator)


@lru_cache(MOST_KNOWN)
def _read(locator: bytes) -> Locator:
    offset, arena = FIXED.unpack_from(locator)
    return Locator(arena.decode(errors="replace"), offset, locator[FIXED.size :].decode(errors="replace"))
