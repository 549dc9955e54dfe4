"""A session's events as outputs: gathered to whole ones, or part by part as they come."""

from collections.abc import AsyncGenerator, Sequence
from dataclasses import dataclass, field

from omni_contract.wire.errors import ErrorCode, OmniError
from omni_contract.wire.payload import Payload
from omni_runtime.offline.outputs import OmniRequestOutput, made_of
from omni_runtime.offline.prompts import Prompt
from omni_runtime.orchestrator import FinalChunk, FinalOutput, OutputLost, Session
from omni_runtime.statistics.of_session import stats_of
from omni_runtime.statistics.request import RequestStats


@dataclass(frozen=True)
class Asked:
    """A prompt of a call, and what its answer shall hold."""

    request_id: str
    prompt_index: int
    prompt: Prompt
    modalities: tuple[str, ...]

    def output(
        self, modality: str, items: Sequence[Payload], metrics: RequestStats | None = None, finished: bool = True
    ) -> OmniRequestOutput:
        """Raises OmniError if the stage gave something else than the model says."""
        try:
            made = made_of(modality, items)
        except (KeyError, TypeError, ValueError, AssertionError) as exc:
            raise OmniError(ErrorCode.STAGE_FAILED, f"a stage gave an answer that is no {modality}: {exc!r}") from exc
        return OmniRequestOutput(
            self.request_id, self.prompt_index, self.prompt, modality, made, finished, metrics=metrics
        )

    def failure(self, modality: str, error: OmniError, metrics: RequestStats | None = None) -> OmniRequestOutput:
        return OmniRequestOutput(
            self.request_id, self.prompt_index, self.prompt, modality, error=error, metrics=metrics
        )

    def failures(self, error: OmniError) -> list[OmniRequestOutput]:
        """One for each modality, so that results keep their places."""
        return [self.failure(modality, error) for modality in self.modalities]


@dataclass
class Gathering:
    """The whole answer to one prompt."""

    asked: Asked
    _items: dict[str, list[Payload]] = field(default_factory=dict)
    _lost: dict[str, OmniError] = field(default_factory=dict)

    async def outputs(self, session: Session) -> list[OmniRequestOutput]:
        """In the order of the model's modalities. What fails is told by its error, not raised."""
        try:
            async with session:
                async for event in session:
                    match event:
                        case FinalOutput():
                            self._items.setdefault(event.modality, []).append(event.payload)
                        case FinalChunk():
                            self._items.setdefault(event.modality, []).extend(event.items)
                        case OutputLost():
                            self._lost[event.modality] = event.error
            metrics = stats_of(session)
            return [self._output(modality, metrics) for modality in self.asked.modalities]
        except OmniError as error:
            return self.asked.failures(error)

    def _output(self, modality: str, metrics: RequestStats) -> OmniRequestOutput:
        if modality in self._lost:
            return self.asked.failure(modality, self._lost[modality], metrics)
        return self.asked.output(modality, self._items.get(modality, []), metrics)


async def parts_of(asked: Asked, session: Session) -> AsyncGenerator[OmniRequestOutput, None]:
    """Each part as it comes; the last one of a modality is `finished`. Closing it early aborts the session."""
    async with session:
        async for event in session:
            match event:
                case FinalOutput():
                    yield asked.output(event.modality, [event.payload])
                case FinalChunk() if event.items or event.is_last:
                    yield asked.output(event.modality, event.items, finished=event.is_last)
                case OutputLost():
                    yield asked.failure(event.modality, event.error)
