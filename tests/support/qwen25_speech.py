"""What a tiny Qwen2.5-Omni is asked to say, and what transformers says to the same texts."""

import json
from pathlib import Path
from typing import Any

import numpy

from tests.layout.source import CHECKOUT
from tests.support.judges import ask
from tests.support.speech_chats import in_16_bits

REFERENCE = CHECKOUT / "tests" / "models" / "talker_reference.py"
WORDS, FRAMES = 12, 24
TEXTS = ("hello world", "the quick brown fox", "over the lazy dog")
STAGES: list[dict[str, Any]] = [
    {"temperature": 0, "repetition_penalty": 1.0, "max_tokens": WORDS},
    {"temperature": 0, "max_tokens": FRAMES},
    {},
]
"""Sampling that each run repeats."""


def expected_sounds(model: Path, folder: Path) -> list[Any]:
    """To each text, in 16 bits, from a process of its own; `folder` is for its file."""
    requests = [{"text": text, "words": WORDS, "frames": FRAMES, "seed": 0, "samples": False} for text in TEXTS]
    out = folder / "expected.npz"
    ask(REFERENCE, [model, out], json.dumps(requests))
    with numpy.load(out) as made:
        return [in_16_bits(made[f"{position}.sound"]) for position in range(len(TEXTS))]
