"""The life of the worker process: listen, load, serve until told to end, drain, exit."""

import asyncio
import ctypes
import gc
import logging
import os
import secrets
import signal
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import grpc
from grpc_health.v1.health_pb2_grpc import add_HealthServicer_to_server
from prometheus_client import start_http_server

from omni_contract.wire import names
from omni_contract.wire.stage_file import StageFile
from omni_contract.wire.stage_pb2_grpc import add_ControlServicer_to_server, add_StageWorkerServicer_to_server
from omni_runtime.connectors.channels import SERVER_OPTIONS
from omni_runtime.connectors.connector_set import ConnectorSet
from omni_runtime.connectors.store import PayloadStore
from omni_runtime.engines.protocol import Engine, UnusableEngineError
from omni_runtime.engines.registry import create_engine
from omni_runtime.plugins import MissingExtraError, UnknownPluginError
from omni_runtime.tracing.spans import STAGE, Tracing
from omni_runtime.tracing.start import MissingTelemetryError, start_tracing
from omni_runtime.worker.admin import serving_admin
from omni_runtime.worker.control import Control
from omni_runtime.worker.control_service import ControlService
from omni_runtime.worker.errors import (
    DrainTimedOutError,
    EngineEndedError,
    ListenError,
    LoadError,
    MisconfiguredError,
    StartupTimedOutError,
)
from omni_runtime.worker.health import WorkerHealth
from omni_runtime.worker.service import StageWorkerService
from omni_runtime.worker.settings import WorkerSettings
from omni_runtime.worker.stage import Stage
from omni_runtime.worker.states import Event

logger = logging.getLogger(__name__)

FLUSH_S = 2.0
"""How long frontends may take to read the last messages."""
PR_SET_PDEATHSIG = 1


def die_with_parent() -> None:
    """The kernel kills this process when the thread that started it ends, even by kill -9.

    Called from the main thread before anything else; a parent that has gone before is seen by our parent's change.
    """
    parent = os.getppid()
    ctypes.CDLL(None, use_errno=True).prctl(PR_SET_PDEATHSIG, signal.SIGKILL)
    if os.getppid() != parent:
        os.kill(os.getpid(), signal.SIGKILL)


async def run_worker(settings: WorkerSettings, file: StageFile) -> None:
    """Returns after SIGTERM, when everything is finished; raises WorkerError if it ends otherwise."""
    boot_id = secrets.token_hex(8)
    store = PayloadStore(settings.payload_limit_bytes)
    connectors = ConnectorSet(settings.advertise, boot_id, store, file.connectors)
    tracing = _tracing(settings, file)
    stage = Stage(file, _engine(file), connectors, tracing)
    service = StageWorkerService(stage, store, boot_id, settings.replica, settings.locality)
    stage.metrics.gauge(names.WORKER_FRONTENDS, "Frontends attached.", lambda: service.frontends)
    control = Control(stage, settings.replica, settings.profile_dir)
    await connectors.open()
    async with _listening(stage, service, control, settings), serving_admin(control, settings.admin):
        try:
            await _live(stage, service)
        finally:
            await control.close()
            await connectors.close()
            tracing.close()


def _engine(file: StageFile) -> Engine:
    try:
        return create_engine(file)
    except (MissingExtraError, UnknownPluginError, UnusableEngineError) as error:
        raise MisconfiguredError(f'stage "{file.stage}" cannot start: {error}') from error


def _tracing(settings: WorkerSettings, file: StageFile) -> Tracing:
    try:
        return start_tracing(settings.tracing, "stage", settings.replica, {STAGE: file.stage})
    except MissingTelemetryError as error:
        raise MisconfiguredError(f'stage "{file.stage}" cannot start: {error}') from error


@asynccontextmanager
async def _listening(
    stage: Stage, service: StageWorkerService, control: Control, settings: WorkerSettings
) -> AsyncIterator[None]:
    """The gRPC server answers probes and Describe from here on, before the engine has loaded."""
    server = grpc.aio.server(options=SERVER_OPTIONS)
    add_StageWorkerServicer_to_server(service, server)
    add_ControlServicer_to_server(ControlService(control), server)
    add_HealthServicer_to_server(WorkerHealth(stage, settings.liveness_timeout_s), server)
    _bind(server, stage, settings)
    await server.start()
    logger.info("listening on %s", settings.listen)
    try:
        yield
    finally:
        await server.stop(FLUSH_S)


def _bind(server: grpc.aio.Server, stage: Stage, settings: WorkerSettings) -> None:
    try:
        server.add_insecure_port(settings.listen)
    except RuntimeError as error:
        raise ListenError(f"cannot listen on {settings.listen}: it is in use or not an address of this host") from error
    if settings.metrics_port is not None:
        try:
            start_http_server(settings.metrics_port, registry=stage.metrics.registry)
        except OSError as error:
            raise ListenError(f"cannot serve metrics on port {settings.metrics_port}: {error.strerror}") from error


async def _live(stage: Stage, service: StageWorkerService) -> None:
    """Loads, then serves until SIGTERM, and drains; raises WorkerError if it cannot load or the engine dies."""
    terminated = _terminated()
    loading = asyncio.create_task(load(stage))
    await asyncio.wait((loading, terminated), return_when=asyncio.FIRST_COMPLETED)
    if terminated.done():
        loading.cancel()
        return
    if (error := loading.exception()) is not None:
        logger.debug("why it cannot load", exc_info=error)
        raise LoadError(stage.file.stage, error)
    try:
        await asyncio.wait((terminated, stage.died), return_when=asyncio.FIRST_COMPLETED)
        if stage.died.done():
            raise EngineEndedError(f'the engine of stage "{stage.file.stage}" died: {stage.died.result()}')
        await _drain(stage)
    finally:
        service.close_sessions()
        await stage.engine.close()


async def load(stage: Stage) -> None:
    """Ready when it returns; raises StartupTimedOutError, or whatever the engine raised."""
    try:
        async with asyncio.timeout(stage.file.startup_timeout_s) as deadline:
            await stage.engine.load(lambda line: logger.info("%s", line))
    except TimeoutError as error:
        if deadline.expired():
            raise StartupTimedOutError(f"not done within {stage.file.startup_timeout_s} s") from error
        raise
    # What loading made lives as long as the process: the collector need not look through it during requests.
    gc.collect()
    gc.freeze()
    stage.see(Event.LOADED)
    logger.info("ready")


async def _drain(stage: Stage) -> None:
    """Takes nothing new, finishes what runs, and leaves when no payload of its own is still wanted."""
    stage.see(Event.DRAIN)
    logger.info("draining: %d running, %d waiting", stage.capacity.running, stage.capacity.waiting)
    try:
        async with asyncio.timeout(stage.file.drain_timeout_s):
            await stage.wait_unneeded()
    except TimeoutError:
        left, payloads = stage.capacity.running + stage.capacity.waiting, stage.connectors.census().payloads
        text = f"drain deadline of {stage.file.drain_timeout_s} s passed: {left} requests and {payloads} payloads"
        raise DrainTimedOutError(f"{text} are given up") from None


def _terminated() -> asyncio.Future[None]:
    """Done once SIGTERM or SIGINT has come."""
    loop = asyncio.get_running_loop()
    terminated = loop.create_future()

    def stop() -> None:
        if not terminated.done():
            terminated.set_result(None)

    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, stop)
    return terminated
