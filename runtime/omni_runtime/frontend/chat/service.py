"""Answers a chat: one session for each choice, all admitted together, read whole or as they speak."""

from collections.abc import AsyncGenerator, AsyncIterator, Mapping, Sequence
from contextlib import aclosing, asynccontextmanager
from dataclasses import dataclass

from omni_contract.wire.errors import ErrorCode, OmniError
from omni_runtime.frontend.answers import Ended, deltas_of, merged
from omni_runtime.frontend.chat.answer import ChatCompletion, ChatCompletionChunk, ChoiceChange
from omni_runtime.frontend.chat.choice import ChoiceHead, TellingChoice, WholeChoice
from omni_runtime.frontend.chat.messages import chat_payload
from omni_runtime.frontend.chat.parameters import check_limits, stage_parameters, wanted
from omni_runtime.frontend.chat.pictures import check_no_picture_fields
from omni_runtime.frontend.chat.schema import ChatCompletionRequest
from omni_runtime.frontend.chat.tool_calls import CalledTool, with_tool_calls
from omni_runtime.frontend.inquiry import Inquiry, RunningText, aborting
from omni_runtime.frontend.media.loader import MediaLoader
from omni_runtime.frontend.models.service import check_served
from omni_runtime.frontend.request_scope import RequestContext
from omni_runtime.frontend.spoken import SpokenDelta, spoken
from omni_runtime.frontend.text.sampling import seeds_of
from omni_runtime.frontend.text.stage import text_stage
from omni_runtime.frontend.text.usage import CompletionUsage, total, usage_of
from omni_runtime.media.audio import AudioEncoder, AudioFile
from omni_runtime.orchestrator import Orchestrator, Session
from omni_runtime.orchestrator.request import SharedPayload
from omni_runtime.together import together


@dataclass(frozen=True, kw_only=True)
class Chat(RunningText):
    file: AudioFile
    heads: Sequence[ChoiceHead]
    may_call_tools: bool
    lost_sound: OmniError | None
    """Why there will be no sound, if that is known from the start."""

    def chunk(self, change: ChoiceChange | None, usage: CompletionUsage | None = None) -> ChatCompletionChunk:
        return ChatCompletionChunk(
            id=self.id,
            object="chat.completion.chunk",
            created=self.created,
            model=self.model,
            choices=[] if change is None else [change],
            usage=usage,
            system_fingerprint=self.fingerprint,
        )

    def usage(self, ends: Sequence[Ended]) -> CompletionUsage:
        return total(usage_of(self.text_stage, end.usage, end.audio_seconds) for end in ends)


class ChatService:
    def __init__(self, orchestrator: Orchestrator, media: MediaLoader, encoder: AudioEncoder) -> None:
        self._orchestrator = orchestrator
        self._media = media
        self._encoder = encoder

    @asynccontextmanager
    async def admitted(self, body: ChatCompletionRequest, context: RequestContext) -> AsyncIterator[Chat]:
        """Sessions not read to their end when the block ends are aborted on every stage."""
        chat = await self._admit(body, context)
        with aborting(chat.sessions):
            yield chat

    async def answer(
        self, body: ChatCompletionRequest, context: RequestContext
    ) -> tuple[ChatCompletion, Mapping[str, str]]:
        """The whole answer, and the replica of each stage that made the first choice."""
        async with self.admitted(body, context) as chat:
            choices = await together(self._whole(chat, number) for number in range(len(chat.sessions)))
        ends = [choice.ended for choice in choices if choice.ended is not None]
        answer = ChatCompletion(
            id=chat.id,
            created=chat.created,
            model=chat.model,
            choices=[choice.choice() for choice in choices],
            usage=chat.usage(ends),
            system_fingerprint=chat.fingerprint,
            seed=chat.seed,
        )
        return answer, ends[0].replicas

    async def chunks(self, chat: Chat, body: ChatCompletionRequest) -> AsyncGenerator[ChatCompletionChunk, None]:
        """The answer as it is made, the choices among each other."""
        telling, ends = [TellingChoice(head) for head in chat.heads], []
        streams = [self._spoken(chat, session) for session in chat.sessions]
        async with aclosing(merged(streams)) as deltas:
            async for number, delta in deltas:
                for change in telling[number].changes(delta):
                    yield chat.chunk(change)
                if isinstance(delta, Ended):
                    ends.append(delta)
        if body.wants_usage:
            yield chat.chunk(None, chat.usage(ends))

    async def _admit(self, body: ChatCompletionRequest, context: RequestContext) -> Chat:
        table = self._orchestrator.table
        model = check_served(table, body.model)
        stage = text_stage(table)
        hoped = wanted(body, table)
        check_no_picture_fields(body)
        check_limits(body, table)
        parameters, seeds = stage_parameters(body, table), seeds_of(body.seed, body.n or 1)
        # Choices differ in their seeds alone, and media may be large.
        payload = SharedPayload(await chat_payload(body, self._media))
        takes_what_is_left = bool(body.stream) or body.modalities is None
        lost_sound = self._lost_sound() if hoped.audio and takes_what_is_left else None
        modalities = hoped.modalities if lost_sound is None else ("text",)
        inquiry = Inquiry(context, modalities, body.priority, body.prompt_cache_key, takes_what_is_left)
        requests = [inquiry.session(n, payload, {**parameters, "seed": seed}) for n, seed in enumerate(seeds)]
        nonce, created = inquiry.nonce, inquiry.created
        return Chat(
            id=f"chatcmpl-{nonce}",
            created=created,
            model=model,
            fingerprint=table.revision,
            text_stage=stage,
            seed=seeds[0],
            sessions=self._orchestrator.submit_all(requests),
            file=AudioFile(body.audio_format, is_streamed=bool(body.stream)),
            heads=[ChoiceHead(index, hoped, f"{nonce}-{index}", created) for index in range(len(seeds))],
            may_call_tools=bool(body.tools) and body.tool_choice != "none",
            lost_sound=lost_sound,
        )

    def _lost_sound(self) -> OmniError | None:
        """Text need not wait for stages that are away now."""
        loss = self._orchestrator.losses().get("audio")
        return None if loss is None else OmniError(ErrorCode.STAGE_UNAVAILABLE, loss)

    async def _whole(self, chat: Chat, number: int) -> WholeChoice:
        choice = WholeChoice(chat.heads[number])
        async with aclosing(self._spoken(chat, chat.sessions[number])) as deltas:
            async for delta in deltas:
                choice.take(delta)
        return choice

    def _spoken(self, chat: Chat, session: Session) -> AsyncGenerator[SpokenDelta | CalledTool, None]:
        deltas = deltas_of(session, chat.lost_sound)
        writer = self._encoder.writer(chat.file)
        return spoken(with_tool_calls(deltas), writer) if chat.may_call_tools else spoken(deltas, writer)
