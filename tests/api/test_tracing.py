"""One request is one trace, through the frontend, every stage and every edge, in four processes."""

import asyncio
import signal
import subprocess
import sys
from collections import Counter
from collections.abc import AsyncIterator, Iterator
from concurrent import futures
from contextlib import asynccontextmanager
from dataclasses import replace
from itertools import pairwise
from pathlib import Path

import grpc
import pytest
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import (
    ExportTraceServiceRequest,
    ExportTraceServiceResponse,
)
from opentelemetry.proto.collector.trace.v1.trace_service_pb2_grpc import (
    TraceServiceServicer,
    add_TraceServiceServicer_to_server,
)

from omni_runtime.tracing.span_files import SpanRecord, read_spans
from tests.support.fake_chain import MODEL, STAGES, fake_chain
from tests.support.model_processes import ModelProcesses, model_processes
from tests.support.picture_client import client, picture

CALLER = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"


@asynccontextmanager
async def traced(folder: Path, *flags: str) -> AsyncIterator[ModelProcesses]:
    """Edges go over grpc, so that every payload is a transfer between processes; all end as SIGTERM ends them."""
    with model_processes(fake_chain(connector="grpc"), folder) as processes:
        for name, plan in processes.plans.items():
            processes.plans[name] = replace(plan, arguments=(*plan.arguments, *flags))
        await processes.start()
        yield processes
        for name in ("frontend-0", *STAGES):
            processes.signal(name, signal.SIGTERM)
            assert await processes.wait(name, timeout_s=10) == 0


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The spans of one request."""
    folder = tmp_path_factory.mktemp("traced")
    asyncio.run(trace_one_request(folder))
    return folder / "spans"


@pytest.fixture(scope="module")
def spans(folder: Path) -> list[SpanRecord]:
    return list(read_spans(folder))


async def trace_one_request(folder: Path) -> None:
    async with traced(folder, "--trace-dir", str(folder / "spans")) as processes:
        openai = client(processes.urls[0]).with_options(
            default_headers={"traceparent": CALLER, "x-request-id": "req-1"}
        )
        await picture(openai, 1)


def test_every_hop_is_a_span_of_the_caller_s_trace(spans: list[SpanRecord]) -> None:
    assert {span.trace_id for span in spans} == {CALLER.split("-")[1]}
    hops = [f"{verb} {stage}" for stage in STAGES for verb in ("stage", "run")]
    transfers = [f"{verb} {one}->{other}" for one, other in pairwise(STAGES) for verb in ("put", "get")]
    names = ["POST /v1/images/generations", "request", *hops, *transfers, "put output"]
    assert sorted(span.name for span in spans) == sorted(names)
    assert len({(span.service, span.instance) for span in spans}) == 1 + len(STAGES)
    assert not any(span.error for span in spans)


def test_each_span_lies_under_the_one_that_caused_it(spans: list[SpanRecord]) -> None:
    by_id = {span.span_id: span for span in spans}
    parents = {span.name: by_id[span.parent_id].name for span in spans if span.parent_id in by_id}
    assert parents["request"] == "POST /v1/images/generations"
    for stage in STAGES:
        assert parents[f"stage {stage}"] == "request"
        assert parents[f"run {stage}"] == f"stage {stage}"
    assert parents["get text-encoder->denoiser"] == "run denoiser"
    roots = [(span.name, span.parent_id) for span in spans if span.parent_id not in by_id]
    assert roots == [("POST /v1/images/generations", CALLER.split("-")[2])]


def test_a_transfer_s_span_says_how_and_how_much(spans: list[SpanRecord]) -> None:
    [transfer] = [span.attributes for span in spans if span.name == "get denoiser->vae-decoder"]
    assert transfer["omni.connector"] == "grpc" and transfer["omni.size_bytes"] > 0


def test_omni_trace_makes_a_file_of_it(folder: Path, tmp_path: Path) -> None:
    omni = Path(sys.executable).with_name("omni")
    command = [omni, "trace", "req-1", "--from", folder, "--out", tmp_path / "out.json"]
    done = subprocess.run(command, capture_output=True, text=True)
    assert (done.returncode, "13 spans" in done.stdout) == (0, True), done


class Collector(TraceServiceServicer):
    """What an OpenTelemetry collector is to its senders."""

    def __init__(self) -> None:
        self.services: Counter[str] = Counter()

    def Export(self, request: ExportTraceServiceRequest, context: grpc.ServicerContext) -> ExportTraceServiceResponse:
        for group in request.resource_spans:
            [name] = [one.value.string_value for one in group.resource.attributes if one.key == "service.name"]
            self.services[name] += sum(len(scope.spans) for scope in group.scope_spans)
        return ExportTraceServiceResponse()


@pytest.fixture
def collector() -> Iterator[tuple[Collector, str]]:
    server = grpc.server(futures.ThreadPoolExecutor(2))
    service = Collector()
    add_TraceServiceServicer_to_server(service, server)
    port = server.add_insecure_port("127.0.0.1:0")
    server.start()
    yield service, f"http://127.0.0.1:{port}"
    server.stop(0)


async def test_spans_reach_an_otlp_collector_by_the_time_the_processes_have_ended(
    tmp_path: Path, collector: tuple[Collector, str]
) -> None:
    service, endpoint = collector
    async with traced(tmp_path, "--otlp-endpoint", endpoint) as processes:
        openai = client(processes.urls[0])
        await openai.images.generate(model=MODEL, prompt="a fox")
    assert service.services["frontend"] == 5 and service.services["stage"] == 8
