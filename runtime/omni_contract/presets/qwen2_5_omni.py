"""Qwen2.5-Omni: text, pictures, sound and video to text and speech, over a thinker, a talker and a token2wav."""

from omni_contract.api.v1alpha1 import ArEngine, EdgeSpec, GenerationEngine, OutputSpec, StageSpec, StreamingSpec
from omni_contract.presets.payloads import INTEGERS, ArrayEntry, PayloadSchema
from omni_contract.presets.preset import Preset
from omni_contract.presets.speech import TEXT_PARAMETERS, THINKER_ENDPOINTS, VOICE_PARAMETERS

QWEN2_5_OMNI = Preset(
    family="qwen2.5-omni",
    modality="audio",
    stages=(
        StageSpec(
            name="thinker",
            ar=ArEngine(part="thinker", hidden_layers=(0, -1)),
            output=OutputSpec(modality="text"),
            sampling={"temperature": 0.0, "top_p": 1.0, "top_k": -1, "max_tokens": 2048, "repetition_penalty": 1.1},
        ),
        StageSpec(
            name="talker",
            ar=ArEngine(part="talker"),
            sampling={"temperature": 0.9, "top_p": 0.8, "top_k": 40, "max_tokens": 2048, "repetition_penalty": 1.05},
        ),
        StageSpec(
            name="code2wav",
            generation=GenerationEngine(),
            output=OutputSpec(modality="audio", voices=("Chelsie", "Ethan")),
            sampling={"steps": 10, "guidance_scale": 0.5},
            max_batch_size=8,
        ),
    ),
    edges=(
        EdgeSpec(from_="thinker", to="talker", streaming=StreamingSpec(chunk_frames=1)),
        # Its diffusion transformer hears the whole speech at once.
        EdgeSpec(from_="talker", to="code2wav"),
    ),
    sampling={},
    parameters={**TEXT_PARAMETERS, **VOICE_PARAMETERS},
    transforms=(),
    endpoints=THINKER_ENDPOINTS,
    payloads={"talker": PayloadSchema({"codes": ArrayEntry(INTEGERS, (1, "frames"))})},
    # Its diffusion transformer would wander off in fewer bits.
    number_formats={"code2wav": "float32"},
)
