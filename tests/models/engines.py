"""Runs diffusion engines as a worker would, without processes: fused, or split with payloads through the codec."""

import json
import shutil
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import numpy

from omni_contract.api.v1alpha1 import DiffusionEngine as DiffusionBlock
from omni_contract.api.v1alpha1 import DiffusionPhase
from omni_contract.wire.codec import decode, encode
from omni_contract.wire.payload import Array, Payload
from omni_contract.wire.stage_file import StageFile
from omni_runtime.diffusion.engine import DiffusionEngine
from omni_runtime.engines.diffusion import create
from omni_runtime.engines.protocol import StageOutput, StageRequest
from tests.support.reference_images import ReferenceRequest

FUSED: tuple[DiffusionPhase, ...] = ("encode", "denoise", "decode")


def stage_file(model: Path, phases: Sequence[DiffusionPhase] = FUSED, **changes: Any) -> StageFile:
    values: dict[str, Any] = {
        "model": "test",
        "stage": "-".join(phases),
        "revision": "1",
        "family": "qwen-image",
        "model_path": str(model),
        "engine": DiffusionBlock(phases=tuple(phases)),
        "max_in_flight": 64,
        "max_batch_size": 1,
        "batch_timeout_s": 0.0,
        "drain_timeout_s": 60,
        "startup_timeout_s": 600,
    }
    return StageFile(**(values | changes))


def widened(tiny_model: Path, folder: Path, heads: int) -> Path:
    """The tiny model with a far wider transformer and without weights, to be loaded with format dummy."""
    shutil.copytree(tiny_model, folder, ignore=shutil.ignore_patterns("*.safetensors"))
    config = folder / "transformer" / "config.json"
    config.write_text(json.dumps(json.loads(config.read_text()) | {"num_attention_heads": heads}))
    return folder


@asynccontextmanager
async def loaded(file: StageFile) -> AsyncIterator[DiffusionEngine]:
    engine = create(file)
    await engine.load(lambda line: None)
    try:
        yield engine
    finally:
        await engine.close()


def stage_request(request: ReferenceRequest, inputs: dict[str, Payload] | None = None) -> StageRequest:
    client = {"prompt": request.prompt, "negative_prompt": request.negative_prompt}
    parameters = {
        "width": request.width,
        "height": request.height,
        "steps": request.steps,
        "guidance_scale": request.guidance_scale,
        "seed": request.seed,
    }
    return StageRequest(f"request-{request.seed}", inputs or {"": client}, parameters, ("",))


async def output(engine: DiffusionEngine, request: StageRequest) -> Payload:
    """The stage's output, as another process would see it."""
    outputs = [event.payload async for event in engine.run(request) if isinstance(event, StageOutput)]
    assert len(outputs) == 1
    return decode(encode(outputs[0]).to_bytes())


async def image(engines: Sequence[DiffusionEngine], request: ReferenceRequest) -> "numpy.ndarray[Any, Any]":
    """Through the engines in order, each fed with what the one before made."""
    payload = await output(engines[0], stage_request(request))
    for engine in engines[1:]:
        payload = await output(engine, stage_request(request, {"edge": payload}))
    return pixels(payload)


def pixels(payload: Payload) -> "numpy.ndarray[Any, Any]":
    array = payload["image"]
    assert isinstance(array, Array) and array.dtype == "uint8"
    return numpy.frombuffer(array.data, dtype=numpy.uint8).reshape(array.shape)
