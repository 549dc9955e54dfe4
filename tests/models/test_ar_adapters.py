"""LoRA adapters on vLLM: tokens are those of a model that has the adapter in its weights, beside the model's own."""

import asyncio
from pathlib import Path

import pytest
import pytest_asyncio
from transformers import AutoTokenizer

from tests.models import tiny_text
from tests.models.ar_engines import answer, ar_file, asked, judged, loaded
from tests.models.tiny_adapter import NAME, PATH, RANK, add_adapter

pytestmark = pytest.mark.asyncio(loop_scope="module")

PROMPTS = ([3, 5, 7, 11], list(range(40, 90)))
GREEDY = {"temperature": 0.0, "max_tokens": 16, "min_tokens": 16}


@pytest.fixture(scope="module")
def tiny(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("models") / "tiny-text"
    tiny_text.build(folder)
    return folder


@pytest.fixture(scope="module")
def merged(tiny: Path) -> Path:
    """The model with the adapter in its weights, which is written beside it."""
    merged = tiny.with_name("merged")
    add_adapter(tiny).save_pretrained(merged)
    AutoTokenizer.from_pretrained(tiny).save_pretrained(merged)
    return merged


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def engine(tiny: Path, merged: Path):
    async with loaded(ar_file(tiny, loras=[{"name": NAME, "path": PATH}], max_lora_rank=RANK)) as engine:
        yield engine


@pytest.mark.case("runtime:A28")
async def test_an_adapter_makes_the_tokens_of_a_model_that_has_it_in_its_weights(engine, tiny: Path, merged: Path):
    requests = [{"prompt_token_ids": prompt, "max_new_tokens": 16, "min_new_tokens": 16} for prompt in PROMPTS]
    plain, poetic = judged(tiny, requests), judged(merged, requests)
    assert plain != poetic

    async def made(prompt: list[int], **parameters: str) -> list[int]:
        return (await answer(engine, asked({"prompt_token_ids": prompt}, **GREEDY, **parameters))).token_ids

    assert [await made(prompt, lora=NAME) for prompt in PROMPTS] == poetic
    together = await asyncio.gather(*(made(p) for p in PROMPTS), *(made(p, lora=NAME) for p in PROMPTS))
    assert together == [*plain, *poetic]
