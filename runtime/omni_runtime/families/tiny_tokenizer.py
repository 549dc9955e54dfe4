"""A Qwen-style byte-level tokenizer trained on a few sentences here, so that tiny checkpoints need no download."""

import json
from collections.abc import Mapping, Sequence

from tokenizers import Tokenizer, decoders, models, pre_tokenizers, trainers
from transformers import Qwen2Tokenizer

VOCABULARY = 400
SPECIAL_TOKENS = (
    "<|endoftext|>",
    "<|im_start|>",
    "<|im_end|>",
    "<|vision_start|>",
    "<|vision_end|>",
    "<|vision_pad|>",
    "<|image_pad|>",
    "<|video_pad|>",
)
SENTENCES = (
    "system user assistant\n hello world the quick brown fox jumps over the lazy dog.",
    "Describe the image by detailing the color, shape, size, texture, quantity, text, spatial relationships of the "
    "objects and background:",
)


def train_tokenizer(
    special_tokens: Sequence[str] = SPECIAL_TOKENS,
    named_tokens: Mapping[str, str] | None = None,
    words: Sequence[str] = (),
) -> Qwen2Tokenizer:
    """`named_tokens` become attributes, such as `image_token`; each of `words` is one token wherever it stands."""
    vocabulary, merges = _byte_pairs()
    tokenizer = Qwen2Tokenizer(
        vocab=vocabulary,
        merges=merges,
        eos_token="<|im_end|>",
        pad_token="<|endoftext|>",
        model_max_length=4096,
        **({"extra_special_tokens": dict(named_tokens)} if named_tokens else {}),
    )
    tokenizer.add_tokens(list(special_tokens), special_tokens=True)
    tokenizer.add_tokens(list(words))
    return tokenizer


def _byte_pairs() -> tuple[dict[str, int], list[tuple[str, str]]]:
    tokenizer = Tokenizer(models.BPE())
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    tokenizer.decoder = decoders.ByteLevel()
    alphabet = pre_tokenizers.ByteLevel.alphabet()
    trainer = trainers.BpeTrainer(vocab_size=VOCABULARY, initial_alphabet=alphabet, show_progress=False)
    tokenizer.train_from_iterator(SENTENCES * 4, trainer)
    model = json.loads(tokenizer.to_str())["model"]
    return model["vocab"], [(left, right) for left, right in model["merges"]]
