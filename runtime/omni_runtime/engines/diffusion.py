"""The `diffusion` engine of the registry: makes a DiffusionEngine from a stage file."""

from omni_contract.api.v1alpha1 import DiffusionEngine as DiffusionBlock
from omni_contract.wire.stage_file import StageFile
from omni_runtime.diffusion.engine import DiffusionEngine, DiffusionSettings
from omni_runtime.engines.protocol import UnusableEngineError
from omni_runtime.families.registry import diffusion_family
from omni_runtime.stepping.engine import StageLimits
from omni_runtime.stepping.loading import load_plan


def create(stage_file: StageFile) -> DiffusionEngine:
    block = stage_file.engine
    if not isinstance(block, DiffusionBlock):
        raise TypeError(f'stage "{stage_file.stage}" has a {type(block).__name__} block, not a diffusion one')
    if stage_file.family is None:
        raise UnusableEngineError("a diffusion engine needs the model's family")
    settings = DiffusionSettings(
        limits=StageLimits(stage_file.stage, stage_file.max_in_flight),
        family=diffusion_family(stage_file.family),
        phases=block.phases,
        plan=load_plan(stage_file, block.dtype),
    )
    return DiffusionEngine(settings)
