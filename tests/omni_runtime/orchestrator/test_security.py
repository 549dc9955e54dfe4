"""The orchestrator over mutual TLS, and what it does with a message that no stage would take."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path

import pytest

from omni_contract.wire.errors import ErrorCode, OmniError
from omni_contract.wire.names import FRONTEND
from omni_contract.wire.stage_table import StageTable
from omni_runtime.orchestrator import Orchestrator, OrchestratorSettings, SessionRequest
from omni_runtime.orchestrator.discovery.local import LocalDiscovery
from omni_runtime.orchestrator.messages import PART_BYTES
from omni_runtime.transport.pipe import LARGEST_INPUT_BYTES
from omni_runtime.transport.plain import PLAIN
from omni_runtime.transport.protocol import Transport
from omni_runtime.transport.tls import TlsTransport
from tests.support.certificates import MODEL, NAMESPACE, CertificateMaker, name_of
from tests.support.fake_model import fake_worker, located
from tests.support.stage_tables import chain

STAGES = ("encoder", "painter")


@pytest.fixture(scope="module")
def maker(tmp_path_factory: pytest.TempPathFactory) -> CertificateMaker:
    return CertificateMaker.create(tmp_path_factory.mktemp("tls"))


def tls(maker: CertificateMaker, component: str) -> TlsTransport:
    return TlsTransport(maker.folder_of(component), component, MODEL, NAMESPACE)


@asynccontextmanager
async def orchestrator_of(
    table: StageTable, transport: Transport = PLAIN, largest: int = LARGEST_INPUT_BYTES
) -> AsyncIterator[Orchestrator]:
    settings = OrchestratorSettings(
        frontend_id="test", reconnect_first_s=0.01, transport=transport, largest_input_bytes=largest
    )
    async with Orchestrator(table, LocalDiscovery(table), settings).running() as orchestrator:
        yield orchestrator


def request(request_id: str = "r1", prompt: str = "a cat", side: int = 8) -> SessionRequest:
    return SessionRequest(request_id, {"prompt": prompt}, parameters={"width": side, "height": side})


@pytest.mark.case("runtime:Q4")
async def test_requests_and_large_pictures_travel_over_mutual_tls(maker: CertificateMaker, tmp_path: Path) -> None:
    table = located(chain(*STAGES), tmp_path)
    async with AsyncExitStack() as workers, orchestrator_of(table, tls(maker, FRONTEND)) as orchestrator:
        for name in STAGES:
            worker = fake_worker(table, name, tmp_path, transport=tls(maker, name), final_by_handle=True)
            await workers.enter_async_context(worker)
        result = await orchestrator.run(request(side=300))
    assert result.outputs[0].payload["image"].shape == (300, 300, 3)  # type: ignore[union-attr]


async def test_a_stage_with_another_one_s_certificate_gets_no_work_and_the_log_says_once_why(
    maker: CertificateMaker, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    table = located(chain(*STAGES, queue_timeout_seconds=1), tmp_path)
    impostor = fake_worker(table, "encoder", tmp_path, transport=tls(maker, "painter"))
    async with impostor, orchestrator_of(table, tls(maker, FRONTEND)) as orchestrator:
        with pytest.raises(OmniError) as caught:
            await orchestrator.run(request())
    assert caught.value.code is ErrorCode.STAGE_UNAVAILABLE
    assert impostor.jobs == []
    refusals = [record for record in caplog.records if "no stream to worker" in record.getMessage()]
    assert [record.getMessage() for record in refusals] == [
        f"no stream to worker: its certificate is not made out to {name_of('encoder')}"
    ]
    assert refusals[0].__dict__["stage"] == "encoder"


async def test_a_request_that_is_too_large_is_refused_with_the_way_out_and_harms_no_other(tmp_path: Path) -> None:
    table = located(chain("painter"), tmp_path)
    async with (
        fake_worker(table, "painter", tmp_path) as worker,
        orchestrator_of(table, largest=10_000) as orchestrator,
    ):
        worker.gate.clear()
        async with orchestrator.submit(request("r1")) as session:
            await worker.started(1)
            with pytest.raises(OmniError, match="takes at most 10,000: send fewer, shorter or smaller media") as caught:
                orchestrator.submit(request("r2", prompt="x" * 10_001))
            assert caught.value.code is ErrorCode.PAYLOAD_TOO_LARGE
            worker.gate.set()
            assert [event async for event in session]
            assert session.retries == 0
        assert orchestrator.open_sessions == 0


async def test_a_large_request_takes_several_messages_between_others(tmp_path: Path) -> None:
    table = located(chain("painter"), tmp_path)
    async with fake_worker(table, "painter", tmp_path) as worker, orchestrator_of(table) as orchestrator:
        await orchestrator.wait_ready()
        sizes = (2**20 - 1024, 5 * PART_BYTES, PART_BYTES - 1024, 10)
        sessions = [orchestrator.submit(request(f"r{size}", "x" * size)) for size in sizes]
        for session in sessions:
            assert [event async for event in session]
            assert session.retries == 0
        assert [job.parts for job in worker.jobs] == [0, 5, 0, 0]


async def test_the_log_says_once_that_a_worker_s_pipe_cannot_be_reached(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    table = located(chain("painter", queue_timeout_seconds=1), tmp_path)
    async with fake_worker(table, "painter", tmp_path) as worker, orchestrator_of(table) as orchestrator:
        pipe = Path(f"{worker.address.removeprefix('unix:')}.pipe")
        await asyncio.to_thread(pipe.unlink)
        with pytest.raises(OmniError, match="no replica of painter is ready"):
            await orchestrator.run(request())
    [told] = [record.getMessage() for record in caplog.records if "no stream to worker" in record.getMessage()]
    assert told.startswith(f"no stream to worker: its pipe at unix:{pipe} cannot be opened: ")
