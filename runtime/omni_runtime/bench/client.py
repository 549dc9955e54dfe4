"""Asks the endpoint as a client does, and notes when what came."""

import asyncio
import time
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import aiohttp

from omni_runtime.bench.outcome import Outcome
from omni_runtime.bench.settings import BenchError, Target
from omni_runtime.bench.stream import Reader, words_of

LONGEST_LINE_BYTES = 2**26
"""An event may hold seconds of sound."""
CONNECT_S = 30
BROKEN = (TimeoutError, aiohttp.ClientError, ValueError, KeyError)
"""What a server that fails, or speaks otherwise than expected, makes of one request."""


@dataclass
class Client:
    """`began_s` is when the run began, by the monotonic clock."""

    session: aiohttp.ClientSession
    target: Target
    began_s: float

    async def ask(self, body: Mapping[str, Any], slo_s: float | None = None) -> Outcome:
        """A failure is an outcome too."""
        sent_s = time.perf_counter()
        outcome = Outcome(sent_s - self.began_s, slo_s=slo_s)
        reader = Reader(outcome, lambda: time.perf_counter() - sent_s)
        try:
            async with asyncio.timeout(self.target.timeout_s):
                await self._read(body, reader)
        except BROKEN as exc:
            outcome.error = str(exc) or type(exc).__name__
        outcome.latency_s = time.perf_counter() - sent_s
        if outcome.is_ok and not reader.has_ended:
            outcome.error = "the answer broke off"
        return outcome

    async def _read(self, body: Mapping[str, Any], reader: Reader) -> None:
        async with self.session.post(self.target.url + self.target.path, json=body) as answer:
            if answer.status != 200:
                reader.outcome.error = f"{answer.status}: {words_of(await _said(answer))}"
            elif answer.content_type == "text/event-stream":
                async for line in answer.content:
                    reader.line(line.decode().strip())
            elif answer.content_type == "application/json":
                reader.whole(await answer.json())
            else:
                async for data in answer.content.iter_any():
                    reader.sound(data)
                # A file that breaks off is an error of the connection.
                reader.has_ended = True


def session_for(target: Target) -> aiohttp.ClientSession:
    headers = {} if target.api_key is None else {"authorization": f"Bearer {target.api_key}"}
    timeout = aiohttp.ClientTimeout(total=None, sock_connect=CONNECT_S)
    connector = aiohttp.TCPConnector(limit=0)
    return aiohttp.ClientSession(connector=connector, timeout=timeout, headers=headers, read_bufsize=LONGEST_LINE_BYTES)


async def find_model(session: aiohttp.ClientSession, target: Target) -> str:
    """The name that requests go by. Raises BenchError."""
    if target.model is not None:
        return target.model
    try:
        async with session.get(f"{target.url}/v1/models") as answer:
            return str((await answer.json())["data"][0]["id"])
    except (*BROKEN, IndexError, TypeError) as exc:
        raise BenchError(f"{target.url}/v1/models tells no model ({exc or type(exc).__name__}); use --model") from exc


async def _said(answer: aiohttp.ClientResponse) -> Any:
    """What came with an error, which a proxy may have written."""
    return await answer.json() if answer.content_type == "application/json" else await answer.text()
