"""The talking models of fake stages in examples/, resolved as local mode does it; a test changes what matters to it."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from omni_contract.api.load import load_model
from omni_contract.api.v1alpha1 import FrontendLimits
from omni_contract.resolve import ResolvedModel, resolve
from omni_runtime.local.catalog import local_catalog
from omni_runtime.local.devices import Machine

EXAMPLES = Path(__file__).parents[2] / "examples"
MODEL = "fake-omni"
SPEECH_MODEL = "fake-speech"
THINKER, TALKER, VOCODER = STAGES = ("thinker", "talker", "vocoder")
STEPS = 12
SPEECH_STEPS = 50
NO_CHANGES: Mapping[str, Mapping[str, Any]] = {}


def fake_omni(
    engines: Mapping[str, Mapping[str, Any]] = NO_CHANGES,
    limits: FrontendLimits = FrontendLimits(),  # noqa: B008 - immutable
) -> ResolvedModel:
    """A thinker, a talker and a vocoder; `engines` lies over the example's engines field by field."""
    return _changed(MODEL, engines, limits)


def fake_speech(
    engines: Mapping[str, Mapping[str, Any]] = NO_CHANGES,
    limits: FrontendLimits = FrontendLimits(),  # noqa: B008 - immutable
) -> ResolvedModel:
    """A talker and a vocoder; `engines` lies over the example's engines field by field."""
    return _changed(SPEECH_MODEL, engines, limits)


def _changed(name: str, engines: Mapping[str, Mapping[str, Any]], limits: FrontendLimits) -> ResolvedModel:
    spec = load_model(EXAMPLES / f"{name}.yaml").spec
    stages = tuple(
        stage.model_copy(update={"fake": stage.fake and stage.fake.model_copy(update=engines.get(stage.name, {}))})
        for stage in spec.stages
    )
    frontend = spec.frontend.model_copy(update={"limits": limits})
    changed = spec.model_copy(update={"stages": stages, "frontend": frontend})
    return resolve(name, "default", changed, local_catalog(changed, Machine({}), allow_fake_engine=True))
