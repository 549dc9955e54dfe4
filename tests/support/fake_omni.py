"""The omni model of fake stages in examples/, resolved as local mode does it; a test changes what matters to it."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from omni_contract.api.load import load_model
from omni_contract.api.v1alpha1 import FrontendLimits
from omni_contract.resolve import ResolvedModel, resolve
from omni_runtime.local.catalog import local_catalog
from omni_runtime.local.devices import Machine

EXAMPLE = Path(__file__).parents[2] / "examples" / "fake-omni.yaml"
MODEL = "fake-omni"
THINKER, TALKER, VOCODER = STAGES = ("thinker", "talker", "vocoder")
STEPS = 12
NO_CHANGES: Mapping[str, Mapping[str, Any]] = {}


def fake_omni(
    engines: Mapping[str, Mapping[str, Any]] = NO_CHANGES,
    limits: FrontendLimits = FrontendLimits(),  # noqa: B008 - immutable
    **of_each_stage: Any,
) -> ResolvedModel:
    """`engines` lies over the example's engines field by field, `of_each_stage` over all of its stages."""
    spec = load_model(EXAMPLE).spec
    stages = tuple(
        stage.model_copy(
            update={"fake": stage.fake and stage.fake.model_copy(update=engines.get(stage.name, {})), **of_each_stage}
        )
        for stage in spec.stages
    )
    frontend = spec.frontend.model_copy(update={"limits": limits})
    changed = spec.model_copy(update={"stages": stages, "frontend": frontend})
    return resolve(MODEL, "default", changed, local_catalog(changed, Machine({}), allow_fake_engine=True))
