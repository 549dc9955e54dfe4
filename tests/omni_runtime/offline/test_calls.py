"""Calls against workers that speak the real protocol."""

import asyncio
import io
import sys
from collections.abc import AsyncIterator
from contextlib import aclosing, asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from omni_contract.wire.codec import decode
from omni_contract.wire.errors import ErrorCode, OmniError
from omni_contract.wire.stage_table import StageTable
from omni_runtime.offline.calls import Calls, Sampling
from omni_runtime.offline.outputs import OmniRequestOutput
from omni_runtime.offline.prompts import Prompt
from omni_runtime.orchestrator import Orchestrator, OrchestratorSettings
from omni_runtime.orchestrator.discovery.local import LocalDiscovery
from tests.support.fake_model import fake_model, located
from tests.support.fake_worker import FakeWorker, Job, answer_all
from tests.support.stage_tables import chain

SMALL = Sampling({"width": 8, "height": 4, "seed": 1})


@asynccontextmanager
async def calls_of(table: StageTable, max_in_flight: int | None = None) -> AsyncIterator[Calls]:
    settings = OrchestratorSettings(frontend_id="test", reconnect_first_s=0.01)
    async with Orchestrator(table, LocalDiscovery(table), settings).running() as orchestrator:
        await orchestrator.wait_ready()
        yield Calls(orchestrator, max_in_flight)


async def all_of(calls: Calls, prompts: list[Any], use_tqdm: bool = False) -> list[OmniRequestOutput]:
    async with aclosing(calls.answers(prompts, SMALL, use_tqdm)) as answers:
        return [output async for answer in answers for output in answer]


def prompt_of(job: Job) -> str:
    return str(decode(job.start.inputs[0].inline)["prompt"])


async def test_answers_keep_the_order_of_the_prompts_whichever_ends_first(tmp_path: Path) -> None:
    second_is_done = asyncio.Event()

    async def second_first(worker: FakeWorker, job: Job) -> None:
        if prompt_of(job) == "one":
            await second_is_done.wait()
        await answer_all(worker, job)
        second_is_done.set()

    table = located(chain("painter"), tmp_path)
    async with fake_model(table, tmp_path, answer=second_first), calls_of(table) as calls:
        outputs = await all_of(calls, ["one", "two"])
    assert [(output.prompt_index, output.prompt) for output in outputs] == [(0, "one"), (1, "two")]
    assert [output.images[0].size for output in outputs] == [(8, 4)] * 2
    assert all(output.metrics and output.metrics.stages[0].stage == "painter" for output in outputs)


async def test_a_prompt_that_fails_fails_alone(tmp_path: Path) -> None:
    async def refuse_one(worker: FakeWorker, job: Job) -> None:
        if prompt_of(job) == "bad":
            job.fail("invalid_request", "no such thing", retryable=False, param="prompt")
        else:
            await answer_all(worker, job)

    table = located(chain("painter"), tmp_path)
    async with fake_model(table, tmp_path, answer=refuse_one), calls_of(table) as calls:
        outputs = await all_of(calls, ["good", "bad", {"promt": "x"}, "good"])
    errors = [output.error and output.error.param for output in outputs]
    assert errors == [None, "prompt", "promt", None]


async def test_no_more_requests_run_at_once_than_were_allowed(tmp_path: Path) -> None:
    most = 0

    async def count(worker: FakeWorker, job: Job) -> None:
        nonlocal most
        most = max(most, worker.running)
        await answer_all(worker, job)

    table = located(chain("painter"), tmp_path)
    async with fake_model(table, tmp_path, answer=count), calls_of(table, max_in_flight=3) as calls:
        await all_of(calls, ["a fox"] * 20)
    assert most == 3


async def test_a_call_is_never_refused_for_its_own_length(tmp_path: Path) -> None:
    table = located(chain("painter", max_queue_length=2), tmp_path)
    async with fake_model(table, tmp_path, max_in_flight=1), calls_of(table) as calls:
        outputs = await all_of(calls, ["a fox"] * 20)
    assert [output.error for output in outputs] == [None] * 20


async def test_leaving_early_ends_what_runs(tmp_path: Path) -> None:
    table = located(chain("painter"), tmp_path)
    async with fake_model(table, tmp_path) as workers, calls_of(table) as calls:
        painter = workers["painter"]
        painter.gate.clear()
        reading = asyncio.create_task(all_of(calls, ["one", "two"]))
        await painter.started(2)
        reading.cancel()
        await asyncio.wait((reading,))
        await painter.told(lambda: len(painter.cancelled) + len(painter.discarded) >= 2)


async def test_an_aborted_request_raises_where_it_is_read(tmp_path: Path) -> None:
    table = located(chain("painter"), tmp_path)
    async with fake_model(table, tmp_path) as workers, calls_of(table) as calls:
        workers["painter"].gate.clear()
        reading = asyncio.create_task(read(calls, "a fox", "mine"))
        await workers["painter"].started(1)
        with pytest.raises(OmniError, match="in use"):
            await read(calls, "a fox", "mine")
        calls.abort("mine")
        with pytest.raises(OmniError) as caught:
            await reading
        calls.abort("mine")
    assert caught.value.code is ErrorCode.CANCELLED


async def read(calls: Calls, prompt: Prompt, request_id: str) -> list[OmniRequestOutput]:
    return [part async for part in calls.parts(prompt, SMALL, request_id)]


async def test_a_prompt_may_have_sampling_of_its_own(tmp_path: Path) -> None:
    table = located(chain("painter"), tmp_path)
    async with fake_model(table, tmp_path) as workers, calls_of(table, max_in_flight=1) as calls:
        own: list[Any] = [{"prompt": "a fox", "sampling": {"seed": seed, "height": 2}} for seed in (5, 6)]
        outputs = await all_of(calls, [*own, "a fox", {"prompt": "a fox", "sampling": {"sed": 1}}])
        seeds = [job.parameters["seed"] for job in workers["painter"].jobs]
    assert seeds == [5, 6, 1]
    assert [output.images[0].size for output in outputs[:3]] == [(8, 2), (8, 2), (8, 4)]
    assert outputs[3].error is not None and 'did you mean "seed"' in outputs[3].error.message


async def test_wrong_sampling_is_raised_before_anything_runs(tmp_path: Path) -> None:
    table = located(chain("painter"), tmp_path)
    async with fake_model(table, tmp_path) as workers, calls_of(table) as calls:
        with pytest.raises(OmniError, match='did you mean "width"'):
            await anext(calls.answers(["a fox"], Sampling({"widht": 3}), use_tqdm=False))
        assert workers["painter"].jobs == []


async def test_an_output_that_the_model_does_not_have_fails_its_prompt(tmp_path: Path) -> None:
    table = located(chain("painter"), tmp_path)
    async with fake_model(table, tmp_path), calls_of(table) as calls:
        (output,) = await all_of(calls, [{"prompt": "a fox", "modalities": ["audio"]}])
    assert output.error is not None and "no audio output" in output.error.message


async def test_progress_is_told_if_it_is_wanted(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    told = io.StringIO()
    monkeypatch.setattr(sys, "stderr", told)
    table = located(chain("painter"), tmp_path)
    async with fake_model(table, tmp_path), calls_of(table) as calls:
        await all_of(calls, ["a fox"])
        assert told.getvalue() == ""
        await all_of(calls, ["a fox"], use_tqdm=True)
    assert told.getvalue().startswith("prompts 1/1 in ")
