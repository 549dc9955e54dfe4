"""A resolved model as processes of its own, one for each stage, and an orchestrator for them in this one; no HTTP."""

import tempfile
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import replace
from pathlib import Path

from benchmarks.endpoint import stage_table
from omni_contract.resolve import ResolvedModel
from omni_runtime.local.devices import Machine
from omni_runtime.orchestrator import Orchestrator, OrchestratorSettings
from omni_runtime.orchestrator.discovery.local import LocalDiscovery
from tests.support.model_processes import NO_DEVICES, model_processes

START_TIMEOUT_S = 550
"""A cold start of vLLM on a device compiles for minutes."""


@asynccontextmanager
async def running_model(
    model: ResolvedModel, volumes: Path | None = None, machine: Machine = NO_DEVICES
) -> AsyncIterator[Orchestrator]:
    """`volumes` is the folder of the claim "models"."""
    with (
        tempfile.TemporaryDirectory(prefix="omni-bench-") as folder,
        model_processes(model, Path(folder), volumes=volumes, machine=machine) as processes,
    ):
        for name in processes.stages:
            plan = processes.plans[name]
            # Else they would outlive a benchmark that is killed.
            processes.plans[name] = replace(plan, arguments=(*plan.arguments, "--die-with-parent"))
        await processes.start(*processes.stages, patience_s=START_TIMEOUT_S)
        table = stage_table(processes)
        settings = OrchestratorSettings(frontend_id="benchmark")
        async with Orchestrator(table, LocalDiscovery(table), settings).running() as orchestrator:
            await orchestrator.wait_ready()
            yield orchestrator
