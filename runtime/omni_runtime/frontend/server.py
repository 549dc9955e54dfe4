"""The frontend process: the orchestrator, the HTTP server, and an end without a cut request."""

import asyncio
import logging
import signal
from collections.abc import Iterator
from contextlib import contextmanager

import uvicorn

from omni_contract.wire.stage_table import StageTable
from omni_runtime.frontend.app import create_app
from omni_runtime.frontend.settings import FrontendSettings
from omni_runtime.orchestrator import Orchestrator, OrchestratorSettings
from omni_runtime.orchestrator.discovery.local import LocalDiscovery
from omni_runtime.orchestrator.discovery.protocol import Discovery

logger = logging.getLogger(__name__)

KEEP_ALIVE_S = 75
"""Longer than the 60 s of common proxies, or they would send requests into connections that close."""
SIGNALS = (signal.SIGTERM, signal.SIGINT)


async def serve(settings: FrontendSettings, table: StageTable) -> None:
    """Returns after SIGTERM: no new connections, running requests finish within the drain timeout."""
    orchestrator = Orchestrator(table, discovery_of(settings, table), OrchestratorSettings(settings.frontend_id))
    async with orchestrator.running():
        await Server(server_config(settings, orchestrator)).serve()
    logger.info("ended")


def discovery_of(settings: FrontendSettings, table: StageTable) -> Discovery:
    if settings.discovery == "kubernetes":
        from omni_runtime.orchestrator.discovery.kubernetes import KubernetesDiscovery

        return KubernetesDiscovery(table)
    return LocalDiscovery(table)


def server_config(settings: FrontendSettings, orchestrator: Orchestrator) -> uvicorn.Config:
    drain_s = settings.drain_timeout_s
    if drain_s is None:
        drain_s = orchestrator.table.limits.request_timeout_seconds
    return uvicorn.Config(
        create_app(settings, orchestrator),
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
