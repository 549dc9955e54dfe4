"""A text-to-image request as the diffusion engine understands it, checked before any work starts."""

from collections.abc import Mapping
from dataclasses import dataclass
from math import isfinite

from omni_contract.wire.errors import ErrorCode, OmniError
from omni_contract.wire.names import FINAL
from omni_contract.wire.payload import Value
from omni_runtime.engines.protocol import StageRequest

MAX_INTEGER = 2**63 - 1


@dataclass(frozen=True)
class ImageLimits:
    """A family's bounds: width and height are multiples of `size_multiple`, prompts are cut at a number of tokens."""

    size_multiple: int
    default_sequence_length: int
    max_sequence_length: int


@dataclass(frozen=True)
class ImageRequest:
    """`prompt` is None at a stage that does not see the client's request."""

    prompt: str | None
    negative_prompt: str | None
    width: int
    height: int
    steps: int
    guidance_scale: float
    seed: int
    max_sequence_length: int


def parse_image_request(request: StageRequest, limits: ImageLimits) -> ImageRequest:
    """Raises OmniError naming the parameter, the value and what is allowed."""
    client = request.inputs.get(FINAL, {})
    parameters = {"max_sequence_length": limits.default_sequence_length, **request.parameters}
    return ImageRequest(
        prompt=_text(client, "prompt"),
        negative_prompt=_text(client, "negative_prompt"),
        width=_side(parameters, "width", limits.size_multiple),
        height=_side(parameters, "height", limits.size_multiple),
        steps=_integer(parameters, "steps", 1),
        guidance_scale=_number(parameters, "guidance_scale"),
        seed=_integer(parameters, "seed", 0),
        max_sequence_length=_integer(parameters, "max_sequence_length", 1, limits.max_sequence_length),
    )


def _refuse(name: str, value: object, rule: str) -> OmniError:
    return OmniError(ErrorCode.INVALID_REQUEST, f'parameter "{name}" is {value!r}; {rule}', name)


def _text(client: Mapping[str, Value], name: str) -> str | None:
    value = client.get(name)
    if value is None or isinstance(value, str):
        return value
    raise _refuse(name, value, "it must be a text")


def _integer(parameters: Mapping[str, Value], name: str, least: int, most: int = MAX_INTEGER) -> int:
    value = parameters.get(name)
    if isinstance(value, int) and not isinstance(value, bool) and least <= value <= most:
        return value
    raise _refuse(name, value, f"it must be an integer from {least} to {most}")


def _side(parameters: Mapping[str, Value], name: str, multiple: int) -> int:
    value = _integer(parameters, name, multiple)
    if value % multiple:
        nearest = max(multiple, round(value / multiple) * multiple)
        raise _refuse(name, value, f"it must be a multiple of {multiple}, for example {nearest}")
    return value


def _number(parameters: Mapping[str, Value], name: str) -> float:
    value = parameters.get(name)
    if isinstance(value, bool) or not isinstance(value, int | float) or not isfinite(value) or value < 0:
        raise _refuse(name, value, "it must be a number of at least 0")
    return float(value)
