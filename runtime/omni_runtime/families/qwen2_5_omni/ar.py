"""The parts of Qwen2.5-Omni that make tokens, on vLLM: the thinker, whose tokens are text, and the talker's, codes."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from omni_runtime.families.protocol import ArModel, ArPart, TransformersPart
from omni_runtime.families.thinker_part import ThinkerPart

ARCHITECTURE = "Qwen2_5OmniTalkerForConditionalGeneration"


def talker_config(config: Any) -> Any:
    """Of the checkpoint's whole configuration; vLLM asks once before it has read that."""
    talker = getattr(config, "talker_config", None)
    if talker is None:
        return config
    talker.architectures = [ARCHITECTURE]
    return talker


class Qwen25OmniAr:
    models: Mapping[str, ArModel] = {
        "thinker": ArModel(
            architecture="Qwen2_5OmniForConditionalGeneration",
            implementation="omni_runtime.families.qwen2_5_omni.vllm_thinker:Thinker",
            refines=True,
            hidden_layers=(0, -1),
            text=TransformersPart("Qwen2_5OmniThinkerForConditionalGeneration", "thinker"),
        ),
        "talker": ArModel(
            config=talker_config,
            architecture=ARCHITECTURE,
            implementation="omni_runtime.families.qwen2_5_omni.vllm_talker:Talker",
            takes_rows=True,
            defaults={"temperature": 0.9, "top_k": 40, "top_p": 0.8, "repetition_penalty": 1.05, "max_tokens": 2048},
        ),
    }

    def open(self, part: str, folder: Path, is_dummy: bool) -> ArPart:
        if part == "thinker":
            return ThinkerPart()
        from omni_runtime.families.qwen2_5_omni.talker_rows import TalkerRows
        from omni_runtime.stepping.loading import LoadPlan
        from omni_runtime.stepping.weights import HOST

        return TalkerRows(LoadPlan(folder, HOST, is_dummy=is_dummy))
