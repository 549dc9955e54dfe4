"""An old file as the `spec` of an OmniModel, with comments, and the place in the old file of each part."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import ClassVar

from pydantic import JsonValue

from omni_contract.api.problems import Path
from omni_contract.convert import stage_fields
from omni_contract.convert.devices import Placement, placement
from omni_contract.convert.edge_fields import connector_fields, edge_fields
from omni_contract.convert.old_edges import OldEdge
from omni_contract.convert.old_file import OldFile
from omni_contract.convert.old_stages import OldStage
from omni_contract.convert.preset_graph import of_preset
from omni_contract.convert.sieve import Sieve
from omni_contract.presets import Preset

NO_POOL = (
    "No pool is named (omni convert --pool), which is fine where there is one; else set accelerator.pool in each stage."
)
AUTO = "Was SharedMemoryConnector. auto hands over through shared memory where the stages share a pod, else by grpc."


@dataclass(frozen=True)
class Spec:
    ORDER: ClassVar[tuple[str, ...]] = ("model", "family", "stages", "edges", "connectors", "placement")

    data: Mapping[str, JsonValue]
    family: str | None
    notes: tuple[tuple[Path, str], ...]
    places: Mapping[Path, Path]
    """By the path in the new file, that in the old one."""


@dataclass(frozen=True)
class Unsaid:
    """What no old file says."""

    source: str
    pool: str | None
    preset: Preset | None
    """The family's, if there is one."""


def new_spec(old: OldFile, unsaid: Unsaid, sieve: Sieve) -> Spec:
    if unsaid.preset:
        old = replace(old, stages=of_preset(old.stages, unsaid.preset, sieve))
    where = placement(old.stages, sieve)
    feeding = {edge.source for edge in old.edges}
    places: dict[Path, Path] = {("spec", "stages", index): stage.path for index, stage in enumerate(old.stages)}
    notes = [
        (path, told) for path, stage in zip(places, old.stages, strict=True) for told in stage_fields.left_out(stage)
    ]
    notes += [(("spec", "edges", index), AUTO) for index, edge in enumerate(old.edges) if _becomes_auto(edge, where)]
    notes += [(("spec", "stages"), NO_POOL)] if unsaid.pool is None else []
    model: dict[str, JsonValue] = {"source": unsaid.source}
    data: dict[str, JsonValue] = {
        "model": model if old.load_format == "auto" else {**model, "loadFormat": old.load_format},
        "stages": [_stage(stage, old, stage in feeding, _Around(where, unsaid), sieve) for stage in old.stages],
        "edges": [edge_fields(edge, where, old.async_chunk) for edge in old.edges],
        "connectors": connector_fields(old.connectors),
        "placement": {"colocate": [[stage.name for stage in group] for group in where.groups]} if where.groups else {},
    }
    return Spec({key: value for key, value in data.items() if value}, old.family, tuple(notes), places)


@dataclass(frozen=True)
class _Around:
    where: Placement
    unsaid: Unsaid


def _stage(stage: OldStage, old: OldFile, feeds: bool, around: _Around, sieve: Sieve) -> dict[str, JsonValue]:
    fields: dict[str, JsonValue] = {
        "name": stage.name,
        stage.kind: stage_fields.engine_block(stage),
        "output": stage_fields.output(stage, feeds, sieve),
        "accelerator": around.where.accelerator(stage, around.unsaid.pool),
        **dict(stage_fields.limits(stage, old.max_inflight)),
        "sampling": stage_fields.sampling(stage, around.unsaid.preset, sieve),
    }
    return {key: value for key, value in fields.items() if value or key == stage.kind}


def _becomes_auto(edge: OldEdge, where: Placement) -> bool:
    is_shared = edge.connector is not None and edge.connector.kind == "shm"
    return is_shared and not where.share_pod(edge.source, edge.target)
