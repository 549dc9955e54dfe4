"""Cuts the items of one edge into chunks, as the edge's settings say. Pure: items in, chunks out."""

from collections import deque

from omni_contract.api.v1alpha1 import StreamingSpec
from omni_contract.wire.chunk import Chunk
from omni_contract.wire.payload import Payload


class Chunker:
    """Every item is in exactly one chunk, in order, and one chunk is the last."""

    def __init__(self, settings: StreamingSpec) -> None:
        self._settings = settings
        self._due = settings.initial_chunk_frames or settings.chunk_frames
        self._items: list[Payload] = []
        self._context: deque[Payload] = deque(maxlen=settings.left_context_frames)

    def add(self, item: Payload, is_last: bool = False) -> Chunk | None:
        """The chunk that the item completes. After the last one, nothing follows."""
        self._items.append(item)
        return self._cut(is_last) if is_last or len(self._items) == self._due else None

    def end(self) -> Chunk:
        """The items that are left, which may be none, where nobody knew of the last item that it was."""
        return self._cut(is_last=True)

    def _cut(self, is_last: bool) -> Chunk:
        chunk = Chunk(tuple(self._items), tuple(self._context), is_last)
        self._context.extend(self._items)
        self._items.clear()
        self._due = self._settings.chunk_frames
        return chunk
