"""The peer of `benchmarks.omni`: Qwen2.5-Omni of transformers, whole, in a process that imports nothing of ours.

usage: python omni_peer.py MODEL_DIR ; one JSON request per line on stdin, {"text", "words", "frames", "steps"}, and on
stdout a JSON line once it is ready and one for each answer. Requests are answered one after the other.
"""

import json
import sys
import time
from collections.abc import Mapping
from typing import Any

import torch
from transformers import AutoProcessor, Qwen2_5OmniForConditionalGeneration


def main(model_dir: str) -> None:
    torch.set_num_threads(1)
    model = Qwen2_5OmniForConditionalGeneration.from_pretrained(model_dir).eval()
    processor = AutoProcessor.from_pretrained(model_dir)
    keep_masks(model.talker)
    print(json.dumps({"ready": True}), flush=True)
    for line in sys.stdin:
        began = time.perf_counter()
        answered = answer(model, processor, json.loads(line))
        print(json.dumps(answered | {"seconds": time.perf_counter() - began}), flush=True)


def keep_masks(talker: Any) -> None:
    """Since 5, `generate` drops a mask that hides nothing; without one, this talker skips two codes of its prompt."""

    def keep(_: Any, args: Any, kwargs: dict[str, Any]) -> Any:
        new = kwargs["inputs_embeds"] if kwargs.get("inputs_embeds") is not None else kwargs["input_ids"]
        length = kwargs["past_key_values"].get_seq_length() + new.shape[1]
        return args, kwargs | {"attention_mask": torch.ones((1, length), dtype=torch.long)}

    talker.register_forward_pre_hook(keep, with_kwargs=True)


def answer(model: Any, processor: Any, request: Mapping[str, Any]) -> dict[str, Any]:
    """Greedy, so that what it says and how long it sounds can be compared."""
    prompt = processor.apply_chat_template([{"role": "user", "content": request["text"]}], add_generation_prompt=True)
    inputs = processor(text=prompt, return_tensors="pt")
    talker = model.config.talker_config
    tokens, sound = model.generate(
        **inputs,
        speaker="Ethan",
        thinker_max_new_tokens=request["words"],
        thinker_min_new_tokens=request["words"],
        thinker_do_sample=False,
        thinker_repetition_penalty=1.0,
        talker_max_new_tokens=request["frames"],
        talker_min_new_tokens=request["frames"],
        talker_do_sample=False,
        talker_eos_token_id=[talker.tts_codec_pad_token_id, talker.tts_codec_end_token_id],
        token2wav_num_steps=request["steps"],
    )
    words = tokens[0, inputs["input_ids"].shape[1] :].tolist()
    return {"words": words, "samples": len(sound)}


if __name__ == "__main__":
    main(sys.argv[1])
