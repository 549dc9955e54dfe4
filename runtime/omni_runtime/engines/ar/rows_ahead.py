"""A request's rows, read on while nobody takes them: those that came meanwhile are one piece then. Pure; no library."""

import asyncio
from collections.abc import Sequence
from contextlib import aclosing
from types import TracebackType
from typing import Self

from omni_contract.wire.errors import ErrorCode, OmniError
from omni_contract.wire.payload import Array
from omni_runtime.families.protocol import NextRows, PromptRows, RowSource

AHEAD = 1024
"""Pieces that may wait before no more are read."""


class RowsAhead:
    """Reads while the `async with` block runs, and closes the source at its end."""

    def __init__(self, rows: RowSource, most: int = AHEAD) -> None:
        self._rows = rows
        self._most = most
        self._waiting: list[PromptRows | NextRows] = []
        self._is_complete = False
        self._is_read = False
        self._changed = asyncio.Condition()
        self._reader: asyncio.Task[None] | None = None

    async def __aenter__(self) -> Self:
        self._reader = asyncio.create_task(self._read(), name="rows-ahead")
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, exc: BaseException | None, trace: TracebackType | None
    ) -> None:
        assert self._reader is not None
        self._reader.cancel()
        await asyncio.wait([self._reader])

    @property
    def is_over(self) -> bool:
        """Whether all has been taken, and nothing went wrong."""
        return self._is_complete and not self._waiting

    async def prompt(self) -> PromptRows:
        begun = await self._taken(1)
        if not begun or not isinstance(begun[0], PromptRows):
            raise OmniError(ErrorCode.STAGE_FAILED, "the input begins without a prompt")
        return begun[0]

    async def following(self) -> Array | None:
        """All that has come since, at least one row; None at the end. Raises what the source raised, once it is all."""
        arrays = [piece.rows for piece in await self._taken(self._most)]
        return joined(arrays) if arrays else None

    async def _taken(self, most: int) -> list[PromptRows | NextRows]:
        async with self._changed:
            await self._changed.wait_for(lambda: self._waiting or self._is_read)
            taken, self._waiting = self._waiting[:most], self._waiting[most:]
            self._changed.notify_all()
        if not taken and self._reader is not None:
            await self._reader
        return taken

    async def _read(self) -> None:
        try:
            async with aclosing(self._rows):
                async for piece in self._rows:
                    async with self._changed:
                        await self._changed.wait_for(lambda: len(self._waiting) < self._most)
                        self._waiting.append(piece)
                        self._changed.notify_all()
            self._is_complete = True
        finally:
            async with self._changed:
                self._is_read = True
                self._changed.notify_all()


def joined(arrays: Sequence[Array]) -> Array:
    if len(arrays) == 1:
        return arrays[0]
    rows = sum(array.shape[0] for array in arrays)
    return Array(arrays[0].dtype, (rows, arrays[0].shape[1]), memoryview(b"".join(array.data for array in arrays)))
