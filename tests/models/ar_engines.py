"""Runs ar engines as a worker would, and asks the judge for the same."""

import json
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from omni_contract.api.v1alpha1 import ArEngine as ArBlock
from omni_contract.wire.codec import decode, encode
from omni_contract.wire.names import FINAL
from omni_contract.wire.payload import Payload, Value
from omni_contract.wire.stage_file import StageFile
from omni_runtime.engines.protocol import Engine, StageItem, StageRequest, StageUsage
from omni_runtime.engines.registry import create_engine
from tests.support.judges import ask

JUDGE = Path(__file__).with_name("ar_reference.py")
SMALL = {"dtype": "float32", "max_model_length": 512, "max_sequences": 32, "kv_cache_size": "64Mi"}
"""A key-value cache of 64 MiB holds more than all that tests ask for at once."""


def ar_file(
    model: Path, stage: str = "writer", family: str | None = None, max_in_flight: int = 64, **block: Any
) -> StageFile:
    values: dict[str, Any] = {
        "model": "test",
        "stage": stage,
        "revision": "1",
        "family": family,
        "model_path": str(model),
        "engine": ArBlock(**(SMALL | block)),
        "max_in_flight": max_in_flight,
        "max_batch_size": 1,
        "batch_timeout_s": 0.0,
        "drain_timeout_s": 60,
        "startup_timeout_s": 600,
    }
    return StageFile(**values)


@asynccontextmanager
async def loaded(file: StageFile) -> AsyncIterator[Any]:
    engine = create_engine(file)
    try:
        await engine.load(lambda line: None)
        yield engine
    finally:
        await engine.close()


def asked(payload: Payload, request_id: str = "request-1", **parameters: Value) -> StageRequest:
    return StageRequest(request_id, {FINAL: payload}, parameters, (FINAL,))


def chat(text: str) -> Payload:
    return {"messages": [{"role": "user", "content": [{"type": "text", "text": text}]}]}


@dataclass(frozen=True)
class Answer:
    """All that a request got, as another process would see it."""

    items: list[dict[str, Any]]
    usage: StageUsage

    @property
    def text(self) -> str:
        return "".join(item["text"] for item in self.items)

    @property
    def token_ids(self) -> list[int]:
        return [token_id for item in self.items for token_id in item["token_ids"]]

    @property
    def finish_reason(self) -> str | None:
        return self.items[-1].get("finish_reason")


async def answer(engine: Engine, request: StageRequest) -> Answer:
    items: list[dict[str, Any]] = []
    usage = None
    async for event in engine.run(request):
        if isinstance(event, StageItem):
            items.append(dict(decode(encode(event.payload).to_bytes())))
        elif isinstance(event, StageUsage):
            usage = event
    assert usage is not None
    return Answer(items, usage)


def judged(model: Path, requests: Sequence[dict[str, Any]]) -> list[list[int]]:
    """The tokens that transformers makes."""
    answers: list[list[int]] = json.loads(ask(JUDGE, [model], json.dumps(requests)))
    return answers
