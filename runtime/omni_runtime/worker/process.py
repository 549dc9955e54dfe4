"""The life of the worker process: listen, load, serve until told to end, drain, exit."""

import asyncio
import ctypes
import logging
import os
import secrets
import signal
import time
from functools import partial

import grpc

from omni_contract.wire import names
from omni_contract.wire.stage_file import StageFile
from omni_contract.wire.stage_pb2_grpc import add_ControlServicer_to_server, add_StageWorkerServicer_to_server
from omni_runtime.administration.listener import serving
from omni_runtime.connectors.connector_set import ConnectorSet
from omni_runtime.connectors.protocol import ConnectorError, MemoryPlace
from omni_runtime.connectors.store import PayloadStore
from omni_runtime.engines.protocol import Engine, UnusableEngineError
from omni_runtime.engines.registry import create_engine
from omni_runtime.garbage import keep_what_is_here
from omni_runtime.plugins import MissingExtraError, UnknownPluginError
from omni_runtime.tracing.spans import STAGE, Tracing
from omni_runtime.tracing.start import MissingTelemetryError, start_tracing
from omni_runtime.transport.plain import PLAIN
from omni_runtime.transport.protocol import Transport, TransportError
from omni_runtime.transport.tls import TlsTransport
from omni_runtime.worker.admin import answer
from omni_runtime.worker.connector_metrics import ConnectorMetrics
from omni_runtime.worker.control import Control
from omni_runtime.worker.control_service import ControlService
from omni_runtime.worker.errors import (
    DrainTimedOutError,
    EngineEndedError,
    LoadError,
    MisconfiguredError,
    StartupTimedOutError,
)
from omni_runtime.worker.listening import listening
from omni_runtime.worker.service import StageWorkerService
from omni_runtime.worker.settings import WorkerSettings
from omni_runtime.worker.stage import Stage
from omni_runtime.worker.states import Event

logger = logging.getLogger(__name__)

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
    """Returns after SIGTERM, when everything is finished; raises WorkerError or AdminPortError if it ends otherwise."""
    boot_id = secrets.token_hex(8)
    store = PayloadStore(settings.payload_limit_bytes)
    transport, tracing = _transport(settings, file), _tracing(settings, file)
    connectors = _connectors(settings, file, boot_id, store, transport)
    stage = Stage(file, _engine(file), connectors, tracing)
    service = StageWorkerService(stage, store, boot_id, settings.replica, settings.locality)
    stage.metrics.info(model=file.model, stage=file.stage, revision=file.revision, replica=settings.replica)
    stage.metrics.gauge(names.WORKER_FRONTENDS, "Frontends attached.", lambda: service.frontends)
    if transport.expires_s is not None:
        text = "When the certificate in use ends."
        stage.metrics.gauge(names.WORKER_CERTIFICATE_EXPIRES, text, lambda: transport.expires_s or 0)
    control = Control(stage, settings.replica, settings.profile_dir)

    def add_services(server: grpc.aio.Server) -> None:
        add_StageWorkerServicer_to_server(service, server)
        add_ControlServicer_to_server(ControlService(control), server)

    await _open(connectors, stage)
    # Probes and Describe are answered from here on, before the engine has loaded.
    taking = listening(settings, transport, stage, service.pipes, add_services)
    async with taking, serving(settings.admin, partial(answer, control)):
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


def _connectors(
    settings: WorkerSettings, file: StageFile, boot_id: str, store: PayloadStore, transport: Transport
) -> ConnectorSet:
    memory = MemoryPlace(settings.shared_memory, settings.locality)
    outputs = [end.connector for end in file.outputs]
    try:
        return ConnectorSet(settings.advertise, boot_id, store, file.connectors, outputs, memory, transport)
    except MissingExtraError as error:
        raise MisconfiguredError(f'stage "{file.stage}" cannot start: {error}') from error


async def _open(connectors: ConnectorSet, stage: Stage) -> None:
    try:
        await connectors.open()
    except (ConnectorError, MissingExtraError) as error:
        raise MisconfiguredError(f'stage "{stage.file.stage}" cannot start: {error}') from error
    stage.metrics.expose_arenas(connectors.arenas)
    ConnectorMetrics(connectors.health, stage.metrics.registry)


def _tracing(settings: WorkerSettings, file: StageFile) -> Tracing:
    try:
        return start_tracing(settings.tracing, "stage", settings.replica, {STAGE: file.stage})
    except MissingTelemetryError as error:
        raise MisconfiguredError(f'stage "{file.stage}" cannot start: {error}') from error


def _transport(settings: WorkerSettings, file: StageFile) -> Transport:
    if settings.tls is None:
        return PLAIN
    try:
        return TlsTransport(settings.tls, file.stage, file.model, settings.namespace)
    except TransportError as error:
        raise MisconfiguredError(f'stage "{file.stage}" cannot start: {error}') from error


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
    began_s = time.monotonic()
    try:
        async with asyncio.timeout(stage.file.startup_timeout_s) as deadline:
            await stage.engine.load(lambda line: logger.info("%s", line))
    except TimeoutError as error:
        if deadline.expired():
            raise StartupTimedOutError(f"not done within {stage.file.startup_timeout_s} s") from error
        raise
    stage.load_s = time.monotonic() - began_s
    keep_what_is_here()
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
