"""Request parameters that families with speech have in common."""

from collections.abc import Mapping

from omni_contract.presets.preset import ParameterKind

TEXT_PARAMETERS: Mapping[str, ParameterKind] = {
    "temperature": "number",
    "top_p": "number",
    "top_k": "integer",
    "min_p": "number",
    "max_tokens": "integer",
    "min_tokens": "integer",
    "seed": "integer",
    "presence_penalty": "number",
    "frequency_penalty": "number",
    "repetition_penalty": "number",
}
VOICE_PARAMETERS: Mapping[str, ParameterKind] = {
    "voice": "text",
    "steps": "integer",
    "guidance_scale": "number",
    "max_mel_frames": "integer",
}
THINKER_ENDPOINTS = (
    "/v1/chat/completions",
    "/v1/completions",
    "/v1/audio/transcriptions",
    "/v1/audio/translations",
)
"""Of families whose thinker listens."""
