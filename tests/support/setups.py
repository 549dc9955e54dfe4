"""A model that is set up in several ways at once: one replica of a stage hands on its answers whole, others in chunks.

One replica of each stage, or all of them, is a model that is set up in its own way, and all ways cost one start.
"""

import asyncio
import copy
import json
from collections.abc import AsyncIterator, Iterator, Sequence
from contextlib import asynccontextmanager, contextmanager
from dataclasses import dataclass, replace
from itertools import pairwise
from pathlib import Path
from typing import Any

import yaml

from omni_contract.api.v1alpha1 import OmniModelSpec
from omni_contract.resolve import ResolvedModel, resolve, stage_file
from omni_contract.wire.stage_table import StageTable, TableStage
from omni_runtime.local.catalog import local_catalog
from omni_runtime.local.plan import STAGE_TABLE
from omni_runtime.orchestrator import Orchestrator, OrchestratorSettings
from omni_runtime.orchestrator.discovery.local import LocalDiscovery
from tests.layout.source import CHECKOUT
from tests.support.model_processes import NO_DEVICES, ModelProcesses, model_processes

REPLICAS = 3
WHOLE, IN_CHUNKS = 0, 1
SETUPS: Sequence[Sequence[int]] = ((WHOLE,), (IN_CHUNKS,), range(REPLICAS))
"""Of each, the replicas of those stages that have several."""
START_S = 300


@dataclass(frozen=True)
class Setups:
    """The running model: of each setup its frontend's URL and its table. `several` are the stages with replicas."""

    urls: Sequence[str]
    several: Sequence[str]
    tables: Sequence[StageTable]

    @asynccontextmanager
    async def model(self, setup: int) -> AsyncIterator[Orchestrator]:
        """For a frontend of the test's own."""
        table, replicas = self.tables[setup], SETUPS[setup]
        orchestrator = Orchestrator(table, LocalDiscovery(table), OrchestratorSettings(f"frontend-of-{replicas}"))
        async with orchestrator.running():
            await orchestrator.wait_ready()
            yield orchestrator


def example(name: str) -> dict[str, Any]:
    """The spec of `examples/NAME.yaml`."""
    spec: dict[str, Any] = yaml.safe_load((CHECKOUT / "examples" / f"{name}.yaml").read_text())["spec"]
    return spec


@contextmanager
def several_setups(
    name: str, spec: dict[str, Any], several: Sequence[str], folder: Path, volumes: Path
) -> Iterator[Setups]:
    """`volumes` is the folder of the claim `models`; files of the processes go into `folder`."""
    spec = copy.deepcopy(spec)
    for stage in spec["stages"]:
        if stage["name"] in several:
            stage["replicas"] = REPLICAS
    with model_processes(_resolved(name, spec), folder, len(SETUPS), volumes) as processes:
        whole = _resolved(name, {**spec, "edges": _whole_edges(spec)})
        assert any([_hands_on_whole_answers(processes, whole, stage, folder) for stage in several])
        table = StageTable.read((folder / STAGE_TABLE).read_bytes())
        tables = [_of_replicas(table, several, replicas) for replicas in SETUPS]
        for number, own in enumerate(tables):
            file = folder / f"setup-{number}.json"
            file.write_text(own.model_dump_json(by_alias=True))
            _reads(processes, f"frontend-{number}", folder / STAGE_TABLE, file)
        asyncio.run(processes.start(patience_s=START_S))
        yield Setups(processes.urls, several, tables)


def _of_replicas(table: StageTable, several: Sequence[str], replicas: Sequence[int]) -> StageTable:
    """With these alone of the stages that have several."""

    def row(stage: TableStage) -> TableStage:
        if stage.name not in several:
            return stage
        return stage.model_copy(update={"addresses": tuple(stage.addresses[number] for number in replicas)})

    return table.model_copy(update={"stages": tuple(map(row, table.stages))})


def _resolved(name: str, spec: dict[str, Any]) -> ResolvedModel:
    model = OmniModelSpec.model_validate(spec)
    return resolve(name, "default", model, local_catalog(model, NO_DEVICES, allow_fake_engine=False))


def _whole_edges(spec: dict[str, Any]) -> list[dict[str, Any]]:
    names = [stage["name"] for stage in spec["stages"]]
    return [{"from": one, "to": after, "streaming": {"enabled": False}} for one, after in pairwise(names)]


def _hands_on_whole_answers(processes: ModelProcesses, whole: ResolvedModel, stage: str, folder: Path) -> bool:
    """The stage's first replica, by a stage file of its own; false if all of them do in any case."""
    file, own = folder / f"{stage}.json", folder / f"{stage}-whole.json"
    given = json.loads(file.read_text())
    told = stage_file(whole, stage, given["revision"], str(folder / "volumes")).model_dump_json(by_alias=True)
    own.write_text(told)
    _reads(processes, f"{stage}-{WHOLE}", file, own)
    return bool(json.loads(told)["outputs"] != given["outputs"])


def _reads(processes: ModelProcesses, name: str, given: Path, own: Path) -> None:
    """The process reads a file of its own instead of the given one."""
    plan = processes.plans[name]
    assert str(given) in plan.arguments
    arguments = tuple(str(own) if argument == str(given) else argument for argument in plan.arguments)
    processes.plans[name] = replace(plan, arguments=arguments)
