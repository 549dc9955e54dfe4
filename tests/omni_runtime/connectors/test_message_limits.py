"""No end of the internal plane takes a message above the limit, whatever the other end is willing to send."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import grpc
import pytest

from omni_contract.wire import stage_pb2 as wire
from omni_contract.wire.stage_pb2_grpc import StageWorkerServicer, StageWorkerStub, add_StageWorkerServicer_to_server
from omni_runtime.connectors.channels import CHANNEL_OPTIONS, SERVER_OPTIONS
from omni_runtime.orchestrator.connection import channel_options
from omni_runtime.orchestrator.settings import OrchestratorSettings
from omni_runtime.transport.pipe import MESSAGE_LIMIT_BYTES

UNLIMITED = (("grpc.max_send_message_length", -1), ("grpc.max_receive_message_length", -1))
TOO_MUCH = bytes(MESSAGE_LIMIT_BYTES)
CALLERS = {"connector": CHANNEL_OPTIONS, "frontend": channel_options(OrchestratorSettings("test"))}


class Echo(StageWorkerServicer):
    async def Fetch(
        self, request: wire.FetchRequest, context: grpc.aio.ServicerContext
    ) -> AsyncIterator[wire.PayloadSlice]:
        yield wire.PayloadSlice(data=request.handle.locator or TOO_MUCH)


@asynccontextmanager
async def echo(folder: Path, server_options: object, channel_options: object) -> AsyncIterator[StageWorkerStub]:
    server, address = grpc.aio.server(options=server_options), f"unix:{folder}/echo.sock"
    add_StageWorkerServicer_to_server(Echo(), server)
    server.add_insecure_port(address)
    await server.start()
    async with grpc.aio.insecure_channel(address, options=channel_options) as channel:
        yield StageWorkerStub(channel)
    await server.stop(None)


async def sent_back(stub: StageWorkerStub, data: bytes) -> int:
    call = stub.Fetch(wire.FetchRequest(handle=wire.Handle(locator=data)), timeout=20)
    return sum([len(piece.data) async for piece in call])


async def refused(stub: StageWorkerStub, data: bytes) -> str:
    with pytest.raises(grpc.aio.AioRpcError) as caught:
        await sent_back(stub, data)
    assert caught.value.code() is grpc.StatusCode.RESOURCE_EXHAUSTED
    return str(caught.value.details())


async def test_a_worker_takes_no_message_above_the_limit_and_serves_on(tmp_path: Path):
    async with echo(tmp_path, SERVER_OPTIONS, UNLIMITED) as stub:
        assert "larger than max" in await refused(stub, TOO_MUCH)
        assert await sent_back(stub, b"small") == 5


@pytest.mark.parametrize("caller", CALLERS)
async def test_a_caller_takes_no_message_above_the_limit_and_goes_on(tmp_path: Path, caller: str):
    async with echo(tmp_path, UNLIMITED, CALLERS[caller]) as stub:
        assert "larger than max" in await refused(stub, b"")
        assert await sent_back(stub, b"small") == 5


@pytest.mark.parametrize("caller", CALLERS)
async def test_a_caller_sends_no_message_above_the_limit(tmp_path: Path, caller: str):
    async with echo(tmp_path, UNLIMITED, CALLERS[caller]) as stub:
        assert "larger than max" in await refused(stub, TOO_MUCH)
