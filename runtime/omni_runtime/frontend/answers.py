"""A session's events as words and sound: what every endpoint that answers with them reads."""

import asyncio
from collections.abc import AsyncGenerator, Iterator, Mapping, Sequence
from contextlib import aclosing
from dataclasses import dataclass
from typing import TypeAlias, TypeVar

from omni_contract.wire.errors import ErrorCode, OmniError
from omni_contract.wire.payload import Array, Payload, Value
from omni_contract.wire.stage_table import StageTable
from omni_runtime.media.values import Sound
from omni_runtime.orchestrator import Completed, FinalChunk, FinalOutput, OutputLost, Session, StageUsage

T = TypeVar("T")


@dataclass(frozen=True)
class RankedToken:
    token: str
    logprob: float
    bytes: list[int]


@dataclass(frozen=True)
class ChosenToken(RankedToken):
    top: tuple[RankedToken, ...]


@dataclass(frozen=True)
class TextDelta:
    """Text since the last one; `finish_reason` comes with the last."""

    text: str
    logprobs: tuple[ChosenToken, ...] = ()
    finish_reason: str | None = None
    stop_reason: str | int | None = None


@dataclass(frozen=True)
class SoundDelta:
    sound: Sound


@dataclass(frozen=True)
class SoundEnd:
    """There is no more sound; `error` says why it ends early."""

    error: OmniError | None = None


@dataclass(frozen=True)
class Ended:
    """Comes last: what each stage took, and which replica served it."""

    usage: Mapping[str, StageUsage]
    replicas: Mapping[str, str]
    audio_seconds: float = 0.0


Delta: TypeAlias = TextDelta | SoundDelta | SoundEnd | Ended


async def deltas_of(session: Session, lost_sound: OmniError | None = None) -> AsyncGenerator[Delta, None]:
    """Closing it early aborts the session. Raises OmniError where the session does.

    `lost_sound` says why the session was not even asked for sound.
    """
    async with session:
        if lost_sound is not None:
            yield SoundEnd(lost_sound)
        async for event in session:
            match event:
                case FinalOutput():
                    for delta in _deltas(event.stage, event.modality, (event.payload,), is_last=True):
                        yield delta
                case FinalChunk():
                    for delta in _deltas(event.stage, event.modality, event.items, event.is_last):
                        yield delta
                case OutputLost(modality="audio"):
                    yield SoundEnd(event.error)
                case Completed():
                    yield Ended(event.usage, event.replicas)


async def merged(streams: Sequence[AsyncGenerator[T, None]]) -> AsyncGenerator[tuple[int, T], None]:
    """What all of them give, as it comes, with the number of its stream. A stream is asked once it has been read."""
    if len(streams) == 1:
        async with aclosing(streams[0]) as only:
            async for item in only:
                yield 0, item
        return
    turns = {asyncio.create_task(_next(stream)): number for number, stream in enumerate(streams)}
    try:
        while turns:
            await asyncio.wait(turns, return_when=asyncio.FIRST_COMPLETED)
            for turn in [turn for turn in turns if turn.done()]:
                number = turns.pop(turn)
                for item in turn.result():
                    yield number, item
                    turns[asyncio.create_task(_next(streams[number]))] = number
    finally:
        for turn in turns:
            turn.cancel()
        await asyncio.gather(*turns, return_exceptions=True)
        for stream in streams:
            await stream.aclose()


def stage_of(table: StageTable, modality: str) -> str | None:
    """The stage whose final output is of that modality."""
    outputs = ((stage.name, stage.output) for stage in table.stages)
    return next((name for name, output in outputs if output and output.final and output.modality == modality), None)


async def _next(stream: AsyncGenerator[T, None]) -> list[T]:
    """The next item, alone in a list; an empty one at the end."""
    try:
        return [await anext(stream)]
    except StopAsyncIteration:
        return []


def _deltas(stage: str, modality: str, items: Sequence[Payload], is_last: bool) -> Iterator[Delta]:
    try:
        match modality:
            case "text":
                yield from map(_text_delta, items)
            case "audio":
                yield from (SoundDelta(_sound(item)) for item in items)
                if is_last:
                    yield SoundEnd()
    except (KeyError, TypeError) as exc:
        text = f'stage "{stage}" gave an answer that is no {modality}: {exc}'
        raise OmniError(ErrorCode.STAGE_FAILED, text) from exc


def _text_delta(item: Payload) -> TextDelta:
    finish_reason, stop_reason, chosen = item.get("finish_reason"), item.get("stop_reason"), item.get("logprobs")
    return TextDelta(
        text=_typed(item["text"], str),
        logprobs=tuple(map(_chosen_token, chosen)) if isinstance(chosen, list) else (),
        finish_reason=finish_reason if isinstance(finish_reason, str) else None,
        stop_reason=stop_reason if isinstance(stop_reason, str | int) else None,
    )


def _chosen_token(value: Value) -> ChosenToken:
    entry = _typed(value, dict)
    ranked = _ranked_token(entry)
    top = tuple(map(_ranked_token, _typed(entry.get("top") or [], list)))
    return ChosenToken(ranked.token, ranked.logprob, ranked.bytes, top)


def _ranked_token(value: Value) -> RankedToken:
    entry = _typed(value, dict)
    token = _typed(entry["token"], str)
    logprob = entry["logprob"]
    return RankedToken(token, float(logprob), list(entry.get("bytes") or token.encode()))


def _sound(item: Payload) -> Sound:
    samples = _typed(item["audio"], Array)
    if samples.dtype != "float32" or len(samples.shape) != 1:
        raise TypeError(f"sound is float32[samples], got {samples.dtype}{list(samples.shape)}")
    return Sound(samples, _typed(item["sample_rate"], int))


def _typed(value: Value, kind: type[T]) -> T:
    if not isinstance(value, kind):
        raise TypeError(f"expected {kind.__name__}, got {type(value).__name__}")
    return value
