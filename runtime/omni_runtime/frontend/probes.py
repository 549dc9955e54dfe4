"""What the cluster and the person on call ask: is it alive, is it ready, what can it serve, how are the stages."""

from collections.abc import Mapping
from dataclasses import asdict
from typing import Any, Literal

from fastapi import APIRouter
from fastapi.responses import JSONResponse, PlainTextResponse, Response
from prometheus_client import CONTENT_TYPE_LATEST
from pydantic import BaseModel

from omni_runtime.frontend.metrics import FrontendMetrics
from omni_runtime.frontend.version import VERSION
from omni_runtime.orchestrator import Orchestrator, StageStatus


class Health(BaseModel):
    """`outputs` says for each modality whether it can be served now, `message` why some cannot."""

    status: Literal["ok", "degraded", "unavailable"]
    """Degraded: some outputs can be served and others cannot."""
    stages: dict[str, Literal["live", "asleep", "missing"]]
    outputs: dict[str, bool]
    message: str


UNAVAILABLE: dict[int | str, dict[str, Any]] = {503: {"model": Health, "description": "Not now"}}


def router(orchestrator: Orchestrator, metrics: FrontendMetrics) -> APIRouter:
    routes = APIRouter(tags=["probes"])

    @routes.get("/livez", response_class=PlainTextResponse)
    async def livez() -> PlainTextResponse:
        """Alive: the event loop answers."""
        return PlainTextResponse("ok")

    @routes.get("/readyz", response_model=Health, responses=UNAVAILABLE)
    async def readyz() -> JSONResponse:
        """Ready once each stage was seen, or some output is served without it; stays so, and says what is missing."""
        return _health(orchestrator, orchestrator.is_ready)

    @routes.get("/healthz", response_model=Health, responses=UNAVAILABLE)
    async def healthz() -> JSONResponse:
        """Healthy while every output can be served now."""
        return _health(orchestrator, all(orchestrator.servable().values()))

    @routes.get("/version")
    async def version() -> dict[str, str]:
        table = orchestrator.table
        return {"version": VERSION, "model": table.model, "revision": table.revision}

    @routes.get("/metrics", response_class=PlainTextResponse)
    async def prometheus() -> Response:
        return Response(metrics.exposition(), media_type=CONTENT_TYPE_LATEST)

    @routes.get("/debug/stages")
    async def stages() -> list[dict[str, Any]]:
        return [asdict(stage) for stage in orchestrator.stages()]

    return routes


def _health(orchestrator: Orchestrator, is_good: bool) -> JSONResponse:
    outputs = orchestrator.servable()
    health = Health(
        status=_state(outputs),
        stages={stage.name: _word(stage) for stage in orchestrator.stages()},
        outputs=outputs,
        message="; ".join(orchestrator.losses().values()),
    )
    return JSONResponse(health.model_dump(), 200 if is_good else 503)


def _state(outputs: Mapping[str, bool]) -> Literal["ok", "degraded", "unavailable"]:
    if all(outputs.values()):
        return "ok"
    return "degraded" if any(outputs.values()) else "unavailable"


def _word(stage: StageStatus) -> Literal["live", "asleep", "missing"]:
    if stage.is_live:
        return "live"
    return "asleep" if stage.is_asleep else "missing"
