"""The test's hand on the producing process."""

import asyncio
import atexit
import json
import os
import signal
import subprocess
import sys
import tempfile
from collections.abc import Mapping, Sequence
from contextlib import suppress
from functools import cache
from pathlib import Path
from typing import Any, Self

from omni_contract.wire.stage_pb2 import Handle
from omni_runtime.connectors.protocol import Census, MemoryPlace
from tests.connectors.backends import Backend

PATIENCE_S = 120.0
"""Only a hang takes so long, even on a loaded machine."""
LINE_BYTES = 2**20
"""An inline handle holds its payload, in hex."""
LIMIT_BYTES = 3 * 2**30
LOCALITY = "this-host"


class Refused(Exception):
    """The producer's connector raised TransferError; carries its message."""


class Peer:
    """Use as `async with`; `process` is the producer's operating-system process."""

    def __init__(
        self,
        backend: Backend,
        memory: MemoryPlace,
        folder: Path,
        boot_id: str = "boot-1",
        limit_bytes: int = LIMIT_BYTES,
        settings: Mapping[str, object] | None = None,
    ) -> None:
        """`settings` are changed in the backend's own."""
        self.address = f"unix:{folder}/peer.sock"
        specs = [spec.model_dump(mode="json", by_alias=True) for spec in backend.specs(**settings or {})]
        self._options = {
            "listen": self.address,
            "boot-id": boot_id,
            "limit-bytes": limit_bytes,
            "connector": backend.connector,
            "specs": json.dumps(specs),
            "memory": memory.folder,
            "locality": memory.locality,
        }
        self._answers: dict[int, asyncio.Future[dict[str, Any]]] = {}

    async def __aenter__(self) -> Self:
        answers, self._commands = await asyncio.open_unix_connection(_nursery(), limit=LINE_BYTES)
        self._commands.write(json.dumps([f"--{name}={value}" for name, value in self._options.items()]).encode())
        async with asyncio.timeout(PATIENCE_S):
            first = await answers.readline()
        assert first, "the producer ended at its start"
        self.process = Producer(json.loads(first)["pid"])
        self._reading = asyncio.create_task(self._read(answers))
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.kill()
        await self._reading
        self._commands.close()

    async def ask(self, what: str, **arguments: Any) -> dict[str, Any]:
        async with asyncio.timeout(PATIENCE_S):
            return await self.begin(what, **arguments)

    def begin(self, what: str, **arguments: Any) -> "asyncio.Future[dict[str, Any]]":
        """Sends the command; the future is its answer."""
        number = len(self._answers)
        future: asyncio.Future[dict[str, Any]] = asyncio.get_running_loop().create_future()
        self._answers[number] = future
        self._commands.write(json.dumps({"do": what, "number": number, **arguments}).encode() + b"\n")
        return future

    async def put(self, maker: str, *arguments: Any, remaining_s: float = PATIENCE_S) -> Handle:
        return handle_in(await self.ask("put", maker=maker, arguments=arguments, remaining_s=remaining_s))

    async def put_all(self, maker: str, of: Sequence[Sequence[Any]]) -> list[Handle]:
        """Each with arguments of its own, at once."""
        answer = await self.ask("put_all", maker=maker, of=of, remaining_s=PATIENCE_S)
        return [Handle.FromString(bytes.fromhex(handle)) for handle in answer["handles"]]

    async def open_stream(self, remaining_s: float = PATIENCE_S) -> Handle:
        return handle_in(await self.ask("open_stream", remaining_s=remaining_s))

    async def append(self, handle: Handle, *sizes: int) -> None:
        await self.ask("append", handle=handle.SerializeToString().hex(), sizes=sizes)

    async def end_stream(self, handle: Handle) -> None:
        await self.ask("end_stream", handle=handle.SerializeToString().hex())

    async def release(self, handle: Handle) -> None:
        await self.ask("release", handle=handle.SerializeToString().hex())

    async def census(self) -> Census:
        answer = await self.ask("census")
        return Census(answer["payloads"], answer["size_bytes"])

    async def wait_free(self) -> None:
        """Until nothing is held, shared memory included: its blocks are free a moment after their last view is gone."""
        async with asyncio.timeout(PATIENCE_S):
            while True:
                if await self.census() == Census(payloads=0, size_bytes=0):
                    return
                await asyncio.sleep(0.01)

    async def wait_empty(self) -> None:
        await self.ask("wait_empty")

    async def close(self) -> None:
        """Lets the producer end in order."""
        self._commands.write_eof()
        async with asyncio.timeout(PATIENCE_S):
            await self.process.ended()

    async def kill(self) -> None:
        self.process.kill()
        await self.process.ended()

    async def _read(self, lines: asyncio.StreamReader) -> None:
        while line := await lines.readline():
            answer = json.loads(line)
            future = self._answers[answer.pop("number")]
            if "error" in answer:
                future.set_exception(Refused(answer["error"]))
            else:
                future.set_result(answer)


class Producer:
    """A process that is no child of this one."""

    def __init__(self, pid: int) -> None:
        self.pid = pid
        self._descriptor = os.pidfd_open(pid)

    def __del__(self) -> None:
        os.close(self._descriptor)

    def kill(self) -> None:
        with suppress(ProcessLookupError):
            signal.pidfd_send_signal(self._descriptor, signal.SIGKILL)

    async def ended(self) -> None:
        ended = asyncio.Event()
        loop = asyncio.get_running_loop()
        loop.add_reader(self._descriptor, ended.set)
        try:
            await ended.wait()
        finally:
            loop.remove_reader(self._descriptor)


@cache
def _nursery() -> str:
    """Where producers are to be had; until this process ends."""
    folder = tempfile.TemporaryDirectory(prefix="omni-nursery-")
    path = f"{folder.name}/socket"
    nursery = subprocess.Popen([sys.executable, "-m", "tests.connectors.nursery", path], stdout=subprocess.PIPE)
    assert nursery.stdout is not None and nursery.stdout.readline(), "the nursery ended at its start"
    atexit.register(_close, nursery, folder)
    return path


def _close(nursery: "subprocess.Popen[bytes]", folder: "tempfile.TemporaryDirectory[str]") -> None:
    nursery.kill()
    nursery.communicate()
    folder.cleanup()


def handle_in(answer: dict[str, Any]) -> Handle:
    return Handle.FromString(bytes.fromhex(answer["handle"]))
