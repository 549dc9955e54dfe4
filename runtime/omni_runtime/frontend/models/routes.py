"""GET /v1/models and /v1/models/{id}."""

from fastapi import APIRouter

from omni_runtime.frontend.errors import error_responses
from omni_runtime.frontend.models.schema import Model, ModelList
from omni_runtime.frontend.models.service import check_served, served_models
from omni_runtime.orchestrator import Orchestrator


def router(orchestrator: Orchestrator) -> APIRouter:
    routes = APIRouter(prefix="/v1/models", tags=["models"], responses=error_responses(401))

    @routes.get("")
    async def list_models() -> ModelList:
        return ModelList(data=served_models(orchestrator.table))

    @routes.get("/{model:path}", responses=error_responses(404))
    async def get_model(model: str) -> Model:
        name = check_served(orchestrator.table, model)
        return next(served for served in served_models(orchestrator.table) if served.id == name)

    return routes
