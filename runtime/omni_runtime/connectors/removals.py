"""Removes objects from a store of others, beside the event loop: those that wait together in one go."""

import asyncio
import logging
from collections.abc import Callable, Sequence
from contextlib import suppress
from functools import partial

from omni_runtime.connectors.threads import Threads

logger = logging.getLogger(__name__)

CLOSE_S = 5.0


class RemovalError(Exception):
    """The store did not remove an object that it has; the message says why."""


class Removals:
    """`remove` blocks; it raises RemovalError, and nothing for an object that is gone already."""

    def __init__(self, threads: Threads, remove: Callable[[str], None], removed: Callable[[str], None]) -> None:
        self.trouble = ""
        """Why the last removal failed; empty if it did not."""
        self._threads = threads
        self._remove = remove
        self._removed = removed
        self._waiting: list[str] = []
        self._task: asyncio.Task[None] | None = None

    def add(self, key: str) -> None:
        self._waiting.append(key)
        if self._task is None:
            self._task = asyncio.get_running_loop().create_task(self._run())

    async def close(self) -> None:
        """Waits for the removals that are under way, but not for a store that does not answer."""
        if self._task is not None:
            with suppress(TimeoutError):
                async with asyncio.timeout(CLOSE_S):
                    await self._task

    async def _run(self) -> None:
        try:
            while self._waiting:
                keys, self._waiting = self._waiting, []
                self.trouble = await self._threads.run(partial(self._remove_now, keys), late=lambda _: None)
                for key in keys:
                    self._removed(key)
        finally:
            self._task = None

    def _remove_now(self, keys: Sequence[str]) -> str:
        """Runs on a thread. After a failure the rest is left to the store: each further call might take as long."""
        for number, key in enumerate(keys):
            try:
                self._remove(key)
            except RemovalError as error:
                logger.warning("%d payloads could not be removed: %s", len(keys) - number, error)
                return f"payloads cannot be removed: {error}"
        return ""
