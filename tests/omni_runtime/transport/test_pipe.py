"""Pipes between two ends in one process, over real sockets: whole messages, back-pressure, both kinds of end, TLS."""

import asyncio
import socket
import struct
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from omni_contract.wire.names import FRONTEND
from omni_runtime.transport.pipe import MESSAGE_LIMIT_BYTES, MOST_UNREAD_BYTES, MOST_UNSENT_BYTES, Pipe, PipeBrokenError
from omni_runtime.transport.plain import PLAIN
from omni_runtime.transport.protocol import Transport
from omni_runtime.transport.tls import TlsTransport
from tests.omni_runtime.worker.frontend import settled
from tests.support.certificates import MODEL, NAMESPACE, CertificateMaker, name_of
from tests.support.model_processes import free_ports

PATIENCE_S = 20.0
HELLO = b"hello"
MIB = 2**20


@asynccontextmanager
async def taking(address: str, transport: Transport = PLAIN) -> AsyncIterator["asyncio.Queue[Pipe]"]:
    """The pipes that were taken and said hello."""
    taken: asyncio.Queue[Pipe] = asyncio.Queue()

    def greeted(pipe: Pipe, message: bytes) -> None:
        assert message == HELLO
        taken.put_nowait(pipe)

    server = await transport.serve_pipes(address, greeted)
    try:
        async with asyncio.timeout(PATIENCE_S):
            yield taken
    finally:
        server.close()


@asynccontextmanager
async def ends(
    address: str, serving: Transport = PLAIN, dialing: Transport = PLAIN, stage: str = "denoiser"
) -> AsyncIterator[tuple[Pipe, Pipe]]:
    """The end that opened the pipe and the one that took it."""
    async with taking(address, serving) as taken:
        opened = await dialing.open_pipe(address, stage)
        await opened.write(HELLO)
        other = await taken.get()
        try:
            yield opened, other
        finally:
            for end in (opened, other):
                end.break_off("the test ends")


@pytest.fixture
def address(tmp_path: Path) -> str:
    return f"unix:{tmp_path}/a.pipe"


async def all_of(pipe: Pipe) -> list[bytes]:
    return [message async for message in pipe]


async def test_messages_of_every_size_arrive_whole_and_in_order_before_the_end(address: str) -> None:
    messages = [b"", b"x", bytes(MIB), b"y" * 5, bytes(MESSAGE_LIMIT_BYTES), b""]
    async with ends(address) as (opened, other), asyncio.TaskGroup() as tasks:
        reading = tasks.create_task(all_of(other))
        for message in messages:
            await opened.write(message)
        await opened.close(PATIENCE_S)
        assert await reading == messages


async def test_both_ends_write_over_tcp(address: str) -> None:
    [port] = free_ports(1)
    async with ends(f"127.0.0.1:{port}") as (opened, other):
        await opened.write(b"up")
        await other.write(b"down")
        assert (await anext(other), await anext(opened)) == (b"up", b"down")


async def test_writers_wait_while_the_other_end_does_not_read(address: str) -> None:
    async with ends(address) as (opened, other):
        writing = asyncio.create_task(write_many(opened, 64))
        await settled(lambda: not other._transport.is_reading())
        assert not writing.done()
        assert other._unread_bytes <= MOST_UNREAD_BYTES + MIB
        assert opened._transport.get_write_buffer_size() <= MOST_UNSENT_BYTES + MIB
        assert [len(await anext(other)) for _ in range(64)] == [MIB] * 64
        await writing


async def write_many(pipe: Pipe, count: int) -> None:
    for _ in range(count):
        await pipe.write(bytes(MIB))


async def test_a_reader_that_never_waits_is_handed_what_has_come_and_what_comes_until_the_end(address: str) -> None:
    received: list[bytes] = []
    async with taking(address) as taken:
        with raw(address) as connection:
            connection.sendall(framed(HELLO) + framed(b"before"))
            reading = asyncio.create_task((await taken.get()).hand_over(received.append))
            await settled(lambda: received == [b"before"])
            connection.sendall(framed(b"after") + framed(b"last"))
        await reading
    assert received == [b"before", b"after", b"last"]


async def test_what_is_handed_over_late_is_read_on_after_a_pause(address: str) -> None:
    async with ends(address) as (opened, other), asyncio.TaskGroup() as tasks:
        writing = tasks.create_task(write_many(opened, 64))
        await settled(lambda: not other._transport.is_reading())
        sizes: list[int] = []
        reading = tasks.create_task(other.hand_over(lambda message: sizes.append(len(message))))
        await writing
        await opened.close(PATIENCE_S)
        await reading
        assert sizes == [MIB] * 64


async def test_what_is_held_comes_in_order_once_the_reader_goes_on_and_the_end_behind_it(address: str) -> None:
    received: list[bytes] = []

    async with ends(address) as (opened, other):

        def receive(message: bytes) -> None:
            received.append(message)
            other.hold()

        reading = asyncio.create_task(other.hand_over(receive))
        for message in (b"1", b"2", b"3"):
            await opened.write(message)
        await opened.close(PATIENCE_S)
        await settled(lambda: other._closed.is_set())
        assert received == [b"1"] and not reading.done()
        other.go_on()
        other.go_on()
        await reading
    assert received == [b"1", b"2", b"3"]


async def test_an_end_that_holds_is_not_sent_more_than_it_keeps(address: str) -> None:
    sizes: list[int] = []
    async with ends(address) as (opened, other), asyncio.TaskGroup() as tasks:
        other.hold()
        reading = tasks.create_task(other.hand_over(lambda message: sizes.append(len(message))))
        writing = tasks.create_task(write_many(opened, 64))
        await settled(lambda: not other._transport.is_reading())
        assert not sizes and not writing.done()
        other.go_on()
        await writing
        await opened.close(PATIENCE_S)
        await reading
    assert sizes == [MIB] * 64


async def test_a_pipe_whose_reader_fails_is_broken(address: str) -> None:
    def fail(message: bytes) -> None:
        raise ValueError(f"cannot read {message!r}")

    async with ends(address) as (opened, other):
        await opened.write(b"what")
        with pytest.raises(PipeBrokenError, match="cannot read"):
            await other.hand_over(fail)


async def test_an_end_inside_a_message_is_no_good_end(address: str) -> None:
    async with taking(address) as taken:
        with raw(address) as connection:
            connection.sendall(framed(HELLO) + framed(b"whole") + framed(b"cut short")[:-1])
        pipe = await taken.get()
        assert await anext(pipe) == b"whole"
        with pytest.raises(PipeBrokenError, match="inside a message"):
            await anext(pipe)


async def test_a_message_above_the_limit_breaks_the_pipe_before_it_is_read(address: str) -> None:
    async with taking(address) as taken:
        with raw(address) as connection:
            connection.sendall(framed(HELLO))
            pipe = await taken.get()
            connection.sendall(struct.pack(">I", MESSAGE_LIMIT_BYTES + 1))
            with pytest.raises(PipeBrokenError, match="limit is 16,777,216"):
                await anext(pipe)
            assert await asyncio.to_thread(connection.recv, 1) == b""


async def test_what_is_written_to_a_broken_pipe_goes_nowhere_and_its_reader_is_told(address: str) -> None:
    async with ends(address) as (opened, other):
        other.break_off("told to")
        with pytest.raises(StopAsyncIteration):
            await anext(opened)
        await opened.write(b"lost")
        with pytest.raises(PipeBrokenError, match="told to"):
            await anext(other)


def raw(address: str) -> socket.socket:
    connection = socket.socket(socket.AF_UNIX)
    connection.connect(address.removeprefix("unix:"))
    return connection


def framed(message: bytes) -> bytes:
    return struct.pack(">I", len(message)) + message


# -- over TLS


@pytest.fixture(scope="module")
def maker(tmp_path_factory: pytest.TempPathFactory) -> CertificateMaker:
    return CertificateMaker.create(tmp_path_factory.mktemp("tls"))


def tls(folder: Path, component: str) -> TlsTransport:
    return TlsTransport(folder, component, MODEL, NAMESPACE)


async def test_pipes_travel_over_mutual_tls(maker: CertificateMaker, address: str) -> None:
    serving, dialing = tls(maker.folder_of("denoiser"), "denoiser"), tls(maker.folder_of(FRONTEND), FRONTEND)
    async with ends(address, serving, dialing) as (opened, other):
        await opened.write(bytes(3 * MIB))
        assert await anext(other) == bytes(3 * MIB)


async def test_another_stage_s_certificate_is_refused(maker: CertificateMaker, address: str) -> None:
    dialing = tls(maker.folder_of(FRONTEND), FRONTEND)
    async with taking(address, tls(maker.folder_of("text"), "text")) as taken:
        with pytest.raises(OSError, match="Hostname mismatch"):
            await dialing.open_pipe(address, "denoiser")
        assert taken.empty()


async def test_a_pipe_in_the_clear_or_of_another_authority_is_not_taken(
    maker: CertificateMaker, address: str, tmp_path: Path
) -> None:
    stranger = CertificateMaker.create(tmp_path, "stranger")
    async with taking(address, tls(maker.folder_of("denoiser"), "denoiser")) as taken:
        with raw(address) as connection:
            connection.sendall(framed(HELLO))
            assert not (await asyncio.to_thread(connection.recv, 1)).startswith(b"\0")
        with pytest.raises(OSError, match="certificate verify failed"):
            await tls(stranger.folder_of(FRONTEND), FRONTEND).open_pipe(address, "denoiser")
        assert taken.empty()


async def test_pipes_are_taken_with_the_newest_certificate(maker: CertificateMaker, address: str) -> None:
    folder = maker.folder("rotated", [name_of("denoiser")], days="3")
    serving, dialing = tls(folder, "denoiser"), tls(maker.folder_of(FRONTEND), FRONTEND)
    async with taking(address, serving) as taken:
        ends_seen = []
        for days in ("3", "9"):
            maker.folder("rotated", [name_of("denoiser")], days=days)
            opened = await dialing.open_pipe(address, "denoiser")
            ends_seen.append(opened._transport.get_extra_info("peercert")["notAfter"])
            await opened.write(HELLO)
            (await taken.get()).break_off("seen")
            opened.break_off("seen")
    assert ends_seen[0] != ends_seen[1]
