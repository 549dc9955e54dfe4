"""Fetches links of requests, from public addresses alone: looked up once, checked, and connected to as checked."""

import asyncio
import socket
from collections.abc import Callable
from typing import TypeAlias
from urllib.parse import urljoin

import aiohttp
from aiohttp.abc import AbstractResolver, ResolveResult

from omni_runtime.frontend.media.addresses import is_address
from omni_runtime.frontend.media.settings import MediaSettings
from omni_runtime.frontend.media.sources import Link, RefusedSourceError, link_of

IsAllowed: TypeAlias = Callable[[str], bool]
"""Whether an address, as text, may be connected to."""

MOST_REDIRECTS = 3
REDIRECTS = frozenset({301, 302, 303, 307, 308})
CHUNK_BYTES = 64 * 1024
HEADERS = {"Accept-Encoding": "identity", "User-Agent": "omni-operator"}
"""A compressed answer could be far larger than what comes over the wire."""
NOT_PUBLIC = "its address is not public, and only public ones are fetched from"


class TooManyBytesError(ValueError):
    """A file with more bytes than one may have."""


async def fetch(link: Link, settings: MediaSettings, is_allowed: IsAllowed) -> bytes:
    """Connects to addresses that are allowed, and to no others. Raises RefusedSourceError or TooManyBytesError."""
    try:
        async with asyncio.timeout(settings.fetch_timeout_s), _client(is_allowed) as client:
            return await _follow(client, link, settings.max_bytes, is_allowed)
    except TimeoutError:
        raise RefusedSourceError(f"the link did not answer within {settings.fetch_timeout_s:g} s") from None
    except (aiohttp.ClientError, OSError, ValueError) as exc:
        if isinstance(exc, RefusedSourceError | TooManyBytesError):
            raise
        refused = _refused_address(exc)
        raise RefusedSourceError(refused or f"the link cannot be fetched ({type(exc).__name__})") from exc


def _client(is_allowed: IsAllowed) -> aiohttp.ClientSession:
    return aiohttp.ClientSession(
        connector=aiohttp.TCPConnector(resolver=CheckingResolver(is_allowed), force_close=True, use_dns_cache=False),
        cookie_jar=aiohttp.DummyCookieJar(),
        auto_decompress=False,
        headers=HEADERS,
    )


async def _follow(client: aiohttp.ClientSession, link: Link, most: int, is_allowed: IsAllowed) -> bytes:
    """Each redirect is a link like the first one, with all of its checks."""
    for _ in range(MOST_REDIRECTS + 1):
        if is_address(link.host) and not is_allowed(link.host):
            # The client does not look up what is an address already.
            raise RefusedSourceError(NOT_PUBLIC)
        async with client.get(link.url, allow_redirects=False) as answer:
            if answer.status not in REDIRECTS:
                return await _body(answer, most)
            link = link_of(urljoin(link.url, answer.headers.get("location", "")))
    raise RefusedSourceError(f"the link redirects more than {MOST_REDIRECTS} times")


async def _body(answer: aiohttp.ClientResponse, most: int) -> bytes:
    if answer.status != 200:
        raise RefusedSourceError(f"the link answers with status {answer.status}")
    if (answer.content_length or 0) > most:
        raise too_many_bytes(most)
    body = bytearray()
    async for chunk in answer.content.iter_chunked(CHUNK_BYTES):
        body += chunk
        if len(body) > most:
            raise too_many_bytes(most)
    return bytes(body)


def too_many_bytes(most: int) -> TooManyBytesError:
    return TooManyBytesError(f"the file has more than {most:,} bytes")


class PrivateAddressError(OSError):
    """A host name that stands for an address of somebody's own network."""


class CheckingResolver(AbstractResolver):
    """Refuses a host as soon as one of its addresses is not allowed: which one is used would be left to chance."""

    def __init__(self, is_allowed: IsAllowed) -> None:
        self._is_allowed = is_allowed
        self._resolver = aiohttp.ThreadedResolver()

    async def resolve(
        self, host: str, port: int = 0, family: socket.AddressFamily = socket.AF_INET
    ) -> list[ResolveResult]:
        found = await self._resolver.resolve(host, port, family)
        if not all(self._is_allowed(one["host"]) for one in found):
            raise PrivateAddressError(NOT_PUBLIC)
        return found

    async def close(self) -> None:
        await self._resolver.close()


def _refused_address(error: BaseException | None) -> str | None:
    """The reason, where the client has wrapped our refusal into an error of its own."""
    while error is not None:
        if isinstance(error, PrivateAddressError):
            return str(error)
        error = error.__cause__
    return None
