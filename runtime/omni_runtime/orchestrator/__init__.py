"""Carries requests through the stages of a model. No torch, no HTTP: the frontend's services and benchmarks call it.

orchestrator = Orchestrator(table, discovery, settings)
async with orchestrator.running():
    result = await orchestrator.run(SessionRequest(request_id, payload, parameters))
"""

from omni_runtime.orchestrator.admission import OverloadedError
from omni_runtime.orchestrator.orchestrator import Orchestrator, StageStatus, collect
from omni_runtime.orchestrator.request import (
    Completed,
    FinalChunk,
    FinalOutput,
    OutputLost,
    Progress,
    SessionEvent,
    SessionRequest,
    SessionResult,
    StageUsage,
)
from omni_runtime.orchestrator.session import Session
from omni_runtime.orchestrator.settings import OrchestratorSettings

__all__ = [
    "Completed",
    "FinalChunk",
    "FinalOutput",
    "Orchestrator",
    "OrchestratorSettings",
    "OutputLost",
    "OverloadedError",
    "Progress",
    "Session",
    "SessionEvent",
    "SessionRequest",
    "SessionResult",
    "StageStatus",
    "StageUsage",
    "collect",
]
