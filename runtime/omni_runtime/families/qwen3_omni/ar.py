"""The parts of Qwen3-Omni that make tokens, on vLLM: the thinker, whose tokens are text, and the talker's, codes."""

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from omni_runtime.families.protocol import ArModel, ArPart, TransformersPart
from omni_runtime.families.thinker_part import ThinkerPart

ARCHITECTURE = "Qwen3OmniMoeTalkerForConditionalGeneration"


def thinker_layers(folder: Path) -> tuple[int, ...]:
    """The input's embeddings, and the middle layer that the checkpoint's talker was trained with."""
    config = json.loads((folder / "config.json").read_text())
    return 0, int(config["talker_config"]["accept_hidden_layer"])


def talker_config(config: Any) -> Any:
    """The decoder's, with what vLLM's class of it needs beside; vLLM asks once before it has read the whole."""
    talker = getattr(config, "talker_config", None)
    if talker is None:
        return config
    decoder = talker.text_config
    decoder.architectures = [ARCHITECTURE]
    decoder.code_predictor_config = talker.code_predictor_config
    decoder.thinker_hidden_size = talker.thinker_hidden_size
    decoder.codec_eos_token_id = talker.codec_eos_token_id
    return decoder


class Qwen3OmniAr:
    models: Mapping[str, ArModel] = {
        "thinker": ArModel(
            hidden_layers=thinker_layers,
            text=TransformersPart("Qwen3OmniMoeThinkerForConditionalGeneration", "thinker"),
        ),
        "talker": ArModel(
            config=talker_config,
            architecture=ARCHITECTURE,
            implementation="omni_runtime.families.qwen3_omni.vllm_talker:Talker",
            takes_rows=True,
            makes_frames=True,
            defaults={"temperature": 0.9, "top_k": 50, "top_p": 1.0, "repetition_penalty": 1.05, "max_tokens": 4096},
        ),
    }

    def open(self, part: str, folder: Path, is_dummy: bool) -> ArPart:
        if part == "thinker":
            return ThinkerPart()
        from omni_runtime.families.qwen3_omni.talker_rows import TalkerRows
        from omni_runtime.stepping.loading import LoadPlan
        from omni_runtime.stepping.weights import HOST

        return TalkerRows(LoadPlan(folder, HOST, is_dummy=is_dummy))
