"""The judge of codecs: unmodified transformers, or qwen-tts, in a process of its own that imports nothing of ours.

usage: python sound_reference.py FAMILY MODEL_DIR OUT.npz < requests.json
Each request holds `codes`, rows of a group each, and `seed`.
"""

import json
import sys
from typing import Any

import numpy
import torch
from transformers import Qwen2_5OmniForConditionalGeneration, Qwen3OmniMoeForConditionalGeneration

STEPS = 4
"""Fewer than usual, for speed."""


def main(family: str, model_dir: str, out: str) -> None:
    torch.set_num_threads(1)
    torch.set_grad_enabled(False)
    sound = {"qwen2.5-omni": token2wav, "qwen3-omni": code2wav, "qwen3-tts": tokenizer}[family](model_dir)
    made = {}
    for position, request in enumerate(json.load(sys.stdin)):
        torch.manual_seed(request["seed"])
        made[str(position)] = sound(torch.tensor(request["codes"])[None]).flatten().numpy()
    numpy.savez(out, **made)


def token2wav(model_dir: str) -> Any:
    model = Qwen2_5OmniForConditionalGeneration.from_pretrained(model_dir).eval()
    speaker = model.speaker_map["Chelsie"]
    voice = {"conditioning": speaker["cond"], "reference_mel": speaker["ref_mel"]}
    return lambda codes: model.token2wav(codes[:, 0], num_steps=STEPS, **voice)


def code2wav(model_dir: str) -> Any:
    """Whole: its own decode in chunks drops samples at each border."""
    return Qwen3OmniMoeForConditionalGeneration.from_pretrained(model_dir).eval().code2wav


def tokenizer(model_dir: str) -> Any:
    """Whole: its own decode in chunks sees 25 frames of those before."""
    from qwen_tts import Qwen3TTSTokenizer

    return Qwen3TTSTokenizer.from_pretrained(f"{model_dir}/speech_tokenizer").model.decoder


if __name__ == "__main__":
    main(*sys.argv[1:])
