"""What a speech request asks of the stages, and whether it may."""

from omni_contract.wire.errors import ErrorCode, OmniError
from omni_contract.wire.payload import Value
from omni_contract.wire.stage_table import StageTable
from omni_runtime.frontend.answers import stage_of
from omni_runtime.frontend.media.loader import MediaLoader
from omni_runtime.frontend.speech.schema import SpeechRequest
from omni_runtime.frontend.text.by_stage import for_each_stage, for_stage
from omni_runtime.frontend.voices import check_voice, voices_of
from omni_runtime.media.audio import AudioFile
from omni_runtime.orchestrator.graph import output_modalities

STAGE_FIELDS = {"max_tokens": "max_new_tokens", "ref_sample_rate": "ref_audio"}
"""Words of the stages for what a field of the request has another name for."""


def check_speaks(table: StageTable) -> None:
    """Raises OmniError for a model that does not read texts out."""
    if stage_of(table, "audio") is None:
        offered = ", ".join(output_modalities(table))
        raise OmniError(ErrorCode.INVALID_REQUEST, f'model "{table.model}" does not speak; it makes {offered}', "model")
    if stage_of(table, "text") is not None:
        text = f'model "{table.model}" answers instead of reading out; use /v1/chat/completions with modalities'
        raise OmniError(ErrorCode.INVALID_REQUEST, text, "model")


def check_limits(body: SpeechRequest, table: StageTable) -> None:
    """Raises OmniError for a text that is longer than this model takes."""
    for field, text in (("input", body.input), ("ref_text", body.ref_text or "")):
        if len(text) > (most := table.limits.max_prompt_characters):
            message = f"{field}: {len(text)} characters are more than this model's limit of {most}"
            raise OmniError(ErrorCode.INVALID_REQUEST, message, field)


async def speech_payload(body: SpeechRequest, table: StageTable, media: MediaLoader) -> dict[str, Value]:
    """Raises OmniError for a voice that the model does not have, or a reference that cannot be read."""
    payload: dict[str, Value] = {
        "input": body.input,
        "voice": _voice(body, table),
        "instructions": body.instructions or None,
        "language": body.language,
        "task_type": body.task,
        "ref_text": body.ref_text,
        "x_vector_only_mode": body.x_vector_only_mode,
    }
    if body.ref_audio is not None:
        sound = await media.audio(body.ref_audio, "ref_audio")
        payload |= {"ref_audio": sound.samples, "ref_sample_rate": sound.sample_rate}
    return {name: value for name, value in payload.items() if value is not None}


def stage_parameters(body: SpeechRequest, table: StageTable, seed: int) -> dict[str, Value]:
    """The most frames are for the stage that makes them, which reads the request: the first one."""
    asked: dict[str, Value] = {"seed": seed}
    if body.max_new_tokens is not None:
        asked |= for_stage(table.stages[0].name, {"max_tokens": body.max_new_tokens})
    return asked | for_each_stage(table, body.sampling_params_list)


def audio_file(body: SpeechRequest) -> AudioFile:
    return AudioFile(
        format=body.response_format or "mp3",
        is_streamed=body.wants_events or body.stream is not False,
        speed=1.0 if body.speed is None else body.speed,
    )


def in_request_words(error: OmniError) -> OmniError:
    """A stage's refusal, naming the field that the client knows."""
    return OmniError(error.code, error.message, STAGE_FIELDS.get(error.param or "", error.param))


def _voice(body: SpeechRequest, table: StageTable) -> str | None:
    """Voices that are cloned or designed have no name, though clients must send one."""
    if body.task != "CustomVoice":
        return None
    return check_voice(table, body.voice, "voice") or next(iter(voices_of(table)), None)
