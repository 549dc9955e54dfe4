"""Voices: how a request names one, and which of them a model has."""

from typing import Annotated, Any, TypeAlias

from pydantic import BaseModel, BeforeValidator, Field

from omni_contract.wire.errors import ErrorCode, OmniError
from omni_contract.wire.stage_table import StageTable
from omni_runtime.frontend.validation import LONGEST_VALUE, shortened

LONGEST_NAME = 128


class VoiceId(BaseModel):
    """A voice as the SDK names one of the user's own."""

    id: Annotated[str, Field(min_length=1, max_length=LONGEST_NAME)]


def _name(voice: Any) -> Any:
    return voice["id"] if isinstance(voice, dict) and set(voice) == {"id"} else voice


VoiceName: TypeAlias = Annotated[str, Field(min_length=1, max_length=LONGEST_NAME)]
Voice: TypeAlias = Annotated[VoiceName, BeforeValidator(_name, json_schema_input_type=VoiceName | VoiceId)]


def voices_of(table: StageTable) -> tuple[str, ...]:
    """The names that the model's talking stage knows; empty if it does not say."""
    return next((stage.output.voices for stage in table.stages if stage.output and stage.output.voices), ())


def check_voice(table: StageTable, voice: str | None, param: str) -> str | None:
    """The voice as the model writes it. Raises OmniError for one that it does not have."""
    known = {name.lower(): name for name in voices_of(table)}
    if voice is None or not known:
        return voice
    if voice.lower() not in known:
        text = f'{param}: there is no voice "{shortened(voice, LONGEST_VALUE)}"; use {", ".join(known.values())}'
        raise OmniError(ErrorCode.INVALID_REQUEST, text, param)
    return known[voice.lower()]
