"""The judge of talkers: unmodified Qwen2.5-Omni of transformers in a process of its own that imports nothing of ours.

usage: python talker_reference.py MODEL_DIR OUT.npz < requests.json
Each request holds a `text`, the number of `words` and `frames`, a `seed`, and whether the talker samples.
"""

import json
import sys
from typing import Any

import numpy
import torch
from transformers import AutoProcessor, Qwen2_5OmniForConditionalGeneration


def main(model_dir: str, out: str) -> None:
    torch.set_num_threads(1)
    model = Qwen2_5OmniForConditionalGeneration.from_pretrained(model_dir).eval()
    processor = AutoProcessor.from_pretrained(model_dir)
    keep_masks(model.talker)
    made: dict[str, Any] = {}
    for position, request in enumerate(json.load(sys.stdin)):
        made |= {f"{position}.{name}": value for name, value in answer(model, processor, request).items()}
    numpy.savez(out, **made)


def keep_masks(talker: Any) -> None:
    """Since 5, `generate` drops a mask that hides nothing; without one, this talker skips two codes of its prompt."""

    def keep(_: Any, args: Any, kwargs: dict[str, Any]) -> Any:
        new = kwargs["inputs_embeds"] if kwargs.get("inputs_embeds") is not None else kwargs["input_ids"]
        length = kwargs["past_key_values"].get_seq_length() + new.shape[1]
        return args, kwargs | {"attention_mask": torch.ones((1, length), dtype=torch.long)}

    talker.register_forward_pre_hook(keep, with_kwargs=True)


def answer(model: Any, processor: Any, request: dict[str, Any]) -> dict[str, Any]:
    prompt = processor.apply_chat_template([{"role": "user", "content": request["text"]}], add_generation_prompt=True)
    inputs = processor(text=prompt, return_tensors="pt")
    think, decode, seen = model.thinker.generate, model.token2wav.forward, {}

    def thinker(*args: Any, **kwargs: Any) -> Any:
        seen["thinker"] = think(*args, **kwargs)
        return seen["thinker"]

    def token2wav(codes: Any, **kwargs: Any) -> Any:
        seen["codes"] = codes[0].numpy()
        return decode(codes, **kwargs)

    model.thinker.generate, model.token2wav.forward = thinker, token2wav
    torch.manual_seed(request["seed"])
    config = model.config.talker_config
    _, sound = model.generate(
        **inputs,
        speaker="Ethan",
        thinker_max_new_tokens=request["words"],
        thinker_do_sample=False,
        talker_max_new_tokens=request["frames"],
        talker_do_sample=request["samples"],
        talker_eos_token_id=[config.tts_codec_pad_token_id, config.tts_codec_end_token_id],
    )
    model.thinker.generate, model.token2wav.forward = think, decode
    steps = seen["thinker"].hidden_states
    return {
        "prompt": inputs["input_ids"][0].numpy(),
        "words": seen["thinker"].sequences[0, inputs["input_ids"].shape[1] :].numpy(),
        "embeddings": torch.cat([step[0] for step in steps], dim=1)[0].numpy(),
        "states": torch.cat([step[-1] for step in steps], dim=1)[0].numpy(),
        "codes": seen["codes"],
        "sound": sound.numpy(),
    }


if __name__ == "__main__":
    main(*sys.argv[1:])
