"""The event loop that owns some state, for callbacks that come from other threads or out of the middle of things."""

import asyncio
import threading
from collections.abc import Callable
from contextlib import suppress
from typing import TypeVarTuple

Arguments = TypeVarTuple("Arguments")


class HomeLoop:
    """The loop that runs where this is made."""

    def __init__(self) -> None:
        self._loop = asyncio.get_running_loop()
        self._thread = threading.get_ident()

    def call(self, callback: Callable[[*Arguments], object], *arguments: *Arguments) -> None:
        """Soon, never at once: a garbage collection calls this in the middle of anything. Not after the loop's end."""
        with suppress(RuntimeError):
            if threading.get_ident() == self._thread:
                self._loop.call_soon(callback, *arguments)
            else:
                self._loop.call_soon_threadsafe(callback, *arguments)
