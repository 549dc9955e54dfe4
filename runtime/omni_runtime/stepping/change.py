"""Wakes whoever waits for something to come true. On one event loop."""

import asyncio
from collections.abc import Callable


class Change:
    def __init__(self) -> None:
        self._happened = asyncio.Event()

    def notify(self) -> None:
        """All that wait look again."""
        self._happened.set()
        self._happened = asyncio.Event()

    async def until(self, holds: Callable[[], bool]) -> None:
        while not holds():
            await self._happened.wait()
