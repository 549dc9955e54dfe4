"""What a real frontend and real workers expose is what docs/metrics.md lists, and its figures are right."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import replace
from pathlib import Path

import pytest
from httpx2 import AsyncClient
from openai import AsyncOpenAI
from prometheus_client.parser import text_string_to_metric_families

from omni_contract.api.v1alpha1 import FakeEngine
from tests.support.fake_chain import STAGES, fake_chain
from tests.support.metrics_page import Series, documented, scraped
from tests.support.model_processes import ModelProcesses, free_ports, model_processes
from tests.support.picture_client import client, picture
from tests.support.worker_stats import stats_when

DENOISER = FakeEngine(behavior="delay", delay_seconds=0.02, steps=4)
ONLY_WITH_TLS = "certificate_expires"
ONLY_WITH_WEIGHTS = "omni_worker_weights_bytes"
ONLY_OF_SOME_CONNECTORS = "omni_worker_connector_"
REQUESTS = 2


@pytest.fixture(scope="module")
def texts(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    """What each process exposes after a few pictures, and one whose client has left."""
    return asyncio.run(served(tmp_path_factory.mktemp("measured")))


async def served(folder: Path) -> dict[str, str]:
    async with measured(folder) as (processes, ports):
        async with client(processes.urls[0]) as openai:
            for seed in range(REQUESTS):
                await picture(openai, seed)
            await leave_one(processes, openai)
        urls = {stage: f"http://127.0.0.1:{port}" for stage, port in ports.items()}
        async with AsyncClient(trust_env=False) as http:
            return {
                name: (await http.get(f"{url}/metrics")).text
                for name, url in {"frontend": processes.urls[0], **urls}.items()
            }


@asynccontextmanager
async def measured(folder: Path) -> AsyncIterator[tuple[ModelProcesses, dict[str, int]]]:
    """Payloads go through shared memory; each worker serves its metrics."""
    ports = dict(zip(STAGES, free_ports(len(STAGES)), strict=True))
    with model_processes(fake_chain({"denoiser": DENOISER}, connector="shm"), folder) as processes:
        frontend = processes.plans["frontend-0"]
        stats = ("--stats-dir", str(folder / "stats"))
        processes.plans["frontend-0"] = replace(frontend, arguments=(*frontend.arguments, *stats))
        for stage, port in ports.items():
            plan = processes.plans[stage]
            processes.plans[stage] = replace(plan, arguments=(*plan.arguments, "--metrics-port", str(port)))
        await processes.start()
        yield processes, ports


async def leave_one(processes: ModelProcesses, openai: AsyncOpenAI) -> None:
    asking = asyncio.create_task(picture(openai, 9))
    await stats_when(processes.plans["denoiser"].health, lambda now: now.running == 1, 10)
    asking.cancel()
    await asyncio.gather(asking, return_exceptions=True)
    await stats_when(processes.plans["denoiser"].health, lambda now: now.cancelled_total == 1, 10)


def figure(text: str, name: str, **labels: str) -> float:
    samples = (sample for family in text_string_to_metric_families(text) for sample in family.samples)
    return next(sample.value for sample in samples if (sample.name, sample.labels) == (name, labels))


def expected(part: str) -> dict[str, Series]:
    """Of fake engines in the clear."""
    rows = documented(part).items()
    return {name: series for name, series in rows if ONLY_WITH_TLS not in name and name != ONLY_WITH_WEIGHTS}


def test_the_frontend_exposes_what_is_documented_and_nothing_else(texts: dict[str, str]) -> None:
    assert scraped(texts["frontend"]) == expected("frontend")


@pytest.mark.parametrize("stage", STAGES)
def test_a_worker_exposes_what_is_documented_and_nothing_else(texts: dict[str, str], stage: str) -> None:
    found = scraped(texts[stage])
    assert {name: series.kind for name, series in found.items()} == {
        name: series.kind for name, series in expected("worker").items()
    }
    for name, series in found.items():
        assert series.labels in (None, documented("worker")[name].labels), name


def test_every_documented_label_is_seen_in_some_worker(texts: dict[str, str]) -> None:
    """But those of streams and of connectors over a service, which this model does not use."""
    seen = {name for stage in STAGES for name, series in scraped(texts[stage]).items() if series.labels is not None}
    unseen = {name for name in expected("worker") if name not in seen}
    assert all(name.startswith((ONLY_OF_SOME_CONNECTORS, "omni_worker_stream_")) for name in unseen)


def test_the_frontend_counts_each_request_with_its_stages_and_edges(texts: dict[str, str]) -> None:
    text = texts["frontend"]
    assert figure(text, "omni_frontend_e2e_requests_total", outcome="finished") == REQUESTS
    assert figure(text, "omni_frontend_e2e_requests_total", outcome="cancelled") == 1
    assert figure(text, "omni_frontend_e2e_seconds_count") == REQUESTS
    assert figure(text, "omni_frontend_images_total", stage="vae-decoder") == REQUESTS
    assert figure(text, "omni_frontend_stage_wall_seconds_count", stage="denoiser") == REQUESTS
    least_s = REQUESTS * DENOISER.steps * DENOISER.delay_seconds
    assert figure(text, "omni_frontend_stage_wall_seconds_sum", stage="denoiser") >= least_s
    assert figure(text, "omni_frontend_edge_in_flight_seconds_count", edge="denoiser->vae-decoder") == REQUESTS
    assert figure(text, "omni_frontend_waiting", stage="denoiser") == 0


def test_a_worker_tells_what_it_did_and_what_its_edges_carried(texts: dict[str, str]) -> None:
    text = texts["denoiser"]
    least_s = REQUESTS * DENOISER.steps * DENOISER.delay_seconds
    assert figure(text, "omni_worker_generation_seconds_sum") >= least_s
    assert figure(text, "omni_worker_cancel_seconds_count") == 1
    assert figure(text, "omni_worker_load_seconds") > 0
    assert figure(text, "omni_worker_edge_rx_decode_seconds_count", edge="text-encoder->denoiser") == REQUESTS + 1
    assert figure(text, "omni_worker_edge_tx_seconds_count", edge="denoiser->vae-decoder") == REQUESTS
    assert figure(text, "omni_worker_arena_bytes", connector="shm", what="size") > 0
