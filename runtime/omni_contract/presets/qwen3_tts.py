"""Qwen3-TTS: text to speech in voices of its own, over a talker with a code predictor and a 12 Hz codec."""

from omni_contract.api.v1alpha1 import ArEngine, EdgeSpec, GenerationEngine, OutputSpec, StageSpec, StreamingSpec
from omni_contract.presets.payloads import INTEGERS, ArrayEntry, PayloadSchema, ValueEntry
from omni_contract.presets.preset import Preset
from omni_contract.presets.speech import TEXT_PARAMETERS

READ = ("temperature", "top_p", "top_k", "max_tokens", "min_tokens", "seed", "repetition_penalty")
VOICES = ("vivian", "aiden", "dylan", "eric", "ono_anna", "ryan", "serena", "sohee", "uncle_fu")
"""Of the published CustomVoice checkpoints; the first one speaks where a request names none."""

QWEN3_TTS = Preset(
    family="qwen3-tts",
    modality="audio",
    stages=(
        # What it samples with is in the checkpoint's generation_config.json, unless the file says otherwise.
        StageSpec(name="talker", ar=ArEngine(part="talker", backend="transformers")),
        StageSpec(
            name="code2wav",
            generation=GenerationEngine(),
            output=OutputSpec(modality="audio", voices=VOICES),
            max_batch_size=8,
        ),
    ),
    edges=(EdgeSpec(from_="talker", to="code2wav", streaming=StreamingSpec(chunk_frames=25, initial_chunk_frames=4)),),
    sampling={},
    parameters={
        **{name: TEXT_PARAMETERS[name] for name in READ},
        "subtalker_temperature": "number",
        "subtalker_top_k": "integer",
        "subtalker_top_p": "number",
    },
    transforms=(),
    endpoints=("/v1/audio/speech", "/v1/audio/voices"),
    payloads={
        "talker": PayloadSchema(
            {
                "codes": ArrayEntry(INTEGERS, ("groups", "frames")),
                "lead_in": ValueEntry("integer", is_optional=True),
            }
        )
    },
)
