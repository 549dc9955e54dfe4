"""Writes down what is said in a sound: one session of a text stage that listens."""

from collections.abc import AsyncGenerator, AsyncIterator, Mapping
from contextlib import aclosing, asynccontextmanager
from dataclasses import dataclass

from omni_contract.presets import PRESETS
from omni_contract.wire.errors import ErrorCode, OmniError
from omni_contract.wire.payload import Payload, Value
from omni_contract.wire.stage_table import StageTable
from omni_runtime.frontend.answers import Ended, TextDelta, deltas_of
from omni_runtime.frontend.inquiry import Inquiry, RunningText, aborting
from omni_runtime.frontend.media.loader import MediaLoader
from omni_runtime.frontend.models.service import check_served, listening_endpoints
from omni_runtime.frontend.request_scope import RequestContext
from omni_runtime.frontend.text.by_stage import for_stage
from omni_runtime.frontend.text.sampling import seeds_of
from omni_runtime.frontend.text.stage import text_stage
from omni_runtime.frontend.text.usage import usage_of
from omni_runtime.frontend.transcriptions.schema import (
    Logprob,
    TextDeltaEvent,
    TextDoneEvent,
    Transcription,
    TranscriptionUsage,
    TranslationRequest,
)
from omni_runtime.media.values import Sound
from omni_runtime.orchestrator import Orchestrator

STAGE_FIELDS = {"messages": "file"}
"""Words of the stages for what a field of the form has another name for."""


@dataclass(frozen=True, kw_only=True)
class Hearing(RunningText):
    seconds: float
    """How long the sound is."""


class TranscriptionService:
    def __init__(self, orchestrator: Orchestrator, media: MediaLoader) -> None:
        self._orchestrator = orchestrator
        self._media = media

    @asynccontextmanager
    async def admitted(self, body: TranslationRequest, context: RequestContext) -> AsyncIterator[Hearing]:
        """A session not read to its end when the block ends is aborted on every stage."""
        hearing = await self._admit(body, context)
        with aborting(hearing.sessions):
            yield hearing

    async def answer(
        self, body: TranslationRequest, context: RequestContext
    ) -> tuple[Transcription, int, Mapping[str, str]]:
        """The whole text, its seed, and the replica of each stage that took part."""
        async with self.admitted(body, context) as hearing, aclosing(self._deltas(hearing)) as deltas:
            writing = Writing(hearing)
            async for delta in deltas:
                writing.take(delta)
        return writing.whole(), hearing.seed, writing.replicas

    async def events(self, hearing: Hearing) -> AsyncGenerator[TextDeltaEvent | TextDoneEvent, None]:
        writing = Writing(hearing)
        async with aclosing(self._deltas(hearing)) as deltas:
            async for delta in deltas:
                writing.take(delta)
                if isinstance(delta, TextDelta) and delta.text:
                    yield TextDeltaEvent(delta=delta.text, logprobs=logprobs_of([delta]))
        yield TextDoneEvent(**dict(writing.whole()))

    async def _deltas(self, hearing: Hearing) -> AsyncGenerator[TextDelta | Ended, None]:
        try:
            async with aclosing(deltas_of(hearing.sessions[0])) as deltas:
                async for delta in deltas:
                    if isinstance(delta, TextDelta | Ended):
                        yield delta
        except OmniError as error:
            # A stage speaks of the chat that it was given.
            raise OmniError(error.code, error.message, STAGE_FIELDS.get(error.param or "", error.param)) from error

    async def _admit(self, body: TranslationRequest, context: RequestContext) -> Hearing:
        table = self._orchestrator.table
        model, stage = check_served(table, body.model), text_stage(table)
        check_listens(table)
        sound = await self._media.speech_in(body.file, "file")
        [seed] = seeds_of(body.seed, 1)
        inquiry = Inquiry(context, ("text",), body.priority)
        parameters = {**stage_parameters(body, stage), "seed": seed}
        request = inquiry.session(0, payload_of(sound, body.instruction), parameters)
        return Hearing(
            id=inquiry.nonce,
            created=inquiry.created,
            model=model,
            fingerprint=table.revision,
            text_stage=stage,
            seed=seed,
            sessions=[self._orchestrator.submit(request)],
            seconds=sound.seconds,
        )


class Writing:
    """Gathers a transcript; `replicas` are there at its end."""

    def __init__(self, hearing: Hearing) -> None:
        self.replicas: Mapping[str, str] = {}
        self._hearing = hearing
        self._deltas: list[TextDelta] = []
        self._ended = Ended({}, {})

    def take(self, delta: TextDelta | Ended) -> None:
        if isinstance(delta, TextDelta):
            self._deltas.append(delta)
        else:
            self._ended, self.replicas = delta, delta.replicas

    def whole(self) -> Transcription:
        was_cut = any(delta.finish_reason == "length" for delta in self._deltas)
        usage = usage_of(self._hearing.text_stage, self._ended.usage)
        return Transcription(
            text="".join(delta.text for delta in self._deltas),
            logprobs=logprobs_of(self._deltas),
            usage=TranscriptionUsage.of(usage, self._hearing.seconds),
            finish_reason="length" if was_cut else "stop",
        )


def check_listens(table: StageTable) -> None:
    """Raises OmniError for a family that hears nothing; of a model without one, its stage will tell."""
    if table.family in PRESETS and not listening_endpoints(table):
        text = f'model "{table.model}" does not listen: it is of family {table.family}, which reads no sound'
        raise OmniError(ErrorCode.INVALID_REQUEST, text, "model")


def payload_of(sound: Sound, instruction: str) -> Payload:
    """A chat of one message: the sound, then what to do with it."""
    audio: Value = {"type": "audio", "audio": sound.samples, "sample_rate": sound.sample_rate}
    return {"messages": [{"role": "user", "content": [audio, {"type": "text", "text": instruction}]}]}


def stage_parameters(body: TranslationRequest, stage: str) -> dict[str, Value]:
    asked: dict[str, Value] = {} if body.temperature is None else {"temperature": body.temperature}
    if body.max_completion_tokens is not None:
        asked["max_tokens"] = body.max_completion_tokens
    if body.wants_logprobs:
        asked["logprobs"] = 0
    return for_stage(stage, asked)


def logprobs_of(deltas: list[TextDelta]) -> list[Logprob] | None:
    return [Logprob.of(token) for delta in deltas for token in delta.logprobs] or None
