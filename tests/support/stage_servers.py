"""A whole model inside the test's process: the real orchestrator, and real workers with their servers on sockets."""

from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import grpc

from omni_contract.api.v1alpha1 import OmniModelSpec
from omni_contract.resolve import ResolvedModel, StageLocation, resolve, stage_file, stage_table
from omni_contract.wire.stage_pb2_grpc import add_StageWorkerServicer_to_server
from omni_runtime.connectors.channels import SERVER_OPTIONS
from omni_runtime.connectors.connector_set import ConnectorSet
from omni_runtime.connectors.protocol import MemoryPlace
from omni_runtime.connectors.store import PayloadStore
from omni_runtime.engines.protocol import Engine
from omni_runtime.engines.registry import create_engine
from omni_runtime.orchestrator.discovery.local import LocalDiscovery
from omni_runtime.orchestrator.orchestrator import Orchestrator
from omni_runtime.orchestrator.settings import OrchestratorSettings
from omni_runtime.tracing.spans import Tracing
from omni_runtime.transport.plain import PLAIN
from omni_runtime.worker.service import StageWorkerService
from omni_runtime.worker.stage import Stage
from omni_runtime.worker.states import State
from tests.support.model_files import catalog

PAYLOAD_LIMIT_BYTES = 64 * 2**20
NO_ENGINES: Mapping[str, Engine] = {}
USUAL = OrchestratorSettings(frontend_id="frontend-1")


@dataclass(frozen=True)
class RunningModel:
    orchestrator: Orchestrator
    stages: Mapping[str, Stage]

    @property
    def is_idle(self) -> bool:
        """True if no worker runs or holds anything."""
        stages = self.stages.values()
        return not any(
            stage.capacity.running or stage.capacity.waiting or stage.connectors.census().payloads for stage in stages
        )


def fake_model_of(
    stages: Mapping[str, Mapping[str, Any]],
    edges: Sequence[Mapping[str, Any]],
    shares_memory: bool = False,
    **spec: Any,
) -> ResolvedModel:
    """A model of fake stages; each is what follows its name in a model file, of which `spec` are further keys."""
    model = OmniModelSpec.model_validate(
        {
            **spec,
            "model": {"source": "pvc://models/none", "loadFormat": "dummy"},
            "stages": [{"name": name, "accelerator": {"pool": "cpu"}, **fields} for name, fields in stages.items()],
            "edges": list(edges),
        }
    )
    return resolve("talker", "default", model, catalog(allow_fake_engine=True, stages_share_memory=shares_memory))


@asynccontextmanager
async def running_model(
    model: ResolvedModel,
    folder: Path,
    engines: Mapping[str, Engine] = NO_ENGINES,
    memory: MemoryPlace = MemoryPlace(),  # noqa: B008 - immutable
    settings: OrchestratorSettings = USUAL,
) -> AsyncIterator[RunningModel]:
    """`engines` takes the place of the stages' own; `memory` is where they share payloads, if they do.

    The workers trace as the settings say, too.
    """
    addresses = {stage.name: f"unix:{folder}/{stage.name}.sock" for stage in model.stages}
    table = stage_table(model, "r1", 0, lambda name: StageLocation(addresses=(addresses[name],)))
    orchestrator = Orchestrator(table, LocalDiscovery(table), settings)
    async with AsyncExitStack() as stack:
        stages = {
            name: await stack.enter_async_context(
                _serving(model, name, address, engines.get(name), memory, settings.tracing)
            )
            for name, address in addresses.items()
        }
        await stack.enter_async_context(orchestrator.running())
        await orchestrator.wait_ready()
        yield RunningModel(orchestrator, stages)


@asynccontextmanager
async def _serving(
    model: ResolvedModel, name: str, address: str, engine: Engine | None, memory: MemoryPlace, tracing: Tracing
) -> AsyncIterator[Stage]:
    file = stage_file(model, name, "r1", "/nowhere")
    store = PayloadStore(PAYLOAD_LIMIT_BYTES)
    outputs = [end.connector for end in file.outputs]
    connectors = ConnectorSet(address, f"boot-{name}", store, file.connectors, outputs, memory)
    await connectors.open()
    stage = Stage(file, engine or create_engine(file), connectors, tracing)
    server = grpc.aio.server(options=SERVER_OPTIONS)
    service = StageWorkerService(stage, store, f"boot-{name}", f"{name}-0", "")
    add_StageWorkerServicer_to_server(service, server)
    server.add_insecure_port(address)
    await server.start()
    stage.become(State.READY)
    try:
        async with service.pipes.serving(PLAIN, f"{address}.pipe"):
            yield stage
    finally:
        await server.stop(grace=None)
        await connectors.close()
