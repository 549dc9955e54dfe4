"""The `ar` engine's backend `transformers` in the registry: a family's talker, or what makes text."""

from omni_contract.api.v1alpha1 import ArEngine as ArBlock
from omni_contract.wire.stage_file import StageFile
from omni_runtime.engines.ar.settings import ArSettings, settings_of
from omni_runtime.engines.protocol import Engine, UnusableEngineError
from omni_runtime.families.registry import talker_family
from omni_runtime.stepping.batching import BatchSettings
from omni_runtime.stepping.engine import StageLimits
from omni_runtime.stepping.loading import load_plan
from omni_runtime.talking.engine import TalkerEngine
from omni_runtime.writing.engine import WriterEngine
from omni_runtime.writing.loading import WriterPlan

TALKER = "talker"
VLLM_ONLY = ("loras", "quantization", "parallelism", "extra_args")
"""Fields of the block that change what the model is or where it runs, and that only vLLM can follow."""


def create(stage_file: StageFile) -> Engine:
    block = stage_file.engine
    if not isinstance(block, ArBlock):
        raise TypeError(f'stage "{stage_file.stage}" has a {type(block).__name__} block, not an ar one')
    for name in VLLM_ONLY:
        if getattr(block, name) != ArBlock.model_fields[name].get_default(call_default_factory=True):
            field = ArBlock.model_fields[name].alias or name
            raise UnusableEngineError(f"backend transformers does not know ar.{field}; remove it, or use vllm")
    if stage_file.family is not None and (block.part or stage_file.stage) == TALKER:
        return _talker(stage_file, stage_file.family, block)
    return _writer(stage_file, settings_of(stage_file))


def _talker(stage_file: StageFile, name: str, block: ArBlock) -> TalkerEngine:
    family, plan = talker_family(name), load_plan(stage_file, block.dtype)
    limits = StageLimits(stage_file.stage, stage_file.max_in_flight)
    return TalkerEngine(limits, BatchSettings(block.max_sequences, 0.0), lambda: family.load(plan), plan.device)


def _writer(stage_file: StageFile, settings: ArSettings) -> WriterEngine:
    part = None
    if settings.family is not None:
        if settings.model.text is None:
            raise UnusableEngineError(f'backend transformers does not run "{settings.part}" of this family; use vllm')
        part = settings.family.open(settings.part, settings.folder, settings.is_dummy)
    block = settings.block
    plan = WriterPlan(
        load_plan(stage_file, block.dtype),
        settings.model.text,
        settings.hidden_layers,
        block.max_model_length,
        block.media_per_prompt.model_dump(),
    )
    return WriterEngine(StageLimits(stage_file.stage, stage_file.max_in_flight), plan, part)
