"""One child process: started in a group of its own, read line by line, ended for certain."""

import asyncio
import os
import signal
import sys
from asyncio.subprocess import DEVNULL, PIPE, STDOUT, Process
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field

from omni_contract.wire.exit_codes import MEANINGS
from omni_runtime.local.plan import ProcessPlan

LONGEST_LINE_BYTES = 64 * 1024


@dataclass
class Bond:
    """A pipe that ends with this process; children watch its other end."""

    read_end: int = field(init=False)
    write_end: int = field(init=False)

    def __post_init__(self) -> None:
        self.read_end, self.write_end = os.pipe()

    def close(self) -> None:
        os.close(self.read_end)
        os.close(self.write_end)


class ChildProcess:
    def __init__(self, process: Process) -> None:
        self._process = process
        self._is_gone = False
        """The whole group is; from then on its number may be another's."""

    @classmethod
    async def start(cls, plan: ProcessPlan, bond: Bond, environment: Mapping[str, str]) -> "ChildProcess":
        """Call from the main thread: the kernel's parent-death signal follows the thread that forked."""
        launcher = ("-m", "omni_runtime.local.child", str(bond.read_end), str(os.getpid()))
        process = await asyncio.create_subprocess_exec(
            sys.executable,
            *launcher,
            plan.module,
            *plan.arguments,
            env={**environment, **plan.environment},
            pass_fds=(bond.read_end,),
            stdin=DEVNULL,
            stdout=PIPE,
            stderr=STDOUT,
            start_new_session=True,
            limit=LONGEST_LINE_BYTES,
        )
        return cls(process)

    @property
    def pid(self) -> int:
        return self._process.pid

    async def read_lines(self, take: Callable[[str], None]) -> None:
        """Hand on each line of output until it ends; a line beyond the limit arrives in pieces."""
        stream = self._process.stdout
        assert stream is not None
        while piece := await _line_or_piece(stream):
            take(piece.decode(errors="replace").rstrip("\n"))

    async def wait(self) -> int:
        """The exit code; minus the signal's number if one ended it. What is left of its group ends with it."""
        code = await self._process.wait()
        self.kill()
        self._is_gone = True
        return code

    async def stop(self, timeout_s: float) -> None:
        """SIGTERM, so that it drains; SIGKILL to the whole group when the time is up."""
        with suppress(ProcessLookupError):
            self._process.send_signal(signal.SIGTERM)
        try:
            async with asyncio.timeout(timeout_s):
                await self._process.wait()
        except TimeoutError:
            self.kill()

    def kill(self) -> None:
        if self._is_gone:
            return
        with suppress(ProcessLookupError):
            os.killpg(self._process.pid, signal.SIGKILL)


async def _line_or_piece(stream: asyncio.StreamReader) -> bytes:
    try:
        return await stream.readuntil(b"\n")
    except asyncio.IncompleteReadError as end:
        return end.partial
    except asyncio.LimitOverrunError as overrun:
        return await stream.read(max(overrun.consumed, 1))


def describe_exit(code: int) -> str:
    """What an exit code says, as the middle of a sentence."""
    if code in MEANINGS:
        return f"exited with code {code} ({MEANINGS[code]})"
    if code >= 0:
        return f"exited with code {code}"
    name = signal.Signals(-code).name
    return f"was killed by {name}" + (" (out of memory, or kill -9)" if name == "SIGKILL" else "")
