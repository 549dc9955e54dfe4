"""An event loop in a thread of its own, for callers that have none."""

import asyncio
import threading
from collections.abc import AsyncGenerator, Coroutine, Generator
from typing import Any, TypeVar

T = TypeVar("T")


class LoopThread:
    """Child processes that it starts end with its thread, which lasts until `close` or the end of this process."""

    def __init__(self, name: str) -> None:
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, name=name, daemon=True)
        self._thread.start()

    @property
    def is_closed(self) -> bool:
        return self._loop.is_closed()

    def run(self, work: Coroutine[Any, Any, T]) -> T:
        """Its result. Whatever interrupts the wait, Ctrl-C above all, cancels the work."""
        done = asyncio.run_coroutine_threadsafe(work, self._loop)
        try:
            return done.result()
        finally:
            done.cancel()

    def iterate(self, items: AsyncGenerator[T, None]) -> Generator[T, None, None]:
        """What it gives, one by one. Leaving early closes it."""
        try:
            while found := self.run(_next(items)):
                yield found[0]
        finally:
            if not self.is_closed:
                self.run(items.aclose())

    def close(self) -> None:
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()
        self._loop.run_until_complete(self._loop.shutdown_asyncgens())
        self._loop.close()


async def _next(items: AsyncGenerator[T, None]) -> list[T]:
    """The next item, alone in a list; an empty one at the end."""
    try:
        return [await anext(items)]
    except StopAsyncIteration:
        return []
