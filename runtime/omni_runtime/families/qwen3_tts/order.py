"""What a speech request asks of a Qwen3-TTS checkpoint, checked against what the checkpoint can do. Pure."""

from collections.abc import Mapping
from dataclasses import dataclass

from omni_contract.wire.errors import ErrorCode, OmniError
from omni_contract.wire.payload import Array, Payload, Value
from omni_runtime.families.qwen3_tts.configuration import Qwen3TTSConfig

CUSTOM_VOICE, VOICE_DESIGN, BASE = "CustomVoice", "VoiceDesign", "Base"
TASKS: Mapping[str, str] = {"custom_voice": CUSTOM_VOICE, "voice_design": VOICE_DESIGN, "base": BASE}
"""What a checkpoint of each type does."""
SMALL_SIZE = "0b6"
"""A custom voice of this size was not trained on instructions."""
AUTO = "auto"


@dataclass(frozen=True)
class Reference:
    """Somebody's speech. Without a text only the sound of the voice is taken from it."""

    sound: Array
    sample_rate: int
    text: str | None


@dataclass(frozen=True)
class Order:
    """`voice` and `language` are names of the checkpoint; a language of None is the model's choice."""

    text: str
    voice: str | None = None
    language: str | None = None
    instructions: str | None = None
    reference: Reference | None = None


def task_of(config: Qwen3TTSConfig) -> str:
    """The one task of the checkpoint; OmniError if it is of a type that nobody knows."""
    if (task := TASKS.get(config.tts_model_type or "")) is None:
        text = f'the checkpoint is of type "{config.tts_model_type}"; it must be one of {", ".join(TASKS)}'
        raise OmniError(ErrorCode.STAGE_FAILED, text)
    return task


def order_of(request: Payload, config: Qwen3TTSConfig) -> Order:
    """Raises OmniError naming the field that this checkpoint cannot follow."""
    task = task_of(config)
    if (asked := _text(request, "task_type") or CUSTOM_VOICE) != task:
        raise _refusal("task_type", f'this checkpoint does "{task}", not "{asked}"')
    text = _text(request, "input")
    if not text:
        raise _refusal("input", "there is nothing to say")
    voice = _voice(request, config) if task == CUSTOM_VOICE else None
    return Order(
        text=text,
        voice=voice,
        language=_language(request, config, voice),
        instructions=_instructions(request, config, task),
        reference=_reference(request) if task == BASE else None,
    )


def _voice(request: Payload, config: Qwen3TTSConfig) -> str:
    speakers = config.talker.speakers
    asked = _text(request, "voice")
    voice = next(iter(speakers), "") if asked is None else asked.lower()
    if voice not in speakers:
        raise _refusal("voice", f'there is no voice "{asked or voice}"; the voices are {", ".join(sorted(speakers))}')
    return voice


def _language(request: Payload, config: Qwen3TTSConfig, voice: str | None) -> str | None:
    """A voice with a dialect speaks it in place of Chinese, and where it may choose."""
    talker = config.talker
    language = (_text(request, "language") or AUTO).lower()
    if language != AUTO and language not in talker.languages:
        known = ", ".join(sorted((AUTO, *talker.languages)))
        raise _refusal("language", f'this checkpoint does not speak "{language}"; it speaks {known}')
    if voice is not None and language in (AUTO, "chinese") and (dialect := talker.dialect_of(voice)) is not None:
        return dialect
    return None if language == AUTO else language


def _instructions(request: Payload, config: Qwen3TTSConfig, task: str) -> str | None:
    instructions = _text(request, "instructions") or None
    if instructions is None:
        if task == VOICE_DESIGN:
            raise _refusal("instructions", "they say which voice is to be designed")
        return None
    if task == BASE:
        raise _refusal("instructions", "this checkpoint clones voices and takes no instructions")
    if task == CUSTOM_VOICE and config.tts_model_size == SMALL_SIZE:
        raise _refusal("instructions", f"a checkpoint of size {SMALL_SIZE} takes none")
    return instructions


def _reference(request: Payload) -> Reference:
    sound, sample_rate = request.get("ref_audio"), request.get("ref_sample_rate")
    if not isinstance(sound, Array) or sound.dtype != "float32" or len(sound.shape) != 1 or not sound.size_bytes:
        raise _refusal("ref_audio", "it must be the sound of the voice that is to be cloned")
    if not isinstance(sample_rate, int) or sample_rate <= 0:
        raise _refusal("ref_audio", f"its rate is {sample_rate!r}; it must be a number of samples in a second")
    if request.get("x_vector_only_mode"):
        return Reference(sound, sample_rate, None)
    if not (text := _text(request, "ref_text")):
        raise _refusal("ref_text", "say what is said in ref_audio, or set x_vector_only_mode")
    return Reference(sound, sample_rate, text)


def _text(request: Payload, name: str) -> str | None:
    value: Value = request.get(name)
    if value is not None and not isinstance(value, str):
        raise _refusal(name, f"it must be a text, not a {type(value).__name__}")
    return value


def _refusal(name: str, text: str) -> OmniError:
    return OmniError(ErrorCode.INVALID_REQUEST, f"{name}: {text}", name)
