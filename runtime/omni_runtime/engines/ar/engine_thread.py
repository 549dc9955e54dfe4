"""One thread for what blocks: starting vLLM, preparing prompts. It lives as long as its engine.

Not a pool: a process that ends waits for a pool's threads, and vLLM's processes end with the thread that made them.
"""

import asyncio
import logging
import queue
import threading
from collections.abc import Callable
from concurrent.futures import Future
from typing import Any, TypeVar

logger = logging.getLogger(__name__)

T = TypeVar("T")


class EngineThread:
    def __init__(self, name: str) -> None:
        self._calls: queue.SimpleQueue[tuple[Future[Any], Callable[[], Any]] | None] = queue.SimpleQueue()
        self._thread = threading.Thread(target=self._main, name=name, daemon=True)
        self._thread.start()

    async def call(self, work: Callable[[], T]) -> T:
        """The work's result. Work that has begun goes on if its caller is cancelled; work that waits is dropped."""
        future: Future[T] = Future()
        self._calls.put((future, work))
        return await asyncio.wrap_future(future)

    def stop(self) -> None:
        """Ends the thread once the work before it is done; returns at once."""
        self._calls.put(None)

    def _main(self) -> None:
        while (call := self._calls.get()) is not None:
            future, work = call
            if future.set_running_or_notify_cancel():
                _settle(future, work)


def _settle(future: "Future[Any]", work: Callable[[], Any]) -> None:
    try:
        result = work()
    except Exception as error:
        # Whoever waits for the call gets it, whatever it is.
        logger.debug("a call failed", exc_info=True)
        future.set_exception(error)
    else:
        future.set_result(result)
