"""A real worker process on a socket in a folder of the test's, and a real gRPC client attached to it."""

import asyncio
import json
import os
import signal
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from pathlib import Path
from typing import Any, Self

import grpc
from grpc_health.v1 import health_pb2, health_pb2_grpc

from omni_contract.wire import stage_pb2 as wire
from omni_contract.wire.stage_file import StageFile
from omni_contract.wire.stage_pb2_grpc import ControlStub, StageWorkerStub
from omni_runtime.connectors.channels import CHANNEL_OPTIONS
from omni_runtime.transport.pipe import Pipe, PipeBrokenError
from omni_runtime.transport.plain import PLAIN
from omni_runtime.transport.protocol import Transport
from tests.omni_runtime.worker.frontend import PATIENCE_S, Frontend

SERVING = health_pb2.HealthCheckResponse.SERVING


class WorkerProcess:
    """Use as `async with`; it waits until the worker is ready unless told not to. `log` is what it wrote so far."""

    def __init__(
        self, file: StageFile, folder: Path, wait_ready: bool = True, transport: Transport = PLAIN, **options: Any
    ) -> None:
        self.address = f"unix:{folder}/{file.stage}.sock"
        self._file = file
        self._folder = folder
        self._wait_ready = wait_ready
        self._transport = transport
        self._options = options

    @property
    def pid(self) -> int:
        return self.process.pid

    @property
    def log(self) -> str:
        return self._log_path.read_text()

    @property
    def log_lines(self) -> list[dict[str, str]]:
        """Ours; gRPC's core writes lines of its own."""
        return [json.loads(line) for line in self.log.splitlines() if line.startswith("{")]

    @property
    def _log_path(self) -> Path:
        return self._folder / f"{self._file.stage}.log"

    @property
    def command(self) -> list[str]:
        path = self._folder / f"{self._file.stage}.json"
        path.write_text(self._file.model_dump_json(by_alias=True))
        options = [f"--{name.replace('_', '-')}={value}" for name, value in self._options.items()]
        own = ["--stage-file", str(path), "--listen", self.address, "--replica", f"{self._file.stage}-0"]
        return [sys.executable, "-m", "omni_runtime.worker", *own, "--log-json", "--die-with-parent", *options]

    async def __aenter__(self) -> Self:
        with self._log_path.open("wb") as log:
            self.process = await asyncio.create_subprocess_exec(*self.command, stderr=log)
        self.channel = self._new_channel()
        self.stub = StageWorkerStub(self.channel)
        self.control = ControlStub(self.channel)
        if self._wait_ready:
            await self.until_serving("ready")
        return self

    async def __aexit__(self, *_: object) -> None:
        with suppress(ProcessLookupError):
            self.process.kill()
        await self.process.wait()
        await self.channel.close()

    def _new_channel(self) -> grpc.aio.Channel:
        return self._transport.channel(self.address, self._file.stage, CHANNEL_OPTIONS)

    async def until_serving(self, service: str, wanted: int = SERVING, patience_s: float = PATIENCE_S) -> None:
        """By the health service's own watch, so there is nothing to poll."""
        async with asyncio.timeout(patience_s):
            request = health_pb2.HealthCheckRequest(service=service)
            async for reply in health_pb2_grpc.HealthStub(self.channel).Watch(request, wait_for_ready=True):
                if reply.status == wanted:
                    return

    async def health(self, service: str) -> int:
        request = health_pb2.HealthCheckRequest(service=service)
        reply = await health_pb2_grpc.HealthStub(self.channel).Check(request, timeout=PATIENCE_S)
        return int(reply.status)

    async def stats(self) -> wire.WorkerStats:
        return await self.control.Stats(wire.StatsRequest(), timeout=PATIENCE_S)

    def terminate(self) -> None:
        os.kill(self.pid, signal.SIGTERM)

    async def exit_code(self) -> int:
        async with asyncio.timeout(PATIENCE_S):
            return await self.process.wait()

    @asynccontextmanager
    async def attached(self) -> AsyncIterator["AttachedFrontend"]:
        async with self._new_channel() as channel:
            frontend = await AttachedFrontend.to(channel, self._transport, self._file.stage)
            try:
                yield frontend
            finally:
                await frontend.detach()


class AttachedFrontend(Frontend):
    """A frontend on a connection of its own."""

    def __init__(self, call: "grpc.aio.UnaryStreamCall[wire.AttachPipeRequest, wire.PipeOffer]", pipe: Pipe) -> None:
        super().__init__()
        self.call = call
        self._pipe = pipe
        self._tasks = [asyncio.create_task(self._read()), asyncio.create_task(self._send())]

    @classmethod
    async def to(cls, channel: grpc.aio.Channel, transport: Transport, stage: str) -> Self:
        call = StageWorkerStub(channel).AttachPipe(wire.AttachPipeRequest())
        offer = await call.read()
        pipe = await transport.open_pipe(f"unix:{offer.path}", stage)
        await pipe.write(offer.token)
        return cls(call, pipe)

    async def ended(self) -> grpc.StatusCode:
        """How the worker ended the stream."""
        async with asyncio.timeout(PATIENCE_S):
            return await self.call.code()

    async def detach(self) -> None:
        """As a killed frontend does: without a word."""
        self.call.cancel()
        self._pipe.break_off("detached")
        for task in self._tasks:
            task.cancel()
        await asyncio.wait(self._tasks)

    async def _read(self) -> None:
        with suppress(PipeBrokenError):
            async for message in self._pipe:
                await self.write(wire.WorkerBatch.FromString(message))

    async def _send(self) -> None:
        async for batch in self.batches():
            await self._pipe.write(batch)
        await self._pipe.close(PATIENCE_S)
