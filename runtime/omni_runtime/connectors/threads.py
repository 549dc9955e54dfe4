"""A few threads for library calls that block, so that the event loop never does."""

import asyncio
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import TypeAlias, TypeVar

T = TypeVar("T")
Late: TypeAlias = Callable[[asyncio.Future[T]], None]


class Threads:
    """Bounded: a call that finds all threads busy waits its turn."""

    def __init__(self, name: str, count: int) -> None:
        self._pool = ThreadPoolExecutor(count, thread_name_prefix=name)

    async def run(self, call: Callable[[], T], late: Late[T]) -> T:
        """The call's result.

        A call that has begun cannot be interrupted. If its caller is cancelled (a passed deadline is that, too), it
        runs to its end and `late` gets its future; the future is cancelled if the call never began.
        """
        job = self._pool.submit(call)
        future = asyncio.wrap_future(job)
        try:
            return await asyncio.shield(future)
        except asyncio.CancelledError:
            job.cancel()
            future.add_done_callback(late)
            raise

    def close(self) -> None:
        """Begins nothing new; calls that run end by themselves."""
        self._pool.shutdown(wait=False, cancel_futures=True)
