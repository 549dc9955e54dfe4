"""What sampling a call asks for, as the parameters of its requests."""

from collections.abc import Mapping, Sequence
from typing import Any, TypeAlias

from omni_contract.wire.payload import Value
from omni_contract.wire.stage_table import StageTable
from omni_runtime.frontend.text.by_stage import checked, for_each_stage, for_stage
from omni_runtime.frontend.text.stage import text_stage
from omni_runtime.offline.prompts import Reading

SamplingParamsList: TypeAlias = Sequence[Mapping[str, Any]]
"""One map for each stage, in their order; {} leaves a stage its defaults."""
OUR_NAMES = {"num_inference_steps": "steps", "true_cfg_scale": "guidance_scale"}
"""By the name that diffusers uses."""
OF_ALL_STAGES = ("seed", "width", "height", "steps", "guidance_scale")


def parameters_of(
    sampling: Mapping[str, Any], of_stages: SamplingParamsList | None, reading: Reading, table: StageTable
) -> dict[str, Value]:
    """Keywords are for the stage that reads the prompt, but for what all stages must agree on. Raises OmniError."""
    asked = {OUR_NAMES.get(name, name): value for name, value in checked("sampling", sampling).items()}
    of_all = {name: asked.pop(name) for name in OF_ALL_STAGES if name in asked}
    if reading is Reading.PAINT:
        return {**of_all, **asked, **for_each_stage(table, of_stages)}
    stage = text_stage(table) if reading is Reading.ANSWER else table.stages[0].name
    return {**of_all, **for_stage(stage, asked), **for_each_stage(table, of_stages)}
