"""Qwen3-Omni: text, pictures, sound and video to text and speech, over a thinker, a talker and a codec."""

from omni_contract.api.v1alpha1 import ArEngine, EdgeSpec, GenerationEngine, OutputSpec, StageSpec, StreamingSpec
from omni_contract.presets.payloads import INTEGERS, ArrayEntry, PayloadSchema
from omni_contract.presets.preset import Preset
from omni_contract.presets.speech import TEXT_PARAMETERS, THINKER_ENDPOINTS

QWEN3_OMNI = Preset(
    family="qwen3-omni",
    modality="audio",
    stages=(
        StageSpec(
            name="thinker",
            ar=ArEngine(part="thinker"),
            output=OutputSpec(modality="text"),
            sampling={"temperature": 0.4, "top_p": 0.9, "top_k": 1, "max_tokens": 2048, "repetition_penalty": 1.05},
        ),
        StageSpec(
            name="talker",
            ar=ArEngine(part="talker"),
            sampling={"temperature": 0.9, "top_p": 1.0, "top_k": 50, "max_tokens": 4096, "repetition_penalty": 1.05},
        ),
        StageSpec(
            name="code2wav",
            generation=GenerationEngine(),
            output=OutputSpec(modality="audio", voices=("Ethan", "Chelsie", "Aiden")),
            max_batch_size=16,
        ),
    ),
    edges=(
        EdgeSpec(from_="thinker", to="talker", streaming=StreamingSpec(chunk_frames=1)),
        EdgeSpec(from_="talker", to="code2wav", streaming=StreamingSpec(chunk_frames=25, initial_chunk_frames=4)),
    ),
    sampling={},
    parameters={**TEXT_PARAMETERS, "voice": "text"},
    transforms=(),
    endpoints=THINKER_ENDPOINTS,
    payloads={"talker": PayloadSchema({"codes": ArrayEntry(INTEGERS, ("groups", "frames"))})},
)
