"""Plays an answer's sound while it comes, by whatever player this machine has."""

import asyncio
import shutil
from asyncio.subprocess import DEVNULL, PIPE, Process
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import TypeAlias

from omni_runtime.terminal_chat.settings import ChatError

Command: TypeAlias = tuple[str, ...]
PLAYERS: tuple[Command, ...] = (
    ("aplay", "-q", "-"),
    ("ffplay", "-nodisp", "-autoexit", "-loglevel", "error", "-i", "-"),
    ("play", "-q", "-t", "wav", "-"),
)
"""ALSA's, FFmpeg's and SoX's: each reads a WAV stream from its input, and ends with it."""


def find_player(which: Callable[[str], str | None] = shutil.which) -> Command:
    """The first player that is installed. Raises ChatError if none is."""
    for name, *options in PLAYERS:
        if (path := which(name)) is not None:
            return (path, *options)
    names = ", ".join(name for name, *_ in PLAYERS)
    raise ChatError(f"--play: none of {names} is installed here; install one, or save the sound with --save FILE")


class Player:
    """What it is given is played in its own time: the words need not wait for the sound."""

    def __init__(self, process: Process) -> None:
        self._process = process

    def play(self, data: bytes) -> None:
        if data and self._process.stdin is not None and self._process.returncode is None:
            self._process.stdin.write(data)

    async def end(self) -> None:
        """Waits until all of it was heard. Raises ChatError if the player could not play it."""
        if self._process.stdin is not None:
            self._process.stdin.close()
        _, said = await self._process.communicate()
        if self._process.returncode:
            words = said.decode(errors="replace").strip() or f"it ended with status {self._process.returncode}"
            raise ChatError(f"the sound could not be played: {words}")


@asynccontextmanager
async def playing(command: Command) -> AsyncIterator[Player]:
    """The player is gone when the block ends, whether it has come to its end or not."""
    process = await asyncio.create_subprocess_exec(*command, stdin=PIPE, stdout=DEVNULL, stderr=PIPE)
    try:
        yield Player(process)
    finally:
        if process.returncode is None:
            process.kill()
            await process.wait()
