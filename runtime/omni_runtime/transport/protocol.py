"""What a transport does: opens channels and pipes to workers, and listens for those who may use them."""

import asyncio
from collections.abc import Sequence
from typing import Protocol, TypeAlias

import grpc

from omni_runtime.transport.pipe import Greeted, Pipe

ChannelOptions: TypeAlias = Sequence[tuple[str, int]]


class TransportError(Exception):
    """What the transport needs cannot be used; the message names the file and what is wrong with it."""


class Transport(Protocol):
    @property
    def component(self) -> str:
        """Which part of the model we present ourselves as: a stage, or the frontend. "" where nobody asks."""
        ...

    @property
    def edition(self) -> int:
        """Grows when channels opened from now on differ from those opened before, as after a new certificate."""
        ...

    @property
    def expires_s(self) -> float | None:
        """When our certificate ends, in Unix seconds; None if there is none."""
        ...

    @property
    def interceptors(self) -> Sequence[grpc.aio.ServerInterceptor]:
        """To be given to every server that binds to this transport."""
        ...

    def channel(self, address: str, stage: str, options: ChannelOptions) -> grpc.aio.Channel:
        """A channel to a worker of the stage; another stage that answers there is refused if it can be told apart."""
        ...

    def bind(self, server: grpc.aio.Server, address: str) -> None:
        """Raises RuntimeError if nobody can listen on the address."""
        ...

    def explain(self, error: grpc.aio.AioRpcError, stage: str) -> str | None:
        """Why a call to a worker of the stage failed, if that is about who the two are; None for anything else."""
        ...

    async def open_pipe(self, address: str, stage: str) -> Pipe:
        """A pipe to a worker of the stage, as `channel`; raises OSError."""
        ...

    async def serve_pipes(self, address: str, greeted: Greeted) -> asyncio.Server:
        """Hands over each pipe that comes with its first message, from holders of our authority's certificates only.

        Raises OSError.
        """
        ...
