"""The `Control` service: what `control.py` can do, over gRPC."""

from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager

import grpc

from omni_contract.wire import stage_pb2 as wire
from omni_contract.wire.names import REFUSAL_KEY
from omni_contract.wire.stage_pb2_grpc import ControlServicer
from omni_runtime.worker.control import Control, ControlError, Refusal
from omni_runtime.worker.states import State

WIRE_STATES: Mapping[State, wire.WorkerState] = {
    State.LOADING: wire.WORKER_STATE_LOADING,
    State.READY: wire.WORKER_STATE_READY,
    State.SETTLING: wire.WORKER_STATE_ASLEEP,
    State.ASLEEP: wire.WORKER_STATE_ASLEEP,
    State.WAKING: wire.WORKER_STATE_ASLEEP,
    State.DRAINING: wire.WORKER_STATE_DRAINING,
}

STATUS: Mapping[Refusal, grpc.StatusCode] = {
    Refusal.INVALID: grpc.StatusCode.INVALID_ARGUMENT,
    Refusal.WRONG_STATE: grpc.StatusCode.FAILED_PRECONDITION,
    Refusal.STILL_BUSY: grpc.StatusCode.FAILED_PRECONDITION,
    Refusal.NOT_SUPPORTED: grpc.StatusCode.UNIMPLEMENTED,
    Refusal.FAILED: grpc.StatusCode.INTERNAL,
}


class ControlService(ControlServicer):
    def __init__(self, control: Control) -> None:
        self._control = control

    async def Sleep(self, request: wire.SleepRequest, context: grpc.aio.ServicerContext) -> wire.SleepReply:
        async with _refusals(context):
            return wire.SleepReply(freed_bytes=await self._control.sleep(request.level, request.timeout_ms / 1000))

    async def Wake(self, request: wire.WakeRequest, context: grpc.aio.ServicerContext) -> wire.WakeReply:
        async with _refusals(context):
            await self._control.wake()
            return wire.WakeReply()

    async def StartProfile(
        self, request: wire.StartProfileRequest, context: grpc.aio.ServicerContext
    ) -> wire.StartProfileReply:
        async with _refusals(context):
            return wire.StartProfileReply(trace=str(await self._control.start_profile(request.max_steps)))

    async def StopProfile(
        self, request: wire.StopProfileRequest, context: grpc.aio.ServicerContext
    ) -> wire.StopProfileReply:
        async with _refusals(context):
            profile = await self._control.stop_profile()
            return wire.StopProfileReply(trace=str(profile.trace), steps=profile.steps)

    async def ResetCache(
        self, request: wire.ResetCacheRequest, context: grpc.aio.ServicerContext
    ) -> wire.ResetCacheReply:
        async with _refusals(context):
            return wire.ResetCacheReply(entries=await self._control.reset_cache())

    async def Drain(self, request: wire.DrainRequest, context: grpc.aio.ServicerContext) -> wire.DrainReply:
        return wire.DrainReply(left_running=await self._control.drain(request.timeout_ms / 1000))

    async def Stats(self, request: wire.StatsRequest, context: grpc.aio.ServicerContext) -> wire.WorkerStats:
        stats = self._control.stats()
        return wire.WorkerStats(
            running=stats.running,
            waiting=stats.waiting,
            payloads=stats.payloads,
            payload_bytes=stats.payload_bytes,
            requests_total=stats.requests_total,
            cancelled_total=stats.cancelled_total,
            failed_total=stats.failed_total,
            state=WIRE_STATES[stats.state],
            sleep_level=stats.sleep_level,
            is_profiling=stats.is_profiling,
        )


@asynccontextmanager
async def _refusals(context: grpc.aio.ServicerContext) -> AsyncIterator[None]:
    """A refusal becomes the call's status, its sentence the details."""
    try:
        yield
    except ControlError as error:
        await context.abort(STATUS[error.refusal], str(error), ((REFUSAL_KEY, error.refusal.value),))
