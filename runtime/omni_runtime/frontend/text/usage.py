"""What a text answer took, with the SDK's keys."""

from collections.abc import Iterable, Mapping
from typing import Self

from pydantic import BaseModel

from omni_runtime.orchestrator import StageUsage


class CompletionTokensDetails(BaseModel):
    """`image_tokens` and `audio_seconds` are ours."""

    text_tokens: int
    audio_tokens: int
    image_tokens: int
    audio_seconds: float


class CompletionUsage(BaseModel):
    prompt_tokens: int
    completion_tokens: int
    total_tokens: int
    completion_tokens_details: CompletionTokensDetails

    @classmethod
    def of(
        cls,
        prompt_tokens: int,
        text_tokens: int = 0,
        audio_tokens: int = 0,
        audio_seconds: float = 0.0,
        image_tokens: int = 0,
    ) -> Self:
        completion_tokens = text_tokens + audio_tokens + image_tokens
        return cls(
            prompt_tokens=prompt_tokens,
            completion_tokens=completion_tokens,
            total_tokens=prompt_tokens + completion_tokens,
            completion_tokens_details=CompletionTokensDetails(
                text_tokens=text_tokens,
                audio_tokens=audio_tokens,
                image_tokens=image_tokens,
                audio_seconds=round(audio_seconds, 6),
            ),
        )


def usage_of(text_stage: str, stages: Mapping[str, StageUsage], audio_seconds: float = 0.0) -> CompletionUsage:
    """Every stage counts once: the text stage's tokens are text, what the others made on the way to sound is audio."""
    text = stages.get(text_stage, StageUsage())
    audio_tokens = sum(usage.output_tokens for name, usage in stages.items() if name != text_stage)
    return CompletionUsage.of(text.input_tokens, text.output_tokens, audio_tokens, audio_seconds)


def total(usages: Iterable[CompletionUsage]) -> CompletionUsage:
    """Of several choices, which all answer one and the same prompt."""
    taken = list(usages)
    return _sum(taken, taken[0].prompt_tokens)


def all_of(usages: Iterable[CompletionUsage]) -> CompletionUsage:
    """Of several prompts."""
    taken = list(usages)
    return _sum(taken, sum(usage.prompt_tokens for usage in taken))


def _sum(usages: list[CompletionUsage], prompt_tokens: int) -> CompletionUsage:
    details = [usage.completion_tokens_details for usage in usages]
    return CompletionUsage.of(
        prompt_tokens,
        sum(each.text_tokens for each in details),
        sum(each.audio_tokens for each in details),
        sum(each.audio_seconds for each in details),
    )
