"""The health of a pod of several stages: what is true of all of them."""

from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager

import grpc
import pytest
from grpc_health.v1.health import HealthServicer
from grpc_health.v1.health_pb2 import HealthCheckRequest, HealthCheckResponse
from grpc_health.v1.health_pb2_grpc import HealthStub, add_HealthServicer_to_server

from omni_runtime.local.group_health import GroupHealth

SERVING, NOT_SERVING = HealthCheckResponse.SERVING, HealthCheckResponse.NOT_SERVING


@asynccontextmanager
async def serving(health: HealthServicer) -> AsyncIterator[str]:
    """The address at which it answers."""
    server = grpc.aio.server()
    add_HealthServicer_to_server(health, server)
    port = server.add_insecure_port("127.0.0.1:0")
    await server.start()
    try:
        yield f"127.0.0.1:{port}"
    finally:
        await server.stop(None)


@asynccontextmanager
async def worker(**services: int) -> AsyncIterator[str]:
    """The address of one that answers so."""
    health = HealthServicer()
    for name, status in services.items():
        health.set(name, status)
    async with serving(health) as address:
        yield address


async def answer(*addresses: str, service: str = "ready") -> int:
    health = GroupHealth(addresses)
    try:
        async with serving(health) as address, grpc.aio.insecure_channel(address) as channel:
            return int((await HealthStub(channel).Check(HealthCheckRequest(service=service))).status)
    finally:
        await health.close()


@pytest.mark.parametrize(
    ("one", "other", "both"),
    [(SERVING, SERVING, SERVING), (SERVING, NOT_SERVING, NOT_SERVING), (NOT_SERVING, NOT_SERVING, NOT_SERVING)],
)
async def test_a_pod_serves_if_all_of_its_stages_do(one: int, other: int, both: int) -> None:
    async with AsyncExitStack() as workers:
        addresses = [await workers.enter_async_context(worker(ready=status)) for status in (one, other)]
        assert await answer(*addresses) == both


async def test_each_service_is_asked_for_by_its_name() -> None:
    async with worker(ready=NOT_SERVING, live=SERVING) as address:
        assert await answer(address, service="live") == SERVING
        assert await answer(address, service="ready") == NOT_SERVING


async def test_a_stage_that_does_not_listen_yet_does_not_serve() -> None:
    async with worker(ready=SERVING) as address:
        assert await answer(address, "127.0.0.1:1") == NOT_SERVING
