"""Asks a served model for one picture and saves it, which proves that every stage answers."""

import asyncio
from base64 import b64decode
from pathlib import Path

import aiohttp

from omni_runtime.local.errors import ServeError
from omni_runtime.local.plan import LocalPlan

PROMPT = "a red fox in the snow"
SEED = 1
TIMEOUT_S = 300


async def save_first_picture(plan: LocalPlan, path: Path, api_keys: Path | None) -> None:
    """Raises ServeError with the server's own words if it does not answer with a picture."""
    request = {"model": plan.served_name, "prompt": PROMPT, "seed": SEED}
    timeout = aiohttp.ClientTimeout(total=TIMEOUT_S)
    async with aiohttp.ClientSession(timeout=timeout, headers=_authorization(api_keys)) as session:
        try:
            async with session.post(f"{plan.url}/v1/images/generations", json=request) as answer:
                body = await answer.json()
        except (aiohttp.ClientError, TimeoutError) as exc:
            raise ServeError(f"the first picture failed: {exc!r}") from exc
    if answer.status != 200:
        raise ServeError(f"the first picture failed with status {answer.status}: {body['error']['message']}")
    await asyncio.to_thread(_write_whole, path, b64decode(body["data"][0]["b64_json"]))


def _write_whole(path: Path, picture: bytes) -> None:
    """Whoever waits for the file never sees a part of it."""
    unfinished = path.with_name(f".{path.name}.unfinished")
    unfinished.write_bytes(picture)
    unfinished.replace(path)


def _authorization(api_keys: Path | None) -> dict[str, str]:
    if api_keys is None:
        return {}
    key = next(file.read_text().strip() for file in sorted(api_keys.iterdir()) if file.is_file())
    return {"authorization": f"Bearer {key}"}
