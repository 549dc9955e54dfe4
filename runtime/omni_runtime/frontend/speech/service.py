"""Reads a text out: one session, its sound encoded as it comes."""

from collections.abc import AsyncGenerator, AsyncIterator
from contextlib import aclosing, asynccontextmanager
from dataclasses import dataclass

from omni_contract.wire.errors import OmniError
from omni_runtime.frontend.answers import Ended, SoundEnd, TextDelta, deltas_of
from omni_runtime.frontend.inquiry import Inquiry, aborting
from omni_runtime.frontend.media.loader import MediaLoader
from omni_runtime.frontend.models.service import check_served
from omni_runtime.frontend.request_scope import RequestContext
from omni_runtime.frontend.speech.parameters import (
    audio_file,
    check_limits,
    check_speaks,
    in_request_words,
    speech_payload,
    stage_parameters,
)
from omni_runtime.frontend.speech.schema import SpeechRequest, SpeechUsage
from omni_runtime.frontend.spoken import AudioBytes, spoken
from omni_runtime.frontend.text.sampling import seeds_of
from omni_runtime.media.audio import AudioEncoder, AudioFile, AudioWriter
from omni_runtime.orchestrator import Orchestrator, Session


@dataclass(frozen=True)
class Speech:
    """A speech whose session runs."""

    seed: int
    file: AudioFile
    session: Session
    writer: AudioWriter


class SpeechService:
    def __init__(self, orchestrator: Orchestrator, media: MediaLoader, encoder: AudioEncoder) -> None:
        self._orchestrator = orchestrator
        self._media = media
        self._encoder = encoder

    @asynccontextmanager
    async def admitted(self, body: SpeechRequest, context: RequestContext) -> AsyncIterator[Speech]:
        """A session not read to its end when the block ends is aborted on every stage."""
        speech = await self._admit(body, context)
        with aborting([speech.session]):
            yield speech

    async def parts(self, speech: Speech) -> AsyncGenerator[bytes | Ended, None]:
        """The file's bytes as they are made, and at last what it took."""
        try:
            async with aclosing(spoken(deltas_of(speech.session), speech.writer)) as deltas:
                async for delta in deltas:
                    match delta:
                        case AudioBytes(data):
                            yield data
                        case Ended():
                            yield delta
                        case SoundEnd() | TextDelta():
                            pass
        except OmniError as error:
            raise in_request_words(error) from error

    async def whole(self, body: SpeechRequest, context: RequestContext) -> tuple[bytes, Speech]:
        async with self.admitted(body, context) as speech, aclosing(self.parts(speech)) as parts:
            return b"".join([part async for part in parts if isinstance(part, bytes)]), speech

    async def _admit(self, body: SpeechRequest, context: RequestContext) -> Speech:
        table = self._orchestrator.table
        check_served(table, body.model)
        check_speaks(table)
        check_limits(body, table)
        [seed] = seeds_of(body.seed, 1)
        parameters = stage_parameters(body, table, seed)
        payload = await speech_payload(body, table, self._media)
        request = Inquiry(context, ("audio",), body.priority).session(0, payload, parameters)
        file = audio_file(body)
        return Speech(seed, file, self._orchestrator.submit(request), self._encoder.writer(file))


def usage_of(ended: Ended) -> SpeechUsage:
    """Every stage counts once: what it read is text, what was made on the way to sound is audio."""
    input_tokens = sum(usage.input_tokens for usage in ended.usage.values())
    output_tokens = sum(usage.output_tokens for usage in ended.usage.values())
    return SpeechUsage(
        input_tokens=input_tokens,
        output_tokens=output_tokens,
        total_tokens=input_tokens + output_tokens,
        audio_seconds=round(ended.audio_seconds, 6),
    )
