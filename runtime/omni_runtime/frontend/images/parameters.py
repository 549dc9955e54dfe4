"""Pure: what an images request asks of the stages, and whether it may."""

from omni_contract.api.v1alpha1 import FrontendLimits
from omni_contract.wire.errors import ErrorCode, OmniError
from omni_contract.wire.payload import Payload, Value
from omni_runtime.frontend.images.schema import MAX_SEED, ImageGenerationRequest

REQUEST_FIELDS = {"width": "size", "height": "size"}
"""Parameters of the stages whose field of the request has another name."""


def check_limits(body: ImageGenerationRequest, limits: FrontendLimits) -> None:
    """Raises for a request that is well formed and asks for more than this model's limits."""
    for field, prompt in (("prompt", body.prompt), ("negative_prompt", body.negative_prompt or "")):
        _check_most(field, len(prompt), limits.max_prompt_characters, "characters")
    if body.dimensions:
        width, height = body.dimensions
        _check_most("size", width * height, limits.max_image_pixels, "pixels")
    for field, steps in (("steps", body.steps), ("num_inference_steps", body.num_inference_steps)):
        _check_most(field, steps or 0, limits.max_steps, "steps")


def request_payload(body: ImageGenerationRequest) -> Payload:
    return {"prompt": body.prompt, "negative_prompt": body.negative_prompt}


def stage_parameters(body: ImageGenerationRequest, seed: int) -> dict[str, Value]:
    """Only what the client has set; the rest is the stage table's and the engine's default."""
    width, height = body.dimensions or (None, None)
    asked: dict[str, Value] = {
        "width": width,
        "height": height,
        "steps": body.steps or body.num_inference_steps,
        "guidance_scale": body.guidance_scale if body.guidance_scale is not None else body.true_cfg_scale,
    }
    return {**{name: value for name, value in asked.items() if value is not None}, "seed": seed}


def in_request_words(error: OmniError) -> OmniError:
    """A stage's refusal, naming the field that the client knows."""
    return OmniError(error.code, error.message, REQUEST_FIELDS.get(error.param or "", error.param))


def seeds_of(first: int, count: int) -> list[int]:
    """Image i of a request equals the only image of a request with this seed."""
    return [(first + index) % (MAX_SEED + 1) for index in range(count)]


def _check_most(field: str, value: int, most: int, unit: str) -> None:
    if value > most:
        text = f"{field}: {value} {unit} are more than this model's limit of {most}"
        raise OmniError(ErrorCode.INVALID_REQUEST, text, field)
