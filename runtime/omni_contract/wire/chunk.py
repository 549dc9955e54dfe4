"""Items of a payload that is made bit by bit: how several of them travel together as one payload."""

from dataclasses import dataclass
from typing import TypeGuard

from omni_contract.wire.codec import CodecError
from omni_contract.wire.payload import Payload, Value

ITEMS, CONTEXT, LAST = "omni.items", "omni.context", "omni.last"
"""Keys of a chunk's payload; no engine gives its own values such names."""


@dataclass(frozen=True)
class Chunk:
    """Items in the order in which they were made. `context` repeats those just before them.

    The last chunk has the items that were left, which may be none.
    """

    items: tuple[Payload, ...]
    context: tuple[Payload, ...] = ()
    is_last: bool = False

    def payload(self) -> Payload:
        return {ITEMS: [*self.context, *self.items], CONTEXT: len(self.context), LAST: self.is_last}


def is_chunk(payload: Payload) -> bool:
    return ITEMS in payload


def chunk_of(payload: Payload) -> Chunk:
    """The chunk in a payload; one that was given whole is a single item. Raises CodecError if it is damaged."""
    if not is_chunk(payload):
        return Chunk((payload,), is_last=True)
    items, context, is_last = payload[ITEMS], payload.get(CONTEXT), payload.get(LAST)
    if not _are_payloads(items) or not isinstance(is_last, bool):
        raise CodecError("the items of a chunk must be maps, and it must say whether it is the last")
    if not isinstance(context, int) or not 0 <= context <= len(items):
        raise CodecError(f"a chunk of {len(items)} items cannot have {context!r} of context")
    return Chunk(tuple(items[context:]), tuple(items[:context]), is_last)


def _are_payloads(value: Value) -> TypeGuard[list[Payload]]:
    return isinstance(value, list) and all(isinstance(item, dict) for item in value)
