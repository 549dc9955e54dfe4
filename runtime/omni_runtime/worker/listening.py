"""Where a worker listens: the stage's own address, and beside it, if asked for, probes and metrics."""

import logging
from collections.abc import AsyncIterator, Callable
from contextlib import AsyncExitStack, asynccontextmanager

import grpc
from grpc_health.v1.health_pb2_grpc import add_HealthServicer_to_server
from prometheus_client import CollectorRegistry, start_http_server

from omni_contract.wire.names import PIPE_PORT_DISTANCE
from omni_runtime.connectors.channels import SERVER_OPTIONS
from omni_runtime.transport.plain import PLAIN
from omni_runtime.transport.protocol import Transport
from omni_runtime.worker.errors import ListenError
from omni_runtime.worker.health import WorkerHealth
from omni_runtime.worker.pipes import PipeServer
from omni_runtime.worker.settings import WorkerSettings
from omni_runtime.worker.stage import Stage

logger = logging.getLogger(__name__)

LOOPBACK = "127.0.0.1"

FLUSH_S = 2.0
"""How long frontends may take to read the last messages."""


@asynccontextmanager
async def listening(
    settings: WorkerSettings,
    transport: Transport,
    stage: Stage,
    pipes: PipeServer,
    add_services: Callable[[grpc.aio.Server], None],
) -> AsyncIterator[None]:
    """Answers callers until the block ends."""
    health = WorkerHealth(stage, settings.liveness_timeout_s)
    async with AsyncExitStack() as servers:
        server = grpc.aio.server(interceptors=transport.interceptors, options=SERVER_OPTIONS)
        add_services(server)
        add_HealthServicer_to_server(health, server)
        await servers.enter_async_context(_serving(server, transport, settings.listen))
        # Only now is it certain that the address is ours, and with it the name of the socket beside it.
        await servers.enter_async_context(_taking_pipes(pipes, transport, pipe_address(settings)))
        if settings.health_port is not None:
            probes = grpc.aio.server(options=SERVER_OPTIONS)
            add_HealthServicer_to_server(health, probes)
            await servers.enter_async_context(_serving(probes, PLAIN, beside(settings.listen, settings.health_port)))
        if settings.metrics_port is not None:
            _serve_metrics(settings.listen, settings.metrics_port, stage.metrics.registry)
        logger.info("listening on %s %s", settings.listen, "with TLS" if settings.tls else "without TLS")
        yield


def beside(listen: str, port: int) -> str:
    """The address of another port of the host that is listened on; of this machine alone beside a Unix socket."""
    host = LOOPBACK if listen.startswith("unix:") else listen.rpartition(":")[0]
    return f"{host}:{port}"


def pipe_address(settings: WorkerSettings) -> str:
    """Beside the worker's own: a socket of another name, or another port of the same host."""
    if settings.listen.startswith("unix:"):
        return f"{settings.listen}.pipe"
    if settings.pipe_port is not None:
        return beside(settings.listen, settings.pipe_port)
    return beside(settings.listen, int(settings.listen.rpartition(":")[2]) + PIPE_PORT_DISTANCE)


@asynccontextmanager
async def _taking_pipes(pipes: PipeServer, transport: Transport, address: str) -> AsyncIterator[None]:
    async with AsyncExitStack() as serving:
        try:
            await serving.enter_async_context(pipes.serving(transport, address))
        except OSError as error:
            raise ListenError(f"cannot take pipes on {address}: {error.strerror}") from error
        yield


@asynccontextmanager
async def _serving(server: grpc.aio.Server, transport: Transport, address: str) -> AsyncIterator[None]:
    try:
        transport.bind(server, address)
    except RuntimeError as error:
        raise ListenError(f"cannot listen on {address}: it is in use or not an address of this host") from error
    await server.start()
    try:
        yield
    finally:
        await server.stop(FLUSH_S)


def _serve_metrics(listen: str, port: int, registry: CollectorRegistry) -> None:
    host = beside(listen, port).rpartition(":")[0].strip("[]")
    try:
        start_http_server(port, addr=host, registry=registry)
    except OSError as error:
        raise ListenError(f"cannot serve metrics on {host}, port {port}: {error.strerror}") from error
