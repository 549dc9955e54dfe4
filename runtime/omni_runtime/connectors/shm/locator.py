"""Where in shared memory a handle's payload lies."""

import re
from dataclasses import dataclass

from omni_contract.wire.errors import TransferError
from omni_contract.wire.stage_pb2 import Handle

FORM = re.compile(rb"(omni-arena-[0-9a-f]{32}) ([0-9]{1,18}) (.*)", re.DOTALL)


@dataclass(frozen=True)
class Locator:
    """`arena` is a file in a folder that those know who share the memory; `locality` is what they are called."""

    arena: str
    offset: int
    locality: str

    def to_bytes(self) -> bytes:
        return f"{self.arena} {self.offset} {self.locality}".encode()


def locator_of(handle: Handle) -> Locator:
    """Raises TransferError if the handle, which comes from the network, has none."""
    found = FORM.fullmatch(handle.locator)
    if found is None:
        raise TransferError(handle.edge, handle.request_id, "the handle names no place in shared memory")
    return Locator(found[1].decode(), int(found[2]), found[3].decode(errors="replace"))
