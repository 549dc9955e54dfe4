"""The judge of the whole chain: plain transformers in a process of its own that imports nothing of ours.

usage: python ar_talker_reference.py MODEL_DIR MEDIA.npz OUT.npz < requests.json
For each request the tokens of the thinker, "text.NUMBER", and of the talker, "codes.NUMBER", all greedy.
"""

import json
import sys

import numpy
import torch
from ar_thinker_reference import LENGTH, inputs_of, sounds_of_videos
from talker_reference import keep_masks
from transformers import AutoProcessor, Qwen2_5OmniForConditionalGeneration

CODES = 20


def main(folder: str, media: str, out: str) -> None:
    torch.set_num_threads(1)
    model = Qwen2_5OmniForConditionalGeneration.from_pretrained(folder, dtype=torch.float32).eval()
    processor = AutoProcessor.from_pretrained(folder)
    arrays, made = numpy.load(media), {}
    talked: list[torch.Tensor] = []
    keep_masks(model.talker)
    generate = model.talker.generate
    model.talker.generate = lambda **arguments: talked.append(generate(**arguments)) or talked[-1]
    ends = [model.talker.codec_pad_token, model.talker.codec_eos_token]
    for number, request in enumerate(json.load(sys.stdin)):
        inputs = inputs_of(processor, request["messages"], arrays)
        # Without a prefix, pixels would go to the talker, too.
        inputs = {f"thinker_{name}" if "pixel" in name else name: value for name, value in inputs.items()}
        text, _ = model.generate(
            **inputs,
            speaker=request["voice"],
            use_audio_in_video=bool(sounds_of_videos(request["messages"])),
            thinker_max_new_tokens=LENGTH,
            thinker_min_new_tokens=LENGTH,
            thinker_do_sample=False,
            talker_do_sample=False,
            talker_max_new_tokens=CODES,
            talker_eos_token_id=ends,
        )
        length = inputs["input_ids"].shape[1]
        made[f"text.{number}"] = text[0, length:].numpy()
        made[f"codes.{number}"] = talked[-1][0, length + 2 :].numpy()
    numpy.savez(out, **made)


if __name__ == "__main__":
    main(*sys.argv[1:])
