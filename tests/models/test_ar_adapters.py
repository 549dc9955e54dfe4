"""LoRA adapters on vLLM: tokens are those of a model that has the adapter in its weights, beside the model's own."""

import asyncio
import json
from pathlib import Path

import pytest
import pytest_asyncio
import torch
from safetensors.torch import save_file
from transformers import AutoModelForCausalLM, AutoTokenizer

from tests.models import tiny_text
from tests.models.ar_engines import answer, ar_file, asked, judged, loaded

pytestmark = pytest.mark.asyncio(loop_scope="module")

PROMPTS = ([3, 5, 7, 11], list(range(40, 90)))
GREEDY = {"temperature": 0.0, "max_tokens": 16, "min_tokens": 16}
RANK, ALPHA = 8, 16
TARGETS = ("q_proj", "v_proj")


@pytest.fixture(scope="module")
def tiny(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("models") / "tiny-text"
    tiny_text.build(folder)
    return folder


@pytest.fixture(scope="module")
def merged(tiny: Path) -> Path:
    """The model with the adapter "poet" in its weights, which is written beside it."""
    adapter, merged = tiny / "adapters" / "poet", tiny.with_name("merged")
    adapter.mkdir(parents=True)
    model, weights = AutoModelForCausalLM.from_pretrained(tiny, dtype=torch.float32), dict[str, torch.Tensor]()
    draws = torch.Generator().manual_seed(1)
    for number, layer in enumerate(model.model.layers):
        for target in TARGETS:
            product = getattr(layer.self_attn, target)
            down = torch.randn((RANK, product.in_features), generator=draws) * 0.2
            up = torch.randn((product.out_features, RANK), generator=draws) * 0.2
            name = f"base_model.model.model.layers.{number}.self_attn.{target}"
            weights |= {f"{name}.lora_A.weight": down, f"{name}.lora_B.weight": up}
            product.weight.data += up @ down * (ALPHA / RANK)
    save_file(weights, adapter / "adapter_model.safetensors")
    told = {"peft_type": "LORA", "r": RANK, "lora_alpha": ALPHA, "target_modules": list(TARGETS), "bias": "none"}
    (adapter / "adapter_config.json").write_text(json.dumps(told))
    model.save_pretrained(merged)
    AutoTokenizer.from_pretrained(tiny).save_pretrained(merged)
    return merged


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def engine(tiny: Path, merged: Path):
    loras = [{"name": "poet", "path": "adapters/poet"}]
    async with loaded(ar_file(tiny, loras=loras, max_lora_rank=RANK)) as engine:
        yield engine


async def test_an_adapter_makes_the_tokens_of_a_model_that_has_it_in_its_weights(engine, tiny: Path, merged: Path):
    requests = [{"prompt_token_ids": prompt, "max_new_tokens": 16, "min_new_tokens": 16} for prompt in PROMPTS]
    plain, poetic = judged(tiny, requests), judged(merged, requests)
    assert plain != poetic

    async def made(prompt: list[int], **parameters: str) -> list[int]:
        return (await answer(engine, asked({"prompt_token_ids": prompt}, **GREEDY, **parameters))).token_ids

    assert [await made(prompt, lora="poet") for prompt in PROMPTS] == poetic
    together = await asyncio.gather(*(made(p) for p in PROMPTS), *(made(p, lora="poet") for p in PROMPTS))
    assert together == [*plain, *poetic]
