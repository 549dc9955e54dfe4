"""What a request may say about the making of its sound, checked before any work starts. Pure."""

from collections.abc import Mapping
from dataclasses import dataclass
from math import isfinite

from omni_contract.wire.errors import ErrorCode, OmniError
from omni_contract.wire.payload import Value

MAX_INTEGER = 2**63 - 1
MAX_STEPS = 1000


@dataclass(frozen=True)
class SpeechSettings:
    """`steps` are points in time, as transformers counts them; `voice` None is the checkpoint's first."""

    voice: str | None
    steps: int
    guidance_scale: float
    seed: int
    max_mel_frames: int | None


def parse_speech_settings(parameters: Mapping[str, Value]) -> SpeechSettings:
    """Raises OmniError naming the parameter, the value and what is allowed."""
    voice = parameters.get("voice")
    if voice is not None and not isinstance(voice, str):
        raise _refuse("voice", voice, "it must be a name")
    return SpeechSettings(
        voice=voice,
        steps=_integer(parameters, "steps", 10, 2, MAX_STEPS),
        guidance_scale=_scale(parameters.get("guidance_scale", 0.5)),
        seed=_integer(parameters, "seed", 0, 0, MAX_INTEGER),
        max_mel_frames=_integer(parameters, "max_mel_frames", 0, 0, MAX_INTEGER)
        if parameters.get("max_mel_frames") is not None
        else None,
    )


def _integer(parameters: Mapping[str, Value], name: str, default: int, least: int, most: int) -> int:
    value = parameters.get(name, default)
    if isinstance(value, int) and not isinstance(value, bool) and least <= value <= most:
        return value
    raise _refuse(name, value, f"it must be an integer from {least} to {most}")


def _scale(value: Value) -> float:
    if isinstance(value, bool) or not isinstance(value, int | float) or not isfinite(value) or value < 0:
        raise _refuse("guidance_scale", value, "it must be a number of at least 0")
    return float(value)


def _refuse(name: str, value: object, rule: str) -> OmniError:
    return OmniError(ErrorCode.INVALID_REQUEST, f'parameter "{name}" is {value!r}; {rule}', name)
