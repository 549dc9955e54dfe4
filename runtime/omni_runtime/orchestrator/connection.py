"""The stream to one worker: describe, attach, read until it breaks, and again, while the worker is a member."""

import asyncio
from typing import TypeAlias

import grpc
from grpc_health.v1 import health_pb2, health_pb2_grpc

from omni_contract.wire import stage_pb2 as wire
from omni_contract.wire.names import HEALTH_READY
from omni_contract.wire.stage_pb2_grpc import StageWorkerStub
from omni_runtime.orchestrator.link import Link
from omni_runtime.orchestrator.outbox import Outbox
from omni_runtime.orchestrator.settings import OrchestratorSettings
from omni_runtime.transport.pipe import MESSAGE_LIMIT_BYTES, Pipe, PipeBrokenError

PING_TIMEOUT_MS = 1400
"""With the silence before the ping, a worker that hangs and a node that is gone are left out within two seconds."""
AttachCall: TypeAlias = "grpc.aio.UnaryStreamCall[wire.AttachPipeRequest, wire.PipeOffer]"


class WrongWorkerError(Exception):
    """Another stage's worker answers at the address."""


async def keep_attached(link: Link, settings: OrchestratorSettings) -> None:
    """Returns when the link is retired and its last stream has ended."""
    delay_s = settings.reconnect_first_s
    while not link.retired.is_set():
        was_attached = await _attach_once(link, settings)
        delay_s = settings.reconnect_first_s if was_attached else min(2 * delay_s, settings.reconnect_most_s)
        await _wait_for(link.retired, delay_s)


async def _attach_once(link: Link, settings: OrchestratorSettings) -> bool:
    """True if there was a stream; it has ended when this returns."""
    reason, is_loss = "the worker closed the stream", True
    try:
        async with (
            settings.transport.channel(link.address, link.stage, channel_options(settings)) as channel,
            asyncio.timeout(None) as patience,
        ):
            link.end_stream = lambda: patience.reschedule(asyncio.get_running_loop().time())
            await _attach(link, channel, settings)
    except grpc.aio.AioRpcError as exc:
        reason = exc.details() or exc.code().name
        link.check_refusal(settings.transport.explain(exc, link.stage))
    except (WrongWorkerError, PipeBrokenError, OSError) as exc:
        reason = str(exc) or "no longer needed"
    except asyncio.CancelledError:
        reason, is_loss = "this frontend ends", False
        raise
    finally:
        was_attached = link.detached(reason, is_loss)
    return was_attached


async def _attach(link: Link, channel: grpc.aio.Channel, settings: OrchestratorSettings) -> None:
    stub = StageWorkerStub(channel)
    info = await _describe(stub, channel, settings.connect_timeout_s)
    if info.stage != link.stage:
        raise WrongWorkerError(f'{link.address} serves stage "{info.stage}", not "{link.stage}"')
    call = stub.AttachPipe(wire.AttachPipeRequest())
    pipe = await _opened(link, call, settings)
    link.attached(info)
    tasks = [asyncio.create_task(_watch(call, pipe)), asyncio.create_task(_send(link.outbox, pipe))]
    try:
        await pipe.hand_over(lambda message: link.received(wire.WorkerBatch.FromString(message)))
    finally:
        pipe.break_off("no longer needed")
        for task in tasks:
            task.cancel()
        await asyncio.wait(tasks)


async def _opened(link: Link, call: AttachCall, settings: OrchestratorSettings) -> Pipe:
    """The pipe that the worker offers, at the host at which it was called."""
    async with asyncio.timeout(settings.connect_timeout_s):
        offer = await call.read()
    if not isinstance(offer, wire.PipeOffer):
        raise PipeBrokenError("the worker offered no pipe")
    address = _address(link.address, offer)
    try:
        async with asyncio.timeout(settings.connect_timeout_s):
            pipe = await settings.transport.open_pipe(address, link.stage)
    except OSError as exc:
        link.check_refusal(f"its pipe at {address} cannot be opened: {str(exc) or 'no answer'}")
        raise
    await pipe.write(offer.token)
    return pipe


def _address(called: str, offer: wire.PipeOffer) -> str:
    if offer.path:
        return f"unix:{offer.path}"
    host, _, _ = called.rpartition(":")
    return f"{host}:{offer.port}"


async def _watch(call: AttachCall, pipe: Pipe) -> None:
    """gRPC notices a worker that hangs and a network that is gone. A call that ends well leaves the pipe its end."""
    try:
        while await call.read() is not grpc.aio.EOF:
            pass
    except grpc.aio.AioRpcError as exc:
        pipe.break_off(exc.details() or exc.code().name)


async def _send(outbox: Outbox, pipe: Pipe) -> None:
    async for batch in outbox.batches():
        await pipe.write(batch.SerializeToString())


async def _describe(stub: StageWorkerStub, channel: grpc.aio.Channel, timeout_s: float) -> wire.WorkerInfo:
    info: wire.WorkerInfo = await stub.Describe(wire.DescribeRequest(), timeout=timeout_s)
    if info.state == wire.WORKER_STATE_LOADING:
        await _until_serving(channel)
        info = await stub.Describe(wire.DescribeRequest(), timeout=timeout_s)
    return info


async def _until_serving(channel: grpc.aio.Channel) -> None:
    """Waits as long as the worker loads; the watch ends with an error if the worker dies."""
    request = health_pb2.HealthCheckRequest(service=HEALTH_READY)
    async for reply in health_pb2_grpc.HealthStub(channel).Watch(request):
        if reply.status == health_pb2.HealthCheckResponse.SERVING:
            return


async def _wait_for(event: asyncio.Event, most_s: float) -> None:
    try:
        await asyncio.wait_for(event.wait(), most_s)
    except TimeoutError:
        return


def channel_options(settings: OrchestratorSettings) -> list[tuple[str, int]]:
    return [
        # A pool of its own for each try, so that gRPC's back-off does not add to ours.
        ("grpc.use_local_subchannel_pool", 1),
        ("grpc.keepalive_time_ms", int(settings.keepalive_s * 1000)),
        ("grpc.keepalive_timeout_ms", PING_TIMEOUT_MS),
        # Without this one, a process that hangs or a node that is gone is noticed after a minute.
        ("grpc.http2.ping_timeout_ms", PING_TIMEOUT_MS),
        ("grpc.http2.max_pings_without_data", 0),
        ("grpc.max_receive_message_length", MESSAGE_LIMIT_BYTES),
        ("grpc.max_send_message_length", MESSAGE_LIMIT_BYTES),
        ("grpc.enable_http_proxy", 0),
    ]
