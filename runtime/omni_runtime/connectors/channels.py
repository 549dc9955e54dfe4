"""gRPC channels to other workers: one per address, shared, closed when its peer is gone or our certificate new."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import grpc

from omni_runtime.transport.pipe import MESSAGE_LIMIT_BYTES
from omni_runtime.transport.plain import PLAIN
from omni_runtime.transport.protocol import Transport

KEEPALIVE_MS = 4_000
PING_TIMEOUT_MS = 3_000
"""A frontend or worker that hangs loses what it has here after seven seconds; nobody waits for it meanwhile."""
LEAST_PING_INTERVAL_MS = 300
"""Frontends ping silent workers more often than others do, since requests wait for their replicas."""

CHANNEL_OPTIONS: tuple[tuple[str, int], ...] = (
    ("grpc.max_receive_message_length", MESSAGE_LIMIT_BYTES),
    ("grpc.max_send_message_length", MESSAGE_LIMIT_BYTES),
    ("grpc.keepalive_time_ms", KEEPALIVE_MS),
    ("grpc.keepalive_timeout_ms", PING_TIMEOUT_MS),
    ("grpc.http2.ping_timeout_ms", PING_TIMEOUT_MS),
    ("grpc.http2.max_pings_without_data", 0),
    ("grpc.initial_reconnect_backoff_ms", 100),
    ("grpc.max_reconnect_backoff_ms", 1_000),
    # A pool of subchannels shared between channels would also share a dead peer's back-off.
    ("grpc.use_local_subchannel_pool", 1),
)

SERVER_OPTIONS: tuple[tuple[str, int], ...] = (
    ("grpc.max_receive_message_length", MESSAGE_LIMIT_BYTES),
    ("grpc.max_send_message_length", MESSAGE_LIMIT_BYTES),
    ("grpc.keepalive_time_ms", KEEPALIVE_MS),
    ("grpc.keepalive_timeout_ms", PING_TIMEOUT_MS),
    ("grpc.http2.ping_timeout_ms", PING_TIMEOUT_MS),
    ("grpc.http2.min_ping_interval_without_data_ms", LEAST_PING_INTERVAL_MS),
    # Two workers on one port would each get a share of the connections.
    ("grpc.so_reuseport", 0),
)


class _Shared:
    def __init__(self, channel: grpc.aio.Channel, edition: int) -> None:
        self.channel = channel
        self.edition = edition
        self.users = 0
        self.is_broken = False


class ChannelPool:
    """Channels by address. One whose peer is gone is closed once nobody uses it, so that dead pods do not pile up."""

    def __init__(self, transport: Transport = PLAIN) -> None:
        self._transport = transport
        self._channels: dict[str, _Shared] = {}

    @asynccontextmanager
    async def channel(self, address: str, stage: str = "") -> AsyncIterator[grpc.aio.Channel]:
        """To the worker of that stage at the address."""
        shared = await self._current(address) or self._opened(address, stage)
        shared.users += 1
        try:
            yield shared.channel
        except grpc.aio.AioRpcError as error:
            shared.is_broken |= error.code() is grpc.StatusCode.UNAVAILABLE
            raise
        finally:
            shared.users -= 1
            await self._close_if_broken(address, shared)

    async def close(self) -> None:
        channels = [shared.channel for shared in self._channels.values()]
        self._channels.clear()
        await asyncio.gather(*(channel.close() for channel in channels))

    async def _current(self, address: str) -> _Shared | None:
        """One that was opened with another certificate than today's is left to those who use it now."""
        shared = self._channels.get(address)
        if shared is None or shared.edition == self._transport.edition:
            return shared
        del self._channels[address]
        shared.is_broken = True
        await self._close_if_broken(address, shared)
        return None

    def _opened(self, address: str, stage: str) -> _Shared:
        edition = self._transport.edition
        shared = _Shared(self._transport.channel(address, stage, CHANNEL_OPTIONS), edition)
        self._channels[address] = shared
        return shared

    async def _close_if_broken(self, address: str, shared: _Shared) -> None:
        if not shared.is_broken or shared.users > 0:
            return
        if self._channels.get(address) is shared:
            del self._channels[address]
        await shared.channel.close()
