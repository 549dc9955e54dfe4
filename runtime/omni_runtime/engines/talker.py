"""The `ar` engine's backend `transformers` in the registry: makes a TalkerEngine from a stage file."""

from omni_contract.api.v1alpha1 import ArEngine as ArBlock
from omni_contract.wire.stage_file import StageFile
from omni_runtime.engines.protocol import UnusableEngineError
from omni_runtime.families.registry import talker_family
from omni_runtime.stepping.engine import StageLimits
from omni_runtime.stepping.loading import load_plan
from omni_runtime.talking.engine import TalkerEngine

TALKER = "talker"


def create(stage_file: StageFile) -> TalkerEngine:
    block = stage_file.engine
    if not isinstance(block, ArBlock):
        raise TypeError(f'stage "{stage_file.stage}" has a {type(block).__name__} block, not an ar one')
    part = block.part or stage_file.stage
    if stage_file.family is None or part != TALKER:
        raise UnusableEngineError(f'backend transformers runs the talker of a family, not "{part}"; use vllm')
    family, plan = talker_family(stage_file.family), load_plan(stage_file, block.dtype)
    limits = StageLimits(stage_file.stage, stage_file.max_in_flight)
    return TalkerEngine(limits, lambda: family.load(plan), plan.device)
