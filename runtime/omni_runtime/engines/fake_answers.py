"""What the fake engine answers with: pictures, words and sound that follow from the request alone."""

import hashlib
import math
import zlib
from array import array
from collections.abc import Iterator, Mapping, Sequence

from omni_contract.wire.errors import ErrorCode, OmniError
from omni_contract.wire.payload import Array, Payload, Value

DEFAULT_IMAGE_SIDE = 64
SAMPLE_RATE = 24_000
SAMPLES_PER_ITEM = 480
TONE_HZ = 440
LOUDNESS = 16_384
"""Of 32,768, so that every sample is a whole number of 16 bits and survives a lossless file unchanged."""
VOCABULARY = 50_000


def fake_image(parameters: Mapping[str, Value]) -> Array:
    """An image of one color, which the seed decides."""
    width, height = _side(parameters, "width"), _side(parameters, "height")
    color = hashlib.sha256(str(parameters.get("seed", 0)).encode()).digest()[:3]
    return Array("uint8", (height, width, 3), memoryview(color * (width * height)))


def fake_sound(first: int, items: int = 1) -> Payload:
    """That many items of one tone from item `first` on; what is made item by item joins without a seam."""
    numbers = range(first * SAMPLES_PER_ITEM, (first + items) * SAMPLES_PER_ITEM)
    samples = array("f", (round(LOUDNESS * math.sin(math.tau * TONE_HZ * n / SAMPLE_RATE)) / 32_768 for n in numbers))
    return {"audio": Array("float32", (len(samples),), memoryview(samples).cast("B")), "sample_rate": SAMPLE_RATE}


def fake_text(request: Payload, parameters: Mapping[str, Value], steps: int) -> list[Payload]:
    """The words of the request's end over and over, beginning at the seed-th: a token in each step, and why it ends."""
    words = words_of(request)
    start = parameters.get("seed", 0)
    assert isinstance(start, int)
    tokens = [f"{words[(start + step) % len(words)]} " for step in range(steps)]
    spoken, stop = _until_stop(tokens, parameters.get("stop") or [])
    items: list[dict[str, Value]] = [{"text": token, "token_ids": [token_id(token)]} for token in spoken]
    wanted = parameters.get("logprobs")
    if isinstance(wanted, int):
        for item, token in zip(items, tokens, strict=False):
            item["logprobs"] = [_logprob(token, words, wanted)]
    was_cut = stop is None and parameters.get("max_tokens") == steps
    items[-1]["finish_reason"] = "length" if was_cut else "stop"
    if stop is not None:
        items[-1]["stop_reason"] = stop
    items[0]["prompt_tokens"] = len(words)
    return list(items)


def words_of(request: Payload) -> list[str]:
    """What the request says, a token each."""
    return list(_words(request)) or ["nothing"]


def whole_text(items: Sequence[Payload]) -> Payload:
    """The items of a text as one payload."""
    joined: dict[str, Value] = {}
    for item in items:
        joined |= item
    joined["text"] = "".join(str(item["text"]) for item in items)
    for key in ("token_ids", "logprobs"):
        if key in joined:
            joined[key] = [value for item in items for value in _list(item.get(key))]
    return joined


def token_id(token: str) -> int:
    return zlib.crc32(token.encode()) % VOCABULARY


def _words(request: Payload) -> Iterator[str]:
    """What the last message says, the prompt or the text to speak; media stand as what they are and how large."""
    messages = _list(request.get("messages"))
    last = messages[-1] if messages else None
    if isinstance(last, Mapping):
        for part in _list(last.get("content")):
            if isinstance(part, Mapping):
                yield from _words_of_part(part)
        return
    text = request.get("prompt") or request.get("input") or " ".join(map(str, _list(request.get("prompt_token_ids"))))
    yield from str(text).split()


def _words_of_part(part: Mapping[str, Value]) -> Iterator[str]:
    text = part.get("text")
    if isinstance(text, str):
        yield from text.split()
    for key in ("image", "audio", "frames"):
        value = part.get(key)
        if isinstance(value, Array):
            digest = hashlib.sha256(value.data).hexdigest()[:8]
            yield f"{key}:{'x'.join(map(str, value.shape))}:{digest}"
    for key in ("sample_rate", "fps"):
        if isinstance(value := part.get(key), int | float):
            yield f"{key}={value:g}"


def _until_stop(tokens: list[str], stops: Value) -> tuple[list[str], str | None]:
    """The tokens up to the first stop string, which is left out, and that string."""
    text = "".join(tokens)
    found = [(text.find(str(stop)), str(stop)) for stop in _list(stops) if str(stop) in text]
    if not found:
        return tokens, None
    at, stop = min(found)
    spoken: list[str] = []
    for token in tokens:
        spoken.append(token[:at])
        at -= len(token)
        if at < 0:
            break
    return spoken, stop


def _logprob(token: str, words: Sequence[str], most: int) -> Value:
    others = [f"{word} " for word in dict.fromkeys(words) if f"{word} " != token]
    ranked = [token, *others][:most]
    return {**_ranked(token, 0), "top": [_ranked(other, rank) for rank, other in enumerate(ranked)]}


def _ranked(token: str, rank: int) -> dict[str, Value]:
    return {"token": token, "token_id": token_id(token), "logprob": -0.25 - rank, "bytes": list(token.encode())}


def _list(value: Value) -> Sequence[Value]:
    return value if isinstance(value, list | tuple) else []


def _side(parameters: Mapping[str, Value], name: str) -> int:
    side = parameters.get(name, DEFAULT_IMAGE_SIDE)
    if not isinstance(side, int) or side < 1:
        raise OmniError(ErrorCode.INVALID_REQUEST, f"{name} must be a positive whole number, got {side!r}", param=name)
    return side
