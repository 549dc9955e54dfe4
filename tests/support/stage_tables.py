"""Builds stage tables; a test states only what matters to it."""

import itertools
from collections.abc import Sequence
from typing import Any

from omni_contract.api.v1alpha1 import FrontendLimits, OutputSpec
from omni_contract.wire.stage_table import StageTable, TableEdge, TableStage

IMAGE_STAGES = ("text-encoder", "denoiser", "vae-decoder")


def stage(name: str, modality: str | None = None, **fields: Any) -> TableStage:
    output = OutputSpec.model_validate({"modality": modality}) if modality else None
    return TableStage(**{"name": name, "engine": "fake", "output": output, "max_in_flight": 4, **fields})


def edge(source: str, target: str, retain: str = "consumed") -> TableEdge:
    return TableEdge.model_validate(
        {"source": source, "target": target, "connector": "auto", "retain": retain, "contractHash": "same"}
    )


def table(stages: Sequence[TableStage], edges: Sequence[TableEdge] = (), **limits: Any) -> StageTable:
    return StageTable(
        model="painter",
        namespace="default",
        revision="r1",
        family="qwen-image",
        served_names=("painter",),
        stages=tuple(stages),
        edges=tuple(edges),
        limits=FrontendLimits(**limits),
        created=1_700_000_000,
    )


def chain(*names: str, addresses: dict[str, tuple[str, ...]] | None = None, **limits: Any) -> StageTable:
    """Stages in a row, the last of which answers with an image."""
    where = addresses or {}
    stages = [stage(name, "image" if name == names[-1] else None, addresses=where.get(name, ())) for name in names]
    edges = [edge(source, target) for source, target in itertools.pairwise(names)]
    return table(stages, edges, **limits)


def image_table(addresses: dict[str, tuple[str, ...]] | None = None, **limits: Any) -> StageTable:
    """The stage table of a split image model."""
    return chain(*IMAGE_STAGES, addresses=addresses, **limits)
