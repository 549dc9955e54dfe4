"""Ar engines on a GPU: graphs change nothing, rows come while tokens are made, and a stage that slept says the same."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import numpy
import pytest
import torch

from omni_contract.accelerators import Vendor
from omni_contract.wire.payload import Array
from omni_runtime.engines.ar.engine import ArEngine
from omni_runtime.engines.protocol import StageItem, StageRequest
from omni_runtime.families.registry import family
from tests.models.ar_engines import answer, ar_file, asked, chat, loaded
from tests.models.thoughts import EDGE, chunks, said, thought

pytestmark = pytest.mark.gpu

VENDOR = Vendor.ROCM if torch.version.hip else Vendor.NVIDIA
GREEDY = {"temperature": 0.0, "max_tokens": 12, "min_tokens": 12, "ignore_eos": True}
ON = "talker->code2wav"
SMALL = {"dtype": "bfloat16", "kv_cache_size": "256Mi", "memory_utilization": 0.1, "max_sequences": 8}
TEXTS = ("hello world", "the quick brown fox", "jumps over the lazy dog")


def built(name: str, tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("models") / name
    family(name).build_tiny(folder, 0, lambda line: None)
    return folder


@pytest.fixture(scope="module")
def tiny(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return built("qwen3-omni", tmp_path_factory)


@pytest.fixture(scope="module")
def dense(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Without experts: which ones a token gets can hang on the last bit of 16, and then its states are others."""
    return built("qwen2.5-omni", tmp_path_factory)


@asynccontextmanager
async def on_gpu(model: Path, stage: str, **block: Any) -> AsyncIterator[ArEngine]:
    file = ar_file(model, stage, family=model.name, max_in_flight=8, **(SMALL | block))
    async with loaded(file.model_copy(update={"vendor": VENDOR})) as engine:
        yield engine


async def states(engine: ArEngine, text: str, number: int) -> tuple[list[int], dict[str, numpy.ndarray]]:
    request = StageRequest(f"s{number}", {"": chat(text)}, GREEDY, (EDGE,))
    told = [event.payload async for event in engine.run(request) if isinstance(event, StageItem)]
    rows = {layer: [values(item["hidden"][layer]) for item in told if item["hidden"]] for layer in told[0]["hidden"]}
    tokens = [token for item in told for token in item["token_ids"]]
    return tokens, {layer: numpy.concatenate(parts) for layer, parts in rows.items()}


def values(array: Array) -> numpy.ndarray:
    assert array.dtype == "bfloat16"
    return torch.frombuffer(bytearray(array.data), dtype=torch.bfloat16).view(array.shape).float().numpy()


async def frames(engine: ArEngine, items: list[Any], size: int, number: int = 0) -> list[list[int]]:
    parameters = {"temperature": 0.0, "max_tokens": 20, "min_tokens": 20, "voice": "Ethan"}
    request = StageRequest(f"t{number}", {}, parameters, (ON,), {EDGE: chunks(items, size)})
    made: list[list[int]] = []
    async for event in engine.run(request):
        if isinstance(event, StageItem):
            codes = event.payload["codes"]
            assert isinstance(codes, Array)
            made += numpy.frombuffer(codes.data, dtype=numpy.int32).reshape(codes.shape).T.tolist()
    return made


async def test_states_that_leave_graphs_are_those_of_an_eager_model(dense: Path):
    """As far as both make the same tokens: of made-up weights, several are about as likely."""
    made = {}
    for eager in (True, False):
        async with on_gpu(dense, "thinker", hidden_layers=[0, 1, -1], eager=eager) as engine:
            alone = await states(engine, TEXTS[0], 0)
            made[eager] = [alone, *await asyncio.gather(*(states(engine, text, 1 + n) for n, text in enumerate(TEXTS)))]
    for (tokens, eager), (others, graphs) in zip(made[True], made[False], strict=True):
        pairs = zip(tokens, others, strict=True)
        unlike = next((place for place, (one, other) in enumerate(pairs) if one != other), len(tokens))
        for layer, rows in eager.items():
            same = len(rows) - (len(tokens) - 1) + unlike
            assert rows.shape == graphs[layer].shape and rows[:same].std() > 0
            numpy.testing.assert_allclose(graphs[layer][:same], rows[:same], rtol=0.05, atol=0.05)


async def test_requests_that_share_steps_make_the_tokens_that_each_makes_alone(dense: Path):
    async with on_gpu(dense, "thinker") as engine:
        alone = [(await answer(engine, asked(chat(text), **GREEDY))).token_ids for text in TEXTS]
        requests = [asked(chat(text), f"together-{number}", **GREEDY) for number, text in enumerate(TEXTS)]
        together = await asyncio.gather(*(answer(engine, request) for request in requests))
    assert [each.token_ids for each in together] == alone


async def test_frames_are_the_same_however_the_thinkers_rows_come(tiny: Path):
    async with on_gpu(tiny, "thinker") as thinker:
        thoughts = [await thought(thinker, said(text, "Ethan")) for text in TEXTS]
    async with on_gpu(tiny, "talker") as talker:
        first, *others = [await frames(talker, thoughts[0], size) for size in (100, 1, 4)]
        assert len(first) == 19 and others == [first, first]
        together = await asyncio.gather(*(frames(talker, items, 1, n) for n, items in enumerate(thoughts)))
    assert [len(each) for each in together] == [19] * len(TEXTS)


@pytest.mark.parametrize("level", [1, 2])
async def test_a_stage_that_slept_makes_the_same_tokens(tiny: Path, level: Any):
    async with on_gpu(tiny, "thinker") as engine:
        before = await answer(engine, asked(chat(TEXTS[0]), **GREEDY))
        awake = torch.cuda.mem_get_info()[0]
        await engine.sleep(level)
        asleep = torch.cuda.mem_get_info()[0]
        await engine.wake(lambda line: None)
        after = await answer(engine, asked(chat(TEXTS[0]), **GREEDY))
    assert asleep - awake > 2**27
    assert after.token_ids == before.token_ids
