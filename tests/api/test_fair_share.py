"""Two API keys at one frontend: a flood under one does not shut the other out."""

import asyncio
from collections.abc import AsyncIterator
from dataclasses import replace
from pathlib import Path

import openai as sdk
import pytest
from openai import AsyncOpenAI

from omni_contract.api.v1alpha1 import FakeEngine, FrontendLimits
from tests.support.fake_chain import STAGES, fake_chain
from tests.support.model_processes import ModelProcesses, model_processes
from tests.support.picture_client import client, expected, picture

QUEUE = 8
SLOW = FakeEngine(behavior="delay", delay_seconds=0.02, steps=5)


@pytest.fixture
async def one_at_a_time(tmp_path: Path) -> AsyncIterator[ModelProcesses]:
    """The first stage takes one request at a time; keys "flood" and "quiet" are let in."""
    keys = tmp_path / "keys"
    keys.mkdir()
    (keys / "teams").write_text("flood\nquiet\n")
    model = fake_chain({STAGES[0]: SLOW}, limits=FrontendLimits(max_queue_length=QUEUE))
    stages = tuple(replace(stage, max_in_flight=1) for stage in model.stages)
    with model_processes(replace(model, stages=stages), tmp_path) as processes:
        plan = processes.plans["frontend-0"]
        processes.plans["frontend-0"] = replace(plan, arguments=(*plan.arguments, "--api-keys", str(keys)))
        await processes.start()
        yield processes


def of_key(processes: ModelProcesses, key: str) -> AsyncOpenAI:
    return client(processes.urls[0]).with_options(api_key=key)


async def flooded(openai: AsyncOpenAI, order: list[int]) -> list[asyncio.Task[bytes]]:
    """As many requests as there are places, and the first of them answered; `order` gets each seed as it is served."""

    async def noted(seed: int) -> bytes:
        made = await picture(openai, seed)
        order.append(seed)
        return made

    tasks = [asyncio.create_task(noted(seed)) for seed in range(QUEUE + 1)]
    await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
    tasks.append(asyncio.create_task(noted(QUEUE + 1)))
    return tasks


async def test_a_request_under_a_quiet_key_is_served_after_one_of_the_flood(one_at_a_time: ModelProcesses) -> None:
    order: list[int] = []
    flood = await flooded(of_key(one_at_a_time, "flood"), order)
    served_before = len(order)
    assert await picture(of_key(one_at_a_time, "quiet"), 100) == expected(100)
    # One runs, one may be on its way through the later stages, and the quiet key's turn comes after one more.
    assert len(order) - served_before <= 3
    await asyncio.gather(*flood, return_exceptions=True)


async def test_a_full_queue_makes_room_by_pushing_out_requests_of_the_flood(one_at_a_time: ModelProcesses) -> None:
    order: list[int] = []
    flood = await flooded(of_key(one_at_a_time, "flood"), order)
    quiet = of_key(one_at_a_time, "quiet")
    made = await asyncio.gather(*(picture(quiet, seed) for seed in (100, 101, 102)))
    assert made == [expected(seed) for seed in (100, 101, 102)]
    answers = await asyncio.gather(*flood, return_exceptions=True)
    refused = {seed for seed, answer in enumerate(answers) if isinstance(answer, sdk.RateLimitError)}
    # One for each of the quiet key's, and the last of the flood if it found the queue full. Each came over a connection
    # of its own, so that only the frontend knows which were the newest: tests/omni_runtime has that part.
    assert 1 <= len(refused) <= 4
    assert all(answer == expected(seed) for seed, answer in enumerate(answers) if seed not in refused)
