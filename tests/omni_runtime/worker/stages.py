"""What tests say of a stage again and again."""

from collections.abc import Callable
from typing import TypeAlias

from omni_contract.api.v1alpha1 import FakeEngine as FakeSettings
from omni_contract.wire.payload import Payload
from omni_runtime.connectors.protocol import Census
from omni_runtime.engines.fake import FakeEngine
from omni_runtime.worker.stage import Stage

MakeStage: TypeAlias = Callable[..., Stage]
LARGE: Payload = {"latents": bytes(100_000)}
"""Too large for a message, so it is held by the worker."""


def fake(**settings: object) -> FakeEngine:
    return FakeEngine("denoiser", FakeSettings.model_validate(settings))


def is_idle(stage: Stage) -> bool:
    nothing = Census(payloads=0, size_bytes=0)
    return (stage.capacity.running, stage.capacity.waiting, stage.connectors.census()) == (0, 0, nothing)
