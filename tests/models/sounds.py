"""Runs generation engines as a worker would, without processes, and transformers as their judge."""

import json
import random
import tempfile
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy
import torch

from omni_contract.api.v1alpha1 import GenerationEngine as GenerationBlock
from omni_contract.wire.chunk import Chunk
from omni_contract.wire.payload import Array, Payload, Value
from omni_contract.wire.stage_file import StageFile
from omni_runtime.engines.generation import create
from omni_runtime.engines.protocol import StageItem, StageRequest
from omni_runtime.generation.engine import GenerationEngine
from omni_runtime.stepping.tensors import to_array
from tests.models.sound_reference import STEPS
from tests.support.judges import ask
from tests.support.qwen_tts import judge_python

SCRIPT = Path(__file__).parent / "sound_reference.py"
EDGE = "talker->code2wav"
GROUPS = {"qwen2.5-omni": 1, "qwen3-omni": 4, "qwen3-tts": 4}
CODEBOOK = {"qwen2.5-omni": 128, "qwen3-omni": 64, "qwen3-tts": 64}


@dataclass(frozen=True)
class Speech:
    """Codes that depend on family, length and seed, and how the talker hands them over: whole, or in such parts."""

    family: str
    frames: int
    seed: int = 0

    @property
    def codes(self) -> torch.Tensor:
        generator = torch.Generator().manual_seed(1000 * self.seed + self.frames)
        shape = (GROUPS[self.family], self.frames)
        return torch.randint(0, CODEBOOK[self.family] - 8, shape, generator=generator)

    def request(self, **parameters: Value) -> StageRequest:
        parameters = {"seed": self.seed, "steps": STEPS} | parameters
        return StageRequest(f"speech-{self.seed}", {EDGE: codes_payload(self.codes)}, parameters, ("",))

    def streamed(self, parts: Sequence[int], **parameters: Value) -> StageRequest:
        """With so many frames in each chunk, the rest in the last."""
        return replace(self.request(**parameters), inputs={}, streams={EDGE: chunks(self.codes, parts)})

    def parts(self, seed: int) -> list[int]:
        chance, parts = random.Random(seed), list[int]()
        while sum(parts) < self.frames:
            parts.append(chance.randint(1, 9))
        return parts


def codes_payload(codes: torch.Tensor) -> Payload:
    return {"codes": to_array(codes.to(torch.int32).contiguous())}


async def chunks(codes: torch.Tensor, parts: Sequence[int]) -> AsyncIterator[Chunk]:
    start = 0
    for part in parts:
        frames = codes[:, start : start + part]
        start += part
        # Each frame is an item, as a talker makes them.
        yield Chunk(tuple(codes_payload(frame[:, None]) for frame in frames.T))
    rest = codes[:, start:]
    yield Chunk(tuple(codes_payload(frame[:, None]) for frame in rest.T), is_last=True)


def stage_file(family: str, model: Path, **changes: Any) -> StageFile:
    values: dict[str, Any] = {
        "model": "test",
        "stage": "code2wav",
        "revision": "1",
        "family": family,
        "model_path": str(model),
        "engine": GenerationBlock(),
        "max_in_flight": 64,
        "max_batch_size": 8,
        "batch_timeout_s": 0.0,
        "drain_timeout_s": 60,
        "startup_timeout_s": 600,
    }
    return StageFile(**(values | changes))


@asynccontextmanager
async def loaded(file: StageFile) -> AsyncIterator[GenerationEngine]:
    engine = create(file)
    await engine.load(lambda line: None)
    try:
        yield engine
    finally:
        await engine.close()


def samples_of(payload: Payload) -> torch.Tensor:
    audio = payload["audio"]
    assert isinstance(audio, Array) and audio.dtype == "float32" and payload["sample_rate"] == 24_000
    return torch.frombuffer(bytearray(audio.data), dtype=torch.float32) if audio.size_bytes else torch.empty(0)


async def pieces(engine: GenerationEngine, request: StageRequest) -> list[torch.Tensor]:
    return [samples_of(event.payload) async for event in engine.run(request) if isinstance(event, StageItem)]


async def sound(engine: GenerationEngine, request: StageRequest) -> torch.Tensor:
    return torch.cat(await pieces(engine, request))


def off(ours: torch.Tensor, reference: torch.Tensor) -> float:
    """How far apart two sounds of the same length are."""
    assert ours.shape == reference.shape
    return (ours - reference).abs().max().item() if len(ours) else 0.0


def reference_sounds(folder: Path, speeches: Sequence[Speech]) -> list[torch.Tensor]:
    """By plain transformers, or the family's own package, each alone and whole."""
    requests = [{"codes": speech.codes.tolist(), "seed": speech.seed} for speech in speeches]
    with tempfile.TemporaryDirectory() as place:
        out, family = Path(place) / "sounds.npz", speeches[0].family
        elsewhere = {"python": judge_python(), "forks": False} if family == "qwen3-tts" else {}
        ask(SCRIPT, [family, folder, out], json.dumps(requests), **elsewhere)
        with numpy.load(out) as made:
            return [torch.from_numpy(made[str(position)]) for position in range(len(requests))]
