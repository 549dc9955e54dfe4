"""Makes images: one session for each, all admitted together, encoded as they come."""

import asyncio
import base64
import secrets
import time
from collections.abc import AsyncIterator, Iterable, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass

from omni_contract.wire.errors import ErrorCode, OmniError
from omni_contract.wire.payload import Array
from omni_runtime.frontend.images.parameters import (
    check_limits,
    in_request_words,
    request_payload,
    seeds_of,
    stage_parameters,
)
from omni_runtime.frontend.images.schema import (
    ImageCompletedEvent,
    ImageGenerationRequest,
    ImageItem,
    ImagesResponse,
    ImageUsage,
    InputTokens,
    OutputTokens,
    Quality,
)
from omni_runtime.frontend.inquiry import Inquiry
from omni_runtime.frontend.models.service import check_served
from omni_runtime.frontend.request_scope import RequestContext
from omni_runtime.media.image import ImageEncoder, ImageFile
from omni_runtime.orchestrator import Orchestrator, Session, StageUsage, collect
from omni_runtime.orchestrator.request import SharedPayload

DRAWN_SEEDS = 2**32
QUALITIES: Mapping[Quality | None, Quality] = {"standard": "medium", "hd": "high", None: "auto"}
"""Names of retired models, in the words that the SDK's answer types know."""


@dataclass(frozen=True)
class MadeImage:
    base64: str
    width: int
    height: int
    seed: int
    usage: ImageUsage
    replicas: Mapping[str, str]

    @property
    def size(self) -> str:
        return f"{self.width}x{self.height}"


class ImageService:
    def __init__(self, orchestrator: Orchestrator, encoder: ImageEncoder) -> None:
        self._orchestrator = orchestrator
        self._encoder = encoder

    @asynccontextmanager
    async def making(
        self, body: ImageGenerationRequest, context: RequestContext
    ) -> AsyncIterator[Sequence[asyncio.Task[MadeImage]]]:
        """One running task for each image; those not done when the block ends are cancelled on every stage."""
        sessions = self._submit(body, context)
        file = ImageFile(body.file_format, 100 if body.output_compression is None else body.output_compression)
        tasks = [asyncio.create_task(self._make(session, file)) for session in sessions]
        try:
            yield tasks
        finally:
            for task, session in zip(tasks, sessions, strict=True):
                task.cancel()
                # A task that was cancelled before its first step has not entered its session.
                session.abort()
            await asyncio.gather(*tasks, return_exceptions=True)

    async def make_all(self, body: ImageGenerationRequest, context: RequestContext) -> list[MadeImage]:
        """Fails as soon as one of them fails."""
        async with self.making(body, context) as tasks:
            done, _ = await asyncio.wait(tasks, return_when=asyncio.FIRST_EXCEPTION)
            for task in done:
                task.result()
            return [task.result() for task in tasks]

    def _submit(self, body: ImageGenerationRequest, context: RequestContext) -> list[Session]:
        table = self._orchestrator.table
        check_served(table, body.model)
        check_limits(body, table.limits)
        first = body.seed if body.seed is not None else secrets.randbelow(DRAWN_SEEDS)
        inquiry, payload = Inquiry(context, ("image",), body.priority), SharedPayload(request_payload(body))
        seeds = enumerate(seeds_of(first, body.n or 1))
        return self._orchestrator.submit_all(
            [inquiry.session(number, payload, stage_parameters(body, seed)) for number, seed in seeds]
        )

    async def _make(self, session: Session, file: ImageFile) -> MadeImage:
        try:
            result = await collect(session)
        except OmniError as error:
            raise in_request_words(error) from error
        array = result.outputs[0].payload.get("image")
        if not isinstance(array, Array):
            raise OmniError(ErrorCode.STAGE_FAILED, f'stage "{result.outputs[0].stage}" answered without an image')
        data = await self._encoder.encode(array, file)
        return MadeImage(
            base64=base64.b64encode(data).decode(),
            width=array.shape[1],
            height=array.shape[0],
            seed=int(str(session.request.parameters["seed"])),
            usage=usage_of(result.usage.values()),
            replicas=result.replicas,
        )


def response_of(body: ImageGenerationRequest, images: Sequence[MadeImage]) -> ImagesResponse:
    quality = QUALITIES.get(body.quality, body.quality)
    return ImagesResponse.model_validate(
        {
            "created": int(time.time()),
            "data": [ImageItem(b64_json=image.base64, seed=image.seed) for image in images],
            "output_format": body.file_format,
            "quality": None if quality == "auto" else quality,
            "size": images[0].size,
            "safety_identifier": body.safety_identifier or body.user or None,
            "usage": total([image.usage for image in images]),
        }
    )


def completed_event(body: ImageGenerationRequest, image: MadeImage) -> ImageCompletedEvent:
    return ImageCompletedEvent.model_validate(
        {
            "b64_json": image.base64,
            "created_at": int(time.time()),
            "output_format": body.file_format,
            "quality": QUALITIES.get(body.quality, body.quality),
            "size": image.size,
            "safety_identifier": body.safety_identifier or body.user or None,
            "seed": image.seed,
            "usage": image.usage,
        }
    )


def usage_of(stages: Iterable[StageUsage]) -> ImageUsage:
    """Every stage counts once: what the text encoder read, and what the image stages made."""
    taken = list(stages)
    return _usage(sum(stage.input_tokens for stage in taken), sum(stage.output_tokens for stage in taken))


def total(usages: Sequence[ImageUsage]) -> ImageUsage:
    return _usage(sum(usage.input_tokens for usage in usages), sum(usage.output_tokens for usage in usages))


def _usage(text_tokens: int, image_tokens: int) -> ImageUsage:
    return ImageUsage(
        input_tokens=text_tokens,
        input_tokens_details=InputTokens(text_tokens=text_tokens),
        output_tokens=image_tokens,
        output_tokens_details=OutputTokens(image_tokens=image_tokens),
        total_tokens=text_tokens + image_tokens,
    )
