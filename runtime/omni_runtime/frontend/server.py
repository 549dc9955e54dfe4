"""The frontend process: the orchestrator, the HTTP server, and an end without a cut request."""

import asyncio
import logging
import signal
from collections.abc import Iterator
from contextlib import contextmanager

import uvicorn

from omni_contract.wire.names import FRONTEND
from omni_contract.wire.stage_table import StageTable
from omni_runtime.administration.listener import serving
from omni_runtime.frontend.admin import FrontendAdmin
from omni_runtime.frontend.app import create_app
from omni_runtime.frontend.settings import FrontendSettings
from omni_runtime.orchestrator import Orchestrator, OrchestratorSettings
from omni_runtime.orchestrator.discovery.local import LocalDiscovery
from omni_runtime.orchestrator.discovery.protocol import Discovery
from omni_runtime.statistics.files import StatsFiles
from omni_runtime.statistics.telling import Telling
from omni_runtime.tracing.spans import Tracing
from omni_runtime.tracing.start import start_tracing
from omni_runtime.transport.plain import PLAIN
from omni_runtime.transport.protocol import Transport
from omni_runtime.transport.tls import TlsTransport

logger = logging.getLogger(__name__)

KEEP_ALIVE_S = 75
"""Longer than the 60 s of common proxies, or they would send requests into connections that close."""
SIGNALS = (signal.SIGTERM, signal.SIGINT)


async def serve(settings: FrontendSettings, table: StageTable) -> None:
    """Returns after SIGTERM: no new connections, running requests finish within the drain timeout.

    Raises TransportError for a certificate, StatsFilesError for a folder of statistics, AdminPortError for a port that
    cannot be used.
    """
    transport = transport_of(settings, table)
    tracing = start_tracing(settings.tracing, "frontend", settings.frontend_id)
    of_orchestrator = OrchestratorSettings(
        settings.frontend_id, tracing=tracing, transport=transport, is_measured=settings.stats.is_on
    )
    orchestrator = Orchestrator(table, discovery_of(settings, table), of_orchestrator)
    telling = Telling(settings.stats, settings.frontend_id)
    if settings.stats.is_on:
        orchestrator.observe(telling.session_ended)
    try:
        async with serving(settings.admin, FrontendAdmin(orchestrator, transport).answer), orchestrator.running():
            await Server(server_config(settings, orchestrator, tracing, telling.files)).serve()
    finally:
        tracing.close()
        telling.close()
    logger.info("ended")


def discovery_of(settings: FrontendSettings, table: StageTable) -> Discovery:
    if settings.discovery == "kubernetes":
        from omni_runtime.orchestrator.discovery.kubernetes import KubernetesDiscovery

        return KubernetesDiscovery(table)
    return LocalDiscovery(table)


def transport_of(settings: FrontendSettings, table: StageTable) -> Transport:
    if settings.tls is None:
        return PLAIN
    return TlsTransport(settings.tls, FRONTEND, table.model, table.namespace)


def server_config(
    settings: FrontendSettings, orchestrator: Orchestrator, tracing: Tracing, stats: StatsFiles | None
) -> uvicorn.Config:
    drain_s = settings.drain_timeout_s
    if drain_s is None:
        drain_s = orchestrator.table.limits.request_timeout_seconds
    return uvicorn.Config(
        create_app(settings, orchestrator, tracing, stats),
        host=settings.host,
        port=settings.port,
        lifespan="off",
        access_log=False,
        log_config=None,
        server_header=False,
        timeout_keep_alive=KEEP_ALIVE_S,
        timeout_graceful_shutdown=max(1, round(drain_s)),
    )


class Server(uvicorn.Server):
    """Ends on a signal with exit code 0; uvicorn would raise the signal once more at its end."""

    @contextmanager
    def capture_signals(self) -> Iterator[None]:
        loop = asyncio.get_running_loop()
        for number in SIGNALS:
            loop.add_signal_handler(number, self.handle_exit, number, None)
        try:
            yield
        finally:
            for number in SIGNALS:
                loop.remove_signal_handler(number)
