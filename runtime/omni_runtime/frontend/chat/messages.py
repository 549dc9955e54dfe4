"""What a chat says, as the text stage reads it: every part decoded, content always a list of parts."""

from collections.abc import Mapping, Sequence

from omni_contract.wire.payload import Value
from omni_runtime.frontend.chat.schema import ChatCompletionRequest, ContentPart, Message
from omni_runtime.frontend.media.loader import MediaLoader
from omni_runtime.media.values import Clip, Sound
from omni_runtime.together import together


async def chat_payload(body: ChatCompletionRequest, media: MediaLoader) -> dict[str, Value]:
    """Raises OmniError for media that cannot be fetched or read; all of it is fetched at once."""
    payload: dict[str, Value] = {"messages": await _messages(body.messages, media)}
    if body.tools and body.tool_choice != "none":
        payload["tools"] = [tool.model_dump(exclude_none=True) for tool in body.tools]
    if body.mm_processor_kwargs:
        payload["mm_processor_kwargs"] = dict(body.mm_processor_kwargs)
    return payload


async def _messages(messages: Sequence[Message], media: MediaLoader) -> list[Value]:
    contents = await together(_content(message, f"messages[{at}]", media) for at, message in enumerate(messages))
    return [{**_head(message), "content": content} for message, content in zip(messages, contents, strict=True)]


async def _content(message: Message, where: str, media: MediaLoader) -> list[Value]:
    parts = enumerate(message.content or ())
    return list(await together(_part(part, f"{where}.content[{at}]", media) for at, part in parts))


def _head(message: Message) -> Mapping[str, Value]:
    """All of a message but its content; templates know no developers."""
    head = message.model_dump(exclude={"content"}, exclude_none=True)
    return {**head, "role": "system" if message.role == "developer" else message.role}


async def _part(part: ContentPart, where: str, media: MediaLoader) -> Value:
    """A part's own field is set: the schema has seen to that."""
    if part.image_url:
        return {"type": "image", "image": await media.image(part.image_url.url, f"{where}.image_url")}
    if part.video_url:
        return _video(await media.video(part.video_url.url, f"{where}.video_url"))
    if part.input_audio:
        url = f"data:audio/{part.input_audio.format};base64,{part.input_audio.data}"
        return _audio(await media.audio(url, f"{where}.input_audio"))
    if part.audio_url:
        return _audio(await media.audio(part.audio_url.url, f"{where}.audio_url"))
    return {"type": "text", "text": part.text or ""}


def _audio(sound: Sound) -> Value:
    return {"type": "audio", "audio": sound.samples, "sample_rate": sound.sample_rate}


def _video(clip: Clip) -> Value:
    video: dict[str, Value] = {"type": "video", "frames": clip.frames, "fps": clip.fps}
    if clip.sound is not None:
        video |= {"audio": clip.sound.samples, "sample_rate": clip.sound.sample_rate}
    return video
