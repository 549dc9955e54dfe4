"""POST /v1/images/generations on the wire: the official SDK's fields, and ours."""

import re
from collections.abc import Mapping
from typing import Annotated, ClassVar, Literal, TypeAlias

from pydantic import BaseModel, Field, field_validator, model_validator

from omni_runtime.frontend.validation import ApiRequest, refusal

Quality: TypeAlias = Literal["low", "medium", "high", "xhigh", "max", "auto", "standard", "hd"]
OutputFormat: TypeAlias = Literal["png", "jpeg", "webp"]

SIZE = re.compile(r"([1-9][0-9]{0,5})x([1-9][0-9]{0,5})")
GIF_ONLY = "it needs output_format gif, and images here are png, jpeg or webp"
MAX_SEED = 2**63 - 1


class ImageGenerationRequest(ApiRequest):
    """`quality`, `style`, `moderation`, `complexity` and identifiers of the user are accepted, without effect."""

    REFUSED: ClassVar[Mapping[str, str]] = {
        "frame_count": GIF_ONLY,
        "frame_duration_ms": GIF_ONLY,
        "svg": "images here are png, jpeg or webp",
    }

    prompt: Annotated[str, Field(min_length=1)]
    model: str | None = None
    n: Annotated[int, Field(ge=1, le=10)] | None = None
    size: str | None = Field(None, description='"WIDTHxHEIGHT" in pixels, or "auto" for the model\'s default.')
    response_format: Literal["b64_json", "url"] | None = None
    output_format: Literal["png", "jpeg", "jpg", "webp"] | None = None
    output_compression: Annotated[int, Field(ge=0, le=100)] | None = None
    background: Literal["transparent", "opaque", "auto"] | None = None
    quality: Quality | None = None
    style: Literal["vivid", "natural"] | None = None
    moderation: Literal["low", "auto"] | None = None
    complexity: Literal["low", "medium", "high"] | None = None
    stream: bool | None = None
    partial_images: Annotated[int, Field(ge=0, le=3)] | None = None
    user: str | None = None
    safety_identifier: str | None = None

    negative_prompt: str | None = None
    seed: Annotated[int, Field(ge=0, le=MAX_SEED)] | None = Field(
        None, description="Image i equals the only image of a request with seed + i. Drawn if absent."
    )
    num_inference_steps: Annotated[int, Field(ge=1)] | None = None
    steps: Annotated[int, Field(ge=1)] | None = Field(None, description="The same as num_inference_steps.")
    guidance_scale: Annotated[float, Field(ge=0, le=100, allow_inf_nan=False)] | None = None
    true_cfg_scale: Annotated[float, Field(ge=0, le=100, allow_inf_nan=False)] | None = Field(
        None, description="The same as guidance_scale, by the name that diffusers uses."
    )
    priority: Annotated[int, Field(ge=-1000, le=1000)] | None = Field(
        None, description="Orders the waiting requests of one API key, the least first; others' are not affected."
    )

    @field_validator("prompt")
    @classmethod
    def _prompt_says_something(cls, prompt: str) -> str:
        if not prompt.strip():
            raise refusal("prompt", "prompt: it holds nothing but white space")
        return prompt

    @field_validator("size")
    @classmethod
    def _size_is_readable(cls, size: str | None) -> str | None:
        if size not in (None, "auto") and not SIZE.fullmatch(size):
            raise refusal("size", f'size: write "WIDTHxHEIGHT" in pixels, or "auto", got "{size[:20]}"')
        return size

    @field_validator("response_format")
    @classmethod
    def _answer_is_inline(cls, response_format: str | None) -> str | None:
        if response_format == "url":
            raise refusal(
                "response_format", 'response_format: "url" needs storage, which is not set up; use "b64_json"'
            )
        return response_format

    @field_validator("background")
    @classmethod
    def _background_is_opaque(cls, background: str | None) -> str | None:
        if background == "transparent":
            raise refusal("background", 'background: this model makes opaque images only; use "opaque" or "auto"')
        return background

    @field_validator("partial_images")
    @classmethod
    def _no_previews(cls, partial_images: int | None) -> int | None:
        if partial_images:
            raise refusal("partial_images", "partial_images: this model sends no previews; use 0")
        return partial_images

    @model_validator(mode="after")
    def _fields_agree(self) -> "ImageGenerationRequest":
        if None not in (self.steps, self.num_inference_steps) and self.steps != self.num_inference_steps:
            raise refusal("steps", "steps and num_inference_steps are the same setting; send one of them")
        if None not in (self.guidance_scale, self.true_cfg_scale) and self.guidance_scale != self.true_cfg_scale:
            raise refusal("true_cfg_scale", "true_cfg_scale and guidance_scale are the same setting; send one of them")
        if self.output_compression not in (None, 100) and self.file_format == "png":
            raise refusal("output_compression", "output_compression: png loses nothing; use output_format jpeg or webp")
        return self

    @property
    def dimensions(self) -> tuple[int, int] | None:
        """Width and height, None for the model's default."""
        match = SIZE.fullmatch(self.size or "")
        return (int(match[1]), int(match[2])) if match else None

    @property
    def file_format(self) -> OutputFormat:
        return "jpeg" if self.output_format == "jpg" else self.output_format or "png"


class InputTokens(BaseModel):
    text_tokens: int
    image_tokens: int = 0


class OutputTokens(BaseModel):
    image_tokens: int
    text_tokens: int = 0


class ImageUsage(BaseModel):
    input_tokens: int
    input_tokens_details: InputTokens
    output_tokens: int
    output_tokens_details: OutputTokens
    total_tokens: int


class ImageItem(BaseModel):
    """`seed` is ours: a request with it and n = 1 gives this image again."""

    b64_json: str
    url: None = None
    revised_prompt: None = None
    seed: int


class ImagesResponse(BaseModel):
    created: int
    data: list[ImageItem]
    background: Literal["opaque"] = "opaque"
    output_format: OutputFormat
    quality: Literal["low", "medium", "high", "xhigh", "max"] | None = None
    size: str
    safety_identifier: str | None = None
    usage: ImageUsage


class ImageCompletedEvent(BaseModel):
    """One for each image of a streamed answer."""

    type: Literal["image_generation.completed"] = "image_generation.completed"
    b64_json: str
    created_at: int
    background: Literal["opaque"] = "opaque"
    output_format: OutputFormat
    quality: Literal["low", "medium", "high", "xhigh", "max", "auto"]
    size: str
    safety_identifier: str | None = None
    seed: int
    usage: ImageUsage
