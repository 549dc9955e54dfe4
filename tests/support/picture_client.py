"""Asks frontends for pictures with the official SDK, and knows what the fake stages answer."""

import asyncio
import io
from base64 import b64decode
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import aiohttp
from openai import AsyncOpenAI, OpenAIError
from PIL import Image

from omni_runtime.engines.fake_answers import fake_image
from tests.support.fake_chain import MODEL, SIDE

PROMPT = "a red fox"


def client(url: str, timeout_s: float = 60) -> AsyncOpenAI:
    """Never tries again by itself: an answer that the server owes must come from the server."""
    return AsyncOpenAI(base_url=f"{url}/v1", api_key="none", max_retries=0, timeout=timeout_s)


async def picture(openai: AsyncOpenAI, seed: int) -> bytes:
    """The picture's RGB bytes."""
    answer = await openai.images.generate(
        model=MODEL,
        prompt=PROMPT,
        size=f"{SIDE}x{SIDE}",
        extra_body={"seed": seed},  # type: ignore[arg-type]
    )
    assert answer.data and answer.data[0].b64_json
    return rgb(b64decode(answer.data[0].b64_json))


async def wrong_pictures(urls: Sequence[str], seeds: Iterable[int], at_once: int = 8) -> list[str]:
    """Asks for a picture of each seed, in turn at each frontend; one line for each that is wrong or missing."""
    gate = asyncio.Semaphore(at_once)
    clients = [client(url) for url in urls]

    async def ask(seed: int) -> str | None:
        async with gate:
            try:
                made = await picture(clients[seed % len(clients)], seed)
            except OpenAIError as error:
                return f"seed {seed}: {error!r}"
        return None if made == expected(seed) else f"seed {seed}: another picture"

    answers = await asyncio.gather(*(ask(seed) for seed in seeds))
    for one in clients:
        await one.close()
    return [answer for answer in answers if answer is not None]


def expected(seed: int) -> bytes:
    """What the fake stages make of a seed."""
    return bytes(fake_image({"width": SIDE, "height": SIDE, "seed": seed}).data)


def rgb_of_url(url: str) -> bytes:
    """Of a picture in a data URL."""
    return rgb(b64decode(url.partition(",")[2]))


def rgb(png: bytes) -> bytes:
    return Image.open(io.BytesIO(png)).convert("RGB").tobytes()


async def routable_replicas(url: str, stage: str) -> int:
    """How many of the stage the frontend would give work to, by its metrics."""
    async with aiohttp.ClientSession() as http, http.get(f"{url}/metrics") as answer:
        text = await answer.text()
    [line] = [line for line in text.splitlines() if line.startswith(f'omni_frontend_replicas{{stage="{stage}"}} ')]
    return int(float(line.split()[-1]))


@dataclass(frozen=True)
class Answer:
    status: int
    headers: Mapping[str, str]
    body: Any


async def raw_request(url: str, seed: int, timeout_s: float) -> Answer:
    """As any HTTP client sends it; for status codes, headers and clients that go away."""
    request = {"model": MODEL, "prompt": PROMPT, "size": f"{SIDE}x{SIDE}", "seed": seed}
    async with (
        aiohttp.ClientSession(timeout=aiohttp.ClientTimeout(total=timeout_s)) as http,
        http.post(f"{url}/v1/images/generations", json=request) as answer,
    ):
        return Answer(answer.status, answer.headers, await answer.json())
