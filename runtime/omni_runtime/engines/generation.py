"""The `generation` engine of the registry: makes a GenerationEngine from a stage file."""

from omni_contract.api.v1alpha1 import GenerationEngine as GenerationBlock
from omni_contract.wire.stage_file import StageFile
from omni_runtime.engines.protocol import UnusableEngineError
from omni_runtime.families.registry import generation_family
from omni_runtime.generation.engine import GenerationEngine
from omni_runtime.stepping.batching import BatchSettings
from omni_runtime.stepping.engine import StageLimits
from omni_runtime.stepping.loading import load_plan


def create(stage_file: StageFile) -> GenerationEngine:
    block = stage_file.engine
    if not isinstance(block, GenerationBlock):
        raise TypeError(f'stage "{stage_file.stage}" has a {type(block).__name__} block, not a generation one')
    if stage_file.family is None:
        raise UnusableEngineError("a generation engine needs the model's family")
    family, plan = generation_family(stage_file.family), load_plan(stage_file, block.dtype)
    return GenerationEngine(
        StageLimits(stage_file.stage, stage_file.max_in_flight),
        BatchSettings(stage_file.max_batch_size, stage_file.batch_timeout_s),
        lambda: family.load(plan),
        plan.device,
    )
