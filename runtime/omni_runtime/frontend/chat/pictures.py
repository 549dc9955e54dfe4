"""Chats with a model that paints: the last message's text becomes pictures in the answer's content."""

import secrets
import time
from collections.abc import Mapping, Sequence

from omni_contract.wire.errors import ErrorCode, OmniError
from omni_contract.wire.stage_table import StageTable
from omni_runtime.frontend.answers import stage_of
from omni_runtime.frontend.chat.answer import AssistantMessage, ChatCompletion, Choice, ImageContent, ImageUrl
from omni_runtime.frontend.chat.schema import PICTURE_FIELDS, ChatCompletionRequest
from omni_runtime.frontend.images.schema import ImageGenerationRequest
from omni_runtime.frontend.images.service import ImageService, MadeImage, total
from omni_runtime.frontend.models.service import check_served
from omni_runtime.frontend.request_scope import RequestContext
from omni_runtime.frontend.text.usage import CompletionUsage

MOST_PICTURES = 10
NOT_FOR_PAINTERS = (
    "audio",
    "max_completion_tokens",
    "tools",
    "logprobs",
    "sampling_params_list",
    "mm_processor_kwargs",
)
CHAT_FIELDS = {"prompt": "messages", "size": "width", "steps": "num_inference_steps"}
"""Words of the images endpoint for what a field of a chat has another name for."""


def paints(table: StageTable) -> bool:
    return stage_of(table, "image") is not None and stage_of(table, "text") is None


def check_no_picture_fields(body: ChatCompletionRequest) -> None:
    """Raises OmniError for what only a model that paints can make use of."""
    for name in PICTURE_FIELDS:
        if getattr(body, name) is not None:
            raise _refusal(name, "only models that paint make use of it, and this one does not")


class PictureChatService:
    def __init__(self, images: ImageService) -> None:
        self._images = images

    async def answer(
        self, body: ChatCompletionRequest, table: StageTable, context: RequestContext
    ) -> tuple[ChatCompletion, Mapping[str, str]]:
        """The whole answer, and the replica of each stage that made the first picture."""
        model = check_served(table, body.model)
        request = image_request(body)
        try:
            made = await self._images.make_all(request, context)
        except OmniError as error:
            raise OmniError(error.code, error.message, CHAT_FIELDS.get(error.param or "", error.param)) from error
        each = body.num_outputs_per_prompt or 1
        usage = total([image.usage for image in made])
        answer = ChatCompletion(
            id=f"chatcmpl-{secrets.token_hex(8)}",
            created=int(time.time()),
            model=model,
            choices=[_choice(number, made[number * each : (number + 1) * each]) for number in range(body.n or 1)],
            usage=CompletionUsage.of(usage.input_tokens, image_tokens=usage.output_tokens),
            system_fingerprint=table.revision,
            seed=made[0].seed,
        )
        return answer, made[0].replicas


def image_request(body: ChatCompletionRequest) -> ImageGenerationRequest:
    """The same as a request for images. Raises OmniError for what a chat may ask, but not of a model that paints."""
    _check_paintable(body)
    return ImageGenerationRequest(
        prompt=_prompt(body),
        n=(body.n or 1) * (body.num_outputs_per_prompt or 1),
        size=None if body.width is None else f"{body.width}x{body.height}",
        seed=body.seed,
        num_inference_steps=body.num_inference_steps,
        guidance_scale=body.guidance_scale,
        true_cfg_scale=body.true_cfg_scale,
        negative_prompt=body.negative_prompt,
        priority=body.priority,
    )


def _check_paintable(body: ChatCompletionRequest) -> None:
    if set(body.modalities or ["image"]) != {"image"}:
        raise _refusal("modalities", 'this model answers with pictures: leave it out or send ["image"]')
    if body.stream:
        raise _refusal("stream", "pictures come whole; leave it out, or use /v1/images/generations")
    for name in (*NOT_FOR_PAINTERS, *body.sampling()):
        value = getattr(body, name)
        if value is not None and value is not False:
            raise _refusal(name, "a model that paints makes no use of it")
    if (body.width is None) != (body.height is None):
        missing = "width" if body.width is None else "height"
        raise _refusal(missing, "width and height come together")
    if (body.n or 1) * (body.num_outputs_per_prompt or 1) > MOST_PICTURES:
        raise _refusal("num_outputs_per_prompt", f"an answer has at most {MOST_PICTURES} pictures")
    if None not in (body.guidance_scale, body.true_cfg_scale) and body.guidance_scale != body.true_cfg_scale:
        raise _refusal("true_cfg_scale", "it is the same setting as guidance_scale; send one of them")


def _prompt(body: ChatCompletionRequest) -> str:
    last = len(body.messages) - 1
    parts = body.messages[last].content or []
    for place, part in enumerate(parts):
        if part.type != "text":
            raise _refusal(f"messages[{last}].content[{place}]", "this model paints from words alone")
    prompt = "\n".join(part.text or "" for part in parts)
    if not prompt.strip():
        raise _refusal("messages", "the last message says what to paint, and it holds no text")
    return prompt


def _choice(number: int, images: Sequence[MadeImage]) -> Choice:
    urls = [ImageUrl(url=f"data:image/png;base64,{image.base64}") for image in images]
    message = AssistantMessage(content=[ImageContent(image_url=url) for url in urls])
    return Choice(index=number, message=message, finish_reason="stop")


def _refusal(param: str, text: str) -> OmniError:
    return OmniError(ErrorCode.INVALID_REQUEST, f"{param}: {text}", param)
