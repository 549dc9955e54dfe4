"""A stage fails that only one of the outputs needs: the caller may take the others without it."""

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from omni_contract.resolve import ResolvedModel
from omni_contract.wire.errors import ErrorCode, OmniError
from omni_runtime.engines.fake_answers import fake_sound
from omni_runtime.engines.protocol import StageEvent, StageItem, StageRequest
from omni_runtime.orchestrator.request import Completed, FinalChunk, OutputLost, SessionEvent, SessionRequest
from tests.omni_runtime.test_streaming import edge, fake, until_idle
from tests.omni_runtime.worker.engines import GatedEngine
from tests.support.stage_servers import RunningModel, fake_model_of, running_model

STEPS = 40
BROKEN = OmniError(ErrorCode.STAGE_FAILED, "the vocoder broke")


class BreaksOff(GatedEngine):
    """Speaks after the first of what it hears, and fails; or fails at once."""

    def __init__(self, speaks: bool, error: OmniError = BROKEN) -> None:
        super().__init__()
        self._speaks = speaks
        self._error = error

    async def run(self, request: StageRequest) -> AsyncIterator[StageEvent]:
        async for _ in request.chunks("talker->vocoder"):
            if self._speaks:
                yield StageItem("", fake_sound(0))
            raise self._error


def speaker() -> ResolvedModel:
    stages = {
        "thinker": fake("burst", steps=STEPS, delaySeconds=0.001) | {"output": {"modality": "text"}},
        "talker": fake("relay"),
        "vocoder": fake("relay") | {"output": {"modality": "audio"}},
    }
    return fake_model_of(stages, [edge("thinker", "talker", {}), edge("talker", "vocoder", {})])


def asking(takes_what_is_left: bool = True) -> SessionRequest:
    return SessionRequest("r-1", {"prompt": "a fox"}, takes_what_is_left=takes_what_is_left)


async def events_of(model: RunningModel, request: SessionRequest) -> list[SessionEvent]:
    return [event async for event in model.orchestrator.submit(request)]


@pytest.mark.parametrize("speaks", [True, False])
@pytest.mark.parametrize(
    "error", [BROKEN, OmniError(ErrorCode.INVALID_REQUEST, "no such voice")], ids=["once", "never"]
)
async def test_text_comes_to_its_end_and_the_loss_of_the_audio_is_told(
    tmp_path: Path, speaks: bool, error: OmniError
) -> None:
    broken = [BreaksOff(speaks, error)]
    async with running_model(speaker(), tmp_path, {"vocoder": broken[0]}) as model:
        events = await events_of(model, asking())
        await until_idle(model)
    [lost] = [event for event in events if isinstance(event, OutputLost)]
    assert (lost.modality, lost.error.code, lost.error.message) == ("audio", error.code, error.message)
    text = [event for event in events if isinstance(event, FinalChunk) and event.modality == "text"]
    assert sum(len(chunk.items) for chunk in text) == STEPS and text[-1].is_last
    assert isinstance(events[-1], Completed) and events[-1].usage["thinker"].output_tokens == STEPS


async def test_who_wants_all_or_nothing_gets_the_failure(tmp_path: Path) -> None:
    refused = BreaksOff(speaks=False, error=OmniError(ErrorCode.INVALID_REQUEST, "no such voice", "voice"))
    async with running_model(speaker(), tmp_path, {"vocoder": refused}) as model:
        with pytest.raises(OmniError, match="no such voice"):
            await events_of(model, asking(takes_what_is_left=False))
        await until_idle(model)


async def test_a_failure_that_costs_every_output_ends_the_request(tmp_path: Path) -> None:
    class Refuses(GatedEngine):
        async def run(self, request: StageRequest) -> AsyncIterator[StageEvent]:
            raise OmniError(ErrorCode.INVALID_REQUEST, "too long")
            yield

    async with running_model(speaker(), tmp_path, {"thinker": Refuses()}) as model:
        with pytest.raises(OmniError, match="too long"):
            await events_of(model, asking())
        await until_idle(model)
