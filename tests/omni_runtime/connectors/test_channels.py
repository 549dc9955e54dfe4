"""One channel for each address; a dead peer's channel goes."""

import asyncio
from pathlib import Path

import grpc
import pytest

from omni_contract.wire.stage_pb2 import Handle, ReleaseReply, ReleaseRequest
from omni_contract.wire.stage_pb2_grpc import StageWorkerServicer, StageWorkerStub, add_StageWorkerServicer_to_server
from omni_runtime.connectors.channels import ChannelPool
from omni_runtime.connectors.releases import Releases
from omni_runtime.transport.plain import PlainTransport


class Owner(StageWorkerServicer):
    """Counts release calls; answers while its gate is open."""

    def __init__(self) -> None:
        self.calls: list[list[str]] = []
        self.gate = asyncio.Event()
        self.called = asyncio.Event()

    async def Release(self, request: ReleaseRequest, context: grpc.aio.ServicerContext) -> ReleaseReply:
        self.calls.append([handle.key for handle in request.handles])
        self.called.set()
        await self.gate.wait()
        return ReleaseReply()


async def serve(owner: Owner, address: str) -> grpc.aio.Server:
    server = grpc.aio.server()
    add_StageWorkerServicer_to_server(owner, server)
    server.add_insecure_port(address)
    await server.start()
    return server


async def test_users_of_one_address_share_a_channel():
    pool = ChannelPool()
    async with pool.channel("unix:nowhere") as first, pool.channel("unix:nowhere") as second:
        assert first is second
    async with pool.channel("unix:nowhere") as third:
        assert third is first
    await pool.close()


async def test_the_channel_of_an_unreachable_peer_is_dropped_once_nobody_uses_it():
    pool = ChannelPool()
    async with pool.channel("unix:nowhere") as still_used:
        with pytest.raises(grpc.aio.AioRpcError):
            async with pool.channel("unix:nowhere") as channel:
                await StageWorkerStub(channel).Release(ReleaseRequest())
        async with pool.channel("unix:nowhere") as same:
            assert same is still_used
    async with pool.channel("unix:nowhere") as fresh:
        assert fresh is not still_used
    await pool.close()


async def test_a_new_certificate_gives_new_calls_a_new_channel_and_leaves_the_old_one_to_its_users():
    transport = PlainTransport()
    pool = ChannelPool(transport)
    async with pool.channel("unix:nowhere") as before:
        transport.edition += 1
        async with pool.channel("unix:nowhere") as after:
            assert after is not before
        assert before.get_state() is not grpc.ChannelConnectivity.SHUTDOWN
    assert before.get_state() is grpc.ChannelConnectivity.SHUTDOWN
    async with pool.channel("unix:nowhere") as still:
        assert still is after
    await pool.close()


async def test_releases_of_one_owner_travel_together_while_a_call_is_under_way(tmp_path: Path):
    owner, address = Owner(), f"unix:{tmp_path}/owner.sock"
    server = await serve(owner, address)
    pool = ChannelPool()
    releases = Releases(pool)
    releases.add(Handle(key="k-0", owner=address))
    await asyncio.wait_for(owner.called.wait(), 20)
    for number in range(1, 5):
        releases.add(Handle(key=f"k-{number}", owner=address))
    owner.gate.set()
    await releases.close()
    assert owner.calls == [["k-0"], ["k-1", "k-2", "k-3", "k-4"]]
    await pool.close()
    await server.stop(None)


async def test_releasing_what_a_dead_owner_held_is_no_error():
    pool = ChannelPool()
    releases = Releases(pool)
    releases.add(Handle(key="k-0", owner="unix:nowhere"))
    await asyncio.wait_for(releases.close(), 20)
    await pool.close()
