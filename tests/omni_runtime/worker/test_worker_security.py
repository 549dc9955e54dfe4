"""Real worker processes over mutual TLS, and where they listen."""

import socket
import urllib.request
from pathlib import Path

import grpc
import pytest
from grpc_health.v1 import health_pb2, health_pb2_grpc

from omni_contract.wire import stage_pb2 as wire
from omni_contract.wire.codec import decode
from omni_contract.wire.exit_codes import ExitCode
from omni_contract.wire.names import FRONTEND, WORKER_CERTIFICATE_EXPIRES
from omni_contract.wire.stage_pb2_grpc import StageWorkerStub
from omni_runtime.connectors.channels import CHANNEL_OPTIONS
from omni_runtime.transport.plain import PLAIN
from omni_runtime.transport.tls import TlsTransport
from tests.omni_runtime.worker.frontend import PATIENCE_S, start
from tests.omni_runtime.worker.stage_files import edge, stage_file
from tests.omni_runtime.worker.worker_process import SERVING, WorkerProcess
from tests.support.certificates import MODEL, NAMESPACE, CertificateMaker, name_of
from tests.support.model_processes import free_ports

pytestmark = pytest.mark.chaos


@pytest.fixture(scope="module")
def maker(tmp_path_factory: pytest.TempPathFactory) -> CertificateMaker:
    return CertificateMaker.create(tmp_path_factory.mktemp("tls"))


@pytest.fixture
def frontend(maker: CertificateMaker) -> TlsTransport:
    return TlsTransport(maker.folder_of(FRONTEND), FRONTEND, MODEL, NAMESPACE)


@pytest.mark.case("runtime:Q4")
async def test_stages_hand_payloads_on_over_mutual_tls(maker: CertificateMaker, frontend: TlsTransport, tmp_path: Path):
    pair = edge("text", "denoiser", at="text", connector="grpc")
    reader = edge("text", "denoiser", at="denoiser", connector="grpc")
    text, denoiser = stage_file("text", outputs=(pair,)), stage_file("denoiser", inputs=(reader,))
    async with (
        WorkerProcess(text, tmp_path, transport=frontend, tls=maker.folder_of("text")) as producer,
        WorkerProcess(denoiser, tmp_path, transport=frontend, tls=maker.folder_of("denoiser")) as consumer,
        producer.attached() as first,
        consumer.attached() as second,
    ):
        first.send(start("r-1", payload={"prompt": "a fox"}, outputs=(pair.edge,)))
        await first.terminal("r-1")
        handle = first.of("r-1")[1].outputs[0].handle
        assert handle.owner_stage == "text"
        second.send(start("r-1", inputs=[wire.Input(edge=pair.edge, handle=handle)]))
        await second.terminal("r-1")
        assert decode(second.of("r-1")[1].outputs[0].inline)["trail"] == ["text", "denoiser"]


@pytest.mark.case("runtime:Q4")
async def test_a_caller_in_the_clear_gets_nothing_from_a_worker_with_tls(
    maker: CertificateMaker, frontend: TlsTransport, tmp_path: Path
):
    async with WorkerProcess(stage_file(), tmp_path, transport=frontend, tls=maker.folder_of("denoiser")) as worker:
        async with PLAIN.channel(worker.address, "denoiser", CHANNEL_OPTIONS) as channel:
            with pytest.raises(grpc.aio.AioRpcError) as caught:
                await StageWorkerStub(channel).Describe(wire.DescribeRequest(), timeout=PATIENCE_S)
        assert caught.value.code() is grpc.StatusCode.UNAVAILABLE
        assert "Handshake failed" in worker.log
        assert (await worker.stub.Describe(wire.DescribeRequest(), timeout=PATIENCE_S)).stage == "denoiser"


async def test_probes_are_answered_in_the_clear_on_a_port_of_their_own_and_nothing_else_is(
    maker: CertificateMaker, frontend: TlsTransport, tmp_path: Path
):
    [port] = free_ports(1)
    options = {"tls": maker.folder_of("denoiser"), "health_port": port}
    async with (
        WorkerProcess(stage_file(), tmp_path, transport=frontend, **options),
        grpc.aio.insecure_channel(f"127.0.0.1:{port}") as probe,
    ):
        for service in ("startup", "live", "ready"):
            request = health_pb2.HealthCheckRequest(service=service)
            assert (await health_pb2_grpc.HealthStub(probe).Check(request, timeout=PATIENCE_S)).status == SERVING
        with pytest.raises(grpc.aio.AioRpcError) as caught:
            await StageWorkerStub(probe).Describe(wire.DescribeRequest(), timeout=PATIENCE_S)
        assert caught.value.code() is grpc.StatusCode.UNIMPLEMENTED


async def test_probes_and_metrics_are_not_served_on_other_addresses_unless_the_stage_is(tmp_path: Path):
    """127.0.0.2 is this host, too: whatever listens on every address answers there."""
    health_port, metrics_port = free_ports(2)
    async with WorkerProcess(stage_file(), tmp_path, health_port=health_port, metrics_port=metrics_port):
        assert is_listening("127.0.0.1", metrics_port) and is_listening("127.0.0.1", health_port)
        assert not is_listening("127.0.0.2", metrics_port)
        assert not is_listening("127.0.0.2", health_port)


def is_listening(host: str, port: int) -> bool:
    with socket.socket() as probe:
        return probe.connect_ex((host, port)) == 0


async def test_a_rotated_certificate_restarts_nothing(maker: CertificateMaker, frontend: TlsTransport, tmp_path: Path):
    [port] = free_ports(1)
    folder = maker.folder("rotated", [name_of("denoiser")], days="1")
    options = {"tls": folder, "metrics_port": port}
    async with (
        WorkerProcess(stage_file(), tmp_path, transport=frontend, **options) as worker,
        worker.attached() as before,
    ):
        first_end_s = expiry(port)
        maker.folder("rotated", [name_of("denoiser")], days="9")
        async with worker.attached() as after:
            after.send(start("r-2"))
            assert (await after.terminal("r-2")).HasField("finished")
        before.send(start("r-1"))
        assert (await before.terminal("r-1")).HasField("finished")
        assert expiry(port) > first_end_s
        assert any("goes on with a new certificate" in line["message"] for line in worker.log_lines)


def expiry(port: int) -> float:
    with urllib.request.urlopen(f"http://127.0.0.1:{port}/metrics", timeout=PATIENCE_S) as answer:
        lines = answer.read().decode().splitlines()
    return next(float(line.split()[1]) for line in lines if line.startswith(WORKER_CERTIFICATE_EXPIRES))


async def test_a_certificate_that_cannot_be_used_ends_the_start_with_its_file_s_name(
    maker: CertificateMaker, tmp_path: Path
):
    folder = maker.folder_of("text")
    async with WorkerProcess(stage_file(), tmp_path, wait_ready=False, tls=folder) as worker:
        assert await worker.exit_code() == ExitCode.MISCONFIGURED
    assert worker.log_lines[-1]["message"] == (
        f'stage "denoiser" cannot start: {folder}/tls.crt: is made out to {name_of("text")}, and not to '
        f"{name_of('denoiser')}"
    )
