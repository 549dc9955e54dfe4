"""Fake stages in processes of their own, and an orchestrator for them in this one; HTTP is left out."""

import asyncio
import subprocess
import sys
import tempfile
from collections.abc import AsyncIterator, Iterator, Sequence
from contextlib import ExitStack, asynccontextmanager, contextmanager
from dataclasses import dataclass, field
from itertools import pairwise
from pathlib import Path

from omni_contract.api.v1alpha1 import FakeEngine, FrontendLimits, OutputSpec
from omni_contract.wire.names import edge_name
from omni_contract.wire.stage_file import EdgeEnd, StageFile
from omni_contract.wire.stage_table import StageTable, TableEdge, TableStage
from omni_runtime.orchestrator import Orchestrator, OrchestratorSettings
from omni_runtime.orchestrator.discovery.local import LocalDiscovery
from omni_runtime.orchestrator.routing import Choose, choose

MODEL = "fake"


@dataclass(frozen=True)
class FakeStage:
    """`max_in_flight` is each replica's."""

    name: str
    engine: FakeEngine = field(default_factory=FakeEngine)
    replicas: int = 1
    max_in_flight: int = 1024


@dataclass(frozen=True)
class RunningStages:
    """`workers` holds the process id of each replica by its name, "STAGE-INDEX"."""

    orchestrator: Orchestrator
    workers: dict[str, int]


@asynccontextmanager
async def running_stages(
    stages: Sequence[FakeStage], limits: FrontendLimits | None = None, choose: Choose = choose
) -> AsyncIterator[RunningStages]:
    """The stages as a chain, each replica a process that the orchestrator is attached to."""
    with tempfile.TemporaryDirectory() as name, ExitStack() as processes:
        folder = Path(name)
        workers = {
            replica: processes.enter_context(_worker(folder, file, replica))
            for stage, file in zip(stages, _stage_files(stages), strict=True)
            for replica in _replicas(stage)
        }
        table = _stage_table(folder, stages, limits or FrontendLimits())
        settings = OrchestratorSettings(frontend_id="benchmark", choose=choose)
        async with Orchestrator(table, LocalDiscovery(table), settings).running() as orchestrator:
            await _all_routable(orchestrator, len(workers))
            yield RunningStages(orchestrator, workers)


async def _all_routable(orchestrator: Orchestrator, count: int) -> None:
    """The orchestrator gives no event for it, and this is before the clock."""
    async with asyncio.timeout(30):
        while sum(replica.is_routable for stage in orchestrator.stages() for replica in stage.replicas) < count:  # noqa: ASYNC110
            await asyncio.sleep(0.02)


@contextmanager
def _worker(folder: Path, file: StageFile, replica: str) -> Iterator[int]:
    path = folder / f"{replica}.json"
    path.write_text(file.model_dump_json(by_alias=True))
    options = ["--stage-file", str(path), "--listen", _address(folder, replica), "--replica", replica]
    command = [sys.executable, "-m", "omni_runtime.worker", *options, "--die-with-parent"]
    process = subprocess.Popen(command, stderr=subprocess.DEVNULL)
    try:
        yield process.pid
    finally:
        process.kill()
        process.wait()


def _replicas(stage: FakeStage) -> list[str]:
    return [f"{stage.name}-{index}" for index in range(stage.replicas)]


def _address(folder: Path, replica: str) -> str:
    return f"unix:{folder}/{replica}.sock"


def _stage_files(stages: Sequence[FakeStage]) -> Iterator[StageFile]:
    pairs = list(pairwise(stages))
    for stage in stages:
        yield StageFile(
            model=MODEL,
            stage=stage.name,
            revision="r1",
            family=None,
            model_path="/",
            engine=stage.engine,
            inputs=tuple(_end(one, other, one.name) for one, other in pairs if other is stage),
            outputs=tuple(_end(one, other, other.name) for one, other in pairs if one is stage),
            output=OutputSpec(modality="text") if stage is stages[-1] else None,
            max_in_flight=stage.max_in_flight,
            max_batch_size=1,
            batch_timeout_s=0,
            drain_timeout_s=5,
            startup_timeout_s=30,
        )


def _end(source: FakeStage, target: FakeStage, peer: str) -> EdgeEnd:
    return EdgeEnd(edge=edge_name(source.name, target.name), peer=peer, connector="auto", contract_hash="same")


def _stage_table(folder: Path, stages: Sequence[FakeStage], limits: FrontendLimits) -> StageTable:
    return StageTable(
        model=MODEL,
        namespace="default",
        revision="r1",
        family=None,
        served_names=(MODEL,),
        stages=tuple(
            TableStage(
                name=stage.name,
                engine="fake",
                output=OutputSpec(modality="text") if stage is stages[-1] else None,
                max_in_flight=stage.max_in_flight,
                addresses=tuple(_address(folder, replica) for replica in _replicas(stage)),
            )
            for stage in stages
        ),
        edges=tuple(
            TableEdge(source=one.name, target=other.name, connector="auto", contract_hash="same")
            for one, other in pairwise(stages)
        ),
        limits=limits,
        created=0,
    )
