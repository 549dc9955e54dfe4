"""Reading the items of several inputs at once, whether they come whole or bit by bit."""

import asyncio
from collections.abc import AsyncGenerator, AsyncIterator, Iterator, Mapping, Sequence
from contextlib import aclosing
from typing import TypeAlias

from omni_contract.wire.chunk import Chunk, is_chunk
from omni_contract.wire.payload import Payload
from omni_runtime.engines.protocol import StageRequest

EdgeItem: TypeAlias = tuple[str, Payload]
EdgePiece: TypeAlias = tuple[str, Sequence[Payload]]


async def items_as_they_come(request: StageRequest) -> AsyncGenerator[EdgeItem, None]:
    """Items of all inputs with their edge, each edge's in order. A chunk is asked for once the one before is taken."""
    async with aclosing(pieces_as_they_come(request, 1)) as pieces:
        async for edge, items in pieces:
            yield edge, items[0]


async def pieces_as_they_come(request: StageRequest, size: int) -> AsyncGenerator[EdgePiece, None]:
    """The same, up to `size` items of one chunk at a time."""
    chunks = {edge: request.chunks(edge) for edge in request.edges}
    if len(chunks) == 1:
        # Nobody else to listen to meanwhile.
        ((edge, only),) = chunks.items()
        async for chunk in only:
            for piece in _pieces(chunk, size):
                yield edge, piece
        return
    turns = {asyncio.create_task(_next(chunks[edge])): edge for edge in chunks}
    try:
        while turns:
            await asyncio.wait(turns, return_when=asyncio.FIRST_COMPLETED)
            for turn in [turn for turn in turns if turn.done()]:
                edge = turns.pop(turn)
                if (next_chunk := turn.result()) is None:
                    continue
                for piece in _pieces(next_chunk, size):
                    yield edge, piece
                turns[asyncio.create_task(_next(chunks[edge]))] = edge
    finally:
        for turn in turns:
            turn.cancel()
        await asyncio.gather(*turns, return_exceptions=True)


async def gathered(request: StageRequest) -> Mapping[str, Payload]:
    """Every input as one payload; that of an edge with items has them under "items", and the trail of the first."""
    plain = {edge: payload for edge, payload in request.inputs.items() if not is_chunk(payload)}
    if len(plain) == len(request.edges):
        return plain
    items: dict[str, list[Payload]] = {edge: [] for edge in request.edges if edge not in plain}
    async for edge, item in items_as_they_come(request):
        if edge in items:
            items[edge].append(item)
    return plain | {edge: {"items": each, "trail": each[0].get("trail", [])} for edge, each in items.items()}


async def _next(chunks: AsyncIterator[Chunk]) -> Chunk | None:
    return await anext(chunks, None)


def _pieces(chunk: Chunk, size: int) -> Iterator[Sequence[Payload]]:
    return (chunk.items[first : first + size] for first in range(0, len(chunk.items), size))
