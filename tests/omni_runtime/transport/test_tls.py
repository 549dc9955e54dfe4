"""Who meets whom over mutual TLS: real handshakes over a socket in the test's folder."""

import logging
import os
import shutil
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager
from pathlib import Path

import grpc
import pytest

from omni_contract.wire import stage_pb2 as wire
from omni_contract.wire.stage_pb2_grpc import StageWorkerServicer, StageWorkerStub, add_StageWorkerServicer_to_server
from omni_runtime.transport.plain import PLAIN
from omni_runtime.transport.protocol import Transport, TransportError
from omni_runtime.transport.tls import TRY_AGAIN_S, TlsTransport
from tests.support.certificates import EXPIRED, MODEL, NAMESPACE, CertificateMaker, name_of
from tests.support.model_processes import free_ports

PATIENCE_S = 20.0
OWN_POOL: Sequence[tuple[str, int]] = (("grpc.use_local_subchannel_pool", 1),)


class Denoiser(StageWorkerServicer):
    async def Describe(self, request: wire.DescribeRequest, context: grpc.aio.ServicerContext) -> wire.WorkerInfo:
        return wire.WorkerInfo(stage="denoiser")

    async def Fetch(
        self, request: wire.FetchRequest, context: grpc.aio.ServicerContext
    ) -> AsyncIterator[wire.PayloadSlice]:
        yield wire.PayloadSlice(data=b"pixels")


def tls(folder: Path, component: str, model: str = MODEL) -> TlsTransport:
    return TlsTransport(folder, component, model, NAMESPACE)


@asynccontextmanager
async def serving(transport: Transport, folder: Path, port: int | None = None) -> AsyncIterator[str]:
    """On a socket in the folder, or on a port of this host."""
    address = f"unix:{folder}/denoiser.sock" if port is None else f"127.0.0.1:{port}"
    server = grpc.aio.server(interceptors=transport.interceptors)
    add_StageWorkerServicer_to_server(Denoiser(), server)
    transport.bind(server, address)
    await server.start()
    try:
        yield address
    finally:
        await server.stop(None)


async def describe(transport: Transport, address: str, stage: str = "denoiser") -> str:
    """The answering stage's name."""
    async with transport.channel(address, stage, OWN_POOL) as channel:
        info: wire.WorkerInfo = await StageWorkerStub(channel).Describe(wire.DescribeRequest(), timeout=PATIENCE_S)
        return info.stage


async def fetch(transport: Transport, address: str) -> bytes:
    async with transport.channel(address, "denoiser", OWN_POOL) as channel:
        call = StageWorkerStub(channel).Fetch(wire.FetchRequest(), timeout=PATIENCE_S)
        return b"".join([piece.data async for piece in call])


async def refusal(transport: Transport, address: str, stage: str = "denoiser") -> str:
    """What a caller is told of why it is not served."""
    with pytest.raises(grpc.aio.AioRpcError) as caught:
        await describe(transport, address, stage)
    return transport.explain(caught.value, stage) or "unexplained"


@pytest.fixture
def denoiser(maker: CertificateMaker) -> TlsTransport:
    return tls(maker.folder_of("denoiser"), "denoiser")


@pytest.fixture
def frontend(maker: CertificateMaker) -> TlsTransport:
    return tls(maker.folder_of("frontend"), "frontend")


# -- who may come together


async def test_a_frontend_reaches_a_stage(denoiser: TlsTransport, frontend: TlsTransport, tmp_path: Path):
    async with serving(denoiser, tmp_path) as address:
        assert await describe(frontend, address) == "denoiser"
        assert await fetch(frontend, address) == b"pixels"


async def test_one_certificate_for_all_components_will_do(maker: CertificateMaker, tmp_path: Path):
    shared = maker.folder("shared", [f"*.{MODEL}.{NAMESPACE}.omni"])
    async with serving(tls(shared, "denoiser"), tmp_path) as address:
        assert await describe(tls(shared, "frontend"), address) == "denoiser"
        assert await fetch(tls(shared, "decoder"), address) == b"pixels"


async def test_a_stage_may_fetch_from_another_but_not_act_as_a_frontend(
    maker: CertificateMaker, denoiser: TlsTransport, tmp_path: Path, caplog: pytest.LogCaptureFixture
):
    decoder = tls(maker.folder_of("decoder"), "decoder")
    async with serving(denoiser, tmp_path) as address:
        assert await fetch(decoder, address) == b"pixels"
        assert name_of("decoder") in await refusal(decoder, address)
    assert f"Describe is for {name_of('frontend')}, but the caller's certificate is made out to" in caplog.text


# -- who is refused by a worker


@pytest.mark.case("runtime:Q4")
async def test_a_caller_in_the_clear_is_refused(
    denoiser: TlsTransport, tmp_path: Path, capfd: pytest.CaptureFixture[str]
):
    async with serving(denoiser, tmp_path) as address:
        with pytest.raises(grpc.aio.AioRpcError) as caught:
            await describe(PLAIN, address)
    assert caught.value.code() is grpc.StatusCode.UNAVAILABLE
    assert "WRONG_VERSION_NUMBER" in capfd.readouterr().err


def _unverified(maker: CertificateMaker, own: Path | None) -> Callable[[str], grpc.aio.Channel]:
    """A caller that trusts the worker and shows whatever it has, without looking at it first as ours do."""
    files = (None, None) if own is None else ((own / "tls.key").read_bytes(), (own / "tls.crt").read_bytes())
    credentials = grpc.ssl_channel_credentials(maker.authority.certificate.read_bytes(), *files)
    options = (*OWN_POOL, ("grpc.ssl_target_name_override", name_of("denoiser")))
    return lambda address: grpc.aio.secure_channel(address, credentials, options)


@pytest.mark.case("runtime:Q4")
@pytest.mark.parametrize(
    ("shown", "said"),
    [
        ("nothing", "PEER_DID_NOT_RETURN_A_CERTIFICATE"),
        ("foreign", "CERTIFICATE_VERIFY_FAILED: unable to get local issuer certificate"),
        ("expired", "CERTIFICATE_VERIFY_FAILED: certificate has expired"),
    ],
)
async def test_a_caller_without_a_good_certificate_is_refused_and_the_worker_s_log_says_why(
    maker: CertificateMaker,
    foreign_maker: CertificateMaker,
    denoiser: TlsTransport,
    tmp_path: Path,
    capfd: pytest.CaptureFixture[str],
    shown: str,
    said: str,
):
    folders = {
        "nothing": None,
        "foreign": foreign_maker.folder_of("frontend"),
        "expired": maker.folder_of("frontend", EXPIRED),
    }
    async with serving(denoiser, tmp_path) as address, _unverified(maker, folders[shown])(address) as channel:
        with pytest.raises(grpc.aio.AioRpcError) as caught:
            await StageWorkerStub(channel).Describe(wire.DescribeRequest(), timeout=PATIENCE_S)
    assert caught.value.code() is grpc.StatusCode.UNAVAILABLE
    assert said in capfd.readouterr().err


@pytest.mark.case("runtime:Q4")
async def test_another_model_s_frontend_is_refused_although_the_same_authority_signed_for_it(
    maker: CertificateMaker, denoiser: TlsTransport, tmp_path: Path, caplog: pytest.LogCaptureFixture
):
    stranger = maker.folder_of("frontend", model="other")
    async with serving(denoiser, tmp_path) as address, _unverified(maker, stranger)(address) as channel:
        for call in (
            StageWorkerStub(channel).Describe(wire.DescribeRequest(), timeout=PATIENCE_S),
            StageWorkerStub(channel).Fetch(wire.FetchRequest(), timeout=PATIENCE_S).read(),
        ):
            with pytest.raises(grpc.aio.AioRpcError) as caught:
                await call
            assert caught.value.code() is grpc.StatusCode.PERMISSION_DENIED
    assert f"made out to {name_of('frontend', 'other')}" in caplog.text


# -- whom a frontend refuses


async def test_a_stage_with_another_stage_s_certificate_is_refused(
    maker: CertificateMaker, frontend: TlsTransport, tmp_path: Path
):
    impostor = tls(maker.folder_of("encoder"), "encoder")
    async with serving(impostor, tmp_path) as address:
        assert await refusal(frontend, address) == f"its certificate is not made out to {name_of('denoiser')}"


async def test_a_stage_of_another_authority_is_refused(
    foreign_maker: CertificateMaker, frontend: TlsTransport, tmp_path: Path
):
    async with serving(tls(foreign_maker.folder_of("denoiser"), "denoiser"), tmp_path) as address:
        assert await refusal(frontend, address) == (
            "its certificate is refused: unable to get local issuer certificate"
        )


async def test_a_stage_whose_certificate_has_expired_is_refused(
    maker: CertificateMaker, frontend: TlsTransport, tmp_path: Path
):
    folder = maker.folder_of("denoiser", EXPIRED)
    files = [(folder / name).read_bytes() for name in ("tls.key", "tls.crt", "ca.crt")]
    server = grpc.aio.server()
    address = f"unix:{tmp_path}/expired.sock"
    server.add_secure_port(address, grpc.ssl_server_credentials([(files[0], files[1])], files[2], True))
    await server.start()
    assert await refusal(frontend, address) == "its certificate is refused: certificate has expired"
    await server.stop(None)


async def test_a_stage_in_the_clear_is_refused(frontend: TlsTransport, tmp_path: Path):
    async with serving(PLAIN, tmp_path) as address:
        assert await refusal(frontend, address) == "it does not speak TLS"


async def test_a_worker_that_refuses_us_is_told_from_one_that_is_away(
    denoiser: TlsTransport, foreign_maker: CertificateMaker, tmp_path: Path
):
    foreigner = tls(foreign_maker.folder_of("frontend"), "frontend")
    nobody = f"unix:{tmp_path}/nobody.sock"
    assert await refusal(foreigner, nobody) == "unexplained"
    async with serving(denoiser, tmp_path) as address:
        assert "its certificate is refused" in await refusal(foreigner, address)


@pytest.mark.parametrize("over", ["a socket", "a port"])
async def test_a_caller_whom_the_worker_refuses_is_told_where_to_look(
    maker: CertificateMaker, foreign_maker: CertificateMaker, denoiser: TlsTransport, tmp_path: Path, over: str
):
    """It trusts the worker's authority, but the worker does not trust its own."""
    folder = tmp_path / "tls"
    folder.mkdir()
    foreign = foreign_maker.folder_of("frontend")
    for name in ("tls.crt", "tls.key"):
        shutil.copy(foreign / name, folder)
    authorities = [one.authority.certificate.read_bytes() for one in (maker, foreign_maker)]
    (folder / "ca.crt").write_bytes(b"".join(authorities))
    port = free_ports(1)[0] if over == "a port" else None
    async with serving(denoiser, tmp_path, port) as address:
        assert "it closed the connection; if it does so each time, it refuses our certificate" in await refusal(
            tls(folder, "frontend"), address
        )


# -- the own certificate


def test_a_process_does_not_start_with_another_component_s_certificate(maker: CertificateMaker):
    with pytest.raises(TransportError) as caught:
        tls(maker.folder_of("encoder"), "denoiser")
    assert f"tls.crt: is made out to {name_of('encoder')}, and not to {name_of('denoiser')}" in str(caught.value)


async def test_a_new_certificate_is_used_by_the_next_connection_and_open_ones_go_on(
    maker: CertificateMaker, tmp_path: Path, caplog: pytest.LogCaptureFixture
):
    caplog.set_level(logging.INFO)
    folder = maker.folder("rotated", [name_of("denoiser")], days="1")
    worker, caller = tls(folder, "denoiser"), tls(maker.folder_of("frontend"), "frontend")
    first_end_s = worker.expires_s
    async with serving(worker, tmp_path) as address, caller.channel(address, "denoiser", OWN_POOL) as open_channel:
        stub = StageWorkerStub(open_channel)
        await stub.Describe(wire.DescribeRequest(), timeout=PATIENCE_S)
        maker.folder("rotated", ["denoiser.painter.default.omni", "new.painter.default.omni"], days="9")
        assert await describe(caller, address, stage="new") == "denoiser"
        await stub.Describe(wire.DescribeRequest(), timeout=PATIENCE_S)
    assert worker.expires_s > first_end_s
    assert worker.edition == 2
    assert "goes on with a new certificate for denoiser.painter.default.omni" in caplog.text


async def test_a_new_authority_replaces_the_old_one(
    maker: CertificateMaker, foreign_maker: CertificateMaker, tmp_path: Path
):
    folder = maker.folder("moved", [name_of("denoiser")])
    newcomer = tls(foreign_maker.folder_of("frontend"), "frontend")
    async with serving(tls(folder, "denoiser"), tmp_path) as address:
        assert "refused" in await refusal(newcomer, address)
        foreign_maker.fill(folder, foreign_maker.authority.server("moved", [name_of("denoiser")]))
        assert await describe(newcomer, address) == "denoiser"


def test_a_certificate_that_was_not_valid_yet_is_tried_again_though_its_files_are_the_same(
    maker: CertificateMaker, tmp_path: Path, caplog: pytest.LogCaptureFixture
):
    folder, now_s = tmp_path / "tls", 0.0
    shutil.copytree(maker.folder_of("denoiser"), folder)
    worker = TlsTransport(folder, "denoiser", MODEL, NAMESPACE, now_s=lambda: now_s)
    chain = folder / "tls.crt"
    good, time_ns = chain.read_bytes(), chain.stat().st_mtime_ns

    def write(content: bytes) -> None:
        chain.write_bytes(content)
        os.utime(chain, ns=(time_ns + 1, time_ns + 1))

    write(good.replace(b"BEGIN", b"AGAIN"))
    assert [worker.edition for _ in range(3)] == [1, 1, 1]
    write(good)
    assert worker.edition == 1
    now_s = TRY_AGAIN_S
    assert worker.edition == 2
    assert caplog.text.count("the new certificate cannot be used") == 1


async def test_a_new_certificate_that_cannot_be_used_is_reported_once_and_the_last_one_stays(
    maker: CertificateMaker, frontend: TlsTransport, tmp_path: Path, caplog: pytest.LogCaptureFixture
):
    folder = maker.folder("spoiled", [name_of("denoiser")])
    worker = tls(folder, "denoiser")
    async with serving(worker, tmp_path) as address:
        maker.folder("spoiled", ["somebody.else"])
        assert [await describe(frontend, address) for _ in range(3)] == ["denoiser"] * 3
        assert worker.edition == 1
        maker.folder("spoiled", [name_of("denoiser")])
        assert await describe(frontend, address) == "denoiser"
        assert worker.edition == 2
    reports = [record for record in caplog.records if record.levelname == "ERROR" and record.name.startswith("omni_")]
    assert len(reports) == 1
    assert "is made out to somebody.else, and not to denoiser.painter.default.omni" in reports[0].getMessage()
