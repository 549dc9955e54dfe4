"""Prompts as people write them in Python, as the payloads that a model's first stages read."""

from collections.abc import Callable, Mapping, Sequence
from enum import Enum
from typing import Any, TypeAlias

from omni_contract.api.nearest import did_you_mean
from omni_contract.wire.errors import ErrorCode, OmniError
from omni_contract.wire.payload import Payload, Value
from omni_contract.wire.stage_table import StageTable
from omni_runtime.frontend.voices import check_voice, voices_of
from omni_runtime.offline.media import audio_part, image_part, listed, video_part

Prompt: TypeAlias = str | Mapping[str, Any]
"""Text alone, or a map with what else there is to say; docs/offline.md has its keys."""

MODALITIES = "modalities"
SAMPLING = "sampling"
OF_ALL_PROMPTS = (MODALITIES, SAMPLING)
"""Keys that say nothing to the model."""
PARTS: Mapping[str, Callable[[Any, str], dict[str, Value]]] = {
    "audio": audio_part,
    "image": image_part,
    "video": video_part,
}
"""In the order in which media stand before the words of a prompt."""
CLONED = ("Base", "VoiceDesign")


class Reading(Enum):
    """What a model makes of a prompt: it answers, reads it out, or paints it. The value is the keys it may have."""

    ANSWER = ("prompt", "prompt_token_ids", "messages", "multi_modal_data", "mm_processor_kwargs", "tools")
    SPEAK = (
        *("prompt", "input", "voice", "instructions", "language"),
        *("task_type", "ref_audio", "ref_text", "x_vector_only_mode"),
    )
    PAINT = ("prompt", "negative_prompt")


def reading_of(modalities: Sequence[str], offered: Sequence[str]) -> Reading:
    """`modalities` are wanted of the `offered` ones; sound beside text is part of an answer."""
    if "text" in modalities or ("audio" in modalities and "text" in offered):
        return Reading.ANSWER
    return Reading.SPEAK if "audio" in modalities else Reading.PAINT


def keys_of(prompt: Prompt) -> Mapping[str, Any]:
    """Raises OmniError for what is no prompt."""
    if isinstance(prompt, str):
        return {"prompt": prompt}
    if isinstance(prompt, Mapping):
        return prompt
    raise _refused("prompt", f"a prompt is a text or a map, got {type(prompt).__name__}")


def sampling_of(keys: Mapping[str, Any]) -> Mapping[str, Any]:
    """What a prompt asks for itself alone. Raises OmniError if that is no map."""
    sampling = keys.get(SAMPLING) or {}
    if not isinstance(sampling, Mapping):
        raise _refused(SAMPLING, f"{SAMPLING} must be a map of parameters, got {type(sampling).__name__}")
    return sampling


def payload_of(keys: Mapping[str, Any], reading: Reading, table: StageTable) -> Payload:
    """Raises OmniError for a prompt that the model cannot read; `param` is the key at fault."""
    known = (*reading.value, *OF_ALL_PROMPTS)
    for key in keys:
        if key not in known:
            raise _refused(str(key), f'a prompt of this model has no key "{key}"{did_you_mean(str(key), known)}')
    match reading:
        case Reading.ANSWER:
            return _question(keys)
        case Reading.SPEAK:
            return _speech(keys, table)
        case Reading.PAINT:
            return {"prompt": _text(keys, "prompt"), "negative_prompt": keys.get("negative_prompt")}


def _question(keys: Mapping[str, Any]) -> Payload:
    given = [key for key in ("prompt", "prompt_token_ids", "messages") if key in keys]
    if len(given) != 1:
        text = f"a prompt has one of prompt, prompt_token_ids and messages, got {', '.join(given) or 'none of them'}"
        raise _refused("prompt", text)
    more = {key: keys[key] for key in ("mm_processor_kwargs", "tools") if keys.get(key)}
    media = _media(keys.get("multi_modal_data") or {})
    match given[0]:
        case "messages":
            if media:
                raise _refused("multi_modal_data", "the media of messages are parts of their content")
            return {"messages": [_message(one, at) for at, one in enumerate(keys["messages"])], **more}
        case "prompt_token_ids":
            if media:
                raise _refused("multi_modal_data", "media need a prompt as text or messages, not as tokens")
            return {"prompt_token_ids": [int(token) for token in keys["prompt_token_ids"]], **more}
    return {"prompt": _text(keys, "prompt"), **({"media": media} if media else {}), **more}


def _media(given: Any) -> list[Value]:
    if not isinstance(given, Mapping):
        raise _refused("multi_modal_data", "multi_modal_data must be a map of audio, image and video")
    for kind in given:
        if kind not in PARTS:
            raise _refused(f"multi_modal_data.{kind}", f'there is no modality "{kind}"{did_you_mean(str(kind), PARTS)}')
    return [
        PARTS[kind](medium, f"multi_modal_data.{kind}")
        for kind in PARTS
        if given.get(kind) is not None
        for medium in listed(given[kind])
    ]


def _message(message: Any, at: int) -> Value:
    where = f"messages[{at}]"
    if not isinstance(message, Mapping) or not isinstance(message.get("role"), str):
        raise _refused(where, f"{where}: a message is a map with a role")
    content = message.get("content") or []
    parts = [{"type": "text", "text": content}] if isinstance(content, str) else content
    return {**message, "content": [_part(part, f"{where}.content[{index}]") for index, part in enumerate(parts)]}


def _part(part: Any, where: str) -> Value:
    kind = part.get("type") if isinstance(part, Mapping) else None
    if kind == "text":
        return {"type": "text", "text": _text(part, "text")}
    if not isinstance(kind, str) or kind not in PARTS or kind not in part:
        raise _refused(where, f'{where}: a part is {{"type": T, T: …}} with T of text, {", ".join(PARTS)}')
    return PARTS[kind](part[kind], where)


def _speech(keys: Mapping[str, Any], table: StageTable) -> Payload:
    if ("input" in keys) == ("prompt" in keys):
        raise _refused("input", "say once what to read out, as input or as prompt")
    told = ("instructions", "language", "task_type", "ref_text", "x_vector_only_mode")
    payload: dict[str, Value] = {key: keys[key] for key in told if keys.get(key) is not None}
    payload["input"] = _text(keys, "input" if "input" in keys else "prompt")
    if keys.get("task_type") not in CLONED and keys.get("ref_audio") is None:
        voice = check_voice(table, keys.get("voice"), "voice") or next(iter(voices_of(table)), None)
        payload |= {} if voice is None else {"voice": voice}
    if keys.get("ref_audio") is not None:
        sound = audio_part(keys["ref_audio"], "ref_audio")
        payload |= {"ref_audio": sound["audio"], "ref_sample_rate": sound["sample_rate"]}
    return payload


def _text(keys: Mapping[str, Any], key: str) -> str:
    text = keys.get(key)
    if not isinstance(text, str) or not text.strip():
        raise _refused(key, f"{key} must be a text that says something, got {type(text).__name__}")
    return text


def _refused(param: str, text: str) -> OmniError:
    return OmniError(ErrorCode.INVALID_REQUEST, text, param)
