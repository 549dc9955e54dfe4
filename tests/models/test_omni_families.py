"""The tiny omni checkpoints as transformers' own classes see them."""

from pathlib import Path
from typing import Any

import numpy
import pytest
import torch
from PIL import Image
from transformers import (
    AutoProcessor,
    Qwen2_5OmniForConditionalGeneration,
    Qwen2_5OmniTalkerForConditionalGeneration,
    Qwen2_5OmniThinkerForConditionalGeneration,
    Qwen3OmniMoeForConditionalGeneration,
    Qwen3OmniMoeThinkerForConditionalGeneration,
)

WHOLE: dict[str, Any] = {
    "qwen2.5-omni": Qwen2_5OmniForConditionalGeneration,
    "qwen3-omni": Qwen3OmniMoeForConditionalGeneration,
}
PARTS: list[Any] = [
    pytest.param("qwen2.5-omni", "thinker", Qwen2_5OmniThinkerForConditionalGeneration, id="qwen2.5-thinker"),
    pytest.param("qwen2.5-omni", "talker", Qwen2_5OmniTalkerForConditionalGeneration, id="qwen2.5-talker"),
    pytest.param("qwen3-omni", "thinker", Qwen3OmniMoeThinkerForConditionalGeneration, id="qwen3-thinker"),
]
omni_family = pytest.mark.parametrize("name", WHOLE)


def spoken(name: str, folder: Path, text: str) -> tuple[list[int], torch.Tensor]:
    """Ids of the answer and its sound, both greedy."""
    model, processor = WHOLE[name].from_pretrained(folder).eval(), AutoProcessor.from_pretrained(folder)
    prompt = processor.apply_chat_template([{"role": "user", "content": text}], add_generation_prompt=True)
    inputs = processor(text=prompt, return_tensors="pt")
    ends = {"thinker_eos_token_id": processor.tokenizer.eos_token_id} if name == "qwen3-omni" else {}
    torch.manual_seed(0)
    ids, sound = model.generate(
        **inputs,
        thinker_max_new_tokens=8,
        thinker_do_sample=False,
        talker_max_new_tokens=8,
        talker_do_sample=False,
        **ends,
    )
    return ids[0, inputs["input_ids"].shape[1] :].tolist(), sound.flatten()


@omni_family
def test_one_letter_of_the_prompt_changes_text_and_a_sound_that_can_be_heard(name, tiny_checkpoint):
    """Else tests of what passes between stages could not fail."""
    said, heard = spoken(name, tiny_checkpoint(name), "hello world")
    other, otherwise = spoken(name, tiny_checkpoint(name), "hollo world")
    assert said != other
    assert len(set(said)) > 4
    assert not torch.equal(heard, otherwise)
    assert len(heard) > 1000
    assert 0.02 < heard.std() < 0.5
    assert (heard.abs() == 1).float().mean() < 0.01


@omni_family
def test_its_processor_reads_a_picture_a_sound_and_a_video(name, tiny_checkpoint):
    processor = AutoProcessor.from_pretrained(tiny_checkpoint(name))
    parts = [{"type": kind} for kind in ("image", "audio", "video")] + [{"type": "text", "text": "hello"}]
    prompt = processor.apply_chat_template([{"role": "user", "content": parts}], add_generation_prompt=True)
    inputs = processor(
        text=prompt,
        images=[Image.new("RGB", (64, 64), "red")],
        audio=[numpy.zeros(16_000, dtype=numpy.float32)],
        videos=[numpy.zeros((4, 64, 64, 3), dtype=numpy.uint8)],
        return_tensors="pt",
    )
    assert {"pixel_values", "input_features", "pixel_values_videos"} <= set(inputs)


@pytest.mark.parametrize(("name", "part", "kind"), PARTS)
def test_a_stage_reads_its_part_alone(name, part, kind, tiny_checkpoint):
    """But for Qwen3-Omni's talker, whose experts transformers joins only as a part of the whole."""
    folder = tiny_checkpoint(name)
    config = getattr(WHOLE[name].config_class.from_pretrained(folder), f"{part}_config")
    alone, report = kind.from_pretrained(
        folder, config=config, key_mapping={rf"^{part}\.": ""}, output_loading_info=True
    )
    whole = getattr(WHOLE[name].from_pretrained(folder), part).state_dict()
    assert not report["missing_keys"]
    assert all(torch.equal(weight, whole[key]) for key, weight in alone.state_dict().items())
