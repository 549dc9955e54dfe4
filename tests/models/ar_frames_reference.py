"""The judge of the whole chain of Qwen3-Omni: plain transformers in a process that imports nothing of ours.

usage: python ar_frames_reference.py MODEL_DIR MEDIA.npz OUT.npz < requests.json
For each request the tokens of the thinker, "text.NUMBER", the talker's frames, "codes.NUMBER", of shape (groups,
frames), and what code2wav makes of them, "sound.NUMBER"; all greedy.
"""

import json
import sys

import numpy
import torch
from ar_thinker_reference import LENGTH, inputs_of, sounds_of_videos
from transformers import AutoProcessor, Qwen3OmniMoeForConditionalGeneration

TOKENS = 21
"""A frame less comes of them: the last token's other codes are never made."""
NO_END = 10**6


def main(folder: str, media: str, out: str) -> None:
    torch.set_num_threads(1)
    model = Qwen3OmniMoeForConditionalGeneration.from_pretrained(folder, dtype=torch.float32).eval()
    # Without it, transformers cannot place a talker's sound.
    model.talker.config.audio_config = model.config.thinker_config.audio_config
    processor = AutoProcessor.from_pretrained(folder)
    arrays, made = numpy.load(media), {}
    decode, decoded = model.code2wav.chunked_decode, []
    model.code2wav.chunked_decode = lambda codes, **sizes: decoded.append(codes) or decode(codes, **sizes)
    for number, request in enumerate(json.load(sys.stdin)):
        inputs = inputs_of(processor, request["messages"], arrays)
        has_both = bool(sounds_of_videos(request["messages"]))
        text, sound = model.generate(
            **inputs,
            speaker=request["voice"],
            use_audio_in_video=has_both,
            # It does not tell its talker, which then places a video's tokens as if they were words.
            talker_use_audio_in_video=has_both,
            thinker_max_new_tokens=LENGTH,
            thinker_min_new_tokens=LENGTH,
            thinker_do_sample=False,
            thinker_eos_token_id=NO_END,
            talker_do_sample=False,
            talker_max_new_tokens=TOKENS,
        )
        made[f"text.{number}"] = text[0, inputs["input_ids"].shape[1] :].numpy()
        made[f"codes.{number}"] = decoded[-1][0].numpy()
        made[f"sound.{number}"] = sound.flatten().numpy()
    numpy.savez(out, **made)


if __name__ == "__main__":
    main(*sys.argv[1:])
