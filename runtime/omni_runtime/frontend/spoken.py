"""An answer whose sound is a file in the making: encoded as it comes, off the event loop."""

from collections.abc import AsyncGenerator
from contextlib import aclosing
from dataclasses import dataclass, replace
from typing import TypeAlias, TypeVar

from omni_contract.wire.errors import ErrorCode, OmniError
from omni_runtime.frontend.answers import Delta, Ended, SoundDelta, SoundEnd, TextDelta
from omni_runtime.media.audio import AudioWriter, MixedRatesError


@dataclass(frozen=True)
class AudioBytes:
    """The next bytes of the file."""

    data: bytes


SpokenDelta: TypeAlias = TextDelta | AudioBytes | SoundEnd | Ended
Other = TypeVar("Other")


async def spoken(
    deltas: AsyncGenerator[Delta | Other, None], writer: AudioWriter
) -> AsyncGenerator[SpokenDelta | Other, None]:
    """Sound that ends early still ends as a file that players accept. What is not sound stays as it is."""
    seconds = 0.0
    async with aclosing(deltas):
        async for delta in deltas:
            match delta:
                case SoundDelta(sound):
                    seconds += sound.seconds
                    if data := await _added(writer, delta):
                        yield AudioBytes(data)
                case SoundEnd(error):
                    has_file = error is None or writer.has_begun
                    if has_file and (data := await writer.end()):
                        yield AudioBytes(data)
                    yield delta
                case Ended():
                    yield replace(delta, audio_seconds=seconds)
                case _:
                    yield delta


async def _added(writer: AudioWriter, delta: SoundDelta) -> bytes:
    try:
        return await writer.add(delta.sound)
    except MixedRatesError as exc:
        raise OmniError(ErrorCode.STAGE_FAILED, f"the stage changed its mind within an answer: {exc}") from exc
