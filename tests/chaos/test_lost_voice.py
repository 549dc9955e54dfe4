"""The vocoder of a talking model dies in the middle of an answer, or is away: the text comes nevertheless."""

import base64
import time
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import httpx2
import pytest
from openai import APIError, AsyncOpenAI, InternalServerError

from omni_contract.api.v1alpha1 import FrontendLimits
from tests.support.chat_client import WAV_HEADER_BYTES, Heard, expected_pcm, expected_text, said, take
from tests.support.fake_omni import MODEL, TALKER, THINKER, VOCODER, fake_omni
from tests.support.model_processes import ModelProcesses, model_processes
from tests.support.picture_client import client
from tests.support.waiting import eventually
from tests.support.worker_stats import holds_nothing, stats_when

STEPS = 40
SLOWLY = {THINKER: {"steps": STEPS, "delay_seconds": 0.02}}
QUEUE_TIMEOUT_S = 2


@pytest.fixture
async def talking(tmp_path: Path) -> AsyncIterator[ModelProcesses]:
    model = fake_omni(SLOWLY, limits=FrontendLimits(queue_timeout_seconds=QUEUE_TIMEOUT_S))
    with model_processes(model, tmp_path) as processes:
        await processes.start()
        yield processes


def asked(**fields: Any) -> dict[str, Any]:
    return {"model": MODEL, "messages": said(), "seed": 0, **fields}


@pytest.mark.case("runtime:C3")
async def test_a_vocoder_that_is_killed_mid_answer_costs_the_rest_of_the_audio_alone(talking: ModelProcesses) -> None:
    openai = client(talking.urls[0])
    whole = Heard()
    async for chunk in await openai.chat.completions.create(**asked(stream=True)):
        take(whole, chunk)
        if whole.kinds[-1:] == ["audio"] and not talking.has_ended(VOCODER):
            talking.kill(VOCODER)
    assert whole.text == {0: expected_text(tokens=STEPS)}
    assert (whole.audio_errors[0]["code"], whole.ends) == ("stage_unavailable", {0: "stop"})
    heard = whole.audio[0][WAV_HEADER_BYTES:]
    assert heard and expected_pcm(STEPS).startswith(heard)
    for stage in (THINKER, TALKER):
        await stats_when(talking.plans[stage].health, holds_nothing, within_s=10)
    await talking.start(VOCODER)
    eventually("audio is served again", lambda: outputs(talking)["audio"])
    await answers_whole(openai)


async def answers_whole(openai: AsyncOpenAI) -> None:
    answer = await openai.chat.completions.create(**asked())
    message = answer.choices[0].message
    assert message.content == expected_text(tokens=STEPS)
    assert message.audio and base64.b64decode(message.audio.data)[WAV_HEADER_BYTES:] == expected_pcm(STEPS)


async def test_while_the_vocoder_is_away_text_is_served_and_audio_is_refused_clearly(talking: ModelProcesses) -> None:
    openai = client(talking.urls[0])
    talking.kill(VOCODER)
    eventually("the loss is seen", lambda: not outputs(talking)["audio"])
    assert outputs(talking) == {"text": True, "audio": False}
    began_s = time.monotonic()
    unasked = await openai.chat.completions.create(**asked(max_tokens=2))
    assert unasked.choices[0].message.content == expected_text(tokens=2)
    assert unasked.choices[0].message.audio is None
    assert unasked.choices[0].message.audio_error["code"] == "stage_unavailable"  # type: ignore[attr-defined]
    assert time.monotonic() - began_s < QUEUE_TIMEOUT_S, "nobody waits for audio that was not asked for"
    with pytest.raises(InternalServerError, match=f"no replica of {VOCODER} is ready") as caught:
        await openai.chat.completions.create(**asked(modalities=["text", "audio"]))
    assert (caught.value.status_code, caught.value.code) == (503, "stage_unavailable")
    streamed = Heard()
    async for chunk in await openai.chat.completions.create(**asked(modalities=["text", "audio"], stream=True)):
        take(streamed, chunk)
    assert streamed.text == {0: expected_text(tokens=STEPS)}
    assert f"no replica of {VOCODER} is ready" in streamed.audio_errors[0]["message"]


def outputs(processes: ModelProcesses) -> dict[str, bool]:
    served: dict[str, bool] = httpx2.get(f"{processes.urls[0]}/readyz", trust_env=False).json()["outputs"]
    return served


async def test_a_thinker_that_is_killed_mid_answer_ends_the_stream_with_a_clear_error(talking: ModelProcesses) -> None:
    openai, whole = client(talking.urls[0]), Heard()
    with pytest.raises(APIError, match="replica") as caught:
        async for chunk in await openai.chat.completions.create(**asked(stream=True)):
            take(whole, chunk)
            if whole.kinds and not talking.has_ended(THINKER):
                talking.kill(THINKER)
    assert caught.value.code == "stage_unavailable"
    assert whole.text[0] and expected_text(tokens=STEPS).startswith(whole.text[0]) and not whole.ends
    for stage in (TALKER, VOCODER):
        await stats_when(talking.plans[stage].health, holds_nothing, within_s=10)


@pytest.mark.case("runtime:C1")
async def test_a_client_that_leaves_a_chat_ends_it_on_every_stage(talking: ModelProcesses) -> None:
    openai = client(talking.urls[0])
    for chunks in (1, 5):
        stream = await openai.chat.completions.create(**asked(stream=True, n=2))
        for _ in range(chunks):
            await anext(stream)
        await stream.close()
    for stage in (THINKER, TALKER, VOCODER):
        await stats_when(talking.plans[stage].health, holds_nothing, within_s=10)
    await answers_whole(openai)
