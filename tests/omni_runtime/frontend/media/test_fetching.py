"""Fetching links: only from addresses that are allowed, at every step of the way, and within the limits."""

import asyncio
from collections.abc import AsyncIterator
from dataclasses import replace

import pytest
from aiohttp import web
from aiohttp.test_utils import TestServer

from omni_runtime.frontend.media.addresses import is_public
from omni_runtime.frontend.media.fetching import TooManyBytesError, fetch
from omni_runtime.frontend.media.settings import MediaSettings
from omni_runtime.frontend.media.sources import RefusedSourceError, link_of

SETTINGS = MediaSettings(max_bytes=1000, fetch_timeout_s=5)


def loopback(address: str) -> bool:
    """127.0.0.1 stands for the internet here, and 127.0.0.2 for somebody's own network."""
    return address == "127.0.0.1"


async def answer(request: web.Request) -> web.StreamResponse:
    match request.path.strip("/").split("/"):
        case ["bytes", count]:
            return web.Response(body=b"x" * int(count))
        case ["endless"]:
            response = web.StreamResponse()
            await response.prepare(request)
            while True:
                await response.write(b"x" * 500)
        case ["silent"]:
            await asyncio.Event().wait()
        case ["zipped"]:
            return web.Response(body=b"x", headers={"content-encoding": "gzip"})
        case ["to", *where]:
            raise web.HTTPFound("/".join(where).replace("PORT", str(request.url.port)))
        case ["again", left]:
            raise web.HTTPFound(f"/again/{int(left) - 1}" if int(left) else "/bytes/3")
    return web.Response(status=404)


@pytest.fixture
async def server() -> AsyncIterator[TestServer]:
    app = web.Application()
    app.router.add_get("/{path:.*}", answer)
    async with TestServer(app, host="127.0.0.1") as running:
        yield running


async def fetched(server: TestServer, path: str, host: str = "127.0.0.1", settings: MediaSettings = SETTINGS) -> bytes:
    return await fetch(link_of(f"http://{host}:{server.port}{path}"), settings, loopback)


async def test_a_file_within_the_limits_is_fetched(server: TestServer) -> None:
    assert await fetched(server, "/bytes/1000") == b"x" * 1000
    assert await fetched(server, "/again/2") == b"xxx"


@pytest.mark.parametrize("path", ["/bytes/1001", "/endless"])
async def test_a_file_over_the_limit_is_refused_whether_or_not_it_says_its_length(
    server: TestServer, path: str
) -> None:
    with pytest.raises(TooManyBytesError, match="more than 1,000 bytes"):
        await fetched(server, path)


@pytest.mark.parametrize("host", ["127.0.0.2", "localhost", "[::1]", "[::ffff:127.0.0.1]", "0x7f000001", "2130706433"])
async def test_an_address_that_is_not_allowed_is_not_connected_to(server: TestServer, host: str) -> None:
    with pytest.raises(RefusedSourceError):
        await fetch(link_of(f"http://{host}:{server.port}/bytes/3"), SETTINGS, is_public)


async def test_a_name_is_refused_by_what_it_stands_for(server: TestServer) -> None:
    with pytest.raises(RefusedSourceError, match="not public"):
        await fetch(link_of(f"http://localhost:{server.port}/bytes/3"), SETTINGS, is_public)


@pytest.mark.parametrize(
    ("location", "words"),
    [
        ("http://127.0.0.2:PORT/bytes/3", "not public"),
        ("http://[::1]:PORT/bytes/3", "not public"),
        ("file:///etc/passwd", "use an http"),
        ("ftp://127.0.0.1/a", "use an http"),
        ("http://user@127.0.0.1:PORT/bytes/3", "no user"),
    ],
)
async def test_a_redirect_is_checked_like_the_link_itself(server: TestServer, location: str, words: str) -> None:
    with pytest.raises(RefusedSourceError, match=words):
        await fetched(server, f"/to/{location}")


async def test_redirects_come_to_an_end(server: TestServer) -> None:
    with pytest.raises(RefusedSourceError, match="more than 3 times"):
        await fetched(server, "/again/9")


async def test_an_answer_that_does_not_come_is_given_up(server: TestServer) -> None:
    with pytest.raises(RefusedSourceError, match="did not answer within"):
        await fetched(server, "/silent", settings=replace(SETTINGS, fetch_timeout_s=0.05))


async def test_what_is_not_there_is_refused_with_its_status(server: TestServer) -> None:
    with pytest.raises(RefusedSourceError, match="status 404"):
        await fetched(server, "/nothing")


async def test_a_server_that_is_not_there_is_a_link_that_cannot_be_fetched() -> None:
    with pytest.raises(RefusedSourceError, match="cannot be fetched"):
        await fetch(link_of("http://127.0.0.1:1/a"), SETTINGS, loopback)


async def test_nothing_is_unpacked_on_the_way(server: TestServer) -> None:
    assert await fetched(server, "/zipped") == b"x"
