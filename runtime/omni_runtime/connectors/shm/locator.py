"""Where in shared memory a handle's payload lies."""

import struct
from typing import NamedTuple

from omni_contract.wire.errors import TransferError
from omni_contract.wire.stage_pb2 import Handle

FIXED = struct.Struct("<Q43s")
"""Offset and the arena's name; the locality follows."""


class Locator(NamedTuple):
    """`arena` is a file in a folder that those know who share the memory; `locality` is what they are called."""

    arena: str
    offset: int
    locality: str

    def to_bytes(self) -> bytes:
        return FIXED.pack(self.offset, self.arena.encode()) + self.locality.encode()


def locator_of(handle: Handle) -> Locator:
    """Raises TransferError if the handle, which comes from the network, has none."""
    locator = handle.locator
    if len(locator) < FIXED.size:
        raise TransferError(handle.edge, handle.request_id, "the handle names no place in shared memory")
    offset, arena = FIXED.unpack_from(locator)
    return Locator(arena.decode(errors="replace"), offset, locator[FIXED.size :].decode(errors="replace"))
