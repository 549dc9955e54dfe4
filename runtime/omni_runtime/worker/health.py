"""grpc.health.v1: startup, live and ready, each computed when it is asked for."""

import asyncio
from collections.abc import AsyncIterator

import grpc
from grpc_health.v1.health_pb2 import HealthCheckRequest, HealthCheckResponse
from grpc_health.v1.health_pb2_grpc import HealthServicer

from omni_contract.wire.names import HEALTH_LIVE, HEALTH_READY, HEALTH_STARTUP
from omni_runtime.worker.stage import Stage
from omni_runtime.worker.states import State

SERVICES = ("", HEALTH_STARTUP, HEALTH_LIVE, HEALTH_READY)


class WorkerHealth(HealthServicer):  # type: ignore[misc]  # generated code is untyped
    """startup: loaded and self-tested once. live: the engine's loop turns. ready (and ""): takes new work."""

    def __init__(self, stage: Stage, liveness_timeout_s: float) -> None:
        self._stage = stage
        self._liveness_timeout_s = liveness_timeout_s

    async def Check(self, request: HealthCheckRequest, context: grpc.aio.ServicerContext) -> HealthCheckResponse:
        if request.service not in SERVICES:
            await context.abort(grpc.StatusCode.NOT_FOUND, f"services are {', '.join(SERVICES[1:])}")
        return self._response(request.service)

    async def Watch(
        self, request: HealthCheckRequest, context: grpc.aio.ServicerContext
    ) -> AsyncIterator[HealthCheckResponse]:
        """The answer now and after every change of the worker's state. "live" changes are seen by Check only."""
        changed = asyncio.Event()
        self._stage.listen(changed.set)
        try:
            response: HealthCheckResponse | None = None
            while True:
                changed.clear()
                if response != (response := self._response(request.service)):
                    yield response
                await changed.wait()
        finally:
            self._stage.unlisten(changed.set)

    def _response(self, service: str) -> HealthCheckResponse:
        if service not in SERVICES:
            return HealthCheckResponse(status=HealthCheckResponse.SERVICE_UNKNOWN)
        serving = self._is_serving(service)
        return HealthCheckResponse(status=HealthCheckResponse.SERVING if serving else HealthCheckResponse.NOT_SERVING)

    def _is_serving(self, service: str) -> bool:
        match service:
            case "startup":
                return self._stage.state is not State.LOADING
            case "live":
                return self._stage.engine.heartbeat_age_s() < self._liveness_timeout_s
            case _:
                return self._stage.state is State.READY
