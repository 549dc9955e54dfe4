"""Who brings a pipe to a worker: only those whom a call has told of it, once and soon."""

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from omni_runtime.transport.plain import PLAIN
from omni_runtime.worker.pipes import PipeServer


@pytest.fixture
def address(tmp_path: Path) -> str:
    return f"unix:{tmp_path}/a.pipe"


@pytest.fixture
async def pipes(address: str) -> AsyncIterator[PipeServer]:
    server = PipeServer()
    async with server.serving(PLAIN, address):
        yield server


async def test_a_pipe_goes_to_the_call_whose_token_it_shows(pipes: PipeServer, address: str) -> None:
    with pipes.offer() as first, pipes.offer() as second:
        opened = await PLAIN.open_pipe(f"unix:{second.reply.path}", "denoiser")
        await opened.write(second.reply.token)
        taken = await second.taken()
        await opened.write(b"up")
        assert await anext(taken) == b"up"
        assert first.reply.token != second.reply.token
        opened.break_off("the test ends")


@pytest.mark.parametrize("is_used_up", [True, False])
async def test_a_pipe_without_a_token_or_with_one_that_is_used_up_is_cut_off(
    pipes: PipeServer, address: str, is_used_up: bool
) -> None:
    with pipes.offer() as offer:
        if is_used_up:
            await (await PLAIN.open_pipe(address, "denoiser")).write(offer.reply.token)
            await offer.taken()
        stranger = await PLAIN.open_pipe(address, "denoiser")
        await stranger.write(offer.reply.token if is_used_up else b"guess")
        with pytest.raises(StopAsyncIteration):
            await anext(stranger)


async def test_an_offer_ends_with_its_call(pipes: PipeServer, address: str) -> None:
    with pipes.offer() as offer:
        token = offer.reply.token
    late = await PLAIN.open_pipe(address, "denoiser")
    await late.write(token)
    with pytest.raises(StopAsyncIteration):
        await anext(late)


async def test_nothing_is_left_of_the_socket(tmp_path: Path) -> None:
    async with PipeServer().serving(PLAIN, f"unix:{tmp_path}/b.pipe"):
        assert (tmp_path / "b.pipe").exists()
    assert not (tmp_path / "b.pipe").exists()


async def test_a_port_that_was_left_open_is_told(tmp_path: Path) -> None:
    server = PipeServer()
    async with server.serving(PLAIN, "127.0.0.1:0"):
        with server.offer() as offer:
            opened = await PLAIN.open_pipe(f"127.0.0.1:{offer.reply.port}", "denoiser")
            await opened.write(offer.reply.token)
            async with asyncio.timeout(5):
                await offer.taken()
            opened.break_off("the test ends")
