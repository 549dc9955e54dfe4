"""Waits until a process says that it is ready: workers by grpc.health.v1, the frontend by HTTP."""

import asyncio
from collections.abc import Awaitable, Callable

import aiohttp
import grpc
from grpc_health.v1 import health_pb2, health_pb2_grpc

from omni_contract.wire.names import HEALTH_READY

RETRY_S = 0.1
CHANNEL_OPTIONS = (
    ("grpc.initial_reconnect_backoff_ms", 100),
    ("grpc.min_reconnect_backoff_ms", 100),
    ("grpc.max_reconnect_backoff_ms", 500),
)
"""gRPC's own defaults wait for up to two minutes, and a worker's socket appears within seconds."""


async def wait_until_ready(health: str) -> None:
    """Returns once the process is ready; never gives up, so the caller sets the deadline."""
    if health.startswith("unix:"):
        await _wait_for_worker(health)
    else:
        await _wait_for_frontend(health)


async def _repeat(ask: Callable[[], Awaitable[bool]]) -> None:
    """Until the answer is yes. A process that is not there yet gives no event to wait for."""
    while True:
        if await ask():
            return
        await asyncio.sleep(RETRY_S)


async def _wait_for_worker(address: str) -> None:
    async with grpc.aio.insecure_channel(address, options=CHANNEL_OPTIONS) as channel:
        health = health_pb2_grpc.HealthStub(channel)
        await _repeat(lambda: _watch_says_serving(health))


async def _watch_says_serving(health: health_pb2_grpc.HealthStub) -> bool:
    """False if the watch ended first, as it does when the worker dies."""
    request = health_pb2.HealthCheckRequest(service=HEALTH_READY)
    try:
        async for answer in health.Watch(request, wait_for_ready=True):
            if answer.status == health_pb2.HealthCheckResponse.SERVING:
                return True
    except grpc.aio.AioRpcError:
        return False
    return False


async def _wait_for_frontend(url: str) -> None:
    async with aiohttp.ClientSession() as session:
        await _repeat(lambda: _answers(session, url))


async def _answers(session: aiohttp.ClientSession, url: str) -> bool:
    try:
        async with session.get(url) as answer:
            return answer.status == 200
    except aiohttp.ClientConnectionError:
        return False
