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
from omni_contract.wire.stage_table import StageTable
from omni_runtime.local.catalog import local_catalog
from omni_runtime.local.plan import STAGE_TABLE
from omni_runtime.orchestrator import Orchestrator, OrchestratorSettings
from omni_runtime.orchestrator.discovery.local import LocalDiscovery
from tests.layout.source import CHECKOUT
from tests.support.model_processes import NO_DEVICES, ModelProcesses, model_processes

REPLICAS = 3
WHOLE, IN_CHUNKS = 0, 1
SETUPS: Sequence[Sequence[int]] = ((WHOLE,), (IN_CHUNKS,), range(REPLICAS))
"""Replicas of each stage that has several."""
START_S = 300


@dataclass(frozen=True)
class Setups:
    """The running model, all of it behind `url`; `several` are the stages that have three replicas."""

    url: str
    several: Sequence[str]
    table: StageTable

    @asynccontextmanager
    async def model(self, replicas: Sequence[int]) -> AsyncIterator[Orchestrator]:
        """These replicas alone, for a frontend of the test's own."""
        rows = {stage.name: stage for stage in self.table.stages}
        for name in self.several:
            addresses = tuple(rows[name].addresses[number] for number in replicas)
            rows[name] = rows[name].model_copy(update={"addresses": addresses})
        table = self.table.model_copy(update={"stages": tuple(rows.values())})
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
    with model_processes(_resolved(name, spec), folder, volumes=volumes) as processes:
        whole = _resolved(name, {**spec, "edges": _whole_edges(spec)})
        assert any([_hands_on_whole_answers(processes, whole, stage, folder) for stage in several])
        asyncio.run(processes.start(patience_s=START_S))
        yield Setups(processes.urls[0], several, StageTable.read((folder / STAGE_TABLE).read_bytes()))


def _resolved(name: str, spec: dict[str, Any]) -> ResolvedModel:
    model = OmniModelSpec.model_validate(spec)
    return resolve(name, "default", model, local_catalog(model, NO_DEVICES, allow_fake_engine=False))


def _whole_edges(spec: dict[str, Any]) -> list[dict[str, Any]]:
    names = [stage["name"] for stage in spec["stages"]]
    return [{"from": one, "to": after, "streaming": {"enabled": False}} for one, after in pairwise(names)]


def _hands_on_whole_answers(processes: ModelProcesses, whole: ResolvedModel, stage: str, folder: Path) -> bool:
    """The stage's first replica, by a stage file of its own; false if all of them do in any case."""
    plan, file, own = processes.plans[f"{stage}-{WHOLE}"], folder / f"{stage}.json", folder / f"{stage}-whole.json"
    given = json.loads(file.read_text())
    told = stage_file(whole, stage, given["revision"], str(folder / "volumes")).model_dump_json(by_alias=True)
    own.write_text(told)
    arguments = tuple(str(own) if argument == str(file) else argument for argument in plan.arguments)
    processes.plans[plan.name] = replace(plan, arguments=arguments)
    return bool(json.loads(told)["outputs"] != given["outputs"])
