"""Pure: what a chat asks of the stages, and whether it may."""

from dataclasses import dataclass

from omni_contract.wire.errors import ErrorCode, OmniError
from omni_contract.wire.payload import Value
from omni_contract.wire.stage_table import StageTable
from omni_runtime.frontend.answers import stage_of
from omni_runtime.frontend.chat.schema import ChatCompletionRequest
from omni_runtime.frontend.text.by_stage import for_each_stage, for_stage
from omni_runtime.frontend.text.stage import text_stage
from omni_runtime.frontend.voices import check_voice
from omni_runtime.orchestrator.graph import output_modalities


@dataclass(frozen=True)
class Wanted:
    """What the answer shall hold."""

    text: bool
    audio: bool

    @property
    def modalities(self) -> tuple[str, ...]:
        """Text is made on the way to sound, so it is always read: it is the transcript."""
        return ("text", "audio") if self.audio else ("text",)


def wanted(body: ChatCompletionRequest, table: StageTable) -> Wanted:
    """Without `modalities`, all that the model makes. Raises OmniError for what it never makes."""
    if "image" in (body.modalities or ()):
        raise _no(table, "image", "modalities")
    speaks = stage_of(table, "audio") is not None
    asked = body.modalities or (("text", "audio") if speaks or body.audio is not None else ("text",))
    if "audio" in asked and not speaks:
        raise _no(table, "audio", "modalities" if body.modalities else "audio")
    return Wanted(text="text" in asked, audio="audio" in asked)


def check_limits(body: ChatCompletionRequest, table: StageTable) -> None:
    """Raises OmniError for a request that is well formed and longer than this model takes."""
    most = table.limits.max_prompt_characters
    length = sum(len(part.text or "") for message in body.messages for part in message.content or ())
    if length > most:
        text = f"messages: {length} characters are more than this model's limit of {most}"
        raise OmniError(ErrorCode.INVALID_REQUEST, text, "messages")


def stage_parameters(body: ChatCompletionRequest, table: StageTable) -> dict[str, Value]:
    """What a chat sets is for the text stage: the talker's own sampling is another matter, and has its own list."""
    of_text = dict(body.sampling())
    if body.logprobs:
        of_text["logprobs"] = body.top_logprobs or 0
    asked = for_stage(text_stage(table), of_text) | for_each_stage(table, body.sampling_params_list)
    if body.audio is not None and (voice := check_voice(table, body.audio.voice, "audio.voice")) is not None:
        asked["voice"] = voice
    return asked


def _no(table: StageTable, modality: str, param: str) -> OmniError:
    offered = " and ".join(output_modalities(table))
    text = f'{param}: model "{table.model}" makes no {modality}, only {offered}'
    return OmniError(ErrorCode.INVALID_REQUEST, text, param)
