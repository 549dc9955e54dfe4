"""Tells owners that their payloads are no longer needed: those of one owner go together in one call."""

import asyncio
import logging

import grpc

from omni_contract.wire.stage_pb2 import Handle, ReleaseRequest
from omni_contract.wire.stage_pb2_grpc import StageWorkerStub
from omni_runtime.connectors.channels import ChannelPool

logger = logging.getLogger(__name__)

RELEASE_TIMEOUT_S = 5.0


class Releases:
    """Releases on their way. While a call to an owner runs, further handles of that owner wait for the next one."""

    def __init__(self, channels: ChannelPool) -> None:
        self._channels = channels
        self._waiting: dict[str, list[Handle]] = {}
        self._senders: dict[str, asyncio.Task[None]] = {}

    def add(self, handle: Handle) -> None:
        self._waiting.setdefault(handle.owner, []).append(handle)
        if handle.owner not in self._senders:
            self._senders[handle.owner] = asyncio.get_running_loop().create_task(self._send(handle.owner))

    async def close(self) -> None:
        """Waits for what is on its way, each call within its timeout."""
        await asyncio.gather(*self._senders.values())

    async def _send(self, owner: str) -> None:
        try:
            while handles := self._waiting.pop(owner, None):
                await self._call(owner, handles)
        finally:
            del self._senders[owner]

    async def _call(self, owner: str, handles: list[Handle]) -> None:
        try:
            async with self._channels.channel(owner, handles[0].owner_stage) as channel:
                await StageWorkerStub(channel).Release(ReleaseRequest(handles=handles), timeout=RELEASE_TIMEOUT_S)
        except grpc.aio.AioRpcError as error:
            # A dead owner holds nothing; a slow one frees them at their deadline or on Discard.
            logger.debug("%d payloads of %s could not be released: %s", len(handles), owner, error.code().name)
