"""Tells owners that their payloads are no longer needed: those of one owner go together in one call."""

import asyncio
import logging
from dataclasses import dataclass, field

import grpc

from omni_contract.wire.stage_pb2 import Handle, ReleaseRequest
from omni_contract.wire.stage_pb2_grpc import StageWorkerStub
from omni_runtime.connectors.channels import ChannelPool

logger = logging.getLogger(__name__)

RELEASE_TIMEOUT_S = 5.0
LINGER_S = 0.01
"""How long releases wait for others to go with: a call costs both processes more than a small payload's whole way."""
LINGER_BYTES = 2**20
"""What is worth a call of its own, since its owner may wait for the memory."""


@dataclass
class _Waiting:
    """Releases for one owner that no call has taken yet."""

    handles: list[Handle] = field(default_factory=list)
    size_bytes: int = 0
    are_worth_a_call: asyncio.Event = field(default_factory=asyncio.Event)

    def add(self, handle: Handle) -> None:
        self.handles.append(handle)
        self.size_bytes += handle.size_bytes
        if self.size_bytes >= LINGER_BYTES:
            self.are_worth_a_call.set()

    async def linger(self) -> None:
        try:
            await asyncio.wait_for(self.are_worth_a_call.wait(), LINGER_S)
        except TimeoutError:
            return


class Releases:
    """Releases on their way. While a call to an owner runs, further handles of that owner wait for the next one."""

    def __init__(self, channels: ChannelPool) -> None:
        self._channels = channels
        self._waiting: dict[str, _Waiting] = {}
        self._senders: dict[str, asyncio.Task[None]] = {}

    def add(self, handle: Handle) -> None:
        self._waiting.setdefault(handle.owner, _Waiting()).add(handle)
        if handle.owner not in self._senders:
            self._senders[handle.owner] = asyncio.get_running_loop().create_task(self._send(handle.owner))

    async def close(self) -> None:
        """Waits for what is on its way, each call within its timeout."""
        await asyncio.gather(*self._senders.values())

    async def _send(self, owner: str) -> None:
        try:
            while waiting := self._waiting.get(owner):
                await waiting.linger()
                del self._waiting[owner]
                await self._call(owner, waiting.handles)
        finally:
            del self._senders[owner]

    async def _call(self, owner: str, handles: list[Handle]) -> None:
        try:
            async with self._channels.channel(owner, handles[0].owner_stage) as channel:
                await StageWorkerStub(channel).Release(ReleaseRequest(handles=handles), timeout=RELEASE_TIMEOUT_S)
        except grpc.aio.AioRpcError as error:
            # A dead owner holds nothing; a slow one frees them at their deadline or on Discard.
            logger.debug("%d payloads of %s could not be released: %s", len(handles), owner, error.code().name)
