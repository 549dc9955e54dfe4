"""A few threads for library calls that block, so that the event loop never does."""

import asyncio
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import TypeVar

T = TypeVar("T")


class Threads:
    """Bounded: a call that finds all threads busy waits its turn, within its own deadline."""

    def __init__(self, name: str, count: int) -> None:
        self._pool = ThreadPoolExecutor(count, thread_name_prefix=name)

    async def run(self, call: Callable[[], T], remaining_s: float, late: "Callable[[asyncio.Future[T]], None]") -> T:
        """The call's result; TimeoutError when the time is up.

        A call that has begun cannot be interrupted. If nobody waits for it any more, by timeout or cancellation, it
        runs to its end and `late` gets its future; the future is cancelled if the call never began.
        """
        job = self._pool.submit(call)
        future = asyncio.wrap_future(job)
        try:
            async with asyncio.timeout(remaining_s):
                return await asyncio.shield(future)
        except (TimeoutError, asyncio.CancelledError):
            job.cancel()
            future.add_done_callback(late)
            raise

    def close(self) -> None:
        """Begins nothing new; calls that run end by themselves."""
        self._pool.shutdown(wait=False, cancel_futures=True)
