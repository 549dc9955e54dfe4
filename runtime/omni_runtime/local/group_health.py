"""grpc.health.v1 of a pod of several stages: it serves if all of them do."""

import asyncio
from collections.abc import Sequence

import grpc
from grpc_health.v1.health_pb2 import HealthCheckRequest, HealthCheckResponse
from grpc_health.v1.health_pb2_grpc import HealthServicer, HealthStub

ANSWER_S = 1.5
"""Below the kubelet's own patience, so that it hears "not serving" and not nothing."""


class GroupHealth(HealthServicer):  # type: ignore[misc]  # generated code is untyped
    """`addresses` are the workers', in the clear."""

    def __init__(self, addresses: Sequence[str]) -> None:
        self._channels = [grpc.aio.insecure_channel(address) for address in addresses]

    async def Check(self, request: HealthCheckRequest, context: grpc.aio.ServicerContext) -> HealthCheckResponse:
        answers = await asyncio.gather(*(self._serves(channel, request) for channel in self._channels))
        serving = HealthCheckResponse.SERVING if all(answers) else HealthCheckResponse.NOT_SERVING
        return HealthCheckResponse(status=serving)

    async def close(self) -> None:
        for channel in self._channels:
            await channel.close()

    async def _serves(self, channel: grpc.aio.Channel, request: HealthCheckRequest) -> bool:
        """Not while it does not listen yet, nor when it is silent."""
        try:
            answer = await HealthStub(channel).Check(request, timeout=ANSWER_S)
        except grpc.aio.AioRpcError:
            return False
        return bool(answer.status == HealthCheckResponse.SERVING)
