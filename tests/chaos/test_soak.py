"""Thousands of requests through three stages in processes of their own, answered or given up: nothing of them stays."""

import asyncio
import os
from collections.abc import Iterable

import pytest

from benchmarks.stages import FakeStage, RunningStages, running_stages
from omni_contract.api.v1alpha1 import FakeEngine
from omni_runtime.orchestrator import Orchestrator, Progress, SessionRequest
from tests.support.process_census import ProcessCensus, census, growth
from tests.support.waiting import settled

STAGES = ("first", "second", "third")
REQUESTS = 10_000
IN_FLIGHT = 64
SLACK_KIB = 16 * 1024
"""A leak of 2 KiB for each request is larger."""
SETTLE_S = 10
GIVEN_UP = 5_000
SLOW = FakeEngine(behavior="delay", delay_seconds=0.03, steps=10_000)
LARGE = "x" * 70_000
"""Too large for a message, so that each stage holds it; a thousand of them that stay are seen."""


async def wrong_answers(orchestrator: Orchestrator, numbers: Iterable[int]) -> list[int]:
    """Of many requests, a few at a time: those whose answer is another one's or was not made by all stages."""
    wrong, left = [], iter(numbers)

    async def ask() -> None:
        for number in left:
            result = await orchestrator.run(SessionRequest(f"r{number}", {"prompt": f"tag-{number}"}))
            if result.outputs[0].payload["text"] != f"tag-{number} " or set(result.replicas) != set(STAGES):
                wrong.append(number)

    await asyncio.gather(*(ask() for _ in range(IN_FLIGHT)))
    return wrong


async def give_up(orchestrator: Orchestrator, numbers: Iterable[int]) -> None:
    """Of many requests, a few at a time: each is left while its second stage works on it."""
    left = iter(numbers)

    async def ask() -> None:
        for number in left:
            async with orchestrator.submit(SessionRequest(f"r{number}", {"prompt": f"{number} {LARGE}"})) as session:
                async for event in session:
                    if isinstance(event, Progress) and event.stage == STAGES[1]:
                        break

    await asyncio.gather(*(ask() for _ in range(IN_FLIGHT)))


def held(model: RunningStages) -> dict[str, ProcessCensus]:
    return {name: census(pid) for name, pid in {"orchestrator": os.getpid(), **model.workers}.items()}


@pytest.mark.case("runtime:L29")
async def test_ten_thousand_requests_are_answered_right_and_leave_nothing() -> None:
    async with running_stages([FakeStage(name) for name in STAGES]) as model:
        assert await wrong_answers(model.orchestrator, range(1_000)) == []
        before = held(model)
        assert await wrong_answers(model.orchestrator, range(REQUESTS)) == []
        assert model.orchestrator.open_sessions == 0
        grown = settled(lambda: growth(before, held(model), SLACK_KIB), lambda found: not found, SETTLE_S)
        assert grown == []


@pytest.mark.case("runtime:C2", "runtime:C5", "runtime:M1")
async def test_five_thousand_requests_that_are_given_up_leave_nothing() -> None:
    async with running_stages(
        [FakeStage(name, SLOW if name == STAGES[1] else FakeEngine()) for name in STAGES]
    ) as model:
        await give_up(model.orchestrator, range(1_000))
        before = held(model)
        await give_up(model.orchestrator, range(GIVEN_UP))
        assert model.orchestrator.open_sessions == 0
        grown = settled(lambda: growth(before, held(model), SLACK_KIB), lambda found: not found, SETTLE_S)
        assert grown == []
