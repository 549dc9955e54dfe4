"""What the cluster and the person on call ask: is it alive, is it ready, what can it serve, how are the stages."""

from dataclasses import asdict
from typing import Any

from fastapi import APIRouter
from fastapi.responses import JSONResponse, PlainTextResponse, Response
from prometheus_client import CONTENT_TYPE_LATEST

from omni_runtime.frontend.metrics import FrontendMetrics
from omni_runtime.frontend.version import VERSION
from omni_runtime.orchestrator import Orchestrator


def router(orchestrator: Orchestrator, metrics: FrontendMetrics) -> APIRouter:
    routes = APIRouter(tags=["probes"])

    @routes.get("/livez")
    async def livez() -> PlainTextResponse:
        """Alive: the event loop answers."""
        return PlainTextResponse("ok")

    @routes.get("/readyz")
    async def readyz() -> JSONResponse:
        """Ready once each stage was seen live; stays so, and says what can be served now."""
        return _health(orchestrator, orchestrator.is_ready)

    @routes.get("/healthz")
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
    body = {
        "status": "ok" if is_good else "unavailable",
        "stages": {stage.name: "live" if stage.is_live else "missing" for stage in orchestrator.stages()},
        "outputs": orchestrator.servable(),
    }
    return JSONResponse(body, 200 if is_good else 503)
