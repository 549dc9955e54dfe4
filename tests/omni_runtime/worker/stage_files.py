"""Builds stage files with a fake engine; a test states only what matters to it."""

from typing import Any

from omni_contract.api.v1alpha1 import FakeEngine, OutputSpec
from omni_contract.wire.stage_file import EdgeEnd, StageFile


def stage_file(stage: str = "denoiser", engine: FakeEngine | None = None, **fields: Any) -> StageFile:
    known: dict[str, Any] = {
        "model": "painter",
        "stage": stage,
        "revision": "r1",
        "family": None,
        "model_path": "/nowhere",
        "engine": engine or FakeEngine(),
        "max_in_flight": 4,
        "max_batch_size": 1,
        "batch_timeout_s": 0.0,
        "drain_timeout_s": 30,
        "startup_timeout_s": 30,
    }
    return StageFile(**{**known, **fields})


def edge(source: str, target: str, at: str, connector: str = "auto", retain: str = "consumed", **more: Any) -> EdgeEnd:
    """The end of an edge as stage `at` sees it."""
    return EdgeEnd.model_validate(
        {
            "edge": f"{source}->{target}",
            "peer": target if at == source else source,
            "connector": connector,
            "retain": retain,
            "contractHash": "same",
            **more,
        }
    )


def image_output() -> OutputSpec:
    return OutputSpec(modality="image")
