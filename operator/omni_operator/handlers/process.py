"""The life of the process: kopf's settings, credentials, probes, and its run beside the controller."""

import asyncio
import logging
from collections.abc import Iterator
from typing import Any

import kopf

from omni_contract.wire import names as wire
from omni_operator.controller import Controller
from omni_operator.handlers import models as models  # registers its handler

logger = logging.getLogger(__name__)

LAST_BACKOFF_S = 30


class EndlessBackoffs:
    """An API server that is away must not end the operator: kopf's own list ends after 54 seconds."""

    def __iter__(self) -> Iterator[int]:
        seconds = 1
        while True:
            yield seconds
            seconds = min(seconds * 2, LAST_BACKOFF_S)


@kopf.on.startup()
async def configure(settings: kopf.OperatorSettings, **_: Any) -> None:
    settings.scanning.disabled = True
    settings.posting.enabled = False
    settings.peering.standalone = True
    settings.persistence.finalizer = f"{wire.GROUP}/unused"
    settings.process.ultimate_exiting_timeout = 10
    settings.networking.request_timeout = 15
    settings.networking.error_backoffs = EndlessBackoffs()
    settings.networking.enforce_retry_after = True
    settings.watching.server_timeout = 290
    settings.watching.client_timeout = 310
    settings.watching.connect_timeout = 10
    settings.watching.reconnect_backoff = 1


@kopf.on.login()
async def login(**arguments: Any) -> kopf.ConnectionInfo | None:
    return kopf.login_with_service_account(**arguments) or kopf.login_with_kubeconfig(**arguments)


@kopf.on.probe(id="controller", errors=kopf.ErrorsMode.PERMANENT)
async def controller_health(memo: kopf.Memo, **_: Any) -> dict[str, object]:
    controller: Controller = memo.controller
    return vars(controller.health)


@kopf.on.cleanup()
async def stop_controlling(memo: kopf.Memo, **_: Any) -> None:
    """Before kopf ends: it would wait seconds for tasks that it does not know, and the lease would wait with them."""
    control: asyncio.Task[None] = memo.control
    control.cancel()
    await asyncio.wait([control])
    logger.info("stopped; the models go on without us")


async def run_frame(controller: Controller, control: asyncio.Task[None], host: str) -> None:
    """Returns after SIGTERM or SIGINT, of which kopf takes care. `control` is the running controller.

    Probes are answered on `host`.
    """
    settings = controller.settings
    await kopf.operator(
        memo=kopf.Memo(controller=controller, control=control),
        standalone=True,
        clusterwide=not settings.watch_namespaces,
        namespaces=settings.watch_namespaces,
        liveness_endpoint=f"http://{host}:{settings.probe_port}/healthz",
    )
